"""Rank regions by learned scale, effect or contrast, and compare maps of the brain.

Tables say what explains a ranking and how far it is replicated; two maps are compared
with rotations of the cortex as the null model.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import rankdata, spearmanr
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from brainlsap.arrays import PackedScans, unpack_connectomes_and_features
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.atlas.atlas_files import read_fsaverage5_mesh
from brainlsap.data import Cohort
from brainlsap.data.cohort import check_cohort_given
from brainlsap.data.measures import SUBCORTEX, get_measure_record
from brainlsap.evaluation.comparison import adjust_p_values
from brainlsap.evaluation.confounds import Deconfounder
from brainlsap.evaluation.cross_validation import make_region_ridge
from brainlsap.evaluation.models import NESTED_RIDGES
from brainlsap.evaluation.region_tests import (
    RegionTestValues,
    add_planted_regions,
    compute_permuted_statistics,
    make_region_test_values,
    standardize_statistics,
)
from brainlsap.evaluation.results import Evaluation, check_evaluation_given
from brainlsap.evaluation.splits import list_person_blocks, permute_row_indices
from brainlsap.exceptions import ParameterError, check_at_least, check_choice
from brainlsap.text import count_text

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

MIN_REGIONS = 5
"""Smallest number of common regions of two maps, also after rotation of one of them."""

MIN_USABLE_SHARE = 0.5
"""Smallest share of regions left by a usable rotation, and of usable rotations."""

N_HALVES, N_SCALE_HALVES = 20, 5
"""Numbers of divisions of the people for correlations of effects, and of scales."""


class ModelScales(NamedTuple):
    """Scales of one model as arrays (n_fits, n_rois)."""

    final_scales: np.ndarray
    """Learned scales of each fold, the mean over starts."""
    final_scales_of_starts: np.ndarray
    """Learned scales of each start of each fold; empty if starts were not kept."""
    initial_scales: np.ndarray
    """Initial scales of each fold; empty if they were not kept."""


def rank_regions(
    evaluation: Evaluation, model: str | None = None, *, by: str = "scale"
) -> pd.DataFrame:
    r"""Rank the measured regions by learned scale, by effect, or by contrast.

    **By scale** (Sim et al. 2024), smallest first. A scale is a property of a model,
    not of the classes: in simulated cohorts the effect finds planted regions better
    (`benchmarks/results/ranking.md`).

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
        first model that has scales. For `by="scale"` only.
    by : {"scale", "effect", "contrast"}
        "effect": how much classes differ in the region, largest first. "contrast": how
        much its difference stands out from that of the regions it is connected to. Both
        are of `evaluation.region_tests`, and described in
        :mod:`brainlsap.evaluation.region_tests`.

    Returns
    -------
    DataFrame
        One row per region of the atlas, in its order: model, region, rank (1 is the
        smallest; NaN where not measured; ties share the smallest), relative_scale,
        scale (median over folds), relative_low, relative_high, rank_low, rank_high (2.5
        to 97.5% over all folds and starts; of fewer than 20 the range), moved (share of
        the folds in which the scale changed by more than 5% of its initial value),
        measured; planted, of measured regions, if the cohort is simulated.

        By effect or contrast: region, rank, and the other columns of
        :func:`compare_regions`, of the feature in which the region comes first.

    Raises
    ------
    ParameterError
        If no model has scales, the chosen one has none, or regions were not compared.
    """
    check_evaluation_given(evaluation)
    check_choice("by", by, ("scale", "effect", "contrast"))
    if by != "scale":
        return _make_statistic_ranking_table(evaluation, by)
    model = _choose_scale_model_name(evaluation, model)
    return _make_scale_ranking_table(evaluation, model).copy()


@lru_cache(maxsize=8)  # hashed by identity; tables, figures and texts use it
def _make_scale_ranking_table(evaluation: Evaluation, model_name: str) -> pd.DataFrame:
    """Return the ranking by the learned scales of a model; only to be read."""
    measured_region_mask = np.asarray(evaluation.cohort.measured, dtype=bool)
    model_scales = _get_model_scales(evaluation, model_name)
    relative_scales = _compute_relative_scales(
        model_scales.final_scales, measured_region_mask
    )
    fit_relative_scales = relative_scales
    if len(model_scales.final_scales_of_starts):
        fit_relative_scales = _compute_relative_scales(
            model_scales.final_scales_of_starts, measured_region_mask
        )
    percentile_pair = (
        (2.5, 97.5) if len(fit_relative_scales) >= FEWEST_FITS else (0, 100)
    )
    mean_relative_scales = relative_scales.mean(axis=0)
    ranking_table = pd.DataFrame({"region": list(evaluation.cohort.region_names)})
    ranking_table.insert(0, "model", model_name)
    ranking_table["rank"] = _rank_within_fits(
        mean_relative_scales[None], measured_region_mask
    )[0]
    ranking_table["relative_scale"] = mean_relative_scales
    ranking_table["scale"] = np.median(model_scales.final_scales, axis=0)
    fit_ranks = _rank_within_fits(fit_relative_scales, measured_region_mask)
    for statistic_name, fit_value_matrix in (
        ("relative", fit_relative_scales),
        ("rank", fit_ranks),
    ):
        lower_bounds, upper_bounds = np.percentile(
            fit_value_matrix, percentile_pair, axis=0
        )
        ranking_table[f"{statistic_name}_low"] = lower_bounds
        ranking_table[f"{statistic_name}_high"] = upper_bounds
    ranking_table["moved"] = np.nan
    if len(model_scales.initial_scales):
        scale_changes = np.abs(model_scales.final_scales - model_scales.initial_scales)
        moved_scale_mask = (
            scale_changes > MIN_RELATIVE_CHANGE * model_scales.initial_scales
        )
        ranking_table["moved"] = moved_scale_mask.mean(axis=0)
    ranking_table.loc[~measured_region_mask, ranking_table.columns[2:]] = np.nan
    ranking_table["measured"] = measured_region_mask
    add_planted_regions(ranking_table, evaluation.cohort)
    return ranking_table


def _make_statistic_ranking_table(
    evaluation: Evaluation, statistic_name: str
) -> pd.DataFrame:
    """Rank regions by effect or contrast, one row a region in the atlas' order."""
    region_table = evaluation.region_tests
    if region_table is None:
        raise ParameterError(
            f"by={statistic_name!r} requires the table of compare_regions, which "
            "the evaluation does not contain. Add this table: "
            "dataclasses.replace(evaluation, region_tests=compare_regions("
            "cohort, evaluation))."
        )
    statistic_series = (
        region_table["effect"].abs()
        if statistic_name == "effect"
        else region_table["contrast_z"]
    )
    statistic_series = statistic_series.fillna(-np.inf)
    row_order = statistic_series.sort_values(ascending=False, kind="stable").index
    region_table = region_table.loc[row_order].drop_duplicates("region")
    region_table = region_table.drop(
        columns="rank", errors="ignore"
    )  # That is of a scale.
    rank_series = statistic_series[region_table.index].rank(
        method="min", ascending=False
    )
    region_table.insert(1, "rank", rank_series.where(region_table["measured"]))
    region_names = list(evaluation.cohort.region_names)
    return region_table.set_index("region").loc[region_names].reset_index()


