"""ComBat against neuroCombat's stored output; nothing of test scans in the fit."""

import ast
import inspect
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from brainlsap import fit_model, run_study
from brainlsap.evaluation import (
    Deconfounder,
    cross_validate,
    learning_curve,
    make_models,
    make_splits,
)
from brainlsap.evaluation.confounds import (
    STEP_OPTIONS,
    STEP_PHRASES,
    adjust_features_with_factor_table,
)
from brainlsap.exceptions import ParameterError
from brainlsap.options import OPTIONS
from brainlsap.report import score_remarks
from brainlsap.report.tables import class_mean_basis_text

pytestmark = pytest.mark.usefixtures("brief_studies")

REFERENCE = Path(__file__).parent / "reference" / "combat.npz"
LINEAR = make_models("logistic regression")


@pytest.fixture(scope="module")
def reference():
    with np.load(REFERENCE, allow_pickle=False) as file:
        return dict(file)


@pytest.fixture(scope="module")
def table(reference):
    return pd.DataFrame({name: reference[name] for name in ("site", "age", "sex")})


@pytest.fixture(scope="module")
def values(reference):
    return reference["values"].reshape(-1, 4, 3)


@pytest.fixture(scope="module")
def sited(small_cohort):
    site = np.where(pd.factorize(small_cohort.groups)[0] % 3 == 0, "north", "south")
    shifted = small_cohort.features + (site == "north")[:, None, None] * 3.0
    table = small_cohort.table.assign(site=site)
    return replace(small_cohort, features=shifted, table=table)


@pytest.mark.parametrize(
    ("preserve", "key", "error"),
    [
        ((), "plain", 1e-11),
        (("age", "sex"), "tight", 1e-11),
        (("age", "sex"), "early", 1e-4),
    ],
)
def test_it_is_what_neurocombat_makes(values, table, reference, preserve, key, error):
    original = values.copy()
    table = table[["site", *preserve]].rename(columns={"age": "AGE"})
    harmonized = Deconfounder("site").fit(values, table).transform(values, table)
    expected = reference[key].reshape(values.shape)
    np.testing.assert_allclose(harmonized, expected, atol=error, rtol=0)
    np.testing.assert_array_equal(values, original)


def test_a_scan_does_not_depend_on_those_beside_it(values, table):
    steps = Deconfounder("site", ("age",)).fit(values[3:], table[3:])
    together = steps.transform(values, table)
    alone = steps.transform(values[:1], table[:1])
    np.testing.assert_allclose(alone[0], together[0], rtol=1e-14)


@pytest.mark.filterwarnings("ignore:the audit found data leakage. duplicate scans")
def test_folds_of_cross_validation_are_harmonised_by_their_training_scans(sited):
    step_options = {"harmonize": "site", "regress_out": ["age"]}
    evaluation = cross_validate(LINEAR, sited, 2, baselines=False, **step_options)
    train, test = make_splits(sited.y, sited.groups, 2)[0]
    steps = Deconfounder("site", ("age",))
    steps.fit(sited.features[train], sited.table.iloc[train])
    clean = replace(sited, features=steps.transform(sited.features, sited.table))
    # sex is preserved under another name as well
    renamed_table = sited.table.rename(columns={"sex": "Gender"})
    refitted = clone(steps).fit(sited.features[train], renamed_table.iloc[train])
    harmonized = refitted.transform(sited.features, renamed_table)
    np.testing.assert_allclose(clean.features, harmonized, rtol=1e-5)
    X, (model, _) = clean.to_array(), LINEAR["logistic regression"]
    model = clone(model).fit(X[train], sited.y[train], groups=sited.groups[train])
    rows = evaluation.predictions.query("fold == 1")
    probabilities = rows[[f"p_{name}" for name in model.classes_]].to_numpy()
    np.testing.assert_array_equal(probabilities, model.predict_proba(X[test]))
    assert evaluation.settings["steps"]["preserve"] == ["age", "sex"]


