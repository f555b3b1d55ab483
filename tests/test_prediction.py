"""A stored model asked about other people: by name, with its steps and its network."""

import copy
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainlsap import LSAPClassifier, cross_validate, make_cohort, run_study
from brainlsap.arrays import pack_scans
from brainlsap.data import Cohort, read_connectome
from brainlsap.data.covariates import KEY_COLUMNS
from brainlsap.data.participants import UNLABELLED
from brainlsap.data.reading_options import DEFAULT_OPTIONS
from brainlsap.evaluation import Deconfounder, make_models
from brainlsap.evaluation.cross_validation import configure_model_for_cohort
from brainlsap.evaluation.models import RANDOM_CONNECTOME_RIDGE
from brainlsap.exceptions import CohortError, ParameterError, RegionNameError
from brainlsap.findings import Finding
from brainlsap.model import LSAPRidgeClassifier, load_model
from brainlsap.prediction import (
    FIXED_OPTIONS,
    REMARKS,
    _adapt_finding_to_model,
    _find_model_name,
    card_text,
    fit_model,
    make_unfitted_model,
    predict_people,
    read_new_people,
)
from brainlsap.simulation import write_study_folder
from brainlsap.workflow import merge_classes
from tests.conftest import raises_kind

# Most models here predict the people of their own training.
pytestmark = pytest.mark.filterwarnings("ignore:.* people were used for training")


def brief_model():
    return LSAPClassifier("exact", n_epochs=3, n_starts=1, random_state=0)


def ridge_model():
    """Return what is fitted in no time, where the model is not the subject."""
    return LSAPRidgeClassifier("one", n_draws=0)


def scan_scaled_model():
    """Return a model that scales every scan by itself, as the paper does."""
    return LSAPClassifier("exact", preset="paper", n_epochs=1, random_state=0)


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(24, atlas="desikan82", random_state=1)


