import pytest

from brainlsap.exceptions import (
    BrainlsapError,
    CohortError,
    FileFormatError,
    ParameterError,
    RegionNameError,
    SplitError,
)


@pytest.mark.parametrize(
    "kind", [CohortError, FileFormatError, ParameterError, RegionNameError, SplitError]
)
def test_every_error_is_of_the_family_and_a_value_error(kind):
    with pytest.raises(BrainlsapError, match="what came"):
        raise kind("what came")
    assert issubclass(kind, ValueError)


def test_a_cohort_is_refused_with_the_whole_list():
    error = CohortError("2 faults", (fault for fault in ("a: none", "b: NaN")))
    assert error.faults == ("a: none", "b: NaN")
    assert str(error) == "2 faults:\n  a: none\n  b: NaN"


def test_a_cohort_without_a_list_is_one_line():
    assert str(CohortError("study: no such folder")) == "study: no such folder"
    assert CohortError("study: no such folder").faults == ()
