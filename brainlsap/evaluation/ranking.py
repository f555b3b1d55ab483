"""Regions ranked by learned scale, and what such a ranking is held against."""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata, spearmanr
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from brainlsap.arrays import pack, unpack
from brainlsap.data import Cohort
from brainlsap.data.cohort import check_cohort_given
from brainlsap.data.measures import SUBCORTEX, get_measure
from brainlsap.evaluation.comparison import adjust_p_values
from brainlsap.evaluation.confounds import Deconfounder
from brainlsap.evaluation.cross_validation import suit_model
from brainlsap.evaluation.models import LADDER, make_models
from brainlsap.evaluation.results import Evaluation, check_evaluation_given, data_hash
from brainlsap.evaluation.splits import person_blocks
from brainlsap.exceptions import ParameterError, check_at_least

ALPHA = 0.05
# Steps of 0.01 in p; of 20 permutations a single one decides what is below 0.05.
FEWEST_PERMUTATIONS = 99

# The range of fewer fits is told, and not the middle 95%.
FEWEST_FITS = 20
# Where most scales are 0 the median is no measure; this one keeps ratios finite.
LOWEST_MEDIAN = 0.05
# A scale that ends within this part of its start was not learned.
MOVED = 0.05
STRONG = 0.3


def rank_regions(evaluation: Evaluation, model: str | None = None) -> pd.DataFrame:
    r"""Rank the measured regions, smallest relative scale first.

    Folds may begin their scales at different starts (0.2, 1 or 2, by validation loss),
    and where a scale ends depends on where it began: a mean of scales over folds is
    ruled by the folds of largest start. So every fit's scales are taken relative to
    their median over measured regions, which removes a common factor:

    .. math:: r_p = \frac1K \sum_k \frac{s_{kp}}{\mathrm{median}_q\, s_{kq}}

    (The geometric mean would let one fold in which a scale reached 0 rule the others;
    on simulated cohorts it recovered one planted region less in several.) Where all
    folds have one start and one median the order is that of the mean scale.

    Parameters
    ----------
    evaluation : Evaluation
        With a model that has scales.
    model : str, optional
        Which; by default the ridge with a scale per region, or where there is none
        the first that has scales.

    Returns
    -------
    DataFrame
        One row per region of the atlas, in its order: model, region, rank (1 is the
        smallest; NaN where not measured; ties share the smallest), relative_scale,
        scale (median over folds), relative_low, relative_high, rank_low, rank_high (2.5
        to 97.5% over all folds and starts; of fewer than 20 the range), moved (part of
        the folds in which the scale left its start by more than 5%), measured; planted,
        of measured regions, where the cohort knows the truth.

    Raises
    ------
    ParameterError
        Where no model has scales, or not the one asked for.
    """
    check_evaluation_given(evaluation)
    names = list(evaluation.scales["model"].unique())
    if model is None:
        first = next(iter(names), evaluation.models[0])
        model = LADDER[-1] if LADDER[-1] in names else first
    if model not in names:
        raise ParameterError(
            f"model {model!r} has no scales to rank regions by; those that have: "
            f"{', '.join(names) or 'none'}. (A ridge has none where the data asked for "
            "no network or for one scale; LSAPRidgeClassifier('regions') always has.)"
        )
    measured = np.asarray(evaluation.cohort.measured, dtype=bool)
    final, starts, begun = _scales_of(evaluation, model)
    relative = _relative(final, measured)
    fits = _relative(starts, measured) if len(starts) else relative
    bounds = (2.5, 97.5) if len(fits) >= FEWEST_FITS else (0, 100)
    table = pd.DataFrame({"region": list(evaluation.cohort.region_names)})
    table.insert(0, "model", model)
    table["rank"] = _ranks(relative.mean(axis=0)[None], measured)[0]
    table["relative_scale"] = relative.mean(axis=0)
    table["scale"] = np.median(final, axis=0)
    for name, values in (("relative", fits), ("rank", _ranks(fits, measured))):
        ends = np.percentile(values, bounds, axis=0)
        table[f"{name}_low"], table[f"{name}_high"] = ends
    table["moved"] = np.nan
    if len(begun):
        table["moved"] = (np.abs(final - begun) > MOVED * begun).mean(axis=0)
    table.loc[~measured, table.columns[2:]] = np.nan
    table["measured"] = measured
    table.attrs["steps"] = evaluation.settings["steps"]
    table.attrs["data_hash"] = evaluation.cohort.data_hash
    truth = evaluation.cohort.truth
    # where disease was planted says nothing of other labels, such as sex
    if truth is not None and evaluation.cohort.label_name == "diagnosis":
        planted = truth.loc[truth["seed"].astype(bool), "region"]
        table["planted"] = table["region"].isin(set(planted)).to_numpy() & measured
    return table


