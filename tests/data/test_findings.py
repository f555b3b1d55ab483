"""What is found is acted on by its fields: messages may be reworded freely."""

from dataclasses import replace
from types import MappingProxyType

import pytest

import brainlsap.data.load as loading
from brainlsap.data import Cohort, check_cohort, load_cohort, suggest_options
from brainlsap.exceptions import CohortError, FileFormatError
from brainlsap.findings import (
    FAULT,
    LEFT_OUT,
    Finding,
    list_grouped_finding_texts,
    make_findings,
)
from brainlsap.report.page import _list_shareable_notes

REWORDED = "Nothing that any code knows"


def reword_errors(monkeypatch, name):
    """Let a reader of connectomes say all in other words, without a separator."""
    read = getattr(loading, name)

    def read_reworded(source, *args, **options):
        try:
            return read(source, *args, **options)
        except FileFormatError as error:
            raise type(error)(
                REWORDED, path=error.path, got=error.got, values=error.values
            ) from error

    monkeypatch.setattr(loading, name, read_reworded)


def damage_connectomes(study):
    paths = sorted(study.rglob("*connectivity.csv"))
    for path in paths[:3]:
        path.write_text("region,lh_a\nlh_a,nonsense\n")
    return paths


def test_reworded_messages_are_grouped_and_suggested_alike(study, tiny, monkeypatch):
    damage_connectomes(study)
    options = {"atlas": tiny, "feature": "fdg"}
    check = check_cohort(study, **options)
    suggestions = suggest_options(check, options)
    reword_errors(monkeypatch, "read_connectome")
    reworded = check_cohort(study, **options)
    assert (reworded.count_texts, reworded.notes) == (check.count_texts, check.notes)
    assert suggest_options(reworded, options) == suggestions
    places = [[item.place for item in one.findings] for one in (check, reworded)]
    assert places[0] == places[1]
    assert len(reworded.faults) == len(check.faults) == 1
    assert reworded.faults[0].startswith(f"3 files: {REWORDED}\n")


def test_another_atlas_is_suggested_by_a_field(study, tiny, monkeypatch):
    """As where the names of files, or the number of rows, are of another atlas."""

    def refuse(source, *_, **__):
        raise FileFormatError(REWORDED, path=source, values={"atlas": "desikan82"})

    monkeypatch.setattr(loading, "read_connectome", refuse)
    options = {"atlas": tiny, "feature": "fdg"}
    (suggestion,) = suggest_options(check_cohort(study, **options), options)
    assert suggestion == {"atlas": "desikan82"}


def test_orders_are_compared_by_a_field(study, tiny, monkeypatch):
    read = loading.read_connectome
    orders = iter("ABAAAAA")

    def read_in_orders(*args, **options):
        order = Finding(next(orders), kind=loading.ROW_ORDER)
        return read(*args, **options)._replace(findings=(order,))

    monkeypatch.setattr(loading, "read_connectome", read_in_orders)
    with pytest.raises(CohortError, match="different orders"):
        load_cohort(study, tiny, "fdg")


def test_reworded_notes_are_withheld_and_told_apart(study, tiny):
    (study / "sub-99" / "dwi").mkdir(parents=True)
    (study / "sub-99" / "dwi" / "x_connectivity.csv").write_text("")
    check = check_cohort(study, tiny, "fdg")
    (spare,) = (item for item in check.findings if item.people)
    reworded = replace(spare, message=REWORDED)
    others = [item for item in check.findings if item is not spare]
    changed = replace(check, findings=(*others, reworded))
    assert f"Dropped:\n  {REWORDED} 99\n" in changed.text()

    class Evaluation:
        cohort = replace(check.cohort, findings=(reworded,))
        settings = MappingProxyType({})

    (note,) = _list_shareable_notes(Evaluation, str)
    assert note == f"{REWORDED} [names withheld]"


def test_findings_are_stored_with_a_cohort(study, tiny, tmp_path):
    (study / "sub-99" / "dwi").mkdir(parents=True)
    (study / "sub-99" / "dwi" / "x_connectivity.csv").write_text("")
    cohort = load_cohort(study, tiny, "fdg")
    stored = Cohort.load(cohort.save(tmp_path / "c.h5"))
    assert stored.findings == cohort.findings
    assert stored.notes == cohort.notes
    assert any(item.severity == LEFT_OUT and item.people for item in stored.findings)


def test_findings_of_one_place_and_of_none_are_not_counted():
    study_faults = make_findings(["no scan", "no scan: none"])
    scan_fault = Finding("no age", FAULT, scan="sub-01", got="x")
    assert list_grouped_finding_texts([*study_faults, scan_fault]) == [
        "no scan",
        "no scan: none",
        "sub-01: no age; got x",
    ]
    people = [Finding("twice", FAULT, participant=name) for name in "ab"]
    assert list_grouped_finding_texts(people) == ["2 people: twice\n    a, b"]
    # A person with two findings is one person.
    assert list_grouped_finding_texts([people[0], *people]) == [
        "2 people: twice\n    a, b"
    ]
    ages = [Finding("old", participant="a", got=age) for age in ("131", "132")]
    assert list_grouped_finding_texts(ages) == ["a: old; the first got 131"]


def test_advice_is_a_field_that_every_text_ends_with():
    error = FileFormatError("no ages. None", path="a.tsv", got="7", advice="Add ages.")
    assert str(error) == "a.tsv: no ages. None; got 7. Add ages."
    finding = Finding.from_error(error)
    assert (finding.message, finding.advice) == ("no ages. None", "Add ages")
    assert Finding.from_jsonable(finding.to_jsonable()).text() == finding.text()
    others = [replace(finding, path=f"{name}.tsv", got=name) for name in "bc"]
    assert list_grouped_finding_texts(
        [*others, replace(others[0], advice="Drop it")]
    ) == [
        "2 files: no ages. None; the first got b. Add ages\n    b.tsv, c.tsv",
        "b.tsv: no ages. None; got b. Drop it",
    ]
