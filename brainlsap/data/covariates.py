"""Known covariates by their names, and faults of their values."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.arrays import compute_robust_deviations, parse_label_number
from brainlsap.data.measures import PET_FEATURES
from brainlsap.data.tables import QUOTES, get_name_letters, is_ditto_mark
from brainlsap.findings import ASSUMED, CHANGED_PERSON, FAULT, Finding
from brainlsap.text import named_counts_text, option_text

KEY_COLUMNS = ("scan", "participant", "session", "label")

# Kind of covariate -> its names, with or without `_id`; case, blanks and underscores do
# not count.
COVARIATES = {
    "age": ("age", "age_years", "age_at_scan", "age_bl", "alter"),
    "sex": ("sex", "gender", "ptgender", "geschlecht", "sexe"),
    "site": ("site", "center", "centre", "hospital", "cohort", "zentrum", "standort"),
    "scanner": ("scanner", "manufacturer", "vendor", "model", "field_strength"),
    "phase": ("phase", "protocol", "colprot", "origprot", "study"),
    "education": (
        *("education", "education_years", "years_of_education", "educ", "pteducat"),
        *("schuljahre", "bildungsjahre"),
    ),
    "family": ("family", "household", "twin", "pair", "mother", "father"),
    "head size": (
        *("etiv", "icv", "tiv", "intracranial_volume"),
        "estimated_total_intracranial_vol",
    ),
    "tracer": (
        *("tracer", "pet_tracer", "radiotracer", "ligand", "radioligand", "trc"),
        "radiopharmaceutical",
        *(f"{feature_name}_tracer" for feature_name in PET_FEATURES),
    ),
    "processing": (
        *("pvc", "pvc_method", "partial_volume_correction", "reference_region"),
        *("ref_region", "suvr_reference", "reference", "reconstruction", "pipeline"),
        *("pipeline_version", "processing_version", "software_version", "version"),
        *("software", "freesurfer_version", "fs_version"),
    ),
    "motion": ("fd", "mean_fd", "fd_mean", "framewise_displacement", "head_motion"),
}
_INTEGRAL_ENDING = re.compile(r"\.0+$")
_DATE_WORDS = frozenset(("date", "dates", "datum", "dt"))
_DAY, _MONTH, _YEAR = r"(0[1-9]|[12]\d|3[01])", r"(0[1-9]|1[0-2])", r"(19|20)\d\d"
_COMPACT_DATES = (
    re.compile(_YEAR + _MONTH + _DAY),
    re.compile(_DAY + _MONTH + _YEAR),
    re.compile(_MONTH + _DAY + _YEAR),
)
_SHORT_COMPACT_DATES = tuple(
    re.compile(date_pattern.pattern.replace(_YEAR, r"\d\d"))
    for date_pattern in _COMPACT_DATES
)
_UNIT_IN_BRACKETS = re.compile(r"(?<=\w)\s*(\([^()]*\)|\[[^\[\]]*\])\s*$")
_KIND_OF_NAME = {
    covariate_name.replace("_", ""): covariate_kind
    for covariate_kind, covariate_names in COVARIATES.items()
    for covariate_name in covariate_names
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
    "site": "institution institute clinic location facility study_site test_site "
    "klinik klinikum krankenhaus spital",
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
# Limits for codes in a column whose name says nothing about it: see
# `is_categorical_covariate`.
_MAX_CODES = 10
_MAX_FRACTIONAL_CODES = 5
_SCANS_PER_CODE_IF_FEW = 3
_SCANS_PER_CODE = 5
# Diagnoses in order of stage; words in one string are of one stage.
_WORDS_BY_STAGE = (
    "nc,cn,hc,control,controls,normal,healthy,healthy control,healthy controls",
    "smc,scd",
    "emci,early mci,early mild cognitive impairment",
    "mci,mild cognitive impairment,amci,amnestic mci",
    "lmci,late mci,late mild cognitive impairment",
    "ad,dementia,ad dementia,alzheimer's disease,alzheimer's dementia",
)
STAGE_OF_WORD = {
    diagnosis: stage_number
    for stage_number, diagnoses_text in enumerate(_WORDS_BY_STAGE)
    for diagnosis in diagnoses_text.split(",")
}
_MIN_SHARE_OF_STAGES = 0.5
"""Smallest share of stages among the values of a column that is read as stages."""
# Words of columns of diagnoses, and the words that may stand beside them.
_DIAGNOSIS_WORDS = frozenset(
    ("dx", "diag", "diagnosis", "diagnose", "diagnostic", "dxcurren", "dxcurrent")
)
_DIAGNOSIS_FILLERS = frozenset(
    (
        *("bl", "baseline", "first", "current", "last", "final", "visit", "scan", "at"),
        *("clinical", "primary", "group", "class", "label", "status", "code"),
    )
)
# Numbers that stand for a missing value if they are far from all others.
MISSING_CODES = (-4, -9, -99, -999, -9999, 99, 999, 9999, 99999)
# Ages with a median from 5 to 120 are in years, and none is above 120. Other medians
# may be of months, weeks or deviations.
_MAX_AGE = 120
_MIN_MEDIAN_AGE = 5
_DAYS_PER_YEAR = 365.25
# Ages farther from the median, in MADs scaled to a standard deviation, are reported,
# if there are enough ages.
_MAX_AGE_DEVIATION = 6.0
_MIN_AGES = 8
# Words of sex in lower case, in English, German, French, Spanish and Italian.
_SEX_OF_WORD = {
    **dict.fromkeys(("f", "w", "female", "woman", "women", "girl"), "female"),
    **dict.fromkeys(("weiblich", "frau", "femme", "f\u00e9minin", "feminin"), "female"),
    **dict.fromkeys(("mujer", "femenino", "femmina", "donna"), "female"),
    **dict.fromkeys(("m", "male", "man", "men", "boy"), "male"),
    **dict.fromkeys(
        ("m\u00e4nnlich", "maennlich", "mann", "homme", "masculin"), "male"
    ),
    **dict.fromkeys(("hombre", "masculino", "maschio", "uomo"), "male"),
}
# Beside H for hombre or homme, M may be mujer.
_AMBIGUOUS_SEX = "h"
_SEX_WORDS = frozenset(("0", "1", "2", _AMBIGUOUS_SEX, *_SEX_OF_WORD))


# Letters of the names of columns of birth, in English, German and French.
_BIRTH_COLUMN = re.compile(
    r"(pt)?dob(yy|mm|dd)?|yob|birth|birth(day|date|year|month)|"
    r"(date|day|year|month)of?birth|geburt|geburts(datum|tag|jahr|monat)|"
    r"(date|jour|annee|mois)?(de)?naissance"
)


def find_covariate_kind(column_name: object) -> str:
    """Return the kind of covariate (of `COVARIATES`) by a name, else its letters.

    A unit in brackets does not count: `Age (y)` and `Age [years]` are ages.
    """
    name_without_unit = _UNIT_IN_BRACKETS.sub("", str(column_name))
    name_letters = get_name_letters(name_without_unit).removesuffix("id")
    return _KIND_OF_NAME.get(name_letters, name_letters)


def is_birth_column(column_name: object) -> bool:
    """Return whether a column is of the birth of people, by its name.

    >>> [is_birth_column(name) for name in ("PTDOBYY", "Geburtsjahr", "birthweight")]
    [True, True, False]
    """
    return bool(_BIRTH_COLUMN.fullmatch(get_name_letters(str(column_name))))


def is_diagnosis_column(column_name: object) -> bool:
    """Return whether a column is of diagnoses, by its name.

    >>> names = ("DX_bl", "DIAGNOSIS", "visit_dx", "DXCONFID", "diagnosis_date")
    >>> [is_diagnosis_column(name) for name in names]
    [True, True, True, False, False]
    """
    name_words = {*_split_into_name_words(column_name)}
    return bool(name_words & _DIAGNOSIS_WORDS) and name_words <= (
        _DIAGNOSIS_WORDS | _DIAGNOSIS_FILLERS
    )


def find_stage_column_names(text_table: pd.DataFrame) -> list[str]:
    """Return the columns that name at least two stages, and few other values.

    >>> find_stage_column_names(pd.DataFrame({"Dx": ["CN", "AD"], "Sex": ["F", "M"]}))
    ['Dx']
    """
    stage_column_names = list[str]()
    for column_name, column_series in text_table.items():
        lower_texts = column_series.dropna().astype(str).str.strip().str.lower()
        stage_series = lower_texts.map(STAGE_OF_WORD)
        if (
            stage_series.nunique() >= 2
            and stage_series.notna().mean() >= _MIN_SHARE_OF_STAGES
        ):
            stage_column_names.append(str(column_name))
    return stage_column_names


def propose_label_option(fact_tables: Iterable[pd.DataFrame]) -> dict[str, str]:
    """Return the only column of stages of some tables as the option `label`.

    Nothing is returned if there are several such columns, or none.
    """
    stage_column_names = [
        column_name
        for fact_table in fact_tables
        for column_name in find_stage_column_names(fact_table)
    ]
    return {"label": stage_column_names[0]} if len(stage_column_names) == 1 else {}


def _split_into_name_words(column_name: object) -> list[str]:
    """Return the words of a name: `SiteID`, `site_id` and `Site ID` are site and id."""
    spaced_name = re.sub(
        r"([a-z])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3 \2\4", str(column_name)
    )
    return re.findall(r"[^\W\d_]+", spaced_name.lower())


def find_acquisition_kind(column_name: object) -> str:
    """Return the kind of a column by any name for where and how scans were made.

    As :func:`find_covariate_kind`, but `site_num`, `ImagingSite`, `Scanner Number`,
    `Batch` or `MagneticFieldStrength` are sites and scanners, too.
    """
    covariate_kind = find_covariate_kind(column_name)
    if covariate_kind in COVARIATES:
        return covariate_kind
    name_words = [
        name_word
        for name_word in _split_into_name_words(column_name)
        if name_word not in _FILLERS
    ]
    name_letters = get_name_letters(str(column_name))
    name_stems = [
        name_letters.removesuffix(filler_word) for filler_word in ("", *_FILLERS)
    ]
    for candidate_name in (*name_stems, "".join(name_words)):
        if candidate_name in _ACQUISITION_KINDS:
            return _ACQUISITION_KINDS[candidate_name]
    word_kinds = [_ACQUISITION_KINDS.get(name_word) for name_word in name_words]
    if word_kinds and None not in word_kinds:
        return str(word_kinds[0])
    return covariate_kind


_ACQUISITION_KINDS = {
    name_letters: covariate_kind
    for covariate_kind in ("site", "scanner", "phase")
    for name_letters in (
        *map(get_name_letters, COVARIATES[covariate_kind]),
        *map(get_name_letters, _ACQUISITION_NAMES[covariate_kind].split()),
    )
}


def is_categorical_covariate(column_name: str, covariate_values: pd.Series) -> bool:
    """Return whether a covariate is categorical: whether its values name groups.

    Audit, regression, ComBat and confound scores all decide by this function. In this
    order:

    1. Text and dates name groups.
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
    known_values = covariate_values.dropna()
    known_numbers = pd.to_numeric(known_values, errors="coerce")
    if known_numbers.isna().any() or are_compact_dates(column_name, known_values):
        return True
    covariate_kind = find_acquisition_kind(column_name)
    if covariate_kind in IS_CATEGORICAL:
        return IS_CATEGORICAL[covariate_kind]
    name_words = set(_split_into_name_words(column_name))
    has_quantity_ending = get_name_letters(str(column_name)).endswith(_QUANTITY_ENDS)
    if has_quantity_ending or name_words & _QUANTITY_WORDS:
        return False
    return bool(name_words & _GROUP_WORDS) or _are_group_codes(
        known_numbers.to_numpy(dtype=float)
    )


