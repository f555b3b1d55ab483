"""Labels of ADNI by visit: stage at baseline, converters, what later phases lose."""

from itertools import pairwise

import pandas as pd

from brainlsap.data.adni_codes import DIAGNOSES, PHASES, STAGED_PHASES, STAGES
from brainlsap.data.adni_pairing import session_of, subject_of


def stages_by_visit(visits: pd.DataFrame, carry: bool) -> pd.DataFrame:
    """Return `stage` of every visit, and whether it is carried from baseline.

    SMC, EMCI and LMCI are given once, when a person comes in. They stand at month 0
    only, or, if carried, at every visit, marked.

    Parameters
    ----------
    visits : DataFrame
        From :func:`.read_adni_tables`.
    carry : bool
        Whether the baseline label stands at later visits too.

    Returns
    -------
    DataFrame
        `stage` and `stage_carried` ("no", "yes", or missing without a stage), in the
        order of `visits`.
    """
    first = visits["month"] == 0
    stage = visits["stage"].where(first | carry)
    carried = pd.Series("no", index=visits.index).where(first, "yes")
    return pd.DataFrame({"stage": stage, "stage_carried": carried.where(stage.notna())})


def converters(visits: pd.DataFrame) -> pd.DataFrame:
    """List every change of a person's diagnosis from one visit to the next known.

    Parameters
    ----------
    visits : DataFrame
        From :func:`.read_adni_tables`, in time.

    Returns
    -------
    DataFrame
        participant_id, ptid, from, to, last_session, session, date, kind
        (`conversion`, or `reversion` to a milder diagnosis).
    """
    rows = []
    known = visits[visits["diagnosis"].notna() & visits["ptid"].notna()]
    for ptid, seen in known.groupby("ptid", sort=True):
        records = seen.sort_values("month").to_dict("records")
        for before, after in pairwise(records):
            old, new = before["diagnosis"], after["diagnosis"]
            if old != new:
                worse = DIAGNOSES.index(new) > DIAGNOSES.index(old)
                rows.append(
                    {
                        "participant_id": subject_of(str(ptid)),
                        "ptid": ptid,
                        "from": old,
                        "to": new,
                        "last_session": session_of(before["month"]),
                        "session": session_of(after["month"]),
                        "date": after["date"],
                        "kind": "conversion" if worse else "reversion",
                    }
                )
    columns = ["participant_id", "ptid", "from", "to", "last_session", "session"]
    return pd.DataFrame(rows, columns=[*columns, "date", "kind"])


def labels_by_phase(visits: pd.DataFrame) -> pd.DataFrame:
    """Count people by the phase in which they came in, site and baseline label.

    Parameters
    ----------
    visits : DataFrame
        From :func:`.read_adni_tables`.

    Returns
    -------
    DataFrame
        phase, site, and a column for every stage and for `none`.
    """
    people = visits.drop_duplicates("rid")
    table = pd.crosstab(
        [people["first_phase"].fillna("n/a"), people["site"].fillna("n/a")],
        people["stage"].fillna("none"),
    )
    table = table.reindex(columns=[*STAGES, "none"], fill_value=0)
    table.index.names = ["phase", "site"]
    table.columns.name = None
    return table.reset_index()


def lost_labels(visits: pd.DataFrame) -> list[str]:
    """Say whose SMC, EMCI or LMCI is not known, and since which phase.

    Parameters
    ----------
    visits : DataFrame
        From :func:`.read_adni_tables`.

    Returns
    -------
    list of str
    """
    people = visits.sort_values("month").drop_duplicates("rid")
    notes = []
    for phase in PHASES:
        came = people[people["first_phase"] == phase]
        bare = came[(came["diagnosis"] == "MCI") & came["stage"].isna()]
        if len(bare):
            notes.append(
                f"{len(bare)} people with MCI who came in with {phase} have no EMCI or "
                "LMCI: their stage is n/a"
            )
        healthy = came[came["stage"] == "CN"]
        if phase not in STAGED_PHASES and len(healthy):
            notes.append(
                f"{len(healthy)} people with stage CN came in with {phase}, which "
                "may not tell SMC apart from CN"
            )
    later = visits[~visits["phase"].isin(STAGED_PHASES) & visits["phase"].notna()]
    staged = later[later["stage"].isin(("SMC", "EMCI", "LMCI")) & (later["month"] > 0)]
    if len(staged):
        notes.append(
            f"{staged['rid'].nunique()} people with SMC, EMCI or LMCI at baseline were "
            f"seen again in later phases ({len(staged)} visits), where only CN, MCI "
            "and AD are given"
        )
    return notes
