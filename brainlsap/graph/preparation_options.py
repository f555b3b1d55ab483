"""How connectomes can be made ready for a Laplacian: the options, and their checks."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from brainlsap._arrays import check_at_least, check_choice
from brainlsap.exceptions import ParameterError

THRESHOLD_UNITS = ("weight", "share", "density")
WEIGHTS = ("weighted", "log", "binary")
SYMMETRIZE = ("mean", "max", "refuse")
ISOLATED = ("keep", "strongest", "mean", "refuse")
CONNECTOMES = ("own", "mean", "covariance")

_CHOICES = {
    "threshold_unit": THRESHOLD_UNITS,
    "weights": WEIGHTS,
    "symmetrize": SYMMETRIZE,
    "isolated": ISOLATED,
    "connectome": CONNECTOMES,
}


@dataclass(frozen=True)
class Preparation:
    """How connectomes are made ready, in the order of the steps.

    Steps: (1) `connectome`: whose; (2) `symmetrize`, and the diagonal is cleared; (3)
    `threshold`; (4) `volumes`; (5) `consensus` and `group_density`; (6) `isolated`;
    (7) `weights`. The mean of people, the covariance of their features and which
    links step 5 keeps are learned by :class:`LearnedPreparation`, from training scans.

    Parameters
    ----------
    threshold : float
        Links below it become 0; the paper drops those of fewer than 10 streamlines.
        0 is none.
    threshold_unit : {"weight", "share", "density"}
        `weight`: in the connectome's unit. `share`: of the sum over the scan's links.
        `density`: only the strongest links stay, so many that they are this share of
        all pairs of regions (equals of the weakest stay too).
    weights : {"weighted", "log", "binary"}
        Keep weights, take log(1 + w), or set every link to 1 (the paper).
    symmetrize : {"mean", "max", "refuse"}
        Of the two directions: the mean, the larger, or an error where they differ.
    volumes : sequence of float, optional
        Of every region, mm3: weights are divided by the mean of the two volumes.
        :func:`brainlsap.data.region_volumes` puts named volumes in order.
    consensus : float
        Links are kept that at least this share of the training people has. 0 is none.
    group_density : float, optional
        The links of largest mean over training people are kept, this share of all
        pairs.
    isolated : {"keep", "strongest", "mean", "refuse"}
        A region without links: `keep` leaves it to its own value at every scale;
        `strongest` gives back its strongest link of before step 3; `mean` gives it
        the links of the training people's mean; `refuse` is an error.
    connectome : {"own", "mean", "covariance"}
        Whose network is used, see step 1. `covariance` is for people without
        diffusion imaging, see :func:`covariance_connectome`.

    Examples
    --------
    >>> Preparation(threshold=0.2, threshold_unit="density", weights="log").is_learned
    False
    """

    threshold: float = 0.0
    threshold_unit: str = "weight"
    weights: str = "weighted"
    symmetrize: str = "mean"
    volumes: tuple[float, ...] | None = None
    consensus: float = 0.0
    group_density: float | None = None
    isolated: str = "keep"
    connectome: str = "own"

    @property
    def is_learned(self) -> bool:
        """Whether any step needs to have seen training scans."""
        return (
            self.consensus > 0
            or self.group_density is not None
            or self.isolated == "mean"
            or self.connectome != "own"
        )

    @classmethod
    def of(cls, **options: Any) -> "Preparation":
        """Return the preparation of named options, checked.

        Parameters
        ----------
        **options
            By the names above.

        Returns
        -------
        Preparation

        Raises
        ------
        ParameterError
            For an unknown name, or a value that cannot be used.
        """
        names = [field.name for field in fields(cls)]
        for name in options:
            check_choice("option of preparation", name, names)
        if options.get("volumes") is not None:
            options["volumes"] = tuple(float(v) for v in options["volumes"])
        made = cls(**options)
        check_preparation(made)
        return made


def check_preparation(options: Preparation) -> None:
    """Raise for the first option that cannot be used."""
    for name, choices in _CHOICES.items():
        check_choice(name, getattr(options, name), choices)
    check_at_least("threshold", options.threshold, 0.0)
    if options.threshold_unit != "weight" and options.threshold > 1:
        raise ParameterError(
            f"threshold must be a share between 0 and 1 where threshold_unit is "
            f"{options.threshold_unit!r}, got {options.threshold!r}."
        )
    for name in ("consensus", "group_density"):
        share = getattr(options, name)
        if share is not None and not 0 <= share <= 1:
            raise ParameterError(f"{name} must lie between 0 and 1, got {share!r}.")
    volumes = np.asarray(options.volumes if options.volumes is not None else 1.0)
    if not (np.isfinite(volumes).all() and volumes.min() > 0):
        raise ParameterError("volumes must be positive and finite, in mm3.")
    if options.connectome == "covariance":
        _check_covariance(options)


def _check_covariance(options: Preparation) -> None:
    if options.consensus or options.volumes is not None:
        raise ParameterError(
            "consensus and volumes are for connectomes of people; leave them out where "
            "connectome is 'covariance'."
        )
    if options.threshold > 1:
        raise ParameterError(
            "threshold must be at most 1 where connectome is 'covariance', whose "
            f"weights are correlations, got {options.threshold!r}."
        )
