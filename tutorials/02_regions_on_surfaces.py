# %% [markdown]
# # Rank regions and draw them on the brain
#
# A fitted model has one heat scale for every region. A small scale means that the model
# reads the region by itself; a large one, that it averages the region with its
# neighbours on the network. Here the scales become a ranking, a table and brain
# figures, beside the ground truth, which is known because the people are simulated.

# %%
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import nibabel as nib
import numpy as np
import pandas as pd

from brainlsap import (
    compare_regions,
    cross_validate,
    load_atlas,
    make_cohort,
    plot_regions,
    rank_regions,
    region_table,
)
from brainlsap.evaluation import make_models, ranking_auc
from brainlsap.exceptions import RegionNameError
from brainlsap.report import plot_scales, table_text

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## Learn the scales
#
# Disease starts in six regions of these people (parahippocampal gyrus, hippocampus and
# amygdala on both sides), spreads along their connectomes, and lowers FDG-PET SUVR. The
# models do not know that. Three folds give three sets of scales: their spread is the
# first thing to look at. (Few epochs and one start, so that it takes seconds.)

# %%
cohort = make_cohort(36, feature="fdg", effect=0.4, random_state=0)
ridge = "ridge with a scale per region"
models = make_models(["LSAP-C", ridge], n_epochs=12, n_starts=1)
evaluation = cross_validate(models, cohort, cv=3, baselines=False)
print(evaluation.scales.query("share == 1 and start == 'mean'").head(3).to_string())

# %% [markdown]
# ## Rank
#
# `rank_regions` takes each fold's scales relative to their median, and the mean over
# folds; rank 1 is the smallest. `rank_low` and `rank_high` are what the single fits
# say. It ranks by the ridge with a scale per region, as reports do: that always learns
# one for every region. LSAP-C starts from the scales of its ridge only where the data
# ask for the network. With so few people they do not: its scales began at 0.2
# everywhere, and hardly left it (`moved` is the share of folds in which one did), so
# that their order means nothing.

# %%
ranking = rank_regions(evaluation)
assert set(ranking["model"]) == {ridge}
of_network = rank_regions(evaluation, "LSAP-C")
print(f"scales of LSAP-C that moved: {of_network['moved'].mean():.0%}")
assert of_network["moved"].mean() < 0.1
columns = ["region", "relative_scale", "rank", "rank_low", "rank_high"]
first = ranking.sort_values("rank")[[*columns, "planted"]].head(8)
print(first.round(2).to_string(index=False))

# %% [markdown]
# The table for a paper has the paper's short names; it can be written as CSV, Markdown
# or LaTeX.

# %%
table = region_table(ranking, cohort.atlas, n_regions=6)
print(table_text(table, "markdown"))
Path("regions.tex").write_text(table_text(table, "latex"), encoding="utf-8")

# %% [markdown]
# Because the truth is known, the ranking can be scored: the area under the curve is the
# probability that a region in which disease starts ranks before one in which it does
# not. A scale is a property of the model. How much classes differ in a region (the
# correlation with the stage, `effect`) needs no model, and finds these regions as well.

# %%
tests = compare_regions(cohort, evaluation, random_state=0)
by_effect = rank_regions(replace(evaluation, region_tests=tests), by="effect")
print(
    f"AUC of the planted regions: {ranking_auc(ranking):.3f} by scale, "
    f"{ranking_auc(by_effect):.3f} by effect"
)
assert ranking_auc(ranking) > 0.95
assert ranking_auc(by_effect) > 0.95
axes = plot_scales(ranking, cohort.atlas, n_regions=15)
axes.figure.savefig(figures / "02_scales.png", dpi=110)

# %% [markdown]
# ## On the brain, beside the ground truth
#
# `plot_regions` takes one value per region *by name*, or several such maps on one scale
# of colours. Scales have no unit and SUVR has, so both are drawn as ranks: rank 1 is
# the smallest scale above, and the largest loss of SUVR from CN to AD below.

# %%
truth = cohort.truth.set_index("region")["effect"]
maps = {
    "learned scale": ranking.set_index("region")["rank"],
    "planted loss": truth.rank(),
}
figure = plot_regions(
    maps, cohort.atlas, colorbar_label="rank (1: smallest scale, or largest loss)"
)
figure.savefig(figures / "02_scales_and_truth.png", dpi=110)

# %% [markdown]
# The two need not agree outside the planted regions: a small scale says that averaging
# over neighbours would blur what separates the stages, not that a region has lost much.
# How far they agree over all regions is a number:

# %%
agreement = maps["learned scale"].corr(maps["planted loss"], method="spearman")
print(f"Spearman's rho over all regions: {agreement:.2f}")

