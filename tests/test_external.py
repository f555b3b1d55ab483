"""A stored model tested on other people: scores, who is refused, sets, its card."""

import re
import shlex
import textwrap
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainlsap import (
    card_text,
    check_cohort,
    cli,
    contribution_table,
    cross_validate,
    evaluate_model,
    external,
    fit_model,
    load_cohort,
    load_model,
    make_cohort,
    merge_classes,
    predict_people,
    read_labelled_people,
    read_new_people,
    write_report,
)
from brainlsap.arrays import pack_scans
from brainlsap.cli import main
from brainlsap.data import quality_table, suggest_options
from brainlsap.data.flow import OTHER_CLASS, USED_FOR_TRAINING, left_out_table
from brainlsap.data.participants import UNLABELLED
from brainlsap.evaluation import (
    Deconfounder,
    Evaluation,
    bootstrap_score_table,
    leave_one_out_splits,
    make_models,
)
from brainlsap.evaluation.comparison import class_table
from brainlsap.evaluation.results import (
    OTHER_VERSION,
    REQUIRED_KEYS_BY_RECORD,
)
from brainlsap.evaluation.subgroups import (
    case_mix_table,
    largest_shift_table,
    subgroup_table,
)
from brainlsap.exceptions import CohortError, ParameterError
from brainlsap.external import ALL_CLASSES
from brainlsap.findings import EXCLUDED, FAULTY, NO_LABEL
from brainlsap.model import LSAPRidgeClassifier
from brainlsap.model.prediction_sets import (
    fit_prediction_sets,
    predict_set_membership,
    rebalance_scores,
)
from brainlsap.prediction import (
    NO_CARD,
    REMARKS,
    SET_COLUMN,
    list_person_hashes,
)
from brainlsap.report import (
    export_maps,
    list_methods_paragraphs,
    list_supplement_paragraphs,
    read_results,
)
from brainlsap.report.checklist import checklist_table
from brainlsap.report.conclusions import (
    draw_external_conclusions,
    judge_calibration,
    left_out_text,
)
from brainlsap.report.figures import prepare_axes_array
from brainlsap.report.page import FIGURES
from brainlsap.report.tables import (
    flow_text_table,
    make_external_table_by_name,
    model_score_table,
)
from brainlsap.simulation import write_study_folder
from tests.conftest import files_named_on_page, raises_kind

pytestmark = pytest.mark.usefixtures("brief_studies")

PAGE = Path(__file__).parents[1] / "docs" / "stored_model.rst"
CLASSES = ("CN", "EMCI", "AD")


@pytest.fixture(scope="module")
def cohort():
    shares = {"CN": 0.4, "SMC": 1e-9, "EMCI": 0.3, "LMCI": 1e-9, "AD": 0.3}
    whole = make_cohort(
        60,
        atlas="desikan82",
        random_state=1,
        n_sites=3,
        shares=shares,
        visit_shares=(0.8, 0.2),
    )
    return whole.select(np.isin(whole.y, CLASSES))


@pytest.fixture(scope="module")
def sites(cohort):
    """Return the people of one site, and of the others."""
    site = cohort.table["site"].to_numpy()
    return cohort.select(site == site[0]), cohort.select(site != site[0])


