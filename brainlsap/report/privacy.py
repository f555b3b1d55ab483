"""Withhold people, scans, days and paths from what a report shows.

Settings are withheld by field: a value that is a path is replaced as a whole. Notes
that name people come with a version that may be shared. Only free text (warnings,
findings, titles) is searched for names, days and paths.
"""

import re
from collections.abc import Callable, Mapping
from unicodedata import normalize

import pandas as pd

from brainlsap.atlas import available_atlases

PATH, NAME, DAY = "[path withheld]", "[name withheld]", "[day withheld]"
# Settings that are always paths or patterns of paths.
_PATH_FIELDS = frozenset(
    (
        *("folder", "subjects_dir", "derivatives", "features_table", "labels"),
        *("pattern", "splits", "config", "out", "study", "exclude"),
    )
)
# Settings with words from the user's tables, which may contain a slash.
_WORD_FIELDS = frozenset(
    (
        *("label", "label_name", "classes", "feature", "feature_names", "measure"),
        *(
            "merge_classes",
            "merged_classes",
            "harmonize",
            "regress_out",
            "leave_out",
            "models",
        ),
        *("subgroups", "covariates"),
        "reference_class",
    )
)
# Values of the setting "connectome" that are not files.
_CONNECTOMES = frozenset(("one per scan", "none", "array"))
_SEPARATOR = re.compile(r"[/\\]|^~|^file:", re.IGNORECASE)
_SUFFIX = re.compile(r"\.[A-Za-z]\w{1,4}$")


def withhold_paths_in_settings(
    value_by_setting: Mapping[str, object],
) -> dict[str, object]:
    """Return settings in which every value that is a path is withheld as a whole."""
    return {
        setting_name: _withhold_paths_in_setting(str(setting_name), setting_value)
        for setting_name, setting_value in value_by_setting.items()
    }


def _withhold_paths_in_setting(setting_name: str, setting_value: object) -> object:
    """Return the value of a setting, with paths replaced."""
    if setting_name in _PATH_FIELDS and setting_value:
        return PATH
    if isinstance(setting_value, Mapping):
        if setting_name in _WORD_FIELDS:
            return dict(setting_value)
        return withhold_paths_in_settings(setting_value)
    if setting_name in _WORD_FIELDS:
        return setting_value
    if isinstance(setting_value, list | tuple):
        return [
            _withhold_paths_in_setting(setting_name, list_item)
            for list_item in setting_value
        ]
    if not isinstance(setting_value, str):
        return setting_value
    if setting_name == "connectome":
        is_path = setting_value not in _CONNECTOMES
    elif setting_name == "atlas":
        is_path = setting_value not in available_atlases() and bool(
            _SEPARATOR.search(setting_value)
        )
    elif setting_name == "reference":  # A region or an image.
        is_path = bool(
            _SEPARATOR.search(setting_value) or _SUFFIX.search(setting_value)
        )
    else:
        is_path = bool(_SEPARATOR.search(setting_value))
    return PATH if is_path else setting_value


