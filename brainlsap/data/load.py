"""From a study's folder to a cohort: list, read, align, gather faults.

Nothing is refused at the first fault: whatever keeps the cohort from being loaded is
gathered, what many scans share is said once, and all of it is raised in one error.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from brainlsap import __version__
from brainlsap.atlas import Atlas, available_atlases, load_atlas
from brainlsap.data.cohort import Cohort, find_value_codes
from brainlsap.data.connectome_stacks import ConnectomeStack, read_stack
from brainlsap.data.connectomes import (
    NEGATIVE,
    SYMMETRIZE,
    ConnectomeFile,
    read_connectome,
)
from brainlsap.data.features import TRUTH_FILE, FeatureSources, Source, read_feature
from brainlsap.data.find_files import CONNECTOME_PATTERNS, StudyFiles
from brainlsap.data.id_columns import ChosenColumns, find_chosen
from brainlsap.data.measures import SUBCORTEX, apply_subcortex_policy, get_measure
from brainlsap.data.order_check import OrderCheck, UnknownOrderError
from brainlsap.data.participants import (
    ScanList,
    list_people,
    list_scans,
    people_files,
)
from brainlsap.data.reading_options import ReadingOptions
from brainlsap.data.region_lists import read_names
from brainlsap.data.region_tables import ScanTable, read_sheets
from brainlsap.data.tables import ADD_IT
from brainlsap.exceptions import (
    BrainlsapError,
    CohortError,
    ParameterError,
    check_choice,
    reading,
)
from brainlsap.findings import (
    ASSUMED,
    FAULT,
    FOREIGN_IDS,
    LEFT_OUT,
    ROW_ORDER,
    Finding,
    as_findings,
    group_findings,
)
from brainlsap.text import listed, option_text

STRENGTH = "strength"
NO_CONNECTOME = "none"


class RefusedStudyError(CohortError):
    """A study that cannot be loaded, with what was found and noted in it.

    Attributes
    ----------
    found : list of str
        People, scans and files, counted.
    findings : tuple of Finding
        Every note and every fault, one each.
    """

    found: list[str]
    findings: tuple[Finding, ...]


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
        Where FreeSurfer's subjects are, if not below the folder.
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
        What the subcortex has for features of the cortical surface: nothing, the mean
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
    verbose : bool
        Whether to show bars on standard error.

    Returns
    -------
    Cohort
        Scans in the order of the table of people and of time. Where the folder was
        simulated, its `truth.tsv` is the cohort's truth.

    Raises
    ------
    CohortError
        With every fault of every scan in one list.
    ParameterError, RegionNameError
        Where an argument cannot be used.
    """
    options = ReadingOptions(
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
    )
    return read_folder(folder, options, verbose=verbose)


def read_folder(
    folder: str | Path, options: ReadingOptions, *, verbose: bool = False
) -> Cohort:
    """Read a cohort from a study's folder, as :func:`load_cohort` does."""
    for name, value, choices in (
        ("scans", options.scans, ("all", "baseline")),
        ("subcortex", options.subcortex, SUBCORTEX),
        ("symmetrize", options.symmetrize, SYMMETRIZE),
        ("negative", options.negative, NEGATIVE),
    ):
        check_choice(name, value, choices)
    features = _check_features(options.feature, options.subcortex)
    atlas = load_atlas(options.atlas)
    folder = Path(folder)
    if not folder.is_dir():
        raise CohortError("no such folder", path=folder)

    # List the scans of the study and their files.
    study, sources = open_study(folder, options.change(atlas=atlas))
    sources.is_named = options.feature is not None
    sources.features = features
    # None: bars on terminals alone.
    study.bar_options = {"unit": "scan", "disable": None if verbose else True}

    # Read the arrays, scan by scan.
    matrix_options = options
    if isinstance(options.labels, str | Path):
        names = read_names(sources.files.resolve_path(options.labels))
        matrix_options = options.change(labels=names)
    W, has_own_connectomes = _load_connectomes(sources, matrix_options, study)
    X = _read_features(features, sources, W, options, study)
    scan_names = [scan.name for scan in study.scans]
    study.faults += find_value_codes(X, scan_names, atlas.names, features)

    study.notes += study.count_notes()
    if study.faults:
        raise _refuse_study(folder, study, sources)
    recorded_options = ReadingOptions.from_jsonable(
        options.change(
            folder=folder.resolve(), atlas=_name_atlas(options.atlas, atlas)
        ).to_jsonable()
    )
    shared_connectome = recorded_options.connectome or "array"
    W.flags.writeable = X.flags.writeable = False
    return Cohort(
        connectomes=W,
        features=X,
        table=study.table,
        atlas=atlas,
        feature_names=features,
        classes=study.classes,
        classes_ordered=study.classes_ordered,
        label_name=study.label or "none",
        findings=tuple(study.notes),
        provenance={
            "folder": str(folder.resolve()),
            "atlas": atlas.name,
            "connectome": "one per scan" if has_own_connectomes else shared_connectome,
            "scans": options.scans,
            "subcortex": options.subcortex,
            "brainlsap": __version__,
        },
        reading_options=recorded_options,
        truth=_read_truth(folder, atlas),
    )


