"""Rank regions by learned scale, and compare the ranking with what explains it."""

from itertools import combinations
from typing import Any, NamedTuple

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
from brainlsap.evaluation.cross_validation import configure_for_cohort
from brainlsap.evaluation.models import NESTED_RIDGES, make_models
from brainlsap.evaluation.results import Evaluation, check_evaluation_given, data_hash
from brainlsap.evaluation.splits import permute_labels
from brainlsap.exceptions import ParameterError, check_at_least

# Significance level.
ALPHA = 0.05
# With 99 permutations p has steps of 0.01; with 20 a single one decides whether p is
# below 0.05.
FEWEST_PERMUTATIONS = 99

# With fewer fits the bounds of a ranking are the range, and not the middle 95%.
FEWEST_FITS = 20
# Scales are divided by their median, but at least by this: it may be 0.
MIN_MEDIAN_SCALE = 0.05
# A scale that ends within this part of its initial value was not learned.
MIN_RELATIVE_CHANGE = 0.05
# Absolute correlation with a property of regions that is flagged.
STRONG_CORRELATION = 0.3


class ModelScales(NamedTuple):
    """Scales of one model as arrays (n_fits, n_rois)."""

    final: np.ndarray
    """Learned scales of each fold, the mean over starts."""
    final_of_starts: np.ndarray
    """Learned scales of each start of each fold; empty if starts were not kept."""
    initial: np.ndarray
    """Initial scales of each fold; empty if they were not kept."""


def rank_regions(evaluation: Evaluation, model: str | None = None) -> pd.DataFrame:
    r"""Rank the measured regions, smallest relative scale first.

    Folds may have different initial scales (0.2, 1 or 2, by validation loss), and a
    learned scale depends on the initial one: the folds of largest initial scale would
    dominate a mean over folds. Therefore the scales of each fit are divided by their
    median over measured regions, which removes a common factor:

    .. math:: r_p = \frac1K \sum_k \frac{s_{kp}}{\mathrm{median}_q\, s_{kq}}

    (In a geometric mean one fold in which a scale reached 0 would dominate the others;
    on several simulated cohorts it recovered one planted region less.) If all folds
    have the same initial scale and the same median, the order is that of the mean
    scale.

    Parameters
    ----------
    evaluation : Evaluation
        With a model that has scales.
    model : str, optional
        Its name; by default the ridge with a scale per region or, without one, the
        first model that has scales.

    Returns
    -------
    DataFrame
        One row per region of the atlas, in its order: model, region, rank (1 is the
        smallest; NaN where not measured; ties share the smallest), relative_scale,
        scale (median over folds), relative_low, relative_high, rank_low, rank_high (2.5
        to 97.5% over all folds and starts; of fewer than 20 the range), moved (share of
        the folds in which the scale changed by more than 5% of its initial value),
        measured; planted, of measured regions, if the cohort is simulated.

    Raises
    ------
    ParameterError
        If no model has scales, or the chosen one has none.
    """
    check_evaluation_given(evaluation)
    model = _choose_model_with_scales(evaluation, model)
    is_measured = np.asarray(evaluation.cohort.measured, dtype=bool)
    scales = _select_scales(evaluation, model)
    relative = _relative_scales(scales.final, is_measured)
    fits = relative
    if len(scales.final_of_starts):
        fits = _relative_scales(scales.final_of_starts, is_measured)
    bounds = (2.5, 97.5) if len(fits) >= FEWEST_FITS else (0, 100)
    mean_relative = relative.mean(axis=0)
    table = pd.DataFrame({"region": list(evaluation.cohort.region_names)})
    table.insert(0, "model", model)
    table["rank"] = _rank_within_fits(mean_relative[None], is_measured)[0]
    table["relative_scale"] = mean_relative
    table["scale"] = np.median(scales.final, axis=0)
    ranks = _rank_within_fits(fits, is_measured)
    for name, values in (("relative", fits), ("rank", ranks)):
        low, high = np.percentile(values, bounds, axis=0)
        table[f"{name}_low"] = low
        table[f"{name}_high"] = high
    table["moved"] = np.nan
    if len(scales.initial):
        change = np.abs(scales.final - scales.initial)
        has_moved = change > MIN_RELATIVE_CHANGE * scales.initial
        table["moved"] = has_moved.mean(axis=0)
    table.loc[~is_measured, table.columns[2:]] = np.nan
    table["measured"] = is_measured
    table.attrs["steps"] = evaluation.settings["steps"]
    table.attrs["data_hash"] = evaluation.cohort.data_hash
    truth = evaluation.cohort.truth
    # The planted regions are those of the disease, not of other labels such as sex.
    if truth is not None and evaluation.cohort.label_name == "diagnosis":
        planted_regions = truth.loc[truth["seed"].astype(bool), "region"]
        is_planted = table["region"].isin(set(planted_regions)).to_numpy()
        table["planted"] = is_planted & is_measured
    return table