# %% [markdown]
# ## A map of your own, by name
#
# Any values can be drawn. Names may be in the spelling of any tool, or the paper's
# short names; regions without a value are grey. A name that is unknown is an error that
# lists the nearest ones, rather than a region that is missing in the figure.

# %%
mine = {
    "lh.G_precuneus": 0.9,
    "ctx_rh_G_precuneus": 0.8,
    "(L) Sub.hip": 0.6,
    "Right-Hippocampus": 0.4,
    "ctx-lh-G_and_S_cingul-Mid-Post": 0.2,
}
figure = plot_regions(
    mine,
    views=["medial left", "medial right", "subcortex"],
    cmap="plasma",
    vmin=0,
    vmax=1,
    colorbar_label="my measure",
)
figure.savefig(figures / "02_my_map.png", dpi=110)

try:
    plot_regions({"lh_G_precunius": 1.0})
    raise AssertionError("a region of an unknown name was drawn")
except RegionNameError as error:
    print(error)

# %% [markdown]
# `plot_regions(pd.read_csv("t.csv").set_index("region"))` draws the values of a file,
# each column as a map. Beside other axes a brain stands in a SubFigure, as it fills
# several axes; `outline` marks regions, and labels them.

# %%
page = plt.figure(figsize=(7, 2.8))
left, right = page.subfigures(1, 2, width_ratios=[1, 2])
axes = left.subplots()
left.subplots_adjust(left=0.28, bottom=0.2)
axes.hist(ranking["relative_scale"], bins=20)
axes.set(xlabel="relative scale", ylabel="regions")
marked = {"lh_G_precuneus": "precuneus", "rh_S_central": "central sulcus"}
relative = ranking.set_index("region")["relative_scale"]
views = ["lateral", "medial"]
plot_regions(relative, cohort.atlas, views=views, outline=marked, figure=right)
page.savefig(figures / "02_beside_axes.png", dpi=110)

# %% [markdown]
# ## An atlas of your own
#
# Nothing is bound to 160 regions. An atlas is a folder with `regions.tsv` (at least
# `name` and `hemisphere`) and, for drawing, `lh.annot` and `rh.annot` on fsaverage5.
# Here the Destrieux regions are joined to lobes, and the relative scales averaged over
# them.

# %%
regions = cohort.atlas.regions
folder = Path("lobes")
folder.mkdir(exist_ok=True)
rows = []
for side, hemisphere in (("lh", "L"), ("rh", "R")):
    on_side = (regions["hemisphere"] == hemisphere) & (regions["structure"] == "cortex")
    lobes = sorted(regions.loc[on_side, "lobe"].unique())
    rows += [{"name": f"{side}_{lobe}", "hemisphere": hemisphere} for lobe in lobes]
    number = {lobe: place for place, lobe in enumerate(lobes, start=1)}
    of_region = regions["lobe"].map(number).fillna(0).astype(int).to_numpy()
    labels = cohort.atlas.vertex_labels(hemisphere)
    joined = np.where(labels >= 0, of_region[labels], 0)
    colours = np.zeros((len(lobes) + 1, 5), dtype=int)
    colours[:, 0] = np.arange(len(lobes) + 1) * 30
    nib.freesurfer.write_annot(
        folder / f"{side}.annot", joined, colours, ["unknown", *lobes]
    )
pd.DataFrame(rows).to_csv(folder / "regions.tsv", sep="\t", index=False)
atlas = load_atlas(folder)
print(len(atlas), "regions:", *atlas.names[:3], "...")

# %%
sides = regions["hemisphere"].map({"L": "lh", "R": "rh"})
lobe_of = (sides + "_" + regions["lobe"]).to_numpy()
by_lobe = ranking.set_index(lobe_of)["relative_scale"].groupby(level=0).mean()
by_lobe = by_lobe[by_lobe.index.isin(atlas.names)]
views = ["lateral left", "medial left", "medial right", "lateral right"]
figure = plot_regions(by_lobe, atlas, views=views, colorbar_label="relative scale")
figure.savefig(figures / "02_lobes.png", dpi=110)

# %% [markdown]
# ## What this does not show
#
# - The disease was planted, and it was planted as something local. That its regions
#   rank early shows that the method can find such a thing; it is no evidence that small
#   scales mark the first regions of a real disease.
# - A rank is not a test. The folds share most of their people, so they agree more than
#   new samples would; nothing here says how a ranking looks where there is no effect.
# - A small scale is not a large effect, and a large one does not mean healthy.
# - A figure makes differences look large: read the numbers on the colour bar, and the
#   interval of the ranks in the table, before its colours.