@pytest.fixture(scope="module")
def stored(cohort, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    # not in the order of the alphabet, in which JSON might be written
    fitted = fit_model(cohort, path, brief_model(), regress_out=["sex", "age"])
    return fitted, path


def test_a_stored_model_predicts_what_the_fitted_one_does(cohort, stored):
    fitted, path = stored
    before, after = (predict_people(one, cohort) for one in (fitted, load_model(path)))
    assert before.equals(after)
    assert list(before)[:4] == ["scan", "participant", "session", "predicted"]
    columns = [f"p_{name}" for name in cohort.classes]
    np.testing.assert_allclose(before[columns].sum(axis=1), 1, atol=1e-6)


def test_w_scores_of_new_people_need_no_label(tmp_path):
    shares = {"CN": 1, "AD": 1}
    people = make_cohort(60, atlas="desikan82", shares=shares, random_state=2)
    new_people = people.select(range(5))
    path = tmp_path / "model.safetensors"
    steps = {"regress_out": "age", "reference_class": "CN"}
    model = fit_model(people, path, ridge_model(), **steps)
    deconfounder = Deconfounder(**steps).fit(people.features, people.table)
    adjusted = deconfounder.transform(new_people.features, new_people.table)
    table = new_people.table.assign(label=UNLABELLED)
    unlabelled = replace(new_people, table=table, classes=(UNLABELLED,))
    predicted = predict_people(load_model(path), unlabelled)
    expected = model.predict_proba(pack_scans(new_people.connectomes, adjusted))
    columns = [f"p_{name}" for name in model.classes_]
    np.testing.assert_allclose(predicted[columns], expected, atol=1e-6)
    assert "age, learned from CN alone" in card_text(model)


def test_regions_and_features_are_matched_by_name(cohort, stored):
    fitted, _ = stored
    order = np.random.default_rng(0).permutation(cohort.n_rois)
    regions = cohort.atlas.regions.iloc[order].reset_index(drop=True)
    shuffled = replace(
        cohort,
        connectomes=cohort.connectomes[:, order][:, :, order],
        features=cohort.features[:, order],
        atlas=replace(cohort.atlas, regions=regions),
        truth=None,
    )
    assert predict_people(fitted, shuffled).equals(predict_people(fitted, cohort))


def test_other_regions_or_features_are_refused(stored):
    fitted, _ = stored
    with pytest.raises(
        RegionNameError, match="belong to desikan82, not to destrieux160"
    ):
        predict_people(fitted, make_cohort(5, random_state=0))
    other = make_cohort(5, atlas="desikan82", feature="volume", random_state=0)
    with pytest.raises(ParameterError, match="requires the feature 'fdg'"):
        predict_people(fitted, other)


def test_what_is_no_cohort_is_refused(cohort, stored, tmp_path):
    arrays, model = (cohort.to_array(), cohort.y), brief_model()
    for call in (
        lambda: cross_validate(model, cohort=arrays[0]),
        lambda: fit_model(model, cohort),
        lambda: run_study(tmp_path, cohort),
        lambda: predict_people(stored[0], arrays[0]),
    ):
        with pytest.raises(ParameterError, match="cohort must be a Cohort; got "):
            call()
    fitted, file = brief_model().fit(*arrays, cohort.groups), tmp_path / "model"
    for call, told in (
        (lambda: read_new_people(stored[0]), "argument connectomes= is missing"),
        (
            lambda: read_new_people(stored[1], connectomes=1),
            "argument features= is missing",
        ),
        (lambda: read_new_people(cohort), "model file; got Cohort"),
        (
            lambda: predict_people(fitted, cohort),
            "result of fit_model .* model file; got",
        ),
        (lambda: fit_model(cohort, file, 7), "model must be .* got 'int'"),
        (lambda: run_study(cohort, file, [model]), "a dict of classifiers by name"),
    ):
        with pytest.raises(ParameterError, match=told):
            call()


def test_covariates_are_taken_out_of_new_people_as_in_the_fit(cohort, stored):
    fitted, _ = stored
    older = cohort.table.assign(age=cohort.table["age"].astype(float) - 40)
    with (
        pytest.warns(UserWarning, match=f"{cohort.n_scans} of .* scans are unlike"),
        pytest.warns(
            UserWarning, match="46.8 in the new people, but from 58 to 86.8 in"
        ),
    ):
        told = predict_people(fitted, replace(cohort, table=older))
    assert not told.equals(predict_people(fitted, cohort))
    missing = cohort.table.assign(age=cohort.table["age"].where(cohort.y != "AD"))
    with pytest.warns(
        UserWarning,
        match=r"scans have no age .*\. The mean over the training scans is used",
    ):
        remarks = predict_people(fitted, replace(cohort, table=missing))["remark"]
    lacks_age = remarks.fillna("").str.contains("covariate missing").to_numpy()
    assert (lacks_age == (cohort.y == "AD")).all()
    coded = cohort.table.assign(sex=cohort.table["sex"].replace({"F": "2", "M": "1"}))
    with pytest.raises(ParameterError, match=r"sex .* F or M in training; got 1, 2\."):
        predict_people(fitted, replace(cohort, table=coded))
    without = replace(cohort, table=cohort.table.drop(columns="age"))
    with pytest.raises(ParameterError, match=r"requires .*age for new people; got sex"):
        predict_people(fitted, without)
    bare = replace(cohort, table=cohort.table[[*KEY_COLUMNS]])
    with pytest.raises(ParameterError, match=r"sex, age for .* no covariates"):
        predict_people(fitted, bare)


def test_a_shared_connectome_comes_with_the_model(cohort, tmp_path):
    shared = np.broadcast_to(cohort.connectomes[0], cohort.connectomes.shape)
    alike = replace(cohort, connectomes=shared)
    fit_model(alike, tmp_path / "model", ridge_model())
    model = load_model(tmp_path / "model")
    folder = write_study_folder(cohort, tmp_path / "study")
    for path in folder.rglob("*_connectivity.csv"):
        path.unlink()
    people = read_new_people(model, folder)
    assert people.shares_connectome
    told, expected = (predict_people(model, one)["p_CN"] for one in (people, alike))
    np.testing.assert_allclose(told, expected, rtol=1e-5, atol=1e-9)
    with pytest.raises(ParameterError, match="the model file contains the connectome"):
        predict_people(model, cohort)


def test_one_connectome_is_refused_by_a_model_of_one_each(cohort, stored):
    shared = np.broadcast_to(cohort.connectomes[0], cohort.connectomes.shape)
    with pytest.raises(ParameterError, match="fitted with a connectome for every"):
        predict_people(stored[0], replace(cohort, connectomes=shared))


@pytest.mark.filterwarnings("ignore:.* are unlike the training scans")
def test_swapped_sides_of_all_new_scans_are_told(cohort, tmp_path):
    rng = np.random.default_rng(0)
    homotopic = cohort.atlas.homotopic
    shift = rng.normal(0, 0.03, cohort.n_rois)
    features = cohort.features + (shift - shift[homotopic])[:, None]
    lopsided = replace(cohort, features=features)
    path = tmp_path / "model"
    fit_model(lopsided, path, ridge_model())
    notes = predict_people(path, lopsided).attrs["side_notes"]
    assert not any(note.startswith("fdg") for note in notes)
    swapped = replace(lopsided, features=features[:, homotopic])
    with pytest.warns(UserWarning, match="^fdg: left and right .* swapped in all"):
        prediction_table = predict_people(path, swapped)
    assert prediction_table.attrs["swapped_values"] == ["fdg"]
    assert prediction_table["remark"].str.contains("swapped").all()
    symmetric = replace(lopsided, features=(features + features[:, homotopic]) / 2)
    notes = predict_people(path, symmetric.select(range(1))).attrs["side_notes"]
    assert notes
    assert all("to show whether they were swapped" in note for note in notes)


@pytest.mark.filterwarnings("ignore:.* are unlike the training scans")
def test_a_single_scan_with_swapped_sides_has_a_remark(cohort, tmp_path):
    rng = np.random.default_rng(0)
    homotopic = cohort.atlas.homotopic
    shift = rng.normal(0, 0.1, cohort.n_rois)
    features = np.array(cohort.features + (shift - shift[homotopic])[:, None])
    fit_model(replace(cohort, features=features), tmp_path / "model", ridge_model())
    features[5] = features[5][homotopic]
    mixed = replace(cohort, features=features)
    scan = cohort.table["scan"][5]
    for people in (mixed, mixed.select(np.arange(cohort.n_scans) == 5)):
        if people.n_scans > 1:
            expected = f"^In 1 scan, left and right of fdg .*: {scan}\\. .*--exclude"
        else:  # A single scan is all scans.
            expected = "^fdg: left and right .* swapped in all"
        with pytest.warns(UserWarning, match=expected):
            table = predict_people(tmp_path / "model", people)
        is_swapped = table["remark"].str.contains("swapped", na=False)
        assert table["scan"][is_swapped].tolist() == [scan]
    few = mixed.select(np.arange(cohort.n_scans) < 6)  # too few to compare with others
    with pytest.warns(UserWarning, match="^In 1 scan"):
        table = predict_people(tmp_path / "model", few)
    assert table.attrs["swapped_scans"] == {"fdg": [scan]}


def test_another_way_of_reading_is_refused(stored, tmp_path):
    fitted, _ = stored
    fitted.origin_.reading["negative"] = "drop"
    with pytest.raises(ParameterError, match="negative must be 'drop'"):
        read_new_people(fitted, tmp_path, negative="absolute")


@pytest.mark.parametrize("name", FIXED_OPTIONS)
def test_the_card_has_every_option_of_reading_that_the_fit_changed(stored, name):
    fitted = copy.deepcopy(stored[0])
    reading = DEFAULT_OPTIONS.to_jsonable(FIXED_OPTIONS)
    fitted.origin_.reading.update(reading)
    assert "Reads with" not in card_text(fitted)
    value = [30, 60] if name == "frames" else "another"
    fitted.origin_.reading[name] = value
    assert f"Reads with: {name} = {value}" in card_text(fitted).splitlines()


def test_people_of_arrays_are_read_as_those_of_the_fit(cohort, tmp_path):
    arrays = {"connectomes": cohort.connectomes - 5, "features": cohort.features}
    kw = {"atlas": cohort.region_names, "feature_names": "fdg"}
    learnt = Cohort.from_arrays(labels=cohort.y, **arrays, **kw, negative="drop")
    fit_model(learnt, tmp_path / "model", ridge_model())
    model = load_model(tmp_path / "model")
    people = read_new_people(model, **arrays)
    np.testing.assert_array_equal(people.connectomes, learnt.connectomes)
    told = predict_people(model, learnt).drop(columns="label")
    assert predict_people(model, people).equals(told)
    names = [f"p{row}" for row in range(cohort.n_scans)]
    table = pd.DataFrame(cohort.features[..., 0], names, cohort.region_names)
    people = read_new_people(model, **arrays | {"features": table})
    assert predict_people(model, people)["participant"].tolist() == names
    with pytest.raises(ParameterError, match="features contains tau; expected fdg"):
        read_new_people(model, **arrays | {"features": {"tau": table}})
    other = Cohort.from_arrays(labels=None, **arrays, **kw, negative="absolute")
    with pytest.raises(ParameterError, match=r"negative must be 'drop'.*'absolute'"):
        predict_people(model, other)


def test_several_features_of_arrays_are_named(tmp_path):
    cohort = make_cohort(24, atlas="desikan82", feature=["fdg", "volume"])
    model = fit_model(cohort, tmp_path / "model", ridge_model())
    arrays = {"connectomes": cohort.connectomes, "features": cohort.features}
    with pytest.raises(ParameterError, match=r"one array for each of: fdg, volume"):
        read_new_people(model, **arrays)
    both = {name: cohort.features[..., k] for k, name in enumerate(["fdg", "volume"])}
    people = read_new_people(model, **arrays | {"features": both})
    np.testing.assert_array_equal(people.features, cohort.features)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda W: W / 1e5, "mean weight"),
        (lambda W: W * 1000, "mean weight"),
        (np.log1p, "mean weight .*spread of log weights"),
        (lambda W: (W > 0).astype(float), "spread of log weights"),
        (lambda W: W * (W.max() < 20 * W), "density"),
        (lambda W: W[:, ::-1, ::-1], "correlation of regions' strengths"),
        (
            lambda W: np.broadcast_to(dense_correlations(W), W.shape) * 1.0,
            "mean weight",
        ),
    ],
)
def test_connectomes_of_another_kind_are_told(cohort, stored, change, words):
    changed = np.array(change(cohort.connectomes.astype(float)), dtype=np.float32)
    changed[:, range(cohort.n_rois), range(cohort.n_rois)] = 0
    with pytest.warns(UserWarning, match=f"unlike the training connectomes: .*{words}"):
        predict_people(stored[0], replace(cohort, connectomes=changed))


