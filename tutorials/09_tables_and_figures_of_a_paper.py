# %% [markdown]
# # A paper's tables and figures in one script
#
# Demographics, scores with corrected tests, the regions that several kernels share,
# brain figures: everything from one run, as LaTeX, CSV and PNG.

# %%
from pathlib import Path

from brainlsap import cross_validate, make_cohort, plot_regions, rank_regions
from brainlsap.evaluation import make_models
from brainlsap.report import (
    common_region_table,
    comparison_table,
    demographics_table,
    methods_text,
    plot_confusion,
    score_table,
    table_text,
)

figures, tables = Path("figures"), Path("tables")
figures.mkdir(exist_ok=True)
tables.mkdir(exist_ok=True)


def keep(name, table):
    """Write a table as LaTeX and CSV, and show it."""
    (tables / f"{name}.tex").write_text(table_text(table, "latex"), encoding="utf-8")
    table.to_csv(tables / f"{name}.csv", index=False)
    print(table_text(table, "markdown"))


# %% [markdown]
# ## Demographics

# %%
cohort = make_cohort(40, atlas="desikan82", random_state=0)
keep("demographics", demographics_table(cohort.table, cohort.classes))

# %% [markdown]
# ## Scores
#
# `make_models` gives kernels by the paper's names, and baselines. At the default
# tolerance expansions and exact kernel give the same scores to three digits: all start
# from the same ridge. (Few epochs and one start, so that this takes seconds.)

# %%
brief = {"n_epochs": 10, "n_starts": 1}
names = ["LSAP-C", "LSAP-L", "Exact", "logistic regression"]
models = make_models(names, **brief)
evaluation = cross_validate(models, cohort, cv=3, baselines=False)
keep("scores", score_table(evaluation, ["accuracy", "precision", "f1", "auc"]))
mean = evaluation.scores().groupby("model")["balanced_accuracy"].mean()
assert abs(mean[["LSAP-C", "LSAP-L"]] - mean["Exact"]).max() < 1e-3
keep("comparison", comparison_table(evaluation))

# %% [markdown]
# ## Regions
#
# The regions with the smallest scales, by how many kernels have them in common, with
# the distance of each kernel's scales from those of the exact one.

# %%
keep("regions", common_region_table(evaluation, cohort.atlas, n_smallest=5))

# %% [markdown]
# ## Figures

# %%
maps = {
    name: rank_regions(evaluation, name).set_index("region")["relative_scale"]
    for name in ("LSAP-C", "Exact")
}
views = ["lateral left", "medial left", "subcortex"]
figure = plot_regions(
    maps, cohort.atlas, views=views, colorbar_label="relative heat scale (median = 1)"
)
figure.savefig(figures / "09_scales.png", dpi=110)
axes = plot_confusion(evaluation)
axes.figure.savefig(figures / "09_confusion.png", dpi=110)
print(*sorted(path.name for path in tables.iterdir()))
assert len(list(tables.iterdir())) == 8  # four tables, two formats

# %% [markdown]
# ## Methods
#
# A paragraph with the numbers of this run. A results folder has all of this page as
# files: `brainlsap run` writes tables, figures and methods, and `brainlsap report
# RESULTS --tables FOLDER` every table as LaTeX and Markdown.

# %%
print(methods_text(evaluation)[0])

# %% [markdown]
# ## What this does not show
#
# - That kernels agree is no evidence for their regions: they are ways to compute the
#   same thing.
# - Numbers of simulated people belong in no paper but one about the method.
# - A table of the smallest scales always has rows. Whether they mean something is the
#   question of the tutorial on rankings and chance.
