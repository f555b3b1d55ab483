"""List the contents of a study folder, and options that read more of it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from brainlsap.data.cohort import Cohort
from brainlsap.data.connectomes import is_matrix_file
from brainlsap.data.features import FeatureSources, Source, TableReader
from brainlsap.data.find_files import (
    Scan,
    count_files_by_path_pattern,
    find_unreadable_connectome_error,
    list_files_outside_scans,
    to_bare_id,
)
from brainlsap.data.load import (
    STRENGTH_FEATURE,
    LabelledScans,
    RefusedStudyError,
    list_path_words,
    list_people_count_texts,
    open_scans_and_sources,
)
from brainlsap.data.measures import PET_FEATURES
from brainlsap.data.participants import ScanList, list_people_table_paths
from brainlsap.data.reading_options import (
    DEFAULT_OPTIONS,
    NO_CONNECTOME,
    ReadingOptions,
)
from brainlsap.data.row_order import UNKNOWN_ORDER
from brainlsap.data.stored_cohort import read_study
from brainlsap.data.tables import IMPORT_FILES, TABLE_SUFFIXES, read_table_columns
from brainlsap.exceptions import (
    BrainlsapError,
    CohortError,
    FileFormatError,
)
from brainlsap.findings import (
    FOREIGN_IDS,
    LEFT_OUT,
    NOTE,
    Finding,
    Severity,
    list_grouped_finding_texts,
    make_fault_findings,
    make_findings,
)
from brainlsap.options import list_settings_option_names

Options = dict[str, Any]
# Arguments that say who and which files are in a study.
_OPENING_OPTIONS = list_settings_option_names("reading", selects_files=True)
_ScoreFunction = Callable[[ScanList, FeatureSources], float]
# A visit behind a person's id.
_A_VISIT = re.compile(
    r"(?<=\{participant\})([-_])(?:(?:ses-?|visit-?|[a-z]{0,2})\d{1,3}|bl|baseline|fu|"
    r"pre|post)(?=[._/])",
    re.IGNORECASE,
)
# Fewest ids of a column that must be in the names of files.
_MIN_MATCHING_IDS = 3
_MAX_PATHS = 100_000
# Features that are looked for beside those that were asked for.
_FEATURES = ("thickness", "volume", "area", *PET_FEATURES)


@dataclass(frozen=True, eq=False)
class CohortCheck:
    """Contents and faults of a study folder, before anything is computed.

    Parameters
    ----------
    folder : Path
        That was looked at.
    count_texts : tuple of str
        People, scans, labels and files, counted.
    findings : tuple of Finding
        Notes on data that were read by name or order, mirrored, filled or left out,
        with counts; and one finding for every fault that prevents loading the cohort.
    faults : tuple of str
        The faults as text; what many scans share is said once.
    cohort : Cohort or None
        None where there are faults.
    labelled_scans : LabelledScans or None
        The scans of a study that cannot be loaded, if they could be listed.
    """

    folder: Path
    count_texts: tuple[str, ...]
    findings: tuple[Finding, ...]
    faults: tuple[str, ...]
    cohort: Cohort | None = None
    labelled_scans: LabelledScans | None = None

    @property
    def is_sound(self) -> bool:
        """Whether the cohort can be loaded."""
        return not self.faults

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what was mapped or left out."""
        return (*self._list_finding_texts(NOTE, LEFT_OUT),)

    def _list_finding_texts(self, *severities: Severity) -> list[str]:
        """Return the findings of some severities as text; those alike are one."""
        matching_findings = [
            finding for finding in self.findings if finding.severity in severities
        ]
        return list_grouped_finding_texts(matching_findings, self.folder)

    def text(self) -> str:
        """Return everything as lines of text."""
        text_lines = [str(self.folder)]
        for section_title, entry_texts in (
            ("Found", self.count_texts),
            ("Mapped", self._list_finding_texts(NOTE)),
            ("Dropped", self._list_finding_texts(LEFT_OUT)),
            ("Faults", self.faults),
        ):
            if entry_texts:
                text_lines += [
                    f"{section_title}:",
                    *(f"  {entry_text}" for entry_text in entry_texts),
                ]
        if self.is_sound:
            text_lines.append("No faults: the cohort can be loaded.")
        return "\n".join(text_lines) + "\n"

    __repr__ = text


