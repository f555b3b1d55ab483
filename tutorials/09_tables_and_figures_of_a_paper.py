# %% [markdown]
# # Write a paper's tables and figures
#
# How can one script produce all tables and figures of a paper, so that they are always
# up to date? This page writes demographics, scores with corrected tests, regions that
# have small scales in several models, brain figures and a methods paragraph, as LaTeX,
# CSV and PNG.
#
# **What comes out.** The script writes four tables in two formats and two figures, for
# 74 scans of 40 simulated people. The accuracy is 0.54 for LSAP-C, 0.47 for logistic
# regression and 0.72 for the ridge with a scale per region. Three folds show no
# difference between these models (smallest Holm-corrected p 0.32). Three ways to
# compute the heat kernel give the same scores to three digits.

# %%
from dataclasses import replace
from pathlib import Path

import pandas as pd

from brainlsap import cross_validate, make_cohort, plot_regions, rank_regions
from brainlsap.evaluation import compare_models, make_models
from brainlsap.report import (
    common_region_table,
    comparison_table,
    demographics_table,
    list_methods_paragraphs,
    plot_confusion,
    score_table,
    table_text,
)

figures, tables = Path("figures"), Path("tables")
figures.mkdir(exist_ok=True)
tables.mkdir(exist_ok=True)


def write_table(name: str, table: pd.DataFrame) -> None:
    """Write a table as LaTeX and CSV, and show it."""
    (tables / f"{name}.tex").write_text(table_text(table, "latex"), encoding="utf-8")
    table.to_csv(tables / f"{name}.csv", index=False)
    print(table_text(table, "markdown"))


# %% [markdown]
# ## Describe the people
#
# The first table of a paper describes the participants. Check whether covariates differ
# between the classes. Here the sites differ by chance (p = 0.008). In a real study,
# report such a difference in the paper.

# %%
cohort = make_cohort(40, atlas="desikan82", random_state=0)
demographics = demographics_table(cohort.table, cohort.classes)
write_table("demographics", demographics)
assert cohort.n_scans == 74
assert (demographics["p"] == "0.008").sum() == 1

# %% [markdown]
# ## Score the models
#
# `make_models` creates models from their names in papers: LSAP with three ways to
# compute the heat kernel (LSAP-C, LSAP-L, Exact), baselines and controls. Equal scores
# of LSAP-C, LSAP-L and Exact are expected, because LSAP-C and LSAP-L approximate the
# kernel that Exact computes.

# %%
# Few epochs, one start, 3 folds and one baseline, so that this runs in seconds. In a
# study leave out n_epochs, n_starts, cv and baselines.
ridge = "ridge with a scale per region"
names = ["LSAP-C", "LSAP-L", "Exact", "logistic regression", ridge]
models = make_models(names, n_epochs=10, n_starts=1)
evaluation = cross_validate(models, cohort, cv=3, baselines=False)
write_table("scores", score_table(evaluation, ["accuracy", "precision", "f1", "auc"]))
scores = evaluation.scores().groupby("model")[["balanced_accuracy", "accuracy"]].mean()
kernels = scores.loc[["LSAP-C", "LSAP-L"], "balanced_accuracy"]
assert (kernels - scores.loc["Exact", "balanced_accuracy"]).abs().max() < 1e-3
assert abs(scores.loc["LSAP-C", "accuracy"] - 0.54) < 0.08
assert abs(scores.loc["logistic regression", "accuracy"] - 0.47) < 0.02
assert abs(scores.loc[ridge, "accuracy"] - 0.72) < 0.08

# %% [markdown]
# Differences between scores are tested by the corrected resampled t test (see tutorial
# 07). Their confidence intervals are wide because there are only three folds, so the
# result is *unclear*.

# %%
write_table("comparison", comparison_table(evaluation))
assert compare_models(evaluation)["p_holm"].min() > 0.1

# %% [markdown]
# ## List the regions
#
# For each region, this table counts the kernels in which the region is among those with
# the smallest scales. Check the values before you publish the table. Here all scales
# still have their initial value of 0.2, because training with so few people did not
# change them. The table contains regions nevertheless.

# %%
scales_of_kernels = evaluation.scales.query("model != @ridge")
kernels_only = replace(evaluation, scales=scales_of_kernels)
regions = common_region_table(kernels_only, cohort.atlas, n_smallest=5)
write_table("regions", regions)
ranking_of_network = rank_regions(evaluation, "LSAP-C")
assert ranking_of_network["moved"].mean() < 0.1

# %% [markdown]
# ## Draw the figures
#
# The ridge with a scale per region always learns a scale for every region. The figure
# compares the scales of this ridge model with those of LSAP-C. Both maps use the same
# colour scale, so the uniform map of LSAP-C shows that its scales did not change.

# %%
maps = {
    name: rank_regions(evaluation, name).set_index("region")["relative_scale"]
    for name in (ridge, "LSAP-C")
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
# ## Write the methods
#
# `list_methods_paragraphs` writes paragraphs with the numbers of this run; the first
# paragraph is printed here. `brainlsap run` writes all these files to the results
# folder, and `brainlsap report RESULTS --tables FOLDER` writes every table as LaTeX and
# Markdown.

# %%
print(list_methods_paragraphs(evaluation)[0])

# %% [markdown]
# ## What this does not show
#
# - Whether regions that are common to several kernels are correct. All kernels compute
#   the same function.
# - Which regions differ. A table of the smallest scales always contains regions;
#   tutorial 08 tests regions.
# - Results for a real disease. These people are simulated.
