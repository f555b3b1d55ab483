# %% [markdown]
# # Compare with baselines
#
# A score means little alone. Here LSAP stands beside linear models, a perceptron and a
# fixed heat kernel, and beside controls that tell where a score comes from, all through
# the same folds, with the test that folds allow.

# %%
from pathlib import Path

from brainlsap import make_cohort
from brainlsap.evaluation import compare_models as compare_scores
from brainlsap.report import interval_table, plot_scores, table_text
from brainlsap.study import COMPARED, compare_models

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## What there is
#
# Models and controls by name. `brainlsap compare study --models all` runs them all;
# some need PyTorch Geometric (`pip install "brainlsap[baselines]"`), and are left out
# and named where it is not installed.

# %%
for name, entry in COMPARED.items():
    print("control" if entry.is_control else "model  ", name)

# %% [markdown]
# ## Run a few
#
# `fast=True` fixes settings instead of choosing them inside the folds. For a paper
# leave it out, and give all models the same care.

# %%
cohort = make_cohort(36, atlas="desikan82", random_state=1)
names = ["LSAP-C", "GraphHeat", "MLP", "linear SVM", "covariates only"]
names = [name for name in names if name in COMPARED]
comparison = compare_models(
    cohort, names, n_folds=3, fast=True, n_epochs=25, random_state=0
)
print(table_text(comparison.table, "markdown"))
print(comparison.settings)

# %% [markdown]
# The p-values are of the corrected resampled t-test: folds share their training people,
# so the usual paired t-test finds differences that are not there.

# %%
print(compare_scores(comparison.evaluation).round(3).to_string(index=False))

# %% [markdown]
# Intervals over people answer another question than the s.d. over folds: how the score
# would vary with other people of this kind.

# %%
print(interval_table(comparison.evaluation).iloc[:, :3].to_string(index=False))
ax = plot_scores(comparison.evaluation)
ax.figure.savefig(figures / "07_scores.png", dpi=110)

# %% [markdown]
# ## What this does not show
#
# - With 36 people almost no difference can be shown; no p-value above 0.05 means that
#   models are equal.
# - Settings were fixed and epochs few, which hurts some models more than others.
# - The people are simulated by spread along their networks, which suits models that use
#   a network.