@pytest.fixture(scope="module")
def model_path(sites, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    fit_model(sites[1], path, ridge(), regress_out="age")
    return path


@pytest.fixture(scope="module")
def model(model_path):
    return load_model(model_path)


@pytest.fixture(scope="module")
def evaluation(model, sites):
    return evaluate_model(model, sites[0])


def ridge():
    return LSAPRidgeClassifier("one", n_draws=0, random_state=0)


def test_scores_are_those_of_leaving_the_site_out(cohort, evaluation):
    splits = leave_one_out_splits(cohort.table["site"], cohort.groups)
    left_out = cross_validate(
        {"ridge": ridge()}, cohort, splits, baselines=False, regress_out="age", n_jobs=1
    )
    test = evaluation.predictions
    expected = left_out.predictions
    fold = expected.loc[expected["scan"] == test["scan"][0], "fold"].item()
    expected = expected[expected["fold"] == fold].reset_index(drop=True)
    columns = ["scan", "truth", "predicted", *(f"p_{name}" for name in cohort.classes)]
    pd.testing.assert_frame_equal(test[columns], expected[columns], check_exact=True)
    scores = left_out.scores().query("fold == @fold").reset_index(drop=True)
    numbers = scores.columns[3:]
    pd.testing.assert_frame_equal(
        evaluation.scores()[numbers], scores[numbers], check_exact=True
    )


def test_a_site_without_training_is_not_called_harmonised(sites, tmp_path):
    path = tmp_path / "model.safetensors"
    fit_model(sites[1], path, ridge(), harmonize="site")
    model = load_model(path)
    with pytest.warns(UserWarning, match="not harmonised"):
        evaluation = evaluate_model(model, sites[0])
    n_scans = evaluation.settings["external"]["n_unharmonized"]
    assert n_scans == sites[0].n_scans
    likeness = draw_external_conclusions(evaluation).answers[4]
    assert likeness.label == "WARNING"
    assert f"{n_scans} of {n_scans} scans were not harmonised" in likeness.sentence
    assert f"{n_scans} scans of sites without" in " ".join(
        list_methods_paragraphs(evaluation)
    )
    assert evaluation.settings["external"]["learned_sites"] == []
    with pytest.warns(UserWarning, match="not harmonised"):
        table = predict_people(model, sites[0])
    assert (table["remark"] == REMARKS[3]).all()
    without = replace(sites[0], table=sites[0].table.drop(columns="site"))
    with pytest.raises(ParameterError, match="requires the covariates site for new"):
        predict_people(model, without)


def test_an_external_evaluation_has_no_maps_to_export(evaluation, tmp_path):
    with pytest.raises(ParameterError, match="no scales of regions"):
        export_maps(evaluation, tmp_path / "maps")
    assert not (tmp_path / "maps").exists()


def test_people_of_the_training_are_refused_by_id_and_by_data(model, sites):
    test, train = sites
    with pytest.raises(CohortError, match="were used to train") as error:
        evaluate_model(model, train)
    assert train.table["scan"][0] in str(error.value)
    assert "the column 'remark' marks all" in str(error.value)
    # The same data under other ids.
    renamed = train.table.assign(participant="x" + train.table["participant"])
    with pytest.raises(CohortError, match=f"{train.n_scans} of {train.n_scans} scans"):
        evaluate_model(model, replace(train, table=renamed), ids_are_new=True)
    # The same id with other data.
    table = test.table.copy()
    person = table["participant"][0]
    table.loc[table["participant"] == person, "participant"] = train.groups[0]
    with pytest.raises(
        CohortError, match=r"1 of .* same ID as a person in the training"
    ):
        evaluate_model(model, replace(test, table=table))
    evaluate_model(model, replace(test, table=table), ids_are_new=True)
    # The second study writes the id of this person without sub-.
    short_ids = table["participant"].str.removeprefix("sub-")
    assert not set(short_ids) & set(train.groups)
    with pytest.raises(
        CohortError, match=r"1 of .* same ID as a person in the training"
    ):
        evaluate_model(model, replace(test, table=table.assign(participant=short_ids)))


def test_equal_ids_and_equal_data_are_refused_together(model, sites):
    test, train = sites
    equal_id, *_ = train.groups
    renamed, equal_data, *_ = dict.fromkeys(test.groups)
    ids = test.table["participant"].mask(test.table["participant"] == renamed, equal_id)
    with_ids = replace(test, table=test.table.assign(participant=ids))
    features = test.features.copy()
    row = test.groups.tolist().index(equal_data)
    features[row] = train.features[train.groups != equal_id][0]
    both = replace(with_ids, features=features)
    with pytest.raises(CohortError) as error:
        evaluate_model(model, both)
    message = str(error.value)
    assert "1 of " in message
    assert "were used to train" in message
    assert "1 of " in message
    assert "same ID as a person in the training" in message
    assert equal_data in message
    assert equal_id in message
    assert message.index(equal_data) < message.index("same ID as")
    # `predict` counts both kinds, and names those with the ID alone.
    with pytest.warns(UserWarning, match="^2 of .* 1 of these people has the ID"):
        table = predict_people(model, both)
    marked = table["remark"].fillna("").str.contains("used for training")
    assert {*table["participant"][marked]} == {equal_data, equal_id}
    with pytest.warns(UserWarning, match="^1 of .* data of a scan are the same"):
        table = predict_people(model, both, ids_are_new=True)
    marked = table["remark"].fillna("").str.contains("used for training")
    assert {*table["participant"][marked]} == {equal_data}


def test_other_visits_of_people_of_the_training_are_refused(model, sites):
    test, train = sites
    counts = test.table["participant"].value_counts(sort=False)
    person = counts.index[counts > 1][0]
    rows = np.flatnonzero(test.groups == person)
    features = test.features.copy()
    features[rows[0]] = train.features[0]
    hospital = replace(test, features=features)
    with pytest.warns(UserWarning, match="^1 of"):
        table = predict_people(model, hospital)
    marked = table["remark"].fillna("").str.contains("used for training")
    assert np.flatnonzero(marked).tolist() == rows.tolist()
    # The visit of the training is excluded, the other one is not.
    kept = hospital.select(np.arange(test.n_scans) != rows[0], fate=USED_FOR_TRAINING)
    with pytest.raises(CohortError, match=r"1 of .* were used to train") as error:
        evaluate_model(model, kept, ids_are_new=True)
    assert f"exclude='{person}'" in str(error.value)


def test_visits_that_count_as_people_void_the_intervals(model, sites):
    test = sites[0]
    visits = test.table.groupby("participant").cumcount() + 1
    ids = test.table["participant"] + visits.map("_V{}".format)
    joined = replace(test, table=test.table.assign(participant=ids))
    counts = test.table["participant"].value_counts()
    n_people = int((counts > 1).sum())
    n_ids = int(counts[counts > 1].sum())
    assert n_people > 1
    with pytest.warns(UserWarning, match=f"{n_ids} people have .* {n_people} people"):
        evaluation = evaluate_model(model, joined)
    with pytest.warns(UserWarning, match=f"{n_ids} people have .* {n_people} people"):
        table = predict_people(model, joined)
    assert table.attrs["n_visit_like_ids"] == n_ids
    before = draw_external_conclusions(evaluate_model(model, test))
    after = draw_external_conclusions(evaluation)
    assert before.answers[0].answer == "YES"
    assert "better than chance" in before.may_write
    of_intervals = [*after.answers[:4], after.answers[5]]
    assert {conclusion.answer for conclusion in of_intervals} == {"NOT SHOWN"}
    assert "abstract" not in after.answers[0].reason
    assert after.may_write.startswith("Nothing yet")
    assert f"visits of only {n_people} people" in after.cautions[0]
    facts = evaluation.settings["external"]
    calibration = make_calibrated_rows(facts["calibration"])
    calibration[1] |= {"intercept": -1.0, "p_intercept": 0.0001}
    facts = facts | {"calibration": calibration}
    settings = evaluation.settings | {"external": facts}
    after = draw_external_conclusions(replace(evaluation, settings=settings))
    assert after.answers[2].answer == "NOT SHOWN"
    assert "not valid" in after.answers[2].sentence


def test_the_file_names_nobody_of_the_training(model, sites, tmp_path):
    from brainlsap.model import save_model

    content = save_model(model, tmp_path / "model").read_bytes()
    assert not any(person.encode() in content for person in set(sites[1].groups))
    salt = model.origin_.facts["people"]["salt"]
    assert (
        list_person_hashes(sites[1].groups, salt)
        == model.origin_.facts["people"]["ids"]
    )


def test_the_column_of_the_labels_is_no_covariate(model, sites):
    table = sites[0].table.assign(Dx=sites[0].table["label"])
    hospital = replace(sites[0], table=table, label_name="Dx")
    tested = evaluate_model(model, hospital)
    assert "Dx" not in tested.cohort.table
    assert (tested.cohort.table["label"] == table["label"]).all()


def test_unknown_classes_are_refused_by_name(model, sites):
    other = sites[0].table.assign(label=sites[0].table["label"].replace("AD", "VaD"))
    changed = replace(sites[0], table=other, classes=("CN", "EMCI", "VaD"))
    with pytest.raises(ParameterError, match=r"the classes VaD \(\d+ scans\); its"):
        evaluate_model(model, changed)


def test_scans_without_label_are_left_out_and_counted(model, sites, evaluation):
    labels = sites[0].table["label"].copy()
    is_unknown = (sites[0].table["participant"] == sites[0].groups[0]).to_numpy()
    labels[is_unknown] = UNLABELLED
    unlabelled = replace(
        sites[0],
        table=sites[0].table.assign(label=labels),
        classes=(*sites[0].classes, UNLABELLED),
    )
    tested = evaluate_model(model, unlabelled)
    assert tested.cohort.n_scans == evaluation.cohort.n_scans - is_unknown.sum()
    assert any(f": {is_unknown.sum()}" in note for note in tested.cohort.notes)
    tested = evaluate_model(model, replace(unlabelled, label_name="Befund"))
    assert any("they have no Befund: " in note for note in tested.cohort.notes)


@pytest.mark.filterwarnings("ignore:age ranges")
def test_case_mix_shows_what_differs(model, sites):
    older = sites[0].table.assign(age=sites[0].table["age"] + 12)
    tested = evaluate_model(model, replace(sites[0], table=older))
    table = pd.DataFrame(tested.settings["external"]["case_mix"])
    table = table.set_index("characteristic")
    ages = sites[1].table.drop_duplicates("participant")["age"].astype(float)
    new_ages = older.drop_duplicates("participant")["age"].astype(float)
    expected = (new_ages.mean() - ages.mean()) / ages.std()
    assert float(table.loc["age", "difference"]) == pytest.approx(expected, abs=0.005)
    site = sites[0].table["site"][0]
    n_people = len(set(sites[0].groups))
    assert table.loc[f"site: {site}", "test"] == f"{n_people} (100%)"
    assert table.loc[f"site: {site}", "training"].startswith("0 ")
    assert table.loc[f"site: {site}", "points"] == "+100"
    assert table.loc["age", "points"] == table.loc["class: AD", "difference"] == ""
    caution = draw_external_conclusions(tested).cautions[-1]
    assert "no site in common" in caution
    assert f"mean age {ages.mean():.1f} to {new_ages.mean():.1f} years" in caution
    # Ages that hardly differ are no difference to name.
    own_ages = sites[0].table.drop_duplicates("participant")["age"].astype(float)
    alike = sites[0].table.assign(
        age=sites[0].table["age"] + ages.mean() - own_ages.mean()
    )
    tested = evaluate_model(model, replace(sites[0], table=alike))
    assert "mean age" not in draw_external_conclusions(tested).cautions[-1]


def test_the_share_that_differs_most_is_named():
    training_mix = {
        "classes": {"CN": 18, "SMC": 12, "EMCI": 22, "LMCI": 11, "AD": 12},
        "counts": {"sex": {"F": 47, "M": 28}, "site": {"a": 3}, "scanner": {}},
    }
    test_mix = {
        "classes": {"CN": 12, "SMC": 4, "EMCI": 18, "LMCI": 9, "AD": 2},
        "counts": {"sex": {"male": 24, "female": 21}, "site": {"b": 45}},
    }
    table = largest_shift_table(training_mix, test_mix).set_index("characteristic")
    assert table["category"].to_dict() == {"class": "AD", "sex": "F", "site": ""}
    assert table.loc["class", ["training", "test"]].tolist() == [12 / 75, 2 / 45]
    assert table.loc["sex", ["training", "test"]].tolist() == [47 / 75, 21 / 45]


def test_the_part_of_small_classes_in_the_score_is_stated(evaluation):
    cautions = " ".join(draw_external_conclusions(evaluation).cautions)
    rates = class_table(evaluation, evaluation.models[0], n_draws=2).set_index("class")
    assert rates["people"].to_dict() == {"CN": 7, "EMCI": 2, "AD": 7}
    sensitivity = rates.loc["EMCI", "sensitivity"]
    part_text = f"{sensitivity / 3:.3f} are from EMCI (2 participants"
    assert f"of {rates['sensitivity'].mean():.3f}, {part_text}" in cautions
    assert "are from AD" not in cautions


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ({"male": 3, "Woman": 1}, {"M": "3 (75%)", "F": "1 (25%)"}),
        ({"F": 2}, {"M": "0 (0%)", "F": "2 (100%)"}),
        ({"1": 2}, {"no value occurs in both": "", "1": "2 (100%)"}),
    ],
)
def test_spellings_of_sex_are_counted_together(test, expected):
    people = {"n_people": 4, "n_scans": 4, "classes": {}, "numbers": {}}
    table = case_mix_table(
        people | {"counts": {"sex": {"M": 2, "F": 2}}},
        people | {"counts": {"sex": test}},
    ).set_index("characteristic")["test"]
    assert {name: table[f"sex: {name}"] for name in expected} == expected


