"""What holds for the weights of every connectome, whatever file they come from."""

from collections.abc import Sequence

import numpy as np

from brainlsap.exceptions import FileFormatError

# Text is rounded: two triangles of one matrix may differ in the last digit written.
ROUNDING = 1e-5


def check_weights(values: np.ndarray, names: Sequence[str], where: str) -> None:
    """Raise where weights cannot be those of a connectome.

    Parameters
    ----------
    values : array of shape (n, n)
        The weights.
    names : sequence of str
        Of the regions.
    where : str
        What the message calls the matrix.

    Raises
    ------
    FileFormatError
        Where weights are NaN, infinite or negative, or all of them 0.
    """
    if values.min() >= 0 and np.isfinite(values.max()):
        if np.count_nonzero(values) == np.count_nonzero(np.diagonal(values)):
            raise FileFormatError(
                f"{where}: every weight between two regions is 0; expected a "
                "connectome with connections."
            )
        return
    for what, mask in (
        ("NaN", np.isnan(values)),
        ("infinite", np.isinf(values)),
        ("negative", values < 0),
    ):
        if mask.any():
            i, j = np.argwhere(mask)[0]
            raise FileFormatError(
                f"{where}: {int(mask.sum())} weights are {what}, first {values[i, j]} "
                f"between {names[i]} and {names[j]}; expected finite weights that are "
                "not negative. Make the connectome again, or write 0 for no connection."
            )


def make_symmetric(
    values: np.ndarray,
    in_file: np.ndarray,
    names: Sequence[str],
    where: str,
    *,
    named: bool = False,
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return a matrix with both triangles, and what was done to get there.

    Parameters
    ----------
    values : array of shape (n, n)
        Weights in the order wanted.
    in_file : array of shape (n, n)
        The same in the order of the file, where triangles can be told apart.
    names : sequence of str
        Of the regions.
    where : str
        What the message calls the matrix.
    named : bool
        Whether rows and columns had names, which may scatter a triangle.

    Returns
    -------
    matrix : array of shape (n, n)
    notes : tuple of str

    Raises
    ------
    FileFormatError
        Where the two triangles differ by more than rounding.
    """
    if np.array_equal(values, values.T):
        return values, ()
    side = _filled_side(in_file)
    # named rows may come in any order, which scatters a triangle
    if side or (named and not np.triu((values != 0) & (values.T != 0), 1).any()):
        mirrored = values + values.T
        np.fill_diagonal(mirrored, np.diagonal(values))
        what = f"only the {side} triangle is filled" if side else "one way is filled"
        return mirrored, (f"{what}: mirrored",)
    gap = np.abs(values - values.T)
    if gap.max() <= ROUNDING * values.max():
        note = "the two triangles differ by rounding: averaged"
        return (values + values.T) / 2, (note,)
    i, j = np.unravel_index(gap.argmax(), gap.shape)
    raise FileFormatError(
        f"{where}: not symmetric, {values[i, j]} from {names[i]} to {names[j]} but "
        f"{values[j, i]} back; expected the same both ways, or one triangle of zeros. "
        "Symmetrise it first, for example by the mean of both."
    )


def _filled_side(values: np.ndarray) -> str | None:
    """Return the one triangle that holds all weights, None where both do."""
    lower, upper = np.tril(values, -1).any(), np.triu(values, 1).any()
    if lower == upper:
        return None
    return "lower" if lower else "upper"
