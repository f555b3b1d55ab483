"""Which region is which label: a user's table, or what labels are known to mean."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from brainlsap.data.atlas import Atlas
from brainlsap.data.freesurfer_labels import name_beside
from brainlsap.data.layouts import known_layouts
from brainlsap.data.region_names import as_text, split_name
from brainlsap.data.text_lines import read_lines, sniff_delimiter
from brainlsap.exceptions import FileFormatError, ParameterError

_NUMBER_HEADS = ("index", "label", "id", "no.", "no", "number", "value")
_NAME_HEADS = ("name", "label_name", "region", "structname", "structure")
# Labels that are regions, as a share of the regions, to be taken for FreeSurfer's.
_ENOUGH = 0.5
_BACKGROUND = ("unknown", "background", "none", "")


def read_label_table(
    labels: str | Path | Mapping[int, str] | Sequence[str], atlas: Atlas
) -> dict[int, str]:
    """Return the name of every label that a table gives.

    Parameters
    ----------
    labels : path, mapping of int to str, or sequence of str
        A file of FreeSurfer's or MRtrix's lookup tables (number, one or more names,
        colour), or with the columns `index` and `name` (BIDS); the names themselves
        by number; or the names of the labels 1, 2, 3 ... in order.
    atlas : Atlas
        Of several names in a line, the one that it knows counts.

    Returns
    -------
    dict of int to str

    Raises
    ------
    FileFormatError
        Where a line of the file has no number or no name, a number has two names,
        or two columns number the labels differently.
    ParameterError
        Where a key of a mapping is no whole number, or a sequence begins with the
        name of label 0.
    """
    if isinstance(labels, Mapping):
        try:
            return {_whole(number): as_text(name) for number, name in labels.items()}
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"labels must map whole numbers to names, got {dict(labels)!r:.80}."
            ) from error
    if not isinstance(labels, str | Path):
        return _in_order([as_text(name) for name in labels])
    lines = read_lines(labels)
    rows = [_cells(line) for line in lines]
    heads = [cell.lower() for cell in rows[0]] if rows else []
    number = _number_column(rows, heads, labels)
    name = next((heads.index(h) for h in _NAME_HEADS if h in heads), None)
    if number is not None and name is not None:
        chosen = [
            (row[number], [row[name]]) if len(row) > max(number, name) else ("", [])
            for row in rows[1:]
        ]
    else:
        chosen = [(row[0], _texts(row[1:])) for row in rows]
    found: dict[int, str] = {}
    for cell, names in chosen:
        if not cell and not names:
            continue
        label, best = _number(cell, names, labels), _best(names, atlas)
        known = found.setdefault(label, best)
        if known != best and {atlas.find(known), atlas.find(best)} != {None}:
            raise FileFormatError(
                f"{labels}: the label {label} is {found[label]} and {best}; expected "
                "one name for each number. Keep the one that the image means."
            )
    return found


def _whole(number: object) -> int:
    if isinstance(number, str):
        return int(number)
    if int(number) != number:  # type: ignore[call-overload]
        raise ValueError(f"{number} is no whole number")
    return int(number)  # type: ignore[call-overload,no-any-return]


def _in_order(names: Sequence[str]) -> dict[int, str]:
    """Return the names of the labels 1, 2, 3 ..., unless 0 may be meant to be first."""
    if names and split_name(names[0])[1] in _BACKGROUND:
        raise ParameterError(
            f"labels begin with {names[0]!r}, so that the first may be of label 0 or "
            "of label 1. Give them by number, such as labels=dict(enumerate(names))."
        )
    return dict(enumerate(names, start=1))


def _number_column(
    rows: Sequence[Sequence[str]], heads: Sequence[str], path: str | Path
) -> int | None:
    """Return the one column that numbers the labels."""
    places = [heads.index(head) for head in _NUMBER_HEADS if head in heads]
    cells = {
        place: [row[place] for row in rows[1:] if len(row) > place] for place in places
    }
    counted = [p for p in places if all(cell.isdecimal() for cell in cells[p])]
    if len({tuple(cells[place]) for place in counted}) > 1:
        named = " and ".join(repr(rows[0][place]) for place in counted)
        raise FileFormatError(
            f"{path}: {named} number the labels differently; expected one such column. "
            "Keep the one that holds the numbers of the image."
        )
    return next(iter(counted or places), None)


def _cells(line: str) -> list[str]:
    delimiter = sniff_delimiter(line)
    cells = line.split(delimiter) if delimiter else line.split()
    return [cell.strip().strip('"') for cell in cells]


def _texts(cells: Sequence[str]) -> list[str]:
    """Return the cells that are names; the others are colours."""
    return [cell for cell in cells if cell and not cell.lstrip("-").isdecimal()]


def _number(cell: str, names: Sequence[str], path: str | Path) -> int:
    if not cell.isdecimal() or not names:
        raise FileFormatError(
            f"{path}: expected a label's number and its name in every line, got "
            f"{' '.join([cell, *names])!r:.60}."
        )
    return int(cell)


def _best(names: Sequence[str], atlas: Atlas) -> str:
    known = [name for name in names if atlas.find(name) is not None]
    return known[-1] if known else names[-1]


def known_labels(present: Sequence[int], atlas: Atlas) -> tuple[dict[int, str], str]:
    """Return the names of an image's labels where they are known without a table.

    Parameters
    ----------
    present : sequence of int
        Labels in the image, 0 left out, sorted.
    atlas : Atlas
        Names the regions; its `freesurfer_id` are their labels.

    Returns
    -------
    names : dict of int to str
        Empty where the labels are not known.
    note : str
        Says what they were taken for.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> names, note = known_labels(range(1, 165), load_atlas("destrieux160"))
    >>> names[76], note
    ('Left-Thalamus', "labels read in the order of MRtrix's fs_a2009s.txt (164 nodes)")
    """
    ids = atlas.regions["freesurfer_id"].tolist()
    own = {n: name for n, name in zip(ids, atlas.names, strict=True) if n > 0}
    names = {n: own.get(n) or name_beside(n) for n in present}
    n_regions = sum(n in own for n in present)
    if all(names.values()) and n_regions >= _ENOUGH * len(atlas):
        known = {n: str(name) for n, name in names.items()}
        return known, "labels read as FreeSurfer's numbers"
    layout = known_layouts(atlas).get(len(present))
    if (
        layout is not None
        and layout.names[0] != "Unknown"
        and list(present) == list(range(1, len(layout.names) + 1))
    ):
        ordered = dict(enumerate(layout.names, start=1))
        return ordered, f"labels {layout.note}"
    return {}, ""