def all_methods(evaluation):
    """Return the paragraphs of methods and supplement."""
    return [
        *list_methods_paragraphs(evaluation),
        *list_supplement_paragraphs(evaluation),
    ]


@pytest.mark.filterwarnings("ignore:.*scans")
def test_figures_in_shared_sections_are_on_the_page_of_an_external_test(
    evaluation, tmp_path, monkeypatch
):
    # Allow every figure on the page: one that has a place there must be allowed anyway.
    def draw(*_, **__):
        (axes,) = prepare_axes_array(None, 85)
        return axes

    allowed_names = {
        name for name, figure in FIGURES.items() if figure.is_on_external_page
    }
    for name, figure in FIGURES.items():
        allowed = replace(figure, draw=draw, is_on_external_page=True)
        monkeypatch.setitem(FIGURES, name, allowed)
    page = write_report(evaluation, tmp_path / "results").read_text(encoding="utf-8")
    placed_names = {*re.findall('<figure class="([^"]+)"', page)}
    assert {"classes", "subgroups"} <= placed_names
    assert placed_names <= allowed_names, (
        f"set is_on_external_page=True for {placed_names - allowed_names} in FIGURES"
    )


@pytest.mark.filterwarnings("ignore:.*scans")
def test_a_report_is_headed_external_evaluation_and_read_again(
    model, sites, evaluation, tmp_path_factory, monkeypatch
):
    folder = tmp_path_factory.mktemp("out") / "results"
    # The folder of the other people does not say that they were simulated.
    assert "; 1 fold\n" in repr(evaluation)
    assert "nan" not in repr(evaluation)
    copied = replace(evaluation, cohort=replace(evaluation.cohort, truth=None))
    page = write_report(copied, folder).read_text(encoding="utf-8")
    assert "Scores in these participants" in page
    # Only the scores of the table are explained, and only sources that are cited.
    assert "<p>Balanced accuracy is the share" in page
    assert "Macro precision is" not in page
    for source in ("Buehler", "Price", "Zou", "Van Calster"):
        is_listed = any(source in item for item in re.findall("<li>[^\n]*", page))
        assert is_listed == (source in " ".join(map(str, all_methods(copied)))), source
    assert re.search("<h1>.*SIMULATED", page)
    assert "over folds" not in page
    assert not any("over folds" in name for name in model_score_table(evaluation))
    # The class weights of the fit, and not the probability, choose the class.
    rows = evaluation.predictions
    probabilities = rows[[f"p_{name}" for name in CLASSES]].to_numpy()
    is_predicted = rows["predicted"].to_numpy()[:, None] == np.array(CLASSES)
    assert (probabilities[is_predicted] < probabilities.max(axis=1)).any()
    assert f"below 1/{len(CLASSES)}" in page
    assert not any(person in page for person in evaluation.cohort.table["participant"])
    assert {"case_mix", "calibration", "subgroups"} <= {
        path.stem for path in (folder / "report" / "tables").iterdir()
    }
    named_files = files_named_on_page(folder)
    assert {"report/tables/fold_scores.tsv", "private/codes.tsv"} <= named_files
    assert [name for name in named_files if not (folder / name).is_file()] == []
    figure_names = {path.stem for path in (folder / "report" / "figures").iterdir()}
    assert {"classes", "subgroups"} <= figure_names
    off_page = {name for name in figure_names if f"figures/{name}.png" not in page}
    assert not off_page, "place these figures in external.html.j2"
    placed_names = re.findall('<figure class="([^"]+)"', page)
    repeated = {name for name in placed_names if placed_names.count(name) > 1}
    assert not repeated, "place these figures in one template alone"
    # The same evaluation replaces it, another is refused before people are predicted.
    evaluate_model(model, sites[0], out=folder)
    monkeypatch.delattr(external, "predict_people")
    with pytest.raises(ParameterError, match="overwrite=True"):
        evaluate_model(model, sites[0], class_prior="balanced", out=folder)
    again = read_results(folder)
    assert again.settings["subgroups"] == ["sex", "age"]  # All are of one site.
    assert isinstance(again, Evaluation)
    assert again.predictions.equals(evaluation.predictions)


def test_an_evaluation_of_an_earlier_version_is_refused_whole(
    evaluation, tmp_path, capsys
):
    facts = evaluation.settings["external"]
    for record_name, record in {
        "": facts,
        ".card": facts["card"],
        ".card.training": facts["card"]["training"],
        ".people": facts["people"],
        ".case_mix": facts["case_mix"][0],
        ".calibration": facts["calibration"][0],
        ".coverage": facts["coverage"][0],
    }.items():
        # A key that is written is needed: name it where results are read.
        required_keys = REQUIRED_KEYS_BY_RECORD[f"settings.external{record_name}"]
        assert {*record} == {*required_keys}
    earlier_facts = {key: value for key, value in facts.items() if key != "people"}
    earlier_calibration = [
        {key: value for key, value in row.items() if key != "p_slope"}
        for row in facts["calibration"]
    ]
    for lacking_facts, missing in (
        (earlier_facts, "settings.external.people"),
        (facts | {"calibration": earlier_calibration}, "calibration.p_slope"),
    ):
        settings = evaluation.settings | {"external": lacking_facts}
        folder = tmp_path / missing / "private" / "evaluation"
        replace(evaluation, settings=settings).save(folder)
        with raises_kind(OTHER_VERSION, "evaluation") as caught:
            read_results(tmp_path / missing)
        assert caught.value.values["missing"][0].endswith(missing)
        assert "`brainlsap evaluate`" in str(caught.value)
        assert main(["report", str(tmp_path / missing)]) == 2
        assert "Traceback" not in capsys.readouterr().err
        assert [path.name for path in (tmp_path / missing).iterdir()] == ["private"]


def test_a_model_with_the_card_of_an_earlier_version_is_refused(model_path, sites):
    model = load_model(model_path)
    model.origin_.facts["card"]["training"].pop("counts")
    model.origin_.facts["card"].pop("is_simulated")
    missing = ["is_simulated", "training.counts"]
    for use in (lambda: evaluate_model(model, sites[0]), lambda: card_text(model)):
        with raises_kind(OTHER_VERSION, error=ParameterError, missing=missing):
            use()
    model.origin_.facts.pop("card")
    with raises_kind(NO_CARD, error=ParameterError):
        card_text(model)


def test_the_card_says_on_whom_and_with_what_scores(cohort, tmp_path):
    scores = cross_validate(
        make_models("ridge with one scale"), cohort, 2, baselines=False, n_jobs=1
    )
    path = tmp_path / "model"
    model = fit_model(cohort, path, "ridge with one scale", scores=scores)
    text = card_text(load_model(path))
    assert (
        f"Trained on: {len(set(cohort.groups))} people, {cohort.n_scans} scans" in text
    )
    value = model.origin_.facts["card"]["scores"]["values"]["balanced_accuracy"][0]
    assert f"balanced accuracy: {value:.3f}" in text
    assert "connectome: one for each scan" in text
    assert not any(person in text for person in set(cohort.groups))
    with pytest.raises(ParameterError, match="regress_out"):
        fit_model(cohort, tmp_path / "m", ridge(), regress_out="age", scores=scores)
    with pytest.raises(ParameterError, match="ridge with one scale"):
        fit_model(cohort, tmp_path / "m", "ridge without connectome", scores=scores)
    half = cohort.select(np.arange(cohort.n_scans) > 5)
    with pytest.raises(ParameterError, match="other data"):
        fit_model(half, tmp_path / "m", "ridge with one scale", scores=scores)
    assert not (tmp_path / "m").exists()


