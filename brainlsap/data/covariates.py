"""What is known of covariates by their names, and what is wrong in them."""

from collections.abc import Sequence

import pandas as pd

from brainlsap.data.tables import QUOTES, is_ditto_mark, letters_of

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


def has_groups(column: str, values: pd.Series) -> bool:
    """Return whether a covariate tells groups: by its name, or by text in it."""
    is_text = pd.to_numeric(values.dropna(), errors="coerce").isna().any()
    return bool(is_text) or kind_of(column) in GROUPS


def find_spellings(
    head: str, values: pd.Series, *, is_label: bool = False
) -> list[str]:
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
    return [told + more] if len(same) else []


def find_ditto_marks(table: pd.DataFrame, column: str, head: str) -> list[str]:
    """Say in which scans a column, called `head`, has a mark for the cell above."""
    names = table.get("scan", table.index.to_series())
    return [
        f"{scan}: {head} is {cell}, a mark for the cell above; write the word itself"
        for scan, cell in zip(names, table[column], strict=True)
        if is_ditto_mark(cell)
    ]


def find_codes(table: pd.DataFrame, heads: Sequence[str]) -> list[str]:
    """Say which numbers stand for what is missing, such as 999 or -9, or are no age."""
    faults, table = list[str](), table.reset_index(drop=True)
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
            f"{scan}: {head} is {number:g}, others {rest.min():g} to {rest.max():g}; "
            "write n/a for what is not known"
            for scan, number in zip(names[wrong.index], wrong, strict=True)
        ]
    return faults


def find_faults(
    table: pd.DataFrame, label_name: str, *, has_order: bool = True
) -> list[str]:
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
    list of str
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
                f"{person}: {head} differs between visits; write one"
                for person in sexes.index[sexes > 1]
            ]
    return faults