def _check_features(
    feature: str | Sequence[str] | None, subcortex: str
) -> tuple[str, ...]:
    """Return the names of the features, thickness by default."""
    if feature is None:
        names: tuple[str, ...] = ("thickness",)
    else:
        names = (feature,) if isinstance(feature, str) else tuple(feature)
    if not names or len(set(names)) < len(names) or not all(names):
        raise ParameterError(
            f"feature must be a name or a list of different names, got {feature!r}."
        )
    if subcortex == "volume" and "volume" in names:
        raise ParameterError(
            f"{option_text('subcortex', 'volume')} beside the feature volume would "
            f"count volumes twice; leave {option_text('subcortex')} out."
        )
    return names


def _name_atlas(atlas: str | Path | Atlas, loaded_atlas: Atlas) -> str | Path:
    """Return the name of a shipped atlas, or the folder of another."""
    is_shipped = loaded_atlas.name in available_atlases()
    if isinstance(atlas, str | Path) and not is_shipped:
        return Path(atlas).resolve()
    return loaded_atlas.name


def _read_truth(folder: Path, atlas: Atlas) -> pd.DataFrame | None:
    """Return the planted regions of a simulated study, if they are of this atlas."""
    path = folder / TRUTH_FILE
    if not path.is_file():
        return None
    with reading(path, "a table of region, seed and effect"):
        truth = pd.read_csv(path, sep="\t", dtype={"region": object, "seed": bool})
        if set(truth["region"]) != set(atlas.names):
            return None
        return truth.set_index("region").loc[list(atlas.names)].reset_index()


def _refuse_study(
    folder: Path, study: ScanList, sources: FeatureSources
) -> RefusedStudyError:
    """Return the error with every fault of a study, and with what was found in it."""
    faults = study.faults
    if sources.unmatched is not None:
        faults = [sources.unmatched, *faults]
    texts = group_findings(faults, folder)
    plural = "s" if len(texts) > 1 else ""
    error = RefusedStudyError(
        f"{folder} cannot be loaded, {len(texts)} fault{plural}", texts
    )
    counts = count_people(study.table, study.label or "none", study.classes)
    error.found = [*counts, *study.found]
    error.findings = (*study.notes, *faults)
    return error