def _choose_scale_model_name(evaluation: Evaluation, model_name: str | None) -> str:
    """Return the model whose scales are ranked; raise if it has none."""
    model_names = list(evaluation.scales["model"].unique())
    if model_name is None and NESTED_RIDGES[-1] in model_names:
        model_name = NESTED_RIDGES[-1]
    elif model_name is None:
        model_name = next(iter(model_names), evaluation.models[0])
    if model_name not in model_names:
        raise ParameterError(
            f"the model {model_name!r} has no regional scales, so it cannot rank "
            "regions; the models with regional scales are "
            f"{', '.join(model_names) or 'none'}. A ridge model has no scale per "
            "region if the data favour a model without a connectome or with one "
            "scale. LSAPRidgeClassifier('regions') always has a scale per region."
        )
    return model_name


def ranking_auc(ranking: pd.DataFrame) -> float:
    """Return the AUC with which ranks identify the planted regions; 1 is perfect.

    Parameters
    ----------
    ranking : DataFrame
        Of :func:`rank_regions`, with the column planted.

    Returns
    -------
    float
        Area under the ROC curve over measured regions.
    """
    measured_ranking_table = ranking[ranking["measured"]]
    auc = roc_auc_score(
        measured_ranking_table["planted"], -measured_ranking_table["rank"]
    )
    return float(auc)


def ranking_verdict(ranking: pd.DataFrame) -> str:
    """Return sentences that the tests of regions support.

    Parameters
    ----------
    ranking : DataFrame
        Of :func:`rank_regions` or :func:`add_region_tests`.

    Returns
    -------
    str
    """
    if "p_effect" not in ranking:
        return (
            "The regions were not tested by permutations. The order of the regions "
            "shows how a model uses each region. The order does not show that classes "
            "differ in a region."
        )
    n_permutations = int(ranking["n_permutations"].iloc[0])
    smallest_possible_p = 1 / (n_permutations + 1)
    if n_permutations < FEWEST_PERMUTATIONS:
        return (
            f"{n_permutations} permutations are too few, because the smallest "
            f"possible p-value is {smallest_possible_p:.2g}. At least "
            f"{FEWEST_PERMUTATIONS} permutations are needed."
        )
    level_text = f"family-wise p < {ALPHA}, {n_permutations} permutations"
    n_effects = int((ranking["p_effect"] < ALPHA).sum())
    n_contrasts = int((ranking["p_contrast"] < ALPHA).sum())
    if n_effects:
        n_measured_regions = ranking["measured"].sum()
        effect_text = (
            f"The classes differ in {n_effects} of {n_measured_regions} regions "
            f"({level_text})."
        )
    else:
        effect_text = (
            "No region was shown to differ between the classes (smallest "
            f"family-wise p = {ranking['p_effect'].min():.2f}, {n_permutations} "
            "permutations)."
        )
    if n_contrasts:
        contrast_text = (
            f"{count_text(n_contrasts, 'region', 'differ')} between the classes "
            "significantly more than the regions connected to them "
            f"({level_text}). This does not prove that the "
            "disease began in these regions."
        )
    else:
        contrast_text = (
            "No region differs between the classes significantly more than the "
            "regions connected to it."
        )
    rank_text = (
        "These tests do not test the order of the scales, which describe a model."
    )
    return f"{effect_text} {contrast_text} {rank_text}"