def _choose_model_with_scales(evaluation: Evaluation, model: str | None) -> str:
    """Return the model whose scales are ranked; raise if it has none."""
    names = list(evaluation.scales["model"].unique())
    if model is None and NESTED_RIDGES[-1] in names:
        model = NESTED_RIDGES[-1]
    elif model is None:
        model = next(iter(names), evaluation.models[0])
    if model not in names:
        raise ParameterError(
            f"model {model!r} has no scales to rank regions by; those that have: "
            f"{', '.join(names) or 'none'}. (A ridge has none if the data favour no "
            "connectome or one scale; LSAPRidgeClassifier('regions') always has.)"
        )
    return model


def ranking_auc(ranking: pd.DataFrame) -> float:
    """Return how well the smallest ranks recover the planted regions; 1 is perfectly.

    Parameters
    ----------
    ranking : DataFrame
        Of :func:`rank_regions`, with the column planted.

    Returns
    -------
    float
        Area under the ROC curve over measured regions.
    """
    measured_regions = ranking[ranking["measured"]]
    auc = roc_auc_score(measured_regions["planted"], -measured_regions["rank"])
    return float(auc)


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
    n_permutations = int(ranking["n_permutations"].iloc[0])
    smallest_possible_p = 1 / (n_permutations + 1)
    if n_permutations < FEWEST_PERMUTATIONS:
        return (
            f"Too few permutations ({n_permutations}): the smallest possible p-value "
            f"is {smallest_possible_p:.2g}. At least {FEWEST_PERMUTATIONS} are needed."
        )
    smallest_p = ranking["p"].min()
    if smallest_p >= ALPHA:
        return (
            "No region was shown to stand out from permuted labels (smallest "
            f"family-wise p = {smallest_p:.2f}, {n_permutations} permutations). The "
            "order may be due to chance: do not interpret it. Whether classes differ "
            "in a region is another question (Cohen's d)."
        )
    n_significant = (ranking["p"] < ALPHA).sum()
    return (
        f"In {n_significant} of {ranking['measured'].sum()} regions, the data favour a "
        "scale below those of the other regions more strongly than permuted labels do "
        f"(family-wise p < {ALPHA}, {n_permutations} permutations; smallest possible p "
        f"= {smallest_possible_p:.2g}). The test does not concern the rank order. It "
        "controls the family-wise error only if no region is informative; if some are, "
        "others among these may be false positives."
    )


