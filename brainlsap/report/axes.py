"""What every figure starts from and shares: axes without a window, colours, text."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which people of any colour vision tell apart.
INK, BLUE, ORANGE, GREY = "#222222", "#0072B2", "#D55E00", "#8A8A8A"


def new_axes(width: float, height: float) -> "Axes":
    """Return the axes of a new figure: no window, nothing that must be closed.

    Parameters
    ----------
    width, height : float
        In inches.

    Returns
    -------
    Axes
        Of a figure of its own, not of pyplot's.
    """
    from matplotlib.figure import Figure

    # "constrained" cuts labels beside axes of equal aspect off at the first drawing
    return Figure(figsize=(width, height), layout="compressed").add_subplot()


def bare(ax: "Axes") -> None:
    """Take the frame off but for the axis of values.

    Parameters
    ----------
    ax : Axes
        Changed in place.
    """
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def verbatim(text: object) -> str:
    r"""Return text that matplotlib prints as it is, whatever dollars are in it.

    Parameters
    ----------
    text : object
        Such as a label out of a user's file.

    Returns
    -------
    str

    Examples
    --------
    >>> print(verbatim("cost $5"))
    cost \$5
    """
    return str(text).replace("$", r"\$")
