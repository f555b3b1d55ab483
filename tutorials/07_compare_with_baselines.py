# %% [markdown]
# # Compare with baselines
#
# A score means little alone. Here LSAP stands beside linear models, a perceptron and a
# fixed heat kernel, and beside controls that show where a score comes from, all through
# the same folds, with the test that folds allow.

# %%
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap import cross_validate, make_cohort, score_table
from brainlsap.evaluation import MODELS, compare_models, make_models
from brainlsap.report import interval_table, plot_scores, table_text

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## What there is
#
# Models, baselines and controls by name. `brainlsap run study --models all` runs them
# all.

# %%
for name, entry in MODELS.items():
    print(f"{entry.role:9}", name)

# %% [markdown]
# ## Run a few
#
# One start and few epochs are for a first look. For a paper leave them out, and give
# all models the same care.

# %%
cohort = make_cohort(36, atlas="desikan82", random_state=1)
names = ["LSAP-C", "GraphHeat", "MLP", "linear SVM", "confounds only"]
models = make_models(names, n_starts=1, n_epochs=12)
evaluation = cross_validate(models, cohort, cv=3, baselines=False)
print(table_text(score_table(evaluation), "markdown"))

# %% [markdown]
# Differences are model minus reference: below 0 the reference, here the first model,
# has the higher score. The p-values are of the corrected resampled t test, by Holm for
# their number: folds share their training people, so the usual paired test finds
# differences that are not there.

# %%
tests = compare_models(evaluation)
print(tests.round(3).to_string(index=False))
assert (tests["p_holm"] >= tests["p_value"]).all()

# %% [markdown]
# Intervals over people answer another question than the s.d. over folds: how the score
# would vary with other people of this kind.

# %%
print(interval_table(evaluation).iloc[:, :3].to_string(index=False))
ax = plot_scores(evaluation)
ax.figure.savefig(figures / "07_scores.png", dpi=110)

# %% [markdown]
# ## Covariates that go with the label: what each way keeps
#
# Patients are often older than controls, and brains change with age. Here AD is 8
# years older than CN, and every region falls with age. In one cohort the disease
# lowers a third of the regions as well; in the other it does nothing. A score of the
# features as read cannot tell the two cohorts apart.
#
# Plain regression (`regress_out="age"`) learns the slope of age from everybody: older
# people are the ill ones, so the slope takes the disease with it. With
# `reference_class="CN"` it is learned from the controls in training and applied to all.
# The result are W-scores: how far a person is from controls of the same age, in their
# residual standard deviations.

# %%
shares = {"CN": 1, "AD": 1}
people = make_cohort(300, atlas="desikan82", shares=shares, effect=0.0, random_state=3)
people = people.select(~people.table["participant"].duplicated().to_numpy())
rng = np.random.default_rng(0)
is_ill = people.y == "AD"
age = rng.normal(68 + 8 * is_ill, 6)
noise = rng.normal(size=people.features.shape)
ageing = noise - 0.1 * (age - 72)[:, None, None]
atrophy = np.zeros_like(ageing)
atrophy[is_ill, ::3] = -0.8
table = people.table.assign(age=age)
cohorts = {
    "ageing alone": replace(people, features=ageing, table=table),
    "ageing and disease": replace(people, features=ageing + atrophy, table=table),
}
ways = {
    "as read": {},
    "plain regression": {"regress_out": "age"},
    "reference class CN": {"regress_out": "age", "reference_class": "CN"},
}
linear = make_models(["logistic regression"])
accuracy = pd.DataFrame(index=[*ways], columns=[*cohorts], dtype=float)
for cohort_name, aged in cohorts.items():
    for way, steps in ways.items():
        result = cross_validate(linear, aged, cv=3, baselines=False, **steps)
        score = result.scores()["balanced_accuracy"].mean()
        accuracy.loc[way, cohort_name] = score
print(accuracy.round(2).to_string())

# %% [markdown]
# Chance is 0.5. As read, age alone is enough. Plain regression is at chance without
# the disease and loses part of it where it is. W-scores keep the disease, yet they
# let some age through: the slope of each region is known from the controls only up to
# an error, this error times 8 years is a difference between classes, and it is the
# same in training and test people. It shrinks with more controls and with ages that
# overlap more. So read the score beside those of plain regression and of age alone,
# which the audit gives.

# %%
ageing, both = accuracy["ageing alone"], accuracy["ageing and disease"]
assert ageing["as read"] > 0.7
assert ageing["reference class CN"] < ageing["as read"] - 0.05
assert both["reference class CN"] > both["plain regression"] + 0.03

# %% [markdown]
# ## What this does not show
#
# - W-scores rest on the slope of age being that of controls in patients too, also at
#   ages that no control has.
# - With 36 people almost no difference can be shown; no p-value above 0.05 means that
#   models are equal.
# - Settings were fixed and epochs few, which hurts some models more than others.
# - The people are simulated by spread along their networks, which suits models that
#   use a network.
