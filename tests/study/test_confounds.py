"""The command line takes out sites and covariates inside every fold."""

import pytest
from sklearn.dummy import DummyClassifier

from brainlsap.cli import main
from brainlsap.data import make_cohort
from brainlsap.exceptions import ParameterError
from brainlsap.study.confounds import without_confounds


def test_models_stand_behind_the_steps():
    table = make_cohort(6, atlas="desikan82").table
    models = {"x": DummyClassifier()}
    assert without_confounds(models, table) == models
    asked = {"harmonize": "site", "regress_out": ["age", "sex"]}
    steps = without_confounds(models, table, **asked)["x"].named_steps
    assert list(steps) == ["combat", "regression", "model"]
    assert steps["combat"].preserve == ("age", "sex")
    assert steps["regression"].columns == ("age", "sex")
    for wrong in ({"harmonize": "town"}, {"regress_out": ["town"]}):
        with pytest.raises(ParameterError, match="have no column 'town'"):
            without_confounds(models, table, **wrong)


def asked_of(table, **asked):
    with pytest.raises(ParameterError) as caught:
        without_confounds({"x": DummyClassifier()}, table, **asked)
    return str(caught.value)


@pytest.mark.parametrize("name", ["label", "Label", "participant", "scan"])
def test_label_and_names_are_no_confounds(name):
    table = make_cohort(6, atlas="desikan82").table
    for asked in ({"harmonize": name}, {"regress_out": ["age", name]}):
        assert "cannot be taken out of the features" in asked_of(table, **asked)


def test_a_column_that_is_the_label_is_no_confound():
    table = make_cohort(20, atlas="desikan82").table
    sick = table["label"].isin(["AD", "LMCI"])
    table["label"] = sick.map({True: "ill", False: "well"})
    table["site"] = sick.map({True: "A", False: "B"})
    for asked in ({"harmonize": "site"}, {"regress_out": ["site"]}):
        assert "each value of site goes with one label only" in asked_of(table, **asked)
    table.loc[table.index[-1], "site"] = "AB"[table["site"].iloc[-1] == "A"]
    assert without_confounds({"x": DummyClassifier()}, table, harmonize="site")


@pytest.mark.parametrize("write", ["{} y", "{:.0f},5"])
def test_numbers_as_text_are_refused(write):
    table = make_cohort(20, atlas="desikan82").table
    table["age"] = table["age"].map(write.format)
    first = table["age"].iloc[0]
    for asked in ({"harmonize": "site"}, {"regress_out": ["age"]}):
        told = asked_of(table, **asked)
        assert f"the column age holds text such as {first!r}" in told


def test_one_word_among_numbers_is_refused():
    table = make_cohort(20, atlas="desikan82").table
    table["age"] = [*table["age"].astype(str)[:-1], "old"]
    assert "such as 'old' (1 kind for 20 people)" in asked_of(
        table, regress_out=["age"]
    )


def test_run_takes_them_out(simulated_folder, tmp_path, command, monkeypatch, capsys):
    kept = []
    written = "brainlsap.study.whole_way.write_study"
    monkeypatch.setattr(written, lambda found, *_, **__: kept.append(found))
    asked = command(simulated_folder, tmp_path / "out")
    asked[asked.index("exact,chebyshev")] = "exact"
    assert main([*asked, "--harmonize", "site", "--regress-out", "age,sex"]) == 0
    (found,) = kept
    assert found.settings["harmonize"] == "site"
    assert found.settings["regress_out"] == ["age", "sex"]
    assert found.main.scales().shape == (2, 82)
    assert found.audit.is_clean
    assert "many variants" not in found.audit.checks_of("warning")
    assert main([*asked, "--regress-out", "etiv"]) == 2
    assert "no column 'etiv'; there are scan" in capsys.readouterr().err
