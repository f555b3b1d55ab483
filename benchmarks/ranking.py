"""Which regions are found by effect, by contrast, and by the learned scale.

`settings`: cohorts with planted regions, 100 seeds each: what the tests of effect and
contrast name at family-wise p < 0.05 (200 permutations).
`maps`: the AUC of the planted regions in the first 20 of these seeds by size of the
effect, by contrast, and by the scale of one ridge with a scale per region fitted to all
scans (`LSAPRidgeClassifier("regions", n_draws=0)`).
`null`: 400 cohorts without an effect for every design: in how many either test names a
region.
`everywhere`: 400 cohorts whose classes differ alike in all regions: in how many the
contrast names one.
`intervals`: how many of the 95% intervals of effect and contrast miss the truth, in 400
cohorts for every design.
`prediction`: how well a class that depends on age alone is predicted after age is
removed as a line or as a spline, in 30 cohorts.

    python benchmarks/ranking.py settings maps null everywhere intervals prediction
        [--seeds 100] [--cohorts 400] [--keep FOLDER]

FCON1000 cohorts: thickness of 148 cortical regions of people drawn from 1,078, half of
them healthy and half ill by lot. The ill differ by d standard deviations in the mean of
the planted regions; the difference is exp(-tL) of 5 random regions, with L the
normalised Laplacian of the template connectome. The tests use the same connectome.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from benchmark_cohort import make_benchmark_cohort, normalized_operator
from joblib import Memory, Parallel, delayed
from measuring import SHARED, keep, table
from scipy.linalg import expm
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from brainlsap import LSAPRidgeClassifier, load_atlas
from brainlsap.data import Cohort, load_cohort
from brainlsap.evaluation import Deconfounder
from brainlsap.evaluation.comparison import wilson_interval
from brainlsap.evaluation.confounds import _KNOT_QUANTILES, compute_cubic_curve
from brainlsap.evaluation.cross_validation import configure_model_for_cohort
from brainlsap.evaluation.region_tests import (
    RegionTestValues,
    _make_association_table,
    compute_contrast_p_values,
    compute_family_wise_p_values,
    compute_permuted_statistics,
    make_region_test_values,
    standardize_statistics,
)
from brainlsap.evaluation.splits import list_person_blocks, permute_labels
from brainlsap.simulation import make_cohort

N_PERMUTATIONS, ALPHA = 200, 0.05
N_SEED_REGIONS = 5
# Cohorts whose counts are kept together.
AT_ONCE = 50
TEMPLATE = "tract_mni_destrieux/expected/count_radial4_sym_zerodiag.csv"


class RegionStatistics(NamedTuple):
    """Statistics of every region and feature, each (n_values,)."""

    effect: np.ndarray
    contrast: np.ndarray
    p_effect: np.ndarray
    p_contrast: np.ndarray
    p_prototype: np.ndarray
    """Of the contrast as the prototype tested it: no region differs."""


def compute_statistics(
    cohort: Cohort, seed: int, steps: Deconfounder | None = None
) -> RegionStatistics:
    """Return what compare_regions computes, without intervals and differences."""
    prepared = make_region_test_values(cohort, steps or Deconfounder())
    rng = np.random.default_rng(seed)
    statistics = compute_permuted_statistics(prepared, N_PERMUTATIONS, rng)
    z = standardize_statistics(statistics.contrast_statistics)
    return RegionStatistics(
        effect=statistics.effects[0],
        contrast=z[0],
        p_effect=compute_family_wise_p_values(statistics.effects),
        p_contrast=compute_contrast_p_values(statistics),
        p_prototype=compute_family_wise_p_values(z),
    )


@cache
def load_thickness() -> Cohort:
    """Return thickness of 1,078 people in 148 regions, and the template connectome."""
    cohort = load_cohort(
        SHARED / "fcon1000_destrieux",
        label="sex",
        connectome=SHARED / TEMPLATE,
        row_order="mrtrix",
    )
    atlas = load_atlas("destrieux160")
    cortex = np.flatnonzero(atlas.cortex)
    W = cohort.connectomes[0][np.ix_(cortex, cortex)]
    names = [atlas.names[index] for index in cortex]
    return Cohort(
        connectomes=np.broadcast_to(W, (cohort.n_scans, *W.shape)),
        features=cohort.features[:, cortex],
        table=cohort.table,
        atlas=atlas.from_names(names, name="destrieux148"),
        feature_names=cohort.feature_names,
        classes=cohort.classes,
    )


def draw_people(n_people: int, rng: np.random.Generator, n_classes: int = 2) -> Cohort:
    """Return people of FCON1000 in classes by lot."""
    cohort = load_thickness()
    cohort = cohort.select(np.sort(rng.permutation(cohort.n_scans)[:n_people]))
    classes = ("CN", "AD", "other")[:n_classes]
    labels = rng.permutation(np.resize(classes, n_people))
    return replace(
        cohort,
        table=cohort.table.assign(label=labels),
        classes=classes,
        classes_ordered=n_classes == 2,
        label_name="diagnosis",
    )


def plant(
    n_people: int, d: float, time: float, seed: int, *, everywhere: float = 0.0
) -> Cohort:
    """Return people of FCON1000, half of them ill; `truth` has the planted regions."""
    rng = np.random.default_rng([seed, 11])
    cohort = draw_people(n_people, rng)
    n_rois = cohort.n_rois
    is_seed = np.isin(np.arange(n_rois), rng.permutation(n_rois)[:N_SEED_REGIONS])
    operator = normalized_operator(cohort.connectomes[0].astype(float))
    pattern = expm(-time * operator) @ is_seed
    pattern = d * pattern / pattern[is_seed].mean() + everywhere
    # A region that one person lacks still has an effect in the others.
    sd = np.nanstd(cohort.features, axis=0)
    is_ill = (cohort.y == "AD")[:, None, None]
    features = cohort.features - is_ill * pattern[:, None] * sd
    truth = {"region": cohort.region_names, "seed": is_seed, "effect": -pattern}
    return replace(cohort, features=features, truth=pd.DataFrame(truth))


def plant_own(case: str, seed: int) -> Cohort:
    """Return a noisy simulated cohort of 150 people with connectomes of their own."""
    return make_benchmark_cohort(case, noise="high", n_people=150, random_state=seed)


SETTINGS: dict[str, Callable[[int], Cohort]] = {
    "FCON1000 n=200 d=0.6 t=1": lambda seed: plant(200, 0.6, 1, seed),
    "FCON1000 n=200 d=0.6 t=2": lambda seed: plant(200, 0.6, 2, seed),
    "FCON1000 n=400 d=1.5 t=1": lambda seed: plant(400, 1.5, 1, seed),
    "FCON1000 n=400 d=1.5 t=2": lambda seed: plant(400, 1.5, 2, seed),
    "the same, t=1, and 1.0 s.d. in all regions": lambda seed: plant(
        400, 1.5, 1, seed, everywhere=1.0
    ),
    "1.0 s.d. in all regions only, n=400": lambda seed: plant(
        400, 0.0, 1, seed, everywhere=1.0
    ),
    "normalized n=150": partial(plant_own, "normalized"),
    "combinatorial n=150": partial(plant_own, "combinatorial"),
}

TEST_TITLES = (
    "test of the effect",
    "test of the contrast",
    "contrast, as by the prototype",
)
# Cohorts of a setting whose scales are learned, which takes longest.
N_MAPS = 20
# (seeds named, other regions named, share of cohorts with any other) of the prototype
# of these tests, on 20 other seeds; NaN: no region is planted. Its contrast had one
# null: no region differs.
N_PROTOTYPE_SEEDS = 20
PROTOTYPE = {
    "effect": (
        *((0.64, 0.25, 0.20), (0.61, 1.6, 0.70), (1, 6.1, 1), (1, 24, 1)),
        *((1, 143, 1), (np.nan, 148, 1), (1, 91, 1), (0.98, 71, 1)),
    ),
    "prototype": (
        *((0.63, 0, 0), (0.31, 0.15, 0.15), (1, 0.20, 0.15), (0.98, 2.35, 0.90)),
        *((1, 0.10, 0.10), (np.nan, 0, 0), (0.80, 0.25, 0.25), (0.69, 0.05, 0.05)),
    ),
}


def learn_scales(cohort: Cohort) -> np.ndarray:
    """Return the most probable scale of each region in one fit to all scans."""
    model = configure_model_for_cohort(
        LSAPRidgeClassifier("regions", n_draws=0), cohort
    )
    return model.fit(cohort.to_array(), cohort.y, groups=cohort.groups).scales_


def has_planted_regions(cohort: Cohort) -> bool:
    """Return whether some regions differ more than others."""
    return bool(cohort.truth["effect"].round(9).nunique() > 1)


def measure_tests(title: str, seed: int) -> dict[str, float]:
    """Return what the tests name in one cohort of a setting.

    A setting without planted regions has no shares of seeds.
    """
    cohort = SETTINGS[title](seed)
    has_seeds = has_planted_regions(cohort)
    is_planted = cohort.truth["seed"].to_numpy(bool) & has_seeds
    statistics = compute_statistics(cohort, seed)
    row: dict[str, float] = {}
    for name in ("effect", "contrast", "prototype"):
        is_named = getattr(statistics, f"p_{name}") < ALPHA
        row[f"{name} seeds"] = is_named[is_planted].mean() if has_seeds else np.nan
        row[f"{name} others"] = is_named[~is_planted].sum()
        row[f"{name} any"] = is_named[~is_planted].any()
    return row


def measure_maps(title: str, seed: int) -> dict[str, float]:
    """Return the AUC of the planted regions in one cohort of a setting."""
    cohort = SETTINGS[title](seed)
    if not has_planted_regions(cohort):
        return {}
    statistics = compute_statistics(cohort, seed)
    maps = {
        "effect": statistics.effect,
        "contrast": statistics.contrast,
        "scale": -learn_scales(cohort),
    }
    is_seed = cohort.truth["seed"].to_numpy(bool)
    # Regions without neighbours have no contrast, and come last.
    return {
        name: roc_auc_score(is_seed, pd.Series(values).rank(na_option="top"))
        for name, values in maps.items()
    }


def measure_in_process(
    measure: str, title: str, seed: int, keep: str | None
) -> dict[str, float]:
    """Measure one seed in any process: a cached function of a script is not sent."""
    import ranking

    return Memory(keep, verbose=0).cache(getattr(ranking, measure))(title, seed)


def measure_seeds(
    measure: str, title: str, n_seeds: int, options: argparse.Namespace
) -> pd.DataFrame:
    """Return one row for every seed of a setting."""
    rows = Parallel(options.jobs)(
        delayed(measure_in_process)(measure, title, seed, options.keep)
        for seed in range(n_seeds)
    )
    return pd.DataFrame(rows).astype(float)


def describe(values: pd.Series) -> str:
    """Return mean and standard error as text."""
    if values.isna().all():
        return "-"
    return f"{values.mean():.2f} ({values.sem():.2f})"


def compare_with_prototype(measured: pd.DataFrame, name: str, index: int) -> list[str]:
    """Return the figures that are further than 2 standard errors from the prototype.

    The error of the prototype is that of a mean over its 20 seeds, and at least that of
    a share of 1 in 20.
    """
    deviating = []
    labels = (f"{name} seeds", f"{name} others", f"{name} any")
    for label, expected in zip(labels, PROTOTYPE[name][index], strict=True):
        values = measured[label]
        floor = 0.05 / np.sqrt(2)
        prototype_error = max(values.std() / np.sqrt(N_PROTOTYPE_SEEDS), floor)
        error = np.hypot(values.sem(), prototype_error)
        if abs(values.mean() - expected) > 2 * error:
            deviating.append(f"{label} {values.mean():.2f} against {expected}")
    return deviating


def settings(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Say what the tests name."""
    test_rows, deviating = [], []
    for index, title in enumerate(SETTINGS):
        measured = measure_seeds("measure_tests", title, options.seeds, options)
        row = [title]
        for name in ("effect", "contrast", "prototype"):
            columns = [f"{name} {part}" for part in ("seeds", "others", "any")]
            row.append(" / ".join(describe(measured[column]) for column in columns))
        for name in PROTOTYPE:
            texts = compare_with_prototype(measured, name, index)
            deviating += [f"{title}: {text}" for text in texts]
        test_rows.append(row)
        print(*row, sep=" | ", flush=True)
    head = ("setting", *TEST_TITLES)
    expected = np.array(list(PROTOTYPE.values()), dtype=float)
    n_figures = np.isfinite(expected).sum()
    note = (
        "Share of planted regions named / other regions named / share of cohorts with "
        f"any other region named, mean (standard error) over {options.seeds} seeds. "
        "The prototype compared contrasts with those of cohorts in which no region "
        "differs. The present test also compares them with those of cohorts in which "
        "all regions differ by the same number of standard deviations, or by the same "
        "number of mm. Further than two standard errors from the prototype, which was "
        f"measured on {N_PROTOTYPE_SEEDS} other seeds: "
        f"{'; '.join(deviating) or 'none'}. By chance, 1 of 20 figures lies further, "
        f"and {n_figures} were compared."
    )
    yield "What the tests name", f"{table(head, test_rows)}\n\n{note}"


