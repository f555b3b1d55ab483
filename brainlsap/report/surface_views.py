"""The sides from which a brain is shown, and what they are called."""

from collections.abc import Sequence
from dataclasses import dataclass

from brainlsap.data.atlas import Atlas
from brainlsap.exceptions import ParameterError


@dataclass(frozen=True)
class View:
    """One column of the figure: drawings of hemispheres, side by side and stacked.

    Parameters
    ----------
    title : str
        What stands above it.
    drawings : tuple of tuple of (hemisphere, camera)
        Lines of drawings, the upper first.
    lines : tuple of str
        What each line shows, written beside it; empty where there is but one.
    subcortex : bool
        Whether the subcortical meshes are drawn, and not the cortex.
    size : float
        Height, in units of the height of a row of the figure.
    """

    title: str
    drawings: tuple[tuple[tuple[str, str], ...], ...]
    lines: tuple[str, ...] = ()
    subcortex: bool = False
    size: float = 1.0


_OUTER = 0.80
VIEWS: dict[str, View] = {
    "top": View("Top", ((("L", "from above"), ("R", "from above")),)),
    "bottom": View("Bottom", ((("R", "from below"), ("L", "from below")),)),
    "outer left": View("Outer left", ((("L", "from left"),),), size=_OUTER),
    "outer right": View("Outer right", ((("R", "from right"),),), size=_OUTER),
    "inner left": View("Inner left", ((("L", "from right"),),), size=_OUTER),
    "inner right": View("Inner right", ((("R", "from left"),),), size=_OUTER),
    "subcortical": View(
        "Subcortical",
        (
            (("L", "from left"), ("R", "from right")),
            (("L", "from right"), ("R", "from left")),
        ),
        lines=("outer", "inner"),
        subcortex=True,
    ),
}
ALIASES = {
    "dorsal": "top",
    "ventral": "bottom",
    "lateral left": "outer left",
    "left lateral": "outer left",
    "lateral right": "outer right",
    "right lateral": "outer right",
    "medial left": "inner left",
    "left medial": "inner left",
    "medial right": "inner right",
    "right medial": "inner right",
    "subcortex": "subcortical",
}
# Surface of the cortex -> the surfaces of nilearn that it is the mean of.
MESHES = {
    "inflated": ("inflated",),
    "half-inflated": ("inflated", "pial"),
    "pial": ("pial",),
    "white": ("white_matter",),
}


def check_views(views: str | Sequence[str], atlas: Atlas) -> list[str]:
    """Return the views by their names in :data:`VIEWS`.

    Parameters
    ----------
    views : "paper" or sequence of str
        "paper" means all; else names of views, anatomical ones too ("dorsal",
        "lateral left" ...).
    atlas : Atlas
        One without subcortical regions has no subcortical view among "paper".

    Returns
    -------
    list of str
        Names, in the order asked.

    Raises
    ------
    ParameterError
        If a view is unknown, or there is none.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> check_views(["lateral left", "top"], load_atlas("desikan82"))
    ['outer left', 'top']
    """
    if isinstance(views, str):
        if views == "paper":
            any_below = (atlas.regions["structure"] == "subcortex").any()
            return [v for v in VIEWS if any_below or not VIEWS[v].subcortex]
        views = [views]
    names = [ALIASES.get(str(v).lower(), str(v).lower()) for v in views]
    wrong = [given for given, v in zip(views, names, strict=True) if v not in VIEWS]
    if wrong or not names:
        raise ParameterError(
            f"views must be 'paper' or some of {', '.join(VIEWS)} (or "
            f"{', '.join(ALIASES)}), got {wrong[0] if wrong else views!r}."
        )
    return names