def check_cohort(
    folder: str | Path | Cohort, *args: Any, **options: Any
) -> CohortCheck:
    """Read a study folder as :func:`load_cohort` does, and return all faults as a list.

    Parameters
    ----------
    folder : str, Path or Cohort
        The cohort's folder, or file (.h5), as :func:`.read_study` takes it. A cohort,
        as :meth:`Cohort.from_arrays` makes one, has been checked by then, and what it
        holds is listed; which of its scans are unusual says :func:`quality_table`,
        what leaks :func:`brainlsap.evaluation.audit`.
    *args, **options : see :func:`load_cohort`
        Its other arguments.

    Returns
    -------
    CohortCheck

    Raises
    ------
    ParameterError
        If an argument cannot be used.
    """
    if isinstance(folder, Cohort):
        cohort = folder
        cohort_path = Path(cohort.provenance.get("folder", "cohort"))
    else:
        cohort_path = Path(folder)
        try:
            cohort = read_study(cohort_path, *args, **options)
        except (CohortError, FileFormatError) as error:
            return make_refusal_check(cohort_path, error)
    count_texts = list_people_count_texts(
        cohort.table, cohort.label_name, cohort.classes
    )
    scans_text = f"{cohort.n_scans} of {cohort.n_scans} scans"
    if cohort.provenance.get("connectome", "one per scan") == "one per scan":
        count_texts.append(f"connectomes were read for {scans_text}")
    count_texts += [
        f"{feature_name} was read for {scans_text}"
        for feature_name in cohort.feature_names
    ]
    return CohortCheck(
        cohort_path, tuple(count_texts), make_findings(cohort.findings), (), cohort
    )


def make_refusal_check(study_path: Path, error: BrainlsapError) -> CohortCheck:
    """Return the check of a study that cannot be loaded.

    If the list of people cannot be used, nothing else is known.
    """
    if isinstance(error, RefusedStudyError):
        return CohortCheck(
            study_path,
            tuple(error.count_texts),
            error.findings,
            error.faults,
            labelled_scans=error.labelled_scans,
        )
    faults = error.faults if isinstance(error, CohortError) else ()
    findings = make_fault_findings(faults) or [Finding.from_error(error)]
    return CohortCheck(study_path, (), tuple(findings), faults or (str(error),))


def suggest_options(
    cohort_check: CohortCheck, options: Mapping[str, Any]
) -> list[Options]:
    """Return changes of options by which more of a study, or any, can be read.

    Parameters
    ----------
    cohort_check : CohortCheck
        Of the study.
    options : mapping
        The arguments of :func:`load_cohort` that it was checked with.

    Returns
    -------
    list of dict
        If the study can be loaded: its other features. Otherwise: folders,
        tables, a feature, a pattern of connectomes or an atlas with which more files
        are found, the order of rows that weights without names fit best, or the visits
        at baseline where most others lack something; none where people or labels are
        at fault, which comes first. If only one column has names of stages, it is the
        label of the changes. If the files have the ids of another column, it is the
        column of ids. If one column numbers the rows of people, it is the column of
        visits.
    """
    # People and labels come first, and ids that are those of files.
    has_foreign_ids = any(
        finding.kind == FOREIGN_IDS for finding in cohort_check.findings
    )
    if has_foreign_ids or not cohort_check.count_texts:
        id_options = _suggest_id_options(cohort_check, options)
        if id_options or has_foreign_ids:
            return id_options
    if not options.get("session_column"):
        visit_options = _suggest_column_options(cohort_check, options, "session_column")
        if visit_options:
            return visit_options
    if not cohort_check.count_texts:
        return _suggest_column_options(cohort_check, options, "label")
    option_search = _OptionSearch(cohort_check.folder, dict(options), cohort_check)
    with suppress(BrainlsapError):
        if not option_search.open_scan_list().scans:  # nobody has these classes
            return []
    if cohort_check.is_sound:
        return option_search.suggest_feature_options()
    return option_search.suggest_reading_options()


