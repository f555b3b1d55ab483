"""Labels and covariates: what one study may not mix."""

import re

import numpy as np
import pandas as pd
import pytest

from brainlsap import Cohort
from brainlsap.data.covariates import (
    find_acquisition_kind,
    find_covariate_faults,
    find_covariate_kind,
    find_wrong_number_faults,
    is_categorical_covariate,
    make_unusual_value_notes,
)
from brainlsap.data.participants import make_changed_person_notes
from brainlsap.exceptions import CohortError
from brainlsap.findings import (
    CHANGED_PERSON,
    FAULT,
    Finding,
    list_grouped_finding_texts,
)

N = 6


def made(labels=("CN", "AD") * 3, groups=range(1, N + 1), **covariates):
    rng = np.random.default_rng(0)
    W, F = np.ones((3, 3)), rng.random((N, 3))
    given = {"groups": groups, "covariates": covariates, "atlas": ["a", "b", "c"]}
    return Cohort.from_arrays(W, F, labels, **given)


REFUSED_STUDIES = [
    ({"labels": ["CN", "Control", "AD"] * 2}, "diagnosis is .* CN .2., Control .2"),
    ({"labels": ["CN", "nan"] * 3}, "label is missing in 3 rows .*: 1, 3, 5"),
    ({"groups": ["1", "01", *"abcd"]}, "people .* leading zeros.* got 1, 01"),
    ({"groups": [1, 1, 2, 3, 4, 5], "sex": list("FMFMFM")}, "1: sex differs betw"),
    (
        {"Geschlecht": ["w", "Weib", *"mmww"]},
        "Geschlecht is written in several ways: Weib .1., w",
    ),
    (
        {"sex": ["0", "1", "M", "0", "1", "M"]},
        "sex is written in several ways: 0 .2., 1 .2., M .2",
    ),
    (
        {"site": ["S 1", "s-1", *"abab"]},
        "site is written in several ways: S 1 .1., s-1 .1.",
    ),
    ({"age": [70, 71, 72, 999, 74, 75]}, "scan4: age .*got 999"),
    ({"Alter": [70, 71, 72, 720, 74, 75]}, "scan4: Alter .*got 720"),
    ({"education": [9, 9, 12, 18, -9, 9]}, "scan5: education .*got -9"),
]


@pytest.mark.parametrize(("given", "told"), REFUSED_STUDIES)
def test_words_and_codes_that_a_cohort_may_not_mix(given, told):
    with pytest.raises(CohortError, match=told):
        made(**given)


@pytest.mark.parametrize("columns", [columns for columns, _ in REFUSED_STUDIES])
def test_findings_are_faults_and_name_value_and_place_in_fields(columns):
    table = pd.DataFrame(
        {
            "scan": [f"scan{number}" for number in range(1, N + 1)],
            "participant": columns.get("groups", range(1, N + 1)),
            "label": columns.get("labels", ["CN", "AD"] * 3),
            **{k: v for k, v in columns.items() if k not in ("labels", "groups")},
        }
    )
    for finding in find_covariate_faults(table, "diagnosis", has_class_order=False):
        assert finding.severity == FAULT
        # Similar findings are one entry of a list, so their messages must be equal.
        for text in (finding.got, finding.scan, finding.participant):
            word_pattern = rf"(?<!\w){re.escape(text)}(?!\w)"
            assert not text or not re.search(word_pattern, finding.message)


def test_a_study_is_refused_only_because_of_faults(monkeypatch):
    monkeypatch.setattr(
        "brainlsap.data.cohort.find_covariate_faults",
        lambda *_, **__: [Finding("no severity is given")],
    )
    with pytest.raises(TypeError, match="no severity is given"):
        made()


def test_scans_of_the_rarest_spelling_are_named():
    scan_table = pd.DataFrame(
        {
            "scan": list("abcdefgh"),
            "participant": list("abcdefgh"),
            "label": ["CN", "AD", "CN", "cn", "AD", "AD", "CN", "AD"],
            "sex": ["F", "M", "F", "M", "female", "M", None, "female"],
        }
    )
    of_label, of_sex = find_covariate_faults(
        scan_table, "diagnosis", has_class_order=False
    )
    assert of_label.people == ("d",)
    assert "CN (3), cn (1)" in of_label.message
    assert "classes=" not in of_label.advice  # cn is no other class than CN
    assert of_sex.people == ("a", "c")
    two_words = scan_table.assign(label=["CN", "AD", "Control", "CN"] * 2)
    (of_label,) = find_covariate_faults(
        two_words.drop(columns="sex"), "diagnosis", has_class_order=False
    )
    assert "classes=" in of_label.advice


