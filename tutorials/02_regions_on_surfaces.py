# %% [markdown]
# # Rank regions and draw them on the brain
#
# Which regions does a model use without averaging? A fitted model has one diffusion
# scale per region. With a small scale, the model uses the region's own value. With a
# large scale, it averages the region with its neighbours on the connectome. This page
# makes a ranking, a table and brain figures from the scales.
#
# **What comes out.** In 36 simulated people, the disease starts in six known regions.
# These regions have the six smallest scales: the ranking separates them perfectly from
# the other regions (area under the curve, AUC, of 1.00). Over all 82 regions, however,
# the ranks by scale and by loss of uptake agree only weakly (Spearman's rho 0.28). A
# scale does not measure the size of an effect.

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
# Disease starts in six regions of these people (entorhinal cortex, hippocampus and
# amygdala on both sides), spreads along their connectomes, and lowers FDG-PET SUVR. The
# models do not know the six regions. Three folds give three sets of scales. Check the
# variation over folds before you interpret the mean.

# %%
cohort = make_cohort(36, atlas="desikan82", effect=0.4, random_state=0)
ridge = "ridge with a scale per region"
# Few epochs, one start, 3 folds and no baselines, so that this runs in seconds. Leave
# all four out in a study.
models = make_models(["LSAP-C", ridge], n_epochs=12, n_starts=1)
evaluation = cross_validate(models, cohort, cv=3, baselines=False)
print(evaluation.scales.query("share == 1 and start == 'mean'").head(3).to_string())

# %% [markdown]
# ## Rank the regions
#
# `rank_regions` divides the scales of each fold by their median and averages over
# folds. Rank 1 is the smallest scale. `rank_low` and `rank_high` are the range of ranks
# over the folds. The ranking uses the ridge with a scale per region, as reports do,
# because this model always learns a scale for every region. LSAP-C learns such scales
# only if the data support them. With so few people, all scales of LSAP-C started at 0.2
# and changed very little, so their order cannot be interpreted. `moved` is the fraction
# of folds in which a scale changed. Check `moved` before you interpret a ranking.
# `planted` marks the six regions in which the simulated disease starts.

# %%
ranking = rank_regions(evaluation)
assert set(ranking["model"]) == {ridge}
of_network = rank_regions(evaluation, "LSAP-C")
print(f"scales of LSAP-C that moved: {of_network['moved'].mean():.0%}")
assert of_network["moved"].mean() < 0.1
columns = ["region", "relative_scale", "rank", "rank_low", "rank_high"]
smallest = ranking.sort_values("rank")[[*columns, "planted"]].head(8)
print(smallest.round(2).to_string(index=False))
assert smallest["planted"].head(6).all()

# %% [markdown]
# For a paper, `region_table` adds names, coordinates (mm, MNI152) and intervals.
# `table_text` writes a table as Markdown or LaTeX.

# %%
table = region_table(ranking, cohort.atlas, n_regions=6)
print(table_text(table, "markdown"))
Path("regions.tex").write_text(table_text(table, "latex"), encoding="utf-8")

# %% [markdown]
# ## Compare with the truth
#
# Because the six regions are known, the ranking can be scored. The AUC is the
# probability that a region in which disease starts ranks before a region in which it
# does not start. Always compare with a ranking that needs no model. Here this is the
# ranking by `effect`, the correlation of a region's values with the stage. The ranking
# by `effect` identifies the six regions equally well.

# %%
tests = compare_regions(cohort, evaluation, random_state=0)
by_effect = rank_regions(replace(evaluation, region_tests=tests), by="effect")
print(
    f"AUC of the planted regions: {ranking_auc(ranking):.3f} by scale, "
    f"{ranking_auc(by_effect):.3f} by effect"
)
assert ranking_auc(ranking) > 0.995
assert ranking_auc(by_effect) > 0.995
axes = plot_scales(ranking, cohort.atlas, n_regions=15)
axes.figure.savefig(figures / "02_scales.png", dpi=110)

# %% [markdown]
# ## Draw scales and truth on the brain
#
# `plot_regions` draws one value per region *by name*, or several such maps with the
# same colour scale. Scales and SUVR are not comparable, so both are drawn as ranks.
# Rank 1 is the smallest scale (upper map) and the largest loss of SUVR from CN to AD
# (lower map).

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
# The two maps differ outside the six regions. A small scale means that averaging over
# neighbours would remove differences between the stages. It does not mean that the
# region has lost much uptake. The rank correlation measures the agreement over all
# regions:

# %%
agreement = maps["learned scale"].corr(maps["planted loss"], method="spearman")
print(f"Spearman's rho over all regions: {agreement:.2f}")
assert abs(agreement - 0.28) < 0.15

# %% [markdown]
# ## Draw your own values
#
# You can draw any regional values, by default of the atlas `destrieux160`. Region names
# can have the spelling of FreeSurfer, MRtrix or nilearn, and can be short names.
# Regions without a value are grey. An unknown name raises an error that lists the
# nearest names.

# %%
my_values = {
    "lh.G_precuneus": 0.9,
    "ctx_rh_G_precuneus": 0.8,
    "(L) Sub.hip": 0.6,
    "Right-Hippocampus": 0.4,
    "ctx-lh-G_and_S_cingul-Mid-Post": 0.2,
}
figure = plot_regions(
    my_values,
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
# `plot_regions(pd.read_csv("t.csv").set_index("region"))` draws each column of a file
# as a map. To place a brain figure beside other axes, pass a SubFigure. `outline` marks
# and labels regions.

# %%
page = plt.figure(figsize=(7, 2.8))
left, right = page.subfigures(1, 2, width_ratios=[1, 2])
axes = left.subplots()
left.subplots_adjust(left=0.28, bottom=0.2)
axes.hist(ranking["relative_scale"], bins=20)
axes.set(xlabel="relative scale", ylabel="regions")
marked = {"lh_precuneus": "precuneus", "rh_precentral": "precentral gyrus"}
relative = ranking.set_index("region")["relative_scale"]
views = ["lateral", "medial"]
plot_regions(relative, cohort.atlas, views=views, outline=marked, figure=right)
page.savefig(figures / "02_beside_axes.png", dpi=110)

# %% [markdown]
# ## Use your own atlas
#
# An atlas is a folder with a table `regions.tsv`, which needs at least the columns
# `name` and `hemisphere`. Drawing also needs `lh.annot` and `rh.annot` on fsaverage5.
# Here the regions of `desikan82` are merged into lobes, and the relative scales are
# averaged within each lobe.

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
# - Whether small scales mark the first regions of a real disease. The simulated disease
#   is strong and local. Its regions rank first, so the method can detect such a
#   disease.
# - Whether a region differs between the stages. A rank is not a test. Folds share most
#   of their people, so folds agree more than new samples would agree. Tutorial 08 shows
#   a ranking of data without an effect.
# - The size of an effect. A small scale is not a large effect, and a region with a
#   large scale is not necessarily healthy.
# - The precision of the ranks. Colours exaggerate differences. Read the numbers on the
#   colour bar and the ranges of the ranks first.
