from dataclasses import replace

import pytest

from brainlsap.report.privacy import withholder


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("anna003 has no connectome", "[name withheld] has no connectome"),
        ("sub-anna003_ses-M012: odd", "sub-[name withheld]_[name withheld]: odd"),
        ("visit ses-M012", "visit [name withheld]"),
        ("ses-0 and 0 others", "[name withheld] and 0 others"),
        ("scanned 2011-05-06, 20110506", "scanned [day withheld], [day withheld]"),
        ("2011/05/06 at 2011-05-96", "[day withheld] at 2011-05-96"),
        ("sha256 ab20110506cd", "sha256 ab20110506cd"),
        ("1201105060 vertices, 20 regions", "1201105060 vertices, 20 regions"),
    ],
)
def test_people_sessions_and_days_are_withheld(evaluation, text, shown):
    table = evaluation.cohort.table
    session = ["ses-M012"] + ["0"] * (len(table) - 1)
    cohort = replace(evaluation.cohort, table=table.assign(session=session))
    assert withholder(replace(evaluation, cohort=cohort))(text) == shown
