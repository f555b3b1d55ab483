"""From a study's folder to a cohort: list, read, align, gather faults.

Nothing is refused at the first fault: whatever keeps the cohort from being loaded is
gathered, what many scans share is said once, and all of it is raised in one error.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from brainlsap import __version__
from brainlsap.atlas import Atlas, available_atlases, load_atlas
from brainlsap.data.cohort import Cohort, find_value_codes
from brainlsap.data.connectome_stacks import ConnectomeStack, read_stack
from brainlsap.data.connectomes import NEGATIVE, SYMMETRIZE, read_connectome
from brainlsap.data.features import TRUTH_FILE, FeatureSources, Source, read_feature
from brainlsap.data.find_files import CONNECTOME_PATTERNS, StudyFiles
from brainlsap.data.id_columns import ChosenColumns, find_chosen
from brainlsap.data.measures import SUBCORTEX, apply_subcortex_policy, get_measure
from brainlsap.data.order_check import OrderCheck, UnknownOrderError
from brainlsap.data.participants import ScanList, list_scans, people_files, read_people
from brainlsap.data.region_lists import read_names
from brainlsap.data.region_tables import ScanTable, read_sheets
from brainlsap.data.tables import ADD_IT, group_faults
from brainlsap.exceptions import (
    BrainlsapError,
    CohortError,
    ParameterError,
    check_choice,
    reading,
)
from brainlsap.options import option_names
from brainlsap.text import listed

STRENGTH = "strength"
NO_CONNECTOME = "none"
# Arguments that say who and which files are in a study.
WHERE = option_names("reading", selects_files=True)
_How = Mapping[str, Any]


class RefusedStudyError(CohortError):
    """A study that cannot be loaded, with what was found and noted in it."""

    found: list[str]
    notes: tuple[str, ...]


def load_cohort(  # noqa: C901 (straight, from the folder to the cohort)
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
    given = dict(locals())
    check_choice("scans", scans, ("all", "baseline"))
    check_choice("subcortex", subcortex, SUBCORTEX)
    check_choice("symmetrize", symmetrize, SYMMETRIZE)
    check_choice("negative", negative, NEGATIVE)
    wanted = "thickness" if feature is None else feature
    names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    if not names or len(set(names)) < len(names) or not all(names):
        raise ParameterError(
            f"feature must be a name or a list of different names, got {feature!r}."
        )
    if subcortex == "volume" and "volume" in names:
        raise ParameterError(
            "subcortex='volume' beside the feature volume would count volumes twice; "
            "leave subcortex= out."
        )
    atlas, folder = load_atlas(atlas), Path(folder)
    if not folder.is_dir():
        raise CohortError(f"{folder}: no such folder")

    # who is in the study, and which files are whose
    study, sources = open_study(folder, atlas, **{n: given[n] for n in WHERE})
    n_scans, label_name = len(study.scans), study.label or "none"
    sources.is_named = feature is not None
    sources.features = names
    # None: bars on terminals alone
    study.bar = {"unit": "scan", "disable": None if verbose else True}

    # the arrays, scan by scan
    if isinstance(labels, str | Path):
        labels = read_names(sources.files.resolve_path(labels))
    how: dict[str, Any] = {"row_order": row_order, "measure": measure}
    how |= {"labels": labels, "symmetrize": symmetrize, "negative": negative}
    n_rois, stack = len(atlas.names), None
    W = np.zeros((1, n_rois, n_rois), dtype=np.float32)
    try:
        source = connectome
        if isinstance(source, str | Path) and source != NO_CONNECTOME:
            source = sources.files.resolve_path(source)
            keys = [scan.key for scan in study.scans]
            stack = read_stack(source, atlas, keys, labels, row_order)
        if isinstance(source, str):
            study.notes.append("the connectome: none was read, it is made of features")
        elif source is not None and stack is None:
            W[0], notes = read_connectome(source, atlas, **how)
            study.notes.append("one connectome for everybody")
            study.notes += [f"the connectome: {note}" for note in notes]
    except BrainlsapError as error:
        study.fault(error)
    if connectome is None or stack is not None:
        W = _read_connectomes(sources, how, study, stack)
    else:
        W = np.broadcast_to(W[0], (n_scans, *W.shape[1:]))
    pet = {"frames": frames, "reference": reference}
    X = _read_features(names, sources, W, pet, study)
    scanned = [scan.name for scan in study.scans]
    study.faults += find_value_codes(X, scanned, atlas.names, names)

    study.notes += [f"{note} ({n} of {n_scans})" for note, n in study.counts.items()]
    if study.faults:
        study.faults[:0] = filter(None, [sources.unmatched])
        faults = group_faults(study.faults, folder)
        n_faults = f"{len(faults)} fault{'s' * (len(faults) > 1)}"
        refused = RefusedStudyError(f"{folder} cannot be loaded, {n_faults}", faults)
        counted = count_people(study.table, label_name, study.classes)
        refused.found, refused.notes = counted + study.found, tuple(study.notes)
        raise refused

    # what was asked, for private files
    asked = {
        name: value
        for name, value in given.items()
        if name != "verbose"
        and not isinstance(value, np.ndarray | pd.DataFrame)
        and value not in (None, (), [], {})
    }
    asked["folder"] = folder.resolve()
    asked["atlas"] = atlas.name
    if isinstance(given["atlas"], str | Path) and atlas.name not in available_atlases():
        asked["atlas"] = Path(given["atlas"]).resolve()
    has_own = connectome is None or stack is not None
    shared = "one per scan" if has_own else asked.get("connectome", "array")
    # the answer of a simulated study, where it is about these regions
    truth, path = None, folder / TRUTH_FILE
    if path.is_file():
        with reading(path, "a table of region, seed and effect"):
            known = pd.read_csv(path, sep="\t", dtype={"region": object, "seed": bool})
            if set(known["region"]) == set(atlas.names):
                truth = known.set_index("region").loc[list(atlas.names)].reset_index()
    W.flags.writeable = X.flags.writeable = False
    return Cohort(
        connectomes=W,
        features=X,
        table=study.table,
        atlas=atlas,
        feature_names=names,
        classes=study.classes,
        classes_ordered=study.classes_ordered,
        label_name=label_name,
        notes=tuple(study.notes),
        provenance={
            "folder": str(folder.resolve()),
            "atlas": atlas.name,
            "connectome": str(shared),
            "scans": scans,
            "subcortex": subcortex,
            "brainlsap": __version__,
            "asked": json.loads(json.dumps(asked, default=str)),
            # for reports that are passed on
            "shareable_notes": study.shareable_notes,
        },
        truth=truth,
    )


def open_study(
    folder: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    label: str | None = "diagnosis",
    classes: Sequence[str] | None = None,
    scans: str = "all",
    subcortex: str = "absent",
    features_table: str | Path | Sequence[str | Path] | None = None,
    id_column: str | Sequence[str] | None = None,
    session_column: str | Sequence[str] | None = None,
    **places: Any,
) -> tuple[ScanList, FeatureSources]:
    """List the scans of a study, their files, and what features can be read from."""
    folder, atlas = Path(folder), load_atlas(atlas)
    if isinstance(features_table, str | Path):
        features_table = [features_table]
    paths = people_files(folder)
    chosen = ChosenColumns.of(id_column, session_column)
    sheets = read_sheets(paths[0], atlas, chosen)[0] if paths else list[ScanTable]()
    # of several the one with the label
    tables = [one for one in sheets if one.has(label)][:1] or sheets[:1]
    people = [name for one in tables for name in one.names]
    files = StudyFiles(folder, people, **places)
    sources = FeatureSources(files, atlas, subcortex, features_table, chosen=chosen)
    if not tables:
        # tables of features need not be where people are
        is_there = any(one.has(label) for one in sources.tables)
        every = sources if is_there else replace(sources, table_paths=None)
        sheets, tables = every.tables, [every.people_table(label)]
        sources.files = StudyFiles(folder, tables[0].names, **places)
    sources.people = tables[0]
    _check_chosen(sources)
    (path, names, facts, *_), files = tables[0], sources.files
    sources.people_heads = {*facts}
    known, doubled = read_people(path, names, facts)
    study = list_scans(known, sources, label, path.name, classes, scans)
    study.faults[:0] = doubled
    if paths and path != paths[0]:
        study.notes.insert(0, f"people: read from {path.name}")
    study.notes.extend(
        f"{s.path.name}: left out, no column {label!r} in {', '.join([*s.facts][:5])}"
        for s in sheets
        if not (s is tables[0] or s.values or s.facts.empty or s.has(label))
    )
    if files.subject_aliases:
        subjects = [f"{own} ({name})" for name, own in files.subject_aliases.items()]
        text = "FreeSurfer: longer names taken for files or folders of"
        study.note_names(text, subjects, 3)
    people_there = {person for person, _ in files.files} | {*files.subjects}
    if spare := sorted(people_there - {*known}):
        text = f"not in {path.name}, left out: files or folders of"
        study.note_names(text, spare, 5)
    if spare and people_there.isdisjoint(known):
        sources.unmatched = (
            f"{path.name}: nobody in it has files; its ids are such as "
            f"{names[0].participant!r}, those of files and folders such as "
            f"{spare[0]!r}. Write the ids in {path.name} as files have them (Excel "
            "drops the zeros of 001 unless the column is text), but visits in a column "
            "session_id; or rename the files"
        )
    return study, sources


def _check_chosen(sources: FeatureSources) -> None:
    """Raise where the columns that the user named are not there."""
    people, chosen = sources.people, sources.chosen
    if people is None:
        return
    heads = [people.id_column, *filter(None, [people.session_column]), *people.facts]
    if chosen.id and find_chosen([people.id_column], chosen.id) is None:
        raise CohortError(
            f"{people.path}: no column {listed(map(repr, chosen.id))}, named by "
            f"id_column= (--id); found {listed(heads, 8)}"
        )
    tables = (people, *sources.tables) if chosen.session else ()
    heads += [table.session_column for table in tables if table.session_column]
    if chosen.session and find_chosen(heads, chosen.session) is None:
        raise CohortError(
            f"{people.path}: no column {listed(map(repr, chosen.session))}, named by "
            f"session_column= (--session); found {listed(dict.fromkeys(heads), 8)}"
        )


def _read_connectomes(
    sources: FeatureSources, how: _How, study: ScanList, stack: ConnectomeStack | None
) -> np.ndarray:
    """Read the connectome of every scan; 0 where there was a fault."""
    files, atlas, scans = sources.files, sources.atlas, study.scans
    n_rois = len(atlas.names)
    W = np.zeros((len(scans), n_rois, n_rois), dtype=np.float32)
    given = files.patterns.get("connectome")
    wanted = f"a file {given or ' or '.join(CONNECTOME_PATTERNS)} in its folder"
    if files.flat:
        wanted = f"a file of its name beside {min(files.flat)}"
    if stack is not None:
        wanted = f"an id of it in {stack.path.name}"
        study.notes += [f"connectomes: {note}" for note in stack.notes]
    n_read, n_missing, n_before = 0, 0, len(study.faults)
    by_order: dict[str, list[str]] = {}
    order_check = OrderCheck(atlas)
    for row, scan in enumerate(tqdm(scans, "reading connectomes", **study.bar)):
        try:
            source = (stack or files).connectome(scan, atlas)
            if source is None:
                n_missing += 1
                told = f"{scan.name}: no connectome; expected {wanted}"
                raise CohortError(f"{told}: {ADD_IT}")
            W[row], notes = read_connectome(
                source, atlas, **how, order_check=order_check
            )
        except UnknownOrderError:  # all such are refused together, below
            continue
        except BrainlsapError as error:
            study.fault(error, scan)
            continue
        n_read += 1
        study.counts.update(f"connectomes: {note}" for note in notes)
        for note in (one for one in notes if one.startswith("read in the order")):
            by_order.setdefault(note, []).append(scan.name)
    _report_orders(study, order_check, by_order)
    study.found.append(f"connectome: {n_read} of {len(scans)} scans")
    if scans and n_missing == len(scans):
        told = (
            f"no connectome: none of {len(scans)} scans has {wanted}; they are named "
        )
        told += (
            f"{listed((scan.name for scan in scans), 3)}. One for everybody is given "
        )
        told += (
            "by connectome= (--connectome FILE); 'none' makes one of the features of "
        )
        told += "training people"
        study.faults[n_before:] = [
            files.unmatched_pattern_message("connectome", scans) if given else told
        ]
    return W


def _report_orders(
    study: ScanList, order_check: OrderCheck, by_order: Mapping[str, Sequence[str]]
) -> None:
    """Add what the order of rows of all connectomes says, and what refuses it.

    `by_order` lists the scans read in each tool's order.
    """
    if len(by_order) > 1:  # one with a row more is rather damaged than of another tool
        orders = (f"{note} ({listed(names, 3)})" for note, names in by_order.items())
        what = "make them alike, or name the rows in the files"
        study.fault(f"connectomes are in different orders, {', '.join(orders)}; {what}")
    for note, n_matrices in order_check.notes().items():
        study.counts[f"connectomes: {note}"] += n_matrices
    for refusal in order_check.refusals():
        study.fault(refusal)


def _read_features(
    names: Sequence[str],
    sources: FeatureSources,
    W: np.ndarray,
    pet: _How,
    study: ScanList,
) -> np.ndarray:
    """Read the features of every scan; NaN where there was a fault."""
    atlas, subcortex, scans = sources.atlas, sources.subcortex, study.scans
    X = np.full((len(scans), len(atlas.names), len(names)), np.nan)
    for column, name in enumerate(names if len(scans) else ()):
        values, measure, n_read = X[..., column], get_measure(name), 0
        found: Sequence[Source]
        try:
            if name != STRENGTH:
                found, notes = sources.locate(name, scans)
            elif W.strides[0]:
                # a region's links to itself are no links to others
                own = W.diagonal(axis1=1, axis2=2)
                found = list(W.sum(axis=2, dtype=np.float64) - own)
                notes = ["strength: sum of the connectome's weights"]
            else:
                raise CohortError(
                    "strength: with one connectome for everybody (--connectome) it is "
                    "the same for every scan. Choose another feature"
                )
        except BrainlsapError as error:
            study.fault(error)
            continue
        study.notes += [note for note in notes if note not in study.notes]
        sources.add_scale_columns(study.table)
        shown = tqdm(scans, f"reading {name}", **study.bar)
        for row, (scan, source) in enumerate(zip(shown, found, strict=True)):
            try:
                if isinstance(source, str):
                    raise CohortError(source)
                values[row], of_scan = (
                    read_feature(source, name, atlas, subcortex=subcortex, **pet)
                    if isinstance(source, Path)
                    else apply_subcortex_policy(source, measure, atlas, subcortex)
                )
            except BrainlsapError as error:
                study.fault(error, scan)
                continue
            n_read += 1
            study.counts.update(of_scan)
        study.found.append(f"{name}: {n_read} of {len(scans)} scans")
        for other in range(column):
            both = np.isfinite(values) & np.isfinite(X[..., other])
            if both.any() and np.array_equal(values[both], X[..., other][both]):
                study.fault(
                    f"{names[other]} and {name} have the same value in every region "
                    "of every scan. Say in heads or names of files which is which"
                )
    return X


def count_people(table: pd.DataFrame, label: str, classes: Sequence[str]) -> list[str]:
    """Count people, scans, classes and covariates."""
    labels = Counter(table["label"].dropna().tolist())
    counted = ", ".join(f"{name} ({labels[name]})" for name in classes)
    people = f"{table['participant'].nunique()} people, {len(table)} scans"
    covariates = ", ".join(map(str, table.columns[4:]))
    more = [f"covariates: {covariates}"] if covariates else []
    return [people, f"scans by {label}: {counted}", *more]
