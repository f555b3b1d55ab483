"""Who is in a cohort, and what is refused in its tables."""

import pytest

from brainlsap.data.feature_tables import open_scan_table
from brainlsap.data.participants import people_of_table, read_participants
from brainlsap.exceptions import CohortError, FileFormatError


def people(write, text):
    return write("participants.tsv", text).parent


def test_people_and_facts(write):
    folder = people(
        write, "participant_id\tage\tdiagnosis\nsub-2\t70\tAD\nsub-1\tn/a\tCN\n"
    )
    found = read_participants(folder)
    assert [person.participant for person in found] == ["sub-2", "sub-1"]
    assert found[0].facts_at("") == {"age": "70", "diagnosis": "AD"}
    assert found[1].facts_at("any") == {"age": None, "diagnosis": "CN"}


def test_sessions_file_comes_first(write):
    write("sub-1/sub-1_sessions.tsv", "session_id\tdiagnosis\nses-1\tCN\nses-2\tAD\n")
    folder = people(write, "participant_id\tage\tdiagnosis\nsub-1\t70\tCN\n")
    (person,) = read_participants(folder)
    assert list(person.visits) == ["1", "2"]
    assert person.facts_at("ses-2") == {"age": "70", "diagnosis": "AD"}
    # ses-3 may be ses-2 under another name, so the diagnosis is not the person's
    assert person.facts_at("ses-3") == {"age": "70"}


def test_rows_of_visits(write):
    text = "participant_id\tsession_id\tdiagnosis\nsub-1\tses-1\tCN\nsub-1\tses-2\tAD\n"
    (person,) = read_participants(people(write, text))
    assert person.facts == {}
    assert person.facts_at("2") == {"diagnosis": "AD"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("sub-1\t\nsub-1\t\n", "sub-1 stands more than once; expected one row"),
        ("sub-1\t1\nsub-1\tses-1\n", "sub-1 stands more than once at visit ses-1"),
        ("sub-1\t1\nsub-1\t\n", "sub-1 has rows with and without a session_id"),
        ("sub-1\t\n1\t1\n", "1 has rows with and without a session_id"),
        ("n/a\t\n", "row 1 below the header: participant_id must be .* got None"),
        ("../sub-1\t\n", r"must be the name of a subject, .* got '\.\./sub-1'"),
        ("/etc\t\n", "got '/etc'"),
    ],
)
def test_rows_refused(write, rows, message):
    with pytest.raises(CohortError, match=message):
        read_participants(people(write, f"participant_id\tsession_id\n{rows}"))


def test_all_faults_at_once(write):
    write("sub-3/sub-3_sessions.tsv", "session_id\nses-1\nses-1\n")
    folder = people(write, "participant_id\nsub-1\nsub-1\n..\nsub-2\nsub-2\nsub-3\n")
    with pytest.raises(CohortError, match=r"participants\.tsv cannot be used") as error:
        read_participants(folder)
    assert [fault.split(": ")[-1][:5] for fault in error.value.faults[:1]] == ["sub-1"]
    assert len(error.value.faults) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("visit\nM0\n", "no column 'session_id'; found visit"),
        ("session_id\tx\nses-1\t1\nses-1\t2\n", "every visit once, got 'ses-1' again"),
        ("session_id\tx\nn/a\t1\n", "every visit once, got None"),
    ],
)
def test_sessions_refused(write, text, message):
    write("sub-1/sub-1_sessions.tsv", text)
    with pytest.raises(CohortError, match=message):
        read_participants(people(write, "participant_id\nsub-1\n"))


def test_id_column_refused(write):
    with pytest.raises(
        FileFormatError, match=r"no column names the scans; expected .*age"
    ):
        read_participants(people(write, "age\n70\n"))


def test_people_of_a_table(write, tiny):
    path = write("t.csv", "id,lh_a,sex,left_handed,CSF\ns1,1,F,0,9\ns2,2,M,1,9\n")
    found = people_of_table(open_scan_table(path, tiny))
    assert found[1].facts_at("") == {"sex": "M", "left_handed": "1"}
    path = write("t.csv", "id,lh_a,sex\ns1,1,F\ns1,2,M\n")
    with pytest.raises(CohortError, match="s1 stands more than once"):
        people_of_table(open_scan_table(path, tiny))