def permutation_null(
    ranking: pd.DataFrame,
    cohort: Cohort,
    n_permutations: int = 200,
    *,
    model: Any = None,
    random_state: int = 0,
) -> pd.DataFrame:
    r"""Compare regions with labels that were permuted between people.

    Labels are exchanged between people with equally many scans, all scans together.
    For each labelling b (b = 0 are the labels) a ridge with one scale is fitted to all
    scans. :math:`x_{bp}` is the slope of its evidence towards a smaller scale of region
    p, which is the first step of a fit with a scale per region. z is x standardised
    over the labellings, region by region:

    .. math:: p_p = \frac{\#\{b : \max_q z_{bq} \ge z_{0p}\}}{B + 1}

    where the labels themselves (b = 0) always count. Under exchangeable labels the
    smallest p of all regions is below 0.05 in at most 5% of cohorts; there is one such
    test, and no other p-value. It tests how surely a region's scale is smaller than
    those of the other regions, not how small it is: a region of high rank can have a
    large p.

    Parameters
    ----------
    ranking : DataFrame
        Of :func:`rank_regions`, or some of its rows, in any order. Its `attrs` hold
        what was harmonised and regressed out in the folds; all scans go through the
        same steps.
    cohort : Cohort
        The scans; regions are matched by name.
    n_permutations : int
        Permuted labellings; at least 99 for :func:`ranking_verdict`.
    model : LSAPRidgeClassifier, optional
        Says how connectomes are prepared; by default they are used unchanged.
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
    steps = _steps_of_ranking(ranking, cohort)
    region_index = cohort.atlas.match(ranking["region"])
    if model is None:
        model = make_models(NESTED_RIDGES[-1])[NESTED_RIDGES[-1]][0]
    model = configure_for_cohort(clone(model), cohort)
    y = pd.Index(cohort.classes).get_indexer(cohort.y)
    groups = cohort.groups
    rng = np.random.default_rng(random_state)
    permuted_labels = [permute_labels(y, groups, rng) for _ in range(n_permutations)]
    steps.fit(cohort.features, cohort.table)
    X = pack(cohort.connectomes, steps.transform(cohort.features, cohort.table))
    evidence = model.learn_evidence(X, groups)
    labellings = np.array([y, *permuted_labels], dtype=np.int64)
    slopes = region_slopes(
        evidence, labellings, cohort.classes_ordered, model.max_scale
    )
    model.fit(X, cohort.y, groups=groups)
    scales = np.column_stack([model.scales_, model.scales_interval_])
    scales = scales.clip(max=model.max_scale)  # rounding may exceed it
    is_measured = np.asarray(cohort.measured.any(axis=(0, 2)))
    scales[~is_measured] = np.nan
    p = family_wise_p(slopes, is_measured)
    table = ranking.assign(p=p[region_index], n_permutations=n_permutations)
    table[["fit_scale", "fit_low", "fit_high"]] = scales[region_index]
    return table


def _steps_of_ranking(ranking: pd.DataFrame, cohort: Cohort) -> Deconfounder:
    """Return the steps of a ranking's folds; raise if it is not of this cohort."""
    options = getattr(ranking, "attrs", {}).get("steps")
    if options is None:
        raise ParameterError(
            f"ranking must be what rank_regions returns; got {type(ranking).__name__}, "
            "of which attrs['steps'] do not say what was taken out in the folds."
        )
    if ranking.attrs["data_hash"] != data_hash(cohort):
        raise ParameterError(
            "cohort must be the one that the ranking is of; got other scans or labels."
        )
    return Deconfounder(options["harmonize"], options["regress_out"])


def family_wise_p(slopes: np.ndarray, is_measured: np.ndarray) -> np.ndarray:
    """Return the p-values of :func:`permutation_null` of slopes (n_fits, n_rois).

    The first row is of the labels, the others of permuted ones.
    """
    sd = slopes.std(axis=0)
    is_constant = sd <= 1e-9 * (1 + np.abs(slopes).max(axis=0))
    deviations = np.where(is_constant, 0.0, slopes - slopes.mean(axis=0))
    z = deviations / np.where(is_constant, 1.0, sd)
    max_z = z[1:, is_measured].max(axis=1)
    n_exceeding = (max_z[:, None] >= z[0] - 1e-9).sum(axis=0)
    return np.where(is_measured, (1 + n_exceeding) / len(z), np.nan)


def region_importance(
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
    groups: np.ndarray | None = None,
    n_repeats: int = 10,
    random_state: int = 0,
) -> pd.DataFrame:
    """Return the loss of accuracy when a region's features are permuted.

    All features of a region are exchanged together between people with as many visits,
    all visits of a person at once; the connectome is not changed.

    Parameters
    ----------
    model : fitted classifier
        Over packed scans.
    X, y : arrays of length n_scans
        Packed scans, and their classes; preferably scans that were not trained on.
    groups : array of shape (n_scans,), optional
        Participants; by default each scan is a person.
    n_repeats : int
        Permutations of each region.
    random_state : int
        Seed.

    Returns
    -------
    DataFrame
        One row a region, in order: importance, the mean loss of balanced accuracy, and
        sd, its sample standard deviation over permutations (NaN of one).
    """
    check_at_least("n_repeats", n_repeats, 1)
    rng = np.random.default_rng(random_state)
    labels = np.asarray(y).astype(str)
    rows = np.arange(len(X))
    groups = rows if groups is None else groups
    _, features = unpack(X)
    permuted_X = np.array(X)
    _, permuted_features = unpack(permuted_X)  # a view

    def score() -> float:
        predicted = model.predict(permuted_X).astype(str)
        return balanced_accuracy_score(labels, predicted)

    full_score = score()
    losses = np.empty((features.shape[1], n_repeats))
    for region, repeat in np.ndindex(*losses.shape):
        order = permute_labels(rows, groups, rng)
        permuted_features[:, region] = features[order, region]
        losses[region, repeat] = full_score - score()
        permuted_features[:, region] = features[:, region]
    table = pd.DataFrame(losses)
    return pd.DataFrame({"importance": table.mean(axis=1), "sd": table.std(axis=1)})