def _suggest_id_options(
    cohort_check: CohortCheck, value_by_option: Mapping[str, Any]
) -> list[Options]:
    """Return changes of options with the column of the ids that files have."""
    folder = cohort_check.folder
    if value_by_option.get("id_column") or not folder.is_dir():
        return []
    path_words = {
        path_word
        for file_path in islice(folder.rglob("*"), _MAX_PATHS)
        for path_word in list_path_words(file_path.relative_to(folder).as_posix())
    }
    for table_path in list_people_table_paths(folder):
        cells_by_column: Mapping[str, Sequence[str | None]] = {}
        with suppress(BrainlsapError):
            cells_by_column = read_table_columns(table_path)
        matching_share_by_column: dict[str, float] = {}
        for column_name, column_cells in cells_by_column.items():
            cell_texts = {cell_text for cell_text in column_cells if cell_text}
            n_matches = len(cell_texts & path_words)
            if n_matches >= _MIN_MATCHING_IDS:
                matching_share_by_column[column_name] = n_matches / len(cell_texts)
        for column_name in sorted(
            matching_share_by_column,
            key=lambda name: matching_share_by_column[name],
            reverse=True,
        ):
            id_options: Options = {"id_column": column_name}
            changed_options = {**value_by_option, **id_options}
            changed_check = check_cohort(folder, **changed_options)
            if not changed_check.count_texts or any(
                finding.kind == FOREIGN_IDS for finding in changed_check.findings
            ):
                continue
            if changed_check.is_sound:
                return [id_options]
            further_option_dicts = suggest_options(changed_check, changed_options)
            return [id_options | x for x in further_option_dicts or [{}]]
    return []


def _suggest_column_options(
    cohort_check: CohortCheck, value_by_option: Mapping[str, Any], option_name: str
) -> list[Options]:
    """Return changes of options with the column of stages or visits of a fault."""
    for finding in cohort_check.findings:
        if option_name not in finding.values:
            continue
        column_options: Options = {option_name: finding.values[option_name]}
        changed_options = {**value_by_option, **column_options}
        changed_check = check_cohort(cohort_check.folder, **changed_options)
        suggested_option_dicts = suggest_options(changed_check, changed_options)
        return [
            column_options | option_dict
            for option_dict in suggested_option_dicts or [{}]
        ]
    return []