def _are_group_codes(number_array: np.ndarray) -> bool:
    """Return whether numbers repeat as codes of groups do."""
    unique_codes = np.unique(number_array)
    n_codes = len(unique_codes)
    n_scans = len(number_array)
    if n_codes <= 2:
        return False
    if not np.array_equal(unique_codes, np.round(unique_codes)):
        has_few_codes = n_codes <= _MAX_FRACTIONAL_CODES
        return has_few_codes and n_scans >= _SCANS_PER_CODE * n_codes
    if n_codes <= _MAX_CODES:
        return n_scans >= _SCANS_PER_CODE_IF_FEW * n_codes
    n_possible_codes = unique_codes[-1] - unique_codes[0] + 1
    are_counted_from_1 = unique_codes[0] == 1 and n_possible_codes <= 1.25 * n_codes
    are_sparse_codes = n_possible_codes >= 5 * n_codes
    return n_scans >= _SCANS_PER_CODE * n_codes and bool(
        are_counted_from_1 or are_sparse_codes
    )


def to_group_text_series(covariate_values: pd.Series) -> pd.Series:
    """Return groups as text: 1, 1.0 and "1" are the same; missing stays missing."""
    parsed_numbers = pd.to_numeric(covariate_values, errors="coerce")
    is_numeric = parsed_numbers.notna().sum() == covariate_values.notna().sum()
    group_texts = (
        parsed_numbers.map("{:.15g}".format)
        if is_numeric
        else covariate_values.astype(str)
    )
    return group_texts.astype(object).where(covariate_values.notna(), None)