def test_different_codes_of_one_column_are_one_fault():
    table = pd.DataFrame({"age": [70, 999, 72, -9, 74, 75]})
    faults = find_wrong_number_faults(table, ["age"])
    assert [(fault.scan, fault.got) for fault in faults] == [("1", "999"), ("3", "-9")]
    assert len(list_grouped_finding_texts(faults)) == 1


def test_what_only_looks_like_it_is_taken():
    covariates = {
        "age": [-1.2, 0.3, 0.1, 1.5, -0.4, 0.6],  # standardised
        "site": [999, 1, 2, 2, 1, 999],  # a name
        "handedness": ["R", "r", "L", "R", "R", "L"],  # is not told from free text
    }
    cohort = made(labels=["A+", "A-"] * 3, **covariates)
    assert cohort.classes == ("A+", "A-")
    assert made(labels=[" CN", "AD "] * 3).classes == ("CN", "AD")
    assert made(groups=["a ", "a", *"bcde"]).table["participant"].nunique() == N - 1


def test_kinds_of_covariates_go_by_their_names():
    heads = [
        "Age at scan",
        "Age (y)",
        "Age [years]",
        "PTGENDER",
        "Zentrum",
        "site_id",
        "eTIV",
        "fd_mean",
        "BMI",
    ]
    told = ["age", "age", "age", "sex", "site", "site", "head size", "motion", "bmi"]
    assert pd.Series(heads).map(find_covariate_kind).tolist() == told


@pytest.mark.parametrize(
    ("kind", "heads"),
    [
        ("site", "SITEID, site_num, SiteCode, imaging_site, Site 1, center_number"),
        ("site", "cohort_code, siteno, Recruiting centre"),
        ("site", "Clinic, Klinik, klinik_id, Klinik-Nr., Krankenhaus, Klinikum"),
        ("scanner", "ScannerNumber, FLDSTRENG, MagneticFieldStrength, batch_no, B0"),
        ("scanner", "scanner_model, Field strength (T), ManufacturersModelName"),
        ("phase", "COLPROT, study_phase, Phase no"),
    ],
)
def test_acquisitions_are_known_by_further_names(kind, heads):
    for head in heads.split(", "):
        assert find_acquisition_kind(head) == kind, head
    for head in (
        "klinische Diagnose",
        "clinical_stage",
        "model_prediction",
        "center_of_mass_x",
        "site_age",
        "study_day",
    ):
        assert find_acquisition_kind(head) == find_covariate_kind(head)


def draw(values, n_scans=200):
    return pd.Series(np.random.default_rng(0).choice(values, n_scans))


@pytest.mark.parametrize(
    ("head", "values"),
    [
        ("site", range(1, 21)),
        ("SITEID", [2, 5, 14, 941]),
        ("Field strength", [1.5, 3.0]),
        ("manufacturer_code", [1, 2, 3]),
        ("batch", range(30)),
        ("colprot", [1, 2, 3, 4]),
        ("sex", [1, 2]),
        ("p54_i2", [11025, 11026, 11027, 11028]),  # by their values alone
        ("v1", range(1, 21)),
        ("v1", [3, 127, 941, 14, 33, 98, 7, 53, 300, 22, 64, 81]),
        ("v1", [1.5, 3, 7]),
        ("v1", ["a", "b"]),
    ],
)
def test_numbers_of_groups_are_names(head, values):
    assert is_categorical_covariate(head, draw(list(values)))


@pytest.mark.parametrize(
    ("head", "values"),
    [
        ("age", range(60, 66)),
        ("MMSE", range(25, 31)),
        ("gds_total", range(6)),
        ("GDSTOTAL", range(6)),
        ("education", range(8, 20)),
        ("eTIV", [1_400_000, 1_500_000, 1_600_000]),
        ("mean_fd", [0.1, 0.2, 0.3]),
        ("alder", range(55, 90)),  # by their values alone
        ("v1", np.random.default_rng(1).normal(size=500)),
        ("v1", range(18, 31)),
        ("v1", range(200)),
    ],
)
def test_quantities_stay_numbers(head, values):
    assert not is_categorical_covariate(head, draw(list(values)))


