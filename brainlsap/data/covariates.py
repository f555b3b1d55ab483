"""What is known about covariates by their names, and what is wrong in them."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from brainlsap.data.measures import PET_FEATURES
from brainlsap.data.tables import QUOTES, is_ditto_mark, letters_of
from brainlsap.findings import FAULT, Finding
from brainlsap.text import option_text

KEY_COLUMNS = ("scan", "participant", "session", "label")

# Kind of covariate -> its names, with or without `_id`; case, blanks and underscores do
# not count.
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
        "radiopharmaceutical",
        *(f"{feature}_tracer" for feature in PET_FEATURES),
    ),
    "processing": (
        *("pvc", "pvc_method", "partial_volume_correction", "reference_region"),
        *("ref_region", "suvr_reference", "reference", "reconstruction", "pipeline"),
        *("pipeline_version", "processing_version", "software_version", "version"),
        *("software", "freesurfer_version", "fs_version"),
    ),
    "motion": ("fd", "mean_fd", "fd_mean", "framewise_displacement", "head_motion"),
}
_KIND_OF_NAME = {
    name.replace("_", ""): kind for kind, names in COVARIATES.items() for name in names
}
# Kinds whose numbers are names of groups: a regression line through the numbers of
# sites would mean nothing.
GROUP_KINDS = ("sex", "site", "scanner", "phase", "tracer", "processing")
# Kinds each of whose values may put features on a scale of its own.
SCALE_KINDS = ("tracer", "processing")

# Whether a kind of column is categorical (its numbers are names of groups) or
# continuous: the table that audit, regression, ComBat and confound scores share.
IS_CATEGORICAL = {
    **dict.fromkeys((*GROUP_KINDS, "family"), True),
    **dict.fromkeys(("age", "education", "head size", "motion"), False),
}
# The same by words in names of no known kind. A word for a quantity wins.
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
# Further names of sites, scanners and phases of a study. The words of a name may come
# in any order, with fillers between them.
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
# Limits for codes in a column whose name says nothing about it: see `has_groups`.
_MAX_CODES = 10
_MAX_FRACTIONAL_CODES = 5
_SCANS_PER_CODE_IF_FEW = 3
_SCANS_PER_CODE = 5
# Diagnoses in order of stage; words in one string are of one stage.
_WORDS_BY_STAGE = (
    "nc,cn,hc,control,controls,normal,healthy,healthy control,healthy controls",
    *("smc,scd", "emci", "mci", "lmci", "ad,dementia"),
)
STAGE_OF_WORD = {
    diagnosis: stage
    for stage, diagnoses in enumerate(_WORDS_BY_STAGE)
    for diagnosis in diagnoses.split(",")
}
# Numbers that stand for a missing value if they are far from all others.
MISSING_CODES = (-4, -9, -99, -999, -9999, 99, 999, 9999, 99999)
# Ages with a median from 5 to 120 are in years, and none is above 120. Other medians
# may be of months, weeks or deviations.
_MAX_AGE = 120
_MIN_MEDIAN_AGE = 5


def kind_of(column: object) -> str:
    """Return the kind of covariate (of `COVARIATES`) by a name, else its letters."""
    letters = letters_of(str(column)).removesuffix("id")
    return _KIND_OF_NAME.get(letters, letters)


def _split_into_words(column: object) -> list[str]:
    """Return the words of a name: `SiteID`, `site_id` and `Site ID` are site and id."""
    spaced_name = re.sub(
        r"([a-z])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3 \2\4", str(column)
    )
    return re.findall(r"[^\W\d_]+", spaced_name.lower())


def acquisition_kind(column: object) -> str:
    """Return the kind of a column by any name for where and how scans were made.

    As :func:`kind_of`, but `site_num`, `ImagingSite`, `Scanner Number`, `Batch` or
    `MagneticFieldStrength` are sites and scanners, too.
    """
    kind = kind_of(column)
    if kind in COVARIATES:
        return kind
    terms = [term for term in _split_into_words(column) if term not in _FILLERS]
    letters = letters_of(str(column))
    stems = [letters.removesuffix(filler) for filler in ("", *_FILLERS)]
    for name in (*stems, "".join(terms)):
        if name in _ACQUISITION_KINDS:
            return _ACQUISITION_KINDS[name]
    kinds = [_ACQUISITION_KINDS.get(term) for term in terms]
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
    """Return whether a covariate is categorical: whether its values name groups.

    Audit, regression, ComBat and confound scores all decide by this function. In this
    order:

    1. Text names groups.
    2. Kinds that are known by name are in `IS_CATEGORICAL`: numbers of sex, site,
       scanner (field strength, batch ...), phase and family are names; age, education,
       head size and motion are quantities.
    3. Words of the name say a quantity (`MMSE_total`, `bmi`), else groups (`rater`,
       `apoe`, `cohort_code`).
    4. Otherwise values decide. At most two values are the same either way, and count as
       numbers. Whole numbers are codes if there are at most ten, each held by three
       scans on average; or more, each held by five scans, that count from 1 without
       gaps, or lie far apart. Of other numbers at most five values, each held by five
       scans, are codes. All else is a quantity.
    """
    known_values = values.dropna()
    numbers = pd.to_numeric(known_values, errors="coerce")
    if numbers.isna().any():
        return True
    kind = acquisition_kind(column)
    if kind in IS_CATEGORICAL:
        return IS_CATEGORICAL[kind]
    terms = set(_split_into_words(column))
    ends_as_quantity = letters_of(str(column)).endswith(_QUANTITY_ENDS)
    if ends_as_quantity or terms & _QUANTITY_WORDS:
        return False
    return bool(terms & _GROUP_WORDS) or _are_codes(numbers.to_numpy(dtype=float))


def _are_codes(numbers: np.ndarray) -> bool:
    """Return whether numbers repeat as codes of groups do."""
    codes = np.unique(numbers)
    n_codes = len(codes)
    n_scans = len(numbers)
    if n_codes <= 2:
        return False
    if not np.array_equal(codes, np.round(codes)):
        is_few = n_codes <= _MAX_FRACTIONAL_CODES
        return is_few and n_scans >= _SCANS_PER_CODE * n_codes
    if n_codes <= _MAX_CODES:
        return n_scans >= _SCANS_PER_CODE_IF_FEW * n_codes
    n_possible = codes[-1] - codes[0] + 1
    counts_from_1 = codes[0] == 1 and n_possible <= 1.25 * n_codes
    is_sparse = n_possible >= 5 * n_codes
    return n_scans >= _SCANS_PER_CODE * n_codes and bool(counts_from_1 or is_sparse)


def group_names(values: pd.Series) -> pd.Series:
    """Return groups as text: 1, 1.0 and "1" are the same; missing stays missing."""
    numbers = pd.to_numeric(values, errors="coerce")
    is_numeric = numbers.notna().sum() == values.notna().sum()
    texts = numbers.map("{:.15g}".format) if is_numeric else values.astype(str)
    return texts.astype(object).where(values.notna(), None)


def find_spellings(
    head: str, values: pd.Series, *, is_label: bool = False
) -> list[Finding]:
    """Return a fault if a column of groups writes one group in several ways."""
    spellings = pd.Series(values.dropna().astype(str).unique(), dtype=object)
    # A stray quotation mark makes no other group.
    groups = spellings.str.lower().str.strip(QUOTES)
    if is_label:
        # Signs count in labels: A+ and A- are two classes.
        groups = groups.map(lambda diagnosis: STAGE_OF_WORD.get(diagnosis, diagnosis))
    else:
        groups = groups.str.replace(r"[\s_-]", "", regex=True)
        if kind_of(head) == "sex":
            groups = groups.str[:1]
            has_codes_and_words = spellings.str.isdecimal().nunique() > 1
            if has_codes_and_words:
                groups[:] = "any"
    variants = spellings[groups.duplicated(keep=False)]
    if not len(variants):
        return []
    message = (
        f"{head} is written as {', '.join(sorted(variants))}; write one word for each"
    )
    if is_label:
        message += f", or say which are classes by {option_text('classes')}"
    return [Finding(message, FAULT)]


def find_ditto_marks(table: pd.DataFrame, column: str, head: str) -> list[Finding]:
    """Return a fault for every scan whose cell is a mark for the cell above.

    `head` is what messages call the column.
    """
    scan_names = table.get("scan", table.index.to_series())
    return [
        Finding(
            f"{head} is a mark for the cell above; write the word itself",
            FAULT,
            scan=str(scan),
            got=str(cell),
        )
        for scan, cell in zip(scan_names, table[column], strict=True)
        if is_ditto_mark(cell)
    ]


def find_codes(table: pd.DataFrame, heads: Sequence[str]) -> list[Finding]:
    """Return faults: numbers for a missing value, such as 999 or -9, or no age."""
    faults = list[Finding]()
    table = table.reset_index(drop=True)
    scan_names = table.get("scan", table.index.to_series())
    for head in heads:
        kind = kind_of(head)
        if kind in GROUP_KINDS:
            continue
        numbers = pd.to_numeric(table[head], errors="coerce")
        is_code = numbers.isin(MISSING_CODES)
        low, high = numbers[~is_code].min(), numbers[~is_code].max()
        margin = high - low
        is_wrong = is_code & ~numbers.between(low - margin, high + margin)
        if kind == "age" and _MIN_MEDIAN_AGE <= numbers.median() <= _MAX_AGE:
            is_wrong |= (numbers < 0) | (numbers > _MAX_AGE)
        wrong_numbers = numbers[is_wrong & numbers.notna()]
        valid_numbers = numbers[~is_wrong]
        for scan, number in zip(
            scan_names[wrong_numbers.index], wrong_numbers, strict=True
        ):
            low, high = valid_numbers.min(), valid_numbers.max()
            message = (
                f"{head} is far outside {low:g} to {high:g}, the range of the other "
                "scans; write n/a for what is not known"
            )
            faults.append(Finding(message, FAULT, scan=str(scan), got=f"{number:g}"))
    return faults


def find_faults(
    table: pd.DataFrame, label_name: str, *, has_order: bool = True
) -> list[Finding]:
    """Return what is wrong in the labels and covariates of a cohort.

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
        Words written in several ways, numbers that stand for a missing value, and sex
        that differs between the visits of a person.
    """
    faults = list[Finding]()
    if not has_order:
        faults += find_spellings(label_name, table["label"], is_label=True)
    faults += find_ditto_marks(table, "label", label_name)
    for column in table.columns:
        if column in KEY_COLUMNS:
            continue
        head = str(column)
        kind = kind_of(head)
        values = table[head]
        if kind in COVARIATES:
            faults += find_ditto_marks(table, head, head)
            faults += find_codes(table, [head])
            if has_groups(head, values):
                faults += find_spellings(head, values)
        if kind == "sex":
            n_sexes = values.groupby(table["participant"]).nunique()
            faults += [
                Finding(
                    f"{head} differs between visits; write one",
                    FAULT,
                    participant=str(person),
                )
                for person in n_sexes.index[n_sexes > 1]
            ]
    return faults