def add_region_tests(ranking: pd.DataFrame, region_tests: pd.DataFrame) -> pd.DataFrame:
    """Return a ranking with the p-values of its regions.

    Parameters
    ----------
    ranking : DataFrame
        Of :func:`rank_regions`.
    region_tests : DataFrame
        Of :func:`compare_regions`, with permutations.

    Returns
    -------
    DataFrame
        With p_effect, p_contrast (the smallest over features; they are family-wise over
        regions and features) and n_permutations.
    """
    region_groups = region_tests.groupby("region", sort=False)[
        ["p_effect", "p_contrast"]
    ]
    p_value_table = region_groups.min().assign(
        n_permutations=region_tests["n_permutations"].iloc[0]
    )
    return ranking.merge(p_value_table.reset_index(), "left", "region")


def fit_scale_table(
    cohort: Cohort, deconfounder: Deconfounder, model: Any = None
) -> pd.DataFrame:
    """Return the scale of every region in one ridge fitted to all scans.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    deconfounder : Deconfounder
        Steps that harmonise the features and regress covariates out.
    model : LSAPRidgeClassifier, optional
        Says how connectomes are prepared; by default they are used unchanged.

    Returns
    -------
    DataFrame
        region, fit_scale (posterior mean), fit_low and fit_high (its 95% interval);
        NaN for regions that were not measured.
    """
    check_cohort_given(cohort)
    return fit_scale_table_and_half_correlations(
        cohort, deconfounder, model, n_halves=0, random_state=0
    )[0]


def fit_scale_table_and_half_correlations(
    cohort: Cohort,
    deconfounder: Deconfounder,
    model: Any,
    *,
    n_halves: int,
    random_state: int,
) -> tuple[pd.DataFrame, dict[str, list[float]]]:
    """Return :func:`fit_scale_table`, and correlations of scales of halves.

    Divisions into halves are those of :func:`list_half_correlations_by_statistic`.
    Terms are computed once for all scans, and every half keeps the spread of log scales
    of the whole fit.
    """
    ridge_classifier = make_region_ridge(cohort, model)
    features = clone(deconfounder).fit_transform(cohort.features, cohort.table)
    scan_indices = np.arange(cohort.n_scans)
    X = PackedScans(cohort.connectomes, features, scan_indices, keeps_terms=True)
    ridge_classifier.fit(X, cohort.y, groups=cohort.groups)
    measured_region_mask = cohort.measured.any(axis=(0, 2))
    person_codes = pd.factorize(cohort.groups)[0]
    half_correlations = []
    for division_number in range(n_halves):
        rng = np.random.default_rng([random_state, division_number])
        first_half_scan_mask = _draw_first_half_mask(cohort, rng)[person_codes]
        half_scale_maps = []
        for half_scan_mask in (first_half_scan_mask, ~first_half_scan_mask):
            region_scales = ridge_classifier.refit_scales(
                X, cohort.y, cohort.groups, half_scan_mask
            )
            half_scale_maps.append(
                np.where(measured_region_mask, region_scales, np.nan)
            )
        half_correlations.append(_correlate_maps(*half_scale_maps))
    scale_bound_matrix = np.column_stack(
        [ridge_classifier.scales_, ridge_classifier.scales_interval_]
    )
    # Rounding may exceed the largest scale.
    scale_bound_matrix = scale_bound_matrix.clip(max=ridge_classifier.max_scale)
    scale_bound_matrix[~measured_region_mask] = np.nan
    scale_table = pd.DataFrame(
        scale_bound_matrix, columns=["fit_scale", "fit_low", "fit_high"]
    )
    scale_table.insert(0, "region", list(cohort.region_names))
    return scale_table, {"scale": half_correlations}


