import pytest

from brainlsap.evaluation.findings import (
    CHECKS,
    SEVERITIES,
    Audit,
    Finding,
    severity_table,
)
from brainlsap.exceptions import ParameterError


@pytest.fixture
def audit():
    return Audit(
        [
            Finding("label from one column", "age alone", "note"),
            Finding("folds differ", "age"),
            Finding("folds differ", "sex"),
            Finding("person in two folds", "2 people"),
        ],
        skipped={"many variants": "no model was given"},
    )


def test_gravest_first(audit):
    frame = audit.to_frame()
    assert list(frame["severity"]) == ["error", "warning", "warning", "note"]
    assert frame["what to do"].iloc[-1] == "Nothing."
    assert audit.checks_of("warning") == ("folds differ",)
    assert not audit.is_clean
    assert audit.sentence() == "The leakage audit found 1 error and 2 warnings."


def test_passed_are_those_that_were_made_and_found_nothing_grave(audit):
    passed = audit.passed()
    assert "label from one column" in passed
    assert "many variants" not in passed
    assert "folds differ" not in passed
    assert len(passed) == len(CHECKS) - 3


def test_an_empty_audit_is_clean():
    assert Audit([]).is_clean
    assert Audit([]).to_frame().empty
    assert Audit([]).sentence() == "The leakage audit found no error and no warning."


def test_every_check_has_a_severity_and_advice():
    table = severity_table()
    assert set(table["severity"]) <= set(SEVERITIES)
    assert (table["what to do"].str.len() > 0).all()


def test_unknown_words_are_refused(audit):
    with pytest.raises(ParameterError, match=r"check must be one of .*got 'x'"):
        Finding("x", "y")
    with pytest.raises(ParameterError, match=r"severity must be one of .*got 'fatal'"):
        Finding("folds differ", "age", "fatal")
    with pytest.raises(ParameterError, match=r"severity must be one of .*got 'fatal'"):
        audit.of("fatal")
