# %% [markdown]
# # Train, cross-validate and store a model
#
# How does training change the model, how well does the model predict people who were
# not in the training data, and how is the model stored for new people? This page
# examines one fit in detail. It then cross-validates the model, stores it, and predicts
# the stages of new people.
#
# **What comes out.** With 60 simulated people in five stages, LSAP-C has a balanced
# accuracy of 0.78 in cross-validation (chance is 0.20). The plain network, which does
# not start from a ridge model, reaches 0.26 after 8 epochs. During training, the scales
# of the plain network change more than five times as much as the scales of LSAP-C. A
# stored model can take into account that the disease is rarer among new people. The
# probability of being healthy then increases, but the predicted stages do not change.

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
# ## Fit once
#
# The classifier has scikit-learn's interface. Its input is one array with the
# connectome and the features of every scan. `groups` gives the person of each scan. The
# validation scans, which determine when training stops, then come from other people
# than the training scans. `classes` is the order of the stages. `cross_validate` sets
# both automatically.

# %%
cohort = make_cohort(60, atlas="desikan82", random_state=1)
X, y, people = cohort.to_array(), cohort.y, cohort.groups
train, test = make_splits(y, people, n_folds=3, random_state=0)[0]
# Few epochs and one start, so that this runs in seconds. Leave both out in a study.
brief = {"n_epochs": 20, "n_starts": 1, "random_state": 0}
model = LSAPClassifier(classes=cohort.classes, **brief)
model.fit(X[train], y[train], groups=people[train])
print("X", X.shape, "-> scales", model.scales_.shape)
print("error of the kernel at most", model.fit_report_["error_bound"])
settings = model.settings()
print({name: settings[name] for name in ("kernel", "tolerance", "scale_clip")})

# %% [markdown]
# Before the first epoch, a ridge model is fitted to the same scans. The network starts
# from the scales of the ridge model. Half of the ridge model's class scores (logits)
# are added to the output of the network. The weight of the network in the prediction is
# above 0 only if the network improves predictions for people outside its training data.
# With few people the weight is usually 0, as here, and the predictions come from the
# ridge model alone. `start="constant"` gives the plain network. It has no ridge model,
# and all regions have the same initial scale. It is fitted here only to show the
# difference.

# %%
plain_network = LSAPClassifier(start="constant", classes=cohort.classes, **brief).fit(
    X[train], y[train], groups=people[train]
)
print("weight of the network", model.network_weight_)
assert model.network_weight_ < 0.1
assert plain_network.ridge_ is None
assert plain_network.network_weight_ == 1.0
assert set(plain_network.scales_start_) == {1.0}
print("scales that the ridge chose from the data:", model.ridge_.chosen_)
assert len(set(model.scales_start_)) > 1

# %% [markdown]
# `history_` contains losses and scales during training. The left panel shows the
# losses. The loss of the training people decreases, but the loss of the validation
# people increases. The network therefore does not improve predictions for other people,
# and its weight is 0. In the two right panels, each line is the scale of a region. The
# scales of the plain network start from a common value and diverge. The scales that
# start from the ridge model change very little.

# %%
history = model.history_[0]
fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
axes[0].plot(history.epoch, history.train_loss, label="training")
axes[0].plot(history.epoch, history.validation_loss, label="validation")
axes[0].set(xlabel="epoch", ylabel="cross-entropy")
axes[0].legend()
change = {}
fitted_models = {"from the ridge": model, "plain network": plain_network}
for ax, (name, fitted) in zip(axes[1:], fitted_models.items(), strict=True):
    scales = np.array(fitted.history_[0].scales)
    ax.plot(fitted.history_[0].epoch, scales, color="0.6", linewidth=0.5)
    ax.set(xlabel="epoch", ylabel="diffusion scale", title=name)
    change[name] = float(np.abs(scales[-1] - fitted.scales_start_).mean())
fig.savefig(figures / "05_training.png", dpi=110)
for name, mean_change in change.items():
    print(f"{name}: mean change of a scale {mean_change:.2f}")