_MONTH = (
    r"(?:jan(?:uary?|v|vier)?|feb(?:ruary?)?|févr?(?:ier)?|mar(?:ch|s)?|märz?|"
    r"apr(?:il)?|avr(?:il)?|may|mai|jun[ei]?|juin|jul[iy]?|juil(?:let)?|"
    r"aug(?:ust)?|août|sept?(?:emb(?:er|re))?|o[ck]t(?:ob(?:er|re))?|"
    r"nov(?:emb(?:er|re))?|de[cz](?:ember)?|déc(?:embre)?)\.?"
)
_DAY = re.compile(
    r"(?<![0-9A-Za-z])(?:"
    # 2021-03-12, 20210312, 2021/3/12
    r"(?:19|20)\d{2}([-/.])\d{1,2}\1\d{1,2}"
    r"|(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
    # 12.03.2021, 3/12/2021, 12-3-21
    r"|\d{1,2}([-/.])\d{1,2}\2(?:19|20)\d{2}"
    r"|\d{2}([-/.])\d{2}\3\d{2}"
    # 12-Mar-2021, 12. März 2021, March 12, 2021
    rf"|\d{{1,2}}[-/. ]*{_MONTH}[-/., ]*(?:19|20)\d{{2}}"
    rf"|\d{{1,2}}([-/.]?){_MONTH}\4\d{{2}}"
    rf"|{_MONTH}[-/. ]*\d{{1,2}}(?:st|nd|rd|th)?[-/., ]+(?:19|20)\d{{2}}"
    r")(?:T[\d:.]+Z?)?(?![0-9A-Za-z])",
    re.IGNORECASE,
)
# Beginning of a path, but not "m/s", "1/2" or "a/b". The end of a path without quotes
# is unknown, so the rest of the text is withheld with it.
_PATH_START = (
    r"(?:file:|(?!https?:)[A-Za-z][A-Za-z0-9+.-]+://"
    r"|[A-Za-z]:[/\\]|\\\\|~(?:[A-Za-z_][\w.-]*)?[/\\]|\.{1,2}[/\\]|\$\{?\w+\}?[/\\]|%\w+%[/\\]"
    r"|(?<!:)//(?=\w)|[/\\](?=[\w.~-]))"
)
_QUOTED_PATH = re.compile(rf"(?P<quote>['\"]){_PATH_START}.*?(?P=quote)", re.DOTALL)
_OPEN_PATH = re.compile(rf"(?<![\w.~/\\\]%$-]){_PATH_START}.*", re.DOTALL)
_ID_PREFIX = r"(?:sub|ses|scan|person|participant|subject|session|visit)[-_ ]?"


def make_withholding_function(cohort_table: pd.DataFrame) -> Callable[[str], str]:
    """Return a function that withholds people, scans, days and paths in a text.

    A name is withheld with any suffix ("Anna1_V2" for Anna1). Names shorter than four
    letters ("1", "b") occur in any text by chance; they are withheld only after a
    prefix ("sub-", "session ").
    """
    id_table = cohort_table.filter(["scan", "participant", "session"])
    private_name_set = {
        normalize("NFC", str(private_name))
        for private_name in id_table.to_numpy().ravel()
    }
    private_name_set |= {
        re.sub("^(sub|ses)-", "", private_name) for private_name in private_name_set
    }
    pattern_by_name = {
        private_name.lower(): _make_name_regex(private_name)
        for private_name in private_name_set - {""}
    }
    # Longer names are withheld before shorter ones that they begin with.
    name_lengths = sorted({len(name) for name in pattern_by_name}, reverse=True)

    def withhold(shared_text: str) -> str:
        shared_text = normalize("NFC", shared_text)
        shared_text = _QUOTED_PATH.sub(
            lambda match: f"{match[1]}{PATH}{match[1]}", shared_text
        )
        shared_text = _OPEN_PATH.sub(PATH, shared_text)
        lower_text = shared_text.lower()
        # Large cohorts have many names, of few lengths: look up each part of the text.
        matching_names: list[str] = []
        for name_length in name_lengths:
            text_substring_set = {
                lower_text[start_index : start_index + name_length]
                for start_index in range(len(lower_text) - name_length + 1)
            }
            matching_names += sorted(text_substring_set & pattern_by_name.keys())
        matching_patterns = [pattern_by_name[name] for name in matching_names]
        if matching_patterns:
            name_pattern = "|".join(matching_patterns)
            bounded_pattern = (
                rf"(?<![0-9A-Za-z])(?<!\d\.)(?:{name_pattern})(?![0-9A-Za-z])"
            )
            shared_text = re.sub(
                bounded_pattern, NAME, shared_text, flags=re.IGNORECASE
            )
        return _DAY.sub(DAY, shared_text)

    return withhold


def _make_name_regex(private_name: str) -> str:
    """Return the pattern of a name with any suffix."""
    if len(private_name) <= 3:
        return _ID_PREFIX + re.escape(private_name)
    if private_name.isdigit():
        suffix_pattern = r"(?:[A-Za-z_-][\w-]*)?"
    elif private_name[-1].isdigit():
        suffix_pattern = r"[\w-]*"
    else:  # "anna" must not match the beginning of "annals".
        suffix_pattern = r"(?:[\d_-][\w-]*)?"
    return re.escape(private_name) + suffix_pattern