def test_missing_values_stay_and_flat_ones_are_left_alone(values, table):
    gaps = values.copy()
    gaps[3, 1, 0] = gaps[20:, 2, 1] = np.nan
    gaps[:, 3, -1] = np.nan
    gaps[:, 0, 0] = 3.3
    harmonized = Deconfounder("site", ("age",)).fit(gaps, table).transform(gaps, table)
    np.testing.assert_array_equal(np.isnan(harmonized), np.isnan(gaps))
    np.testing.assert_allclose(harmonized[:, 0, 0], 3.3, rtol=1e-14)


def test_a_regression_takes_out_slope_and_groups_and_nothing_else():
    rng = np.random.default_rng(0)
    age, sex = rng.uniform(50, 90, 80), rng.choice(["F", "M"], 80)
    noise = rng.normal(size=(80, 2, 1))
    values = noise + 0.1 * age[:, None, None] + 2.0 * (sex == "M")[:, None, None]
    table = pd.DataFrame({"Age": age, "gender": sex})
    steps = Deconfounder(regress_out=("age", "sex"))
    residuals = steps.fit(values, table).transform(values, table)
    assert abs(np.corrcoef(residuals[:, 0, 0], age)[0, 1]) < 1e-10
    assert residuals.mean() == pytest.approx(values.mean())
    with pytest.raises(ParameterError, match="Age' was numbers in training; got 'old'"):
        steps.transform(values[:1], pd.DataFrame({"Age": ["old"]}))
    with pytest.warns(UserWarning, match=r"gender: .*unknown .* F, M\b"):
        steps.transform(values, table.replace("F", "unknown"))


def test_words_for_a_sex_are_those_of_the_training():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 2, 1))
    table = pd.DataFrame({"sex": ["F", "M"] * 10, "site": ["F", "M"] * 10})
    for covariate_name in ("sex", "site"):
        steps = Deconfounder(regress_out=covariate_name).fit(values, table)
        spelled = table.replace({covariate_name: {"F": "female", "M": "Male"}})
        steps.check_people(spelled)
        if covariate_name == "sex":
            adjusted = steps.transform(values, spelled)
            np.testing.assert_array_equal(adjusted, steps.transform(values, table))
        else:
            with pytest.warns(UserWarning, match="site: the values Male, female"):
                steps.transform(values, spelled)


@pytest.mark.parametrize("words", [("2", "1"), ("H", "M"), ("F", "other")])
def test_an_ambiguous_sex_is_refused(words):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": ["F", "M"] * 10})
    steps = Deconfounder(regress_out="sex").fit(rng.normal(size=(20, 2, 1)), table)
    coded = table.replace({"F": words[0], "M": words[1]})
    with pytest.raises(ParameterError, match=r"F or M .*got .* codebook"):
        steps.check_people(coded)


@pytest.mark.parametrize("codes", [[1, 2, 3], [1.0, 2.0, 3.0], list("123")])
def test_numbers_of_sites_are_names(values, table, codes):
    site_names = table["site"]
    numbers = site_names.map(dict(zip(sorted(site_names.unique()), codes, strict=True)))
    residuals = [
        Deconfounder(regress_out="site").fit(values, one).transform(values, one)
        for one in (table, table.assign(site=numbers))
    ]
    np.testing.assert_allclose(*residuals, atol=1e-12)
    steps = Deconfounder(regress_out="site").fit(values, table.assign(site=numbers))
    with pytest.warns(UserWarning, match=r"site: .* 9 .* 1, 2, 3\b"):
        steps.transform(values, table.assign(site=9))


