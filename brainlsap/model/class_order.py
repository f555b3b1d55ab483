"""The order of the classes, which an ordinal head needs and names do not tell."""

from collections.abc import Sequence

import numpy as np

from brainlsap.exceptions import ParameterError
from brainlsap.model.inputs import check_labels


def order_labels(
    y: np.ndarray, n_scans: int, classes: Sequence | None, head: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes that occur, in order, and the code of every scan.

    Parameters
    ----------
    y : array of shape (n_scans,)
        Class of every scan.
    n_scans : int
    classes : sequence or None
        All classes in order of stage; None sorts them, as scikit-learn does.
    head : {"ordinal", "softmax"}
        With "ordinal", more than two classes must be given an order, or be numbers.

    Returns
    -------
    classes : array of shape (n_classes,)
    codes : int array of shape (n_scans,)

    Raises
    ------
    ParameterError
        Where the order is needed and not known, or leaves out a class.

    Examples
    --------
    >>> y = np.array(["CN", "AD", "MCI"])
    >>> order_labels(y, 3, ("CN", "SMC", "MCI", "AD"), "ordinal")
    (array(['CN', 'MCI', 'AD'], dtype='<U3'), array([0, 2, 1]))
    """
    found, codes = check_labels(y, n_scans)
    if classes is None:
        if head == "ordinal" and len(found) > 2 and found.dtype.kind not in "biuf":
            raise ParameterError(
                "head='ordinal' needs the order of the classes "
                f"{', '.join(map(str, found))}, which their names do not tell. Pass "
                "classes= with all of them in order of stage."
            )
        return found, codes
    listed = list(classes)
    unlisted = [str(one) for one in found if one not in listed]
    if unlisted or len(set(listed)) < len(listed):
        fault = f"{unlisted[0]!r} is missing" if unlisted else "one stands there twice"
        raise ParameterError(
            f"classes must list every class of y once, in order; {fault} in "
            f"{', '.join(map(str, listed))}."
        )
    place = np.array([listed.index(one) for one in found])
    return found[place.argsort()], place.argsort().argsort()[codes]