def dense_correlations(W):
    """Return weights between all regions, as functional connectomes have them."""
    values = np.random.default_rng(0).uniform(0.1, 0.9, W.shape[1:])
    return (values + values.T) / 2


def test_others_of_the_same_kind_are_predicted_without_a_word(cohort, tmp_path):
    model = fit_model(cohort, tmp_path / "model", ridge_model())
    noise = np.random.default_rng(0).uniform(0.5, 2, cohort.connectomes.shape)
    other = cohort.connectomes * np.sqrt(noise * noise.transpose(0, 2, 1))
    features = cohort.features.copy()
    features[:, :6] = np.nan
    people = replace(cohort, connectomes=other, features=features)
    assert predict_people(model, people, ids_are_new=True)["remark"].isna().all()


@pytest.mark.filterwarnings("ignore:.* scans are unlike")
def test_people_of_the_training_are_counted_and_remarked(cohort, tmp_path):
    model = fit_model(cohort.select(range(12)), tmp_path / "model", ridge_model())
    table = cohort.table.copy()
    is_known = np.arange(cohort.n_scans) < 12
    table["participant"] = [f"new-{row}" for row in range(cohort.n_scans)]
    table.loc[20:21, "participant"] = cohort.groups[0]  # an id of the training
    people = replace(cohort, table=table)
    n_people = len(set(people.groups))
    with pytest.warns(UserWarning, match=f"^13 of {n_people} people were used for"):
        remarks = predict_people(model, people)["remark"]
    was_in_training = remarks.fillna("").str.contains(REMARKS[2])
    assert was_in_training.tolist() == [*is_known[:20], True, True, *is_known[22:]]
    with pytest.warns(UserWarning, match=f"^12 of {n_people} people were") as told:
        remarks = predict_people(model, people, ids_are_new=True)["remark"]
    assert not any("ids_are_new" in str(warning.message) for warning in told)
    assert remarks.fillna("").str.contains(REMARKS[2]).tolist() == is_known.tolist()


