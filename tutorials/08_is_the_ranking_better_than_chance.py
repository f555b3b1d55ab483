# %% [markdown]
# # Test which regions differ
#
# In which regions do the classes differ, and how do we know that a list of regions is
# better than chance? Every model gives a list of regions, even if the classes do not
# differ. This page tests the regions of two simulated cohorts: one with a disease that
# starts in six known regions, and one without a disease.
#
# **What comes out.** With the disease, the classes differ in 6 of 82 regions
# (family-wise p < 0.05), and these are the six known regions. Without the disease, no
# region differs (smallest p 0.73). Nevertheless, the list of regions by scale looks
# plausible in this cohort: the left hippocampus is first.

# %%
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt

from brainlsap import compare_regions, cross_validate, make_cohort, rank_regions
from brainlsap.evaluation import (
    add_region_tests,
    agreement_table,
    confound_table,
    make_models,
    ranking_auc,
    ranking_verdict,
    region_properties,
    spin_test,
)

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## Rank and test
#
# Three questions about a region are easily confused:
#
# - Do the classes differ in the region? (`effect`)
# - Does the region differ more than the regions connected to it? (`contrast`)
# - Does a model use the region's own value? (the scale)
#
# The first two questions have tests that need no model. The third question describes a
# model and has no test. The ranking below uses the scales of the ridge with a scale per
# region, as in reports.

# %%
# 3 folds and no baselines, so that this runs in seconds. Leave both out in a study.
models = make_models("ridge with a scale per region")
with_disease = make_cohort(30, atlas="desikan82", effect=0.4, random_state=0)
without = make_cohort(30, atlas="desikan82", effect=0.0, random_state=0)

rankings, evaluations = {}, {}
for name, cohort in (("disease", with_disease), ("no disease", without)):
    evaluation = cross_validate(models, cohort, cv=3, baselines=False)
    regions = compare_regions(cohort, evaluation, random_state=0)
    evaluations[name] = replace(evaluation, region_tests=regions)
    rankings[name] = add_region_tests(rank_regions(evaluation), regions)
    assert rankings[name]["rank"].notna().all()
    top_regions = rankings[name].sort_values("rank").head(6)
    print(f"{name}: {', '.join(top_regions['region'])}")
    print("  " + ranking_verdict(rankings[name]))
no_disease = rankings["no disease"].set_index("region")
assert no_disease.loc["Left-Hippocampus", "rank"] <= 3

# %% [markdown]
# Both lists of six regions look plausible. The permutation test distinguishes them. It
# assigns the labels to other people at random 200 times. `effect` is the correlation of
# a region's values with the stage number (0, 1, ...). `contrast` is the smaller of two
# effects: the effect of the region, and the effect of the region minus the mean of the
# connected regions. Both p-values are corrected for the number of regions.

# %%
regions = evaluations["disease"].region_tests
columns = ["region", "effect", "p_effect", "contrast", "p_contrast"]
columns += ["relative_scale", "planted"]
print(regions.nlargest(8, "contrast_z")[columns].round(3).to_string(index=False))
assert set(regions.query("p_effect < 0.05")["region"]) == set(
    regions.query("planted")["region"]
)
assert (regions["p_effect"] < 0.05).sum() == 6
smallest_p = no_disease["p_effect"].min()
print(f"without disease: smallest p {smallest_p:.2f}")
assert abs(smallest_p - 0.73) < 0.1
assert no_disease["p_contrast"].min() > 0.05

# %% [markdown]
# Because the truth is known, rankings can be scored. The AUC is the probability that a
# region in which the disease starts ranks before a region in which it does not start.
# Here it is 1 for all three rankings, because the simulated disease is strong.

# %%
for by in ("scale", "effect", "contrast"):
    auc = ranking_auc(rank_regions(evaluations["disease"], by=by))
    print(f"AUC of the planted regions, ranked by {by}: {auc:.2f}")
    assert auc > 0.9

# %% [markdown]
# Check the values of the scales, too, not only their order. With the disease, the
# smallest scale is 0.79 times the median scale. Without the disease, all scales are
# within 1 % of the median, so their order cannot be interpreted. A list of regions
# without their scales does not show how small the differences are.

# %%
relative = {name: table["relative_scale"] for name, table in rankings.items()}
assert abs(relative["disease"].min() - 0.79) < 0.1
assert (relative["no disease"] - 1).abs().max() < 0.01
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, table in rankings.items():
    ax.plot(table.sort_values("rank")["relative_scale"].to_numpy(), label=name)
ax.set(xlabel="regions by rank", ylabel="scale over the median of its fit")
ax.legend()
fig.savefig(figures / "08_scales.png", dpi=110)

# %% [markdown]
# ## Check the ranking
#
# Make two checks of every ranking. First, do the folds give the same ranking? Kendall's
# W is 1 if all folds give the same order. Second, is the scale correlated with a simple
# property of the region, for example the number of its connections (degree)? The table
# flags such properties.

# %%
agreement = agreement_table(evaluations["disease"])
print(f"Kendall's W of the folds: {agreement['kendall_w'][0]:.2f}")
print(f"of as many random orders: {agreement['chance_w'][0]:.2f}")
assert agreement["kendall_w"][0] > agreement["chance_w"][0]
ranking = rankings["disease"]
table = confound_table(ranking, region_properties(with_disease))
print(table.round(2).to_string(index=False))

# %% [markdown]
# Two smooth maps of the brain often correlate by chance. The spin test rotates one of
# them on the sphere at random and counts how often the correlation is at least as large
# as without rotation. Over the whole brain, the correlation of the scales with the true
# effects is only 0.25 (p = 0.10), although the first six regions are right.

# %%
# Few rotations, so that this runs in seconds. Leave n_spins out in a study: the default
# is 1000.
effect = with_disease.truth.set_index("region")["effect"]
scale = ranking.set_index("region")["relative_scale"]
spins = spin_test(scale, effect, with_disease.atlas, n_spins=49, random_state=0)
print(f"correlation {spins.correlation:.2f}, p = {spins.p_value:.2f}")
assert abs(spins.correlation - 0.25) < 0.1
assert 0.01 < spins.p_value < 0.3

# %% [markdown]
# ## What this does not show
#
# - Results for a real disease. The effect is simulated, strong and local.
# - The origin of a disease. A region that differs, or differs more than its neighbours,
#   is not necessarily the origin.
# - Whether a region with a small scale is affected. A scale describes how a model uses
#   a region.
# - Whether a difference is due to the disease. If diagnosis and scanner are correlated,
#   scanner differences are also significant in the permutation test. The audit detects
#   such correlations.
