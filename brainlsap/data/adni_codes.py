"""What ADNI's tables mean by their codes: visits, diagnoses, arms, phases, scans."""

import re
from collections.abc import Mapping
from datetime import date, datetime

STAGES = ("CN", "SMC", "EMCI", "LMCI", "AD")
DIAGNOSES = ("CN", "MCI", "AD")

_DIAGNOSIS_WORDS = {
    "cn": "CN",
    "nl": "CN",
    "normal": "CN",
    "smc": "CN",
    "mci": "MCI",
    "emci": "MCI",
    "lmci": "MCI",
    "dementia": "AD",
    "ad": "AD",
}
# DXCHANGE: the state after the change; DXCURREN and DIAGNOSIS: the state.
_DXCHANGE = {
    **dict.fromkeys((1, 7, 9), "CN"),
    **dict.fromkeys((2, 4, 8), "MCI"),
    **dict.fromkeys((3, 5, 6), "AD"),
}
_STATE = {1: "CN", 2: "MCI", 3: "AD"}
CODED_DIAGNOSES = {"diagnosis": _STATE, "dxcurren": _STATE, "dxchange": _DXCHANGE}
# ARM is coded alike in ADNI1, GO and 2: group by scanner, then EMCI and SMC.
_ARMS = {1: "CN", 2: "LMCI", 3: "AD", 4: "CN", 5: "LMCI", 6: "AD", 7: "CN", 8: "LMCI"}
ARMS = {**_ARMS, 9: "AD", 10: "EMCI", 11: "SMC"}
PHASES = ("ADNI1", "ADNIGO", "ADNI2", "ADNI3", "ADNI4")
# Phases that tell SMC, EMCI and LMCI apart.
STAGED_PHASES = ("ADNI1", "ADNIGO", "ADNI2")
BASELINE = frozenset(("bl", "sc", "scmri", "f", "m0", "m00", "m000", "4_bl", "4_sc"))

_PTID = re.compile(r"\d{3}_S_\d{4,5}")
# ADNI writes -1 for "not done" and -4 for "missing at transfer".
_ABSENT = frozenset(("-1", "-4", "-1.0", "-4.0"))

MODALITIES: dict[str, tuple[str, ...]] = {
    "dwi": ("dti", "dwi", "dmri", "diffusion"),
    "tau": ("av1451", "av-1451", "flortaucipir", "mk6240", "mk-6240", "pi2620", "tau"),
    "amyloid": ("av45", "florbeta", "fbb", "fbp", "pib", "nav4694", "amyloid"),
    "fdg": ("fdg",),
    "anat": ("mprage", "mp-rage", "mp_rage", "spgr", "t1w", "t1_"),
}
"""Words in a description by which a modality is known, in the order of the search."""


def is_ptid(text: str) -> bool:
    """Tell whether a text is a participant's name in ADNI, such as `002_S_0295`."""
    return _PTID.fullmatch(text) is not None


def cell(value: object) -> str | None:
    """Return a cell without ADNI's codes for missing values."""
    text = "" if value is None else str(value).strip()
    return None if not text or text in _ABSENT else text


def rid_of(value: object) -> str | None:
    """Return a RID as text, the same whether a table writes 4010, 04010 or 4010.0.

    Parameters
    ----------
    value : object
        Of a table.

    Returns
    -------
    str or None

    Examples
    --------
    >>> rid_of("4010.0"), rid_of("0295"), rid_of("-4")
    ('4010', '295', None)
    """
    text = cell(value)
    found = re.fullmatch(r"0*(\d+)(?:\.0*)?", text or "")
    return found[1] if found else text


def read_day(value: object) -> date | None:
    """Return a day written as 2006-04-18, 4/18/2006 or 2006-04-18_08_20_30.0.

    Raises
    ------
    ValueError
        Where it is none of these.
    """
    text = cell(value)
    if text is None:
        return None
    if re.match(r"\d{4}-\d{2}-\d{2}", text):
        return date.fromisoformat(text[:10])
    return datetime.strptime(text.split()[0], "%m/%d/%Y").date()


def diagnosis_of(value: object) -> str | None:
    """Return CN, MCI or AD of a diagnosis in words; of a change, what it led to."""
    text = cell(value)
    if text is None:
        return None
    return _DIAGNOSIS_WORDS.get(text.lower().split(" to ")[-1].strip())


def stage_of(value: object) -> str | None:
    """Return CN, SMC, EMCI, LMCI or AD; None for a bare MCI."""
    text = (cell(value) or "").upper()
    text = {"NL": "CN", "DEMENTIA": "AD"}.get(text, text)
    return text if text in STAGES else None


def phase_of(value: object) -> str | None:
    """Return a phase in one spelling: `ADNI GO`, `adnigo` and `ADNIGO` are one."""
    text = (cell(value) or "").upper().replace(" ", "").replace("-", "")
    return text if text in PHASES else (cell(value) if text else None)


def months_of(viscode: str | None) -> int | None:
    """Return the month of a visit code; None where it does not say.

    Examples
    --------
    >>> [months_of(code) for code in ("bl", "sc", "m06", "m120", "y2", "v11")]
    [0, 0, 6, 120, None, None]
    """
    text = (viscode or "").strip().lower()
    if text in BASELINE:
        return 0
    found = re.fullmatch(r"m(\d{1,3})", text)
    return int(found[1]) if found else None


def modality_of(
    description: str, words: Mapping[str, tuple[str, ...]] | None = None
) -> str | None:
    """Return the modality that a description of a scan names; None where none.

    Examples
    --------
    >>> modality_of("Axial_DTI"), modality_of("Sagittal_3D_FLAIR")
    ('dwi', None)
    """
    text = description.lower().replace(" ", "_")
    for modality, known in (MODALITIES if words is None else words).items():
        if any(word in text for word in known):
            return modality
    return None
