"""ADNI's tables and images become a cohort's folder.

What is written::

    participants.tsv              participant_id, ptid, rid, sex ... first_phase, site
    sub-ADNI002S0295/
        sub-ADNI002S0295_sessions.tsv    session_id, diagnosis, stage, scanner ...
        ses-M000/dwi/sub-ADNI002S0295_ses-M000_dwi.nii.gz    a link to LONI's file
    adni_pairing.tsv              which image is which visit's, and the days between
    adni_unused_images.tsv        every other image, and why
    adni_converters.tsv           changes of diagnosis
    adni_labels_by_phase.tsv      people by phase, site and baseline label
    adni_notes.txt                what was left out, reckoned or lost
"""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from brainlsap._arrays import check_at_least, check_choice
from brainlsap.data.adni_codes import MODALITIES
from brainlsap.data.adni_folder import AdniImport, write_folder
from brainlsap.data.adni_images import find_adni_images
from brainlsap.data.adni_labels import (
    converters,
    labels_by_phase,
    lost_labels,
    stages_by_visit,
)
from brainlsap.data.adni_pairing import pair_images
from brainlsap.data.adni_tables import read_adni_tables
from brainlsap.exceptions import CohortError, ParameterError

FILES = ("link", "copy", "none")
STAGE_POLICIES = ("baseline", "carry")


def import_adni(
    tables: str | Path,
    images: str | Path,
    out: str | Path,
    *,
    window: int = 180,
    stages: str = "baseline",
    require: tuple[str, ...] = (),
    modalities: Mapping[str, str] | None = None,
    files: str = "link",
) -> AdniImport:
    r"""Make a cohort's folder from ADNI's tables and LONI's images.

    Each modality joins the nearest visit of its person within the window, and no image
    is used twice. `diagnosis` (CN, MCI, AD) is that of each visit; `stage` (CN, SMC,
    EMCI, LMCI, AD) is given once, at baseline. The layout is on the page of
    :mod:`brainlsap.data.adni`; :func:`.load_cohort` reads it.

    Parameters
    ----------
    tables : str or Path
        Folder with ADNIMERGE, or with DXSUM and ARM (PTDEMOG and REGISTRY are used
        where they are there), and LONI's list of images, as CSV; or ADNIMERGE's file.
    images : str or Path
        LONI's download: `PTID/description/date/I-id`.
    out : str or Path
        New, or empty.
    window : int
        Days between an image and its visit, at the most.
    stages : {"baseline", "carry"}
        `stage` stands at baseline visits only, or is carried forward to later ones,
        which `stage_carried` marks.
    require : sequence of str
        Modalities that a visit needs; visits without are left out.
    modalities : mapping of str to str, optional
        Words in descriptions that mean a modality, looked for before the usual ones:
        `{"fdg": "Coreg,_Avg"}`.
    files : {"link", "copy", "none"}
        Whether images are linked to, copied, or only listed.

    Returns
    -------
    AdniImport

    Raises
    ------
    CohortError
        Where tables or images are missing or contradict themselves, or no image joins
        a visit.
    ParameterError
        Where an argument cannot be used, or `out` holds something.

    Examples
    --------
    >>> import tempfile
    >>> head = "RID,PTID,VISCODE,EXAMDATE,COLPROT,ORIGPROT,SITE,DX_bl,DX"
    >>> row = "295,002_S_0295,bl,2006-04-18,ADNI1,ADNI1,2,LMCI,MCI"
    >>> with tempfile.TemporaryDirectory() as place:
    ...     root = Path(place)
    ...     _ = (root / "ADNIMERGE.csv").write_text(f"{head}\n{row}\n")
    ...     scan = root / "ADNI/002_S_0295/Axial_DTI/2006-05-02_08_20_30.0/I13722"
    ...     scan.mkdir(parents=True)
    ...     _ = (scan / "scan.nii").write_bytes(b"")
    ...     found = import_adni(root, root / "ADNI", root / "cohort")
    >>> found.pairs[["session_id", "modality", "days"]].to_numpy().tolist()
    [['ses-M000', 'dwi', 14]]
    """
    check_at_least("window", window, 0)
    check_choice("stages", stages, STAGE_POLICIES)
    check_choice("files", files, FILES)
    for name in (*require, *(modalities or {})):
        check_choice("modality", name, MODALITIES)
    folder = _check_empty(Path(out))
    read = read_adni_tables(tables)
    found, notes = find_adni_images(images, read.images, modalities)
    visits = _with_ptids(read.visits, {one.ptid for one in found})
    pairs, unused = pair_images(visits, found, window)
    pairs, left = _require(pairs, require)
    if pairs.empty:
        raise CohortError(
            f"no image joins a visit: {len(found)} images of "
            f"{len({one.ptid for one in found})} people, {len(visits)} visits, within "
            f"{window} days{left}"
        )
    labels = stages_by_visit(visits, stages == "carry")
    visits = visits.assign(stage_bl=visits["stage"], **dict(labels.items()))
    made = AdniImport(
        folder,
        pairs,
        unused,
        converters(visits),
        labels_by_phase(visits.assign(stage=visits["stage_bl"])),
        (
            *read.notes,
            *notes,
            *([left.strip("; ")] if left else []),
            *lost_labels(visits.assign(stage=visits["stage_bl"])),
            _stage_note(stages),
        ),
    )
    write_folder(made, visits, files)
    return made


def _stage_note(stages: str) -> str:
    if stages == "carry":
        return (
            "stage is carried forward from baseline: stage_carried marks the visits; "
            "it is no diagnosis of that visit"
        )
    return (
        "stage is given at baseline visits only (n/a later); diagnosis at every visit"
    )


def _check_empty(folder: Path) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ParameterError(
            f"{folder} exists and is not an empty folder. Name a new one, or remove it."
        )
    return folder


def _with_ptids(visits: pd.DataFrame, known: set[str]) -> pd.DataFrame:
    """Fill in names that no table gives from the folders of images, by their number."""
    by_number = {str(int(name.rsplit("_", 1)[1])): name for name in known}
    names = visits["ptid"].where(visits["ptid"].notna(), visits["rid"].map(by_number))
    return visits.assign(ptid=names)


def _require(pairs: pd.DataFrame, require: tuple[str, ...]) -> tuple[pd.DataFrame, str]:
    """Keep the visits that have every modality that is needed."""
    if not require or pairs.empty:
        return pairs, ""
    visit = ["participant_id", "session_id"]
    whole = pairs.groupby(visit)["modality"].transform(lambda m: set(require) <= set(m))
    kept = pairs[whole.astype(bool)].reset_index(drop=True)
    n_left = len(pairs[visit].drop_duplicates()) - len(kept[visit].drop_duplicates())
    left = f"; {n_left} visits lack one of {', '.join(require)}: left out"
    return kept, left if n_left else ""
