"""The full log of a run, for its owner: it names scans and people."""

from brainlsap.report.stored import StoredResults


def log_text(results: StoredResults) -> str:
    """Return notes, warnings, seconds and findings of a run as text.

    Parameters
    ----------
    results : StoredResults
        What the report is made of.

    Returns
    -------
    str
        Ends with a line break; for `private/`, since nothing is withheld.
    """
    evaluation = results.evaluation
    cohort, audit = evaluation.cohort, evaluation.audit
    lines = [f"cohort: {cohort.n_scans} scans of {cohort.n_participants} people"]
    lines += [f"note: {one}" for one in (*cohort.notes, *results.cohort_notes)]
    for finding in () if audit is None else audit.findings:
        lines.append(f"audit {finding.severity}: {finding.check}: {finding.evidence}")
    for name, result in evaluation.results.items():
        for fold in result.folds:
            seconds = fold.details.get("seconds_fit")
            took = f", {seconds:.2f} s" if isinstance(seconds, float) else ""
            lines.append(
                f"{name}, fold {fold.fold + 1}: {len(fold.train)} training and "
                f"{len(fold.test)} test scans{took}"
            )
            lines += [f"  warning: {one}" for one in fold.details.get("warnings", ())]
    if results.quality is not None:
        flagged = results.quality[results.quality["flags"].fillna("") != ""]
        for row in flagged.to_dict("records"):
            lines.append(f"quality: {row['scan']}: {row['flags']}")
    return "\n".join(lines) + "\n"