def are_compact_dates(column_name: object, cells: Iterable[object]) -> bool:
    """Return whether all known cells are dates of digits alone, such as 20190312.

    Year, month and day may come in any order, the same in all cells. Years of two
    digits count only in columns that are called dates, because 190312 may be a volume.

    >>> are_compact_dates("exam", ["20190312", None])
    True
    >>> are_compact_dates("volume", ["190312", None])
    False
    """
    cell_texts = [
        _INTEGRAL_ENDING.sub("", str(cell)) for cell in cells if not pd.isna(cell)
    ]
    is_called_date = not _DATE_WORDS.isdisjoint(_split_into_name_words(column_name))
    return bool(cell_texts) and any(
        all(map(date_pattern.fullmatch, cell_texts))
        for date_pattern in (
            *_COMPACT_DATES,
            *(_SHORT_COMPACT_DATES if is_called_date else ()),
        )
    )


def unify_number_labels(labels: Sequence[Any]) -> list[Any]:
    """Return labels with one spelling of each number; other labels are unchanged.

    >>> unify_number_labels(["1", "1.0", "2.0", "CN"])
    ['1', '1', '2.0', 'CN']
    """
    spellings_by_number: dict[float, set[str]] = {}
    for label in labels:
        if (label_number := parse_label_number(label)) is not None:
            spellings_by_number.setdefault(label_number, set()).add(str(label))
    return [
        f"{label_number:.15g}"
        if (label_number := parse_label_number(label)) is not None
        and len(spellings_by_number[label_number]) > 1
        else label
        for label in labels
    ]


