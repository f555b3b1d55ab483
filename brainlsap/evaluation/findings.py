"""What an audit finds: the checks with their severities, and the frozen record."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from brainlsap._arrays import check_choice

SEVERITIES = ("error", "warning", "note")
"""From grave to slight: a leak; what may explain the score; what one should know."""


class Check(NamedTuple):
    """What a check looks for, and how grave it is."""

    severity: str
    looks_for: str
    advice: str


CHECKS = {
    "person in two folds": Check(
        "error",
        "a person, or a scan, in training and test scans of one fold",
        "Divide people, not scans: make_splits does.",
    ),
    "identical connectomes": Check(
        "error",
        "one connectome in training and test scans, also under another id",
        "Find out whose they are; keep one, or give both the same participant.",
    ),
    "identical features": Check(
        "error",
        "one row of features in training and test scans, also under another id",
        "Find out whose they are; keep one, or give both the same participant.",
    ),
    "nearly identical connectomes": Check(
        "error",
        "connectomes that differ by less than a tenth of what people differ by",
        "Look at the pairs: probably one person, or one scan processed twice.",
    ),
    "nearly identical features": Check(
        "error",
        "features that differ by less than a tenth of what people differ by",
        "Look at the pairs: probably one person, or one scan processed twice.",
    ),
    "group in two folds": Check(
        "error",
        "a family, site or other group that was to stay whole, in two folds",
        "Divide these groups whole: make_splits(..., groups=whole_groups(...)).",
    ),
    "family in two folds": Check(
        "warning",
        "a column of families, twins or households whose groups are in two folds",
        "Keep them whole, or say why relatives do not matter here.",
    ),
    "label in the features": Check(
        "error",
        "a feature or an edge of which the classes explain 99% of the variance",
        "Leave it out: it is made from the label, or the label from it.",
    ),
    "clinical score as feature": Check(
        "warning",
        "a feature that has the name of a score by which the label is given",
        "Leave it out, or show that the label does not rest on it.",
    ),
    "fitted outside the folds": Check(
        "error",
        "scaling, harmonising or regressing out that was fitted on all scans",
        "Give the raw values, and put the transform into the model's pipeline.",
    ),
    "fitted before": Check(
        "warning",
        "a part of the model that was already fitted, or notes on harmonised data",
        "Make sure that it never transformed the cohort; give it unfitted.",
    ),
    "tuned on the test fold": Check(
        "error",
        "a search inside the model that is handed the rows of the whole cohort",
        "Give the search a splitter that draws its own folds, such as GroupKFold.",
    ),
    "tuned on shared people": Check(
        "warning",
        "a search whose inner folds may share people",
        "Use GroupKFold or StratifiedGroupKFold inside.",
    ),
    "many variants": Check(
        "warning",
        "six or more variants of one model on the same test folds",
        "Choose inside the training folds; the best of many is not an honest score.",
    ),
    "label from one column": Check(
        "warning",
        "the label predictable from site, scanner, phase, age or sex alone",
        "Report this score beside the model's; match, or hold out whole sites.",
    ),
    "missing values tell the label": Check(
        "warning",
        "the label predictable from what was not measured",
        "Find out why; leave out what is missing by class.",
    ),
    "folds differ": Check(
        "warning",
        "class, age or sex distributed otherwise in a test fold than in training",
        "Draw stratified folds, or report the scores by fold.",
    ),
    "column that is the label": Check(
        "note",
        "a covariate that is a function of the label; models do not see covariates",
        "Never give it to a model.",
    ),
}
"""Every check of the audit, by name, with the severity of what it finds."""


@dataclass(frozen=True)
class Finding:
    """One thing that an audit found.

    Parameters
    ----------
    check : str
        One of :data:`CHECKS`.
    evidence : str
        What was found, with numbers; names no person.
    severity : {"error", "warning", "note"}, optional
        By default that of the check.

    Examples
    --------
    >>> Finding("folds differ", "age, fold 2").severity
    'warning'
    """

    check: str
    evidence: str
    severity: str = ""

    def __post_init__(self) -> None:
        check_choice("check", self.check, CHECKS)
        if not self.severity:
            object.__setattr__(self, "severity", CHECKS[self.check].severity)
        check_choice("severity", self.severity, SEVERITIES)

    @property
    def advice(self) -> str:
        """What to do about it; nothing for a note that only informs."""
        check = CHECKS[self.check]
        informs = self.severity == "note" != check.severity
        return "Nothing." if informs else check.advice


@dataclass(frozen=True, eq=False)
class Audit:
    """Everything that an audit found, and what it could not look at.

    Parameters
    ----------
    findings : sequence of Finding
        Kept gravest first.
    pairs : DataFrame
        Scans that are too alike: check, scan, other_scan. It names people's scans
        and stays private.
    skipped : dict of str to str
        Checks that could not be made, and why.

    Examples
    --------
    >>> audit = Audit([Finding("folds differ", "age, fold 2")])
    >>> audit.is_clean, audit.sentence()
    (True, 'The leakage audit found no error and 1 warning.')
    """

    findings: Sequence[Finding]
    pairs: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=["check", "scan", "other_scan"])
    )
    skipped: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ordered = sorted(self.findings, key=lambda one: SEVERITIES.index(one.severity))
        object.__setattr__(self, "findings", tuple(ordered))

    def of(self, severity: str) -> tuple[Finding, ...]:
        """Return the findings of one severity.

        Parameters
        ----------
        severity : {"error", "warning", "note"}
            Which.

        Returns
        -------
        tuple of Finding
        """
        check_choice("severity", severity, SEVERITIES)
        return tuple(one for one in self.findings if one.severity == severity)

    @property
    def is_clean(self) -> bool:
        """Whether there is no error; warnings and notes there may be."""
        return not self.of("error")

    def checks_of(self, severity: str) -> tuple[str, ...]:
        """Return the names of the checks that found something of one severity."""
        return tuple(dict.fromkeys(one.check for one in self.of(severity)))

    def passed(self) -> tuple[str, ...]:
        """Return the checks that were made and found neither error nor warning."""
        found = {one.check for one in self.findings if one.severity != "note"}
        return tuple(one for one in CHECKS if one not in found | set(self.skipped))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per finding: severity, check, evidence, what to do."""
        rows = [
            (one.severity, one.check, one.evidence, one.advice) for one in self.findings
        ]
        columns = ["severity", "check", "evidence", "what to do"]
        return pd.DataFrame(rows, columns=columns)

    def sentence(self) -> str:
        """Return how much was found, in one sentence."""
        parts = []
        for severity in ("error", "warning"):
            number = len(self.of(severity))
            plural = "" if number == 1 else "s"
            parts.append(f"{number or 'no'} {severity}{plural if number else ''}")
        return f"The leakage audit found {parts[0]} and {parts[1]}."


def severity_table() -> pd.DataFrame:
    """Return every check of the audit with its severity, as the documentation has it.

    Returns
    -------
    DataFrame
        Columns check, severity, looks for, what to do.

    Examples
    --------
    >>> severity_table().loc[0, ["check", "severity"]].tolist()
    ['person in two folds', 'error']
    """
    rows = [(name, *check) for name, check in CHECKS.items()]
    columns = ["check", "severity", "looks for", "what to do"]
    return pd.DataFrame(rows, columns=columns)
