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
