"""Results of another version are refused by one error, before anything is written."""

import json

import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

from brainlsap.cli import main
from brainlsap.evaluation import Evaluation, cross_validate
from brainlsap.evaluation.results import (
    COHORT_TABLES,
    OTHER_VERSION,
    REQUIRED_COLUMNS_BY_TABLE,
    TABLES,
)
from brainlsap.simulation import make_cohort
from tests.conftest import make_small_atlas, raises_kind


@pytest.fixture(scope="module")
def evaluation():
    cohort = make_cohort(24, atlas=make_small_atlas(), random_state=0)
    return cross_validate({"prior": DummyClassifier()}, cohort, 2, baselines=False)


@pytest.fixture
def folder(evaluation, tmp_path):
    """Results of which a test may remove something."""
    evaluation.save(tmp_path / "results" / "private" / "evaluation")
    return tmp_path / "results" / "private" / "evaluation"


def change_record(folder, change):
    path = folder / "evaluation.json"
    record = json.loads(path.read_text("utf-8"))
    change(record)
    path.write_text(json.dumps(record), "utf-8")


def remove_column(folder, table_name, column_name):
    change_record(folder, lambda record: record["columns"][table_name].pop(column_name))
    path = folder / f"{table_name}.tsv"
    pd.read_csv(path, sep="\t").drop(columns=column_name).to_csv(
        path, sep="\t", index=False
    )


def test_every_stored_table_has_required_columns():
    assert {*TABLES, *COHORT_TABLES, "cohort"} == {*REQUIRED_COLUMNS_BY_TABLE}


@pytest.mark.parametrize(
    ("change", "missing", "unknown"),
    [
        (lambda r: r["settings"].pop("n_repeats"), ["settings.n_repeats"], []),
        (
            lambda r: r["settings"]["steps"].pop("harmonize"),
            ["settings.steps.harmonize"],
            [],
        ),
        (lambda r: r["cohort"].pop("classes"), ["cohort.classes"], []),
        (lambda r: r["columns"].pop("fits"), ["fits.tsv"], []),
        (lambda r: r["cohort"].update(sites=3), [], ["cohort.sites"]),
        (
            lambda r: r["cohort"]["reading_options"].update(digits=2),
            [],
            ["cohort.reading_options.digits"],
        ),
    ],
)
def test_what_results_lack_or_have_in_addition_is_named(
    folder, change, missing, unknown
):
    change_record(folder, change)
    with raises_kind(
        OTHER_VERSION, "evaluation", missing=missing, unknown=unknown
    ) as caught:
        Evaluation.load(folder)
    assert "`brainlsap run`" in str(caught.value)


def test_a_table_without_a_column_is_refused_and_nothing_is_written(folder, capsys):
    remove_column(folder, "fits", "role")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with raises_kind(
        OTHER_VERSION, "evaluation", missing=["fits.tsv: column role"], unknown=[]
    ):
        Evaluation.load(folder)
    results = folder.parents[1]
    assert main(["report", str(results), "--out", str(results.parent / "new")]) == 2
    assert "brainlsap: error: " in capsys.readouterr().err
    assert [path.name for path in results.parent.iterdir()] == ["results"]
    for path, content in before.items():
        assert path.read_bytes() == content