def test_a_folder_of_a_second_hospital_is_read_and_tested(model, sites, tmp_path):
    table = sites[0].table.assign(
        label=sites[0].table["label"].replace({"CN": "Control", "AD": "Dementia"})
    )
    hospital = replace(sites[0], table=table, classes=("Control", "EMCI", "Dementia"))
    folder = write_study_folder(hospital, tmp_path / "hospital")
    # EMCI is a class of the model, so it needs no name.
    people = read_labelled_people(model, folder, merge_classes="CN=Control,AD=Dementia")
    truth = evaluate_model(model, people).predictions.set_index("scan")["truth"]
    assert truth.to_dict() == dict(
        zip(sites[0].table["scan"], sites[0].table["label"], strict=True)
    )
    # Two labels may be one class; a label that nobody names is left out.
    people = read_labelled_people(model, folder, merge_classes="AD=Dementia")
    assert set(people.y) == {"EMCI", "AD"}
    assert set(people.left_out["fate"]) == {OTHER_CLASS}
    for text in ("CN,EMCI,AD=Dementia", "AD=", "Dementia=AD"):
        with pytest.raises(ParameterError, match="merge_classes"):
            read_labelled_people(model, folder, merge_classes=text)


def test_labels_may_spell_the_numbers_of_the_classes_in_another_way(sites, tmp_path):
    numbers = {name: f"{CLASSES.index(name)}.0" for name in CLASSES}
    first_site, other_sites = (
        replace(
            site,
            table=site.table.assign(label=site.table["label"].map(numbers)),
            classes=tuple(numbers.values()),
        )
        for site in sites
    )
    model = fit_model(other_sites, tmp_path / "model.safetensors", ridge())
    # A column of numbers in a table of people is read without decimal places.
    folder = write_study_folder(first_site, tmp_path / "hospital")
    people = read_labelled_people(model, folder)
    assert set(people.y) == {"0", "1", "2"}
    truth = evaluate_model(model, people).predictions["truth"]
    assert truth.tolist() == first_site.y.tolist()
    merged = read_labelled_people(model, folder, merge_classes={2: [1]})
    assert set(merged.y) == {"0.0", "2.0"}


def write_tables_of_a_hospital(cohort, folder):
    """Write a table of people, two tables of uptake and a matrix for each person."""
    (folder / "sc").mkdir(parents=True)
    people = cohort.table.drop_duplicates("participant")
    ids = list(people["participant"].str.removeprefix("sub-"))
    columns = {"Dx": list(people["label"]), "Age": list(people["age"])}
    clinical = pd.DataFrame({"patient_id": ids} | columns)
    clinical.to_csv(folder / "clinical.csv", index=False)
    names = list(cohort.atlas.names)
    features = pd.DataFrame(cohort.features[people.index, :, 0], ids, names)
    for file_name in ("fdg_suvr.csv", "fdg_suvr_pons.csv"):
        features.to_csv(folder / file_name, index_label="patient_id")
    for person, matrix in zip(ids, cohort.connectomes[people.index], strict=True):
        connectome = pd.DataFrame(matrix, names, names)
        connectome.to_csv(folder / "sc" / f"{person}.csv", index_label="region")
    return folder


def printed_command(capsys):
    """Return the arguments of the command that a refused command proposes."""
    command = capsys.readouterr().err.partition("with this command:")[2]
    return shlex.split(command.strip().splitlines()[0])[1:]


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_the_proposed_command_reads_a_folder_of_tables(
    model_path, sites, tmp_path, capsys, monkeypatch, command
):
    # The report is another subject.
    monkeypatch.setattr("brainlsap.write_report", lambda *_, **__: "report.html")
    table = sites[0].table
    table = table.assign(label=table["label"].replace({"EMCI": "early MCI"}))
    hospital = replace(sites[0], table=table, classes=("CN", "early MCI", "AD"))
    folder = write_tables_of_a_hospital(hospital, tmp_path / "hospital")
    asked = [command, str(model_path), str(folder), "--out", str(tmp_path / "out")]
    if command == "predict":
        asked += ["--label", "Dx"]
    assert main(asked) == 2
    proposed = printed_command(capsys)
    assert "Dx" in proposed
    assert ("EMCI=early MCI" in proposed) == (command == "evaluate")
    assert "--features-table" in proposed
    assert main(proposed) == 0


def test_check_goes_on_with_the_column_of_stages(sites, tmp_path):
    folder = write_tables_of_a_hospital(sites[0], tmp_path)
    options = {"atlas": "desikan82", "feature": "fdg"}
    (changes,) = suggest_options(check_cohort(folder, **options), options)
    assert changes["label"] == "Dx"
    assert changes["pattern"] == "sc/{participant}.csv"
    assert check_cohort(folder, **options | changes).is_sound
    # A second column of stages would have to be chosen by the user.
    clinical = pd.read_csv(folder / "clinical.csv")
    clinical.assign(Later=clinical["Dx"]).to_csv(folder / "clinical.csv", index=False)
    assert suggest_options(check_cohort(folder, **options), options) == []


def test_an_unknown_option_is_refused_with_the_nearest_name(model, tmp_path):
    for options, name in (
        ({"merged_classes": "AD=Dementia"}, "merge_classes"),
        ({"patterns": "*_sc.csv"}, "pattern"),
    ):
        with pytest.raises(ParameterError, match=f"nearest name is {name}"):
            read_labelled_people(model, tmp_path, **options)
    with pytest.raises(ParameterError, match=r"no option merge_classes= .* row_order"):
        read_new_people(model, tmp_path, merge_classes="AD=Dementia")


def test_the_label_of_a_saved_cohort_is_proposed(model, sites, tmp_path):
    path = tmp_path / "people.h5"
    labels = sites[0].table["label"].replace("AD", "Dementia")
    table = sites[0].table.assign(label=labels)
    classes = ("CN", "EMCI", "Dementia")
    replace(sites[0], table=table, classes=classes, label_name="Dx").save(path)
    message = r"no column 'diagnosis'.*label='Dx'.* Dementia \(.*'AD=Dementia'.*\.$"
    with pytest.raises(ParameterError, match=message):
        read_labelled_people(model, path)
    with pytest.raises(CohortError, match="no other table with IDs"):
        read_labelled_people(model, tmp_path)


def test_evaluate_says_what_the_training_had_and_the_test_has_not(
    model_path, sites, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("brainlsap.write_report", lambda *_, **__: "report.html")

    def notes_of(table):
        path = replace(sites[0], table=table).save(tmp_path / "hospital.h5")
        asked = ["evaluate", str(model_path), str(path), "--out", str(tmp_path / "out")]
        assert main(asked) == 0
        lines = capsys.readouterr().out.splitlines()
        return [line for line in lines if line.startswith("Note: the training data")]

    table = sites[0].table
    assert notes_of(table.rename(columns={"site": "Klinik"})) == []
    (note,) = notes_of(table.rename(columns={"site": "Haus"}).drop(columns="sex"))
    assert "contain sex and site" in note
    assert "Haus" in note


def test_people_without_label_are_no_other_class(model, sites, tmp_path):
    table = sites[0].table
    labels = table["label"].replace("AD", "Dementia")
    is_unknown = table["participant"] == table["participant"][0]
    labels[is_unknown] = UNLABELLED
    cohort = replace(
        sites[0],
        table=table.assign(label=labels),
        classes=("CN", "EMCI", "Dementia", UNLABELLED),
    )
    cohort.save(tmp_path / "people.h5")
    cohort = read_labelled_people(
        model, tmp_path / "people.h5", merge_classes="AD=Dementia"
    )
    fates = cohort.left_out.set_index("scan")["fate"]
    assert fates.loc[table["scan"][is_unknown]].eq(NO_LABEL).all()
    assert OTHER_CLASS not in set(fates)


def test_scans_without_most_values_are_left_out_on_request(model, sites, tmp_path):
    features = sites[0].features.copy()
    features[1, 30:] = np.nan
    scan = sites[0].table["scan"][1]
    path = tmp_path / "people.h5"
    replace(sites[0], features=features).save(path)
    people = read_labelled_people(model, path)
    with pytest.raises(CohortError, match="exclude='" + scan):
        evaluate_model(model, people)
    people = read_labelled_people(model, path, skip_faulty=True)
    assert scan not in set(evaluate_model(model, people).predictions["scan"])
    (row,) = people.left_out.query("scan == @scan").to_dict("records")
    assert row["fate"] == FAULTY
    assert "of the values that were used in the fit" in row["reason"]


@pytest.mark.skipif(not PAGE.is_file(), reason="the docs are not here")
@pytest.mark.filterwarnings("ignore:.*scans")
@pytest.mark.usefixtures("scores_figure_alone")
def test_the_commands_of_the_page_run(sites, tmp_path, monkeypatch, capsys):
    write_study_folder(sites[1], tmp_path / "study")
    write_study_folder(sites[0], tmp_path / "hospital")
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"\.\. code-block:: (\w+)\n\n((?:   .*\n|\n)+)", page)
    n_commands = 0
    for language, text in blocks:
        code = textwrap.dedent(text).strip()
        if language == "python":
            exec(code, {})
            continue
        for line in code.splitlines():
            # A whole run takes minutes, and the study is too small to be divided.
            if not ("results" in line or ".txt" in line):
                assert main(shlex.split(line)[1:]) == 0, line
                n_commands += 1
    assert n_commands == 5
    assert (tmp_path / "evaluation_python" / "report" / "report.html").is_file()
    assert SET_COLUMN in pd.read_csv(tmp_path / "predictions.tsv", sep="\t")
    lines = capsys.readouterr().out.splitlines()
    measured = [line for line in lines if line.startswith("Measured coverage")]
    assert len(measured) == len(CLASSES) + 1
    asked = "predict model.safetensors hospital --label diagnosis --out again.tsv"
    assert main(asked.split()) == 0
    assert set(measured) <= set(capsys.readouterr().out.splitlines())