def test_row_numbers_are_no_ids_of_people(cohort, tmp_path):
    """People of arrays without ids are not those of the training."""
    arrays = {"connectomes": cohort.connectomes, "features": cohort.features}
    kw = {"atlas": cohort.region_names, "feature_names": "fdg"}
    learnt = Cohort.from_arrays(labels=cohort.y, **arrays, **kw)
    model = fit_model(learnt, tmp_path / "model", ridge_model())
    people = read_new_people(model, **arrays | {"features": cohort.features * 1.01})
    people = replace(people, connectomes=people.connectomes * np.float32(1.01))
    assert not predict_people(model, people)["remark"].eq(REMARKS[2]).any()


@pytest.mark.parametrize("n_scans", [1, 24])
@pytest.mark.parametrize("model", [ridge_model(), scan_scaled_model()])
def test_single_wrong_values_and_missing_regions_have_a_remark(
    cohort, tmp_path, model, n_scans
):
    fitted = fit_model(cohort, tmp_path / "model", model)
    region = cohort.region_names[7]
    people = cohort.select(range(n_scans))
    scan = people.table["scan"][0]
    for value, remark, warning in (
        (-1.2, f"implausible value in {region} (-1.2)", "Correct the values"),
        (1017613, f"implausible value in {region} (1017613)", "Correct the values"),
        (3.9, f"value unlike the training in {region} (3.9)", "more than 20 standard"),
    ):
        features = people.features.copy()
        features[0, 7] = value
        changed = replace(people, features=features)
        told = f"^The predictions of 1 of {n_scans} scans .*{scan}: .*{warning}"
        with pytest.warns(UserWarning, match=told):
            table = predict_people(fitted, changed, ids_are_new=True)
        assert remark in table["remark"][0]
        assert not table["remark"][1:].str.contains("value").any()
        assert table.attrs["n_implausible"] == (value != 3.9)
    features = people.features.copy()
    features[0, 10:30] = np.nan
    with pytest.warns(UserWarning, match=f"^1 of {n_scans} scans .*{scan}.* lacks"):
        table = predict_people(fitted, replace(people, features=features))
    assert f"20 of {fitted.measured_.sum()} regions missing" in table["remark"][0]
    assert table.attrs["n_sparse"] == 1


