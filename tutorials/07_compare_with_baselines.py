# %% [markdown]
# # Compare with baselines
#
# A score means little alone. Here LSAP stands beside linear models, a perceptron and a
# fixed heat kernel, and beside controls that show where a score comes from, all through
# the same folds, with the test that folds allow.

# %%
from pathlib import Path

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
# ## What this does not show
#
# - With 36 people almost no difference can be shown; no p-value above 0.05 means that
#   models are equal.
# - Settings were fixed and epochs few, which hurts some models more than others.
# - The people are simulated by spread along their networks, which suits models that use
#   a network.
