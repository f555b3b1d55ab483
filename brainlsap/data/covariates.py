"""What is known of covariates by their names, and what is wrong in them."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from brainlsap.data.tables import QUOTES, is_ditto_mark, letters_of
from brainlsap.findings import FAULT, Finding

KEY_COLUMNS = ("scan", "participant", "session", "label")

# Names of one thing, with or without `_id`; case, blanks, underscores do not count.
COVARIATES = {
    "age": ("age", "age_years", "age_at_scan", "age_bl", "alter"),
    "sex": ("sex", "gender", "ptgender", "geschlecht", "sexe"),
    "site": ("site", "center", "centre", "hospital", "cohort", "zentrum", "standort"),
    "scanner": ("scanner", "manufacturer", "vendor", "model", "field_strength"),
    "phase": ("phase", "protocol", "colprot", "origprot", "study"),
    "education": ("education", "education_years", "pteducat"),
    "family": ("family", "household", "twin", "pair", "mother", "father"),
    "head size": (
        *("etiv", "icv", "tiv", "intracranial_volume"),
        "estimated_total_intracranial_vol",
    ),
    "tracer": (
        *("tracer", "pet_tracer", "radiotracer", "ligand", "radioligand", "trc"),
        *("radiopharmaceutical", "amyloid_tracer", "tau_tracer", "fdg_tracer"),
    ),
    "processing": (
        *("pvc", "pvc_method", "partial_volume_correction", "reference_region"),
        *("ref_region", "suvr_reference", "reference", "reconstruction", "pipeline"),
        *("pipeline_version", "processing_version", "software_version", "version"),
        *("software", "freesurfer_version", "fs_version"),
    ),
    "motion": ("fd", "mean_fd", "fd_mean", "framewise_displacement", "head_motion"),
}
_KINDS = {one.replace("_", ""): kind for kind in COVARIATES for one in COVARIATES[kind]}
# Whose numbers are names: a line through the numbers of sites would mean nothing.
GROUPS = ("sex", "site", "scanner", "phase", "tracer", "processing")
# Kinds whose values may be on one scale each.
SCALES = ("tracer", "processing")

# Whether a column is categorical (its numbers are names of groups) or continuous, by
# its kind: the table that audit, regression, ComBat and confound scores share.
IS_CATEGORICAL = {
    **dict.fromkeys((*GROUPS, "family"), True),
    **dict.fromkeys(("age", "education", "head size", "motion"), False),
}
# The same by words of names that are of no kind; a quantity wins.
_QUANTITY_WORDS_TEXT = (
    "age education years year months weeks days duration interval onset delay date "
    "mmse moca cdr cdrsb cdrsum adas faq gds npi bdi phq gad hamd hdrs panss updrs "
    "edss iq ravlt avlt tmt score scores total sum count percent ratio rate index "
    "size bmi weight height pressure dose level volume thickness area icv tiv etiv "
    "motion fd dvars euler holes snr cnr tsnr efc fber fwhm"
)
_QUANTITY_WORDS = frozenset(_QUANTITY_WORDS_TEXT.split())
_QUANTITY_ENDS = ("score", "scores", "total", "years", "months", "volume", "count")
_GROUP_WORDS_TEXT = (
    "race ethnicity ptraccat ptethcat handedness hand group arm batch rater "
    "operator reader technician genotype apoe country language marital ptmarry lab "
    "laboratory cluster stratum ward region code codes id"
)
_GROUP_WORDS = frozenset(_GROUP_WORDS_TEXT.split())
# Further names of what scans were made with, where, and in which phase. Words of one
# name may stand in any order, beside fillers.
_ACQUISITION_NAMES = {
    "site": "institution institute clinic location facility study_site test_site",
    "scanner": "scanner_type scanner_model scanner_manufacturer manufacturers_model "
    "manufacturer_model field fieldstrength fldstreng magstrength b0 tesla coil "
    "head_coil sequence batch machine device device_serial station software_version "
    "software_versions mfr",
    "phase": "study_phase study_arm release",
}
_FILLERS_TEXT = (
    "id ids code codes coded no nr num number nummer name names label type serial "
    "mri mr mrt pet imaging image scan scanning acquisition acquired acq "
    "recruitment recruiting enrolment enrollment assessment participating data "
    "collection bl baseline screening magnetic t of at in the for"
)
_FILLERS = frozenset(_FILLERS_TEXT.split())
# Codes of a column that nothing is known of by its name: see `has_groups`.
_FEW_CODES, _FEW_NUMBERS, _SCANS_PER_FEW, _SCANS_PER_CODE = 10, 5, 3, 5
# Diagnoses in order of stage; those of one text are words for one stage.
_STAGES = (
    "nc,cn,hc,control,controls,normal,healthy,healthy control,healthy controls",
    *("smc,scd", "emci", "mci", "lmci", "ad,dementia"),
)
STAGES = {word: place for place, row in enumerate(_STAGES) for word in row.split(",")}
# Numbers that stand for what is missing, where they are far from all others.
CODES = (-4, -9, -99, -999, -9999, 99, 999, 9999, 99999)
# Ages in years have a median of 5 or more; months, weeks or deviations may be others.
_OLDEST, _YOUNG = 120, 5


def kind_of(column: object) -> str:
    """Return which of `COVARIATES` a column is by its name, else its letters."""
    letters = letters_of(str(column)).removesuffix("id")
    return _KINDS.get(letters, letters)


def _words_of(column: object) -> list[str]:
    """Return the words of a name: of `SiteID`, `site_id` or `Site 1` site and id."""
    parts = re.sub(r"([a-z])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3 \2\4", str(column))
    return re.findall(r"[^\W\d_]+", parts.lower())


def acquisition_kind(column: object) -> str:
    """Return the kind of a column by any name of where and how scans were made.

    As :func:`kind_of`, but `site_num`, `ImagingSite`, `Scanner Number`, `Batch` or
    `MagneticFieldStrength` are sites and scanners, too.
    """
    kind = kind_of(column)
    if kind in COVARIATES:
        return kind
    words = [word for word in _words_of(column) if word not in _FILLERS]
    letters = letters_of(str(column))
    stems = [letters.removesuffix(filler) for filler in ("", *_FILLERS)]
    for name in (*stems, "".join(words)):
        if name in _ACQUISITION_KINDS:
            return _ACQUISITION_KINDS[name]
    kinds = [_ACQUISITION_KINDS.get(word) for word in words]
    if kinds and None not in kinds:
        return str(kinds[0])
    return kind


_ACQUISITION_KINDS = {
    name: kind
    for kind in ("site", "scanner", "phase")
    for name in (
        *(letters_of(name) for name in COVARIATES[kind]),
        *(letters_of(name) for name in _ACQUISITION_NAMES[kind].split()),
    )
}


def has_groups(column: str, values: pd.Series) -> bool:
    """Return whether a covariate is categorical: whether its values are groups' names.

    The one place that decides it, for the audit, regression, ComBat and confound
    scores. In this order:

    1. Text is groups.
    2. Kinds that are known by name are in `IS_CATEGORICAL`: numbers of sex, site,
       scanner (field strength, batch ...), phase and family are names; age, education,
       head size and motion are quantities.
    3. Words of the name say a quantity (`MMSE_total`, `bmi`), else groups (`rater`,
       `apoe`, `cohort_code`).
    4. Otherwise values decide. At most two values are the same either way, and count as
       numbers. Whole numbers are codes where there are at most ten, each held by three
       scans on average; or more, each held by five scans, that count from 1 without
       gaps, or lie far apart. Of other numbers at most five values, each held by five
       scans, are codes. All else is a quantity.
    """
    known = values.dropna()
    numbers = pd.to_numeric(known, errors="coerce")
    if numbers.isna().any():
        return True
    kind = acquisition_kind(column)
    if kind in IS_CATEGORICAL:
        return IS_CATEGORICAL[kind]
    words = set(_words_of(column))
    ends_as_quantity = letters_of(str(column)).endswith(_QUANTITY_ENDS)
    if ends_as_quantity or words & _QUANTITY_WORDS:
        return False
    return bool(words & _GROUP_WORDS) or _are_codes(numbers.to_numpy(dtype=float))


def _are_codes(numbers: np.ndarray) -> bool:
    """Return whether numbers repeat as codes of groups do."""
    codes, n_scans = np.unique(numbers), len(numbers)
    n_codes = len(codes)
    if n_codes <= 2:
        return False
    if not np.array_equal(codes, np.round(codes)):
        return n_codes <= _FEW_NUMBERS and n_scans >= _SCANS_PER_CODE * n_codes
    if n_codes <= _FEW_CODES:
        return n_scans >= _SCANS_PER_FEW * n_codes
    n_possible = codes[-1] - codes[0] + 1
    counts_from_1 = codes[0] == 1 and n_possible <= 1.25 * n_codes
    is_sparse = n_possible >= 5 * n_codes
    return n_scans >= _SCANS_PER_CODE * n_codes and bool(counts_from_1 or is_sparse)


def group_names(values: pd.Series) -> pd.Series:
    """Return groups as text: 1, 1.0 and "1" are one; what is missing stays missing."""
    numbers = pd.to_numeric(values, errors="coerce")
    is_numbered = numbers.notna().sum() == values.notna().sum()
    text = numbers.map("{:.15g}".format) if is_numbered else values.astype(str)
    return text.astype(object).where(values.notna(), None)


def find_spellings(
    head: str, values: pd.Series, *, is_label: bool = False
) -> list[Finding]:
    """Say which words of a column of groups are one word, written in several ways."""
    words = pd.Series(values.dropna().astype(str).unique(), dtype=object)
    letters = words.str.lower().str.strip(QUOTES)  # of a stray quotation mark
    if is_label:  # of which A+ and A- are two
        letters = letters.map(lambda word: STAGES.get(word, word))
    else:
        letters = letters.str.replace(r"[\s_-]", "", regex=True)
        if kind_of(head) == "sex":
            letters = letters.str[:1]
            if words.str.isdecimal().nunique() > 1:  # codes beside words
                letters[:] = "any"
    same = words[letters.duplicated(keep=False)]
    told = f"{head} is written as {', '.join(sorted(same))}; write one word for each"
    more = ", or say which are classes by classes=" if is_label else ""
    return [Finding(told + more, FAULT)] if len(same) else []


def find_ditto_marks(table: pd.DataFrame, column: str, head: str) -> list[Finding]:
    """Say in which scans a column, called `head`, has a mark for the cell above."""
    names = table.get("scan", table.index.to_series())
    return [
        Finding(
            f"{head} is {cell}, a mark for the cell above; write the word itself",
            FAULT,
            scan=str(scan),
        )
        for scan, cell in zip(names, table[column], strict=True)
        if is_ditto_mark(cell)
    ]


def find_codes(table: pd.DataFrame, heads: Sequence[str]) -> list[Finding]:
    """Say which numbers stand for what is missing, such as 999 or -9, or are no age."""
    faults, table = list[Finding](), table.reset_index(drop=True)
    names = table.get("scan", table.index.to_series())
    for head in (one for one in heads if kind_of(one) not in GROUPS):
        numbers = pd.to_numeric(table[head], errors="coerce")
        known = numbers[~numbers.isin(CODES)]
        low, high, far = known.min(), known.max(), known.max() - known.min()
        is_wrong = numbers.isin(CODES) & ~numbers.between(low - far, high + far)
        if kind_of(head) == "age" and _YOUNG <= numbers.median() <= _OLDEST:
            is_wrong |= (numbers < 0) | (numbers > _OLDEST)
        wrong = numbers[is_wrong & numbers.notna()]
        rest = numbers[~is_wrong]
        faults += [
            Finding(
                f"{head} is {number:g}, others {rest.min():g} to {rest.max():g}; write "
                "n/a for what is not known",
                FAULT,
                scan=str(scan),
            )
            for scan, number in zip(names[wrong.index], wrong, strict=True)
        ]
    return faults


def find_faults(
    table: pd.DataFrame, label_name: str, *, has_order: bool = True
) -> list[Finding]:
    """Say what is wrong in the labels and covariates of a cohort.

    Parameters
    ----------
    table : DataFrame
        Of a cohort.
    label_name : str
        What the label is.
    has_order : bool
        Whether an order of classes was given or is known; words for one stage are then
        classes of their own.

    Returns
    -------
    list of Finding
        Words written in several ways, numbers that stand for what is missing, and sex
        that differs between the visits of a person.
    """
    faults = find_spellings(label_name, table["label"], is_label=True)
    faults = [] if has_order else faults
    faults += find_ditto_marks(table, "label", label_name)
    for head in (str(one) for one in table.columns if one not in KEY_COLUMNS):
        kind, values = kind_of(head), table[head]
        if kind in COVARIATES:
            faults += find_ditto_marks(table, head, head)
            faults += find_codes(table, [head])
            faults += find_spellings(head, values) if has_groups(head, values) else []
        if kind == "sex":
            sexes = values.groupby(table["participant"]).nunique()
            faults += [
                Finding(
                    f"{head} differs between visits; write one",
                    FAULT,
                    participant=str(person),
                )
                for person in sexes.index[sexes > 1]
            ]
    return faults
