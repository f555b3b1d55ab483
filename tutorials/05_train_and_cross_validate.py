# %% [markdown]
# # Train and cross-validate
#
# One fit, looked at closely: settings, scales while they move, how well its
# probabilities are calibrated. Then the same model on folds, stored, and asked about
# people that it has never seen.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from brainlsap import (
    LSAPClassifier,
    cross_validate,
    fit_model,
    make_cohort,
    predict_people,
    score_table,
)
from brainlsap.evaluation import make_splits
from brainlsap.model import load_model
from brainlsap.report import plot_calibration, plot_scales_at_quarters

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## One fit
#
# The classifier has scikit-learn's interface. It takes one packed array: of every scan
# the connectome and, beside it, the features. `groups` are the people: the slice that
# stops training shares nobody with the rest. `classes` is the order of the stages, of
# which the ridge makes use; `cross_validate` fills it in by itself.

# %%
cohort = make_cohort(60, atlas="desikan82", random_state=1)
X, y, people = cohort.to_array(), cohort.y, cohort.groups
train, test = make_splits(y, people, n_folds=3, random_state=0)[0]
brief = {"n_epochs": 20, "n_starts": 1, "random_state": 0}
model = LSAPClassifier(classes=cohort.classes, **brief)
model.fit(X[train], y[train], groups=people[train])
print("X", X.shape, "-> scales", model.scales_.shape)
print("error of the kernel at most", model.fit_report_["error_bound"])
settings = model.settings()
print({name: settings[name] for name in ("kernel", "tolerance", "scale_clip")})

# %% [markdown]
# Before the first epoch a ridge is fitted to the same scans. Its scales are where those
# of the network start (at most at half of the largest allowed), and half of its logits
# are what the network adds to. The network has a weight in the prediction only if it
# improves that of people whom it was not trained on; with few people the weight is
# mostly 0, and the ridge alone predicts. `start="constant"` is the plain network, which
# begins with nothing and with one scale for all regions.

# %%
plain_network = LSAPClassifier(start="constant", classes=cohort.classes, **brief).fit(
    X[train], y[train], groups=people[train]
)
print("weight of the network", model.network_weight_)
assert plain_network.ridge_ is None
assert plain_network.network_weight_ == 1.0
assert set(plain_network.scales_start_) == {1.0}
print("the data ask for:", model.ridge_.chosen_, "(scales of the ridge)")
assert len(set(model.scales_start_)) > 1

# %% [markdown]
# The history holds losses and scales at some epochs: every line is a region. Scales of
# the plain network leave their common start; those that start where the ridge ends move
# little.

# %%
history = model.history_[0]
fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
axes[0].plot(history.epoch, history.train_loss, label="training")
axes[0].plot(history.epoch, history.validation_loss, label="validation slice")
axes[0].set(xlabel="epoch", ylabel="cross-entropy")
axes[0].legend()
way = {}
for ax, (name, one) in zip(
    axes[1:],
    {"from the ridge": model, "plain network": plain_network}.items(),
    strict=True,
):
    scales = np.array(one.history_[0].scales)
    ax.plot(one.history_[0].epoch, scales, color="0.6", linewidth=0.5)
    ax.set(xlabel="epoch", ylabel="heat scale", title=name)
    way[name] = float(np.abs(scales[-1] - one.scales_start_).mean())
fig.savefig(figures / "05_training.png", dpi=110)
print("mean way of a scale:", {name: round(value, 2) for name, value in way.items()})
assert way["from the ridge"] < way["plain network"]

# %% [markdown]
# Held-out scans of people who were not in training:

# %%
for name, one in {"from the ridge": model, "plain network": plain_network}.items():
    hits = float(np.mean(one.predict(X[test]) == y[test]))
    print(f"{name}: accuracy on {len(test)} scans {hits:.2f}")

# %% [markdown]
# ## Folds
#
# `cross_validate` clones the model for every fold, fits everything inside it, and keeps
# all predictions. Two variants go through the same folds: the stages as an order
# (`head="ordinal"`), and the plain network.

# %%
brief["n_epochs"] = 8
models = {
    "LSAP-C": LSAPClassifier(**brief),
    "LSAP-C, ordinal": LSAPClassifier(head="ordinal", **brief),
    "plain network": LSAPClassifier(start="constant", **brief),
}
evaluation = cross_validate(models, cohort, cv=3, random_state=0, baselines=False)
print(score_table(evaluation).to_string(index=False))

# %% [markdown]
# Are probabilities to be believed? On the diagonal, of the scans given 70 %, 70 % are
# right. Probabilities assume that classes have the shares of the training scans, as the
# label of the axis says. And the scales of the plain network on the brain, while they
# are learned:

# %%
axes = plot_calibration(evaluation)
axes.figure.savefig(figures / "05_calibration.png", dpi=110)
views = ["medial left", "medial right", "subcortex"]
figure = plot_scales_at_quarters(evaluation, model="plain network", views=views)
figure.savefig(figures / "05_scales_at_quarters.png", dpi=110)

# %% [markdown]
# ## Store it, and ask it about new people
#
# `brainlsap fit` and `brainlsap predict` do this from the command line. The file holds
# region names, classes and versions; people who do not fit are refused. Where new
# people come from a place in which the disease is rarer, say so: `class_prior` takes
# the share of every class. It changes the probabilities. The predicted class is the
# likeliest where all classes weigh the same, as in the scores above, and stays.

# %%
fit_model(cohort, "model.safetensors", LSAPClassifier(**brief), overwrite=True)
stored = load_model("model.safetensors")
new = make_cohort(6, atlas="desikan82", random_state=9)
table = predict_people(stored, new)
print(table.round(2).head(3).to_string(index=False))
rare = dict(zip(cohort.classes, [0.7, 0.1, 0.1, 0.05, 0.05], strict=True))
elsewhere = predict_people(stored, new, class_prior=rare)
print(elsewhere.round(2).head(3).to_string(index=False))
assert (elsewhere["p_CN"] >= table["p_CN"]).all()
assert elsewhere["predicted"].equals(table["predicted"])

# %% [markdown]
# ## What this does not show
#
# - Few people, few epochs, one start: the order of the variants is not to be believed.
# - A model fitted on everybody has no score of its own; the folds' score is an estimate
#   for models fitted on fewer people.
# - New people were simulated as the old ones were. A new site or scanner is another
#   question, and usually a worse score.
