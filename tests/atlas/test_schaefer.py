"""A Schaefer atlas with ENIGMA's connectome, from the command line to surfaces."""

import numpy as np
import pytest

from brainlsap.cli import main
from brainlsap.data import load_cohort
from brainlsap.report import page
from brainlsap.simulation import make_cohort, write_study_folder

pytestmark = pytest.mark.usefixtures("brief_studies")

SEEDS = ["LH_Limbic_TempPole_1", "RH_Limbic_TempPole_1"]


def test_enigmas_connectome_is_run_and_drawn(shared, tmp_path, capsys, monkeypatch):
    def draw_brain(evaluation, atlas, figure_names):
        if "brain" not in figure_names:
            return {}
        return {"brain": page._plot_scale_maps(evaluation, atlas)}

    monkeypatch.setattr(page, "draw_figure_by_name", draw_brain)
    matrix = shared / "enigma_parcellations" / "sc_with_sctx_schaefer_100.csv"
    simulated = make_cohort(
        12, atlas="schaefer100", feature="thickness", seeds=SEEDS, random_state=0
    )
    study = write_study_folder(simulated, tmp_path / "study", style="named")
    assert list(study.rglob("lh.Schaefer2018_100Parcels_7Networks_order.stats"))
    brief, out = tmp_path / "brief.toml", tmp_path / "out"
    brief.write_text(
        'n_starts = 1\n[model]\nstart = "constant"\n[study]\nbaselines = false\n'
    )
    command = ["run", str(study), "--atlas", "schaefer100", "--feature", "thickness"]
    command += ["--connectome", str(matrix), "--row-order", "enigma"]
    command += ["--merge-classes", "early-or-late"]
    command += ["--models", "LSAP-C", "--folds", "2", "--epochs", "3"]
    command += ["--permutations", "9"]
    command += ["--config", str(brief), "--out", str(out)]
    assert main(command) == 2
    assert "--negative drop sets negative weights to 0" in capsys.readouterr().err
    assert main([*command, "--negative", "drop"]) == 0
    assert (out / "report/figures/brain.png").is_file()
    assert "no surfaces" not in (out / "report/report.html").read_text()
    reading = {"row_order": "enigma", "negative": "drop"}
    cohort = load_cohort(
        study, "schaefer100", "thickness", connectome=matrix, **reading
    )
    weights = np.maximum(np.loadtxt(matrix, delimiter=","), 0)
    np.testing.assert_allclose(cohort.connectomes[0], weights, rtol=1e-6)
    np.testing.assert_allclose(cohort.features, simulated.features, rtol=1e-6)