def find_known_sex_by_spelling(
    sex_spellings: Iterable[str], known_sex_spellings: Collection[str]
) -> dict[str, str]:
    """Return the known spelling of every sex that is written in another way.

    Numbers, and words that may mean either sex, have none.

    >>> find_known_sex_by_spelling(["female", "Male", "1"], ["F", "M"])
    {'female': 'F', 'Male': 'M'}
    """
    other_spellings = [
        spelling for spelling in sex_spellings if spelling not in known_sex_spellings
    ]
    lower_word_by_spelling = {
        spelling: spelling.strip().lower()
        for spelling in (*other_spellings, *known_sex_spellings)
    }
    if _AMBIGUOUS_SEX in lower_word_by_spelling.values():
        return {}
    spelling_by_sex: dict[str, str] = {}
    for known_spelling in known_sex_spellings:
        if sex := _SEX_OF_WORD.get(lower_word_by_spelling[known_spelling]):
            # Two known words for one sex are two groups.
            if sex in spelling_by_sex:
                return {}
            spelling_by_sex[sex] = known_spelling
    return {
        spelling: spelling_by_sex[sex]
        for spelling in other_spellings
        if (sex := _SEX_OF_WORD.get(lower_word_by_spelling[spelling]))
        in spelling_by_sex
    }