def test_labels_that_are_no_classes_are_named_beside_the_coverage(capsys):
    labels = ["CN", "AD", "Control", "Control", None]
    rows = {"participant": list("abcde"), "label": labels, SET_COLUMN: "CN"}
    table = pd.DataFrame(rows)
    table.attrs["is_in_training"] = [False] * 5
    cli._print_label_coverage(table, ["CN", "AD"])
    printed = capsys.readouterr().out
    assert re.search("in class CN: .* of 1 participant ", printed)
    assert "in all classes: " in printed
    assert "several scans" not in printed
    rows = {
        "participant": list("aab"),
        "label": ["CN"] * 3,
        SET_COLUMN: ["CN", "AD", "CN"],
    }
    table = pd.DataFrame(rows)
    table.attrs["is_in_training"] = [False] * 3
    cli._print_label_coverage(table, ["CN", "AD"])
    printed_of_visits = capsys.readouterr().out
    assert "75% of 2 participants" in printed_of_visits
    assert (
        "coverage of the participant is the share of these scans" in printed_of_visits
    )
    assert "the labels Control (2 scans) are not classes" in printed
    # People of the training do not measure anything.
    table.attrs["is_in_training"] = [False, False, True]
    cli._print_label_coverage(table, ["CN", "AD"])
    printed = capsys.readouterr().out
    assert "50% of 1 participant" in printed
    assert "1 scan was used for training" in printed


class TestPredictionSets:
    """Sets on a line of stages, of left-out scores that are planted."""

    @staticmethod
    def planted(n_people, n_classes=3, seed=0):
        """Return a ridge whose left-out scores are stage plus noise, and its labels."""
        rng = np.random.default_rng(seed)
        codes = np.repeat(np.arange(n_classes), n_people)
        fitted = LSAPRidgeClassifier()
        fitted.stages_ = np.arange(n_classes).astype(str)
        fitted.means_ = np.arange(n_classes)[:, None].astype(float)
        noise = rng.normal(scale=0.7, size=(len(codes), 1))
        fitted.left_out_scores_ = codes[:, None] + noise
        return fitted, codes.astype(str)

    def test_sets_cover_new_people_of_every_class(self):
        coverage = []
        for seed in range(60):
            fitted, y = self.planted(30, seed=seed)
            sets = fit_prediction_sets(fitted, y, np.arange(len(y)))
            other, _ = self.planted(200, seed=1000 + seed)
            is_in_set = predict_set_membership(fitted, sets, other.left_out_scores_)
            codes = np.repeat(np.arange(3), 200)
            holds = is_in_set[np.arange(len(codes)), codes]
            coverage.append(holds.reshape(3, 200).mean(axis=1))
        means = np.mean(coverage, axis=0)
        assert ((means > 0.87) & (means < 0.93)).all()

    def test_stages_of_a_set_have_no_gap(self):
        fitted, y = self.planted(12, n_classes=5)
        sets = fit_prediction_sets(fitted, y, np.arange(len(y)))
        scores = np.linspace(-2, 6, 200)[:, None]
        is_in_set = predict_set_membership(fitted, sets, scores).astype(int)
        n_starts = (np.diff(np.pad(is_in_set, ((0, 0), (1, 0)))) == 1).sum(axis=1)
        assert n_starts.max() == 1

    @pytest.mark.parametrize(("n_people", "has_sets"), [(8, False), (9, True)])
    def test_nine_people_of_a_class_are_needed(self, n_people, has_sets):
        fitted, y = self.planted(n_people)
        sets = fit_prediction_sets(fitted, y, np.arange(len(y)))
        assert (None not in sets["quantiles"]) == has_sets
        if not has_sets:
            with pytest.raises(
                ParameterError, match="no set can be computed at this level"
            ):
                predict_set_membership(fitted, sets, fitted.left_out_scores_)

    def test_a_person_counts_once_whatever_the_number_of_visits(self):
        fitted, y = self.planted(20)
        once = fit_prediction_sets(fitted, y, np.arange(len(y)))
        twice, _ = self.planted(20)
        twice.left_out_scores_ = np.repeat(fitted.left_out_scores_, 3, axis=0)
        people = np.repeat(np.arange(len(y)), 3)
        thrice = fit_prediction_sets(twice, np.repeat(y, 3), people)
        np.testing.assert_allclose(once["quantiles"], thrice["quantiles"])

    def test_a_person_is_left_out_of_the_center_with_all_visits(self):
        fitted, y = self.planted(18)  # in order of class
        people = np.repeat(np.arange(27), 2)
        sets = fit_prediction_sets(fitted, y, people)
        codes = y.astype(int)
        scores = rebalance_scores(fitted.left_out_scores_, codes, people)[:, 0]
        middle = range(9, 18)  # the people of the middle class, two visits each
        distances = []
        for person in middle:
            others = np.mean(
                [scores[people == k].mean() for k in middle if k != person]
            )
            distances.extend(np.abs(scores[people == person] - others))
        # 0.9 (9 + 1) people are all nine.
        assert sets["quantiles"][1] == pytest.approx(max(distances))


@pytest.mark.parametrize("n_targets", [1, 3])
def test_left_out_scores_are_shifted_by_the_constant_of_the_docs(n_targets):
    person_classes = [0] * 9 + [1] * 6 + [2] * 4
    scan_counts = np.array([1, 2, 3, 1, 2] * 4)[:19]
    people = np.repeat(np.arange(19), scan_counts)
    codes = np.repeat(person_classes, scan_counts)
    targets = codes[:, None].astype(float)
    if n_targets == 3:
        targets = np.eye(3)[codes]
    zeros = np.zeros((len(codes), n_targets))
    shifts = rebalance_scores(zeros, codes, people)
    class_sizes = np.bincount(person_classes)[codes][:, None]
    center = 1.0 if n_targets == 1 else 1 / 3
    np.testing.assert_allclose(shifts, (targets - center) / (3 * class_sizes - 1))
    # The class of the last person changes; the scan is part of a person of each class.
    codes[np.flatnonzero(people == 18)[0]] = 1
    targets = codes[:, None].astype(float)
    if n_targets == 3:
        targets = np.eye(3)[codes]
    sizes = np.bincount(codes, 1 / scan_counts[people])
    weights = 19 / (3 * scan_counts[people] * sizes[codes])
    last = people == 18
    deviations = weights[last, None] * (targets[last] - center)
    expected = deviations.sum(axis=0) / (19 - weights[last].sum())
    shifts = rebalance_scores(zeros, codes, people)[last]
    np.testing.assert_allclose(shifts, np.tile(expected, (last.sum(), 1)))


