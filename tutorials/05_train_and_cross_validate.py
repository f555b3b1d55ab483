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
# stops training shares nobody with the rest.

# %%
cohort = make_cohort(36, atlas="desikan82", random_state=0)
X, y, people = cohort.to_array(), cohort.y, cohort.groups
train, test = make_splits(y, people, n_folds=3, random_state=0)[0]
model = LSAPClassifier(initial_scale=1.0, n_epochs=40, n_starts=1, random_state=0)
model.fit(X[train], y[train], groups=people[train])
print("X", X.shape, "-> scales", model.scales_.shape)
print("error of the kernel at most", model.fit_report_["error_bound"])
settings = model.settings()
print({name: settings[name] for name in ("kernel", "tolerance", "scale_clip")})

# %% [markdown]
# The history holds losses and scales at some epochs: every line is a region.

# %%
history = model.history_[0]
fig, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
axes[0].plot(history.epoch, history.train_loss, label="training")
axes[0].plot(history.epoch, history.validation_loss, label="validation slice")
axes[0].set(xlabel="epoch", ylabel="cross-entropy")
axes[0].legend()
axes[1].plot(history.epoch, np.array(history.scales), color="0.6", linewidth=0.5)
axes[1].set(xlabel="epoch", ylabel="heat scale")
fig.savefig(figures / "05_training.png", dpi=110)

# %% [markdown]
# Held-out scans of people who were not in training:

# %%
hits = float(np.mean(model.predict(X[test]) == y[test]))
print(f"accuracy on {len(test)} scans: {hits:.2f}; classes {list(model.classes_)}")

# %% [markdown]
# ## Folds
#
# `cross_validate` clones the model for every fold, fits everything inside it, and keeps
# all predictions. Two variants go through the same folds: the stages as an order
# (`head="ordinal"`), and one scale for the whole brain.

# %%
brief = {"initial_scale": 1.0, "n_epochs": 20, "n_starts": 1, "random_state": 0}
models = {
    "LSAP-C": LSAPClassifier(**brief),
    "LSAP-C, ordinal": LSAPClassifier(head="ordinal", **brief),
    "LSAP-C, one scale": LSAPClassifier(scale_mode="global", **brief),
}
evaluation = cross_validate(models, cohort, cv=3, random_state=0, baselines=False)
print(score_table(evaluation).to_string(index=False))

# %% [markdown]
# Are probabilities to be believed? On the diagonal, of the scans given 70 %, 70 % are
# right. And the scales on the brain, while they are learned:

# %%
axes = plot_calibration(evaluation)
axes.figure.savefig(figures / "05_calibration.png", dpi=110)
views = ["medial left", "medial right", "subcortex"]
figure = plot_scales_at_quarters(evaluation, model="LSAP-C", views=views)
figure.savefig(figures / "05_scales_at_quarters.png", dpi=110)

# %% [markdown]
# ## Store it, and ask it about new people
#
# `brainlsap fit` and `brainlsap predict` do this from the command line. The file holds
# region names, classes and versions; people who do not fit are refused.

# %%
fit_model(cohort, "model.safetensors", LSAPClassifier(**brief), overwrite=True)
stored = load_model("model.safetensors")
new = make_cohort(6, atlas="desikan82", random_state=9)
table = predict_people(stored, new)
print(table.round(2).head(3).to_string(index=False))

# %% [markdown]
# ## What this does not show
#
# - Few people, few epochs, one start: the order of the variants is not to be believed.
# - A model fitted on everybody has no score of its own; the folds' score is an estimate
#   for models fitted on fewer people.
# - New people were simulated as the old ones were. A new site or scanner is another
#   question, and usually a worse score.