def find_spelling_faults(
    column_name: str,
    group_values: pd.Series,
    scan_name_series: pd.Series | None = None,
    *,
    is_label: bool = False,
) -> list[Finding]:
    """Return a fault if a column of groups writes one group in several ways.

    The fault gives the number of scans of every spelling, and the scans of the rarest
    one if `scan_name_series`, with the index of `group_values`, are known.
    """
    group_text_series = group_values.dropna().astype(str)
    spellings = group_text_series.unique().tolist()
    # A stray quotation mark makes no other group.
    unified_spellings = [spelling.lower().strip(QUOTES) for spelling in spellings]
    if is_label:
        # Signs count in labels: A+ and A- are two classes.
        unified_spellings = [
            STAGE_OF_WORD.get(diagnosis, diagnosis) for diagnosis in unified_spellings
        ]
    else:
        unified_spellings = [
            re.sub(r"[\s_-]", "", unified_spelling)
            for unified_spelling in unified_spellings
        ]
        if find_covariate_kind(column_name) == "sex":
            unified_spellings = [
                unified_spelling[:1] for unified_spelling in unified_spellings
            ]
            has_codes_and_words = (
                len({spelling.isdecimal() for spelling in spellings}) > 1
            )
            if has_codes_and_words:
                unified_spellings = ["any"] * len(unified_spellings)
    count_by_unified_spelling = Counter(unified_spellings)
    spelling_variants = [
        spelling
        for spelling, unified_spelling in zip(spellings, unified_spellings, strict=True)
        if count_by_unified_spelling[unified_spelling] > 1
    ]
    if not spelling_variants:
        return []
    n_scans_by_spelling = group_text_series.value_counts()
    variant_count_pairs = [
        (spelling, int(n_scans_by_spelling[spelling]))
        for spelling in sorted(spelling_variants)
    ]
    message = (
        f"{column_name} is written in several ways: "
        f"{named_counts_text(variant_count_pairs)}"
    )
    rarest_spelling = min(variant_count_pairs, key=lambda variant: variant[1])[0]
    rarest_scan_names: tuple[str, ...] = ()
    if scan_name_series is not None:
        rarest_text_mask = group_text_series == rarest_spelling
        rarest_scan_names = tuple(
            scan_name_series[group_text_series.index[rarest_text_mask]].map(str)
        )
        message += f"; {rarest_spelling!r} is written for"
    advice = "Write one word or one code for each group"
    if is_label:
        advice = "Write one word for each class"
        n_distinct_words = len({spelling.lower() for spelling in spelling_variants})
        if n_distinct_words == len(spelling_variants):
            advice += (
                ". If the words are different classes, list all classes with "
                f"{option_text('classes')}"
            )
    return [Finding(message, FAULT, advice=advice, people=rarest_scan_names)]


def find_ditto_mark_faults(
    scan_table: pd.DataFrame, column_name: str, shown_column_name: str
) -> list[Finding]:
    """Return a fault for every scan whose cell is a mark for the cell above.

    `shown_column_name` is what messages call the column.
    """
    if not any(map(is_ditto_mark, scan_table[column_name])):
        return []
    scan_name_series = scan_table.get("scan", scan_table.index.to_series())
    return [
        Finding(
            f"{shown_column_name} is a ditto mark",
            FAULT,
            scan=str(scan_name),
            got=str(cell_text),
            advice="Write the value itself in this cell",
        )
        for scan_name, cell_text in zip(
            scan_name_series, scan_table[column_name], strict=True
        )
        if is_ditto_mark(cell_text)
    ]


def is_plausible_median_age(median_age: float) -> bool:
    """Return whether ages with a median are probably in years."""
    return _MIN_MEDIAN_AGE <= median_age <= _MAX_AGE