def test_the_regions_of_a_far_value_are_named_by_feature(tmp_path):
    cohort = make_cohort(24, atlas="desikan82", feature=["volume", "fdg"])
    cohort = replace(cohort, feature_names=("volume", "custom"))
    model = fit_model(cohort, tmp_path / "model", ridge_model())
    features = cohort.features.copy()
    features[3, 5, 1] = 1e9
    with pytest.warns(UserWarning, match="^The predictions of 1 of"):
        table = predict_people(model, replace(cohort, features=features))
    remark = f"value unlike the training in {cohort.region_names[5]} (custom 1e+09)"
    assert table["remark"].str.contains(remark, regex=False).tolist().index(True) == 3


def test_scans_without_most_regions_are_refused(cohort, stored):
    features = cohort.features.copy()
    features[3, 20:] = np.nan
    with pytest.raises(CohortError, match=r"1 of .* because more than 50%") as error:
        predict_people(stored[0], replace(cohort, features=features))
    assert cohort.table["scan"][3] in str(error.value)
    features[3, 20:] = cohort.features[3, 20:]
    features[3:5, 60:] = np.nan
    with pytest.warns(UserWarning, match=r"2 of .* scans .* lack up to 27%"):
        predict_people(stored[0], replace(cohort, features=features))


def test_labels_of_new_people_are_merged_as_in_the_fit(cohort, tmp_path):
    two = merge_classes(cohort, "5-to-2")
    model = fit_model(two, tmp_path / "model", ridge_model())
    told = predict_people(model, cohort)
    assert set(told["label"]) == {"unimpaired", "impaired"}
    assert set(told["predicted"]) <= {"unimpaired", "impaired"}