@dataclass
class _OptionSearch:
    """A search for options by which a study can be read.

    Each step adopts the first change by which most files are found, and the next step
    builds on it.
    """

    folder: Path
    user_options: Options
    """Options that the user gave."""
    first_check: CohortCheck
    """The check of the study with these options."""
    adopted_options: Options = field(default_factory=dict)
    """Options that the search has adopted so far."""
    study_or_error_by_options_text: dict[
        str, tuple[ScanList, FeatureSources] | BrainlsapError
    ] = field(default_factory=dict)
    """Opened studies, or the errors of opening them, by the options used."""
    table_reader: TableReader = field(default_factory=TableReader)
    """Reader of the tables of all opened studies."""

    def __post_init__(self) -> None:
        feature_option_value = self.user_options.get("feature") or "thickness"
        self.feature_names = (
            [feature_option_value]
            if isinstance(feature_option_value, str)
            else list(feature_option_value)
        )
        self.progress = tqdm(
            desc="searching for options that read the files",
            unit="",
            delay=2,
            disable=None,
        )

    def _make_reading_options(self, *option_dicts: Options) -> ReadingOptions:
        """Return the options that say which files are in the study, with changes."""
        value_by_option = {
            option_name: self.user_options[option_name]
            for option_name in ("atlas", *_OPENING_OPTIONS)
            if option_name in self.user_options
        }
        for option_dict in option_dicts:
            opening_option_names = [
                option_name
                for option_name in _OPENING_OPTIONS
                if option_name in option_dict
            ]
            value_by_option |= {
                option_name: option_dict[option_name]
                for option_name in opening_option_names
            }
        return DEFAULT_OPTIONS.change(**value_by_option)

    def open_scan_list(self, *option_dicts: Options) -> ScanList:
        """Return the scans of the study with the user's options and changes."""
        return self._open_scans_and_sources(self._make_reading_options(*option_dicts))[
            0
        ]

    def _open_scans_and_sources(
        self, reading_options: ReadingOptions
    ) -> tuple[ScanList, FeatureSources]:
        """Return the scans and sources of the study; list its files once."""
        options_text = repr(reading_options)
        if options_text not in self.study_or_error_by_options_text:
            self.progress.update()
            try:
                self.study_or_error_by_options_text[options_text] = (
                    open_scans_and_sources(
                        self.folder, reading_options, table_reader=self.table_reader
                    )
                )
            except BrainlsapError as error:
                self.study_or_error_by_options_text[options_text] = error
        scans_and_sources_or_error = self.study_or_error_by_options_text[options_text]
        if isinstance(scans_and_sources_or_error, BrainlsapError):
            raise scans_and_sources_or_error
        return scans_and_sources_or_error

    def adopt_best_options(
        self,
        option_dicts: Iterable[Options],
        score_study: _ScoreFunction,
        min_score: float = 0,
    ) -> list[Options]:
        """Adopt the first change by which most is found; return all such."""
        best_score = 0.0
        best_option_dicts = list[Options]()
        for option_dict in option_dicts:
            reading_options = self._make_reading_options(
                self.adopted_options, option_dict
            )
            score = 0.0
            with suppress(BrainlsapError):
                score = score_study(*self._open_scans_and_sources(reading_options))
            if score > best_score:
                best_score = score
                best_option_dicts = []
            if score and score == best_score >= min_score:
                best_option_dicts.append(option_dict)
        if best_option_dicts:
            self.adopted_options.update(best_option_dicts[0])
        return best_option_dicts

    def suggest_feature_options(self) -> list[Options]:
        """Return the change that reads other features of a sound study, too."""
        folder_option_dicts = self._list_folder_options()
        subcortex_measure = self.user_options.get("subcortex")
        new_feature_names = list[str]()
        for feature_name in _FEATURES:
            # Volumes may stand below the cortex already.
            is_known_feature = (
                feature_name in self.feature_names or feature_name == subcortex_measure
            )
            if not is_known_feature and self.adopt_best_options(
                folder_option_dicts,
                _make_located_share_function([feature_name], proposes_feature=True),
                min_score=1,
            ):
                new_feature_names.append(feature_name)
        if not new_feature_names:
            return []
        self.adopted_options["feature"] = [*self.feature_names, *new_feature_names]
        # The connectomes are known to be sound.
        connectome_options = (
            {}
            if STRENGTH_FEATURE in self.feature_names
            else {"connectome": NO_CONNECTOME}
        )
        changed_options = self.user_options | self.adopted_options | connectome_options
        is_sound = check_cohort(self.folder, **changed_options).is_sound
        return [self.adopted_options] if is_sound else []

    def suggest_reading_options(self) -> list[Options]:
        """Return changes by which a study with faults can be read."""
        self._adopt_features()
        connectome_patterns = self._adopt_connectome_patterns()
        self._adopt_atlas_or_order()
        if len(connectome_patterns) > 1:
            # The weights of the first set alone were compared.
            self.adopted_options.pop("row_order", None)
        if connectome_patterns:
            # Only the user can say which of several sets of matrices is meant.
            return [
                self.adopted_options | {"pattern": connectome_pattern}
                for connectome_pattern in connectome_patterns
            ]
        return [self.adopted_options] if self.adopted_options else []

    def _adopt_features(self) -> None:
        """Adopt folders or tables that hold the features, or another feature."""
        folder_option_dicts = self._list_folder_options()
        table_option_dicts = [
            {"features_table": inner_path.name}
            for inner_path in self._list_study_paths()
            if inner_path.suffix in TABLE_SUFFIXES
            and inner_path.name not in IMPORT_FILES
        ]
        has_feature_option = "feature" in self.user_options
        if self.adopt_best_options(
            [*folder_option_dicts, *table_option_dicts],
            _make_located_share_function(
                self.feature_names, has_feature_option=has_feature_option
            ),
        ):
            return
        for feature_name in (*_FEATURES, "suvr"):  # of a tracer that is not said
            if self.adopt_best_options(
                folder_option_dicts,
                _make_located_share_function([feature_name], proposes_feature=True),
            ):
                self.adopted_options["feature"] = [feature_name]
                return

    def _adopt_connectome_patterns(self) -> list[str]:
        """Adopt files that are the connectomes; return patterns if several sets are."""
        if "connectome" in self.user_options:
            return []
        name_patterns = dict.fromkeys(
            _iter_connectome_patterns(self.folder, self.open_scan_list().scans)
        )
        pattern_option_dicts: list[Options] = [
            {},
            *({"pattern": name_pattern} for name_pattern in name_patterns),
        ]
        best_option_dicts = self.adopt_best_options(
            pattern_option_dicts, _count_scans_with_connectome
        )
        if not best_option_dicts:
            self._adopt_shared_connectome()
            return []
        if not best_option_dicts[0]:  # as many are found without a pattern
            return []
        return [option_dict["pattern"] for option_dict in best_option_dicts]

    def _adopt_shared_connectome(self) -> None:
        """Adopt the only matrix of the study for all participants, or none without any.

        Of several matrices, or one that is named by a participant, each may be the data
        of one person. Only the user can say that one is of all.
        """
        scans = self.open_scan_list().scans
        matrix_names = list(
            islice(
                (
                    inner_path.name
                    for inner_path in self._list_study_paths()
                    if is_matrix_file(inner_path)
                ),
                2,
            )
        )
        if not matrix_names:
            path_by_form = {
                re.sub(r"\d+", "", str(file_path)): file_path
                for file_path in list_files_outside_scans(self.folder)
            }
            # What cannot be read must be corrected, not left out.
            has_matrix = any(map(is_matrix_file, path_by_form.values()))
            matrix_error = find_unreadable_connectome_error(self.folder, scans)
            if not has_matrix and matrix_error is None:
                self.adopted_options["connectome"] = NO_CONNECTOME
        elif len(matrix_names) == 1:
            bare_words = {*map(to_bare_id, re.split(r"[\W_]", matrix_names[0]))}
            bare_ids = (to_bare_id(scan.key[0]) for scan in scans)
            if bare_words.isdisjoint(bare_ids):
                self.adopted_options["connectome"] = matrix_names[0]

    def _adopt_atlas_or_order(self) -> None:
        """Adopt what faults name, atlas or order of rows, or the scans at baseline."""
        changed_check = self.first_check
        if self.adopted_options:  # Otherwise every file would be read again.
            changed_options = self.user_options | self.adopted_options
            changed_check = check_cohort(self.folder, **changed_options)
        for finding in changed_check.findings:
            if "atlas" in finding.values:
                self.adopted_options["atlas"] = finding.values["atlas"]
                return
        best_order_names = {
            finding.values.get("row_order")
            for finding in changed_check.findings
            if finding.kind == UNKNOWN_ORDER
        }
        # The weights of every unnamed matrix must fit one order best.
        if len(best_order_names) == 1 and None not in best_order_names:
            (self.adopted_options["row_order"],) = best_order_names
        if changed_check.is_sound or self.user_options.get("scans", "all") != "all":
            return
        feature_names = self.adopted_options.get("feature") or self.feature_names
        reads_connectomes = "connectome" not in self.user_options | self.adopted_options
        with suppress(BrainlsapError):
            labelled_scan_names = {
                *self.open_scan_list(self.adopted_options).table["scan"]
            }
            # Also those without a label, but not those of other classes.
            reading_options = self._make_reading_options(self.adopted_options)
            if reading_options.classes is None:
                reading_options = reading_options.change(label=None)
            scan_list, feature_sources = open_scans_and_sources(
                self.folder, reading_options, table_reader=self.table_reader
            )
            if _are_later_visits_incomplete(
                scan_list,
                feature_sources,
                labelled_scan_names,
                feature_names,
                reads_connectomes,
            ):
                baseline_options = self.adopted_options | {"scans": "baseline"}
                if check_cohort(
                    self.folder, **self.user_options | baseline_options
                ).is_sound:
                    self.adopted_options = baseline_options

    def _list_study_paths(self) -> list[Path]:
        """Return the files and folders in the study's folder."""
        return sorted(self.folder.glob("[!.]*"))

    def _list_folder_options(self) -> list[Options]:
        """Return options that name folders in the study, or beside it."""
        sibling_paths = sorted(self.folder.resolve().parent.glob("[!.]*"))
        nearby_paths = [*self._list_study_paths(), *sibling_paths]
        # Folders of people are no data sets of their own.
        nearby_folders = [
            nearby_path
            for nearby_path in nearby_paths
            if nearby_path.is_dir() and nearby_path.name[:4] != "sub-"
        ]
        folder_option_dicts: list[Options] = [{}]
        if "subjects_dir" not in self.user_options:
            folder_option_dicts += [
                {"subjects_dir": str(nearby_path)}
                for nearby_path in nearby_folders
                if any(nearby_path.glob("*/stats"))
            ]
        if "derivatives" not in self.user_options:
            folder_option_dicts += [
                {"derivatives": [str(nearby_path)]}
                for nearby_path in nearby_folders
                # What lists people of its own is another study, whose ids may be the
                # same.
                if nearby_path != self.folder.resolve()
                and not list_people_table_paths(nearby_path)
                and any(nearby_path.glob("sub-*"))
            ]
        return folder_option_dicts