def find_wrong_number_faults(
    scan_table: pd.DataFrame, column_names: Sequence[str]
) -> list[Finding]:
    """Return faults: numbers for a missing value, such as 999 or -9, or no age."""
    fault_findings = list[Finding]()
    for column_name in column_names:
        covariate_kind = find_covariate_kind(column_name)
        if covariate_kind in GROUP_KINDS:
            continue
        column_numbers = pd.to_numeric(scan_table[column_name], errors="coerce")
        number_array = column_numbers.to_numpy(dtype=float, na_value=np.nan)
        missing_code_mask = np.isin(number_array, MISSING_CODES)
        suspect_number_mask = missing_code_mask
        if covariate_kind == "age":
            suspect_number_mask = (
                missing_code_mask | (number_array < 0) | (number_array > _MAX_AGE)
            )
        if not suspect_number_mask.any():
            continue
        scan_table = scan_table.reset_index(drop=True)
        scan_name_series = scan_table.get("scan", scan_table.index.to_series())
        column_numbers = column_numbers.reset_index(drop=True)
        lowest_number, highest_number = (
            column_numbers[~missing_code_mask].min(),
            column_numbers[~missing_code_mask].max(),
        )
        plausible_margin = highest_number - lowest_number
        wrong_number_mask = missing_code_mask & ~column_numbers.between(
            lowest_number - plausible_margin, highest_number + plausible_margin
        )
        if covariate_kind == "age" and is_plausible_median_age(column_numbers.median()):
            wrong_number_mask |= (column_numbers < 0) | (column_numbers > _MAX_AGE)
        wrong_numbers = column_numbers[wrong_number_mask & column_numbers.notna()]
        valid_numbers = column_numbers[~wrong_number_mask]
        lowest_valid_number, highest_valid_number = (
            valid_numbers.min(),
            valid_numbers.max(),
        )
        for scan_name, wrong_number in zip(
            scan_name_series[wrong_numbers.index], wrong_numbers, strict=True
        ):
            message = (
                f"{column_name} is far outside {lowest_valid_number:g} to "
                f"{highest_valid_number:g}, "
                "the range of all other scans"
            )
            fault_findings.append(
                Finding(
                    message,
                    FAULT,
                    scan=str(scan_name),
                    got=f"{wrong_number:g}",
                    advice="Correct the value, or write n/a if it is unknown",
                )
            )
    return fault_findings


def make_unusual_value_notes(scan_table: pd.DataFrame) -> list[Finding]:
    """Return notes on ages far from others or in another unit, and on unknown sexes."""
    findings = list[Finding]()
    scan_table = scan_table.reset_index(drop=True)
    for column_label in scan_table.columns:
        column_name = str(column_label)
        if column_name in KEY_COLUMNS:
            continue
        if find_covariate_kind(column_name) == "age":
            findings += _make_age_unit_notes(scan_table, column_name)
            findings += _make_far_age_notes(scan_table, column_name)
        elif find_covariate_kind(column_name) == "sex":
            findings += _make_unknown_sex_notes(scan_table, column_name)
    return findings


def _make_age_unit_notes(scan_table: pd.DataFrame, column_name: str) -> list[Finding]:
    """Return a note if the median age is above the highest age in years."""
    median_age = pd.to_numeric(scan_table[column_name], errors="coerce").median()
    if not median_age > _MAX_AGE:
        return []
    unit_name, n_units_per_year = "months", 12.0
    if median_age > _MAX_AGE * n_units_per_year:
        unit_name, n_units_per_year = "days", _DAYS_PER_YEAR
    return [
        Finding(
            f"{column_name} is probably not in years: its median is {median_age:g}",
            kind=ASSUMED,
            advice=f"If the unit is {unit_name}, divide the values by "
            f"{n_units_per_year:g} (median {median_age / n_units_per_year:.1f} years)",
        )
    ]


def list_scans_with_wrong_numbers(
    scan_table: pd.DataFrame, column_name: str
) -> set[str]:
    """Return the scans with a fault of :func:`find_wrong_number_faults`."""
    return {
        fault_finding.scan
        for fault_finding in find_wrong_number_faults(scan_table, [column_name])
    }


def _make_far_age_notes(scan_table: pd.DataFrame, column_name: str) -> list[Finding]:
    """Return a note on every age that is far from the others, in robust deviations."""
    age_series = pd.to_numeric(scan_table[column_name], errors="coerce").dropna()
    if len(age_series) < _MIN_AGES:
        return []
    absolute_deviations = np.abs(
        compute_robust_deviations(age_series.to_numpy(dtype=float))
    )
    if not np.median(absolute_deviations) > 0:
        return []
    far_age_mask = absolute_deviations > _MAX_AGE_DEVIATION
    other_age_series = age_series[~far_age_mask]
    # An impossible age is a fault, which is reported once.
    faulty_scan_names = list_scans_with_wrong_numbers(scan_table, column_name)
    return [
        Finding(
            f"{column_name} is far from the values of all other scans, whose range is "
            f"{other_age_series.min():g} to {other_age_series.max():g}",
            kind=ASSUMED,
            scan=str(scan_table["scan"][row_index]),
            got=f"{age:g}",
            advice="If the value is wrong, correct it or write n/a",
        )
        for row_index, age in age_series[far_age_mask].items()
        if str(scan_table["scan"][row_index]) not in faulty_scan_names
    ]


