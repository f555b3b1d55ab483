"""Names, sessions and days are taken out of whatever may be shared."""

import re
from collections.abc import Callable

from brainlsap.evaluation import Evaluation
from brainlsap.report.folder import SHORTEST_NAME, name_filter

_DAY = re.compile(
    r"(?<![0-9A-Za-z])(?:19|20)\d{2}(?P<mark>[-/.]?)(?:0[1-9]|1[0-2])(?P=mark)"
    r"(?:0[1-9]|[12]\d|3[01])(?![0-9A-Za-z])"
)


def withholder(evaluation: Evaluation) -> Callable[[str], str]:
    """Return a function that takes people, scans, sessions and days out of text.

    Parameters
    ----------
    evaluation : Evaluation
        Its table knows the names.

    Returns
    -------
    function of str
        Puts "[name withheld]" and "[day withheld]" in their place. Sessions such as
        "1", which stand in any text by chance, are only taken out behind "ses-".
    """
    names = name_filter(evaluation)
    sessions = {str(one) for one in evaluation.cohort.table.get("session", ())} - {""}
    sessions |= {one.removeprefix("ses-") for one in sessions}
    patterns = [
        re.escape(one) if len(one) >= SHORTEST_NAME else f"ses-{re.escape(one)}"
        for one in sorted(sessions - {""}, key=lambda one: (-len(one), one))
    ]
    visits = re.compile(
        rf"(?<![0-9A-Za-z])(?:{'|'.join(patterns) or '(?!)'})(?![0-9A-Za-z])",
        re.IGNORECASE,
    )

    def withhold(text: str) -> str:
        return _DAY.sub("[day withheld]", visits.sub("[name withheld]", names(text)))

    return withhold
