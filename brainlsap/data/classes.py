"""Classes in order of stage."""

from collections.abc import Sequence

import numpy as np

from brainlsap.exceptions import ParameterError

STAGES = ("CN", "SMC", "EMCI", "LMCI", "AD")


def order_classes(
    labels: Sequence[str] | np.ndarray, classes: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the classes of some labels in order of stage.

    Parameters
    ----------
    labels : sequence of str
        Of the scans.
    classes : sequence of str, optional
        The order wanted; holds every label. By default the stages CN, SMC, EMCI,
        LMCI, AD where the labels are among them, and sorted otherwise (as numbers
        where all are numbers).

    Returns
    -------
    tuple of str

    Raises
    ------
    ParameterError
        Where `classes` names one twice.

    Examples
    --------
    >>> order_classes(["AD", "CN", "LMCI"])
    ('CN', 'LMCI', 'AD')
    >>> order_classes(["10", "9", "10"])
    ('9', '10')
    """
    if classes is not None:
        given = tuple(str(name) for name in classes)
        doubled = sorted({name for name in given if given.count(name) > 1})
        if doubled:
            raise ParameterError(f"classes names {doubled[0]!r} more than once.")
        return given
    found = {str(label) for label in labels}
    if found <= set(STAGES):
        return tuple(stage for stage in STAGES if stage in found)
    try:
        return tuple(sorted(found, key=lambda label: (float(label), label)))
    except ValueError:
        return tuple(sorted(found))