def replicability_table(
    cohort: Cohort,
    deconfounder: Deconfounder | None = None,
    model: Any = None,
    *,
    n_halves: int = N_HALVES,
    n_scale_halves: int = N_SCALE_HALVES,
    random_state: int = 0,
) -> pd.DataFrame:
    """Return the agreement of effect, contrast and scale between halves of the people.

    People are divided at random into two halves of the same classes, again and again.
    Each statistic is computed in either half, and the two maps are correlated by ranks
    (over regions and features). Steps and standardisation of features are fitted to all
    scans, because they do not depend on the labels. Scales of a half are the most
    probable ones at the spread of log scales that a fit to all scans has. A half has
    half of the people: maps of all people replicate better than that.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    deconfounder : Deconfounder, optional
        Steps that harmonise the features and regress covariates out; by default none.
    model : LSAPRidgeClassifier, optional
        As of :func:`fit_scale_table`.
    n_halves : int
        Divisions for effect and contrast, each of 0.1 s.
    n_scale_halves : int
        Divisions for scales. 0 leaves scales out.
    random_state : int
        Seed.

    Returns
    -------
    DataFrame
        statistic ("effect", "contrast", "scale"), n_halves, spearman (mean over
        divisions), spearman_low and spearman_high (its range).
    """
    check_cohort_given(cohort)
    check_at_least("n_halves", n_halves, 1)
    check_at_least("n_scale_halves", n_scale_halves, 0)
    deconfounder = deconfounder or Deconfounder()
    half_correlation_mappings = [
        list_half_correlations_by_statistic(
            cohort, deconfounder, range(n_halves), random_state
        )
    ]
    if n_scale_halves:
        _, scale_correlations_by_statistic = fit_scale_table_and_half_correlations(
            cohort,
            deconfounder,
            model,
            n_halves=n_scale_halves,
            random_state=random_state,
        )
        half_correlation_mappings.append(scale_correlations_by_statistic)
    return make_half_correlation_table(half_correlation_mappings)


def list_half_correlations_by_statistic(
    cohort: Cohort,
    deconfounder: Deconfounder,
    division_numbers: Iterable[int],
    random_state: int,
) -> dict[str, list[float]]:
    """Return the correlations of effects and of contrasts between halves of people.

    Each division of the people is drawn from its own number and the seed, so that
    divisions can be computed apart.
    """
    region_test_values = make_region_test_values(cohort, deconfounder)
    correlations_by_statistic: dict[str, list[float]] = {"effect": [], "contrast": []}
    for division_number in division_numbers:
        rng = np.random.default_rng([random_state, division_number])
        first_half_person_mask = _draw_first_half_mask(cohort, rng)
        statistic_maps_of_halves = [
            _compute_effects_and_contrasts(
                region_test_values.select_rows(
                    half_person_mask[region_test_values.person_codes]
                ),
                rng,
            )
            for half_person_mask in (first_half_person_mask, ~first_half_person_mask)
        ]
        for statistic_name, first_map, second_map in zip(
            correlations_by_statistic, *statistic_maps_of_halves, strict=True
        ):
            correlations_by_statistic[statistic_name].append(
                _correlate_maps(first_map, second_map)
            )
    return correlations_by_statistic


def make_half_correlation_table(
    half_correlation_mappings: Iterable[Mapping[str, Sequence[float]]],
) -> pd.DataFrame:
    """Return the table of :func:`replicability_table` from correlations of halves."""
    correlations_by_statistic: dict[str, list[float]] = {
        "effect": [],
        "contrast": [],
        "scale": [],
    }
    for task_correlations_by_statistic in half_correlation_mappings:
        for statistic_name, half_correlations in task_correlations_by_statistic.items():
            correlations_by_statistic[statistic_name] += half_correlations
    table_records = [
        (
            statistic_name,
            len(half_correlations),
            np.mean(half_correlations),
            min(half_correlations),
            max(half_correlations),
        )
        for statistic_name, half_correlations in correlations_by_statistic.items()
        if half_correlations
    ]
    column_names = [
        "statistic",
        "n_halves",
        "spearman",
        "spearman_low",
        "spearman_high",
    ]
    return pd.DataFrame(table_records, columns=column_names)


def _draw_first_half_mask(cohort: Cohort, rng: np.random.Generator) -> np.ndarray:
    """Return whether people are in the first half; each class is divided evenly."""
    person_label_series = cohort.table.groupby("participant", sort=False)[
        "label"
    ].first()
    shuffled_label_series = person_label_series.iloc[
        rng.permutation(len(person_label_series))
    ]
    first_half_person_mask = (
        shuffled_label_series.groupby(shuffled_label_series).cumcount() % 2 == 0
    )
    return first_half_person_mask.loc[person_label_series.index].to_numpy()