def test_sets_and_their_coverage_are_in_the_evaluation(model, sites, evaluation):
    answers = predict_people(model, sites[0])
    assert answers[SET_COLUMN].equals(evaluation.predictions[SET_COLUMN])
    coverage = pd.DataFrame(evaluation.settings["external"]["coverage"])
    rows = evaluation.predictions
    holds = [
        truth in names.split(" + ")
        for truth, names in zip(rows["truth"], rows[SET_COLUMN], strict=True)
    ]
    by_person = rows.assign(holds=holds).groupby(["truth", "participant"])["holds"]
    expected = by_person.mean().groupby("truth").mean()
    expected[ALL_CLASSES] = (
        rows.assign(holds=holds).groupby("participant")["holds"].mean().mean()
    )
    assert coverage["class"].tolist() == [*CLASSES, ALL_CLASSES]
    for row in coverage.to_dict("records"):
        assert row["coverage"] == pytest.approx(expected[row["class"]])


def make_calibrated_rows(rows):
    """Return rows of calibration in which no slope and no intercept is wrong."""
    return [
        row
        | {"slope": 1.0, "slope_low": 0.8, "slope_high": 1.2, "p_slope": 0.9}
        | {"intercept": 0.0, "intercept_low": -1, "intercept_high": 1}
        | {"p_intercept": 0.9}
        for row in rows
    ]


@pytest.mark.parametrize("is_low", [True, False])
def test_the_first_screen_says_whether_sets_and_probabilities_hold(evaluation, is_low):
    external_facts = evaluation.settings["external"]
    coverage = [row | {"high": 0.95} for row in external_facts["coverage"]]
    calibration = make_calibrated_rows(external_facts["calibration"])
    coverage[1]["high"] = 0.8 if is_low else 0.95
    interval = (2, 1.5, 2.5) if is_low else (0, -0.5, 0.5)
    calibration[2] |= dict(
        zip(("intercept", "intercept_low", "intercept_high"), interval, strict=True)
    )
    calibration[2]["p_intercept"] = 0.01 if is_low else 0.9
    changed = {"coverage": coverage, "calibration": calibration}
    settings = evaluation.settings | {"external": external_facts | changed}
    conclusions = draw_external_conclusions(replace(evaluation, settings=settings))
    calibration_answer, coverage_answer = conclusions.answers[2:4]
    # The cohort has fewer than ten people in every class.
    expected = "NO" if is_low else "TOO FEW TO TELL"
    assert calibration_answer.verdict == coverage_answer.verdict == expected
    assert ("true class in EMCI" in coverage_answer.sentence) == is_low
    assert ("too small for AD" in calibration_answer.sentence) == is_low
    assert "the probabilities are well calibrated" in conclusions.may_not_write


@pytest.mark.parametrize("n_people", [9, 10])
def test_small_classes_are_no_absence_of_a_warning(evaluation, n_people):
    external_facts = evaluation.settings["external"]
    numbers_of_people = [20, n_people, 12]
    calibration = [
        row | {"people": n}
        for row, n in zip(
            make_calibrated_rows(external_facts["calibration"]),
            numbers_of_people,
            strict=True,
        )
    ]
    coverage = [
        {"class": name, "people": n, "coverage": 0.9, "low": 0.6, "high": 0.98}
        for name, n in zip(CLASSES, numbers_of_people, strict=True)
    ]
    coverage.append(external_facts["coverage"][-1] | {"mean_size": 1.7})
    facts = external_facts | {"calibration": calibration, "coverage": coverage}
    settings = evaluation.settings | {"external": facts}
    conclusions = draw_external_conclusions(replace(evaluation, settings=settings))
    expected = "TOO FEW TO TELL" if n_people == 9 else "NO WARNING"
    for answer in conclusions.answers[2:4]:
        assert answer.verdict == expected
        assert ("EMCI (9)" in answer.sentence) == (n_people == 9)
        assert "(12)" not in answer.sentence
    assert "nothing about one patient" in conclusions.answers[3].sentence
    assert "1.7 classes" in conclusions.answers[3].sentence


def test_one_interval_of_ten_that_misses_is_not_called_an_error(evaluation):
    external_facts = evaluation.settings["external"]
    calibration = make_calibrated_rows(external_facts["calibration"])
    calibration[1] |= {"intercept": -1.0, "intercept_low": -1.9, "intercept_high": -0.1}
    facts = external_facts | {"calibration": calibration}
    settings = evaluation.settings | {"external": facts}
    answer = draw_external_conclusions(replace(evaluation, settings=settings)).answers[
        2
    ]
    assert (answer.answer, answer.verdict) == ("NOT SHOWN", "UNCLEAR")
    assert "EMCI" in answer.sentence


@pytest.mark.parametrize("p_intercept", [0.02, 0.4])
def test_p_values_of_calibration_are_printed_for_every_verdict(evaluation, p_intercept):
    external_facts = evaluation.settings["external"]
    calibration = make_calibrated_rows(external_facts["calibration"])
    calibration[1] |= {"p_slope": 0.37, "p_intercept": p_intercept}
    settings = evaluation.settings | {
        "external": external_facts | {"calibration": calibration}
    }
    changed = replace(evaluation, settings=settings)
    answer = draw_external_conclusions(changed).answers[2]
    assert answer.answer == ("NO" if p_intercept < 0.05 else "NOT SHOWN")
    p_values_text = f"0.370 of slopes and {p_intercept:.3f} of intercepts"
    assert p_values_text in answer.sentence
    table = make_external_table_by_name(changed)["calibration"]
    p_values = table[["p (slope 1)", "p (intercept 0)"]].to_numpy().tolist()
    assert p_values[1] == ["0.370", f"{p_intercept:.3f}"]


def test_a_decline_needs_an_interval_of_the_difference_below_zero(evaluation):
    score, lower_bound, upper_bound = (
        bootstrap_score_table(evaluation, evaluation.models[0])
        .set_index("score")
        .loc["balanced_accuracy", ["estimate", "low", "high"]]
    )

    def answer_of(*own_interval):
        facts = evaluation.settings["external"]
        scores = {"values": {"balanced_accuracy": own_interval}}
        facts = facts | {"card": facts["card"] | {"scores": scores}}
        settings = evaluation.settings | {"external": facts}
        conclusions = draw_external_conclusions(replace(evaluation, settings=settings))
        is_forbidden = any(
            "as well as" in phrase for phrase in conclusions.may_not_write
        )
        return conclusions.answers[1].answer, is_forbidden

    # Intervals that overlap show a difference if that of the difference excludes 0.
    overlapping = (upper_bound + 0.1, upper_bound - 0.01, upper_bound + 0.2)
    assert answer_of(*overlapping) == ("NO", True)
    assert answer_of(score, lower_bound, upper_bound) == ("NOT SHOWN", True)
    assert answer_of(-0.2, -0.3, lower_bound - 0.1) == ("YES", False)


def test_few_shared_people_do_not_make_the_study_the_same(
    model, cohort, sites, monkeypatch
):
    is_training = np.isin(cohort.groups, sites[1].groups)
    monkeypatch.setattr("brainlsap.external.MAX_SHARED_SHARE", 1.0)
    evaluation = evaluate_model(model, cohort.select(~is_training, fate="excluded"))
    assert evaluation.settings["external"]["n_excluded_training_people"] > 0
    assert evaluation.settings["title"].startswith("External evaluation")
    conclusions = draw_external_conclusions(evaluation)
    assert "external validation" not in conclusions.may_not_write
    assert "same study" not in " ".join(list_methods_paragraphs(evaluation))


def test_calibration_is_judged_by_intercepts_where_no_slope_is_finite(evaluation):
    facts = evaluation.settings["external"]
    records = [
        record | {"slope": np.nan, "slope_low": np.nan, "slope_high": np.nan}
        for record in facts["calibration"]
    ]

    def judge(p_intercept):
        calibration = [
            record | {"p_slope": np.nan, "p_intercept": p_intercept}
            for record in records
        ]
        external = facts | {"calibration": calibration}
        settings = evaluation.settings | {"external": external}
        return judge_calibration(replace(evaluation, settings=settings))

    assert judge(0.001).answer == "NO"
    assert "slope differs" not in judge(0.9).sentence
    assert "NOT TESTED" not in {judge(p).verdict for p in (0.001, 0.9)}


