# %% [markdown]
# # Rank regions and draw them on the brain
#
# A fitted model has one heat scale for every region. A small scale means that the model
# reads the region by itself; a large one, that it averages the region with its
# neighbours on the network. Here the scales become a ranking, a table and brain
# figures, beside the truth, which is known because the people are simulated.

# %%
from pathlib import Path

import nibabel as nib
import numpy as np
import pandas as pd

from brainlsap import (
    LSAPClassifier,
    cross_validate,
    load_atlas,
    make_cohort,
    plot_regions,
    rank_regions,
    region_table,
)
from brainlsap.evaluation import ranking_auc, ranking_verdict
from brainlsap.exceptions import RegionNameError
from brainlsap.report import plot_scales, table_text

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## Learn the scales
#
# Disease starts in six regions of these people (parahippocampal gyrus, hippocampus and
# amygdala on both sides), spreads along their connectomes, and lowers FDG uptake. The
# model is told nothing of that. Three folds give three sets of scales: their spread is
# the first thing to look at. (Few epochs and one start, so that it takes seconds.)

# %%
cohort = make_cohort(60, feature="fdg", random_state=0)
model = LSAPClassifier(kernel="chebyshev", n_epochs=100, n_starts=1, random_state=0)
evaluation = cross_validate({"LSAP-C": model}, cohort, cv=3, baselines=False)
print("scales of every fold, start and region:", len(evaluation.scales))

# %% [markdown]
# ## Rank
#
# `rank_regions` takes every fold's scales relative to their median, and the mean of
# that over folds; rank 1 is the smallest. `rank_low` to `rank_high` holds 95% of the
# ranks over folds and starts, and `moved` is the part of the folds in which the scale
# left its start: a scale that stayed where it began was not learned.

# %%
ranking = rank_regions(evaluation)
columns = ["region", "rank", "rank_low", "rank_high", "relative_scale", "moved"]
print(ranking.sort_values("rank")[columns].head(8).round(3).to_string(index=False))
print(ranking_verdict(ranking))

# %% [markdown]
# The table for a paper has the paper's short names; it can be written as CSV, Markdown
# or LaTeX.

# %%
table = region_table(ranking, cohort.atlas, n_regions=10)
print(table_text(table, "markdown"))
Path("regions.tex").write_text(table_text(table, "latex"), encoding="utf-8")

# %% [markdown]
# Because the answer is known, the ranking can be marked: the area under the curve is
# the probability that a seed of the disease ranks before a region that is none.

# %%
planted = ranking[ranking["planted"]]
print(planted[["region", "rank"]].to_string(index=False))
print(f"AUC of the seeds by smallest scale: {ranking_auc(ranking):.3f}")
ax = plot_scales(ranking, cohort.atlas, n_regions=15)
ax.figure.savefig(figures / "02_scales.png", dpi=150)

# %% [markdown]
# ## On the brain, beside the truth
#
# `plot_regions` takes one value per region *by name*, or several such maps on one scale
# of colours. Scales have no unit and uptake has, so both are drawn as ranks: rank 1 is
# the smallest scale above, and the largest loss of uptake from CN to AD below.

# %%
truth = cohort.truth.set_index("region")["effect"]
maps = {
    "learned scale": ranking.set_index("region")["rank"],
    "planted loss": truth.rank(),
}
figure = plot_regions(
    maps,
    title="Learned scales and the truth, both as ranks",
    colorbar_label="rank (1: smallest scale, or largest loss)",
)
figure.savefig(figures / "02_scales_and_truth.png", dpi=150)

# %% [markdown]
# The seeds are dark in both. Elsewhere the two need not agree, and mostly do not: a
# small scale says that averaging over neighbours would blur what tells the stages
# apart, not that a region has lost much. How far they agree over all regions is a
# number:

# %%
agreement = maps["learned scale"].corr(maps["planted loss"], method="spearman")
outside = ~cohort.truth.set_index("region")["seed"]
without = maps["learned scale"][outside].corr(
    maps["planted loss"][outside], method="spearman"
)
print(f"Spearman's rho: {agreement:.2f}; without the six seeds: {without:.2f}")

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
figure.savefig(figures / "02_my_map.png", dpi=150)

try:
    plot_regions({"lh_G_precunius": 1.0})
except RegionNameError as error:
    print(error)

# %% [markdown]
# ## An atlas of your own
#
# Nothing is bound to 160 regions. An atlas is a folder with `regions.tsv` (at least
# `name` and `hemisphere`) and, for drawing, `lh.annot` and `rh.annot` on fsaverage5.
# Here the Destrieux regions are joined to lobes, and the learned scales averaged over
# them.

# %%
destrieux = load_atlas("destrieux160")
regions = destrieux.regions
folder = Path("lobes")
folder.mkdir(exist_ok=True)
rows = []
for side, hemisphere in (("lh", "L"), ("rh", "R")):
    on_side = (regions["hemisphere"] == hemisphere) & (regions["structure"] == "cortex")
    lobes = sorted(regions.loc[on_side, "lobe"].unique())
    rows += [{"name": f"{side}_{lobe}", "hemisphere": hemisphere} for lobe in lobes]
    number = {lobe: place for place, lobe in enumerate(lobes, start=1)}
    of_region = regions["lobe"].map(number).fillna(0).astype(int).to_numpy()
    labels = destrieux.vertex_labels(hemisphere)
    joined = np.where(labels >= 0, of_region[labels], 0)
    colours = np.zeros((len(lobes) + 1, 5), dtype=int)
    colours[:, 0] = np.arange(len(lobes) + 1) * 30
    nib.freesurfer.write_annot(
        folder / f"{side}.annot", joined, colours, ["unknown", *lobes]
    )
pd.DataFrame(rows).to_csv(folder / "regions.tsv", sep="\t", index=False)
atlas = load_atlas(folder)
print(atlas, *atlas.names[:3])

# %%
sides = regions["hemisphere"].map({"L": "lh", "R": "rh"})
lobe_of = (sides + "_" + regions["lobe"]).to_numpy()
by_lobe = ranking.set_index(lobe_of)["scale"].groupby(level=0).mean()
by_lobe = by_lobe[by_lobe.index.isin(atlas.names)]
print(by_lobe.round(2).to_string())
views = ["lateral left", "medial left", "medial right", "lateral right"]
figure = plot_regions(by_lobe, atlas, views=views, colorbar_label="mean heat scale")
figure.savefig(figures / "02_lobes.png", dpi=150)

# %% [markdown]
# ## What this does not show
#
# - The disease was planted, and it was planted as something local. That the seeds come
#   first shows that the method can find such a thing; it is no evidence that small
#   scales mark the first regions of a real disease.
# - A rank is not a test. The folds share most of their people, so they agree more than
#   new samples would; nothing here says how a ranking looks where there is no effect.
# - A small scale is not a large effect, and a large one does not mean healthy.
# - A figure makes differences look large: read the numbers on the colour bar, and the
#   spread over folds in the table, before its colours.