def _compute_effects_and_contrasts(
    region_test_values: RegionTestValues, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return effects, and contrasts standardised over permutations, of some people."""
    permuted_statistics = compute_permuted_statistics(
        region_test_values, FEWEST_PERMUTATIONS, rng
    )
    return permuted_statistics.effects[0], standardize_statistics(
        permuted_statistics.contrast_statistics
    )[0]


def _correlate_maps(first_map: np.ndarray, second_map: np.ndarray) -> float:
    """Return Spearman's correlation where both are known; 0 if one is constant."""
    known_map_pair = _stack_common_values(first_map, second_map)
    if known_map_pair.shape[1] < 3:
        return np.nan
    if (np.ptp(known_map_pair, axis=1) == 0).any():
        return 0.0
    return float(spearmanr(*known_map_pair).statistic)


def _stack_common_values(first_map: ArrayLike, second_map: ArrayLike) -> np.ndarray:
    """Return two maps (2, n_known) where both are known."""
    stacked_maps = np.stack([first_map, second_map]).astype(float)
    return stacked_maps[:, np.isfinite(stacked_maps).all(axis=0)]


def region_importance(
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
    groups: np.ndarray | None = None,
    n_repeats: int = 10,
    random_state: int = 0,
) -> pd.DataFrame:
    """Return the loss of accuracy when a region's features are permuted.

    All features of a region are permuted together among people with the same number of
    scans, all scans of a person at once; the connectome is not changed.

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
    class_labels = np.asarray(y).astype(str)
    scan_indices = np.arange(len(X))
    index_blocks = list_person_blocks(scan_indices if groups is None else groups)
    _, features = unpack_connectomes_and_features(X)
    permuted_X = np.array(X)
    _, permuted_features = unpack_connectomes_and_features(permuted_X)  # a view

    # scikit-learn's balanced accuracy takes as long as a prediction of few scans.
    _, class_codes, class_sizes = np.unique(
        class_labels, return_inverse=True, return_counts=True
    )

    def compute_accuracy() -> float:
        correct_scan_mask = model.predict(permuted_X).astype(str) == class_labels
        class_recalls = (
            np.bincount(class_codes, weights=correct_scan_mask) / class_sizes
        )
        return float(class_recalls.mean())

    full_accuracy = compute_accuracy()
    accuracy_losses = np.empty((features.shape[1], n_repeats))
    for region_index, repeat_index in np.ndindex(*accuracy_losses.shape):
        permuted_row_order = permute_row_indices(index_blocks, rng)
        permuted_features[:, region_index] = features[permuted_row_order, region_index]
        accuracy_losses[region_index, repeat_index] = full_accuracy - compute_accuracy()
        permuted_features[:, region_index] = features[:, region_index]
    loss_table = pd.DataFrame(accuracy_losses)
    return pd.DataFrame(
        {"importance": loss_table.mean(axis=1), "sd": loss_table.std(axis=1)}
    )


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
    node_degrees = np.array([(connectome > 0).sum(axis=1) for connectome in W])
    node_degrees -= self_weights > 0
    node_strengths = W.sum(axis=2, dtype=float) - self_weights
    property_table = pd.DataFrame(
        {
            "region": list(cohort.region_names),
            "degree": node_degrees.mean(axis=0),
            "strength": node_strengths.mean(axis=0),
        }
    )
    for feature_index, feature_name in enumerate(cohort.feature_names):
        feature_table = pd.DataFrame(cohort.features[..., feature_index])
        class_deviation_table = feature_table - feature_table.groupby(
            cohort.y
        ).transform("mean")
        property_table[f"variance_{feature_name}"] = class_deviation_table.var(ddof=0)
        if find_subcortex_measure_name(cohort, feature_name):  # in another unit
            property_table.loc[~cohort.atlas.cortex, f"variance_{feature_name}"] = (
                np.nan
            )
    return property_table


def find_subcortex_measure_name(cohort: Any, feature: str) -> str:
    """Return the measure that replaces a surface feature in the subcortex, or ""."""
    subcortex_policy = cohort.provenance.get("subcortex", "absent")
    return (
        SUBCORTEX.get(subcortex_policy, "")
        if get_measure_record(feature).is_on_surface
        else ""
    )


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
    correlation_records = []
    for property_name, property_series in properties.items():
        known_map_pair = _stack_common_values(
            ranking["relative_scale"], property_series
        )
        n_regions = known_map_pair.shape[1]
        spearman_rho = p = np.nan
        if n_regions > 3 and (np.ptp(known_map_pair, axis=1) > 0).all():
            spearman_rho, p = spearmanr(*known_map_pair)
        correlation_records.append(
            (property_name, n_regions, float(spearman_rho), float(p))
        )
    column_names = ["property", "n_regions", "spearman", "p_holm"]
    correlation_table = pd.DataFrame(correlation_records, columns=column_names)
    correlation_table["p_holm"] = adjust_p_values(correlation_table["p_holm"])
    strong_correlation_mask = correlation_table["spearman"].abs() >= STRONG_CORRELATION
    correlation_table["flagged"] = strong_correlation_mask & (
        correlation_table["p_holm"] < ALPHA
    )
    return correlation_table


def agreement_table(evaluation: Evaluation, n_smallest: int = 10) -> pd.DataFrame:
    """Return the agreement of the folds of each model, and of the models.

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
    measured_region_mask = np.asarray(evaluation.cohort.measured, dtype=bool)
    relative_scales_by_model = {}
    for model_name in list_models_with_scales(evaluation):
        final_scales = _get_model_scales(evaluation, model_name).final_scales
        relative_scales_by_model[model_name] = _compute_relative_scales(
            final_scales, measured_region_mask
        )[:, measured_region_mask]
    table_records = [
        (
            model_name,
            model_name,
            *_compute_concordance_chance_and_jaccard(scale_map_matrix, n_smallest),
            np.nan,
        )
        for model_name, scale_map_matrix in relative_scales_by_model.items()
    ]
    mean_scales_by_model = {
        model_name: scale_map_matrix.mean(axis=0)
        for model_name, scale_map_matrix in relative_scales_by_model.items()
    }
    for first_model_name, second_model_name in combinations(mean_scales_by_model, 2):
        scale_map_matrix = np.stack(
            [
                mean_scales_by_model[first_model_name],
                mean_scales_by_model[second_model_name],
            ]
        )
        # Of two maps the mean correlation is the one between them.
        table_records.append(
            (
                first_model_name,
                second_model_name,
                *_compute_concordance_chance_and_jaccard(scale_map_matrix, n_smallest),
                _compute_mean_spearman(scale_map_matrix),
            )
        )
    column_names = ["first", "second", "kendall_w", "chance_w", "jaccard", "spearman"]
    model_agreement_table = pd.DataFrame(table_records, columns=column_names)
    return model_agreement_table[
        ["first", "second", "kendall_w", "chance_w", "spearman", "jaccard"]
    ]


def _compute_concordance_chance_and_jaccard(
    scale_map_matrix: np.ndarray, n_smallest: int
) -> tuple[float, float, float]:
    """Return Kendall's W of maps (n_maps, n_regions), its mean by chance, and Jaccard.

    All are NaN for a single map.
    """
    n_maps = len(scale_map_matrix)
    if n_maps < 2:
        return np.nan, np.nan, np.nan
    kendall_w = (1 + (n_maps - 1) * _compute_mean_spearman(scale_map_matrix)) / n_maps
    smallest_region_masks = rankdata(scale_map_matrix, "min", axis=1) <= n_smallest
    jaccard_indices = [
        (first_mask & second_mask).sum() / (first_mask | second_mask).sum()
        for first_mask, second_mask in combinations(smallest_region_masks, 2)
    ]
    return kendall_w, 1 / n_maps, float(np.mean(jaccard_indices))


def _compute_mean_spearman(scale_map_matrix: np.ndarray) -> float:
    """Return the mean Spearman correlation over all pairs of maps."""
    upper_indices = np.triu_indices(len(scale_map_matrix), 1)
    return float(np.corrcoef(rankdata(scale_map_matrix, axis=1))[upper_indices].mean())


def common_regions(
    evaluation: Evaluation, n_smallest: int = 20
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the regions whose scales are among the smallest in several models.

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
    model_names = list_models_with_scales(evaluation)
    check_at_least("n_smallest", n_smallest, 1)
    if len(model_names) < 2:
        raise ParameterError(
            "common regions need at least two models with regional scales; the models "
            f"with regional scales are {', '.join(model_names) or 'none'}."
        )
    reference_model_name = "Exact" if "Exact" in model_names else model_names[0]
    scale_table = pd.DataFrame()
    smallest_region_table = pd.DataFrame()
    for model_name in model_names:
        ranking = rank_regions(evaluation, model_name)
        scale_table[model_name] = ranking["scale"]
        smallest_region_table[model_name] = ranking["rank"] <= n_smallest
    common_region_table = scale_table.where(smallest_region_table)
    common_region_table.insert(0, "region", list(evaluation.cohort.region_names))
    common_region_table.insert(1, "n_models", smallest_region_table.sum(axis=1))
    common_region_table = common_region_table[
        smallest_region_table[reference_model_name]
        & (common_region_table["n_models"] > 1)
    ]
    common_region_table = common_region_table.sort_values(
        ["n_models", reference_model_name], ascending=[False, True]
    )
    model_rmse_series = np.sqrt(
        scale_table.sub(scale_table[reference_model_name], axis=0).pow(2).mean()
    )
    return common_region_table.reset_index(drop=True), model_rmse_series


def list_models_with_scales(evaluation: Evaluation) -> list[str]:
    """Return the models that have scales, without LSAP-R if it repeats another one."""
    model_names = list(evaluation.scales["model"].unique())
    # Models that differ in their kernel only are all shown, even if they agree.
    if evaluation.twin_of_model.get("LSAP-R") not in model_names:
        return model_names
    return [model_name for model_name in model_names if model_name != "LSAP-R"]


def _get_model_scales(evaluation: Evaluation, model_name: str) -> ModelScales:
    """Return the scales of one model from the table of all."""
    model_scale_table = evaluation.scales[evaluation.scales["model"] == model_name]
    mean_row_mask = model_scale_table["start"] == "mean"
    start_row_mask = model_scale_table["start"].str.isdigit()
    final_row_mask = model_scale_table["share"] == 1
    initial_row_mask = model_scale_table["share"] == 0
    n_rois = len(evaluation.cohort.region_names)

    def stack_scales(selected_row_mask: pd.Series) -> np.ndarray:
        return (
            model_scale_table.loc[selected_row_mask, "scale"]
            .to_numpy(float)
            .reshape(-1, n_rois)
        )

    return ModelScales(
        final_scales=stack_scales(mean_row_mask & final_row_mask),
        final_scales_of_starts=stack_scales(start_row_mask & final_row_mask),
        initial_scales=stack_scales(mean_row_mask & initial_row_mask),
    )


def _compute_relative_scales(
    fit_scale_matrix: np.ndarray, measured_region_mask: np.ndarray
) -> np.ndarray:
    """Divide scales (n_fits, n_rois) by the median of their fit."""
    fit_medians = np.median(
        fit_scale_matrix[:, measured_region_mask], axis=1, keepdims=True
    )
    return fit_scale_matrix / np.maximum(fit_medians, MIN_MEDIAN_SCALE)


def _rank_within_fits(
    fit_value_matrix: np.ndarray, measured_region_mask: np.ndarray
) -> np.ndarray:
    """Rank values (n_fits, n_rois) from 1; regions without a value come last."""
    filled_matrix = np.where(measured_region_mask, fit_value_matrix, np.inf)
    return rankdata(filled_matrix, "min", axis=1).astype(float)


class SpinTest(NamedTuple):
    """The correlation of two maps, and its p-value among rotated maps.

    Parameters
    ----------
    correlation : float
        Spearman's, over the regions that both maps have.
    null_correlations : array of shape (n_spins,)
        The same with the first map rotated; NaN where the rotated map shares too few
        regions with the second one, or does not vary there.
    p_value : float
        Two-sided, among the rotations that are not NaN; the unrotated map counts as one
        of them.
    n_regions : int
        Regions compared.
    n_rotations : int
        Rotations that are not NaN.
    """

    correlation: float
    null_correlations: np.ndarray
    p_value: float
    n_regions: int
    n_rotations: int


@threadpool_limits.wrap(limits=1)
def spin_test(
    first: pd.Series | Mapping[str, float],
    second: pd.Series | Mapping[str, float],
    atlas: Atlas | str | Path,
    n_spins: int = 1000,
    random_state: int = 0,
) -> SpinTest:
    """Test the correlation of two maps of regions by rotations of the cortex.

    Neighbouring regions are alike, so that the usual p-value of a correlation is too
    small. Here the sphere of fsaverage5 is rotated at random, the right hemisphere by
    the mirrored rotation, and every region takes the mean of the vertices that come to
    lie on it (Alexander-Bloch et al. 2018, NeuroImage 178:540). Subcortical regions,
    which have no surface, are permuted among themselves.

    If maps have few regions, or regions of one lobe only, most rotations move them to
    places where the other map has no value. A rotation counts if it leaves at least
    half of the regions, and five; the others count neither as strong nor as weak. If
    more than half of all rotations leave fewer, the test is refused, since the few that
    remain hardly move the map.

    Parameters
    ----------
    first, second : Series or mapping of str to float
        Values by region name; regions in one of them only, and NaN, do not count.
    atlas : Atlas, or what :func:`.load_atlas` takes
        With vertex labels.
    n_spins : int
        Rotations.
    random_state : int
        Seed.

    Returns
    -------
    SpinTest

    Raises
    ------
    ParameterError
        If the maps have fewer than five regions in common, or do not vary there, or if
        most rotations leave too few of them.
    FileFormatError
        If the atlas has no surface, or nilearn's sphere is missing.
    """
    check_at_least("n_spins", n_spins, 1)
    atlas = load_atlas(atlas)
    first_map = _align_with_atlas(first, atlas)
    second_map = _align_with_atlas(second, atlas)
    common_region_mask = np.isfinite(first_map) & np.isfinite(second_map)
    observed_correlation = _correlate_ranks(
        first_map[common_region_mask], second_map[common_region_mask]
    )
    n_regions = int(common_region_mask.sum())
    if n_regions < MIN_REGIONS or not np.isfinite(observed_correlation):
        raise ParameterError(
            "both maps must have values in at least five common regions, and these "
            f"values must not all be the same; got {n_regions} common regions."
        )
    first_map[~common_region_mask] = second_map[~common_region_mask] = np.nan
    null_correlations = _correlate_rotated_maps(
        first_map, second_map, atlas, n_spins, random_state
    )
    n_rotations = int(np.isfinite(null_correlations).sum())
    n_as_strong_nulls = int(
        (np.abs(null_correlations) >= abs(observed_correlation) - 1e-12).sum()
    )
    p_value = (1 + n_as_strong_nulls) / (1 + n_rotations)
    return SpinTest(
        observed_correlation, null_correlations, p_value, n_regions, n_rotations
    )


def _align_with_atlas(
    value_series_or_mapping: pd.Series | Mapping[str, float], atlas: Atlas
) -> np.ndarray:
    """Return a map in the order of the atlas; NaN for regions that it lacks."""
    value_by_region = dict(value_series_or_mapping)
    region_map = np.full(len(atlas), np.nan)
    region_map[atlas.match(list(value_by_region))] = list(value_by_region.values())
    return region_map


class _SpinHemisphere:
    """A hemisphere of fsaverage5's sphere with the labels of an atlas."""

    def __init__(self, atlas: Atlas, hemisphere: str) -> None:
        from scipy.spatial import cKDTree

        vertices, _ = read_fsaverage5_mesh(hemisphere, "sphere")
        self.vertices = vertices / np.linalg.norm(vertices, axis=1, keepdims=True)
        self.vertex_tree = cKDTree(self.vertices)
        self.vertex_labels = atlas.vertex_labels(hemisphere)
        self.n_regions = len(atlas)
        # The right hemisphere turns as the mirror image of the left one.
        self.mirror_matrix = np.diag([-1.0 if hemisphere == "R" else 1.0, 1.0, 1.0])

    def write_rotated_means(
        self, spun_map: np.ndarray, unspun_map: np.ndarray, rotation_matrix: np.ndarray
    ) -> None:
        """Write the rotated map's mean over each region of this side to `spun_map`."""
        mirrored_rotation = self.mirror_matrix @ rotation_matrix @ self.mirror_matrix
        _, nearest_vertex_indices = self.vertex_tree.query(
            self.vertices @ mirrored_rotation
        )
        # Label -1, of vertices without a region, takes the NaN at the end.
        vertex_values = np.append(unspun_map, np.nan)[
            self.vertex_labels[nearest_vertex_indices]
        ]
        valid_vertex_mask = (self.vertex_labels >= 0) & np.isfinite(vertex_values)
        vertex_region_codes = self.vertex_labels[valid_vertex_mask]
        region_vertex_counts = np.bincount(
            vertex_region_codes, minlength=self.n_regions
        )
        region_value_sums = np.bincount(
            vertex_region_codes,
            vertex_values[valid_vertex_mask],
            minlength=self.n_regions,
        )
        np.divide(
            region_value_sums,
            region_vertex_counts,
            out=spun_map,
            where=region_vertex_counts > 0,
        )


def _correlate_rotated_maps(
    first_map: np.ndarray,
    second_map: np.ndarray,
    atlas: Atlas,
    n_spins: int,
    random_state: int,
) -> np.ndarray:
    """Return the correlations (n_spins,) of the rotated first map with the second.

    A rotation that leaves too few regions is NaN; an error is raised as soon as more
    than half of the rotations do.
    """
    from scipy.spatial.transform import Rotation

    common_region_mask = np.isfinite(first_map)
    n_regions = int(common_region_mask.sum())
    min_shared_regions = max(MIN_REGIONS, int(np.ceil(MIN_USABLE_SHARE * n_regions)))
    spin_hemispheres = [_SpinHemisphere(atlas, side_letter) for side_letter in "LR"]
    subcortex_indices = np.flatnonzero(~atlas.cortex & common_region_mask)
    rng = np.random.default_rng(random_state)
    spun_correlations = np.full(n_spins, np.nan)
    n_unusable_rotations = 0
    for spin_index in range(n_spins):
        rotation_matrix = Rotation.random(random_state=rng).as_matrix()
        spun_map = np.full_like(first_map, np.nan)
        for spin_hemisphere in spin_hemispheres:
            spin_hemisphere.write_rotated_means(spun_map, first_map, rotation_matrix)
        spun_map[subcortex_indices] = first_map[rng.permutation(subcortex_indices)]
        n_shared_regions = np.count_nonzero(
            np.isfinite(spun_map) & np.isfinite(second_map)
        )
        if n_shared_regions >= min_shared_regions:
            spun_correlations[spin_index] = _correlate_ranks(spun_map, second_map)
        n_unusable_rotations += np.isnan(spun_correlations[spin_index])
        if n_unusable_rotations > (1 - MIN_USABLE_SHARE) * n_spins:
            raise ParameterError(
                f"{n_unusable_rotations} of the first {spin_index + 1} rotations leave "
                f"fewer than {min_shared_regions} of the {n_regions} regions that have "
                "a value in both maps, which are too few for a comparison. Give maps "
                "that cover more of the cortex."
            )
    return spun_correlations


def _correlate_ranks(first_map: np.ndarray, second_map: np.ndarray) -> float:
    """Return Spearman's correlation; NaN if a map is constant or too short."""
    map_table = pd.DataFrame({"first": first_map, "second": second_map})
    return float(map_table.corr("spearman", min_periods=3).iloc[0, 1])
