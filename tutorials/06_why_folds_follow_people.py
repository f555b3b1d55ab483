# %% [markdown]
# # Why folds follow people
#
# The commonest mistake of this field, made on purpose. Visits of one person look alike.
# If one is in training and another in the test fold, a model need not know any disease:
# it recognises the person. Here nothing but the person is in the data, and the score by
# scan is high nevertheless.

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
# ## People without a disease
#
# Sixty people, everybody comes three times. `effect=0`: the stages differ in nothing.
# What is left is how people differ from each other.

# %%
cohort = make_cohort(
    60, atlas="desikan82", effect=0.0, visit_shares=(0, 0, 1), random_state=0
)
print(cohort)
print("scans:", cohort.n_scans, "people:", len(set(cohort.groups)))

# %% [markdown]
# ## By person and by scan
#
# A plain linear model on the features. Any scikit-learn classifier would do that takes
# the packed array; the first step takes the features out of it.


# %%
def take_features(X):
    """Return the features of every scan, flat."""
    return X[:, :, X.shape[1] :].reshape(len(X), -1)


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
# Chance is 0.2. By person the model is near it: with twelve people a fold the score
# scatters widely. By scan it is far above: the same model, the same data, and no
# disease at all. How much a published score by scan is inflated depends on its data.

# %%
assert score["by person"] < 0.4
assert score["by scan"] > 0.8
fig, ax = plt.subplots(figsize=(4.5, 3.5), layout="constrained")
ax.bar(list(score), list(score.values()), color="0.6")
ax.axhline(0.2, color="k", linestyle=":", label="chance")
ax.set(ylabel="balanced accuracy", ylim=(0, 1), title="No disease in these data")
ax.legend()
fig.savefig(figures / "06_by_person_and_by_scan.png", dpi=110)

# %% [markdown]
# ## The package does not let it happen by accident
#
# Folds are drawn by person. Folds by scan have to be given, as above, and then have to
# be accepted once more; every output is marked.

# %%
for name, splits in (("by person", by_person), ("by scan", by_scan)):
    train, test = splits[0]
    both_sides = set(cohort.groups[train]) & set(cohort.groups[test])
    assert bool(both_sides) == (name == "by scan")
    print(f"{name}: {len(both_sides)} people on both sides of the first fold")

# %%
try:
    cross_validate(model, cohort, by_scan, baselines=False)
    raise AssertionError("folds by scan were taken without a word")
except SplitError as error:
    print(str(error)[:160], "...")

# %% [markdown]
# ## The audit finds it
#
# The audit looks for people on both sides, for one scan under two ids, and for columns
# that alone predict the label. It runs inside every cross-validation.

# %%
for name, splits in (("by person", by_person), ("by scan", by_scan)):
    found = audit(cohort, splits)
    print(name)
    print(found[["severity", "check"]].drop_duplicates().to_string(index=False))
    errors = set(found.loc[found["severity"] == "error", "check"])
    assert errors == ({"person_in_two_folds"} if name == "by scan" else set())

# %% [markdown]
# What it cannot find is one person under two names, if the scans are not copies and the
# names do not look alike. Each second visit becomes another participant here, with the
# next free number; visits a year apart differ too much to be taken for one scan, and
# the audit has no error. Only the study's own list of people can say that. (Names such
# as `sub-0001` and `sub-0001b` are an error: they look like visits of one person.)

# %%
table = cohort.table.copy()
is_second = table["session"] == "ses-M12"
n_people = table["participant"].nunique()
numbers = range(n_people + 1, n_people + 1 + is_second.sum())
table.loc[is_second, "participant"] = [f"sub-{number:04d}" for number in numbers]
renamed = replace(cohort, table=table)
found = audit(renamed, make_splits(renamed.y, renamed.groups, 5))
print("people now:", table["participant"].nunique(), "- in truth:", n_people)
print("errors found:", int((found["severity"] == "error").sum()))
assert table["participant"].nunique() == 2 * n_people
assert not (found["severity"] == "error").any()

# %% [markdown]
# ## What this does not show
#
# - How large the gap is elsewhere: it grows with visits a person, with features, and
#   with how flexible the model is. The loop above measures it on your data.
# - That folds by person are enough. Families, sites and scanners can be shared, too:
#   `join_groups`, `leave_one_out_splits` and the audit are for these.
# - Anything about a particular publication.