@pytest.mark.parametrize("name", ["site_num", "Batch", "field strength", "v1"])
def test_codes_of_groups_are_regressed_out_as_groups(name):
    rng = np.random.default_rng(0)
    code = rng.permutation(np.arange(120) % 4) + 1
    effect = np.array([0.0, 5.0, -3.0, 1.0])[code - 1]
    features = (effect + 0.1 * rng.normal(size=120))[:, None, None]
    table = pd.DataFrame({name: code})
    steps = Deconfounder(regress_out=name).fit(features, table)
    residuals = steps.transform(features, table)[:, 0, 0]
    means = [residuals[code == number].mean() for number in range(1, 5)]
    np.testing.assert_allclose(means, means[0], atol=1e-8)
    named_table = pd.DataFrame({name: "g" + pd.Series(code).astype(str)})
    named_steps = Deconfounder(regress_out=name).fit(features, named_table)
    np.testing.assert_allclose(
        residuals, named_steps.transform(features, named_table)[:, 0, 0]
    )
    # a number of later people that is written with a point is the same group
    later_table = pd.DataFrame({name: code.astype(float)})
    np.testing.assert_array_equal(
        steps.transform(features, later_table)[:, 0, 0], residuals
    )


@pytest.mark.parametrize("name", ["age", "MMSE", "TIV", "mean_FD"])
def test_quantities_are_regressed_out_as_numbers_and_not_harmonised(sited, name):
    rng = np.random.default_rng(0)
    value = pd.Series(rng.permutation(np.arange(sited.n_scans) % 4) + 24)
    table = sited.table.assign(**{name: value})
    steps = Deconfounder(regress_out=name).fit(sited.features, table)
    assert steps.confounds_["design"] == {name: pytest.approx(value.mean())}
    if name != "MMSE":
        table = sited.table.drop(columns="age", errors="ignore").assign(**{name: value})
        with pytest.raises(ParameterError, match=f"{name} is a quantity"):
            Deconfounder(name).check(table)


def test_differences_of_classes_are_adjusted_for_what_is_regressed_out(sited):
    rng = np.random.default_rng(0)
    is_ill, n = sited.y == sited.classes[-1], sited.n_scans
    age = 60 + 10.0 * is_ill + rng.normal(0, 4, n)
    values = np.repeat(0.5 * age[:, None, None], len(sited.atlas), 1)
    values[:, 0, 0] += 3.0 * is_ill  # else age is all that the classes differ in
    values += rng.normal(size=values.shape)
    aged = replace(sited, features=values, table=sited.table.assign(age=age))
    raw, adjusted = (
        cross_validate(LINEAR, aged, 2, baselines=False, regress_out=names)
        for names in ((), ("age",))
    )
    assert class_mean_basis_text(raw).startswith("without any adjustment")
    assert (
        class_mean_basis_text(adjusted) == "adjusted for age by effects within classes"
    )
    assert "adjusted for age" in " ".join(score_remarks(adjusted))
    assert "adjusted" not in " ".join(score_remarks(raw))
    raw_difference, adjusted_difference = map(difference_of_classes, (raw, adjusted))
    assert raw_difference[1:].min() > 3
    assert adjusted_difference[1:].mean() < 0.8
    assert adjusted_difference[0] == pytest.approx(3, abs=1)


def difference_of_classes(evaluation):
    """Return the range of the class means of each region."""
    table = evaluation.cohort.class_features
    means = table.groupby("region", sort=False)["mean"]
    return (means.max() - means.min()).to_numpy()


def test_differences_are_adjusted_for_numbered_sites_that_were_harmonised(sited):
    rng, is_ill = np.random.default_rng(1), sited.y == sited.classes[-1]
    site = np.where(rng.random(len(is_ill)) < 0.7, 1 + is_ill, 3)  # goes with the class
    values = sited.features * 0 + np.array([0.0, 5.0, 0.0])[site - 1][:, None, None]
    values += 2.0 * is_ill[:, None, None]
    cohort = replace(sited, features=values, table=sited.table.assign(scanner=site))
    adjusted, _ = adjust_features_with_factor_table(cohort, Deconfounder("scanner"))
    assert np.ptp([adjusted[is_ill].mean(), adjusted[~is_ill].mean()]) == pytest.approx(
        2
    )