def ranking_auc(ranking: pd.DataFrame) -> float:
    """Return how well the smallest ranks recover the planted regions: 1 is all of them.

    Parameters
    ----------
    ranking : DataFrame
        Of :func:`rank_regions`, with the column planted.

    Returns
    -------
    float
        Area under the ROC curve over measured regions.
    """
    known = ranking[ranking["measured"]]
    return float(roc_auc_score(known["planted"], -known["rank"]))


def ranking_verdict(ranking: pd.DataFrame) -> str:
    """Return in words what the null allows to be said of a ranking.

    Parameters
    ----------
    ranking : DataFrame
        Of :func:`rank_regions` or :func:`permutation_null`.

    Returns
    -------
    str
    """
    if "p" not in ranking:
        return (
            "The ranking was not held against permuted labels: it says how the models "
            "weigh regions, not that the order is more than chance."
        )
    number, p = int(ranking["n_permutations"].iloc[0]), ranking["p"].min()
    if number < FEWEST_PERMUTATIONS:
        return (
            f"Too few permutations ({number}): the smallest possible p-value is "
            f"{1 / (number + 1):.2g}. At least {FEWEST_PERMUTATIONS} are needed."
        )
    if p >= ALPHA:
        return (
            "No region was shown to stand out from permuted labels (smallest "
            f"family-wise p = {p:.2f}, {number} permutations): the order may be "
            "chance. Do not interpret it; how classes differ in a region is another "
            "question (Cohen's d)."
        )
    return (
        f"{(ranking['p'] < ALPHA).sum()} of {ranking['measured'].sum()} regions: the "
        "labels ask for a scale below those of the rest, more strongly than permuted "
        f"labels do (family-wise p < {ALPHA}, {number} permutations; smallest possible "
        f"p = {1 / (number + 1):.2g}). p belongs to this test and says nothing of the "
        "order. It controls errors where no region matters; where some do, others can "
        "stand among them by mistake."
    )


