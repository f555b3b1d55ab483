"""The order of the classes: given, sorted, or asked for."""

import numpy as np
import pytest

from brainlsap.exceptions import ParameterError
from brainlsap.model.class_order import order_labels

STAGES = np.array(["MCI", "CN", "AD", "CN"])


def test_without_order_classes_are_sorted():
    classes, codes = order_labels(STAGES, 4, None, "softmax")
    assert classes.tolist() == ["AD", "CN", "MCI"]
    assert classes[codes].tolist() == STAGES.tolist()


def test_given_order_is_kept_and_absent_classes_are_left_out():
    order = ("CN", "SMC", "MCI", "AD")
    classes, codes = order_labels(STAGES, 4, order, "ordinal")
    assert classes.tolist() == ["CN", "MCI", "AD"]
    assert codes.tolist() == [1, 0, 2, 0]


def test_two_classes_and_numbers_need_no_order():
    assert order_labels(STAGES[1:3], 2, None, "ordinal")[1].tolist() == [1, 0]
    stages = np.array([10, 2, 3])
    assert order_labels(stages, 3, None, "ordinal")[1].tolist() == [2, 0, 1]


def test_unknown_order_is_asked_for():
    with pytest.raises(ParameterError, match=r"AD, CN, MCI, which .* Pass classes="):
        order_labels(STAGES, 4, None, "ordinal")


@pytest.mark.parametrize(
    ("order", "fault"),
    [(("CN", "AD"), "'MCI' is missing"), (("CN", "AD", "MCI", "CN"), "stands .*twice")],
)
def test_order_must_list_every_class_once(order, fault):
    with pytest.raises(ParameterError, match=rf"classes must list .*{fault}"):
        order_labels(STAGES, 4, order, "softmax")