def region_properties(cohort: Cohort) -> pd.DataFrame:
    """Return properties of each region that do not depend on labels.

    Parameters
    ----------
    cohort : Cohort
        The scans.

    Returns
    -------
    DataFrame
        region; degree (number of edges) and strength (sum of their weights), means over
        scans; and the variance of every feature within classes, over scans (NaN in the
        subcortex if another measure is substituted there).
    """
    W = cohort.connectomes[:1] if cohort.shares_connectome else cohort.connectomes
    self_weights = np.einsum("nii->ni", W)
    n_edges = (W > 0).sum(axis=2) - (self_weights > 0)
    strength = W.sum(axis=2, dtype=float) - self_weights
    table = pd.DataFrame(
        {
            "region": list(cohort.region_names),
            "degree": n_edges.mean(axis=0),
            "strength": strength.mean(axis=0),
        }
    )
    for feature_index, name in enumerate(cohort.feature_names):
        values = pd.DataFrame(cohort.features[..., feature_index])
        deviations = values - values.groupby(cohort.y).transform("mean")
        table[f"variance_{name}"] = deviations.var(ddof=0)
        if find_subcortex_substitute(cohort, name):  # in another unit
            table.loc[~cohort.atlas.cortex, f"variance_{name}"] = np.nan
    return table


def find_subcortex_substitute(cohort: Any, feature: str) -> str:
    """Return the measure that replaces a surface feature in the subcortex, or ""."""
    policy = cohort.provenance.get("subcortex", "absent")
    return SUBCORTEX.get(policy, "") if get_measure(feature).on_surface else ""


def confound_table(ranking: pd.DataFrame, properties: pd.DataFrame) -> pd.DataFrame:
    """Correlate relative scales with properties that do not depend on labels.

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
        more, significant after Holm's correction; the order may then reflect the
        connectome or the measure.
    """
    properties = properties.set_index("region").loc[list(ranking["region"])]
    correlations = []
    for name, values in properties.items():
        pair = np.stack([ranking["relative_scale"], values]).astype(float)
        pair = pair[:, np.isfinite(pair).all(axis=0)]
        n_regions = pair.shape[1]
        rho = p = np.nan
        if n_regions > 3 and (np.ptp(pair, axis=1) > 0).all():
            rho, p = spearmanr(*pair)
        correlations.append((name, n_regions, float(rho), float(p)))
    columns = ["property", "n_regions", "spearman", "p_holm"]
    table = pd.DataFrame(correlations, columns=columns)
    table["p_holm"] = adjust_p_values(table["p_holm"])
    is_strong = table["spearman"].abs() >= STRONG_CORRELATION
    table["flagged"] = is_strong & (table["p_holm"] < ALPHA)
    return table


def agreement_table(evaluation: Evaluation, n_smallest: int = 10) -> pd.DataFrame:
    """Return how well the folds of each model agree, and the models with each other.

    Parameters
    ----------
    evaluation : Evaluation
        With models that have scales.
    n_smallest : int
        Size of the sets of smallest scales that are compared.

    Returns
    -------
    DataFrame
        first, second (the same model twice: its folds); kendall_w (1: the same order),
        chance_w (the mean of random orders: one over their number), spearman (of two
        models' means), jaccard (mean overlap of the smallest).
    """
    is_measured = np.asarray(evaluation.cohort.measured, dtype=bool)
    fits_of_model = {}
    for name in models_with_scales(evaluation):
        scales = _select_scales(evaluation, name).final
        fits_of_model[name] = _relative_scales(scales, is_measured)[:, is_measured]
    rows = [
        (name, name, *_agreement_of_maps(maps, n_smallest), np.nan)
        for name, maps in fits_of_model.items()
    ]
    mean_of_model = {name: maps.mean(axis=0) for name, maps in fits_of_model.items()}
    for first, second in combinations(mean_of_model, 2):
        maps = np.stack([mean_of_model[first], mean_of_model[second]])
        # Of two maps the mean correlation is the one between them.
        rows.append(
            (first, second, *_agreement_of_maps(maps, n_smallest), _mean_spearman(maps))
        )
    columns = ["first", "second", "kendall_w", "chance_w", "jaccard", "spearman"]
    table = pd.DataFrame(rows, columns=columns)
    return table[["first", "second", "kendall_w", "chance_w", "spearman", "jaccard"]]