def permutation_null(
    ranking: pd.DataFrame,
    cohort: Cohort,
    n_permutations: int = 200,
    *,
    model: Any = None,
    random_state: int = 0,
) -> pd.DataFrame:
    r"""Hold regions against labels that were permuted between people.

    For every labelling b (b = 0 are the labels) a ridge with one scale is fitted to all
    scans; :math:`x_{bp}` is the slope of its evidence towards a smaller scale of region
    p, which is the first step of a fit with a scale per region, and z what exceeds its
    mean over all labellings, in their standard deviations, region by region:

    .. math:: p_p = \frac{\#\{b : \max_q z_{bq} \ge z_{0p}\}}{B + 1}

    where the labels count as reaching themselves. Under exchangeable labels the
    smallest p of all regions is below 0.05 in at most 5% of cohorts; there is one such
    test, and no other p-value. It asks how surely a region's scale is smaller than the
    others', not how small it is: a region of high rank can have a large p.

    Parameters
    ----------
    ranking : DataFrame
        Of :func:`rank_regions`, or some of its rows, in any order; it tells what was
        harmonised and regressed out in the folds, and all scans go through the same.
    cohort : Cohort
        The scans; its regions go by name.
    n_permutations : int
        Labellings; at least 99 for :func:`ranking_verdict`.
    model : LSAPRidgeClassifier, optional
        How networks are prepared; by default as they are.
    random_state : int
        Seed of the permutations.

    Returns
    -------
    DataFrame
        The ranking with p and n_permutations, and with fit_scale, fit_low and fit_high:
        each region's scale by evidence in one fit to all scans, with its 95% interval.
    """
    from brainlsap.model.evidence import region_slopes

    check_cohort_given(cohort)
    check_at_least("n_permutations", n_permutations, 1)
    asked = getattr(ranking, "attrs", {}).get("steps")
    if asked is None:
        raise ParameterError(
            f"ranking must be what rank_regions returns; got {type(ranking).__name__}, "
            "of which attrs['steps'] do not say what was taken out in the folds."
        )
    if ranking.attrs["data_hash"] != data_hash(cohort):
        raise ParameterError(
            "cohort must be the one that the ranking is of; other scans or labels came."
        )
    places = cohort.atlas.match(ranking["region"])  # whatever was sorted or left out
    steps = Deconfounder(asked["harmonize"], asked["regress_out"])
    model = model or make_models(LADDER[-1])[LADDER[-1]][0]
    model = suit_model(clone(model), cohort)
    rng = np.random.default_rng(random_state)
    y, groups = pd.Index(cohort.classes).get_indexer(cohort.y), cohort.groups
    permuted = [permute_labels(y, groups, rng) for _ in range(n_permutations)]
    steps.fit(cohort.features, cohort.table)
    X = pack(cohort.connectomes, steps.transform(cohort.features, cohort.table))
    evidence = model.learn_evidence(X, groups)
    codes = np.array([y, *permuted], dtype=np.int64)
    slopes = region_slopes(evidence, codes, cohort.classes_ordered, model.max_scale)
    model.fit(X, cohort.y, groups=groups)
    scales = np.column_stack([model.scales_, model.scales_interval_])
    scales = scales.clip(max=model.max_scale)  # but for rounding, none is above
    measured = np.asarray(cohort.measured.any(axis=(0, 2)))
    scales[~measured] = np.nan
    p = family_wise_p(slopes, measured)
    table = ranking.assign(p=p[places], n_permutations=n_permutations)
    table[["fit_scale", "fit_low", "fit_high"]] = scales[places]
    return table


