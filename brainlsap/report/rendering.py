"""The page of a report, as HTML."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap.report.audit_tables import audit_words
from brainlsap.report.contents import Contents
from brainlsap.report.record import approximation_errors
from brainlsap.report.words import promises

TEMPLATES = Path(__file__).parent / "templates"
REGION_COLUMNS = (
    "rank",
    "region",
    "hemisphere",
    "lobe",
    "heat scale",
    "folds in top",
    "95% of fits",
    "ranks of fits",
    "remark",
)


def render_page(contents: Contents, files: Sequence[str]) -> str:
    """Return the HTML of a report.

    Parameters
    ----------
    contents : Contents
        All that it shows.
    files : sequence of str
        Paths inside the folder that the page lists.

    Returns
    -------
    str
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    evaluation = contents.evaluation
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        # Labels and notes come out of users' files: everything is text, no markup.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        contents=contents,
        evaluation=evaluation,
        cohort=evaluation.cohort,
        promises=promises(evaluation),
        about_audit=audit_words(evaluation),
        **_region_columns(contents),
        pictures=[one for group in contents.pictures.values() for one in group],
        errors=approximation_errors(evaluation.main),
        settings=json.dumps(_settled(contents.record, evaluation.main.name), indent=1),
        files=files,
    )


def _region_columns(contents: Contents) -> dict[str, list[str]]:
    """Divide the table of regions, too wide for a page, into two."""
    table = contents.tables.get("regions", pd.DataFrame())
    first = [name for name in table if name in REGION_COLUMNS]
    rest = [name for name in table if name not in REGION_COLUMNS]
    return {"region_columns": first, "stability_columns": ["rank", "region", *rest]}


def _settled(record: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a model's settings in the first fold, as the fit settled them."""
    first = record["models"][name]["folds"][0]
    settled = first.get("fit_report", {}).get("settings", {})
    return {**first["settings"], **settled}