def _are_later_visits_incomplete(
    scan_list: ScanList,
    feature_sources: FeatureSources,
    labelled_scan_names: set[str],
    feature_names: Sequence[str],
    reads_connectomes: bool,
) -> bool:
    """Return whether most visits after the first lack a label, or what is read."""
    later_visit_mask = scan_list.table["participant"].duplicated().to_numpy()
    incomplete_scan_mask = ~scan_list.table["scan"].isin(labelled_scan_names).to_numpy()
    for feature_name in feature_names:
        if feature_name == STRENGTH_FEATURE:
            continue
        with suppress(BrainlsapError):
            scan_sources = feature_sources.locate_feature_sources(
                feature_name, scan_list.scans
            )[0]
            incomplete_scan_mask = incomplete_scan_mask | [
                isinstance(source_or_finding, Finding)
                for source_or_finding in scan_sources
            ]
    if reads_connectomes:
        for scan_index, scan in enumerate(scan_list.scans):
            with suppress(CohortError):
                connectome_path = feature_sources.study_files.find_connectome_source(
                    scan, feature_sources.atlas
                )
                incomplete_scan_mask[scan_index] |= connectome_path is None
    return bool(later_visit_mask.any()) and bool(
        incomplete_scan_mask[later_visit_mask].mean() >= 0.5
    )