def open_study(
    folder: str | Path, options: ReadingOptions
) -> tuple[ScanList, FeatureSources]:
    """List the scans of a study, their files, and what features can be read from."""
    folder = Path(folder)
    label = options.label
    loaded_atlas = load_atlas(options.atlas)
    table_paths = options.features_table
    if isinstance(table_paths, str | Path):
        table_paths = [table_paths]
    people_paths = people_files(folder)
    chosen_columns = ChosenColumns.of(options.id_column, options.session_column)
    sheets = list[ScanTable]()
    if people_paths:
        sheets = read_sheets(people_paths[0], loaded_atlas, chosen_columns)[0]
    # Of several sheets, that with the label.
    people_tables = [sheet for sheet in sheets if sheet.has(label)][:1] or sheets[:1]
    people_names = [name for table in people_tables for name in table.names]
    find_files = partial(
        StudyFiles,
        folder,
        derivatives=options.derivatives,
        subjects_dir=options.subjects_dir,
        pattern=options.pattern,
    )
    files = find_files(people=people_names)
    sources = FeatureSources(
        files,
        loaded_atlas,
        options.subcortex,
        table_paths,
        chosen_columns=chosen_columns,
    )
    if not people_tables:
        # Tables of features need not be where people are.
        has_people = any(table.has(label) for table in sources.tables)
        all_sources = sources if has_people else replace(sources, table_paths=None)
        sheets = all_sources.tables
        people_tables = [all_sources.people_table(label)]
        people_names = people_tables[0].names
        sources.files = find_files(people=people_names)
    people_table = people_tables[0]
    sources.people = people_table
    sources.people_heads = {*people_table.facts}
    _check_chosen(sources)
    people, faults = list_people(people_table)
    study = list_scans(
        people,
        sources,
        label,
        people_table.name_and_sheet,
        options.classes,
        options.scans,
    )
    study.faults[:0] = faults
    if people_paths and (people_table.sheet or people_table.path != people_paths[0]):
        study.notes.insert(
            0, Finding(f"people: read from {people_table.name_and_sheet}")
        )
    study.notes += [
        _describe_unused(sheet, label)
        for sheet in sheets
        if sheet is not people_table
        and not (sheet.values or sheet.facts.empty or sheet.has(label))
    ]
    if sources.files.subject_aliases:
        renamed_subjects = [
            f"{study_name} ({subject_name})"
            for subject_name, study_name in sources.files.subject_aliases.items()
        ]
        message = "FreeSurfer: longer names taken for files or folders of"
        study.notes.append(
            Finding(message, kind=ASSUMED, people=tuple(renamed_subjects), max_people=3)
        )
    _compare_with_files(study, sources, people)
    return study, sources


def _describe_unused(sheet: ScanTable, label: str | None) -> Finding:
    """Return the note that a sheet is left out, since it has no labels."""
    message = f"left out, no column {label!r} in {', '.join([*sheet.facts][:5])}"
    return Finding(message, LEFT_OUT, path=sheet.name_and_sheet)


def _compare_with_files(
    study: ScanList, sources: FeatureSources, people: Collection[str]
) -> None:
    """Note people who have files and are not listed, and whether nobody listed has."""
    table = sources.people
    people_with_files = {person for person, _ in sources.files.files}
    people_with_files |= {*sources.files.subjects}
    unlisted_people = sorted(people_with_files - {*people})
    if not unlisted_people or table is None:
        return
    table_name = table.name_and_sheet
    message = f"not in {table_name}, left out: files or folders of"
    study.notes.append(Finding(message, LEFT_OUT, people=tuple(unlisted_people)))
    if people_with_files.isdisjoint(people):
        sources.unmatched = Finding(
            "nobody in it has files; its ids are such as "
            f"{table.names[0].participant!r}, those of files and folders such as "
            f"{unlisted_people[0]!r}. Write the ids in {table_name} as files have them "
            "(Excel drops the zeros of 001 unless the column is text), but visits in a "
            "column session_id; or rename the files",
            FAULT,
            kind=FOREIGN_IDS,
            path=table_name,
        )


def _check_chosen(sources: FeatureSources) -> None:
    """Raise where the columns that the user named are not there."""
    table, chosen_columns = sources.people, sources.chosen_columns
    if table is None:
        return
    column_heads = [table.id_column, *table.facts]
    if table.session_column:
        column_heads.insert(1, table.session_column)
    if chosen_columns.id and find_chosen([table.id_column], chosen_columns.id) is None:
        raise CohortError(
            f"no column {listed(map(repr, chosen_columns.id))}, named by "
            f"{option_text('id_column')}; found {listed(column_heads, 8)}",
            path=table.path_and_sheet,
        )
    if not chosen_columns.session:
        return
    column_heads += [
        scan_table.session_column
        for scan_table in (table, *sources.tables)
        if scan_table.session_column
    ]
    if find_chosen(column_heads, chosen_columns.session) is None:
        raise CohortError(
            f"no column {listed(map(repr, chosen_columns.session))}, named by "
            f"{option_text('session_column')}; found "
            f"{listed(dict.fromkeys(column_heads), 8)}",
            path=table.path_and_sheet,
        )


