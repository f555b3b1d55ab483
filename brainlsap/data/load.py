"""From a study's folder to a cohort: list, read, align, gather faults.

Nothing is refused at the first fault: whatever keeps the cohort from being loaded is
gathered, what many scans share is said once, and all of it is raised in one error.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from brainlsap import __version__
from brainlsap.atlas import Atlas, available_atlases, load_atlas
from brainlsap.data.cohort import Cohort, find_missing_code_faults
from brainlsap.data.connectome_stacks import ConnectomeStack, read_connectome_stack
from brainlsap.data.connectomes import (
    NEGATIVE,
    SYMMETRIZE,
    ConnectomeFile,
    is_matrix_file,
    read_connectome,
)
from brainlsap.data.features import (
    TRUTH_FILE,
    FeatureSources,
    Source,
    TableReader,
    read_feature,
)
from brainlsap.data.find_files import (
    CONNECTOME_PATTERNS,
    Scan,
    ScanIdentity,
    StudyFiles,
    count_files_by_path_pattern,
    find_unreadable_connectome_error,
    list_files_outside_scans,
    to_bare_id,
)
from brainlsap.data.flow import (
    NO_IMAGE,
    find_fault_by_scan_or_person,
    left_out_table,
    make_left_out_notes,
    read_place_by_excluded_id,
)
from brainlsap.data.id_columns import (
    UserColumns,
    find_user_column_name,
    id_column_sentence,
)
from brainlsap.data.measures import (
    KNOWN_MEASURE_NAMES,
    SUBCORTEX,
    fill_subcortex_with_notes,
    get_measure_record,
)
from brainlsap.data.order_check import OrderCheck, UnknownOrderError
from brainlsap.data.participants import (
    ScanList,
    count_people_with_changes,
    list_facts_and_findings,
    list_people_table_paths,
    list_scans,
)
from brainlsap.data.reading_options import NO_CONNECTOME, ReadingOptions
from brainlsap.data.region_lists import read_row_names
from brainlsap.data.region_tables import TableContents
from brainlsap.exceptions import (
    BrainlsapError,
    CohortError,
    ParameterError,
    check_choice,
    convert_reading_errors,
)
from brainlsap.findings import (
    ASSUMED,
    CHANGED_PERSON,
    FAULT,
    FOREIGN_IDS,
    LEFT_OUT,
    ROW_ORDER,
    SHARED_CONNECTOME,
    Finding,
    check_are_faults,
    list_grouped_finding_texts,
    make_findings,
)
from brainlsap.text import (
    count_text,
    format_leave_out_advice,
    join_with_commas,
    named_counts_text,
    option_text,
)

STRENGTH_FEATURE = "strength"
# The date in the name of a file, behind its folders.
_DATE_IN_NAME = re.compile(r"(?<!\d)(?:19|20)\d\d-\d\d-\d\d(?!\d)(?=[^/]*$)")


class LabelledScans(NamedTuple):
    """The scans of a study, and its classes in order."""

    table: pd.DataFrame
    label_name: str
    classes: tuple[str, ...]

    def list_count_texts(self) -> list[str]:
        """Count people, scans, classes and covariates."""
        return list_people_count_texts(self.table, self.label_name, self.classes)


class RefusedStudyError(CohortError):
    """A study that cannot be loaded, with what was found and noted in it.

    Attributes
    ----------
    count_texts : list of str
        People, scans and files, counted.
    findings : tuple of Finding
        Every note and every fault, one each.
    labelled_scans : LabelledScans
        The scans that were listed.
    """

    count_texts: list[str]
    findings: tuple[Finding, ...]
    labelled_scans: LabelledScans

    @classmethod
    def from_findings(
        cls,
        folder: str | Path,
        findings: Sequence[Finding],
        count_texts: Sequence[str],
        labelled_scans: LabelledScans,
    ) -> "RefusedStudyError":
        """Return the error with the faults of a study in one list."""
        fault_findings = [finding for finding in findings if finding.severity == FAULT]
        fault_texts = list_grouped_finding_texts(fault_findings, folder)
        faults_text = count_text(len(fault_texts), "fault")
        refused_study_error = cls(
            f"{folder} cannot be loaded because of {faults_text}", fault_texts
        )
        refused_study_error.count_texts = [*count_texts]
        refused_study_error.findings = tuple(findings)
        refused_study_error.labelled_scans = labelled_scans
        return refused_study_error

    def with_findings(
        self, folder: str | Path, findings: Sequence[Finding]
    ) -> "RefusedStudyError":
        """Return the error of the same study with other notes and faults."""
        return self.from_findings(
            folder, findings, self.count_texts, self.labelled_scans
        )


def load_cohort(
    folder: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    feature: str | Sequence[str] | None = None,
    label: str | None = "diagnosis",
    *,
    classes: Sequence[str] | None = None,
    connectome: str | Path | np.ndarray | pd.DataFrame | None = None,
    subjects_dir: str | Path | None = None,
    derivatives: Sequence[str | Path] = (),
    pattern: str | Mapping[str, str] | None = None,
    scans: str = "all",
    subcortex: str = "absent",
    features_table: str | Path | Sequence[str | Path] | None = None,
    id_column: str | Sequence[str] | None = None,
    session_column: str | Sequence[str] | None = None,
    labels: str | Path | Sequence[str] | None = None,
    row_order: str | None = None,
    measure: str | None = None,
    symmetrize: str = "refuse",
    negative: str = "refuse",
    frames: tuple[float, float] | None = None,
    reference: str | Path | None = None,
    exclude: str | Path | Sequence[str] | None = None,
    skip_faulty: bool = False,
    verbose: bool = False,
) -> Cohort:
    """Read a cohort: people, labels, a connectome and features for every scan.

    Expected is a BIDS-like tree::

        participants.tsv              participant_id, label, age, sex, site ...
        sub-01/sub-01_sessions.tsv    optional: session_id, label of every visit
        sub-01/[ses-M00/]dwi/*_connectivity.csv
        sub-01/[ses-M00/]pet/*_trc-18FFDG_*_regions.tsv
        derivatives/freesurfer/sub-01[_ses-M00]/stats/lh.aparc.a2009s.stats ...

    Features come from tables of regions beside the scan, else from FreeSurfer's
    stats, else from tables of many scans in the cohort's folder. A folder without a
    table of people may hold one such table with labels and regions in it.

    Parameters
    ----------
    folder : str or Path
        The cohort's folder, as above. People may also stand in `participants` or
        `subjects` with the ending `.csv` or `.xlsx`.
    atlas : str, Path or Atlas
        As :func:`.load_atlas` takes it.
    feature : str or sequence of str, optional
        `thickness` (default, where stats or tables say so), `volume`, `area`
        (FreeSurfer), `fdg`, `amyloid`, `tau` (PET), `strength` (sum of the connectome's
        weights to other regions), or the name of a column in tables, or of a table's
        file (`myelin.csv`).
    label : str or None
        Column that is to be predicted; read as text. With None no label is read:
        every scan is "unlabelled", as of new people for whom a model predicts.
    classes : sequence of str, optional
        Labels in order; scans with another label are left out, and this is noted.
    connectome : path, array of shape (n_rois, n_rois) or DataFrame, optional
        One connectome for everybody; or one file with those of all scans, an array of
        three axes with a list of ids in it, or in `<name>_ids.txt`, `ids.txt` or
        `subjects.txt` beside it. By default every scan has its own file. "none" reads
        none: networks are made of the features of the training people.
    subjects_dir : path, optional
        Folder of FreeSurfer's subjects, if they are not below the study folder.
    derivatives : sequence of path
        Further data sets to look through.
    pattern : str or mapping, optional
        Pattern of connectome files, or patterns by `connectome`, feature and
        `freesurfer`, where the names leave a choice. For connectomes that lie in one
        folder a path with fields, such as `sc/{participant}_{session}.csv`.
    scans : {"all", "baseline"}
        All visits; or of every person the one that the table calls baseline, else the
        earliest listed. Who was not scanned then is left out, and this is noted.
    subcortex : {"absent", "mean", "volume"}
        Values of the subcortex for features of the cortical surface: none, the mean
        of its hemisphere's cortex, or its volume.
    features_table : path or sequence of path, optional
        The only tables in which features are looked for.
    id_column, session_column : str or sequence of str, optional
        Heads of the columns that name people and their visits, in the table of people
        and in those of features; of several the first that a table has. A table that
        has none is read as by default: by a column headed `participant_id`, `subject`,
        `eid` ..., and one headed `session_id`, `visit` .... A column that only counts
        rows names nobody, and a table is refused where two columns could.
    labels, row_order, measure, symmetrize, negative : optional
        Names or order of rows that have none, which matrix of several to take, and
        what becomes of asymmetric ones and of negative weights, as
        :func:`.read_connectome` takes them. The order of rows is checked on the mean
        of all connectomes.
    frames, reference : optional
        Window of frames and reference region of PET, as :func:`.read_feature` takes
        them.
    exclude : str, Path or sequence of str, optional
        People or scans to leave out: ids, with commas in one text, or a file with ids,
        either a list or a table with a column of ids. An excluded baseline visit is
        not replaced.
    skip_faulty : bool
        Whether scans with a fault of their own, such as a missing or damaged file or
        no label, are left out and listed, in place of a refusal. The study is then
        read again without them. Faults that are not of single scans are raised.
    verbose : bool
        Whether to show bars on standard error.

    Returns
    -------
    Cohort
        Scans in the order of the table of people and of time; `left_out` has all
        others of the tables, with what became of them. Where the folder was
        simulated, its `truth.tsv` is the cohort's truth.

    Raises
    ------
    CohortError
        With every fault of every scan in one list.
    ParameterError, RegionNameError
        Where an argument cannot be used.
    """
    reading_options = ReadingOptions(
        folder=folder,
        atlas=atlas,
        feature=feature,
        label=label,
        classes=classes,
        connectome=connectome,
        subjects_dir=subjects_dir,
        derivatives=derivatives,
        pattern=pattern,
        scans=scans,
        subcortex=subcortex,
        features_table=features_table,
        id_column=id_column,
        session_column=session_column,
        labels=labels,
        row_order=row_order,
        measure=measure,
        symmetrize=symmetrize,
        negative=negative,
        frames=frames,
        reference=reference,
        exclude=exclude,
        skip_faulty=skip_faulty,
    )
    return read_folder(folder, reading_options, verbose=verbose)


def read_folder(
    folder: str | Path,
    reading_options: ReadingOptions,
    *,
    copied_label_name: str | None = None,
    verbose: bool = False,
) -> Cohort:
    """Read a cohort from a study's folder, as :func:`load_cohort` does.

    `copied_label_name` is as of :func:`open_scans_and_sources`.
    """
    skipped_fault_by_scan_or_person = dict[str, Finding]()
    while True:
        try:
            return _read_without_faulty(
                folder,
                reading_options,
                skipped_fault_by_scan_or_person,
                copied_label_name=copied_label_name,
                verbose=verbose,
            )
        except RefusedStudyError as error:
            if not reading_options.skip_faulty:
                raise
            # Read again: what many scans are compared in may change without these.
            new_fault_by_scan_or_person = find_fault_by_scan_or_person(error.findings)
            if (
                new_fault_by_scan_or_person.keys()
                <= skipped_fault_by_scan_or_person.keys()
            ):
                raise
            skipped_fault_by_scan_or_person = (
                new_fault_by_scan_or_person | skipped_fault_by_scan_or_person
            )


def _read_without_faulty(
    folder: str | Path,
    reading_options: ReadingOptions,
    skipped_fault_by_scan_or_person: Mapping[str, Finding],
    *,
    copied_label_name: str | None,
    verbose: bool,
) -> Cohort:
    """Read a cohort without the scans and people that have these faults."""
    for option_name, user_choice, allowed_choices in (
        ("scans", reading_options.scans, ("all", "baseline")),
        ("subcortex", reading_options.subcortex, SUBCORTEX),
        ("symmetrize", reading_options.symmetrize, SYMMETRIZE),
        ("negative", reading_options.negative, NEGATIVE),
    ):
        check_choice(option_name, user_choice, allowed_choices)
    feature_names = _parse_feature_names(
        reading_options.feature, reading_options.subcortex
    )
    atlas = load_atlas(reading_options.atlas)
    folder = Path(folder)
    if folder.is_file():
        raise CohortError(
            "this is a file; expected the folder of a study, or a cohort file (.h5) "
            "that Cohort.save wrote",
            path=folder,
            advice=f"Give the folder that contains the tables, for example "
            f"{str(folder.parent)!r}. In Python, Cohort.load reads a cohort file",
        )
    if not folder.is_dir():
        raise CohortError("the folder does not exist. Check the path", path=folder)

    # List the scans of the study and their files.
    scan_list, feature_sources = open_scans_and_sources(
        folder,
        reading_options.change(atlas=atlas),
        skipped_fault_by_scan_or_person,
        copied_label_name=copied_label_name,
    )
    feature_sources.has_named_features = reading_options.feature is not None
    feature_sources.feature_names = feature_names
    # None: bars on terminals alone.
    scan_list.progress_bar_options = {
        "unit": "scan",
        "disable": None if verbose else True,
    }

    # Read the arrays, scan by scan.
    matrix_reading_options = reading_options
    if isinstance(reading_options.labels, str | Path):
        row_names = read_row_names(
            feature_sources.study_files.resolve_path(reading_options.labels)
        )
        matrix_reading_options = reading_options.change(labels=row_names)
    W, has_own_connectomes = _load_weights_and_ownership(
        feature_sources, matrix_reading_options, scan_list
    )
    X = _read_feature_array(
        feature_names, feature_sources, W, reading_options, scan_list
    )
    scan_names = [scan.name for scan in scan_list.scans]
    scan_list.fault_findings += find_missing_code_faults(
        X, scan_names, atlas.names, feature_names
    )

    if not scan_list.fault_findings:
        scan_list.fault_findings += _find_empty_scan_faults(X, scan_names)
    scan_list.note_findings += scan_list.make_counted_notes()
    scan_list.note_findings += make_left_out_notes(scan_list.left_out_scans)
    if scan_list.fault_findings:
        raise _make_refused_study_error(folder, scan_list, feature_sources)
    recorded_reading_options = ReadingOptions.from_jsonable(
        reading_options.change(
            folder=folder.resolve(),
            atlas=_get_atlas_name_or_folder(reading_options.atlas, atlas),
        ).to_jsonable()
    )
    connectome_origin = recorded_reading_options.connectome or "array"
    W.flags.writeable = X.flags.writeable = False
    return Cohort(
        connectomes=W,
        features=X,
        table=scan_list.table,
        atlas=atlas,
        feature_names=feature_names,
        classes=scan_list.classes,
        classes_ordered=scan_list.classes_ordered,
        label_name=scan_list.label_name or "none",
        findings=tuple(scan_list.note_findings),
        provenance={
            "folder": str(folder.resolve()),
            "atlas": atlas.name,
            "connectome": "one per scan" if has_own_connectomes else connectome_origin,
            "scans": reading_options.scans,
            "subcortex": reading_options.subcortex,
            "brainlsap": __version__,
        },
        reading_options=recorded_reading_options,
        truth=_read_planted_region_table(folder, atlas),
        left_out=left_out_table(scan_list.left_out_scans),
    )


def _find_empty_scan_faults(X: np.ndarray, scan_names: Sequence[str]) -> list[Finding]:
    """Return a fault for each scan without any value, where others have some."""
    empty_scan_mask = np.isnan(X).all(axis=(1, 2))
    if empty_scan_mask.all():
        return []
    message = (
        "every feature value is missing. Add the values, or "
        f"{format_leave_out_advice()}"
    )
    return [
        Finding(message, FAULT, kind=NO_IMAGE, scan=scan_name)
        for scan_name, has_no_value in zip(scan_names, empty_scan_mask, strict=True)
        if has_no_value
    ]


def _parse_feature_names(
    feature: str | Sequence[str] | None, subcortex_policy: str
) -> tuple[str, ...]:
    """Return the names of the features, thickness by default."""
    if feature is None:
        feature_names: tuple[str, ...] = ("thickness",)
    else:
        user_feature_names = (feature,) if isinstance(feature, str) else tuple(feature)
        # FDG is fdg; names of columns of the user are read as they are written.
        feature_names = tuple(
            str(feature_name).lower()
            if str(feature_name).lower() in KNOWN_MEASURE_NAMES
            else feature_name
            for feature_name in user_feature_names
        )
    if (
        not feature_names
        or len(set(feature_names)) < len(feature_names)
        or not all(feature_names)
    ):
        raise ParameterError(
            f"feature must be one name or a list of different names; got {feature!r}."
        )
    if subcortex_policy == "volume" and "volume" in feature_names:
        raise ParameterError(
            f"{option_text('subcortex', 'volume')} cannot be combined with the feature "
            "'volume', because this feature already contains the volumes of "
            f"subcortical regions. Leave {option_text('subcortex')} out."
        )
    return feature_names


def _get_atlas_name_or_folder(
    atlas: str | Path | Atlas, loaded_atlas: Atlas
) -> str | Path:
    """Return the name of a shipped atlas, or the folder of another."""
    is_shipped = loaded_atlas.name in available_atlases()
    if isinstance(atlas, str | Path) and not is_shipped:
        return Path(atlas).resolve()
    return loaded_atlas.name


def _read_planted_region_table(folder: Path, atlas: Atlas) -> pd.DataFrame | None:
    """Return the planted regions of a simulated study, if they are of this atlas."""
    truth_path = folder / TRUTH_FILE
    if not truth_path.is_file():
        return None
    with convert_reading_errors(truth_path, "a table of region, seed and effect"):
        truth_table = pd.read_csv(
            truth_path, sep="\t", dtype={"region": object, "seed": bool}
        )
        if set(truth_table["region"]) != set(atlas.names):
            return None
        return truth_table.set_index("region").loc[list(atlas.names)].reset_index()


def _list_faults_without_consequences(scan_list: ScanList) -> list[Finding]:
    """Return the faults of a study without those that another fault explains.

    If two people have one ID, their rows are read as visits of one person. Files and
    rows of such visits are not found.
    """
    changed_person_ids = {
        fault_finding.participant
        for fault_finding in scan_list.fault_findings
        if fault_finding.kind == CHANGED_PERSON
    }
    person_by_scan = dict(
        zip(scan_list.table["scan"], scan_list.table["participant"], strict=True)
    )
    return [
        fault_finding
        for fault_finding in scan_list.fault_findings
        if fault_finding.kind != NO_IMAGE
        or person_by_scan.get(fault_finding.scan) not in changed_person_ids
    ]


def _make_refused_study_error(
    folder: Path, scan_list: ScanList, feature_sources: FeatureSources
) -> RefusedStudyError:
    """Return the error with every fault of a study, and with what was found in it."""
    check_are_faults(scan_list.fault_findings)
    fault_findings = _list_faults_without_consequences(scan_list)
    if feature_sources.id_mismatch_finding is not None:
        # IDs of other people explain why nobody has a connectome.
        other_fault_findings = [
            fault_finding
            for fault_finding in fault_findings
            if fault_finding.kind != NO_IMAGE or fault_finding.scan
        ]
        fault_findings = other_fault_findings
        # The fault of lost zeros says the same, and names a file.
        if all(x.kind != FOREIGN_IDS for x in other_fault_findings):
            fault_findings = [feature_sources.id_mismatch_finding, *fault_findings]
    labelled_scans = LabelledScans(
        scan_list.table, scan_list.label_name or "none", scan_list.classes
    )
    return RefusedStudyError.from_findings(
        folder,
        [*scan_list.note_findings, *fault_findings],
        count_texts=[*labelled_scans.list_count_texts(), *scan_list.count_texts],
        labelled_scans=labelled_scans,
    )


def open_scans_and_sources(
    folder: str | Path,
    reading_options: ReadingOptions,
    skipped_fault_by_scan_or_person: Mapping[str, Finding] | None = None,
    *,
    copied_label_name: str | None = None,
    table_reader: TableReader | None = None,
) -> tuple[ScanList, FeatureSources]:
    """List the scans of a study, their files, and what features can be read from.

    Scans and people with a fault in `skipped_fault_by_scan_or_person` are left out.
    `copied_label_name` is a column by which the table of people is found if the scans
    need no label; no table need have it. `table_reader` is that of a search which
    opens the study several times.
    """
    folder = Path(folder)
    table_reader = table_reader or TableReader()
    label_name = reading_options.label
    people_column_name = copied_label_name if label_name is None else label_name
    loaded_atlas = load_atlas(reading_options.atlas)
    table_paths = reading_options.features_table
    if isinstance(table_paths, str | Path):
        table_paths = [table_paths]
    people_paths = list_people_table_paths(folder)
    user_columns = UserColumns.from_options(
        reading_options.id_column, reading_options.session_column
    )
    sheet_contents_list = list[TableContents]()
    if people_paths:
        sheet_contents_list = table_reader.read_sheets_and_errors(
            people_paths[0], loaded_atlas, user_columns
        )[0]
    # Of several sheets, that with the label.
    people_contents_list = [
        sheet_contents
        for sheet_contents in sheet_contents_list
        if sheet_contents.has_label_column(people_column_name)
    ][:1] or sheet_contents_list[:1]
    people_identities = [
        scan_identity
        for candidate_contents in people_contents_list
        for scan_identity in candidate_contents.scan_identities
    ]
    make_study_files = partial(
        StudyFiles,
        folder,
        derivatives=reading_options.derivatives,
        subjects_dir=reading_options.subjects_dir,
        pattern=reading_options.pattern,
    )
    study_files = make_study_files(people_names=people_identities)
    feature_sources = FeatureSources(
        study_files,
        loaded_atlas,
        reading_options.subcortex,
        table_paths,
        user_columns=user_columns,
        table_reader=table_reader,
    )
    if not people_contents_list:
        people_feature_sources, people_column_name = _choose_sources_and_column(
            feature_sources, label_name, people_column_name
        )
        sheet_contents_list = people_feature_sources.table_contents_list
        people_contents_list = [
            people_feature_sources.find_people_contents(people_column_name)
        ]
        people_identities = people_contents_list[0].scan_identities
        feature_sources.study_files = make_study_files(people_names=people_identities)
    people_contents = people_contents_list[0]
    feature_sources.people_contents = people_contents
    feature_sources.people_sheet_contents = sheet_contents_list
    feature_sources.people_column_names = {*people_contents.text_table}
    _check_user_columns(feature_sources)
    facts_by_person_and_visit, people_findings = list_facts_and_findings(
        people_contents
    )
    scan_list = list_scans(
        facts_by_person_and_visit,
        feature_sources,
        label_name,
        people_contents.name_and_sheet,
        reading_options.classes,
        reading_options.scans,
        read_place_by_excluded_id(reading_options.exclude),
        skipped_fault_by_scan_or_person,
    )
    listed_person_ids = {*scan_list.table["participant"]}
    scan_list.fault_findings[:0] = [
        fault_finding
        for fault_finding in people_findings
        if not fault_finding.participant
        or fault_finding.participant in listed_person_ids
    ]
    if people_paths and (
        people_contents.sheet_name or people_contents.path != people_paths[0]
    ):
        scan_list.note_findings.insert(
            0, Finding(f"participants were read from {people_contents.name_and_sheet}")
        )
    scan_list.note_findings += [
        _make_unused_sheet_note(sheet_contents, label_name)
        for sheet_contents in sheet_contents_list
        if sheet_contents is not people_contents
        and not (
            sheet_contents.values_by_measure_region
            or sheet_contents.text_table.empty
            or sheet_contents.has_label_column(label_name)
        )
    ]
    if feature_sources.study_files.study_name_by_subject:
        study_name_by_subject = feature_sources.study_files.study_name_by_subject
        alias_texts = [
            f"{study_name} ({subject_name})"
            for subject_name, study_name in study_name_by_subject.items()
        ]
        message = (
            "FreeSurfer folders with a suffix in their names were assigned to "
            "participants:"
        )
        scan_list.note_findings.append(
            Finding(message, kind=ASSUMED, people=tuple(alias_texts), max_people=3)
        )
    _add_unlisted_people_notes(scan_list, feature_sources, facts_by_person_and_visit)
    return scan_list, feature_sources


def _choose_sources_and_column(
    feature_sources: FeatureSources,
    label_name: str | None,
    required_column_name: str | None,
) -> tuple[FeatureSources, str | None]:
    """Return the places searched for the table of people, and its required column.

    The tables that the user named for features come first. They need not contain the
    facts about people: then every table of the folder is looked at.
    `required_column_name` is the label, or else a column by which the table is
    recognised.
    """
    all_feature_sources = feature_sources
    if feature_sources.table_paths is not None:
        all_feature_sources = replace(feature_sources, table_paths=None)
    for candidate_feature_sources in (feature_sources, all_feature_sources):
        has_people_column = any(
            required_column_name is not None
            and table_contents.has_label_column(required_column_name)
            for table_contents in candidate_feature_sources.table_contents_list
        )
        if has_people_column:
            return candidate_feature_sources, required_column_name
    if label_name is not None:
        return all_feature_sources, label_name
    has_facts = any(
        not table_contents.text_table.empty
        for table_contents in feature_sources.table_contents_list
    )
    other_table_paths = {
        table_contents.path
        for table_contents in all_feature_sources.table_contents_list
        if not (
            table_contents.text_table.empty or table_contents.values_by_measure_region
        )
    }
    if has_facts or len(other_table_paths) != 1:
        return feature_sources, None
    return all_feature_sources, None


def _make_unused_sheet_note(
    sheet_contents: TableContents, label_name: str | None
) -> Finding:
    """Return the note that a sheet is left out, since it has no labels."""
    column_names_text = ", ".join([*sheet_contents.text_table][:5])
    message = (
        f"left out, because it has no column {label_name!r}; its columns are "
        f"{column_names_text}"
    )
    return Finding(message, LEFT_OUT, path=sheet_contents.name_and_sheet)


def _add_unlisted_people_notes(
    scan_list: ScanList,
    feature_sources: FeatureSources,
    listed_person_ids: Collection[str],
) -> None:
    """Note people who have files and are not listed, and whether nobody listed has."""
    people_contents = feature_sources.people_contents
    ids_with_files = {
        participant_id
        for participant_id, _ in feature_sources.study_files.files_by_visit
    }
    ids_with_files |= {*feature_sources.study_files.subjects_by_person}
    unlisted_ids = sorted(ids_with_files - {*listed_person_ids})
    if not unlisted_ids or people_contents is None:
        return
    table_name = people_contents.name_and_sheet
    message = (
        "files and folders were left out, because their participants are not in "
        f"{table_name}:"
    )
    scan_list.note_findings.append(
        Finding(message, LEFT_OUT, people=tuple(unlisted_ids))
    )
    listed_id_by_bare_id = {
        to_bare_id(listed_id): listed_id
        for listed_id in sorted({*listed_person_ids} - ids_with_files)
    }
    scan_list.note_findings += [
        Finding(
            f"no files have the ID {listed_id_by_bare_id[to_bare_id(file_id)]!r} of "
            f"{table_name}, but some files have the similar ID {file_id!r}. If both "
            "IDs belong to one person, write the ID in the table as in the file names"
        )
        for file_id in unlisted_ids
        if to_bare_id(file_id) in listed_id_by_bare_id
    ][:5]
    if ids_with_files.isdisjoint(listed_person_ids):
        first_listed_id = people_contents.scan_identities[0].participant
        first_file_id = unlisted_ids[0]
        zeros_advice = _make_zeros_advice(
            table_name, unlisted_ids[0], people_contents.id_column_name
        )
        advice = f"{zeros_advice}. Write visits in a column session_id"
        similar_ids = [x for x in unlisted_ids if to_bare_id(x) in listed_id_by_bare_id]
        if 2 * len(similar_ids) > len(unlisted_ids):
            # The IDs differ in leading zeros, and numbers in names may be days.
            first_file_id = similar_ids[0]
            first_listed_id = listed_id_by_bare_id[to_bare_id(first_file_id)]
            advice = zeros_advice
        elif pattern := _find_connectome_pattern(
            feature_sources, people_contents.scan_identities
        ):
            advice = f"Give the place of the ID with {option_text('pattern', pattern)}"
        advice += f". {id_column_sentence(people_contents.id_column_name)}"
        feature_sources.id_mismatch_finding = Finding(
            "no person in the table has files. The IDs in the table look like "
            f"{first_listed_id!r}, and the IDs of files and folders like "
            f"{first_file_id!r}",
            FAULT,
            kind=FOREIGN_IDS,
            path=table_name,
            advice=advice,
        )


def _make_zeros_advice(table_name: str, file_id: str, id_column_name: str = "") -> str:
    """Return the advice to write the IDs of a table as in files, with their zeros."""
    advice = (
        f"Write the IDs in {table_name} exactly as in the file names (Excel drops the "
        "zeros of 001 unless the column is text)"
    )
    if not re.fullmatch(r"0\d+", file_id):
        return advice
    number_format = f"{{:0{len(file_id)}d}}"
    return (
        f"{advice}. In pandas, table[{id_column_name or 'id'!r}]"
        f'.map("{number_format}".format) restores the zeros of {file_id}'
    )


def _find_connectome_pattern(
    feature_sources: FeatureSources, scan_identities: Sequence[ScanIdentity]
) -> str:
    """Return a pattern of the matrices with the ID of a scan in their name, or "".

    The ID must stand alone: 1 is not the ID of 001_sc.csv. A visit of the tables of
    values becomes {session}, because the pattern must fit all visits.
    """
    study_files = feature_sources.study_files
    visits_by_person = feature_sources.session_by_person_and_visit.values()
    session_ids = sorted(map(re.escape, {*chain(*visits_by_person)})) or ["(?!)"]
    session_pattern = rf"(?<![^\W_])({'|'.join(session_ids)})(?![^\W_])"
    matrix_paths = [
        file_path
        for file_paths in study_files.files_by_visit.values()
        for file_path in file_paths
        if is_matrix_file(file_path) and file_path.is_relative_to(study_files.folder)
    ]
    for scan_identity in scan_identities:
        id_pattern = rf"(?<![^\W_]){re.escape(scan_identity.participant)}(?![^\W_])"
        for matrix_path in matrix_paths:
            if re.search(id_pattern, matrix_path.name):
                path_text = matrix_path.relative_to(study_files.folder).as_posix()
                path_text = re.sub(id_pattern, "{participant}", path_text)
                return re.sub(session_pattern, "{session}", path_text)
    return ""


def _check_user_columns(feature_sources: FeatureSources) -> None:
    """Raise where the columns that the user named are not there."""
    people_contents, user_columns = (
        feature_sources.people_contents,
        feature_sources.user_columns,
    )
    if people_contents is None:
        return
    column_names = [people_contents.id_column_name, *people_contents.text_table]
    if people_contents.session_column_name:
        column_names.insert(1, people_contents.session_column_name)
    if (
        user_columns.id_column_names
        and find_user_column_name(
            [people_contents.id_column_name], user_columns.id_column_names
        )
        is None
    ):
        raise CohortError(
            f"{option_text('id_column')} names the column "
            f"{join_with_commas(map(repr, user_columns.id_column_names))}, but the "
            "table does not contain this column. The columns of the table are "
            f"{join_with_commas(column_names, 8)}",
            path=people_contents.path_and_sheet,
        )
    if not user_columns.session_column_names:
        return
    column_names += [
        table_contents.session_column_name
        for table_contents in (people_contents, *feature_sources.table_contents_list)
        if table_contents.session_column_name
    ]
    if find_user_column_name(column_names, user_columns.session_column_names) is None:
        raise CohortError(
            f"{option_text('session_column')} names the column "
            f"{join_with_commas(map(repr, user_columns.session_column_names))}, but "
            "the table does not contain this column. The columns of the table are "
            f"{join_with_commas(dict.fromkeys(column_names), 8)}",
            path=people_contents.path_and_sheet,
        )


def _load_weights_and_ownership(
    feature_sources: FeatureSources,
    reading_options: ReadingOptions,
    scan_list: ScanList,
) -> tuple[np.ndarray, bool]:
    """Return the connectomes of all scans, and whether every scan has its own.

    A connectome for everybody is broadcast.
    """
    n_scans, n_rois = len(scan_list.scans), len(feature_sources.atlas.names)
    shared_matrix = np.zeros((n_rois, n_rois), dtype=np.float32)
    connectome_stack: ConnectomeStack | None = None
    try:
        connectome_source = reading_options.connectome
        if (
            isinstance(connectome_source, str | Path)
            and connectome_source != NO_CONNECTOME
        ):
            connectome_source = feature_sources.study_files.resolve_path(
                connectome_source
            )
            scan_keys = [scan.key for scan in scan_list.scans]
            # With one row for each person, only the tables of values name the visits.
            visits_by_person = feature_sources.session_by_person_and_visit.values()
            connectome_stack = read_connectome_stack(
                connectome_source,
                feature_sources.atlas,
                feature_sources.study_files.with_visits(chain(*visits_by_person)),
                scan_keys,
                reading_options.labels,
                reading_options.row_order,
            )
        if isinstance(connectome_source, str):
            message = (
                "no connectome was read, so models estimate one connectome from the "
                "features of the training people"
            )
            scan_list.note_findings.append(Finding(message))
        elif connectome_source is not None and connectome_stack is None:
            shared_matrix, matrix_notes = _read_connectome_file(
                connectome_source, feature_sources.atlas, reading_options
            )
            scan_list.note_findings.append(
                Finding(
                    "one connectome is used for all participants",
                    kind=SHARED_CONNECTOME,
                )
            )
            scan_list.add_notes(matrix_notes, prefix_text="the connectome")
    except BrainlsapError as error:
        scan_list.add_fault(error)
    if reading_options.connectome is None or connectome_stack is not None:
        return _read_weight_array(
            feature_sources, reading_options, scan_list, connectome_stack
        ), True
    return np.broadcast_to(shared_matrix, (n_scans, n_rois, n_rois)), False


def _read_connectome_file(
    matrix_source: str | Path | np.ndarray | pd.DataFrame,
    atlas: Atlas,
    reading_options: ReadingOptions,
    order_check: OrderCheck | None = None,
) -> ConnectomeFile:
    """Read one connectome with the options of the study."""
    return read_connectome(
        matrix_source,
        atlas,
        measure=reading_options.measure,
        labels=reading_options.labels,
        row_order=reading_options.row_order,
        symmetrize=reading_options.symmetrize,
        negative=reading_options.negative,
        order_check=order_check,
    )


def _read_weight_array(
    feature_sources: FeatureSources,
    reading_options: ReadingOptions,
    scan_list: ScanList,
    connectome_stack: ConnectomeStack | None,
) -> np.ndarray:
    """Read the connectome of every scan; 0 where there was a fault."""
    study_files, atlas, scans = (
        feature_sources.study_files,
        feature_sources.atlas,
        scan_list.scans,
    )
    n_rois = len(atlas.names)
    W = np.zeros((len(scans), n_rois, n_rois), dtype=np.float32)
    expected_text = _expected_connectome_text(study_files, connectome_stack)
    if connectome_stack is not None:
        scan_list.add_notes(connectome_stack.notes, prefix_text="connectomes")
    n_scans_read = n_missing_connectomes = 0
    n_earlier_findings = len(scan_list.fault_findings)
    scan_names_by_order: dict[str, list[str]] = {}
    order_check = OrderCheck(atlas)
    scan_error_size_triples = list[tuple[Scan, BrainlsapError, int]]()
    for scan_index, scan in enumerate(
        tqdm(scans, "reading connectomes", **scan_list.progress_bar_options)
    ):
        try:
            connectome_path = (connectome_stack or study_files).find_connectome_source(
                scan, atlas
            )
            if connectome_path is None:
                n_missing_connectomes += 1
                message = (
                    f"the connectome is missing; expected {expected_text}. Add the "
                    f"connectome, or {format_leave_out_advice()}"
                )
                scan_list.add_fault(
                    Finding(message, FAULT, kind=NO_IMAGE, scan=scan.name)
                )
                continue
            W[scan_index], matrix_notes = _read_connectome_file(
                connectome_path, atlas, reading_options, order_check
            )
        except BrainlsapError as error:
            n_matrix_rows = error.values.get("n_rows")
            if isinstance(n_matrix_rows, int):
                scan_error_size_triples.append((scan, error, n_matrix_rows))
            else:
                scan_list.add_fault(error, scan)
            continue
        n_scans_read += 1
        scan_list.add_notes(matrix_notes, prefix_text="connectomes", is_about_scan=True)
        for matrix_note in matrix_notes:
            if matrix_note.kind == ROW_ORDER:
                scan_names_by_order.setdefault(str(matrix_note), []).append(scan.name)
    # Matrices whose rows nothing names are refused together, except if others could be
    # read: then it is a fault of these scans.
    are_refused_together = not (n_scans_read and reading_options.skip_faulty)
    _add_size_faults(
        scan_list, order_check, scan_error_size_triples, are_refused_together
    )
    _add_row_order_findings(scan_list, order_check, scan_names_by_order)
    scan_list.count_texts.append(
        f"connectomes were read for {n_scans_read} of {len(scans)} scans"
    )
    if scans and n_missing_connectomes == len(scans):
        if connectome_stack is not None:
            no_connectome_fault = _make_foreign_stack_fault(connectome_stack, scans)
        else:
            no_connectome_fault = _find_lost_zeros_fault(
                feature_sources, scan_list
            ) or _make_no_connectome_fault(study_files, scans, expected_text)
        scan_list.fault_findings[n_earlier_findings:] = [no_connectome_fault]
    return W


def _add_size_faults(
    scan_list: ScanList,
    order_check: OrderCheck,
    scan_error_size_triples: Sequence[tuple[Scan, BrainlsapError, int]],
    are_refused_together: bool,
) -> None:
    """Add a fault for each matrix whose number of rows fits no order of the atlas.

    If most matrices have another size, an order of rows would be no remedy. Matrices
    whose rows nothing names are left to `order_check`, if they are refused together.
    """
    n_scans_by_size = order_check.count_matrices_by_size()
    for _, error, n_matrix_rows in scan_error_size_triples:
        if not isinstance(error, UnknownOrderError):  # the check has not counted it
            n_scans_by_size[n_matrix_rows] += 1
    for scan, error, n_matrix_rows in scan_error_size_triples:
        common_size, n_scans_of_common_size = n_scans_by_size.most_common(1)[0]
        if (
            n_matrix_rows != common_size
            and n_scans_of_common_size > n_scans_by_size.total() / 2
        ):
            message = (
                f"the connectome has {n_matrix_rows} x {n_matrix_rows} entries, but "
                "the connectomes of "
                f"{count_text(n_scans_of_common_size, 'other scan')} have "
                f"{common_size} x {common_size}"
            )
            advice = f"Replace the file, or {format_leave_out_advice()}"
            scan_list.add_fault(
                Finding(message, FAULT, path=error.path, scan=scan.name, advice=advice)
            )
            order_check.remove_unnamed_matrices(n_matrix_rows)
        elif not (isinstance(error, UnknownOrderError) and are_refused_together):
            scan_list.add_fault(error, scan)


def _make_foreign_stack_fault(
    connectome_stack: ConnectomeStack, scans: Sequence[Scan]
) -> Finding:
    """Return the fault that a file of many connectomes has none of these scans.

    The text says so if the IDs differ only in leading zeros.
    """
    scan_names = dict.fromkeys(
        separator.join(filter(None, scan.key)) for scan in scans for separator in "_-"
    )
    plain_ids = [
        re.sub(r"^sub-|(?<=[-_])ses-", "", scan_id)
        for scan_id in connectome_stack.scan_ids
    ]
    id_by_short_id = {
        _remove_leading_zeros(plain_id): scan_id
        for plain_id, scan_id in zip(plain_ids, connectome_stack.scan_ids, strict=True)
        if plain_id not in scan_names
    }
    similar_ids = [
        id_by_short_id[short_name]
        for short_name in map(_remove_leading_zeros, scan_names)
        if short_name in id_by_short_id
    ]
    # Small numbers may be the IDs of other people.
    only_zeros_differ = 2 * len(similar_ids) > len(scans)
    stack_name = connectome_stack.path.name
    stack_ids_text = join_with_commas(
        similar_ids if only_zeros_differ else connectome_stack.scan_ids, 3
    )
    scan_names_text = join_with_commas((scan.name for scan in scans), 3)
    message = (
        f"no connectome: none of {count_text(len(scans), 'scan')} has its ID in this "
        f"file. The file has the IDs {stack_ids_text}; the scans are named "
        f"{scan_names_text}"
    )
    if only_zeros_differ:
        return Finding(
            f"{message}. Only leading zeros differ",
            FAULT,
            kind=FOREIGN_IDS,
            path=connectome_stack.path,
            advice="Write the IDs in the tables of the study exactly as in "
            f"{stack_name} (Excel drops the zeros of 001 unless the column is text)",
        )
    advice = (
        f"Write the IDs in the tables of the study and in {stack_name} in the same way "
        "(with the visit if a participant has several scans). If the tables have other "
        f"columns of IDs or visits, name them with {option_text('id_column')} and "
        f"{option_text('session_column')}"
    )
    return Finding(
        message, FAULT, kind=NO_IMAGE, path=connectome_stack.path, advice=advice
    )


def _remove_leading_zeros(id_text: str) -> str:
    """Return an id without the zeros at the front of its numbers."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", id_text)


def _make_no_connectome_fault(
    study_files: StudyFiles, scans: Sequence[Scan], expected_connectome_text: str
) -> Finding:
    """Return the fault that no scan has a connectome."""
    if study_files.pattern_by_feature.get("connectome"):
        message = study_files.unmatched_pattern_text("connectome", scans)
        return Finding(message, FAULT, kind=NO_IMAGE)
    matrix_error = find_unreadable_connectome_error(study_files.folder, scans)
    if matrix_error is not None:
        return replace(
            Finding.from_error(matrix_error),
            message="no scan has a connectome that can be read, but this file seems to "
            f"be one: {matrix_error.message}",
        )
    scan_names_text = join_with_commas((scan.name for scan in scans), 3)
    message = (
        f"no connectome: none of {len(scans)} scans has {expected_connectome_text}; "
        f"the scans are named {scan_names_text}"
    )
    n_files_by_pattern = count_files_by_path_pattern(study_files.folder, scans)
    if n_files_by_pattern:
        path_pattern, n_files = max(n_files_by_pattern.items(), key=lambda x: x[1])
        advice = (
            "If the files of the connectomes have other names, give the form of these "
            f"names with {option_text('pattern')}. For example, "
            f"{count_text(n_files, 'file', 'have')} names of the form "
            f"{option_text('pattern', path_pattern)}"
        )
        return Finding(message, FAULT, kind=NO_IMAGE, advice=advice)
    advice = (
        "If the files of the connectomes have other names, give the form of these "
        f"names with {option_text('pattern')}. Otherwise give one connectome for all "
        f"participants with {option_text('connectome')}; 'none' estimates a connectome "
        "from the features of the training people"
    )
    # Code that needs a connectome for each scan replaces the advice.
    return Finding(
        message,
        FAULT,
        kind=NO_IMAGE,
        advice=advice,
        values={"advised_option": "connectome"},
    )


def _find_lost_zeros_fault(
    feature_sources: FeatureSources, scan_list: ScanList
) -> Finding | None:
    """Return the fault that matrices have the ids of most people, but with zeros.

    None where matrices have ids as they are written, or other ids.
    """
    study_files = feature_sources.study_files
    listed_ids = {scan.key[0] for scan in scan_list.scans}
    bare_listed_ids = {to_bare_id(listed_id) for listed_id in listed_ids}
    path_by_id_by_pattern: dict[str, dict[str, Path]] = {}
    for file_path in list_files_outside_scans(study_files.folder):
        path_text = file_path.relative_to(study_files.folder).as_posix()
        # Days and months are no IDs.
        path_text = _DATE_IN_NAME.sub("{session}", path_text)
        for file_id in list_path_words(path_text):
            if to_bare_id(file_id) in bare_listed_ids:
                path_pattern = _make_participant_path_pattern(path_text, file_id)
                path_by_id = path_by_id_by_pattern.setdefault(path_pattern, {})
                path_by_id[file_id] = file_path
    # Numbers of runs or visits may be the IDs of a few participants. IDs of as many
    # digits as those of the files have lost no zeros.
    path_pattern, path_by_id = max(
        path_by_id_by_pattern.items(),
        key=lambda x: (len(x[1]), len(listed_ids & {*x[1]})),
        default=("", {}),
    )
    path_by_padded_id = {
        file_id: file_path
        for file_id, file_path in path_by_id.items()
        if file_id not in listed_ids
    }
    if 2 * len(path_by_padded_id) <= len(listed_ids) or not any(
        map(is_matrix_file, path_by_padded_id.values())
    ):
        return None
    file_id, file_path = next(iter(path_by_padded_id.items()))
    listed_id = next(
        scan.key[0]
        for scan in scan_list.scans
        if to_bare_id(scan.key[0]) == to_bare_id(file_id)
    )
    zeros_advice = _make_zeros_advice("the table", file_id)
    if people_contents := feature_sources.people_contents:
        zeros_advice = _make_zeros_advice(
            people_contents.name_and_sheet, file_id, people_contents.id_column_name
        )
    # The user's own pattern need not be repeated.
    pattern_advice = f". Then use {option_text('pattern', path_pattern)}"
    if study_files.pattern_by_feature.get("connectome"):
        pattern_advice = ""
    path_text = file_path.relative_to(study_files.folder).as_posix()
    return Finding(
        f"the IDs in the table of participants look like {listed_id!r}, but the IDs in "
        f"the names of {count_text(len(path_by_padded_id), 'file')} look like "
        f"{file_id!r} ({path_text})",
        FAULT,
        kind=FOREIGN_IDS,
        advice=f"{zeros_advice}{pattern_advice}",
    )


def list_path_words(path_text: str) -> list[str]:
    """Return the parts of a path that may be an id, each once.

    `-` may be part of an id, or separate it from a key (`sub-001`).
    """
    path_stem = path_text.rpartition(".")[0] or path_text
    path_words = [*re.split(r"[/_.\s]", path_stem), *re.split(r"[\W_]", path_stem)]
    return [*dict.fromkeys(filter(None, path_words))]


def _make_participant_path_pattern(path_text: str, word: str) -> str:
    """Return a path with `{participant}` for the last place of an id, `*` before."""
    path_parts = re.split(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", path_text)
    return "{participant}".join(("*".join(path_parts[:-1]), path_parts[-1]))


def _expected_connectome_text(
    study_files: StudyFiles, connectome_stack: ConnectomeStack | None
) -> str:
    """Return the file, or the id, that would be the connectome of a scan."""
    if connectome_stack is not None:
        return f"its ID in {connectome_stack.path.name}"
    if study_files.flat_connectome_paths:
        return (
            "a file with the name of the scan in the folder of "
            f"{min(study_files.flat_connectome_paths)}"
        )
    pattern_text = study_files.pattern_by_feature.get("connectome") or " or ".join(
        CONNECTOME_PATTERNS
    )
    return f"a file {pattern_text} in the folder of the scan"


def _add_row_order_findings(
    scan_list: ScanList,
    order_check: OrderCheck,
    scan_names_by_order: Mapping[str, Sequence[str]],
) -> None:
    """Add what the order of rows of all connectomes says, and what refuses it.

    `scan_names_by_order` lists the scans read in each tool's order.
    """
    # One with a row more is rather damaged than of another tool.
    if len(scan_names_by_order) > 1:
        orders_text = ", ".join(
            f"{order_name} ({join_with_commas(scan_names, 3)})"
            for order_name, scan_names in scan_names_by_order.items()
        )
        scan_list.add_fault(
            f"connectomes have different orders of rows, {orders_text}; write all "
            "connectomes in one order, or name the rows in the files"
        )
    for (
        order_note,
        n_matrices_with_note,
    ) in order_check.count_matrices_by_note().items():
        scan_list.add_notes(
            [order_note] * n_matrices_with_note,
            prefix_text="connectomes",
            is_about_scan=True,
        )
    for order_error in order_check.list_refusals():
        scan_list.add_fault(order_error)


def _read_feature_array(
    feature_names: Sequence[str],
    feature_sources: FeatureSources,
    W: np.ndarray,
    reading_options: ReadingOptions,
    scan_list: ScanList,
) -> np.ndarray:
    """Read the features of every scan; NaN where there was a fault."""
    atlas, subcortex_policy, scans = (
        feature_sources.atlas,
        reading_options.subcortex,
        scan_list.scans,
    )
    reference_name = (
        None if reading_options.reference is None else str(reading_options.reference)
    )
    X = np.full((len(scans), len(atlas.names), len(feature_names)), np.nan)
    if not scans:
        return X
    for feature_index, feature_name in enumerate(feature_names):
        feature_values = X[..., feature_index]
        measure_record = get_measure_record(feature_name)
        n_scans_read = 0
        try:
            scan_sources, feature_source_notes = _locate_sources_and_notes(
                feature_name, feature_sources, W, scan_list
            )
        except BrainlsapError as error:
            scan_list.add_fault(error)
            continue
        scan_list.add_notes(
            feature_source_finding
            for feature_source_finding in make_findings(feature_source_notes)
            if feature_source_finding not in scan_list.note_findings
        )
        feature_sources.add_scale_columns(scan_list.table)
        scans_with_progress = tqdm(
            scans, f"reading {feature_name}", **scan_list.progress_bar_options
        )
        for scan_index, (scan, scan_source) in enumerate(
            zip(scans_with_progress, scan_sources, strict=True)
        ):
            if isinstance(scan_source, Finding):
                scan_list.add_fault(scan_source)
                continue
            try:
                if isinstance(scan_source, Path):
                    feature_values[scan_index], scan_notes = read_feature(
                        scan_source,
                        feature_name,
                        atlas,
                        subcortex=subcortex_policy,
                        frames=reading_options.frames,
                        reference=reference_name,
                    )
                else:
                    feature_values[scan_index], scan_notes = fill_subcortex_with_notes(
                        scan_source, measure_record, atlas, subcortex_policy
                    )
            except BrainlsapError as error:
                scan_list.add_fault(error, scan)
                continue
            n_scans_read += 1
            scan_list.add_notes(scan_notes, is_about_scan=True)
        scan_list.count_texts.append(
            f"{feature_name} was read for {n_scans_read} of {len(scans)} scans"
        )
        for earlier_feature_index in range(feature_index):
            if _are_same_values(feature_values, X[..., earlier_feature_index]):
                scan_list.add_fault(
                    f"{feature_names[earlier_feature_index]} and {feature_name} have "
                    "the same value in every region of every scan. Correct the names "
                    "of the columns or files"
                )
    return X


def _locate_sources_and_notes(
    feature_name: str,
    feature_sources: FeatureSources,
    W: np.ndarray,
    scan_list: ScanList,
) -> tuple[Sequence[Source], Sequence[Finding | str]]:
    """Return the sources of a feature for every scan, and notes on reading them.

    The strength of regions is computed of the connectomes.
    """
    if feature_name != STRENGTH_FEATURE:
        return feature_sources.locate_feature_sources(feature_name, scan_list.scans)
    has_shared_connectome = W.strides[0] == 0
    if has_shared_connectome:
        raise CohortError(
            "the feature 'strength' is the same for every scan, because "
            f"{option_text('connectome')} is one connectome for all participants. "
            "Choose another feature"
        )
    # A region's links to itself are no links to others.
    diagonal_weights = W.diagonal(axis1=1, axis2=2)
    node_strengths = W.sum(axis=2, dtype=np.float64) - diagonal_weights
    return list(node_strengths), [
        "strength is the sum of the weights of a region's connections"
    ]


def _are_same_values(
    feature_values: np.ndarray, other_feature_values: np.ndarray
) -> bool:
    """Return whether two features agree in every region that both have."""
    shared_measured_mask = np.isfinite(feature_values) & np.isfinite(
        other_feature_values
    )
    return bool(shared_measured_mask.any()) and np.array_equal(
        feature_values[shared_measured_mask], other_feature_values[shared_measured_mask]
    )


def list_people_count_texts(
    scan_table: pd.DataFrame, label_name: str, classes: Sequence[str]
) -> list[str]:
    """Count people, scans, classes and covariates."""
    n_scans_by_label = Counter(scan_table["label"].dropna().tolist())
    class_counts_text = named_counts_text(
        (class_name, n_scans_by_label[class_name]) for class_name in classes
    )
    count_texts = [
        f"{count_text(scan_table['participant'].nunique(), 'person')}, "
        f"{count_text(len(scan_table), 'scan')}",
        f"number of scans by {label_name}: {class_counts_text}",
    ]
    n_changing_people = count_people_with_changes(scan_table, "label")
    if n_changing_people:
        count_texts.append(
            f"{label_name} changes between visits of "
            f"{count_text(n_changing_people, 'person')}"
        )
    covariates_text = ", ".join(map(str, scan_table.columns[4:]))
    if covariates_text:
        count_texts.append(f"covariates: {covariates_text}")
    return count_texts