assert change["plain network"] > 5 * change["from the ridge"]
assert history.train_loss[-1] < history.train_loss[0]
assert history.validation_loss[-1] > history.validation_loss[0]

# %% [markdown]
# Both models are tested on scans of people who were not in training. One split gives an
# imprecise estimate. The cross-validation below is more precise.

# %%
for name, fitted in fitted_models.items():
    accuracy = float(np.mean(fitted.predict(X[test]) == y[test]))
    print(f"{name}: accuracy on {len(test)} scans {accuracy:.2f}")

# %% [markdown]
# ## Cross-validate
#
# `cross_validate` fits a new copy of the model in every fold and stores all
# predictions. The plain network is evaluated on the same folds. Baselines are omitted
# here; tutorial 07 compares models with baselines.

# %%
# Few epochs, one start, 3 folds and no baselines, so that this runs in seconds. Leave
# all four out in a study.
brief["n_epochs"] = 8
models = {
    "LSAP-C": LSAPClassifier(**brief),
    "plain network": LSAPClassifier(start="constant", **brief),
}
evaluation = cross_validate(models, cohort, cv=3, random_state=0, baselines=False)
print(score_table(evaluation).to_string(index=False))
mean = evaluation.scores().groupby("model")["balanced_accuracy"].mean()
assert abs(mean["LSAP-C"] - 0.78) < 0.08
assert abs(mean["plain network"] - 0.26) < 0.08

# %% [markdown]
# Are the probabilities calibrated? On the diagonal, 70 % of the scans with a predicted
# probability of 70 % have the predicted class. The second figure shows the scales of
# the plain network on the brain during training.

# %%
axes = plot_calibration(evaluation)
axes.figure.savefig(figures / "05_calibration.png", dpi=110)
views = ["medial left", "medial right", "subcortex"]
figure = plot_scales_at_quarters(evaluation, model="plain network", views=views)
figure.savefig(figures / "05_scales_at_quarters.png", dpi=110)

# %% [markdown]
# ## Store the model and predict new people
#
# The commands `brainlsap fit` and `brainlsap predict` also store a model and predict
# new people. The file contains region names, classes and versions. Data with other
# regions raise an error.

# %%
# overwrite=True lets this page run twice. Leave it out in a study.
fit_model(cohort, "model.safetensors", LSAPClassifier(**brief), overwrite=True)
stored = load_model("model.safetensors")
new_people = make_cohort(6, atlas="desikan82", random_state=9)
# Both simulations count people from 1: equal IDs belong to different people.
predictions = predict_people(stored, new_people, ids_are_new=True)
print(predictions.drop(columns="remark").round(2).head(3).to_string(index=False))

# %% [markdown]
# If the disease is rarer among the new people than in the study, pass the expected
# share of every class as `class_prior`. These shares change the probabilities. The
# predicted class does not change, because it is chosen with equal weights of all
# classes, as in balanced accuracy.

# %%
expected_shares = [0.7, 0.1, 0.1, 0.05, 0.05]
class_prior = dict(zip(cohort.classes, expected_shares, strict=True))
with_prior = predict_people(
    stored, new_people, class_prior=class_prior, ids_are_new=True
)
print(with_prior.drop(columns="remark").round(2).head(3).to_string(index=False))
assert (with_prior["p_CN"] >= predictions["p_CN"]).all()
assert with_prior["p_CN"].mean() > predictions["p_CN"].mean()
assert with_prior["predicted"].equals(predictions["predicted"])

# %% [markdown]
# ## What this does not show
#
# - Which model is better. There are too few people and epochs. In particular, the plain
#   network needs many more epochs than 8.
# - The accuracy of the stored model. It was fitted to all people, so there are no test
#   people. The cross-validated score is an estimate for models that are fitted to fewer
#   people.
# - The accuracy on other data. The new people were simulated in the same way as the
#   training people. Data from a new site or scanner usually give lower scores.
