"""Scans without a label: people for whom a model is to predict."""

import numpy as np
import pytest

from brainlsap.data import load_cohort
from brainlsap.exceptions import CohortError


def test_without_a_label_everybody_is_listed(subject_folders):
    labelled = load_cohort(subject_folders, "desikan82", "fdg")
    table = subject_folders / "participants.tsv"
    kept = [line.split("\t")[0] for line in table.read_text().splitlines()]
    table.write_text("\n".join(kept) + "\n")
    for sessions in subject_folders.glob("sub-*/*_sessions.tsv"):
        sessions.unlink()
    cohort = load_cohort(subject_folders, "desikan82", "fdg", label=None)
    assert cohort.classes == ("unlabelled",)
    assert set(cohort.y) == {"unlabelled"}
    assert cohort.label_name == "none"
    np.testing.assert_array_equal(cohort.features, labelled.features)
    assert list(cohort.table["scan"]) == list(labelled.table["scan"])


def test_the_label_of_a_table_of_scans_may_be_missing(tmp_path):
    from brainlsap.data import load_atlas

    atlas = load_atlas("desikan82")
    values = "\n".join(f"s{i},{','.join('3' * len(atlas))}" for i in range(3))
    (tmp_path / "t.csv").write_text(f"id,{','.join(atlas.names)}\n{values}\n")
    cohort = load_cohort(
        tmp_path, atlas, "fdg", label=None, connectome=np.ones((82, 82))
    )
    assert cohort.n_scans == 3


def test_a_visit_under_another_name_has_not_the_label_of_the_person(
    write, tiny, matrix, tmp_path
):
    """Clinica wrote ses-M00 before it wrote ses-M000."""
    write("participants.tsv", "participant_id\tdiagnosis\nsub-1\tCN\nsub-2\tCN\n")
    for person in ("sub-1", "sub-2"):
        rows = "ses-M00\tCN\nses-M12\tAD\n"
        write(f"{person}/{person}_sessions.tsv", f"session_id\tdiagnosis\n{rows}")
        for visit in ("ses-M000", "ses-M012"):
            (tmp_path / person / visit).mkdir()
    options = {"feature": "strength", "label": "diagnosis", "connectome": matrix}
    with pytest.raises(
        CohortError, match=r"sub-1_ses-M012: no .* visits are listed as ses-M00, ses-M1"
    ):
        load_cohort(tmp_path, tiny, **options)
    for person in ("sub-1", "sub-2"):
        for old, new in (("ses-M000", "ses-M00"), ("ses-M012", "ses-M12")):
            (tmp_path / person / old).rename(tmp_path / person / new)
    cohort = load_cohort(tmp_path, tiny, **options)
    assert cohort.y.tolist() == ["CN", "AD", "CN", "AD"]


def test_decimal_commas_are_refused(write, tiny, matrix, tmp_path):
    options = {"feature": "strength", "label": "diagnosis", "connectome": matrix}
    text = "participant_id\tdiagnosis\tage\nsub-1\tCN\t70,5\nsub-2\tAD\t71\n"
    write("participants.tsv", text)
    with pytest.raises(CohortError, match=r"age is written with decimal comm.*70,5"):
        load_cohort(tmp_path, tiny, **options)
    write("participants.tsv", text.replace("71", "old"))
    cohort = load_cohort(tmp_path, tiny, **options)
    assert cohort.table["age"].tolist() == ["70,5", "old"]
