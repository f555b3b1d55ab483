"""The log of a run: what a report of a fault needs, and nothing that names anybody."""

import json
import os
import re
import traceback
from collections import Counter
from pathlib import Path

from brainlsap.evaluation import ModelResult
from brainlsap.report.page_tables import quality_text
from brainlsap.report.privacy import withholder
from brainlsap.report.record import installed_versions
from brainlsap.report.stored import StoredResults

# A path of the system, also with spaces in quotes; not "m/s", "1/2" or "ses-1/dwi".
_PATH = re.compile(
    r"""(?<=['"])(?:~|[A-Za-z]:)?[/\\][^'"]+(?=['"])"""
    r"""|(?<![\w.~/\\\]-])(?:~|[A-Za-z]:)?[/\\][\w.~-][^\s'",:;()<>\]]*"""
)


def log_text(results: StoredResults, codes: dict[str, str]) -> str:
    """Return versions, settings, notes, findings, warnings and seconds as text.

    Parameters
    ----------
    results : StoredResults
        What the report is made of.
    codes : dict of str to str
        From scan to code; codes stand for scans.

    Returns
    -------
    str
        Ends with a line break. Names, sessions, days and paths are withheld; each
        warning stands once, with the number of folds that gave it.
    """
    evaluation = results.evaluation
    cohort, audit = evaluation.cohort, evaluation.audit
    names = withholder(evaluation)

    def clean(text: str) -> str:
        return names(_PATH.sub("[path withheld]", text))

    lines = _machine_lines()
    lines.append(f"cohort: {cohort.n_scans} scans of {cohort.n_participants} people")
    lines.append(
        f"regions: {int(cohort.measured.sum())} of {len(cohort.region_names)} "
        f"measured, of {cohort.atlas_name}; {', '.join(cohort.feature_names)}"
    )
    lines.append(f"data: {cohort.data_hash}")
    lines += [f"note: {clean(one)}" for one in (*cohort.notes, *results.cohort_notes)]
    for finding in () if audit is None else audit.findings:
        told = f"{finding.check}: {finding.evidence}"
        lines.append(f"audit {finding.severity}: {clean(told)}")
    for name, value in evaluation.settings.items():
        lines.append(f"setting: {name}: {clean(json.dumps(value, default=str))}")
    for name, result in evaluation.results.items():
        lines += [clean(one) for one in _model_lines(name, result)]
    if results.quality is not None:
        for _, (scan, flags) in quality_text(results.quality, codes).iterrows():
            lines.append(f"quality: {scan}: {clean(flags)}")
    return "\n".join(lines) + "\n"


def fault_text(error: BaseException) -> str:
    """Return what a report of a fault needs where a run ended by it.

    Parameters
    ----------
    error : exception
        What ended the run.

    Returns
    -------
    str
        Versions, the kind of the error, and where it arose: modules, lines and
        functions. Its message is left out, since it may name people or places.
    """
    lines = [*_machine_lines(), f"fault: {type(error).__name__}"]
    for frame in traceback.extract_tb(error.__traceback__):
        # of a file of the user's own, only its name: folders may name people
        path = Path(frame.filename)
        known = {"brainlsap", "site-packages"}.intersection(path.parts)
        where = "/".join(path.parts[-2:]) if known else path.name
        lines.append(f"at: {where}, line {frame.lineno}, in {frame.name}")
    return "\n".join(lines) + "\n"


def _machine_lines() -> list[str]:
    lines = [f"version: {name} {one}" for name, one in installed_versions().items()]
    lines.append(f"machine: {os.cpu_count()} cores")
    known = ("LC_ALL", "LANG", "OMP_NUM_THREADS", "PYTHONHASHSEED")
    given = [name for name in known if name in os.environ]
    return lines + [f"variable: {name}={os.environ[name]}" for name in given]


def _model_lines(name: str, result: ModelResult) -> list[str]:
    told = json.dumps(result.folds[0].details.get("settings", {}), default=str)
    lines = [f"{name}: {told}"]
    for fold in result.folds:
        seconds = fold.details.get("seconds_fit")
        took = f", {seconds:.2f} s" if isinstance(seconds, float) else ""
        lines.append(
            f"{name}, fold {fold.fold + 1}: {len(fold.train)} training and "
            f"{len(fold.test)} test scans{took}"
        )
    warned = Counter(
        one for fold in result.folds for one in fold.details.get("warnings", ())
    )
    lines += [
        f"{name}, warning in {number} of {len(result.folds)} folds: {one}"
        for one, number in warned.items()
    ]
    return lines
