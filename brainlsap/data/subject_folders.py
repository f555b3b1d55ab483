"""Write a simulated cohort as the subject folders that a study has on disk.

The tree is BIDS-like, and :func:`~brainlsap.data.folders.load_cohort` reads it::

    dataset_description.json  README  participants.tsv  truth.tsv
    sub-0001/
        sub-0001_sessions.tsv
        ses-M00/dwi/sub-0001_ses-M00_atlas-destrieux_connectivity.csv
        ses-M00/pet/sub-0001_ses-M00_trc-18FFDG_desc-suvr_regions.tsv
    derivatives/freesurfer/sub-0001_ses-M00/stats/
        lh.aparc.a2009s.stats  rh.aparc.a2009s.stats  aseg.stats

Connectomes are those of MRtrix's `tck2connectome` (upper triangle, no names, 164 or
84 nodes), thickness and volumes those of FreeSurfer, uptake a table of regions. Only
features that the cohort has are written (beside thickness without volumes, everybody
has the same subcortical sizes); people without sessions have no `ses-` folder.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap._arrays import check_choice
from brainlsap._locks import fill_folder
from brainlsap.data.atlas import Atlas
from brainlsap.data.cohort import KEY_COLUMNS, Cohort
from brainlsap.data.freesurfer_text import ANNOTATIONS, aparc_text, aseg_text
from brainlsap.data.spreadsheets import write_tsv
from brainlsap.data.subject_files import (
    ATLAS_WORDS,
    mrtrix_nodes,
    mrtrix_text,
    named_text,
    region_text,
)
from brainlsap.exceptions import ParameterError

STYLES = ("mrtrix", "named")
FREESURFER_FEATURES = ("thickness", "volume")
# Feature -> folder, end of the file's name, and heading of its values.
REGION_FILES = {"fdg": ("pet", "trc-18FFDG_desc-suvr_regions.tsv", "suvr")}
README = """Simulated data: nobody's brain.

