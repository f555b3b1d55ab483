# %% [markdown]
# # Keep all visits of a person in one fold
#
# What happens if one visit of a person is in the training data and another in the test
# data? Visits of one person are similar, so a model can recognise the person instead of
# the disease. This page makes this mistake on purpose, in simulated people without any
# disease.
#
# **What comes out.** With folds by person, the balanced accuracy is 0.32, which is
# close to chance (0.20). With folds by scan, it is 0.91, although there is no disease
# in the data. The audit of the package reports an error: 30 people are in both the
# training and the test scans of the first fold. The audit cannot find a person with two
# unrelated names.

# %%
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from brainlsap import cross_validate, make_cohort
from brainlsap.evaluation import audit, make_splits
from brainlsap.exceptions import SplitError

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## Simulate people without a disease
#
# Sixty people have three visits each. With `effect=0`, the stages do not differ. Only
# the people differ from each other.

# %%
cohort = make_cohort(
    60, atlas="desikan82", effect=0.0, visit_shares=(0, 0, 1), random_state=0
)
print(cohort)
print("scans:", cohort.n_scans, "people:", len(set(cohort.groups)))

# %% [markdown]
# ## Score by person and by scan
#
# The model is a logistic regression on the features. The first step of the pipeline
# selects the features from the array of connectomes and features. The same model is
# scored with folds by person and with folds by scan.


# %%
def take_features(X):
    """Return the features of every scan as one row."""
    return X[:, :, X.shape[1] :].reshape(len(X), -1)


# A large C is weak regularisation: the model can recognise people. Tune C in a study.
model = make_pipeline(
    FunctionTransformer(take_features), StandardScaler(), LogisticRegression(C=10)
)
by_person = make_splits(cohort.y, cohort.groups, 5)
by_scan = make_splits(cohort.y, np.arange(cohort.n_scans), 5)
score = {}
for name, splits in (("by person", by_person), ("by scan", by_scan)):
    evaluation = cross_validate(
        {"logistic regression": model},
        cohort,
        splits,
        baselines=False,
        people_may_be_shared=name == "by scan",
    )
    score[name] = evaluation.scores()["balanced_accuracy"].mean()
    print(f"{name}: balanced accuracy {score[name]:.3f}")

# %% [markdown]
# Chance is 0.2. With folds by person, the score differs from chance only because each
# fold has only twelve people. With folds by scan the same model on the same data scores
# far above chance.

# %%
assert abs(score["by person"] - 0.32) < 0.05
assert abs(score["by scan"] - 0.91) < 0.05
fig, ax = plt.subplots(figsize=(4.5, 3.5), layout="constrained")
ax.bar(list(score), list(score.values()), color="0.6")
ax.axhline(0.2, color="k", linestyle=":", label="chance")
ax.set(ylabel="balanced accuracy", ylim=(0, 1), title="No disease in these data")
ax.legend()
fig.savefig(figures / "06_by_person_and_by_scan.png", dpi=110)

# %% [markdown]
# ## See how the package prevents it
#
# `cross_validate` draws folds by person. Folds by scan raise an error unless you set
# `people_may_be_shared=True`, as above. Never set this argument in a study.

# %%
n_shared = {}
for name, splits in (("by person", by_person), ("by scan", by_scan)):
    train, test = splits[0]
    n_shared[name] = len(set(cohort.groups[train]) & set(cohort.groups[test]))
    print(f"{name}: {n_shared[name]} people on both sides of the first fold")
assert n_shared == {"by person": 0, "by scan": 30}

# %%
try:
    cross_validate(model, cohort, by_scan, baselines=False)
    raise AssertionError("cross_validate accepted folds by scan")
except SplitError as error:
    print(str(error)[:160], "...")

# %% [markdown]
# ## Audit the folds
#
# The audit detects people on both sides of a fold, copies of a scan under two names,
# and covariates that alone predict the label. It runs in every cross-validation.
# Correct all errors, and read the notes.

# %%
for name, splits in (("by person", by_person), ("by scan", by_scan)):
    findings = audit(cohort, splits)
    print(name)
    print(findings[["severity", "check"]].drop_duplicates().to_string(index=False))
    errors = set(findings.loc[findings["severity"] == "error", "check"])
    assert errors == ({"person_in_two_folds"} if name == "by scan" else set())

# %% [markdown]
# The audit cannot detect a person who has two unrelated names. Below, each second visit
# gets the name of a new participant. Visits one year apart differ too much to be
# detected as copies, so the audit reports no error. Only the study's list of people can
# show this mistake. (The audit reports names like `sub-0001` and `sub-0001b` as an
# error, because they look like one person.)

# %%
table = cohort.table.copy()
is_second = table["session"] == "ses-M12"
n_people = table["participant"].nunique()
numbers = range(n_people + 1, n_people + 1 + is_second.sum())
table.loc[is_second, "participant"] = [f"sub-{number:04d}" for number in numbers]
renamed = replace(cohort, table=table)
findings = audit(renamed, make_splits(renamed.y, renamed.groups, 5))
print("people in the table:", table["participant"].nunique(), "- in truth:", n_people)
print("errors found:", int((findings["severity"] == "error").sum()))
assert table["participant"].nunique() == 2 * n_people
assert not (findings["severity"] == "error").any()

# %% [markdown]
# ## What this does not show
#
# - The size of the difference between folds by scan and folds by person in other data.
#   This difference increases with the number of visits and features and with the
#   flexibility of the model.
# - Whether folds by person are sufficient. Families, sites and scanners can also be on
#   both sides of a fold; see `join_groups` and `leave_one_out_splits`.
# - Anything about a particular publication.
