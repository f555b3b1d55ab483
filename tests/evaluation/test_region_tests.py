"""Effects and contrasts of regions: fast results are those of loops and scipy."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from brainlsap.atlas import Atlas
from brainlsap.data import Cohort
from brainlsap.evaluation import Deconfounder, region_tests
from brainlsap.evaluation.confounds import build_adjustment_design
from brainlsap.evaluation.region_tests import (
    PermutedStatistics,
    RegionTestValues,
    compare_regions,
    compute_contrast_p_values,
    compute_family_wise_p_values,
    compute_neighbor_means,
    compute_permuted_statistics,
    make_region_test_values,
    standardize_statistics,
)
from brainlsap.evaluation.splits import list_person_blocks
from brainlsap.exceptions import ParameterError

N_ROIS = 6


def draw_cohort(
    labels, *, people=None, n_features=1, classes=None, ordered=True, shared=False
):
    """Return scans of correlated values that differ between classes in region 2."""
    rng = np.random.default_rng(7)
    n_scans = len(labels)
    people = [f"sub-{i:02d}" for i in range(n_scans)] if people is None else people
    W = rng.gamma(1.0, size=(n_scans, N_ROIS, N_ROIS))
    W = W + W.transpose(0, 2, 1)  # with self loops
    if shared:
        W = np.broadcast_to(W[0], W.shape)
    classes = tuple(classes or dict.fromkeys(labels))
    stage = np.array([classes.index(label) for label in labels])
    shape = (n_scans, N_ROIS, n_features)
    features = rng.normal(3.0, 1.0, shape) + rng.normal(size=(n_scans, 1, 1))
    features[:, 2] += 0.7 * stage[:, None]
    features *= rng.uniform(0.1, 9.0, (N_ROIS, 1))  # other units
    age = rng.normal(70, 5, n_scans) + stage
    features += 0.1 * age[:, None, None]
    table = {"participant": people, "session": "", "label": labels, "age": age}
    person_index = np.unique(people, return_inverse=True)[1]
    table["sex"] = np.where(rng.random(n_scans) < 0.5, "F", "M")[person_index]
    table["scan"] = [f"scan-{i:02d}" for i in range(n_scans)]
    return Cohort(
        connectomes=W,
        features=features,
        table=pd.DataFrame(table),
        atlas=Atlas.from_names([f"ctx_lh_{i}" for i in range(N_ROIS)], name="few"),
        feature_names=tuple("abc"[:n_features]),
        classes=classes,
        classes_ordered=ordered,
    )


def slow_residuals(design, values):
    return values - design @ np.linalg.lstsq(design, values, rcond=None)[0]


def slow_neighbor_means(W, x):
    """Average neighbours of one scan region by region: x (n_rois,)."""
    means = np.full(len(x), np.nan)
    for region in range(len(x)):
        total = weight = 0.0
        for other in range(len(x)):
            if other != region and np.isfinite(x[other]):
                total += float(W[region, other]) * x[other]
                weight += float(W[region, other])
        if weight > 0:
            means[region] = total / weight
    return means


def slow_contrasts(cohort, rows_of_person, design):
    """Return what is tested of people, three arrays (n_people, n_rois).

    Standardised values, their contrasts, and the contrasts of values in their unit.
    """
    raw = cohort.features[:, :, 0]
    values = np.array([raw[rows].mean(axis=0) for rows in rows_of_person])
    sd = slow_residuals(design, values).std(axis=0)
    z = (raw - values.mean(axis=0)) / sd
    contrasts, unit_contrasts = (
        [
            x[scan] - slow_neighbor_means(W, x[scan])
            for scan, W in enumerate(cohort.connectomes)
        ]
        for x in (z, raw)
    )
    return [
        np.array([np.mean([x[row] for row in rows], axis=0) for rows in rows_of_person])
        for x in (z, contrasts, unit_contrasts)
    ]


def draw_orders(persons, n_scans, n_permutations, seed):
    """Draw the exchanges of people that the fast path draws from this seed."""
    rng = np.random.default_rng(seed)
    orders = [np.arange(len(persons))]
    for _ in range(n_permutations):
        order = np.arange(len(persons))
        for rows in list_person_blocks(persons):
            for number in sorted({*n_scans[rows[:, 0]]}):
                exchanged = rows[n_scans[rows[:, 0]] == number]
                order[exchanged] = exchanged[rng.permutation(len(exchanged))]
        assert (n_scans[order] == n_scans).all()
        orders.append(order)
    return orders


def slow_partial_correlation(x, y, covariates, order):
    """Freedman and Lane: permute residuals of x, and regress covariates out again.

    Labels of the people `order` come to the rows, so residuals go the other way.
    """
    design = np.column_stack([np.ones(len(x)), covariates])
    fitted = x - slow_residuals(design, x)
    permuted = np.empty_like(x)
    permuted[order] = slow_residuals(design, x)
    x_star = slow_residuals(design, fitted + permuted)
    return stats.pearsonr(x_star, slow_residuals(design, y))[0]


@pytest.mark.parametrize("names", [(), ("age", "sex")])
def test_effects_and_contrasts_are_those_of_loops(names):
    labels = ["CN", "MCI", "AD", "AD", "MCI", "CN", "CN"] * 3
    # Two people have one scan, the others two.
    people = [f"sub-{max(i // 2, i - 11):02d}" for i in range(24)]
    labels = [labels[int(name[4:])] for name in people]
    cohort = draw_cohort(labels, people=people, classes=("CN", "MCI", "AD"))
    cohort = replace(cohort, feature_names=("thickness",))
    steps = Deconfounder(None, names)
    rows_of_person = [np.flatnonzero(cohort.groups == one) for one in sorted({*people})]
    n_people = len(rows_of_person)
    scans = np.column_stack(
        [cohort.table["age"], cohort.table["sex"] == "M"][: len(names)]
        or [np.zeros(24)]
    )
    covariates = np.array([scans[rows].mean(axis=0) for rows in rows_of_person])
    design = np.column_stack([np.ones(n_people), covariates])
    x, contrast, unit_contrast = slow_contrasts(cohort, rows_of_person, design)
    y = np.array([cohort.classes.index(labels[rows[0]]) for rows in rows_of_person])
    n_scans = np.array([len(rows) for rows in rows_of_person])
    assert sorted({*n_scans}) == [1, 2]
    orders = draw_orders(np.arange(n_people), n_scans, 9, 3)
    prepared = make_region_test_values(cohort, steps)
    statistics = compute_permuted_statistics(prepared, 9, np.random.default_rng(3))
    signs = np.zeros(N_ROIS)
    for row, order in enumerate(orders):
        for region in range(N_ROIS):
            r, r_contrast, r_unit = (
                slow_partial_correlation(
                    values[:, region], y.astype(float), covariates, order
                )
                for values in (x, contrast, unit_contrast)
            )
            if row == 0:
                signs[region] = np.sign(r)
            slow_statistics = (
                abs(r),
                min(abs(r), np.sign(r) * r_contrast),
                signs[region] * r_contrast,
                signs[region] * r_unit,
            )
            for fast, slow in zip(statistics, slow_statistics, strict=True):
                assert fast[row, region] == pytest.approx(slow)
    effects, contrasts = statistics.effects, statistics.contrast_statistics
    table = compare_regions(cohort, regress_out=names, n_permutations=9, random_state=3)
    r = [
        slow_partial_correlation(x[:, p], y.astype(float), covariates, orders[0])
        for p in range(N_ROIS)
    ]
    np.testing.assert_allclose(table["effect"], r)
    np.testing.assert_allclose(table["contrast"], contrasts[0])
    largest = effects[1:].max(axis=1)
    expected_p = [(1 + (largest >= abs(value)).sum()) / 10 for value in r]
    np.testing.assert_allclose(table["p_effect"], expected_p)
    z = (contrasts - contrasts.mean(axis=0)) / contrasts.std(axis=0)
    np.testing.assert_allclose(table["contrast_z"], z[0])
    np.testing.assert_allclose(
        table["p_contrast"], compute_contrast_p_values(statistics)
    )


def slow_contrast_p(statistics, region):
    """Return the largest p of three nulls, counted permutation by permutation."""
    effects, contrasts, excesses, unit_excesses = statistics
    n_labellings, n_regions = effects.shape
    z = (contrasts - contrasts.mean(axis=0)) / contrasts.std(axis=0)

    def count_p(values, family):
        n_exceeding = 1
        for permutation in range(1, n_labellings):
            largest = max(values[permutation, other] for other in family)
            n_exceeding += largest >= values[0, region]
        return n_exceeding / n_labellings

    tested = [other for other in range(n_regions) if np.isfinite(z[:, other]).all()]
    p_values = [count_p(z, tested)]
    candidates = [
        other
        for other in range(n_regions)
        if sum(effects[b, other] >= effects[0, other] for b in range(n_labellings))
        < 0.2 * n_labellings
    ]
    for values in (excesses, unit_excesses):
        if np.isfinite(values[0, region]):
            family = [other for other in candidates if np.isfinite(values[0, other])]
            p_values.append(count_p(values, family) if region in family else 1.0)
    return max(p_values)


def test_the_p_of_a_contrast_is_the_largest_of_three_nulls():
    rng = np.random.default_rng(0)
    effects = np.abs(rng.normal(size=(60, 12)))
    effects[0, :6] += 1.5
    excesses = rng.normal(size=(60, 12))
    excesses[0, :4] += [1.0, 2.0, 3.0, 4.0]
    unit_excesses = excesses + rng.normal(size=(60, 12))
    unit_excesses[:, [2, 7]] = np.nan
    contrasts = np.minimum(effects, excesses)
    contrasts[:, 9] = excesses[:, 9] = np.nan
    statistics = PermutedStatistics(effects, contrasts, excesses, unit_excesses)
    p = compute_contrast_p_values(statistics)
    tested_region_mask = np.arange(12) != 9
    expected = [slow_contrast_p(statistics, region) for region in range(12)]
    np.testing.assert_allclose(
        p[tested_region_mask], np.array(expected)[tested_region_mask]
    )
    assert np.isnan(p[9])
    assert len(set(p[tested_region_mask])) > 4


def natural_spline_basis(numbers):
    """Return a basis of natural splines: knots at three quantiles, lines outside."""
    knots = np.quantile(numbers, [0.1, 0.5, 0.9])
    columns = []
    for values in np.eye(3):
        spline = CubicSpline(knots, values, bc_type="natural")
        clipped = np.clip(numbers, knots[0], knots[2])
        slope = spline(clipped, 1)
        columns.append(spline(clipped) + slope * (numbers - clipped))
    return np.column_stack(columns)


def test_the_effect_of_a_quantity_is_taken_out_as_a_natural_spline():
    cohort = draw_cohort(["CN", "AD"] * 20)
    age, sex = cohort.table["age"], cohort.table["sex"]
    features = cohort.features + 0.05 * (age.to_numpy()[:, None, None] - 70) ** 2
    cohort = replace(cohort, features=features)
    table = compare_regions(cohort, regress_out=("age", "sex"), n_permutations=0)
    # The basis of the spline contains the intercept.
    design = np.column_stack([natural_spline_basis(age.to_numpy()), sex == "M"])
    y = slow_residuals(design, (cohort.y == "AD").astype(float))
    for region in range(N_ROIS):
        x = slow_residuals(design, features[:, region, 0])
        assert table["effect"][region] == pytest.approx(stats.pearsonr(x, y)[0])
    # One person fewer leaves less than ten for each of the four coefficients.
    fewer = cohort.select(range(39))
    table = compare_regions(fewer, regress_out=("age", "sex"), n_permutations=0)
    line = np.column_stack([np.ones(39), age[:39], sex[:39] == "M"])
    y = slow_residuals(line, (fewer.y == "AD").astype(float))
    x = slow_residuals(line, features[:39, 0, 0])
    assert table["effect"][0] == pytest.approx(stats.pearsonr(x, y)[0])


@pytest.mark.parametrize("values", [[12, 12, 12, 12, 16], range(8), [0, 1]])
def test_a_quantity_of_few_or_tied_values_is_taken_out_as_a_line(values):
    cohort = draw_cohort(["CN", "AD"] * 25)
    education = np.resize(np.array(values, dtype=float), 50)
    education[3] += 0.5
    cohort = replace(cohort, table=cohort.table.assign(education=education))
    columns = build_adjustment_design(cohort, Deconfounder(None, "education"))
    line = (education - education.mean()) / education.std()
    np.testing.assert_allclose(columns, line[:, None])


def test_a_curve_that_goes_with_the_class_is_no_difference():
    cohort = draw_cohort(["CN", "AD"] * 60, shared=True)
    rng = np.random.default_rng(3)
    age = rng.uniform(20, 80, 120)
    is_ill = np.abs(age - 50) + rng.normal(0, 5, 120) > 15
    features = rng.normal(size=(120, N_ROIS, 1))
    features += 0.003 * ((age - 50) ** 2)[:, None, None]
    table = cohort.table.assign(age=age, label=np.where(is_ill, "AD", "CN"))
    cohort = replace(cohort, features=features, table=table)
    raw = compare_regions(cohort)
    adjusted = compare_regions(cohort, regress_out="age")
    assert (raw["p_effect"] < 0.05).all()
    assert adjusted["p_effect"].min() > 0.05
    assert raw["d_AD"].mean() > 0.8
    assert adjusted["d_AD"].mean() == pytest.approx(0, abs=0.3)


def test_of_classes_without_order_the_effect_is_that_of_an_f_test():
    cohort = draw_cohort(["a", "b", "c"] * 8, ordered=False)
    table = compare_regions(cohort, n_permutations=0)
    assert table["p_effect"].isna().all()
    z = make_region_test_values(cohort, Deconfounder())
    dummies = np.array([cohort.y == name for name in cohort.classes], float).T
    for region in range(N_ROIS):
        x, contrast = z.value_matrix[:, region], z.neighbor_contrasts[:, region]
        F = stats.f_oneway(*(x[cohort.y == name] for name in cohort.classes))
        assert table["F"][region] == pytest.approx(F.statistic)
        # class means of unit values are the correlation, seen as a pattern
        patterns = [
            dummies @ np.linalg.lstsq(dummies, unit, rcond=None)[0]
            for unit in (
                (values - values.mean()) / np.linalg.norm(values - values.mean())
                for values in (x, contrast)
            )
        ]
        eta = np.linalg.norm(patterns[0])
        along = patterns[0] @ patterns[1] / eta
        assert table["effect"][region] == pytest.approx(eta)
        assert table["contrast"][region] == pytest.approx(min(eta, along))


def test_two_classes_are_the_same_with_and_without_order():
    labels = ["a", "b"] * 10
    tables = [
        compare_regions(draw_cohort(labels, ordered=ordered), n_permutations=20)
        for ordered in (True, False)
    ]
    pd.testing.assert_frame_equal(*tables)
    cohort = draw_cohort(labels)
    x = cohort.features[:, 2, 0]
    sd = np.sqrt((x[::2].var(ddof=1) + x[1::2].var(ddof=1)) / 2)
    d = (x[1::2].mean() - x[::2].mean()) / sd
    assert tables[0]["d_b"][2] == pytest.approx(d)
    reverse = compare_regions(cohort, reference="b", n_permutations=0)
    assert reverse["d_a"][2] == pytest.approx(-d)
    assert "d_b" not in reverse
    numbered = draw_cohort([str(labels.index(label)) for label in labels])
    pd.testing.assert_frame_equal(
        compare_regions(numbered, reference=1.0, n_permutations=0),
        compare_regions(numbered, reference="1", n_permutations=0),
    )


def test_labels_that_change_move_between_people_with_as_many_scans():
    labels = ["CN", "CN", "CN", "AD", "AD", "AD", "CN", "AD", "AD", "CN", "CN"]
    people = ["a", "a", "b", "b", "c", "c", "d", "e", "f", "f", "g"]
    cohort = draw_cohort(labels, people=people)
    prepared = make_region_test_values(cohort, Deconfounder())
    effects = compute_permuted_statistics(prepared, 8, np.random.default_rng(2)).effects
    n_scans = np.array([people.count(person) for person in people])
    y = np.array([label == "AD" for label in labels], float)
    x = cohort.features[:, :, 0]
    for row, order in enumerate(draw_orders(prepared.person_codes, n_scans, 8, 2)):
        assert len(set(zip(people, np.array(people)[order], strict=True))) == 7
        covariance = np.cov(np.column_stack([y[order], x]).T, aweights=1 / n_scans)
        sd = np.sqrt(np.diag(covariance))
        expected = np.abs(covariance[0, 1:] / sd[1:] / sd[0])
        np.testing.assert_allclose(effects[row], expected)


def test_what_was_not_measured_is_nan_and_left_out_of_neighbours():
    cohort = draw_cohort(["CN", "AD"] * 10, n_features=2)
    features = np.array(cohort.features)
    features[:, 1, 0] = np.nan
    features[:3, 4, 0] = np.nan
    features[:, 5, 1] = 4.0
    W = np.array(cohort.connectomes)
    W[:, 3] = W[:, :, 3] = 0.0
    W[:, 3, 3] = 2.0
    cohort = replace(cohort, features=features, connectomes=W)
    table = compare_regions(cohort, n_permutations=30).set_index(["region", "feature"])
    is_missing = table["effect"].isna()
    names = list(cohort.region_names)
    assert set(is_missing[is_missing].index) == {(names[1], "a"), (names[5], "b")}
    assert table["p_effect"].isna().equals(is_missing)
    assert not table.loc[(names[1], "a"), "measured"]
    has_no_contrast = set(table.index[table["contrast"].isna()])
    expected = {(names[3], "a"), (names[3], "b"), *is_missing[is_missing].index}
    assert has_no_contrast == expected
    y = (cohort.y == "AD")[3:]
    r = stats.pearsonr(features[3:, 4, 0], y)
    row = table.loc[(names[4], "a")]
    assert row["effect"] == pytest.approx(r.statistic)
    assert row["n_people"] == 17
    interval = r.confidence_interval()
    assert row["effect_low"] == pytest.approx(interval.low, abs=1e-4)
    assert row["effect_high"] == pytest.approx(interval.high, abs=1e-4)
    means = compute_neighbor_means(W, features)
    for scan in (0, 19):
        expected = slow_neighbor_means(W[scan], features[scan, :, 0])
        np.testing.assert_allclose(means[scan, :, 0], expected)


@pytest.mark.parametrize("shared", [True, False])
def test_blocks_change_nothing(monkeypatch, shared):
    cohort = draw_cohort(["a", "b", "c"] * 8, ordered=False, shared=shared)
    whole = compare_regions(cohort, regress_out="age", n_permutations=20)
    monkeypatch.setattr(region_tests, "_BLOCK_SIZE", 100)
    blocks = compare_regions(cohort, regress_out="age", n_permutations=20)
    pd.testing.assert_frame_equal(whole, blocks)


def test_a_difference_of_all_regions_has_effects_and_no_contrast():
    cohort = draw_cohort(["CN", "AD"] * 40, shared=True)
    features = np.random.default_rng(1).normal(size=cohort.features.shape)
    everywhere = features + 1.5 * (cohort.y == "AD")[:, None, None]
    table = compare_regions(replace(cohort, features=everywhere))
    assert (table["p_effect"] < 0.05).all()
    assert (table["p_contrast"] > 0.05).all()
    everywhere[cohort.y == "AD", 2] += 1.5
    table = compare_regions(replace(cohort, features=everywhere))
    assert np.flatnonzero(table["p_contrast"] < 0.05).tolist() == [2]


def test_the_interval_of_eta_is_that_of_the_noncentral_f():
    eta, n_contrasts, dof = 0.4, 3, 76
    F = eta**2 / n_contrasts / ((1 - eta**2) / dof)
    bounds = region_tests._compute_eta_lows_and_highs(
        np.array([eta, 0.01]), n_contrasts, dof
    )
    for bound, probability in zip(bounds, (0.975, 0.025), strict=True):
        noncentrality = brentq(
            lambda nc, p=probability: stats.ncf.cdf(F, n_contrasts, dof, nc) - p,
            1e-9,
            200,
        )
        expected = np.sqrt(noncentrality / (noncentrality + n_contrasts + dof + 1))
        assert bound[0] == pytest.approx(expected, rel=1e-6)
    # An eta that chance alone explains is the upper bound.
    assert [bound[1] for bound in bounds] == pytest.approx([0, 0.01], abs=1e-6)


@pytest.mark.parametrize("is_ordered", [True, False])
def test_intervals_of_effect_and_contrast_hold_the_truth(is_ordered):
    rng = np.random.default_rng(0)
    W = rng.gamma(0.5, size=(N_ROIS, N_ROIS))
    W = W + W.T

    def describe(n_people):
        codes = np.resize(np.arange(3), n_people)
        size = codes / 2 if is_ordered else np.array([0, 1, 0.3])[codes]
        x = rng.normal(size=(n_people, N_ROIS)) + 0.5 * rng.normal(size=(n_people, 1))
        x += size[:, None] * [1.0, 0.5, 0.0, 0.1, 0.3, 0.8]
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        shared = np.broadcast_to(W, (n_people, N_ROIS, N_ROIS))
        means = compute_neighbor_means(shared, x[:, :, None])[:, :, 0]
        intercept = np.ones((n_people, 1))
        people = np.arange(n_people)
        contrasts = x - means
        return region_tests._make_association_table(
            RegionTestValues(
                value_matrix=x,
                neighbor_contrasts=contrasts,
                unit_contrasts=contrasts,
                class_codes=codes,
                covariate_design=intercept,
                person_codes=people,
                person_scan_counts=people * 0 + 1,
                is_ordered=is_ordered,
            )
        )

    truth = describe(30_000)
    tables = [describe(60) for _ in range(60)]
    for name in ("effect", "contrast"):
        is_missed = [
            (truth[name] < table[f"{name}_low"]) | (truth[name] > table[f"{name}_high"])
            for table in tables
        ]
        assert np.mean(is_missed) < 0.09
        for table in tables:
            has_interval = table[f"{name}_low"].notna()
            shown = table[has_interval]
            assert (
                shown[name].between(shown[f"{name}_low"], shown[f"{name}_high"]).all()
            )
            assert table[f"{name}_high"].notna().equals(has_interval)
    for table in tables:
        excludes_0 = (table["effect_low"] > 0) | (table["effect_high"] < 0)
        assert table["contrast_low"].notna().equals(excludes_0)


def test_family_wise_p_values_are_those_of_the_largest_of_all():
    rng = np.random.default_rng(0)
    tested_region_mask = np.arange(12) != 4
    statistics = rng.normal(size=(40, 12))
    statistics[0, 3] = 4.0
    statistics[:, 4] = np.nan
    z = standardize_statistics(statistics)
    p = compute_family_wise_p_values(z)
    expected_z = (statistics - statistics.mean(0)) / statistics.std(0)
    for region in np.flatnonzero(tested_region_mask):
        n_exceeding = sum(
            expected_z[b, tested_region_mask].max() >= expected_z[0, region]
            for b in range(1, 40)
        )
        assert p[region] == pytest.approx((1 + n_exceeding) / 40)
    assert np.isnan(p[4])


def test_p_values_keep_their_level():
    rng = np.random.default_rng(0)
    n_rejected = 0
    for _ in range(400):
        statistics = rng.gamma(2.0, size=(25, 30)) * rng.uniform(0.5, 2, (25, 1))
        p = compute_family_wise_p_values(standardize_statistics(statistics))
        n_rejected += p.min() < 0.05
    assert n_rejected / 400 < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)


def test_a_shift_of_a_site_is_harmonised(small_cohort):
    site = small_cohort.table["site"]
    shift = 9.0 * (site == site[0]).to_numpy()[:, None, None]
    shifted = replace(small_cohort, features=small_cohort.features + shift)
    options = {"n_permutations": 20, "harmonize": "site", "regress_out": "age"}
    expected = compare_regions(small_cohort, **options)
    raw = compare_regions(shifted, n_permutations=20)
    clean = compare_regions(shifted, **options)
    columns = ["effect", "contrast", "d_AD"]
    errors = [np.abs(t[columns] - expected[columns]).mean() for t in (clean, raw)]
    assert (errors[0] < 0.2 * errors[1]).all()


def test_an_evaluation_gives_steps_and_scales(example_evaluation, small_cohort):
    table = compare_regions(small_cohort, example_evaluation, n_permutations=20)
    assert table["relative_scale"].notna().all()
    assert {"model", "rank", "planted"} <= set(table)
    covariates = {"harmonize": None, "regress_out": ["age"]}
    settings = example_evaluation.settings | {"steps": covariates}
    adjusted = replace(example_evaluation, settings=settings)
    table = compare_regions(small_cohort, adjusted, n_permutations=20)
    expected = compare_regions(small_cohort, regress_out="age", n_permutations=20)
    pd.testing.assert_frame_equal(table[list(expected)], expected)
    # Permuting labels would change a reference class: tests go without it.
    settings = {"steps": covariates | {"reference_class": "CN"}}
    referenced = replace(adjusted, settings=adjusted.settings | settings)
    same_table = compare_regions(small_cohort, referenced, n_permutations=20)
    pd.testing.assert_frame_equal(same_table, table)
    with pytest.raises(ParameterError, match="set in the evaluation"):
        compare_regions(small_cohort, example_evaluation, regress_out="age")
    with pytest.raises(ParameterError, match="the evaluated cohort"):
        compare_regions(small_cohort.select(range(40)), example_evaluation)


def test_the_smallest_p_counts_labellings_of_few_people():
    people = [f"p{i}" for i in range(5)]
    table = pd.DataFrame(
        {"participant": people, "label": [*"aabbb"], "age": range(60, 65)}
    )
    cohort = SimpleNamespace(table=table)
    evaluation = SimpleNamespace(cohort=cohort, settings={"steps": {}})
    assert region_tests.compute_smallest_p(evaluation, 199) == 1 / 10
    assert region_tests.compute_smallest_p(evaluation, 3) == 1 / 4
    # A covariate that differs in all people makes every permutation different.
    evaluation.settings["steps"] = {"regress_out": ("age",)}
    assert region_tests.compute_smallest_p(evaluation, 199) == 1 / 120