def family_wise_p(x: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Return the p-values of :func:`permutation_null` of slopes (n_fits, n_rois)."""
    deviation = x.std(axis=0)
    still = deviation <= 1e-9 * (1 + np.abs(x).max(axis=0))
    z = np.where(still, 0.0, x - x.mean(axis=0)) / np.where(still, 1.0, deviation)
    highest = z[1:, measured].max(axis=1)
    p = (1 + (highest[:, None] >= z[0] - 1e-9).sum(axis=0)) / len(z)
    return np.where(measured, p, np.nan)


def permute_labels(
    y: np.ndarray, groups: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Permute labels between people; all visits of a person move together.

    Where labels change between visits, people with as many visits exchange theirs.
    """
    y, names = np.array(y, dtype=object), np.asarray(groups).astype(str)
    _, first, person = np.unique(names, return_index=True, return_inverse=True)
    if (y == y[first][person]).all():
        return y[first][rng.permutation(len(first))][person]
    out = y.copy()
    for rows in person_blocks(names):
        out[rows] = y[rows[rng.permutation(len(rows))]]
    return out


def region_importance(
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
    groups: np.ndarray | None = None,
    n_repeats: int = 10,
    random_state: int = 0,
) -> pd.DataFrame:
    """Return what a fitted classifier loses without what a region's features tell.

    All features of a region are exchanged between people together, all visits of a
    person at once (between people with as many visits); the connectome stays.

    Parameters
    ----------
    model : fitted classifier
        Over packed scans.
    X, y : arrays of length n_scans
        Packed scans, and their classes; better those that were not trained on.
    groups : array of shape (n_scans,), optional
        Participants; by default each scan is a person.
    n_repeats : int
        Exchanges of every region.
    random_state : int
        Seed.

    Returns
    -------
    DataFrame
        One row a region, in order: importance, the mean loss of balanced accuracy, and
        sd, its sample standard deviation over the exchanges (NaN of one).
    """
    check_at_least("n_repeats", n_repeats, 1)
    rng, packed = np.random.default_rng(random_state), np.array(X)
    names = np.asarray(y).astype(str)
    (_, features), (_, shuffled), rows = unpack(X), unpack(packed), np.arange(len(X))
    people = rows if groups is None else groups

    def score() -> float:
        return balanced_accuracy_score(names, model.predict(packed).astype(str))

    whole, lost = score(), np.empty((features.shape[1], n_repeats))
    for region, repeat in np.ndindex(*lost.shape):
        order = permute_labels(rows, people, rng).astype(int)
        shuffled[:, region] = features[order, region]
        lost[region, repeat] = whole - score()
        shuffled[:, region] = features[:, region]
    losses = pd.DataFrame(lost)
    return pd.DataFrame({"importance": losses.mean(axis=1), "sd": losses.std(axis=1)})


def region_properties(cohort: Cohort) -> pd.DataFrame:
    """Return what every region is apart from what labels tell of it.

    Parameters
    ----------
    cohort : Cohort
        The scans.

    Returns
    -------
    DataFrame
        region; degree (edges) and strength (their weights), means over scans; and the
        variance of every feature within classes, over scans (NaN below the cortex
        where something else stands for the feature).
    """
    W = cohort.connectomes[:1] if cohort.shares_connectome else cohort.connectomes
    loops = np.einsum("nii->ni", W)
    table = pd.DataFrame(
        {
            "region": list(cohort.region_names),
            "degree": ((W > 0).sum(axis=2) - (loops > 0)).mean(axis=0),
            "strength": (W.sum(axis=2, dtype=float) - loops).mean(axis=0),
        }
    )
    for place, name in enumerate(cohort.feature_names):
        values = pd.DataFrame(cohort.features[..., place])
        within = values - values.groupby(cohort.y).transform("mean")
        table[f"variance_{name}"] = within.var(ddof=0)
        if stands_below(cohort, name):  # another measure, in another unit
            table.loc[~cohort.atlas.cortex, f"variance_{name}"] = np.nan
    return table


def stands_below(cohort: Any, feature: str) -> str:
    """Return what stands below the cortex for a feature of its surface, or ""."""
    policy = cohort.provenance.get("subcortex", "absent")
    return SUBCORTEX.get(policy, "") if get_measure(feature).on_surface else ""


def confound_table(ranking: pd.DataFrame, properties: pd.DataFrame) -> pd.DataFrame:
    """Return how relative scale goes with what regions are apart from any label.

    Parameters
    ----------
    ranking : DataFrame
        Of :func:`rank_regions`.
    properties : DataFrame
        Of :func:`region_properties`.

    Returns
    -------
    DataFrame
        property, n_regions, spearman, p_holm, and flagged: a correlation of 0.3 or
        more, significant after Holm's correction; the order may then be one of the
        network or the measure.
    """
    rows = properties.set_index("region").loc[list(ranking["region"])]
    found = []
    for name, values in rows.items():
        pair = np.stack([ranking["relative_scale"], values]).astype(float)
        pair = pair[:, np.isfinite(pair).all(axis=0)]
        told = pair.shape[1] > 3 and (np.ptp(pair, axis=1) > 0).all()
        rho, p = spearmanr(*pair) if told else (np.nan, np.nan)
        found.append((name, pair.shape[1], float(rho), float(p)))
    table = pd.DataFrame(found, columns=["property", "n_regions", "spearman", "p_holm"])
    table["p_holm"] = adjust_p_values(table["p_holm"])
    table["flagged"] = (table["spearman"].abs() >= STRONG) & (table["p_holm"] < ALPHA)
    return table


def agreement_table(evaluation: Evaluation, n_smallest: int = 10) -> pd.DataFrame:
    """Return how far the folds of each model agree, and the models with one another.

    Parameters
    ----------
    evaluation : Evaluation
        With models that have scales.
    n_smallest : int
        Size of the sets of smallest scales that are compared.

    Returns
    -------
    DataFrame
        first, second (one model twice: its folds); kendall_w (1: the same order),
        chance_w (what orders at random have on average: one over their number),
        spearman (of two models' means), jaccard (mean overlap of the smallest).
    """
    measured = np.asarray(evaluation.cohort.measured, dtype=bool)
    maps = {
        name: _relative(_scales_of(evaluation, name)[0], measured)[:, measured]
        for name in models_with_scales(evaluation)
    }
    means = {name: one.mean(axis=0) for name, one in maps.items()}
    pairs = [(name, name, one) for name, one in maps.items()]
    pairs += [(a, b, np.stack([means[a], means[b]])) for a, b in combinations(means, 2)]
    rows = []
    for first, second, each in pairs:
        n, tops = len(each), rankdata(each, "min", axis=1) <= n_smallest
        jaccard = [(a & b).sum() / (a | b).sum() for a, b in combinations(tops, 2)]
        rho = w = overlap = by_chance = np.nan
        if n > 1:
            off = np.triu_indices(n, 1)
            rho = float(np.corrcoef(rankdata(each, axis=1))[off].mean())
            w, by_chance = (1 + (n - 1) * rho) / n, 1 / n
            overlap = float(np.mean(jaccard))
        rho = rho if first != second else np.nan
        rows.append((first, second, w, by_chance, rho, overlap))
    columns = ["first", "second", "kendall_w", "chance_w", "spearman", "jaccard"]
    return pd.DataFrame(rows, columns=columns)


def common_regions(
    evaluation: Evaluation, n_smallest: int = 20
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the regions whose scale is among the smallest in several models.

    As in the supplement of Sim et al. 2024: regions among the `n_smallest` of the
    reference ("Exact", or else the first) and of at least one other model, first those
    of most models, each group in order of the reference's scale; and the root mean
    square difference of every model's scales to the reference's over measured regions.

    Parameters
    ----------
    evaluation : Evaluation
        With two or more models that have scales.
    n_smallest : int
        How many of each model count as smallest.

    Returns
    -------
    regions : DataFrame
        region, n_models, then one column per model: its scale (median over folds), NaN
        where the region is not among its smallest.
    rmse : Series
        By model; 0 for the reference.

    Raises
    ------
    ParameterError
        Where fewer than two models have scales.
    """
    names = models_with_scales(evaluation)
    check_at_least("n_smallest", n_smallest, 1)
    if len(names) < 2:
        told = ", ".join(names) or "none"
        raise ParameterError(
            f"regions in common need two models with scales, got {told}."
        )
    reference = "Exact" if "Exact" in names else names[0]
    rankings = {name: rank_regions(evaluation, name) for name in names}
    scale = pd.DataFrame({n: one["scale"] for n, one in rankings.items()})
    small = pd.DataFrame({n: one["rank"] <= n_smallest for n, one in rankings.items()})
    table = scale.where(small)
    table.insert(0, "region", list(evaluation.cohort.region_names))
    table.insert(1, "n_models", small.sum(axis=1))
    table = table[small[reference] & (table["n_models"] > 1)]
    table = table.sort_values(["n_models", reference], ascending=[False, True])
    rmse = np.sqrt(scale.sub(scale[reference], axis=0).pow(2).mean())
    return table.reset_index(drop=True), rmse


def models_with_scales(evaluation: Evaluation) -> list[str]:
    """Return the models that have scales, without those that repeat another's."""
    names = list(evaluation.scales["model"].unique())
    # kernels that agree are all shown
    if evaluation.same_as.get("LSAP-R") in names:
        names.remove("LSAP-R")
    return names


def _scales_of(evaluation: Evaluation, model: str) -> list[np.ndarray]:
    """Return scales (n_fits, n_rois) of folds, of starts, and where they began."""
    rows = evaluation.scales[evaluation.scales["model"] == model]
    mean, final = rows["start"] == "mean", rows["share"] == 1
    starts, begun = final & rows["start"].str.isdigit(), mean & (rows["share"] == 0)
    shape = -1, len(evaluation.cohort.region_names)
    return [
        rows.loc[some, "scale"].to_numpy(float).reshape(shape)
        for some in (mean & final, starts, begun)
    ]


def _relative(scales: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Return scales (n_fits, n_rois) over the median of their fit."""
    median = np.median(scales[:, measured], axis=1, keepdims=True)
    return scales / np.maximum(median, LOWEST_MEDIAN)


def _ranks(values: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Return ranks from 1 along the last axis; what is not measured comes last."""
    return rankdata(np.where(measured, values, np.inf), "min", axis=1).astype(float)