def test_an_atlas_that_was_moved_is_asked_for(tmp_path):
    atlas = tmp_path / "mine"
    atlas.mkdir()
    (atlas / "regions.tsv").write_text("name\themisphere\na_L\tL\na_R\tR\nb\tM\n")
    rng, y = np.random.default_rng(0), ["CN", "AD"] * 8
    W, F = rng.random((16, 3, 3)), rng.random((16, 3))
    made = Cohort.from_arrays(W + W.transpose(0, 2, 1), F, y, atlas=str(atlas))
    options = made.reading_options.change(atlas=str(atlas))
    made = replace(made, reading_options=options)
    model = fit_model(made, tmp_path / "m.safetensors", LSAPRidgeClassifier())
    assert (
        read_new_people(model, connectomes=made.connectomes, features=F).n_scans == 16
    )
    atlas.rename(tmp_path / "moved")
    with pytest.raises(ParameterError, match="mine, which was not found"):
        read_new_people(model, tmp_path)


def test_new_people_may_come_from_where_the_disease_is_rarer(cohort, tmp_path):
    ridge = LSAPRidgeClassifier("none")
    fitted = fit_model(cohort, tmp_path / "model.safetensors", ridge)
    loaded = load_model(tmp_path / "model.safetensors")
    table = predict_people(loaded, cohort)
    shares = cohort.table["label"].value_counts(normalize=True)
    assert table.attrs["class_prior"] == pytest.approx(shares.to_dict())
    rare = dict(zip(cohort.classes, (0.8, 0.05, 0.05, 0.05, 0.05), strict=True))
    elsewhere = predict_people(loaded, cohort, class_prior=rare)
    assert elsewhere.attrs["class_prior"] == pytest.approx(rare)
    assert elsewhere["predicted"].equals(table["predicted"])
    healthy, ill = (f"p_{cohort.classes[place]}" for place in (0, -1))
    before, after = (one[healthy] / one[ill] for one in (table, elsewhere))
    ratio = (0.8 / 0.05) / (shares[cohort.classes[0]] / shares[cohort.classes[-1]])
    np.testing.assert_allclose(after, before * ratio, rtol=1e-6)
    again = predict_people(fitted, cohort, class_prior="training")
    assert again.equals(table)
    with pytest.raises(ParameterError, match="class_prior names ill"):
        predict_people(loaded, cohort, class_prior={**rare, "ill": 0.1})
    numbers = dict(zip(cohort.classes, "01234", strict=True))
    table = cohort.table.assign(label=cohort.table["label"].map(numbers))
    numbered = replace(cohort, table=table, classes=tuple("01234"))
    ridge = LSAPRidgeClassifier("none")
    fitted = fit_model(numbered, tmp_path / "numbers.safetensors", ridge)
    prior = {float(number): rare[name] for name, number in numbers.items()}
    predicted = predict_people(fitted, numbered, class_prior=prior)
    assert [*predicted.attrs["class_prior"].values()] == pytest.approx([*rare.values()])


@pytest.mark.parametrize(
    ("name", "classifier"),
    [
        ("lsap-r", "LSAPRidgeClassifier"),
        ("LSAP-H", "LSAPClassifier"),
        ("GCN", "NetworkClassifier"),
    ],
)
def test_a_model_is_made_by_its_name(name, classifier):
    model = make_unfitted_model(name, random_state=3, n_epochs=2)
    assert type(model).__name__ == classifier
    assert model.random_state == 3


@pytest.mark.parametrize(
    "name", ["random forest", "linear SVM", "shuffled edges", RANDOM_CONNECTOME_RIDGE]
)
def test_models_that_only_pickle_stores_are_refused_by_name(cohort, tmp_path, name):
    with pytest.raises(ParameterError, match=f"{name} cannot be stored.*pickle"):
        fit_model(cohort, tmp_path / "model", name)
    assert not (tmp_path / "model").exists()


