# %% [markdown]
# # Which regions differ, and is a ranking better than chance?
#
# Every fit gives a list of regions, also where there is nothing to find. Three
# questions about a region are often taken for one: do classes differ there, does the
# difference stand out from that of connected regions, and how does a model read the
# region? Only the first two can be tested without a model.

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
# ## A ranking by scale, with tests beside it
#
# Thirty people with disease that begins in six known regions, and the same people
# without any. The ranking is that of the ridge with a scale per region, as in every
# report: it learns one for each region, also where the data do not ask for the network.

# %%
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
    first = rankings[name].sort_values("rank").head(6)
    print(f"{name}: {', '.join(first['region'])}")
    print("  " + ranking_verdict(rankings[name]))

# %% [markdown]
# Both lists have six regions, and both look plausible. What separates them are labels
# that were permuted between people, 200 times. `effect` is the correlation with the
# number of the stage, `contrast` what of it stands out from the mean of the connected
# regions: a local peak, which is no proof that disease began there. Both p-values are
# corrected for the number of regions. Neither tests the rank by scale, which describes
# the model.

# %%
regions = evaluations["disease"].region_tests
columns = ["region", "effect", "p_effect", "contrast", "p_contrast"]
columns += ["relative_scale", "planted"]
first = regions.nlargest(8, "contrast_z")
print(first[columns].round(3).to_string(index=False))
for by in ("scale", "effect", "contrast"):
    auc = ranking_auc(rank_regions(evaluations["disease"], by=by))
    print(f"AUC of the planted regions, ranked by {by}: {auc:.2f}")
    assert auc > 0.9
assert regions.query("planted")["p_effect"].max() < 0.05
no_disease = rankings["no disease"]
assert not (no_disease[["p_effect", "p_contrast"]] < 0.05).any(axis=None)

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
ranking = rankings["disease"]
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
# - A region that differs need not be where disease began, nor need a local peak.
# - A scale says how a model reads a region, and not that the region is ill.
# - Permuted labels are the null of *no link to the label*. A link to the scanner passes
#   it: see the audit.