def test_intervals_of_adjusted_differences_are_as_wide_as_they_vary(sited):
    first_scans = sited.select(~sited.table["participant"].duplicated().to_numpy())
    rng, is_ill = np.random.default_rng(2), first_scans.y == first_scans.classes[-1]
    is_well, shape = (
        first_scans.y == first_scans.classes[0],
        (first_scans.n_scans, len(first_scans.atlas), 1),
    )
    age = rng.normal(size=first_scans.n_scans) + 2.0 * is_ill
    cohort = replace(first_scans, table=first_scans.table.assign(age=age))
    differences = []
    for _ in range(30):
        noise = replace(cohort, features=rng.normal(size=shape))
        adjusted, factors = adjust_features_with_factor_table(
            noise, Deconfounder(None, ("age",))
        )
        differences += [
            *(adjusted[is_ill].mean(axis=0) - adjusted[is_well].mean(axis=0)).ravel()
        ]
    factor = factors.loc[first_scans.classes[-1], "difference_factor"]
    variance = factor * (1 / is_ill.sum() + 1 / is_well.sum())
    assert factor > 1.2
    assert np.var(differences) == pytest.approx(variance, rel=0.15)


def test_fitted_steps_are_kept_for_new_people(values, table):
    steps = Deconfounder("site", ("sex",)).fit(values, table)
    stored = json.loads(json.dumps(steps.to_dict()))
    loaded = Deconfounder.from_dict(stored)
    outputs = (one.transform(values, table) for one in (loaded, steps))
    np.testing.assert_array_equal(*outputs)


def test_sites_that_were_not_learned_are_kept_and_told(values, table):
    is_learned = (table["site"] != "west").to_numpy()
    model = Deconfounder("site").fit(values[is_learned], table[is_learned])
    with pytest.warns(
        UserWarning, match=r"11 scans come from sites .* \(west\)\. These"
    ):
        harmonized = model.transform(values, table)
    np.testing.assert_array_equal(harmonized[~is_learned], values[~is_learned])
    with pytest.raises(ParameterError, match="training scans from every site"):
        model.check(
            table.assign(participant=table.index, label=1), [(is_learned, ~is_learned)]
        )


def test_sites_may_be_numbers_and_missing(values, table):
    numbers = table["site"].map({"west": 1, "north": 2, "east": 3, "south": 4})
    model = Deconfounder("site").fit(values, table.assign(site=numbers))
    expected = model.transform(values, table.assign(site=numbers))
    of_floats = model.transform(values, table.assign(site=numbers.astype(float)))
    np.testing.assert_array_equal(of_floats, expected)
    gap = numbers.astype(float).where(np.arange(len(table)) > 0)
    with pytest.warns(
        UserWarning, match=r"1 scan comes from sites that were not in training \(n/a\)"
    ):
        harmonized = model.transform(values, table.assign(site=gap))
    np.testing.assert_array_equal(harmonized[0], values[0])
    np.testing.assert_array_equal(harmonized[1:], expected[1:])


def lonely(table):
    first = table["participant"].iloc[0]
    return table["site"].where(table["participant"] != first, "island")


