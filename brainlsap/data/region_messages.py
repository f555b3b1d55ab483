"""What is said when region names do not fit an atlas, with the nearest names."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from brainlsap.data.region_names import split_name

_MANY = 5  # of a long list of faults, the first few are told


def nearest_names(
    name: str | bytes, names: Sequence[str], hemisphere: str | None = None
) -> list[str]:
    """Return the names that are spelt most like an unknown one.

    Parameters
    ----------
    name : str or bytes
        The unknown name.
    names : sequence of str
        The names to choose from.
    hemisphere : {"L", "R"} or None
        Side to prefer where the name itself does not say.

    Returns
    -------
    list of str
        At most three names, the most alike first; those of the name's own
        hemisphere where it has one.

    Examples
    --------
    >>> nearest_names("lh_precuneos", ["ctx-lh-precuneus", "ctx-rh-precuneus"])
    ['ctx-lh-precuneus']
    """
    side, core = split_name(name)
    side = side or hemisphere
    cores: dict[str, list[str]] = {}
    for candidate in names:
        its_side, its_core = split_name(candidate)
        if side is None or its_side is None or its_side == side:
            cores.setdefault(its_core, []).append(candidate)
    close = get_close_matches(core, list(cores), n=3, cutoff=0.6)
    return [candidate for core in close for candidate in cores[core]][:3]


def unknown_message(
    atlas: str,
    names: Sequence[str],
    unknown: Sequence[str],
    n_given: int,
    hemisphere: str | None = None,
) -> str:
    """Return the sentence that refuses unknown names.

    Parameters
    ----------
    atlas : str
        Name of the atlas.
    names : sequence of str
        Its regions.
    unknown : sequence of str
        Names that are none of them.
    n_given : int
        How many names were given in all.
    hemisphere : {"L", "R"} or None
        Side of the file that the names stand in.

    Returns
    -------
    str
        The first few unknown names, the nearest regions, and what to do.
    """
    told = []
    for name in unknown[:_MANY]:
        near = nearest_names(name, names, hemisphere)
        hint = f"nearest: {', '.join(near)}" if near else "nothing is near"
        told.append(f"{name!r} ({hint})")
    return (
        f"{len(unknown)} of {n_given} names unknown to atlas {atlas}: "
        f"{', '.join(told)}{_more(unknown)}. Give each region by its name "
        f"with its side, such as {names[0]!r}; load_atlas({atlas!r}).names lists them."
    )


def doubled_message(atlas: str, spelt: Mapping[str, Sequence[str]]) -> str:
    """Return the sentence that refuses a region named more than once.

    Parameters
    ----------
    atlas : str
        Name of the atlas.
    spelt : mapping of str to sequence of str
        From each doubled region to the names that were given for it.

    Returns
    -------
    str
        The first few doubled regions, how they were spelt, and what to do.
    """
    told = [
        f"{region} as {', '.join(map(repr, given))}"
        for region, given in list(spelt.items())[:_MANY]
    ]
    return (
        f"{len(spelt)} of the regions of atlas {atlas} came more than once: "
        f"{'; '.join(told)}{_more(list(spelt))}. Keep one name per region."
    )


def _more(faults: Sequence[str]) -> str:
    rest = len(faults) - _MANY
    return f" and {rest} more" if rest > 0 else ""