Written by brainlsap. People, connectomes and regional values were drawn at random
by the model that brainlsap.data describes; no value was measured. truth.tsv holds the
answer: the regions in which disease was planted (seed), and the change from CN to AD
that is expected in each (effect).
"""


def write_subject_folders(
    cohort: Cohort,
    folder: str | Path,
    *,
    style: str = "mrtrix",
    progress: bool = False,
) -> Path:
    """Write a simulated cohort as subject folders, whole or not at all.

    The tree is on the page of :mod:`brainlsap.data.subject_folders`. It is made
    beside `folder` under a temporary name and renamed when complete.

    Parameters
    ----------
    cohort : Cohort
        Simulated, which is to say with a `truth`: the files say that nothing in them
        was measured, and nodes that the atlas lacks get invented counts.
    folder : str or Path
        New, or empty.
    style : {"mrtrix", "named"}
        How connectomes are written: MRtrix's numbers without names (destrieux160 and
        desikan82 only), or whole matrices with region names on both sides.
    progress : bool
        Whether to show a bar on standard error.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ParameterError
        Where `folder` holds something, or the cohort cannot be written in this style
        or is not simulated.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap.data.simulate import make_cohort
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = write_subject_folders(make_cohort(5), f"{place}/study")
    ...     sorted(path.name for path in folder.iterdir())[:4]
    ['README', 'dataset_description.json', 'participants.tsv', 'sub-0001']
    """
    folder = Path(folder)
    check_choice("style", style, STYLES)
    if cohort.truth is None:
        raise ParameterError(
            "cohort must be simulated, with a truth: its files say so, and parts of "
            "them are invented. Cohort.write(path) keeps any cohort in one file."
        )
    nodes = mrtrix_nodes(cohort.atlas) if style == "mrtrix" else None
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ParameterError(
            f"{folder} exists and is not an empty folder. Name a new one, or remove it."
        )
    with fill_folder(folder) as whole:
        _write_dataset(cohort, cohort.truth, whole)
        for row in _counted(cohort.n_scans, progress):
            _write_scan(cohort, row, whole, nodes)
    return folder


def _counted(n_scans: int, progress: bool) -> Iterable[int]:
    """Return the rows of all scans, behind a progress bar if wanted."""
    from tqdm import tqdm

    return tqdm(
        range(n_scans),
        desc="writing",
        unit="scan",
        file=sys.stderr,
        disable=not progress,
    )


def _entity(key: str, value: str) -> str:
    """Return `key-value` whether or not the value says its key already."""
    return value if not value or value.startswith(f"{key}-") else f"{key}-{value}"


def _write_dataset(cohort: Cohort, truth: pd.DataFrame, folder: Path) -> None:
    """Write what describes the whole cohort, and the sessions of every person."""
    description = {
        "Name": "Simulated cohort",
        "BIDSVersion": "1.10.0",
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "brainlsap", **cohort.provenance}],
    }
    (folder / "dataset_description.json").write_text(
        json.dumps(description, indent=2) + "\n", encoding="utf-8"
    )
    (folder / "README").write_text(README, encoding="utf-8")
    write_tsv(truth, folder / "truth.tsv")
    table = cohort.table.rename(columns={"label": cohort.label_name})
    covariates = [str(name) for name in table if name not in KEY_COLUMNS]
    people = table.groupby("participant", sort=False)
    first = people.head(1)
    first = first.assign(
        participant_id=[_entity("sub", person) for person in first["participant"]]
    )
    write_tsv(first[["participant_id", *covariates]], folder / "participants.tsv")
    several = people[covariates].nunique().gt(1).any()
    changing = [name for name in covariates if several[name]]
    changing = [cohort.label_name, *(n for n in changing if n != cohort.label_name)]
    for person, scans in people:
        subject = _entity("sub", str(person))
        (folder / subject).mkdir()
        if not (scans["session"] == "").any():
            names = [_entity("ses", session) for session in scans["session"]]
            write_tsv(
                scans.assign(session_id=names)[["session_id", *changing]],
                folder / subject / f"{subject}_sessions.tsv",
            )


def _write_scan(
    cohort: Cohort, row: int, folder: Path, nodes: np.ndarray | None
) -> None:
    """Write one scan's connectome and features."""
    subject = _entity("sub", cohort.table["participant"][row])
    session = _entity("ses", cohort.table["session"][row])
    name = f"{subject}_{session}".rstrip("_")
    place = folder / subject / session
    matrix = cohort.connectomes[row]
    if nodes is None:
        text = named_text(matrix, cohort.region_names)
    else:
        text = mrtrix_text(matrix, nodes, name)
    atlas = ATLAS_WORDS.get(cohort.atlas.name, cohort.atlas.name)
    _write(place / "dwi" / f"{name}_atlas-{atlas}_connectivity.csv", text)
    values = dict(zip(cohort.feature_names, cohort.features[row].T, strict=True))
    if cohort.atlas.name in ANNOTATIONS:
        measured = {k: values.pop(k) for k in FREESURFER_FEATURES if k in values}
        if measured:
            stats = folder / "derivatives" / "freesurfer" / name / "stats"
            _write_stats(cohort.atlas, stats, name, measured)
    for feature, regional in values.items():
        kind, ending, column = REGION_FILES.get(
            feature, ("anat", f"desc-{feature}_regions.tsv", feature)
        )
        text = region_text(cohort.region_names, regional, column)
        _write(place / kind / f"{name}_{ending}", text)


def _write_stats(
    atlas: Atlas, folder: Path, name: str, values: dict[str, np.ndarray]
) -> None:
    for side, hemisphere in (("lh", "L"), ("rh", "R")):
        path = folder / f"{side}.{ANNOTATIONS[atlas.name]}.stats"
        _write(path, aparc_text(atlas, hemisphere, name, values))
    _write(folder / "aseg.stats", aseg_text(atlas, name, values.get("volume")))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