def test_a_file_holds_one_model(cohort, tmp_path):
    with pytest.raises(ParameterError, match="file can contain only one"):
        fit_model(cohort, tmp_path / "model", "baselines")


def test_the_ridge_is_stored_by_name_as_cross_validation_fits_it(cohort, tmp_path):
    fit_model(cohort, tmp_path / "model", "LSAP-R")
    stored_ridge = load_model(tmp_path / "model")
    ((ridge, _),) = make_models("LSAP-R").values()
    configure_model_for_cohort(ridge, cohort).fit(
        cohort.to_array(), cohort.y, groups=cohort.groups
    )
    expected = pd.DataFrame(
        ridge.predict_proba(cohort.to_array()), columns=ridge.classes_
    )
    probabilities = predict_people(stored_ridge, cohort)
    for class_name in cohort.classes:
        np.testing.assert_array_equal(
            probabilities[f"p_{class_name}"], expected[class_name]
        )


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (LSAPClassifier(n_epochs=3), "LSAP-C"),
        (LSAPClassifier("hermite", preset="paper"), "LSAP-H"),
        (LSAPClassifier(options={"inputs": "constant"}), "constant features"),
        (make_unfitted_model("frozen scales"), "frozen scales"),
        (make_unfitted_model("gcn"), "GCN"),
        (LSAPRidgeClassifier("none"), "ridge without connectome"),
    ],
)
def test_a_model_is_named_as_in_reports(model, name):
    assert _find_model_name(model) == name


def test_a_file_without_hashes_of_training_people_recognises_nobody(stored, cohort):
    fitted, _ = stored
    origin = fitted.origin_
    facts = {name: fact for name, fact in origin.facts.items() if name != "people"}
    bare = copy.copy(fitted)
    bare.origin_ = replace(origin, facts=facts)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        predict_people(bare, cohort)
    assert not any("were used for training" in str(one.message) for one in seen)
    with pytest.warns(UserWarning, match="were used for training"):
        predict_people(fitted, cohort)


def test_advice_on_new_people_names_no_setting_of_the_fit(cohort, tmp_path):
    W = np.random.default_rng(0).random((cohort.n_rois, cohort.n_rois))
    path = tmp_path / "W.csv"
    pd.DataFrame(W, cohort.region_names, cohort.region_names).to_csv(path)
    with raises_kind("not symmetric") as caught:
        read_connectome(path, cohort.atlas)
    fault = Finding.from_error(caught.value)
    assert "symmetrize" in fault.text()
    assert "symmetrize" not in _adapt_finding_to_model(fault).text()


def test_a_ridge_says_which_it_chose_and_whether_it_reads_connectomes(cohort, tmp_path):
    ridge = LSAPRidgeClassifier("auto", n_draws=0)
    model = fit_model(cohort, tmp_path / "model", ridge)
    assert model.chosen_ == "none"
    chosen_text = "Chosen: ridge regression without the connectome"
    assert chosen_text in card_text(load_model(tmp_path / "model"))
    assert "Chosen:" not in card_text(
        fit_model(cohort, tmp_path / "one", ridge_model())
    )
    others = replace(cohort, connectomes=cohort.connectomes[::-1])
    told, expected = (predict_people(model, one)["p_AD"] for one in (others, cohort))
    np.testing.assert_allclose(told, expected, rtol=1e-4)
    write_study_folder(cohort, tmp_path / "study")
    for path in (tmp_path / "study").rglob("*connectivity*"):
        path.unlink()
    told_text = "the connectomes do not affect the predictions"
    with pytest.raises(CohortError, match=told_text):
        read_new_people(model, tmp_path / "study")
    fit_report = model.origin_.facts["card"]["fit_report"]
    for chosen, phrase in (("one", "one scale"), ("regions", "scale for every region")):
        fit_report["chosen"] = chosen
        assert phrase in card_text(model)
        with pytest.raises(CohortError) as error:
            read_new_people(model, tmp_path / "study")
        assert told_text not in str(error.value)