def _agreement_of_maps(maps: np.ndarray, n_smallest: int) -> tuple[float, float, float]:
    """Return Kendall's W of maps (n_maps, n_regions), its mean by chance, and Jaccard.

    All are NaN for a single map.
    """
    n_maps = len(maps)
    if n_maps < 2:
        return np.nan, np.nan, np.nan
    kendall_w = (1 + (n_maps - 1) * _mean_spearman(maps)) / n_maps
    is_smallest = rankdata(maps, "min", axis=1) <= n_smallest
    jaccard = [
        (first & second).sum() / (first | second).sum()
        for first, second in combinations(is_smallest, 2)
    ]
    return kendall_w, 1 / n_maps, float(np.mean(jaccard))


def _mean_spearman(maps: np.ndarray) -> float:
    """Return the mean Spearman correlation over all pairs of maps."""
    upper = np.triu_indices(len(maps), 1)
    return float(np.corrcoef(rankdata(maps, axis=1))[upper].mean())


def common_regions(
    evaluation: Evaluation, n_smallest: int = 20
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the regions whose scale is among the smallest in several models.

    As in the supplement of Sim et al. 2024: regions among the `n_smallest` of the
    reference ("Exact", or else the first) and of at least one other model. Regions of
    most models come first, then those of smallest scale in the reference. Also the root
    mean square difference between each model's scales and the reference's, over
    measured regions.

    Parameters
    ----------
    evaluation : Evaluation
        With two or more models that have scales.
    n_smallest : int
        Number of regions of each model that count as smallest.

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
        If fewer than two models have scales.
    """
    names = models_with_scales(evaluation)
    check_at_least("n_smallest", n_smallest, 1)
    if len(names) < 2:
        raise ParameterError(
            "regions in common need two models with scales, got "
            f"{', '.join(names) or 'none'}."
        )
    reference = "Exact" if "Exact" in names else names[0]
    scales = pd.DataFrame()
    is_smallest = pd.DataFrame()
    for name in names:
        ranking = rank_regions(evaluation, name)
        scales[name] = ranking["scale"]
        is_smallest[name] = ranking["rank"] <= n_smallest
    table = scales.where(is_smallest)
    table.insert(0, "region", list(evaluation.cohort.region_names))
    table.insert(1, "n_models", is_smallest.sum(axis=1))
    table = table[is_smallest[reference] & (table["n_models"] > 1)]
    table = table.sort_values(["n_models", reference], ascending=[False, True])
    rmse = np.sqrt(scales.sub(scales[reference], axis=0).pow(2).mean())
    return table.reset_index(drop=True), rmse


def models_with_scales(evaluation: Evaluation) -> list[str]:
    """Return the models that have scales, without LSAP-R if it repeats another one."""
    names = list(evaluation.scales["model"].unique())
    # Models that differ in their kernel only are all shown, even if they agree.
    if evaluation.same_as.get("LSAP-R") in names:
        names.remove("LSAP-R")
    return names


def _select_scales(evaluation: Evaluation, model: str) -> ModelScales:
    """Return the scales of one model from the table of all."""
    table = evaluation.scales[evaluation.scales["model"] == model]
    is_mean = table["start"] == "mean"
    is_start = table["start"].str.isdigit()
    is_final = table["share"] == 1
    is_initial = table["share"] == 0
    n_rois = len(evaluation.cohort.region_names)

    def stack(is_selected: pd.Series) -> np.ndarray:
        return table.loc[is_selected, "scale"].to_numpy(float).reshape(-1, n_rois)

    return ModelScales(
        final=stack(is_mean & is_final),
        final_of_starts=stack(is_start & is_final),
        initial=stack(is_mean & is_initial),
    )


def _relative_scales(scales: np.ndarray, is_measured: np.ndarray) -> np.ndarray:
    """Divide scales (n_fits, n_rois) by the median of their fit."""
    median = np.median(scales[:, is_measured], axis=1, keepdims=True)
    return scales / np.maximum(median, MIN_MEDIAN_SCALE)


def _rank_within_fits(values: np.ndarray, is_measured: np.ndarray) -> np.ndarray:
    """Rank values (n_fits, n_rois) from 1; regions without a value come last."""
    known_values = np.where(is_measured, values, np.inf)
    return rankdata(known_values, "min", axis=1).astype(float)
