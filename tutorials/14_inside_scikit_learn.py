# %% [markdown]
# # Inside scikit-learn
#
# `LSAPClassifier` is a scikit-learn classifier: it goes into a `Pipeline`,
# `cross_val_score` and `GridSearchCV` like any other. What to watch: people must not be
# divided between folds, and every step that divides scans must know who they are of.
# That is what metadata routing is for.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import sklearn
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
from brainlsap.evaluation import region_importance

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## X, y and people
#
# scikit-learn wants one array. `to_array` packs each scan's connectome and, beside it,
# its features: shape (scans, regions, regions + features). Indexing rows is all that
# scikit-learn does with it.

# %%
cohort = make_cohort(30, atlas="desikan82", shares={"CN": 0.5, "AD": 0.5})
X, y, people = cohort.to_array(), cohort.y, cohort.groups
print("X", X.shape, "classes", cohort.classes, "people", len(set(people)))

# %% [markdown]
# ## Metadata routing, and cross_val_score
#
# Two steps need to know who the people are: the splitter of the folds, and the model
# itself, which stops training by a slice of its own training scans and keeps that slice
# apart by person. With routing enabled, whatever is in `params` goes to all that ask
# for it, as splitter and model both do by themselves. (Without it scikit-learn keeps
# `groups` from the model, and `fit` warns that it treats every scan as a person.)

# %%
sklearn.set_config(enable_metadata_routing=True)
brief = {"n_epochs": 6, "n_starts": 1, "random_state": 0}
model = LSAPClassifier(**brief)
how = {"cv": StratifiedGroupKFold(3), "params": {"groups": people}}
scores = cross_val_score(model, X, y, **how, scoring="balanced_accuracy")
for train, test in how["cv"].split(X, y, people):
    assert not set(people[train]) & set(people[test])
print("LSAP-C, fold by fold:", scores.round(2))

# %% [markdown]
# ## Pipeline
#
# A step before the classifier is any function of the packed array. Here the weights of
# the connectome become logarithms; features are left alone. A pipeline hands `groups`
# on to the step that asked for them.


# %%
def log_weights(X):
    """Take log(1 + w) of the connectome's part of X."""
    n_rois = X.shape[1]
    return np.concatenate([np.log1p(X[..., :n_rois]), X[..., n_rois:]], axis=2)


def features_only(X):
    """Return the features alone, as a table."""
    return X[..., X.shape[1] :].reshape(len(X), -1)


models = {
    "LSAP-C": model,
    "LSAP-C of log weights": make_pipeline(FunctionTransformer(log_weights), model),
    "logistic regression": make_pipeline(
        FunctionTransformer(features_only),
        StandardScaler(),
        LogisticRegression(C=0.01, max_iter=1000),
    ),
}
found = {
    name: cross_val_score(one, X, y, **how, scoring="balanced_accuracy")
    for name, one in models.items()
}
table = pd.DataFrame(found).T
print(table.assign(mean=table.mean(axis=1)).round(2).to_string())

# %% [markdown]
# ## GridSearchCV
#
# Settings chosen by folds of people: what becomes of the connectome's weights, and
# whether networks start from a ridge or by themselves (`start="constant"`, the plain
# network). What the search found best on these folds is too
# good an estimate of itself: put the whole search into an outer `cross_val_score` (or
# into `brainlsap.cross_validate`) for an honest one.

# %%
grid = {"weights": ["weighted", "log"], "start": ["ridge", "constant"]}
search = GridSearchCV(model, grid, cv=how["cv"], scoring="balanced_accuracy")
search.fit(X, y, groups=people)
columns = ["param_weights", "param_start", "mean_test_score", "std_test_score"]
print(pd.DataFrame(search.cv_results_)[columns].round(2).to_string(index=False))
print("best:", search.best_params_)

# %%
scales = search.best_estimator_.scales_
fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
ax.hist(scales, bins=20, color="0.5")
ax.set(xlabel="learned scale", ylabel="regions", title="Scales of the best model")
fig.savefig(figures / "14_scales.png", dpi=110)

# %% [markdown]
# Predictions for every scan by the fold that did not see its person, for any metric of
# scikit-learn:

# %%
predicted = cross_val_predict(model, X, y, **how)
print(pd.crosstab(pd.Series(y, name="truth"), pd.Series(predicted, name="predicted")))
assert len(predicted) == len(y)
sklearn.set_config(enable_metadata_routing=False)

# %% [markdown]
# ## Which regions the predictions rest on
#
# `sklearn.inspection.permutation_importance` shuffles columns of a table.
# `region_importance` exchanges all features of a region between people, and tells how
# much balanced accuracy is lost; on scans that the model was not fitted to.

# %%
train, test = next(StratifiedGroupKFold(3).split(X, y, people))
model.fit(X[train], y[train], groups=people[train])
lost = region_importance(model, X[test], y[test], people[test], n_repeats=3)
lost.index = cohort.region_names
print(lost.nlargest(5, "importance").round(3).to_string())

# %% [markdown]
# ## What this does not show
#
# - Which setting is best: people are simulated and few, and training was cut short.
# - Audit, baselines on the same folds, confounds removed inside them, scales and a
#   report: `brainlsap.cross_validate` and `run_study` add these to the same classifier.
# - The best score of a search is not the score of the model that it chose.