def maps(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Say how well planted regions are ordered."""
    rows = []
    for title in SETTINGS:
        n_seeds = min(N_MAPS, options.seeds)
        measured = measure_seeds("measure_maps", title, n_seeds, options)
        if measured.empty:
            continue
        aucs = [describe(measured[name]) for name in ("effect", "contrast", "scale")]
        difference = describe(measured["effect"] - measured["scale"])
        rows.append([title, *aucs, difference])
        print(*rows[-1], sep=" | ", flush=True)
    head = ("setting", "effect", "contrast", "scale", "effect minus scale")
    yield "AUC of the planted regions", table(head, rows)


def permute_people(cohort: Cohort, rng: np.random.Generator) -> Cohort:
    """Return the cohort with labels permuted between people."""
    labels = permute_labels(cohort.y, list_person_blocks(cohort.groups), rng)
    return replace(cohort, table=cohort.table.assign(label=labels))


@cache
def simulate(index: int, *features: str) -> Cohort:
    """Return 60 people with one to three scans, and own connectomes, without effect."""
    feature = features or ("fdg",)
    return make_cohort(
        60, atlas="desikan82", feature=feature, effect=0.0, random_state=index
    )


@cache
def simulate_own(index: int) -> Cohort:
    """Return 150 people, 160 regions, and own connectomes, without effect."""
    return make_benchmark_cohort("permuted", n_people=150, random_state=index)


def draw_repeated(seed: int, *features: str) -> Cohort:
    """Return one of 20 simulated cohorts with its labels permuted between people."""
    rng = np.random.default_rng([seed, 1])
    return permute_people(simulate(seed % 20, *features), rng)


def draw_converters(seed: int) -> Cohort:
    """Return repeated scans; the last visit of a third of people is a stage later."""
    cohort = draw_repeated(seed)
    rng = np.random.default_rng([seed, 2])
    people = cohort.table["participant"]
    converting = people.isin([name for name in people.unique() if rng.random() < 1 / 3])
    is_last = ~people.duplicated(keep="last") & people.duplicated(keep=False)
    stages = list(cohort.classes)
    later = dict(zip(stages, [*stages[1:], stages[-1]], strict=True))
    label = cohort.table["label"]
    label = label.mask(converting & is_last, label.map(later))
    return replace(cohort, table=cohort.table.assign(label=label))


def draw_related(seed: int) -> Cohort:
    """Return people of FCON1000 whose class is likelier in the old."""
    rng = np.random.default_rng([seed, 3])
    cohort = draw_people(200, rng)
    age = pd.to_numeric(cohort.table["age"])
    is_old = age + rng.normal(0, 5, len(age)) > age.median()
    label = np.where(is_old, "AD", "CN")
    return replace(cohort, table=cohort.table.assign(label=label))


def draw_related_linearly(seed: int) -> Cohort:
    """Return the same people with features that depend on age and eTIV linearly alone.

    The residuals of a linear regression are exchanged between people.
    """
    cohort = draw_related(seed)
    covariates = cohort.table[["age", "eTIV"]].apply(pd.to_numeric).to_numpy(float)
    design = np.column_stack([np.ones(len(covariates)), covariates])
    design /= design.std(axis=0).clip(1)
    fitted = design @ np.linalg.lstsq(design, cohort.features[..., 0], rcond=None)[0]
    order = np.random.default_rng([seed, 7]).permutation(cohort.n_scans)
    residuals = cohort.features[..., 0] - fitted
    return replace(cohort, features=(fitted + residuals[order])[..., None])


def draw_sites(seed: int) -> Cohort:
    """Return simulated people (one scan each) whose class is commoner at two sites."""
    cohort = simulate(seed % 20)
    cohort = cohort.select(~cohort.table["participant"].duplicated().to_numpy())
    rng = np.random.default_rng([seed, 4])
    is_late = cohort.table["site"].isin(["site-1", "site-2"])
    is_ill = rng.random(cohort.n_scans) < np.where(is_late, 0.7, 0.3)
    table = cohort.table.assign(label=np.where(is_ill, "AD", "CN"))
    return replace(cohort, table=table, classes=("CN", "AD"))


def draw_by_lot(seed: int, n_classes: int = 2) -> Cohort:
    """Return 200 people of FCON1000 in classes by lot."""
    return draw_people(200, np.random.default_rng([seed, 5]), n_classes)


def draw_own(seed: int) -> Cohort:
    """Return one of 10 cohorts with own connectomes, labels permuted."""
    return permute_people(simulate_own(seed % 10), np.random.default_rng([seed, 6]))


AGE = Deconfounder(None, ("age", "sex"))
AGE_SIZE = Deconfounder(None, ("age", "eTIV"))
NULLS: dict[str, tuple[Callable[[int], Cohort], Deconfounder]] = {
    "two classes, shared connectome": (draw_by_lot, Deconfounder()),
    "three classes without order": (partial(draw_by_lot, n_classes=3), Deconfounder()),
    "class and, linearly, thickness related to age; age and eTIV regressed out": (
        draw_related_linearly,
        AGE_SIZE,
    ),
    "class related to age; age and eTIV regressed out": (
        draw_related,
        AGE_SIZE,
    ),
    "class related to site; harmonised": (draw_sites, Deconfounder("site")),
    "repeated scans, five ordered stages": (draw_repeated, Deconfounder()),
    "repeated scans, labels that change": (draw_converters, Deconfounder()),
    "repeated scans, two features, age and sex regressed out": (
        lambda seed: draw_repeated(seed, "fdg", "volume"),
        AGE,
    ),
    "own connectomes, five ordered stages": (draw_own, Deconfounder()),
}


def count_named(title: str, first: int, n_cohorts: int) -> np.ndarray:
    """Return in how many cohorts each of three tests names any region.

    The tests of effect and contrast, and that of the contrast as by the prototype.
    """
    draw, steps = {**NULLS, **EVERYWHERE}[title]
    n_named = np.zeros(3, dtype=int)
    for index in range(first, first + n_cohorts):
        statistics = compute_statistics(draw(index), 1000 + index, steps)
        n_named[0] += np.nanmin(statistics.p_effect) < ALPHA
        n_named[1] += np.nanmin(statistics.p_contrast) < ALPHA
        n_named[2] += np.nanmin(statistics.p_prototype) < ALPHA
    return n_named


def count_designs(titles: Iterable[str], options: argparse.Namespace) -> str:
    """Return a table of the shares of cohorts in which each test names a region."""
    count = Memory(options.keep, verbose=0).cache(count_named)
    rows = []
    for title in titles:
        starts = range(0, options.cohorts, AT_ONCE)
        counts = [
            count(title, first, min(AT_ONCE, options.cohorts - first))
            for first in starts
        ]
        n_named = np.sum(counts, axis=0)
        rows.append([title, *(share_text(n, options.cohorts) for n in n_named)])
        print(*rows[-1], sep=" | ", flush=True)
    head = ("design", *TEST_TITLES)
    note = f"{options.cohorts} cohorts a design; share [95% interval]."
    return f"{table(head, rows)}\n\n{note}"


def share_text(n_named: int, n_cohorts: int) -> str:
    """Return a share and its 95% interval as text."""
    low, high = wilson_interval(n_named, n_cohorts)
    return f"{n_named / n_cohorts:.1%} [{low:.1%}, {high:.1%}]"


def null(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Count cohorts without effect in which a region is named."""
    title = "Cohorts without effect in which a region is named"
    yield title, count_designs(NULLS, options)


def draw_everywhere(
    seed: int, unit: str, n_people: int = 400, size: float = 1.0
) -> Cohort:
    """Return FCON1000 people whose classes differ alike in all regions."""
    cohort = draw_people(n_people, np.random.default_rng([seed, 8]))
    sd = np.nanstd(cohort.features, axis=0)
    difference = sd if unit == "sd" else np.full_like(sd, sd.mean())
    is_ill = (cohort.y == "AD")[:, None, None]
    return replace(cohort, features=cohort.features - is_ill * size * difference)


def draw_own_everywhere(seed: int, size: float = 1.0) -> Cohort:
    """Return own connectomes and a difference of all regions that grows by stage."""
    cohort = draw_own(seed)
    stage = pd.Index(cohort.classes).get_indexer(cohort.y)[:, None, None] / 4
    difference = size * stage * cohort.features.std(axis=0)
    return replace(cohort, features=cohort.features - difference)


EVERYWHERE: dict[str, tuple[Callable[[int], Cohort], Deconfounder]] = {
    "FCON1000 n=400, 1 s.d. of each region": (
        partial(draw_everywhere, unit="sd"),
        Deconfounder(),
    ),
    "FCON1000 n=400, the same in mm": (
        partial(draw_everywhere, unit="mm"),
        Deconfounder(),
    ),
    "FCON1000 n=200, 0.25 s.d. of each region": (
        partial(draw_everywhere, unit="sd", n_people=200, size=0.25),
        Deconfounder(),
    ),
    "FCON1000 n=200, the same in mm": (
        partial(draw_everywhere, unit="mm", n_people=200, size=0.25),
        Deconfounder(),
    ),
    "own connectomes n=150, 1 s.d. in AD": (draw_own_everywhere, Deconfounder()),
    "own connectomes n=150, 0.5 s.d. in AD": (
        partial(draw_own_everywhere, size=0.5),
        Deconfounder(),
    ),
}


def everywhere(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Count cohorts with an effect on all regions in which the contrast names one."""
    title = "Classes differ alike in all regions: cohorts in which a region is named"
    yield title, count_designs(EVERYWHERE, options)


# Cohorts whose class is predicted.
N_PREDICTED = 30


def spline_columns(table: pd.DataFrame, is_train: np.ndarray) -> np.ndarray:
    """Return intercept, lines and curves of age and eTIV, with knots of training."""
    columns = [np.ones(len(table))]
    for name in AGE_SIZE.regress_out:
        numbers = pd.to_numeric(table[name]).to_numpy(float)
        numbers = (numbers - numbers[is_train].mean()) / numbers[is_train].std()
        knots = np.quantile(numbers[is_train], _KNOT_QUANTILES)
        columns += [numbers, compute_cubic_curve(numbers, knots)]
    return np.column_stack(columns)


def predict_related(seed: int) -> dict[str, float]:
    """Return AUCs of a class that depends on age alone, by how age is removed."""
    cohort = draw_related(seed)
    features = cohort.features[..., 0]
    features = np.where(np.isnan(features), np.nanmean(features, axis=0), features)
    is_ill = cohort.y == "AD"
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    scores = pd.DataFrame(0.0, range(len(is_ill)), ["none", "lines", "splines"])
    for train_rows, test_rows in folds.split(features, is_ill):
        is_train = np.isin(np.arange(len(is_ill)), train_rows)
        lines = Deconfounder(None, AGE_SIZE.regress_out)
        lines.fit(features[train_rows, :, None], cohort.table.iloc[train_rows])
        columns = spline_columns(cohort.table, is_train)
        slopes = np.linalg.lstsq(columns[is_train], features[is_train], rcond=None)[0]
        adjusted = {
            "none": features,
            "lines": lines.transform(features[..., None], cohort.table)[..., 0],
            "splines": features - columns @ slopes,
        }
        for name, values in adjusted.items():
            model = make_pipeline(
                StandardScaler(), RidgeClassifierCV(np.logspace(0, 4, 9))
            )
            model.fit(values[is_train], is_ill[is_train])
            scores.loc[test_rows, name] = model.decision_function(values[test_rows])
    return {name: roc_auc_score(is_ill, scores[name]) for name in scores}


def prediction(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Measure how well a class that depends on age alone is predicted."""
    n_cohorts = min(N_PREDICTED, options.cohorts)
    measured = pd.DataFrame([predict_related(seed) for seed in range(n_cohorts)])
    row = [
        f"{measured[name].mean():.3f} ({measured[name].sem():.3f})" for name in measured
    ]
    head = ("age not removed", "as a line", "as a restricted cubic spline")
    note = (
        f"Mean AUC (standard error) of {n_cohorts} cohorts of 200 people of FCON1000; "
        "ridge on thickness, 5 folds; age and eTIV are removed inside the folds."
    )
    yield "A class that depends on age alone", f"{table(head, [row])}\n\n{note}"


# Largest difference of classes in each region, in standard deviations within classes.
DIFFERENCES = np.repeat([0.0, 0.5, 1.0, 1.5], 5)
# Regions whose true correlation, or eta, is at least this are said to have an effect.
CLEAR_EFFECT = 0.3
N_TRUTH = 60_000
CLASS_DESIGNS = {
    "two classes": (np.array([0, 1.0]), True),
    "five ordered stages": (np.array([0, 0.25, 0.5, 0.75, 1.0]), True),
    "three classes without order": (np.array([0, 1.0, 0.3]), False),
    "five classes without order": (np.array([0, 1.0, 0.3, 0.6, 0.1]), False),
}


def describe_people(
    design: str, n_people: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Return effects and contrasts with intervals of people drawn from a population."""
    size_of_class, is_ordered = CLASS_DESIGNS[design]
    n_regions = len(DIFFERENCES)
    W = np.random.default_rng(0).gamma(0.5, size=(n_regions, n_regions))
    np.fill_diagonal(W, 0.0)
    codes = np.resize(np.arange(len(size_of_class)), n_people)
    shared_part = rng.normal(size=(n_people, 1))
    x = rng.normal(size=(n_people, n_regions)) + 0.5 * shared_part
    x += size_of_class[codes][:, None] * DIFFERENCES
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    means = x @ ((W + W.T) / (W + W.T).sum(axis=0))
    people = np.arange(n_people)
    values = RegionTestValues(
        value_matrix=x,
        neighbor_contrasts=x - means,
        unit_contrasts=np.full_like(x, np.nan),
        class_codes=codes,
        covariate_design=np.ones((n_people, 1)),
        person_codes=people,
        person_scan_counts=np.ones_like(people),
        is_ordered=is_ordered,
    )
    return _make_association_table(values)


def intervals(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Count the 95% intervals of effect and contrast that miss the truth."""
    rows = []
    for design in CLASS_DESIGNS:
        truth = describe_people(design, N_TRUTH, np.random.default_rng(1))
        is_clear = truth["effect"].abs().to_numpy() >= CLEAR_EFFECT
        has_effect = DIFFERENCES > 0
        true_effects = truth["effect"].where(has_effect, 0.0)
        for n_people in (40, 150):
            rng = np.random.default_rng([n_people, 2])
            cohorts = [
                describe_people(design, n_people, rng) for _ in range(options.cohorts)
            ]
            is_held = np.array(
                [
                    true_effects.between(cohort["effect_low"], cohort["effect_high"])
                    for cohort in cohorts
                ]
            )
            has_interval = np.array(
                [cohort["contrast_low"].notna() for cohort in cohorts]
            )
            is_contrast_held = np.array(
                [
                    truth["contrast"].between(
                        cohort["contrast_low"], cohort["contrast_high"]
                    )
                    for cohort in cohorts
                ]
            )
            is_above = np.array([cohort["contrast_low"] > 0 for cohort in cohorts])
            cells = [
                f"{1 - is_held.mean():.1%}",
                f"{is_above[:, ~has_effect].mean():.1%}",
            ]
            for is_in_group in (has_effect & ~is_clear, is_clear):
                is_shown = has_interval[:, is_in_group]
                is_missed = is_shown & ~is_contrast_held[:, is_in_group]
                cells += [f"{is_shown.mean():.1%}", f"{is_missed.mean():.1%}"]
            rows.append([design, str(n_people), *cells])
            print(*rows[-1], sep=" | ", flush=True)
    head = (
        *("design", "people", "effect: misses"),
        "contrast, no effect: above 0",
        *("weak effect: has an interval", "misses"),
        *("clear effect: has an interval", "misses"),
    )
    note = (
        f"Shares of all regions in {options.cohorts} cohorts a row; {len(DIFFERENCES)} "
        "regions whose classes differ by 0, 0.5, 1 or 1.5 standard deviations at most. "
        f"Clear effect: true size of {CLEAR_EFFECT} or more. Misses: the interval does "
        "not hold the truth. The contrast has an interval only where the interval of "
        "the effect excludes 0; of the intervals of weak effects that are shown, more "
        "than 5% miss, because these are the effects that chance enlarged."
    )
    yield "95% intervals that miss the truth", f"{table(head, rows)}\n\n{note}"


PARTS = {
    "settings": settings,
    "maps": maps,
    "null": null,
    "everywhere": everywhere,
    "intervals": intervals,
    "prediction": prediction,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--cohorts", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=1, help="cohorts side by side")
    parser.add_argument("--keep", help="folder of finished runs, to go on from")
    options = parser.parse_args()
    for part in options.parts:
        for title, text in PARTS[part](options):
            keep("ranking", title, text)


if __name__ == "__main__":
    main()
