"""The quality of a cohort as one page: tables, flagged scans, pictures."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from brainlsap._files import write_text
from brainlsap.data import Cohort, quality_table, region_quality_table
from brainlsap.data.measures import get_measure
from brainlsap.data.spreadsheets import guarded_text
from brainlsap.report.illustrations import Picture
from brainlsap.report.quality_figures import (
    plot_connectomes,
    plot_measures,
    plot_region_values,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUALITY_PAGE = "quality.html"
# Connectomes beside the median; the farthest from the others come first.
MOST_THUMBNAILS = 23
_DPI = 110


def write_quality_page(
    cohort: Cohort, out: str | Path, *, with_identifiers: bool = False
) -> Path:
    """Write what is unusual about every scan and region, with pictures, as one page.

    The page needs no other file and no network. Unless they are asked for, the names
    of people and scans are withheld: scans go by codes in the order of the cohort.

    Parameters
    ----------
    cohort : Cohort
        As it was loaded.
    out : str or Path
        The page's file (`.html`), or a folder, in which `quality.html` and the tables
        `quality_scans.tsv` and `quality_regions.tsv` are written. What is there by
        these names is replaced.
    with_identifiers : bool
        Whether scans go by their names.

    Returns
    -------
    Path
        The page.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap.data import make_cohort
    >>> cohort = make_cohort(8, atlas="desikan82")
    >>> with tempfile.TemporaryDirectory() as place:
    ...     page = write_quality_page(cohort, place)
    ...     sorted(one.name for one in Path(place).iterdir())
    ['quality.html', 'quality_regions.tsv', 'quality_scans.tsv']
    """
    table = quality_table(cohort)
    codes = _codes(cohort, with_identifiers)
    withhold = _withholder(cohort, codes, with_identifiers)
    shown = _shown(table, codes)
    regions = region_quality_table(cohort)
    page = _render(cohort, shown, regions, withhold, with_identifiers)
    out = Path(out)
    if out.suffix.lower() == ".html":
        return write_text(out, page)
    for name, frame in (("scans", shown), ("regions", regions.reset_index())):
        write_text(out / f"quality_{name}.tsv", guarded_text(frame))
    return write_text(out / QUALITY_PAGE, page)


def _codes(cohort: Cohort, with_identifiers: bool) -> dict[str, str]:
    scans = cohort.table["scan"].tolist()
    if with_identifiers:
        return {scan: scan for scan in scans}
    width = max(4, len(str(len(scans))))
    return {scan: f"S{i:0{width}d}" for i, scan in enumerate(scans, start=1)}


def _withholder(
    cohort: Cohort, codes: dict[str, str], with_identifiers: bool
) -> Callable[[str], str]:
    """Return a function that takes the names of people out of text."""
    if with_identifiers:
        return lambda text: text
    names = {str(name) for name in (*cohort.table["participant"], *codes)}
    names |= {name.removeprefix("sub-") for name in names}
    listed = "|".join(
        re.escape(name) for name in sorted(names - {""}, key=len, reverse=True)
    )
    expression = re.compile(rf"(?<![0-9A-Za-z])(?:{listed})(?![0-9A-Za-z])")
    return lambda text: expression.sub(
        lambda found: codes.get(found[0], "[name withheld]"), text
    )


def _shown(table: pd.DataFrame, codes: dict[str, str]) -> pd.DataFrame:
    """Return the table under codes, twins and flags too."""
    shown = table.reset_index()
    flags = shown["flags"].tolist()
    for name in [name for name in shown if str(name).endswith("_twin")]:
        for row, twin in enumerate(shown[name]):
            if twin:
                said = f"identical to {twin}"
                flags[row] = flags[row].replace(said, f"identical to {codes[twin]}")
        shown[name] = [codes.get(twin, "") for twin in shown[name]]
    shown["flags"] = flags
    shown["scan"] = [codes[scan] for scan in shown["scan"]]
    return shown


def _render(
    cohort: Cohort,
    shown: pd.DataFrame,
    regions: pd.DataFrame,
    withhold: Callable[[str], str],
    with_identifiers: bool,
) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("brainlsap.report"),
        # names, labels and notes come out of users' files: all is text, no markup
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    flagged = shown[shown["flags"] != ""]
    unusual = regions[
        (regions.drop(columns="isolated") > 0).any(axis=1) | (regions["isolated"] > 0)
    ]
    return environment.get_template("quality.html.j2").render(
        title=f"Quality of {cohort.n_scans} scans",
        people=cohort.table["participant"].nunique(),
        cohort=cohort,
        flagged=flagged[["scan", "flags"]],
        reasons=_reasons(flagged["flags"]),
        scans=_text(shown.drop(columns="flags")),
        regions=_text(unusual.reset_index()),
        pictures=_pictures(cohort, shown),
        notes=[withhold(note) for note in cohort.notes],
        named=with_identifiers,
    )


def _reasons(flags: pd.Series) -> pd.DataFrame:
    """Count the scans of every reason, numbers and other scans left aside."""
    plain = [
        re.sub(
            r"identical to .*", "identical to another scan", re.sub(r"\d+ ", "", one)
        )
        for text in flags
        for one in text.split("; ")
    ]
    counts = pd.Series(plain, dtype=str).value_counts()
    return pd.DataFrame({"reason": counts.index, "scans": counts.to_numpy()})


def _text(frame: pd.DataFrame) -> pd.DataFrame:
    """Return numbers with the digits that matter, heads without underscores."""
    made = frame.copy().astype(object)
    for column in frame:
        if pd.api.types.is_float_dtype(frame[column]):
            made[column] = [
                "" if pd.isna(value) else f"{value:.4g}" for value in frame[column]
            ]
        if pd.api.types.is_bool_dtype(frame[column]):
            made[column] = ["yes" if value else "" for value in frame[column]]
    return made.rename(columns=lambda name: str(name).replace("_", " "))


def _pictures(cohort: Cohort, shown: pd.DataFrame) -> list[Picture]:
    marked = (shown["flags"] != "").to_numpy()
    codes = shown["scan"].tolist()
    pictures = [_measures_picture(cohort, shown, marked, codes)]
    if not cohort.shares_connectome:
        pictures.append(_connectomes_picture(cohort, shown, marked, codes))
    sides = [str(side) for side in cohort.atlas.regions["hemisphere"]]
    for place, name in enumerate(cohort.feature_names):
        values = cohort.features[..., place]
        if np.isnan(values).all():
            continue
        figure = plot_region_values(
            values,
            cohort.atlas.short_names,
            sides,
            label=name,
            plausible=get_measure(name).plausible,
            marked=marked,
        )
        caption = (
            f"{name} in every region: median, the band of nine scans of ten, and dots "
            "for values more than one and a half bands beyond it (orange: of flagged "
            "scans). Dashed: beyond this nothing is plausible."
        )
        pictures.append(_picture(f"{name}_regions", caption, figure))
    return pictures


def _measures_picture(
    cohort: Cohort, shown: pd.DataFrame, marked: np.ndarray, codes: list[str]
) -> Picture:
    names = ["streamlines", "density", "diagonal", "isolated", "connectome_deviation"]
    names += ["mirrored"]
    for feature in cohort.feature_names:
        names += [f"{feature}_{end}" for end in ("deviation", "mirrored", "missing")]
    values = {
        name.replace("_", " "): shown[name].to_numpy(dtype=float)
        for name in names
        if name in shown and shown[name].nunique() > 1
    }
    if not values:
        values = {"density": shown["density"].to_numpy(dtype=float)}
    caption = "How scans differ. Every tick is a scan; triangles are flagged ones."
    return _picture("measures", caption, plot_measures(values, marked, codes))


def _connectomes_picture(
    cohort: Cohort, shown: pd.DataFrame, marked: np.ndarray, codes: list[str]
) -> Picture:
    far = shown["connectome_deviation"].to_numpy(dtype=float)
    order = np.lexsort((-far, ~marked))
    n_shown = min(MOST_THUMBNAILS, max(int(marked.sum()), 5), cohort.n_scans)
    rows = [int(row) for row in order[:n_shown]]
    figure = plot_connectomes(
        cohort, rows, [codes[row] for row in rows], [bool(marked[row]) for row in rows]
    )
    n_flagged = int(marked[rows].sum())
    caption = (
        f"Connectomes: the cohort's median, {n_flagged} flagged scans"
        f"{f' of {int(marked.sum())}' if marked.sum() > n_flagged else ''} and "
        f"{len(rows) - n_flagged} others, the farthest from the rest first (orange: "
        "flagged)."
    )
    return _picture("connectomes", caption, figure)


def _picture(name: str, caption: str, figure: "Figure") -> Picture:
    from io import BytesIO

    kept = BytesIO()
    figure.savefig(kept, format="png", dpi=_DPI, metadata={"Software": None})
    return Picture(name, caption, caption, kept.getvalue())
