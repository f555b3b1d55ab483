# %% [markdown]
# # A paper's tables and figures in one script
#
# Demographics, scores with corrected tests, the regions that several kernels share,
# brain figures: everything from one run, as LaTeX and PNG.

# %%
from pathlib import Path

from brainlsap import cross_validate, make_cohort, plot_regions
from brainlsap.report import (
    classification_table,
    common_region_table,
    demographics_table,
    demographics_tests,
    plot_confusion,
    short_region_table,
    table_text,
)
from brainlsap.study import study_models

figures, tables = Path("figures"), Path("tables")
figures.mkdir(exist_ok=True)
tables.mkdir(exist_ok=True)


def keep(name, table):
    """Write a table as LaTeX and CSV, and show it."""
    for style, ending in (("latex", "tex"), ("csv", "csv")):
        path = tables / f"{name}.{ending}"
        path.write_text(table_text(table, style), encoding="utf-8")
    print(table_text(table, "markdown"))


# %% [markdown]
# ## Demographics

# %%
cohort = make_cohort(36, atlas="desikan82", random_state=0)
keep("demographics", demographics_table(cohort.table, cohort.classes))
print(demographics_tests(cohort.table, cohort.classes).to_string(index=False))

# %% [markdown]
# ## Scores of four kernels
#
# `study_models` gives the four kernels of the paper by their names there.

# %%
brief = {"initial_scale": 1.0, "n_epochs": 20, "n_starts": 1}
models = study_models(
    ["exact", "chebyshev", "hermite", "laguerre"], random_state=0, **brief
)
evaluation = cross_validate(models, cohort, n_folds=3, random_state=0)
keep("classification", classification_table(evaluation))

# %% [markdown]
# ## Regions
#
# The regions with the smallest scales, by how many kernels have them in common, with
# the distance of each kernel's scales from those of the exact one; and the short table.

# %%
scales = evaluation
keep("regions", common_region_table(scales, cohort.atlas, n_smallest=10))
keep("regions_short", short_region_table(scales, cohort.atlas))

# %% [markdown]
# ## Figures

# %%
maps = {}
for name in models:
    values = evaluation.result(name).scales().mean(axis=0)
    maps[name] = dict(zip(cohort.region_names, values, strict=True))
figure = plot_regions(
    maps,
    cohort.atlas,
    views=["outer left", "inner left", "inner right", "outer right", "subcortical"],
    colorbar_label="heat scale",
)
figure.savefig(figures / "09_scales.png", dpi=110)
ax = plot_confusion(evaluation.main)
ax.figure.savefig(figures / "09_confusion.png", dpi=110)
print(*sorted(path.name for path in tables.iterdir()))

# %% [markdown]
# A results folder has all of it as files: `brainlsap run` writes `report/tables` and
# `report/figures`, and a methods paragraph with the numbers of the run.

# %% [markdown]
# ## What this does not show
#
# - That four kernels agree is no evidence for their regions: they are four ways to
#   compute the same thing.
# - Numbers of simulated people belong in no paper but one about the method.
# - A table of the ten smallest scales always has ten rows. Whether they mean something
#   is the question of the tutorial on rankings and chance.
