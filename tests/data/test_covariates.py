"""Labels and covariates: what one study may not mix."""

import numpy as np
import pandas as pd
import pytest

from brainlsap import Cohort
from brainlsap.data.covariates import kind_of
from brainlsap.exceptions import CohortError

N = 6


def made(labels=("CN", "AD") * 3, groups=range(1, N + 1), **covariates):
    rng = np.random.default_rng(0)
    W, F = np.ones((3, 3)), rng.random((N, 3))
    given = {"groups": groups, "covariates": covariates, "atlas": ["a", "b", "c"]}
    return Cohort.from_arrays(W, F, labels, **given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"labels": ["CN", "Control", "AD"] * 2}, "diagnosis is written as CN, Contr"),
        ({"labels": ["CN", "nan"] * 3}, "no label in row 1"),
        ({"groups": ["1", "01", *"abcd"]}, "people .* zeros at the front, got 1, 01"),
        ({"groups": [1, 1, 2, 3, 4, 5], "sex": list("FMFMFM")}, "1: sex differs betw"),
        ({"Geschlecht": ["w", "Weib", *"mmww"]}, "Geschlecht is written as Weib, w;"),
        ({"sex": ["0", "1", "M", "0", "1", "M"]}, "sex is written as 0, 1, M; write"),
        ({"site": ["S 1", "s-1", *"abab"]}, "site is written as S 1, s-1; write one"),
        ({"age": [70, 71, 72, 999, 74, 75]}, "scan4: age is 999, others 70 to 75"),
        ({"Alter": [70, 71, 72, 720, 74, 75]}, "scan4: Alter is 720, others 70 to 75"),
        ({"education": [9, 9, 12, 18, -9, 9]}, "scan5: education is -9, others 9 to 1"),
    ],
)
def test_words_and_codes_that_a_cohort_may_not_mix(given, told):
    with pytest.raises(CohortError, match=told):
        made(**given)


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
    heads = ["Age at scan", "PTGENDER", "Zentrum", "site_id", "eTIV", "fd_mean", "BMI"]
    told = ["age", "sex", "site", "site", "head size", "motion", "bmi"]
    assert pd.Series(heads).map(kind_of).tolist() == told
