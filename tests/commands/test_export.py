"""`brainlsap export`, from the command line."""

import nibabel
import numpy as np
import pandas as pd
import pytest

from brainlsap.cli import main
from brainlsap.exceptions import ParameterError
from brainlsap.report import export_results, read_results, write_report


def test_scales_of_every_model_are_exported(finished_run, tmp_path, capsys):
    out = tmp_path / "regions"
    assert main(["export", str(finished_run.out), "--out", str(out)]) == 0
    n_files = len(list(out.iterdir()))
    assert capsys.readouterr().out == f"Regions: {out} ({n_files} files)\n"
    table = pd.read_csv(out / "regions.tsv", sep="\t", index_col="region")
    evaluation = read_results(finished_run.out).evaluation
    for name in ("Exact", "LSAP-C"):
        result = evaluation.results[name]
        expected = np.where(result.measured, result.scales().mean(axis=0), np.nan)
        np.testing.assert_allclose(table[name].loc[list(result.region_names)], expected)
    image = nibabel.load(out / "hemi-L_space-fsaverage5_regions.shape.gii")
    assert [one.meta["Name"] for one in image.darrays] == ["Exact", "LSAP-C"]


def test_formats_are_chosen_and_bad_ones_refused(finished_run, tmp_path, capsys):
    out = tmp_path / "regions"
    arguments = ["export", str(finished_run.out), "--out", str(out), "--formats"]
    assert main([*arguments, "csv,ggseg"]) == 0
    assert {one.name for one in out.iterdir()} == {
        "regions.csv",
        "regions.json",
        "ggseg.csv",
    }
    capsys.readouterr()
    assert main([*arguments, "dicom"]) == 2
    assert "got 'dicom'" in capsys.readouterr().err


def test_models_without_scales_have_nothing_to_export(tmp_path):
    from sklearn.dummy import DummyClassifier

    from brainlsap.data import make_cohort
    from brainlsap.evaluation import cross_validate

    cohort = make_cohort(30, atlas="desikan82")
    evaluation = cross_validate(DummyClassifier(), cohort, 2, baselines=False)
    write_report(evaluation, tmp_path / "results", atlas=cohort.atlas)
    with pytest.raises(ParameterError, match=r"has scales to export: DummyClassifier"):
        export_results(tmp_path / "results")
