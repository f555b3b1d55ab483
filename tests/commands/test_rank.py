"""`brainlsap rank` and `brainlsap report`, from the command line."""

import pandas as pd
import pytest

from brainlsap.cli import main


@pytest.fixture(scope="module")
def ranked(simulated_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("ranked") / "results"
    arguments = ["--atlas", "desikan82", "--feature", "fdg", "--folds", "2"]
    arguments += ["--epochs", "3", "--starts", "1", "--permutations", "3"]
    assert main(["rank", str(simulated_folder), "--out", str(out), *arguments]) == 0
    return out


def test_refits_of_a_cohort_reach_the_report(ranked):
    html = (ranked / "report" / "report.html").read_text()
    # four fits cannot show anything at 5%
    assert "is not better than its null" in html
    assert "3 refits to labels permuted between participants" in html
    ranking = pd.read_csv(ranked / "report" / "ranking.tsv", sep="\t")
    assert ranking["p_family"].between(0.25, 1).all()
    assert {"start_spread", "p_untrained", "importance_rank"} <= set(ranking)


def test_ranking_of_a_results_folder_is_printed_and_written(ranked, tmp_path, capsys):
    out = tmp_path / "ranking"
    assert main(["rank", str(ranked), "--top", "4", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("The ranking of regions is not better than its null")
    assert "| rank | region |" in printed
    assert printed.rstrip().endswith(str(out))
    written = pd.read_csv(out / "regions.csv")
    assert written["rank"].max() <= 4
    assert r"\toprule" in (out / "regions.tex").read_text()
    assert main(["rank", str(ranked), "--names", "long", "--style", "latex"]) == 0
    assert r"\toprule" in capsys.readouterr().out


def test_report_is_remade_elsewhere(ranked, tmp_path, capsys):
    out = tmp_path / "again"
    command = ["report", str(ranked), "--out", str(out), "--title", "Again"]
    assert main(command) == 0
    assert capsys.readouterr().out == f"Report: {out}/report/report.html\n"
    assert "<h1>Again</h1>" in (out / "report" / "report.html").read_text()


def test_what_cannot_be_ranked(ranked, simulated_folder, tmp_path, capsys):
    assert main(["rank", str(ranked), "--permutations", "9"]) == 2
    assert "needs the scans" in capsys.readouterr().err
    assert main(["rank", str(simulated_folder)]) == 2
    assert "say where the results go by --out" in capsys.readouterr().err
    assert main(["rank", str(tmp_path / "absent")]) == 2
    assert "absent: no such folder" in capsys.readouterr().err
    assert main(["report", str(tmp_path)]) == 2
    assert "holds no stored evaluation" in capsys.readouterr().err


def test_a_ranking_is_compared_with_another_map(ranked, tmp_path, capsys):
    table = ranked / "report" / "ranking.tsv"
    asked = ["rank", str(ranked), "--spins", "9", "--out", str(tmp_path / "r")]
    assert main([*asked, "--against", str(table), "--column", "scale"]) == 0
    printed = capsys.readouterr().out
    assert "Scales of LSAP-C and scale: Spearman +1.00 over 82 regions" in printed
    assert "spin test p = 0.1." in printed
    written = pd.read_csv(tmp_path / "r" / "against.tsv", sep="\t")
    assert written.loc[0, ["map", "n_spins"]].tolist() == ["scale", 9]
    # another results folder: the mean scales of its models
    assert main(["rank", str(ranked), "--spins", "3", "--against", str(ranked)]) == 0
    assert "LSAP-C and LSAP-C: Spearman +1.00" in capsys.readouterr().out
    assert main(["rank", str(ranked), "--against", str(table), "--column", "x"]) == 2
    assert "no column 'x' of numbers" in capsys.readouterr().err