@pytest.mark.parametrize(
    ("change", "steps", "message"),
    [
        ({}, {"harmonize": "town"}, "contain no column 'town'; their columns are"),
        ({}, {"regress_out": "age,sex"}, r"as a list, \['age', 'sex'\]"),
        ({"site": "one"}, {"harmonize": "site"}, r"one: \d+ people"),
        ({"site": lonely}, {"harmonize": "site"}, r"island: 1 person, north"),
        ({}, {"harmonize": "label"}, "no column 'label'.* label cannot be"),
        ({"site": None}, {"harmonize": "site"}, "scans? ha(s|ve) no value of site"),
        (
            {"arm": lambda t: "arm " + t["label"]},
            {"regress_out": ["arm"]},
            "each value of arm occurs with one label only",
        ),
        (
            {"age": lambda t: t["participant"] + " years"},
            {"regress_out": ["age"]},
            "the column age contains text such as",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_fitted(
    sited, change, steps, message
):
    class Unfittable(type(LINEAR["logistic regression"][0])):
        def fit(self, *_, **__):
            raise AssertionError("fitted")

    changed = replace(sited, table=sited.table.assign(**change))
    with pytest.raises(ParameterError, match=message):
        cross_validate({"it": Unfittable()}, changed, 2, baselines=False, **steps)


def combat_by_reference(values, site, age, is_reference):
    """Johnson et al. 2007 by its formulas, a value at a time; learned from some."""
    n_scans, n_values = values.shape
    sites = sorted(set(site))
    rows = np.flatnonzero(is_reference)
    rows_of = {name: [i for i in rows if site[i] == name] for name in sites}
    centred_age = age - age[rows].mean()
    design = np.array(
        [[*(s == n for n in sites), a] for s, a in zip(site, centred_age, strict=True)]
    )
    alpha, slope, sigma = (np.zeros(n_values) for _ in range(3))
    for v in range(n_values):
        normal_matrix = design[rows].T @ design[rows]
        b = np.linalg.solve(normal_matrix, design[rows].T @ values[rows, v])
        alpha[v] = sum(len(rows_of[n]) * b[k] for k, n in enumerate(sites)) / len(rows)
        slope[v] = b[-1]
        errors = [values[i, v] - design[i] @ b for i in rows]
        sigma[v] = np.sqrt(sum(error**2 for error in errors) / len(rows))
    z = (values - alpha - np.outer(centred_age, slope)) / sigma
    harmonized = np.zeros_like(values)
    for name in sites:
        z_site, n = z[rows_of[name]], len(rows_of[name])
        g_hat = [z_site[:, v].sum() / n for v in range(n_values)]
        d_hat = [
            ((z_site[:, v] - g_hat[v]) ** 2).sum() / (n - 1) for v in range(n_values)
        ]
        g_bar, tau = np.mean(g_hat), np.var(g_hat, ddof=1)
        m, s = np.mean(d_hat), np.var(d_hat, ddof=1)
        shape, rate = (m**2 + 2 * s) / s, (m**3 + m * s) / s
        for v in range(n_values):
            gamma, delta = g_hat[v], d_hat[v]
            for _ in range(500):
                gamma = (n * tau * g_hat[v] + delta * g_bar) / (n * tau + delta)
                squares = ((z_site[:, v] - gamma) ** 2).sum()
                delta = (rate + squares / 2) / (n / 2 + shape - 1)
            for i in range(n_scans):
                if site[i] == name:
                    harmonized[i, v] = (
                        sigma[v] * (z[i, v] - gamma) / np.sqrt(delta)
                        + alpha[v]
                        + slope[v] * centred_age[i]
                    )
    return harmonized


def aged_people(n_people=120, seed=0):
    """Return values of 3 regions (atrophy in the first), and people older when ill."""
    rng = np.random.default_rng(seed)
    is_ill = np.arange(n_people) % 2 == 1
    age = rng.normal(70 + 12 * is_ill, 5)
    values = -0.05 * (age - 70)[:, None] + 0.5 * rng.normal(size=(n_people, 3))
    values[is_ill, 0] -= 1.0
    table = pd.DataFrame(
        {
            "participant": [f"P{i}" for i in range(n_people)],
            "label": np.where(is_ill, "AD", "CN"),
            "age": age,
            "site": rng.choice(["north", "south", "west"], n_people),
        }
    )
    return values[:, :, None], table, is_ill


def test_combat_by_a_reference_class_equals_its_formulas():
    values, table, is_ill = aged_people()
    values += 2.0 * (table["site"] == "north").to_numpy()[:, None, None]
    steps = Deconfounder("site", reference_class="CN")
    harmonized = steps.fit_transform(values, table)
    columns = (table[name].to_numpy() for name in ("site", "age"))
    expected = combat_by_reference(values[:, :, 0], *columns, ~is_ill)
    np.testing.assert_allclose(harmonized[:, :, 0], expected, atol=1e-10, rtol=0)
    of_all = Deconfounder("site").fit_transform(values, table)
    assert np.abs(harmonized - of_all).max() > 0.1


def test_a_reference_class_keeps_an_effect_that_plain_regression_removes():
    values, table, is_ill = aged_people(900)
    plain = Deconfounder(None, "age").fit_transform(values, table)
    w_scores = Deconfounder(None, "age", "CN").fit_transform(values, table)

    def differences(features):
        means = [features[is_ill == k].mean(axis=0)[:, 0] for k in (False, True)]
        return (means[0] - means[1]) / features[~is_ill].std(axis=0)[:, 0]

    assert differences(plain)[0] < 1  # of 2 s.d. that were planted
    np.testing.assert_allclose(differences(w_scores), [2, 0, 0], atol=0.5)


def test_w_scores_are_residuals_in_standard_deviations_of_the_reference():
    values, table, is_ill = aged_people()
    design = np.column_stack([np.ones(len(table)), table["age"]])
    reference = values[~is_ill][:, :, 0]
    coefficients = np.linalg.lstsq(design[~is_ill], reference, rcond=None)[0]
    sd = np.sqrt(((reference - design[~is_ill] @ coefficients) ** 2).sum(axis=0) / 58)
    expected = (values[:, :, 0] - design @ coefficients) / sd
    steps = Deconfounder(None, "age", "CN").fit(values, table)
    # Who is transformed needs no label, also after the steps were stored.
    loaded = Deconfounder.from_dict(json.loads(json.dumps(steps.to_dict())))
    for transform in (steps.transform, loaded.transform):
        w_scores = transform(values, table.drop(columns="label"))
        np.testing.assert_allclose(w_scores[:, :, 0], expected, rtol=1e-9)


def test_values_that_the_reference_lacks_or_that_are_flat_stay():
    values, table, is_ill = aged_people()
    values[~is_ill, 1] = np.nan
    values[:, 2] = 3.3
    w_scores = Deconfounder(None, "age", "CN").fit_transform(values, table)
    np.testing.assert_array_equal(w_scores[:, 1], values[:, 1])
    np.testing.assert_allclose(w_scores[:, 2], 0, atol=1e-12)


# Two groups; nobody of the reference class is in the second.
ILL_ONLY = ["both"] * 20 + ["both", "ill only"] * 50


@pytest.mark.parametrize(
    ("change", "steps", "values_of_message"),
    [
        ({}, ("site", ("age",), "control"), ["'control'", "AD, CN"]),
        ({}, (None, (), "CN"), ["regress_out", "harmonize"]),
        ({"site": ILL_ONLY}, ("site", (), "CN"), ["ill only: 0 people"]),
        ({"sex": ILL_ONLY}, (None, ("age", "sex"), "CN"), ["sex", "ill only"]),
        ({"label": ["CN"] * 11 + ["AD"] * 109}, (None, "age", "CN"), ["11", "12"]),
    ],
)
def test_a_reference_class_that_cannot_teach_the_steps_is_refused(
    change, steps, values_of_message
):
    table = aged_people()[1].assign(**change)
    with pytest.raises(ParameterError) as refusal:
        Deconfounder(*steps).check(table)
    for value in values_of_message:
        assert value in str(refusal.value)


def test_every_function_that_adjusts_features_takes_every_option_of_a_step():
    options = {option.name: option for option in OPTIONS if option.recipient == "study"}
    for name in STEP_OPTIONS:
        assert name in options, f"{name} is no option of a study in OPTIONS"
        assert {"run", "fit"} <= {*options[name].commands}, name
    assert {*STEP_PHRASES} == {*STEP_OPTIONS} - {"reference_class"}
    functions = (cross_validate, learning_curve, run_study, fit_model)
    for function in functions:
        missing = {*STEP_OPTIONS} - {*inspect.signature(function).parameters}
        assert not missing, f"{function.__name__} lacks {missing}"
        # It passes them on, or it makes the steps of them.
        tree = ast.parse(inspect.getsource(function))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        for call in calls:
            called_name = getattr(call.func, "id", "")
            passed = {ast.unparse(value) for value in call.args}
            passed |= {keyword.arg for keyword in call.keywords}
            if called_name in ("Deconfounder", "cross_validate"):
                missing = {*STEP_OPTIONS} - passed
                assert not missing, f"{function.__name__}: pass {missing} on"