def test_people_of_the_training_who_were_left_out_are_told(model, cohort, sites):
    is_training = np.isin(cohort.groups, sites[1].groups)
    n_training = len(set(sites[1].groups))
    evaluation = evaluate_model(model, cohort.select(~is_training, fate="excluded"))
    facts = evaluation.settings["external"]
    assert facts["n_excluded_training_people"] == n_training
    conclusions = draw_external_conclusions(evaluation)
    assert "external validation" in conclusions.may_not_write
    n_training_scans = int(is_training.sum())
    flow = flow_text_table(evaluation).set_index("fate")
    training_row = flow.loc["used for training", ["participants", "scans"]]
    assert training_row.tolist() == [n_training, n_training_scans]
    # The sites were selected from more people.
    n_others = evaluation.cohort.flow().set_index("fate").loc["not selected"]
    account = (
        f"{n_training} ({n_training_scans} scans) were used for training and not "
        f"tested; {n_others['participants']} were left out (not selected); the other "
        f"{len(set(sites[0].groups))} were tested."
    )
    text = " ".join(list_methods_paragraphs(evaluation))
    assert account in text
    assert "other participants of the same study" in text
    assert f"{n_training} participants were left out" in left_out_text(evaluation)
    left_out = evaluation.cohort.left_out
    training = left_out[left_out["fate"] == "used for training"]
    cohort = replace(evaluation.cohort, left_out=training, truth=None)
    assert left_out_text(replace(evaluation, cohort=cohort)) == (
        f"the {n_training} participants ({n_training_scans} scans) used for training."
    )
    elsewhere = evaluate_model(model, replace(sites[0], left_out=left_out_table()))
    assert (
        "external validation" not in draw_external_conclusions(elsewhere).may_not_write
    )


@pytest.mark.parametrize("is_file", [False, True])
def test_excluded_people_of_the_training_are_found_by_their_data(
    cohort, sites, tmp_path, is_file
):
    is_training = np.isin(cohort.groups, sites[1].groups)
    renamed = cohort.table["participant"].where(~is_training, "sub-9")
    renamed += cohort.table["participant"].str[-3:].where(is_training, "")
    hospital = replace(cohort, table=cohort.table.assign(participant=renamed))
    scans = renamed + "_" + cohort.table["session"]
    hospital = replace(hospital, table=hospital.table.assign(scan=scans))
    folder = write_study_folder(hospital, tmp_path / "hospital")
    read = load_cohort(folder, atlas="desikan82", feature="fdg")
    is_training = read.table["participant"].str.startswith("sub-9").to_numpy()
    training = read.select(is_training)
    old_ids = "sub-0" + training.table["participant"].str[-3:]
    training = replace(training, table=training.table.assign(participant=old_ids))
    model = fit_model(training, tmp_path / "model.safetensors", ridge())
    if is_file:
        folder = read.save(tmp_path / "hospital.h5")
    training_ids = sorted({*read.groups[is_training]})
    people = read_labelled_people(model, folder, exclude=training_ids)
    assert not {*people.groups} & {*training_ids}
    evaluation = evaluate_model(model, people)
    facts = evaluation.settings["external"]
    assert facts["n_excluded_training_people"] == len(training_ids)
    conclusions = draw_external_conclusions(evaluation)
    assert "external validation" in conclusions.may_not_write
    account = f"{len(training_ids)} ({training.n_scans} scans) were used for training"
    assert account in " ".join(list_methods_paragraphs(evaluation))
    assert not any("could not be read" in str(found) for found in people.findings)
    # The option is about ids, not about data.
    facts = evaluate_model(model, people, ids_are_new=True).settings["external"]
    assert facts["n_excluded_training_people"] == len(training_ids)
    # Other people who are excluded stay excluded by the authors.
    other_ids = sorted({*read.groups} - {*training_ids})
    people = read_labelled_people(model, folder, exclude=[*training_ids, other_ids[0]])
    fates = people.left_out.groupby("participant")["fate"].first()
    assert fates[other_ids[0]] == EXCLUDED
    assert {*fates[training_ids]} == {USED_FOR_TRAINING}


def test_excluded_scans_that_cannot_be_read_are_told(model, sites, tmp_path):
    folder = write_study_folder(sites[0], tmp_path / "hospital")
    person = sites[0].groups[0]
    for path in (folder / person).rglob("*.tsv"):
        if "sessions" not in path.name:
            path.write_text("region\tfdg\n")
    people = read_labelled_people(model, folder, exclude=person)
    notes = [str(found) for found in people.findings if found.kind == EXCLUDED]
    assert any("could not be read" in note and person in note for note in notes)
    assert {*people.left_out["fate"]} == {EXCLUDED}


def test_absent_classes_change_chance_and_what_can_be_compared(model, sites):
    two_classes = sites[0].select(sites[0].y != "AD")
    evaluation = evaluate_model(model, two_classes)
    conclusions = draw_external_conclusions(evaluation)
    assert "chance 0.500" in conclusions.answers[0].sentence
    assert any("AD" in caution for caution in conclusions.cautions)
    one_class = evaluate_model(model, sites[0].select(sites[0].y == "AD"))
    answer = draw_external_conclusions(one_class).answers[0]
    assert answer.verdict == "NOT TESTED"
    assert "Nothing" in draw_external_conclusions(one_class).may_write


def test_sites_of_the_names_of_the_training_are_told(cohort, tmp_path):
    path = tmp_path / "model.safetensors"
    is_training = np.isin(cohort.groups, np.unique(cohort.groups)[::2])
    fit_model(cohort.select(is_training), path, ridge(), harmonize="site")
    evaluation = evaluate_model(path, cohort.select(~is_training))
    site_names = evaluation.settings["external"]["learned_sites"]
    assert site_names == sorted(set(cohort.table["site"]))
    likeness = draw_external_conclusions(evaluation).answers[4]
    assert all(site_name in likeness.sentence for site_name in site_names)


def test_methods_state_what_the_checklist_sends_to_them(model, sites):
    labels = sites[0].table["label"].replace({"CN": "Control"})
    cohort = replace(
        sites[0],
        table=sites[0].table.assign(label=labels),
        classes=("Control", "EMCI", "AD"),
    )
    features = cohort.features.copy()
    features[0, 0] = np.nan
    cohort = merge_classes(
        replace(cohort, features=features),
        {"CN": ["Control"], "EMCI": ["EMCI"], "AD": ["AD"]},
    )
    cohort = replace(
        cohort,
        reading_options=cohort.reading_options.change(
            negative="drop", reference="pons", scans="baseline"
        ),
    )
    evaluation = evaluate_model(model, cohort)
    text = " ".join(list_methods_paragraphs(evaluation))
    assert "(read with negative=drop, reference=pons)" in text
    for fact in ("CN = Control", "mean of the training", "class shares", "age"):
        assert fact in text
    assert "AD = AD" not in text
    # The limit also holds with a cross-validated score and a second step.
    facts = evaluation.settings["external"]
    scores = {"folds": 5, "values": {"balanced_accuracy": [0.5, 0.4, 0.6]}}
    card = facts["card"] | {"scores": scores}
    card["steps"] = card["steps"] | {"harmonize": "site"}
    settings = evaluation.settings | {"external": facts | {"card": card}}
    text = " ".join(list_methods_paragraphs(replace(evaluation, settings=settings)))
    assert "Zou and Donner" in text
    assert "harmonisation" in text
    assert len(text.split()) <= 300
    assert "ridge regressions" in " ".join(list_supplement_paragraphs(evaluation))


def test_contributions_of_regions_sum_to_the_score(model, sites):
    table = contribution_table(model, sites[0])
    sums = table.groupby("scan")["contribution"].sum()
    without = Deconfounder.from_dict(model.origin_.facts["steps"]).transform(
        sites[0].features, sites[0].table
    )
    scores = model.decision_scores(pack_scans(sites[0].connectomes, without))[:, 0]
    np.testing.assert_allclose(
        sums[sites[0].table["scan"]] + model.intercept_[0], scores, rtol=1e-9
    )


def test_a_person_is_drawn_on_request_only(model, sites, tmp_path, capsys):
    from brainlsap.model import save_model

    path, table = tmp_path / "model", tmp_path / "out.tsv"
    save_model(model, path)
    cohort = sites[0]
    cohort.save(tmp_path / "people.h5")
    asked = ["predict", str(path), str(tmp_path / "people.h5"), "--out", str(table)]
    person = cohort.groups[0]
    assert main([*asked, "--explain", "nobody"]) == 2
    message = capsys.readouterr().err
    assert re.search(r"--explain .*'nobody'", message)
    assert person in message
    # Nothing was written, so the command needs no --overwrite.
    assert not table.exists()
    assert main([*asked, "--explain", person]) == 0
    figures = sorted(tmp_path.glob("*.png"))
    assert len(figures) == (cohort.groups == person).sum()
    assert figures[0].stat().st_mode & 0o077 == 0