def _load_connectomes(
    sources: FeatureSources,
    options: ReadingOptions,
    study: ScanList,
) -> tuple[np.ndarray, bool]:
    """Return the connectomes of all scans, and whether every scan has its own.

    A connectome for everybody is broadcast.
    """
    n_scans, n_rois = len(study.scans), len(sources.atlas.names)
    shared_matrix = np.zeros((n_rois, n_rois), dtype=np.float32)
    stack: ConnectomeStack | None = None
    try:
        source = options.connectome
        if isinstance(source, str | Path) and source != NO_CONNECTOME:
            source = sources.files.resolve_path(source)
            keys = [scan.key for scan in study.scans]
            stack = read_stack(
                source, sources.atlas, keys, options.labels, options.row_order
            )
        if isinstance(source, str):
            message = "the connectome: none was read, it is made of features"
            study.notes.append(Finding(message))
        elif source is not None and stack is None:
            shared_matrix, notes = _read_matrix(source, sources.atlas, options)
            study.notes.append(Finding("one connectome for everybody"))
            study.add_notes(notes, about="the connectome")
    except BrainlsapError as error:
        study.add_fault(error)
    if options.connectome is None or stack is not None:
        return _read_connectomes(sources, options, study, stack), True
    return np.broadcast_to(shared_matrix, (n_scans, n_rois, n_rois)), False


def _read_matrix(
    source: str | Path | np.ndarray | pd.DataFrame,
    atlas: Atlas,
    options: ReadingOptions,
    order_check: OrderCheck | None = None,
) -> ConnectomeFile:
    """Read one connectome with the options of the study."""
    return read_connectome(
        source,
        atlas,
        measure=options.measure,
        labels=options.labels,
        row_order=options.row_order,
        symmetrize=options.symmetrize,
        negative=options.negative,
        order_check=order_check,
    )


def _read_connectomes(
    sources: FeatureSources,
    options: ReadingOptions,
    study: ScanList,
    stack: ConnectomeStack | None,
) -> np.ndarray:
    """Read the connectome of every scan; 0 where there was a fault."""
    files, atlas, scans = sources.files, sources.atlas, study.scans
    n_rois = len(atlas.names)
    W = np.zeros((len(scans), n_rois, n_rois), dtype=np.float32)
    expected = _describe_expected(files, stack)
    if stack is not None:
        study.add_notes(stack.notes, about="connectomes")
    n_read = n_missing = 0
    n_earlier_faults = len(study.faults)
    scans_by_order: dict[str, list[str]] = {}
    order_check = OrderCheck(atlas)
    for row, scan in enumerate(tqdm(scans, "reading connectomes", **study.bar_options)):
        try:
            source = (stack or files).connectome(scan, atlas)
            if source is None:
                n_missing += 1
                message = f"no connectome; expected {expected}: {ADD_IT}"
                study.add_fault(message, scan)
                continue
            W[row], notes = _read_matrix(source, atlas, options, order_check)
        except UnknownOrderError:  # all such are refused together, below
            continue
        except BrainlsapError as error:
            study.add_fault(error, scan)
            continue
        n_read += 1
        study.add_notes(notes, about="connectomes", of_scan=True)
        for note in notes:
            if note.kind == ROW_ORDER:
                scans_by_order.setdefault(str(note), []).append(scan.name)
    _report_orders(study, order_check, scans_by_order)
    study.found.append(f"connectome: {n_read} of {len(scans)} scans")
    if scans and n_missing == len(scans):
        if files.patterns.get("connectome"):
            message = files.unmatched_pattern_message("connectome", scans)
        else:
            scan_names = listed((scan.name for scan in scans), 3)
            message = (
                f"no connectome: none of {len(scans)} scans has {expected}; they are "
                f"named {scan_names}. One for everybody is given by "
                f"{option_text('connectome')}; 'none' makes one of "
                "the features of training people"
            )
        study.faults[n_earlier_faults:] = [Finding(message, FAULT)]
    return W


def _describe_expected(files: StudyFiles, stack: ConnectomeStack | None) -> str:
    """Say which file, or which id, would be the connectome of a scan."""
    if stack is not None:
        return f"an id of it in {stack.path.name}"
    if files.flat:
        return f"a file of its name beside {min(files.flat)}"
    pattern_text = files.patterns.get("connectome") or " or ".join(CONNECTOME_PATTERNS)
    return f"a file {pattern_text} in its folder"