def _make_located_share_function(
    feature_names: Sequence[str],
    has_feature_option: bool = False,
    proposes_feature: bool = False,
) -> _ScoreFunction:
    """Return a measure of how many scans' features are found.

    `proposes_feature` says that the user is asked whether the feature is the right one.
    """
    feature_names = [
        feature_name
        for feature_name in feature_names
        if feature_name != STRENGTH_FEATURE
    ]

    def compute_located_share(
        scan_list: ScanList, feature_sources: FeatureSources
    ) -> float:
        scan_sources: list[Source] = []
        feature_sources.has_named_features = has_feature_option
        feature_sources.accepts_translated_measures = proposes_feature
        for feature_name in feature_names:
            with suppress(BrainlsapError):
                scan_sources += feature_sources.locate_feature_sources(
                    feature_name, scan_list.scans
                )[0]
        n_located_sources = sum(
            not isinstance(source_or_finding, Finding)
            for source_or_finding in scan_sources
        )
        n_expected_sources = len(feature_names) * len(scan_list.scans)
        return n_located_sources / n_expected_sources if n_expected_sources else 1.0

    return compute_located_share


def _count_scans_with_connectome(
    scan_list: ScanList, feature_sources: FeatureSources
) -> float:
    """Return the number of scans with a connectome."""
    n_connectomes = 0
    for scan in scan_list.scans:
        with suppress(CohortError):
            n_connectomes += (
                feature_sources.study_files.find_connectome_source(
                    scan, feature_sources.atlas
                )
                is not None
            )
    return n_connectomes


def _iter_connectome_patterns(folder: Path, scans: Sequence[Scan]) -> Iterator[str]:
    """Make patterns of matrices: in the folder of a scan, or named by scans."""
    endings_without_matrix = set[str]()
    for scan in scans:
        participant_id, session_id = scan.key
        path_by_name_ending = {
            scan_path.name.split(session_id or participant_id)[-1]: scan_path
            for scan_path in scan.paths
        }
        endings_with_matrix = [
            name_ending
            for name_ending, scan_path in path_by_name_ending.items()
            if name_ending not in endings_without_matrix and is_matrix_file(scan_path)
        ]
        yield from (f"*{name_ending}" for name_ending in endings_with_matrix)
        if endings_with_matrix:
            break
        endings_without_matrix |= {*path_by_name_ending}
    for path_pattern in count_files_by_path_pattern(folder, scans):
        session_pattern = _A_VISIT.sub(r"\1{session}", path_pattern)
        if _count_matching_files(folder, path_pattern) != _count_matching_files(
            folder, session_pattern
        ):
            yield session_pattern
        yield path_pattern


def _count_matching_files(folder: Path, path_pattern: str) -> int:
    """Return the number of files that match a pattern with fields."""
    return len([*folder.glob(re.sub(r"\{.*?\}", "*", path_pattern))])
