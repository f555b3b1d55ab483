# %% [markdown]
# # Use the classifier inside scikit-learn
#
# How do `Pipeline`, `cross_val_score` and `GridSearchCV` work with `LSAPClassifier`?
# `LSAPClassifier` is a scikit-learn classifier with one special requirement: every step
# that splits scans needs the person of each scan. Metadata routing passes this
# information to the steps.
#
# **What comes out.** In 30 simulated people with and without AD, LSAP-C has a balanced
# accuracy of 1.00 in all three folds, with and without the logarithm of the
# connectome's weights. Logistic regression reaches 0.96. A grid search selects the
# network that starts from a ridge model (1.00), not the plain network (0.83). The
# simulated disease is strong; expect lower scores for patients.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import sklearn
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedGroupKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from brainlsap import LSAPClassifier, make_cohort
from brainlsap.evaluation import read_features, region_importance

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## Get X, y and people
#
# scikit-learn needs one array. `to_array` concatenates the connectome and the features
# of each scan: the shape is (scans, regions, regions + features). scikit-learn only
# selects scans from this array.

# %%
cohort = make_cohort(30, atlas="desikan82", shares={"CN": 0.5, "AD": 0.5})
X, y, people = cohort.to_array(), cohort.y, cohort.groups
print("X", X.shape, "classes", cohort.classes, "people", len(set(people)))

# %% [markdown]
# ## Score folds of people with cross_val_score
#
# Two steps need the person of each scan: the splitter that makes the folds, and the
# model, which leaves out some training people to determine when training stops. With
# metadata routing, both receive `groups` from `params`. Without routing, scikit-learn
# does not pass `groups` to the model, and `fit` warns that every scan is treated as a
# separate person.
# A number as `cv` divides scans, even if `groups` are passed: always give a splitter
# that keeps groups together.

# %%
sklearn.set_config(enable_metadata_routing=True)
# Few epochs, one start and 3 folds, so that this runs in seconds. In a study leave out
# n_epochs and n_starts, and use 5 folds.
model = LSAPClassifier(n_epochs=6, n_starts=1, random_state=0)
folds = StratifiedGroupKFold(3)
routed = {"groups": people}
scores = cross_val_score(
    model, X, y, cv=folds, params=routed, scoring="balanced_accuracy"
)
for train, test in folds.split(X, y, people):
    assert not set(people[train]) & set(people[test])
print("LSAP-C, fold by fold:", scores.round(2))

# %% [markdown]
# ## Add steps before the classifier in a pipeline
#
# A step before the classifier can be any function of the array. The array has three
# axes. A step for tables of two axes, such as `StandardScaler`, therefore raises an
# error before the classifier. Such a step is not needed, because LSAP standardises the
# features with the means of the training scans. Here one pipeline
# computes the logarithm of the connectome's weights. Another pipeline selects the
# features alone, for a logistic regression as a baseline. Pipelines pass `groups` on to
# the classifier.


# %%
def log_weights(X):
    """Return X with log(1 + w) for the weights of the connectomes."""
    n_rois = X.shape[1]
    return np.concatenate([np.log1p(X[..., :n_rois]), X[..., n_rois:]], axis=2)


# Features are NaN where they were not measured, for example thickness below the cortex.
# C is fixed, so that this runs in seconds. Tune it in a study.
pipelines = {
    "LSAP-C of log weights": make_pipeline(FunctionTransformer(log_weights), model),
    "logistic regression": make_pipeline(
        FunctionTransformer(read_features),
        SimpleImputer(keep_empty_features=True),
        StandardScaler(),
        LogisticRegression(C=0.01, max_iter=1000),
    ),
}
fold_scores = {"LSAP-C": scores}
for name, pipeline in pipelines.items():
    fold_scores[name] = cross_val_score(
        pipeline, X, y, cv=folds, params=routed, scoring="balanced_accuracy"
    )
table = pd.DataFrame(fold_scores).T
mean = table.mean(axis=1)
print(table.assign(mean=mean).round(2).to_string())
assert (mean[["LSAP-C", "LSAP-C of log weights"]] > 0.99).all()
assert abs(mean["logistic regression"] - 0.96) < 0.05

# %% [markdown]
# ## Choose settings with GridSearchCV
#
# The grid has two settings. One is the transformation of the connectome's weights. The
# other is the start of the network: from a ridge model, or from a constant
# (`start="constant"`, the plain network). Pass `groups` to `fit`, so that the search
# uses folds of people. The best score of a search is biased upwards, because it was
# used to choose the settings. For an unbiased estimate, use the whole search as the
# model in an outer `cross_val_score` or in `brainlsap.cross_validate`.

# %%
grid = {"weights": ["weighted", "log"], "start": ["ridge", "constant"]}
search = GridSearchCV(model, grid, cv=folds, scoring="balanced_accuracy")
search.fit(X, y, groups=people)
columns = ["param_weights", "param_start", "mean_test_score", "std_test_score"]
results = pd.DataFrame(search.cv_results_)[columns]
print(results.round(2).to_string(index=False))
print("best:", search.best_params_)
score_of_start = results.groupby("param_start")["mean_test_score"].max()
assert score_of_start["ridge"] > 0.99
assert abs(score_of_start["constant"] - 0.83) < 0.1

# %%
scales = search.best_estimator_.scales_
fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
ax.hist(scales, bins=20, color="0.5")
ax.set(xlabel="learned scale", ylabel="regions", title="Scales of the best model")
fig.savefig(figures / "14_scales.png", dpi=110)

# %% [markdown]
# `cross_val_predict` predicts every scan with a model that was trained without the
# person of this scan. Any metric of scikit-learn can use these predictions.

# %%
predicted = cross_val_predict(model, X, y, cv=folds, params=routed)
print(pd.crosstab(pd.Series(y, name="truth"), pd.Series(predicted, name="predicted")))
assert len(predicted) == len(y)
sklearn.set_config(enable_metadata_routing=False)

# %% [markdown]
# ## Find the regions that the predictions need
#
# `region_importance` permutes all features of a region between people and measures the
# decrease of the balanced accuracy. Use scans that were not in the training data of the
# model. (The function of scikit-learn, `permutation_importance`, permutes single
# columns of a table and cannot group them by region.)

# %%
train, test = next(folds.split(X, y, people))
model.fit(X[train], y[train], groups=people[train])
# Few permutations, so that this runs in seconds. Leave n_repeats out in a study: the
# default is 10.
importance = region_importance(model, X[test], y[test], people[test], n_repeats=2)
importance.index = cohort.region_names
print(importance.nlargest(5, "importance").round(3).to_string())
assert importance["importance"].max() > 0

# %% [markdown]
# ## What this does not show
#
# - Which setting is best. The people are simulated and few, and training is short.
# - The rest of an evaluation: audit, baselines, covariates, rankings and a report. Use
#   `brainlsap.cross_validate` or `run_study` for these.
# - The score of the model that the search selected. This score needs an outer
#   cross-validation.
