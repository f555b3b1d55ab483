import re

import pytest

from brainlsap.evaluation import SCORES
from brainlsap.report import score_numbers, score_table


def test_scores_are_printed_as_they_are(evaluation):
    table, numbers = score_table(evaluation), score_numbers(evaluation)
    assert list(table["model"]) == ["LSAP_x", "majority", "linear"]
    assert len(table.columns) == 1 + len(SCORES)
    for row in range(3):
        scores = evaluation.result(table["model"][row]).scores()
        mean, sd = scores["auc"].mean(), scores["auc"].std(ddof=1)
        assert table["macro AUC"][row] == f"{mean:.3f} ± {sd:.3f}"
        assert numbers["auc_mean"][row] == pytest.approx(mean)
        assert numbers["auc_sd"][row] == pytest.approx(sd)
    assert re.fullmatch(r"\d\.\d ± 0\.\d", score_table(evaluation, 1)["accuracy"][0])
    assert "mean stage error (less is better)" in table


def test_two_classes_have_no_stages(make_evaluation):
    columns = list(score_table(make_evaluation(classes=("F", "M"))))
    assert columns[-2:] == ["AUC", "Cohen's kappa"]
    assert not any("stage" in name for name in columns)
