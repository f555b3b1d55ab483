"""Until images have moved: what they took from here."""

from dataclasses import dataclass

import numpy as np

MOST_ABSENT = 8


@dataclass(frozen=True, eq=False)
class ConnectomeFile:
    """A connectome in the order of an atlas, and what was done to get there."""

    matrix: np.ndarray
    notes: tuple[str, ...] = ()
