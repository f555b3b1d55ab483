"""Whether a ranking is better than its null: corrected p-values of every region."""

import numpy as np
import pandas as pd

from brainlsap.evaluation.comparison import adjust_p_values
from brainlsap.exceptions import ParameterError

ALPHA = 0.05
# Sums in another order differ in the last bits; such scales are equal.
_EQUAL = 1e-9


def null_p_values(
    observed: np.ndarray, null: np.ndarray, measured: np.ndarray | None = None
) -> pd.DataFrame:
    r"""Return how likely scales as small as these are without what is tested.

    Regions differ in how far their scale wanders by itself, so scales are first
    brought to one unit, :math:`z = (m - s) / d`, with mean and deviation of the
    region over *all* fits, the observed one among them: then the fits may change
    places under the null, and the p-values are exact. That null is that the label says
    nothing: where it can be learned at all, training may move every scale, also of
    regions that know nothing of it. A small p_family says that the ranking is better
    than its null, and by itself not which region is the cause.

    p_centred asks which regions stand out *within* their fit: before the same steps,
    scales are taken against the median of their fit and divided by the spread of it,

    .. math:: t = (\mathrm{med}\, s - s) / (\mathrm{mad}\, s + \overline{\mathrm{mad}})

    with :math:`\overline{\mathrm{mad}}` the median of the spreads of all fits, so that
    a fit in which all scales moved far does not count for more. It is exact under the
    same null, and singles regions out more sharply where the label can be learned.

    :math:`p = (1 + b)/(1 + n)`, where b of n null fits are at least as extreme.

    Parameters
    ----------
    observed : array of shape (n_rois,)
        Scales of the fit to the true labels.
    null : array of shape (n_null, n_rois)
        Scales of fits made in the very same way, for example to permuted labels.
    measured : array of bool of shape (n_rois,), optional
        Regions that count; by default all.

    Returns
    -------
    DataFrame
        One row per region: z (large where the scale is smaller than in the null);
        p_value, of the region by itself; p_family, of the largest z of any region
        (maximum statistic: the probability of one false region among all); p_centred,
        the same of t; and p_fdr
        (Benjamini and Hochberg; no p_value is below 1 / (1 + n), so that a small p_fdr
        needs many fits, or many regions that stand out). NaN where not measured.

    Raises
    ------
    ParameterError
        Where the null has no fit, or other regions.

    Examples
    --------
    >>> null = np.random.default_rng(0).normal(1.0, 0.1, size=(99, 3))
    >>> found = null_p_values(np.array([0.2, 1.0, 1.1]), null)
    >>> found["p_family"].round(2).tolist()[0]
    0.01
    """
    known = np.ones(np.shape(observed), bool) if measured is None else measured
    _check_shapes(observed, null, known)
    scales = np.vstack([observed, null])
    z = _in_units(scales)
    table = pd.DataFrame(
        {
            "z": z[0],
            "p_value": (z >= z[0] - _EQUAL).sum(axis=0) / len(scales),
            "p_family": _by_maximum(z, known),
            "p_centred": _by_maximum(_in_units(_centred(scales, known)), known),
        }
    )
    table[~known] = np.nan
    table["p_fdr"] = adjust_p_values(table["p_value"].to_numpy(), "fdr")
    return table


def _in_units(scales: np.ndarray) -> np.ndarray:
    """Return how far below its mean over fits each region is, in its deviations."""
    deviation = scales.std(axis=0)
    still = deviation <= _EQUAL * (1 + np.abs(scales).max(axis=0))
    below = np.where(still, 0.0, scales.mean(axis=0) - scales)
    return below / np.where(still, 1.0, deviation)


def _centred(scales: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return scales against the median of their fit, over its spread."""
    centre = np.median(scales[:, known], axis=1, keepdims=True)
    spread = np.median(np.abs(scales - centre)[:, known], axis=1, keepdims=True)
    # where most regions never move, most spreads are 0
    usual = float(np.median(spread)) or float(spread.mean()) or 1.0
    return (scales - centre) / (spread + usual)


def _by_maximum(z: np.ndarray, known: np.ndarray) -> np.ndarray:
    highest = z[1:, known].max(axis=1)
    return (1 + (highest[:, None] >= z[0] - _EQUAL).sum(axis=0)) / len(z)


def beats_null(p_family: np.ndarray | pd.Series, alpha: float = ALPHA) -> bool:
    """Tell whether any region is better than the null, all regions counted.

    Parameters
    ----------
    p_family : array of shape (n_rois,)
        Family-wise corrected, as of :func:`null_p_values`; NaN does not count.
    alpha : float
        Level.

    Returns
    -------
    bool

    Examples
    --------
    >>> beats_null(np.array([0.3, np.nan, 0.01]))
    True
    """
    given = np.asarray(p_family, dtype=float)
    return bool((given[np.isfinite(given)] < alpha).any())


def _check_shapes(observed: np.ndarray, null: np.ndarray, known: np.ndarray) -> None:
    if np.ndim(null) != 2 or len(null) < 1 or null.shape[1:] != np.shape(observed):
        raise ParameterError(
            "null must have shape (n_null, n_rois) with at least one fit and the "
            f"regions of observed {np.shape(observed)}, got {np.shape(null)}."
        )
    if not known.any():
        raise ParameterError("measured marks no region; there is nothing to test.")