@pytest.mark.parametrize("has_people", [False, True])
def test_ages_far_from_others_and_unknown_sexes_are_noted(has_people):
    ages = [61.0, 64, 66, 70, 72, 75, 80, 84, 7.1, None]
    table = pd.DataFrame(
        {
            "scan": [f"s{i}" for i in range(10)],
            "age": ages,
            "sex": ["F", "M"] * 4 + ["X", None],
        }
    )
    if has_people:
        table["participant"] = [f"p{i}" for i in range(10)]
    age_note, sex_note = make_unusual_value_notes(table)
    assert (age_note.scan, age_note.got) == ("s8", "7.1")
    assert "61 to 84" in age_note.message
    assert "'X' (1)" in sex_note.message
    assert make_unusual_value_notes(table[:8]) == []
    # An impossible age is a fault and no note as well.
    impossible_ages = table.assign(age=table["age"].replace(7.1, 710))
    assert [note.message for note in make_unusual_value_notes(impossible_ages)] == [
        sex_note.message
    ]
    (fault,) = find_wrong_number_faults(impossible_ages, ["age"])
    assert fault.got == "710"
    assert fault.place in ("s8", "p8")


@pytest.mark.parametrize(
    ("factor", "advice"),
    [
        (1, None),
        (12, "If the unit is months, divide the values by 12"),
        (
            365.25,
            "If the unit is days, divide the values by 365.25",
        ),
    ],
)
def test_ages_in_months_or_days_are_noted(factor, advice):
    ages = pd.Series([None, *range(61, 81)], dtype=float) * factor
    table = pd.DataFrame({"scan": [f"s{i}" for i in range(21)], "Age": ages})
    notes = make_unusual_value_notes(table)
    expected = [f"{advice} (median 70.5 years)"] if advice else []
    assert [note.advice for note in notes] == expected
    assert all("Age is probably not in years" in note.message for note in notes)


def draw_visits(column, values, visits=("bl", "M06", "M12")):
    """Return the table of one person with a value at each visit."""
    table = pd.DataFrame({"session": visits, column: values})
    return table.assign(participant="anna", scan="anna_" + table["session"])


@pytest.mark.parametrize(
    ("column", "values", "visits", "changed"),
    [
        ("age", [70.1, 70.6, 71.2], ("bl", "M06", "M12"), None),
        ("age", [70, 70, 70], ("bl", "M06", "M12"), None),
        ("Age (y)", [70.1, 71.2, 70.6], ("bl", "M06", "M12"), ["M06", "M12"]),
        ("age", [71.2, None, 70.1], ("ses-1", "ses-2", "ses-10"), ["ses-1", "ses-10"]),
        ("alter", [66, 65], ("2019-03-12", "2020-03-12"), ["2019-03-12", "2020-03-12"]),
        ("alter", [66, 65], ("20190312", "20200312"), ["20190312", "20200312"]),
        # The order of these visits is not known.
        ("age", [71, 70], ("after", "before"), None),
        ("age", [71, 70], ("11.04.2020", "12.03.2019"), None),
        ("Geburtsjahr", [1944, 1944, 1945], ("before", "x", "y"), ["x", "y"]),
        ("date_of_birth", ["1944-01-02", "1944-02-01"], ("a", "b"), ["a", "b"]),
        ("mmse", [29, 28, 25], ("bl", "M06", "M12"), None),
    ],
)
def test_an_age_that_falls_and_a_birth_that_changes_are_noted(
    column, values, visits, changed
):
    notes = make_changed_person_notes(draw_visits(column, values, visits))
    assert [note.values["visits"] for note in notes] == ([changed] if changed else [])
    for note in notes:
        assert (note.kind, note.participant) == (CHANGED_PERSON, "anna")
        assert all(visit in note.got for visit in changed)
        assert "194" not in str(note)  # when somebody was born


def test_a_sex_that_changes_is_a_fault_that_names_the_visits():
    (fault,) = find_covariate_faults(
        draw_visits("sex", ["F", "F", "M"]).assign(label="CN"), "label"
    )
    assert (fault.kind, fault.participant) == (CHANGED_PERSON, "anna")
    assert fault.got == "F at bl, M at M12"
