# %% [markdown]
# # Is the ranking better than chance?
#
# Every fit gives a list of regions, also where there is nothing to find. Before a list
# goes into a paper it should be held against nulls: the same model on permuted labels,
# other starts, other folds, and what scales are known to follow anyway.

# %%
from pathlib import Path

import matplotlib.pyplot as plt

from brainlsap import cross_validate, make_cohort, rank_regions
from brainlsap.evaluation import (
    agreement_table,
    confound_table,
    make_models,
    permutation_null,
    ranking_auc,
    ranking_verdict,
    region_properties,
    spin_test,
)

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## A ranking
#
# Thirty people with disease in six known regions, and the same people without any. The
# ranking is that of the ridge with a scale per region, as in every report: it learns
# one for each region, also where the data do not ask for the network.

# %%
models = make_models("ridge with a scale per region")
with_disease = make_cohort(30, atlas="desikan82", effect=0.4, random_state=0)
without = make_cohort(30, atlas="desikan82", effect=0.0, random_state=0)

rankings, evaluations = {}, {}
for name, cohort in (("disease", with_disease), ("no disease", without)):
    evaluations[name] = cross_validate(models, cohort, cv=3, baselines=False)
    ranking = rank_regions(evaluations[name])
    rankings[name] = permutation_null(ranking, cohort)
    assert rankings[name]["rank"].notna().all()
    first = rankings[name].sort_values("rank").head(6)
    print(f"{name}: {', '.join(first['region'])}")
    print("  " + ranking_verdict(rankings[name]))

# %% [markdown]
# Both lists have six regions, and both look plausible. What separates them is the
# null: labels that were permuted between people, 200 times. For each of them a ridge
# with one scale is fitted, and its evidence says how much it asks for a smaller scale
# in every region; it takes seconds, so that every report has these p-values. They are
# corrected for the number of regions by the largest of all. They do not test the rank,
# which is that of the folds' models.

# %%
ranking = rankings["disease"]
columns = ["region", "rank", "relative_scale", "rank_low", "rank_high", "p", "planted"]
print(ranking.sort_values("rank")[columns].head(6).round(3).to_string(index=False))
print(f"AUC of the planted regions: {ranking_auc(ranking):.2f}")
assert (ranking["p"] < 0.05).any()
assert not (rankings["no disease"]["p"] < 0.05).any()

# %%
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, table in rankings.items():
    ax.plot(table.sort_values("rank")["relative_scale"].to_numpy(), label=name)
ax.set(xlabel="regions by rank", ylabel="scale over the median of its fit")
ax.legend()
fig.savefig(figures / "08_scales.png", dpi=110)

# %% [markdown]
# ## Agreement, and what scales follow anyway
#
# Do folds agree? Is the scale only the degree of the region in disguise?

# %%
agreement = agreement_table(evaluations["disease"])
print(f"Kendall's W of the folds: {agreement['kendall_w'][0]:.2f} (1: the same order")
print(f"in all), {agreement['chance_w'][0]:.2f} for as many orders at random")
table = confound_table(ranking, region_properties(with_disease))
print(table.round(2).to_string(index=False))

# %% [markdown]
# Two maps of the brain agree easily, since both are smooth. The spin test turns one of
# them on the sphere, and asks how often chance does as well.

# %%
effect = with_disease.truth.set_index("region")["effect"]
scale = ranking.set_index("region")["relative_scale"]
spins = spin_test(scale, effect, with_disease.atlas, n_spins=99, random_state=0)
print(f"correlation {spins.correlation:.2f}, p = {spins.p_value:.2f}")

# %% [markdown]
# ## What this does not show
#
# - With thirty simulated people nothing is proved; the steps are those of a real study.
# - A ranking that beats its null says that labels matter for the scales. It does not
#   say that a region is ill.
# - Permuted labels are the null of *no link to the label*. A link to the scanner passes
#   it: see the audit.