@pytest.mark.filterwarnings("ignore:.* were used for training")
def test_a_network_gives_no_sets_and_says_why(cohort, tmp_path):
    from brainlsap import LSAPClassifier

    brief = LSAPClassifier("exact", n_epochs=2, n_starts=1, random_state=0)
    model = fit_model(cohort, tmp_path / "model", brief)
    answers = predict_people(model, cohort)
    assert SET_COLUMN not in answers
    assert "does not predict left-out people" in answers.attrs["no_sets"]


def test_a_column_of_classes_is_proposed_only_if_it_is_the_only_one(model):
    labels = [*CLASSES, *CLASSES]
    table = pd.DataFrame({"Dx": labels, "age": range(len(labels))})
    for columns, proposed in ((["Dx", "age"], "Dx"), (["Dx", "Dx2"], None)):
        people = table.assign(Dx2=labels)[columns]
        (fault,) = external._find_label_faults(model, people, "diagnosis", None)
        assert fault.values.get("label") == proposed
        # Where several have classes of the model, all are listed, to choose one.
        named_columns = columns if proposed is None else [proposed]
        assert all(name in fault.message for name in named_columns)


def test_swapped_sides_are_on_the_first_screen(evaluation):
    facts = evaluation.settings["external"]
    assert facts["swapped_values"] == []
    changed = {"external": facts | {"swapped_values": ["fdg"]}}
    swapped = replace(evaluation, settings=evaluation.settings | changed)
    conclusions = draw_external_conclusions(swapped)
    assert conclusions.answers[4].verdict == "WARNING"
    assert "fdg: left and right" in conclusions.answers[4].sentence
    assert conclusions.may_write.startswith("Nothing")


@pytest.mark.filterwarnings("ignore:.* lacks up to")
def test_unusual_values_of_new_scans_are_on_the_first_screen(model, sites):
    people = sites[0]
    features = people.features.copy()
    features[0, 5] = -1.2
    features[1, 6] = 3.9
    features[2, 10:30] = np.nan
    with pytest.warns(UserWarning, match="The predictions of 1 of"):
        tested = evaluate_model(model, replace(people, features=features))
    likeness = draw_external_conclusions(tested).answers[4]
    assert likeness.label == "WARNING"
    n_scans = people.n_scans
    for words in (
        f"1 of {n_scans} scans has implausible values",
        f"1 of {n_scans} scans has unusual features",
        f"1 of {n_scans} scans lacks more than a tenth",
    ):
        assert words in likeness.sentence
    assert "no scan has unusual" not in likeness.sentence


@pytest.mark.filterwarnings("ignore:.* are unlike the training scans")
def test_a_shift_of_all_features_is_on_the_first_screen(model, sites):
    people = sites[0]
    training = model.origin_.facts["card"]["training"]["numbers"]
    statistics = training["fdg, mean over regions"]
    for n_sds, is_shifted in ((0.3, False), (4, True)):
        features = people.features + n_sds * statistics["sd"]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tested = evaluate_model(model, replace(people, features=features))
        likeness = draw_external_conclusions(tested).answers[4]
        texts = [str(warning.message) for warning in caught]
        for told in (texts, [likeness.sentence]):
            assert any("The mean of fdg over" in text for text in told) == is_shifted
        assert (likeness.label == "WARNING") == is_shifted


def test_the_only_column_that_may_contain_classes_is_proposed(model):
    labels = ["gesund", "krank"] * 4
    table = pd.DataFrame({"Befund": labels, "sex": ["F", "M"] * 4, "age": range(8)})
    table["Standort"] = ["x"] * 4 + ["y"] * 4
    (fault,) = external._find_label_faults(model, table, "diagnosis", None)
    assert fault.values["label"] == "Befund"
    assert sorted(fault.values["unresolved_labels"]) == ["gesund", "krank"]
    table["Gruppe"] = labels
    (fault,) = external._find_label_faults(model, table, "diagnosis", None)
    assert fault.values == {}


@pytest.mark.filterwarnings("ignore:.* are unlike the training scans")
def test_a_swapped_scan_is_on_the_first_screen_of_the_test(model, sites, tmp_path):
    people = sites[0]
    homotopic = people.atlas.homotopic
    shift = np.random.default_rng(0).normal(0, 0.1, people.n_rois)
    features = np.array(people.features + (shift - shift[homotopic])[:, None])
    features[3] = features[3][homotopic]
    features[4, 7] = np.nan
    people = replace(people, features=features)
    with pytest.warns(UserWarning, match="^In 1 scan, left and right of fdg"):
        tested = evaluate_model(model, people)
    results = tmp_path / "results"
    write_report(tested, results, quality=quality_table(people))
    conclusions = draw_external_conclusions(read_results(results))
    table = pd.read_csv(results / "private" / "codes.tsv", sep="\t").set_index("scan")
    code = table["code"][people.table["scan"][3]]
    sentence = f"left and right of fdg may have been swapped: {code}. Correct"
    assert sentence in conclusions.cautions[0]
    likeness = conclusions.answers[4]
    assert likeness.verdict == "WARNING"
    assert sentence in likeness.sentence
    n_scans = people.n_scans
    others = f"Compared with the other test scans, 1 of {n_scans} scans is unusual"
    assert others in likeness.sentence
    assert "no scan has unusual" not in likeness.sentence
    kept = left_out_text(read_results(results))
    assert "1 scan unlike the others was kept" in kept
    assert "1 other scan lacks single values" in kept


def test_no_text_says_that_a_column_without_scores_was_scored(evaluation):
    table = evaluation.cohort.table
    is_first = table["participant"].isin(sorted(set(table["participant"]))[::2])
    towns = np.where(
        table["label"] == "CN", "north", np.where(is_first, "east", "west")
    )
    cohort = replace(evaluation.cohort, table=table.assign(town=towns))
    settings = evaluation.settings | {"subgroups": ["sex", "town"]}
    divided = replace(evaluation, cohort=cohort, settings=settings)
    scores = subgroup_table(divided).groupby("column")["balanced_accuracy"].count()
    assert scores.to_dict() == {"sex": 1, "town": 0}
    answer = draw_external_conclusions(divided).answers[5]
    assert "Not compared by town: " in answer.sentence
    checklist = checklist_table(
        divided, ["tables/subgroups.tsv", "report.html#scores"]
    ).set_index("item")
    texts = [
        *list_supplement_paragraphs(divided),
        *checklist.loc[["14", "23a"], "value"],
    ]
    scored_text = "in groups of participants by sex (1 of 2 groups)."
    texts = [text for text in texts if scored_text in text]
    assert len(texts) == 3
    assert all("It was not computed by town (" in text for text in texts)
    unscored = replace(divided, settings=settings | {"subgroups": ["town"]})
    assert "by town" not in " ".join(list_supplement_paragraphs(unscored))
    states = checklist_table(unscored, ["tables/subgroups.tsv"]).set_index("item")
    assert states.loc["14", "state"] == "for the authors"


def test_bootstrap_samples_without_a_class_score_the_other_classes(evaluation):
    # One person alone has AD and is correct; all others are predicted falsely.
    rows = evaluation.predictions.copy()
    people = rows["participant"].drop_duplicates()
    rows["truth"] = np.where(rows["participant"] == people.iloc[0], "AD", "CN")
    rows["predicted"] = "AD"
    table = evaluation.cohort.table.assign(label=rows["truth"].to_numpy())
    one_person = replace(
        evaluation, predictions=rows, cohort=replace(evaluation.cohort, table=table)
    )
    scores = bootstrap_score_table(one_person, one_person.models[0]).set_index("score")
    score, lower_bound, upper_bound = scores.loc[
        "balanced_accuracy", ["estimate", "low", "high"]
    ]
    # Without this person the score is that of CN, which is 0, and with it 1 / 2.
    assert (lower_bound, score, upper_bound) == (0, 0.5, 0.5)
    share = 100 * (1 - 1 / len(people)) ** len(people)
    supplement = " ".join(list_supplement_paragraphs(one_person))
    assert f"missing in about {share:.0f}% of samples" in supplement