def _report_orders(
    study: ScanList,
    order_check: OrderCheck,
    scans_by_order: Mapping[str, Sequence[str]],
) -> None:
    """Add what the order of rows of all connectomes says, and what refuses it.

    `scans_by_order` lists the scans read in each tool's order.
    """
    # One with a row more is rather damaged than of another tool.
    if len(scans_by_order) > 1:
        orders_text = ", ".join(
            f"{order} ({listed(scan_names, 3)})"
            for order, scan_names in scans_by_order.items()
        )
        study.add_fault(
            f"connectomes are in different orders, {orders_text}; make them alike, or "
            "name the rows in the files"
        )
    for note, n_matrices in order_check.notes().items():
        study.add_notes([note] * n_matrices, about="connectomes", of_scan=True)
    for error in order_check.refusals():
        study.add_fault(error)


def _read_features(
    names: Sequence[str],
    sources: FeatureSources,
    W: np.ndarray,
    options: ReadingOptions,
    study: ScanList,
) -> np.ndarray:
    """Read the features of every scan; NaN where there was a fault."""
    atlas, subcortex, scans = sources.atlas, options.subcortex, study.scans
    reference = None if options.reference is None else str(options.reference)
    X = np.full((len(scans), len(atlas.names), len(names)), np.nan)
    if not scans:
        return X
    for column, name in enumerate(names):
        feature_values = X[..., column]
        measure = get_measure(name)
        n_read = 0
        try:
            scan_sources, notes = _locate_feature(name, sources, W, study)
        except BrainlsapError as error:
            study.add_fault(error)
            continue
        study.add_notes(note for note in as_findings(notes) if note not in study.notes)
        sources.add_scale_columns(study.table)
        progress = tqdm(scans, f"reading {name}", **study.bar_options)
        for row, (scan, source) in enumerate(zip(progress, scan_sources, strict=True)):
            if isinstance(source, Finding):
                study.add_fault(source)
                continue
            try:
                if isinstance(source, Path):
                    feature_values[row], notes_of_scan = read_feature(
                        source,
                        name,
                        atlas,
                        subcortex=subcortex,
                        frames=options.frames,
                        reference=reference,
                    )
                else:
                    feature_values[row], notes_of_scan = apply_subcortex_policy(
                        source, measure, atlas, subcortex
                    )
            except BrainlsapError as error:
                study.add_fault(error, scan)
                continue
            n_read += 1
            study.add_notes(notes_of_scan, of_scan=True)
        study.found.append(f"{name}: {n_read} of {len(scans)} scans")
        for earlier in range(column):
            if _are_same_values(feature_values, X[..., earlier]):
                study.add_fault(
                    f"{names[earlier]} and {name} have the same value in every region "
                    "of every scan. Say in heads or names of files which is which"
                )
    return X


def _locate_feature(
    name: str, sources: FeatureSources, W: np.ndarray, study: ScanList
) -> tuple[Sequence[Source], Sequence[Finding | str]]:
    """Return where the feature of every scan is read from, and notes on that.

    The strength of regions is computed of the connectomes.
    """
    if name != STRENGTH:
        return sources.locate(name, study.scans)
    is_shared = W.strides[0] == 0
    if is_shared:
        raise CohortError(
            f"strength: with one {option_text('connectome')} for everybody it is the "
            "same for every scan. Choose another feature"
        )
    # A region's links to itself are no links to others.
    own_weights = W.diagonal(axis1=1, axis2=2)
    strengths = W.sum(axis=2, dtype=np.float64) - own_weights
    return list(strengths), ["strength: sum of the connectome's weights"]


def _are_same_values(feature_values: np.ndarray, other_values: np.ndarray) -> bool:
    """Return whether two features agree in every region that both have."""
    is_in_both = np.isfinite(feature_values) & np.isfinite(other_values)
    return bool(is_in_both.any()) and np.array_equal(
        feature_values[is_in_both], other_values[is_in_both]
    )


def count_people(table: pd.DataFrame, label: str, classes: Sequence[str]) -> list[str]:
    """Count people, scans, classes and covariates."""
    label_counts = Counter(table["label"].dropna().tolist())
    class_counts = ", ".join(f"{name} ({label_counts[name]})" for name in classes)
    count_lines = [
        f"{table['participant'].nunique()} people, {len(table)} scans",
        f"scans by {label}: {class_counts}",
    ]
    covariates = ", ".join(map(str, table.columns[4:]))
    if covariates:
        count_lines.append(f"covariates: {covariates}")
    return count_lines
