# %% [markdown]
# # Compare a model with baselines
#
# Is a model better than simpler models, and does its score come from the disease or
# from a covariate, for example age? This page evaluates LSAP-C, baselines and a control
# on the same folds and tests the differences. It then shows three ways to treat a
# covariate.
#
# **What comes out.** In 36 simulated people, LSAP-C has a balanced accuracy of 0.56,
# and the best of three baselines has 0.34. However, no difference is significant in the
# corrected test, because three folds are too few. In a second simulation, people with
# Alzheimer's disease (AD) are 8 years older than healthy people (CN). Age alone then
# gives a balanced accuracy of 0.77 without any disease. If age is regressed out over
# all people, this score decreases to chance (0.53). In a cohort with a true disease,
# however, the same regression decreases the score from 0.96 to 0.82. If the regression
# is fitted to controls only, the score is 0.98 with a disease and 0.61 without one, so
# a part of the age effect remains.

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
# ## List the models
#
# Models, baselines and controls have names. A control model is a model that should
# fail, or a model without one part of the data. `brainlsap run study --models all` runs
# all models.

# %%
for name, entry in MODELS.items():
    print(f"{entry.role:9}", name)

# %% [markdown]
# ## Run a few models
#
# All models use the same folds. *confounds only* uses age, sex and site. A score above
# chance would mean that these variables are related to the diagnosis.

# %%
# Few epochs, one start, 3 folds and a choice of baselines, so that this runs in
# seconds. In a study leave out n_starts, n_epochs, cv and baselines.
cohort = make_cohort(36, atlas="desikan82", random_state=1)
names = ["LSAP-C", "GraphHeat", "MLP", "linear SVM", "confounds only"]
models = make_models(names, n_starts=1, n_epochs=12)
evaluation = cross_validate(models, cohort, cv=3, baselines=False)
print(table_text(score_table(evaluation), "markdown"))
mean = evaluation.scores().groupby("model")["balanced_accuracy"].mean()
assert abs(mean["LSAP-C"] - 0.56) < 0.08
assert abs(mean[["GraphHeat", "MLP", "linear SVM"]].max() - 0.34) < 0.08

# %% [markdown]
# ## Test the differences
#
# A difference is the score of a model minus the score of the reference model. The
# reference is the first model, LSAP-C, so a negative difference means that LSAP-C has
# the higher score. Folds share training people, so the ordinary paired t test reports
# too many false differences. The table shows the corrected resampled t test, with
# Holm's correction for the number of tests. The column `better` is *unclear* for all
# models here.

# %%
tests = compare_models(evaluation)
print(tests.round(3).to_string(index=False))
assert (tests["p_holm"] >= tests["p_value"]).all()
assert tests["p_holm"].min() > 0.05
assert (tests["better"] == "unclear").all()

# %% [markdown]
# Confidence intervals over people and the standard deviation over folds answer
# different questions. The intervals show how much the score would vary with other
# people from the same population. The standard deviation shows how much the score
# varies between the folds of this study.

# %%
print(interval_table(evaluation).iloc[:, :3].to_string(index=False))
ax = plot_scores(evaluation)
ax.figure.savefig(figures / "07_scores.png", dpi=110)

# %% [markdown]
# ## Treat a covariate that differs between the classes
#
# Patients are often older than controls, and brains change with age. Here people with
# AD are 8 years older than people with CN, and the values of all regions decrease with
# age. In one cohort, the disease also decreases the values of a third of the regions.
# In the other cohort, it has no effect. A good adjustment for age gives chance (0.5) in
# the second cohort and a high score in the first.
#
# - *as read*: the features are not adjusted for age.
# - *plain regression* (`regress_out="age"`): the slope of age is estimated from all
#   training people. Because the patients are older, the slope includes a part of the
#   disease effect, which is then removed.
# - *reference class CN* (`reference_class="CN"` in addition): the slope is estimated
#   from the training controls and applied to all people. The results are W-scores: the
#   distance from controls of the same age, in residual standard deviations.

# %%
shares = {"CN": 1, "AD": 1}
people = make_cohort(
    300,
    atlas="desikan82",
    shares=shares,
    visit_shares=(1,),
    effect=0.0,
    random_state=3,
)
rng = np.random.default_rng(0)
is_ill = people.y == "AD"
age = rng.normal(68 + 8 * is_ill, 6)
noise = rng.normal(size=people.features.shape)
aged_features = noise - 0.1 * (age - 72)[:, None, None]
atrophy = np.zeros_like(aged_features)
atrophy[is_ill, ::3] = -0.8
table = people.table.assign(age=age)
cohorts = {
    "age alone": replace(people, features=aged_features, table=table),
    "age and disease": replace(people, features=aged_features + atrophy, table=table),
}
treatments = {
    "as read": {},
    "plain regression": {"regress_out": "age"},
    "reference class CN": {"regress_out": "age", "reference_class": "CN"},
}
linear_model = make_models(["logistic regression"])
accuracy = pd.DataFrame(index=[*treatments], columns=[*cohorts], dtype=float)
for cohort_name, simulated in cohorts.items():
    for treatment, settings in treatments.items():
        result = cross_validate(
            linear_model, simulated, cv=3, baselines=False, **settings
        )
        mean_score = result.scores()["balanced_accuracy"].mean()
        accuracy.loc[treatment, cohort_name] = mean_score
print(accuracy.round(2).to_string())

# %% [markdown]
# Without adjustment, age alone gives a high score. Plain regression gives chance in the
# cohort without a disease effect, and removes a part of the disease effect in the other
# cohort. W-scores preserve the disease effect, but part of the age effect remains. The
# reason is that the slopes are estimated from few controls. If a slope is wrong, the
# classes still differ by the error of the slope times 8 years. This difference is
# smaller with more controls, and with ages that overlap more. Report W-scores together
# with the scores of plain regression and of age alone. The audit gives the score of age
# alone.

# %%
expected = pd.DataFrame(
    {"age alone": [0.77, 0.53, 0.61], "age and disease": [0.96, 0.82, 0.98]},
    index=[*treatments],
)
assert (accuracy - expected).abs().max(axis=None) < 0.05

# %% [markdown]
# ## What this does not show
#
# - Whether the models are equal. With 36 people, only very large differences can be
#   significant, and a p-value above 0.05 does not mean equality.
# - The best possible score of each model. Training is short. Short training lowers the
#   scores of some models more than the scores of others.
# - Whether W-scores are valid for your patients. They assume that age has the same
#   effect in patients and controls, also at ages outside the range of the controls.
# - A fair comparison for real data. The simulated disease spreads along connectomes,
#   which favours models that use connectomes.
