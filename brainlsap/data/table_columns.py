"""What the heads of columns mean in tables of many scans."""

import re
from collections.abc import Sequence
from pathlib import Path

from brainlsap.data.adni_heads import HEAD_SIZE, parse_adni_head
from brainlsap.data.atlas import Atlas, is_outside
from brainlsap.data.region_names import split_name
from brainlsap.exceptions import FileFormatError

ID_COLUMNS = (
    "participant_id",
    "subject_id",
    "sub_id",
    "subjid",
    "subject",
    "participant",
    "ptid",
    "rid",
    "scan",
    "scan_id",
    "image_id",
    "id",
    "",
)
SESSION_COLUMNS = (
    *("session_id", "session", "ses", "visit", "visit_id", "viscode2", "viscode"),
)
# Word at the end of a column -> feature; "" for measures that are not read.
_MEASURES = {
    "thickness": "thickness",
    "thickavg": "thickness",
    "area": "area",
    "surfarea": "area",
    "volume": "volume",
    "grayvol": "volume",
    "suvr": "suvr",
    "amyloid": "amyloid",
    "tau": "tau",
    "fdg": "fdg",
    "thicknessstd": "other",
    "meancurv": "other",
    "gauscurv": "other",
    "foldind": "other",
    "curvind": "other",
}
# Not regions, but covariates that a study adjusts for.
_HEAD_SIZES = (
    *("etiv", "estimatedtotalintracranialvol", "intracranialvol", "icv", "tiv"),
    HEAD_SIZE,
)
_SUFFIX = re.compile(rf"(.+?)[-_. ]({'|'.join(_MEASURES)})", re.IGNORECASE)
_APARC_HEAD = re.compile(r"(lh|rh)\.(.+)\.([a-z]+)")
_ASEG_HEAD = re.compile(r"measure:(\w+)", re.IGNORECASE)


def read_first_head(heads: Sequence[str]) -> tuple[str | None, str, str | None]:
    """Read what FreeSurfer's tables say in the head of their first column.

    Parameters
    ----------
    heads : sequence of str
        Of all columns.

    Returns
    -------
    side : {"L", "R"} or None
        Of all regions in the table.
    measure : str
        Of the table; empty where the head says none.
    id_column : str or None
        The first head where it is FreeSurfer's, since ids stand below it.

    Examples
    --------
    >>> read_first_head(["lh.aparc.a2009s.thickness", "lh_cuneus_thickness"])
    ('L', 'thickness', 'lh.aparc.a2009s.thickness')
    >>> read_first_head(["participant_id", "lh_cuneus"])
    (None, '', None)
    """
    first = heads[0].lower()
    if found := _APARC_HEAD.fullmatch(first):
        side = {"lh": "L", "rh": "R"}[found[1]]
        return side, _MEASURES.get(found[3], "other"), heads[0]
    if found := _ASEG_HEAD.fullmatch(first):
        measure = "volume" if found[1] == "volume" else "other"
        return None, measure, heads[0]
    return None, "", None


def measure_of_file(path: Path) -> str:
    """Return the measure that a file's name says.

    Parameters
    ----------
    path : Path
        Of the table.

    Returns
    -------
    str
        Empty where the name says none, or several.

    Examples
    --------
    >>> measure_of_file(Path("study_thickness.csv")), measure_of_file(Path("all.csv"))
    ('thickness', '')
    """
    words = re.split(r"[^a-z0-9]+", path.stem.lower())
    said = {_MEASURES[word] for word in words if word in _MEASURES}
    return said.pop() if len(said) == 1 else ""


def find_region(head: str, atlas: Atlas, side: str | None) -> tuple[str, int | None]:
    """Return measure and region that the head of a column names.

    Parameters
    ----------
    head : str
        With or without the measure at its end.
    atlas : Atlas
        Names the regions and gives their order.
    side : {"L", "R"} or None
        For names that do not say their side.

    Returns
    -------
    measure : str
        Empty where the head says none.
    place : int or None
        Position in the atlas; None for what is no region of it.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> find_region("lh_bankssts_area", load_atlas("desikan82"), None)
    ('area', 0)
    """
    place = atlas.find(head, side)
    if place is not None:
        return "", place
    adni = parse_adni_head(head)
    if adni is not None:
        return adni[0], atlas.find(adni[1])
    found = _SUFFIX.fullmatch(head)
    if found is None:
        return "", None
    return _MEASURES[found[2].lower()], atlas.find(found[1], side)


def region_of_head(head: str) -> str:
    """Return the region's name in the head of a column, without its measure.

    Parameters
    ----------
    head : str
        Of the column.

    Returns
    -------
    str

    Examples
    --------
    >>> region_of_head("CTX_LH_CUNEUS_SUVR"), region_of_head("ST24TA")
    ('CTX_LH_CUNEUS', 'Left-entorhinal')
    """
    adni = parse_adni_head(head)
    if adni is not None:
        return adni[1]
    found = _SUFFIX.fullmatch(head)
    return found[1] if found else head


def find_head_size(heads: Sequence[str]) -> str | None:
    """Return the head of the column of intracranial volumes, None if there is none.

    Parameters
    ----------
    heads : sequence of str
        Of all columns.

    Returns
    -------
    str or None

    Examples
    --------
    >>> find_head_size(["id", "EstimatedTotalIntraCranialVol"])
    'EstimatedTotalIntraCranialVol'
    """
    return _first_of(_HEAD_SIZES, heads)


def kind_of_head(head: str) -> str:
    """Return what a column is that is no region of the atlas.

    Parameters
    ----------
    head : str
        Of the column.

    Returns
    -------
    {"outside", "strangers", "others"}
        A region that atlases leave out on purpose; a head that names a side as
        regions do; a covariate.

    Examples
    --------
    >>> [kind_of_head(head) for head in ("Brain-Stem", "lh_cunnus", "eTIV")]
    ['outside', 'strangers', 'others']
    """
    if head.lower() in _HEAD_SIZES:
        return "others"
    name = region_of_head(head)
    if is_outside(head) or is_outside(name):
        return "outside"
    head = name if parse_adni_head(head) else head
    return "others" if split_name(head)[0] is None else "strangers"


def find_id(path: str | Path, heads: Sequence[str]) -> str:
    """Return the head of the column that names people or scans.

    Parameters
    ----------
    path : str or Path
        Of the table, for the message.
    heads : sequence of str
        Of all columns.

    Returns
    -------
    str

    Raises
    ------
    FileFormatError
        Where no head is known.
    """
    found = _first_of(ID_COLUMNS, heads)
    if found is None:
        more = " ..." if len(heads) > 8 else ""
        raise FileFormatError(
            f"{path}: no column names the scans; expected one headed "
            f"{', '.join(name for name in ID_COLUMNS if name)}, found "
            f"{', '.join(heads[:8])}{more}."
        )
    return found


def find_session(heads: Sequence[str]) -> str | None:
    """Return the head of the column that names visits, None where there is none.

    Parameters
    ----------
    heads : sequence of str
        Of all columns.

    Returns
    -------
    str or None
    """
    return _first_of(SESSION_COLUMNS, heads)


def _first_of(wanted: Sequence[str], heads: Sequence[str]) -> str | None:
    lower = {head.lower(): head for head in heads}
    return next((lower[name] for name in wanted if name in lower), None)
