"""Read a whole cohort from a folder; refuse it once, with everything that is wrong."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from brainlsap.data.atlas import Atlas
from brainlsap.data.cohort import Cohort
from brainlsap.data.folder_reading import read_folder
from brainlsap.exceptions import CohortError


def load_cohort(
    folder: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    feature: str | Sequence[str] = "thickness",
    label: str | None = "diagnosis",
    *,
    classes: Sequence[str] | None = None,
    connectome: str | Path | np.ndarray | None = None,
    subjects_dir: str | Path | None = None,
    derivatives: Sequence[str | Path] = (),
    pattern: str | Mapping[str, str] | None = None,
    scans: str = "all",
    subcortex: str = "absent",
    features_table: str | Path | Sequence[str | Path] | None = None,
    labels: str | Path | Sequence[str] | None = None,
    measure: str | None = None,
    frames: tuple[float, float] | None = None,
    reference: str | Path | None = None,
    progress: bool = False,
) -> Cohort:
    """Read a cohort: people, labels, a connectome and features for every scan.

    Expected is a BIDS-like tree::

        participants.tsv              participant_id, label, age, sex, site ...
        sub-01/sub-01_sessions.tsv    optional: session_id, label of every visit
        sub-01/[ses-M00/]dwi/*_connectivity.csv
        sub-01/[ses-M00/]pet/*_trc-18FFDG_*_regions.tsv
        derivatives/freesurfer/sub-01[_ses-M00]/stats/lh.aparc.a2009s.stats ...

    Features come from tables of regions beside the scan, else from FreeSurfer's
    stats, else from tables of many scans in the cohort's folder. A folder without
    `participants.tsv` may hold one such table with labels and regions in it.

    Parameters
    ----------
    folder : str or Path
        The cohort's folder, as above.
    atlas : str, Path or Atlas
        As :func:`.load_atlas` takes it.
    feature : str or sequence of str
        `thickness`, `volume`, `area` (FreeSurfer), `fdg`, `strength` (sum of the
        connectome's weights to other regions), or the name of a column in tables.
    label : str or None
        Column that is to be predicted; read as text. With None no label is read:
        every scan is "unlabelled", as of new people for whom a model predicts.
    classes : sequence of str, optional
        Labels in order; scans with another label are left out, and this is noted.
    connectome : path or array of shape (n_rois, n_rois), optional
        One connectome for everybody. By default every scan has its own file. "none"
        reads none, for models that make one of their training people's features.
    subjects_dir : path, optional
        Where FreeSurfer's subjects are, if not below the folder.
    derivatives : sequence of path
        Further data sets to look through.
    pattern : str or mapping, optional
        Pattern of connectome files, or patterns by `connectome`, feature and
        `freesurfer`, where the names leave a choice. For connectomes that lie in one
        folder a path with fields, such as `sc/{participant}_{session}.csv`.
    scans : {"all", "baseline"}
        All visits, or the first of every person.
    subcortex : {"absent", "mean", "volume"}
        What the subcortex has for features of the cortical surface, see
        :mod:`brainlsap.data.feature_rules`.
    features_table : path or sequence of path, optional
        The only tables in which features are looked for.
    labels : sequence of str or path, optional
        Name of every row, or a file of them, for connectomes without names.
    measure : str, optional
        Which matrix to take from connectome files that hold several.
    frames, reference : optional
        Window of frames and reference region of PET, as :func:`.read_feature` takes
        them.
    progress : bool
        Whether to show a bar on standard error.

    Returns
    -------
    Cohort
        Scans in the order of `participants.tsv` and of time. Where the folder was
        simulated, its `truth.tsv` is the cohort's truth.

    Raises
    ------
    CohortError
        With every fault of every scan in one list.
    ParameterError, RegionNameError
        Where an argument cannot be used.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap.simulation import make_cohort
    >>> from brainlsap.simulation import write_study_folder as write_subject_folders
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = write_subject_folders(make_cohort(6), f"{place}/study")
    ...     cohort = load_cohort(folder, feature=["fdg", "strength"])
    >>> cohort.n_scans, cohort.feature_names, cohort.classes[-1]
    (12, ('fdg', 'strength'), 'AD')
    """
    reading = read_folder(
        folder,
        atlas,
        feature,
        label,
        classes=classes,
        connectome=connectome,
        subjects_dir=subjects_dir,
        derivatives=derivatives,
        pattern=pattern,
        scans=scans,
        subcortex=subcortex,
        features_table=features_table,
        labels=labels,
        measure=measure,
        frames=frames,
        reference=reference,
        progress=progress,
    )
    faults = reading.reader.faults
    if faults:
        n_faults = f"{len(faults)} fault{'s' * (len(faults) > 1)}"
        raise CohortError(f"{folder} cannot be loaded, {n_faults}", faults)
    return reading.to_cohort()