def _make_unknown_sex_notes(
    scan_table: pd.DataFrame, column_name: str
) -> list[Finding]:
    """Return a note on values of a sex that are neither of two known words or codes."""
    sex_series = to_group_text_series(scan_table[column_name]).dropna().map(str)
    n_scans_by_sex = sex_series.value_counts()
    unknown_sex_count_pairs = [
        (repr(sex), n_scans)
        for sex, n_scans in n_scans_by_sex.items()
        if str(sex).lower() not in _SEX_WORDS
    ]
    if not unknown_sex_count_pairs or len(unknown_sex_count_pairs) == len(
        n_scans_by_sex
    ):
        return []
    return [
        Finding(
            f"{column_name} has values that are neither male nor female, and each of "
            "them counts as a separate group: "
            f"{named_counts_text(unknown_sex_count_pairs, max_items=5)}",
            kind=ASSUMED,
            advice="Write n/a where the value is unknown",
        )
    ]


def find_covariate_faults(
    scan_table: pd.DataFrame, label_name: str, *, has_class_order: bool = True
) -> list[Finding]:
    """Return the faults of the labels and covariates of a cohort.

    Parameters
    ----------
    scan_table : DataFrame
        Of a cohort.
    label_name : str
        Name of the label.
    has_class_order : bool
        Whether an order of classes was given or is known; words for one stage are then
        classes of their own.

    Returns
    -------
    list of Finding
        Words written in several ways, numbers that stand for a missing value, and sex
        that differs between the visits of a person.
    """
    fault_findings = list[Finding]()
    if not has_class_order:
        fault_findings += find_spelling_faults(
            label_name, scan_table["label"], scan_table.get("scan"), is_label=True
        )
    fault_findings += find_ditto_mark_faults(scan_table, "label", label_name)
    for column_label in scan_table.columns:
        if column_label in KEY_COLUMNS:
            continue
        column_name = str(column_label)
        covariate_kind = find_covariate_kind(column_name)
        column_series = scan_table[column_name]
        if covariate_kind in COVARIATES:
            fault_findings += find_ditto_mark_faults(
                scan_table, column_name, column_name
            )
            fault_findings += find_wrong_number_faults(scan_table, [column_name])
            if is_categorical_covariate(column_name, column_series):
                fault_findings += find_spelling_faults(
                    column_name, column_series, scan_table.get("scan")
                )
        if covariate_kind == "sex":
            n_values_by_person = column_series.groupby(
                scan_table["participant"]
            ).nunique()
            changed_person_ids = n_values_by_person.index[n_values_by_person > 1]
            if changed_person_ids.empty:
                continue
            # A loop over the tables of all people takes a second for a thousand.
            changed_scan_table = scan_table[
                scan_table["participant"].isin(changed_person_ids)
            ]
            fault_findings += [
                Finding(
                    f"{column_name} differs between visits of a person",
                    FAULT,
                    kind=CHANGED_PERSON,
                    participant=str(participant_id),
                    got=_describe_values_by_visit(person_table, column_name),
                    advice="If these are two people with one ID, correct the ID. "
                    "Otherwise write the same value for all visits",
                )
                for participant_id, person_table in changed_scan_table.groupby(
                    "participant"
                )
            ]
    return fault_findings


def _describe_values_by_visit(person_table: pd.DataFrame, column_name: str) -> str:
    """Return the first two different values of a person, each with its visit."""
    value_table = person_table.dropna(subset=column_name).drop_duplicates(column_name)
    return ", ".join(
        f"{value_row[column_name]} at {value_row['session']}"
        if value_row.get("session")
        else str(value_row[column_name])
        for value_row in value_table[:2].to_dict("records")
    )
