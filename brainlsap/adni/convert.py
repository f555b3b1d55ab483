"""ADNI's tables and images become a study's folder.

What is written::

    participants.tsv              participant_id, ptid, rid, sex ... first_phase, site
    sub-ADNI002S0295/
        sub-ADNI002S0295_sessions.tsv    session_id, diagnosis, stage, scanner ...
        ses-M000/dwi/sub-ADNI002S0295_ses-M000_dwi.nii.gz    a link to LONI's file
        ses-M000/pet/sub-ADNI002S0295_ses-M000_trc-18FAV45_pet.nii.gz
    adni_pairing.tsv              which image is which visit's, and the days between
    adni_unused_images.tsv        every other image, and why
    adni_skipped.tsv              what was skipped of the tables, and why, if any was
    adni_labels_by_phase.tsv      people by phase, site and baseline label
    adni_notes.txt                what was left out, reckoned or lost
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from brainlsap.adni.images import (
    MODALITIES,
    UNUSED_COLUMNS,
    find_images,
    pair_images,
    tracer_of,
)
from brainlsap.adni.tables import (
    STAGES,
    AdniFault,
    gather_adni_tables,
    refuse_faults,
)
from brainlsap.data import write_tsv
from brainlsap.data.tables import describe_dataset
from brainlsap.exceptions import CohortError, check_at_least, check_choice
from brainlsap.files import fill_folder
from brainlsap.text import listed

_PERSON = ("ptid", "rid", "sex", "education", "apoe4", "first_phase", "site")
_SESSION = (
    *("session_id", "viscode", "exam_date", "phase", "age", "mmse", "diagnosis"),
    *("stage", "scanner"),
)
_VISIT = ["participant_id", "session_id"]
_NAMED = (".nii", ".nii.gz", ".bval", ".bvec", ".json")
_DICOM = {".dcm", ".ima", ""}
_SUFFIX = re.compile(r"\.nii\.gz$|\.[^.]*$")


class AdniImport(NamedTuple):
    """What was imported from ADNI."""

    folder: Path  # the study's folder
    pairs: pd.DataFrame  # every image that is used, its visit, the days between
    unused: pd.DataFrame  # every other image, and why
    labels: pd.DataFrame  # people by phase, site and baseline label
    notes: tuple[str, ...]  # how much was used, left out, reckoned or lost
    skipped: pd.DataFrame  # what was skipped of the tables: rid, viscode, column ...


def import_adni(
    tables: str | Path,
    images: str | Path,
    out: str | Path,
    *,
    window: int = 180,
    require: tuple[str, ...] = (),
    modalities: Mapping[str, str] | None = None,
    skip_faulty: bool = False,
) -> AdniImport:
    r"""Make a study's folder from ADNI's tables and LONI's images.

    Each modality joins the nearest visit of its person within the window, and no image
    is used twice. `diagnosis` (CN, MCI, AD) is that of each visit; `stage` (CN, SMC,
    EMCI, LMCI, AD) is given once, at baseline. PET is named by its tracer. The layout
    is on the page of :mod:`brainlsap.adni.convert`; :func:`.load_cohort` reads it.

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
    require : sequence of str
        Modalities (dwi, anat, fdg, amyloid, tau) that a visit needs; visits without
        are left out.
    modalities : mapping of str to str, optional
        Words in descriptions that mean a modality, looked for before the usual ones:
        `{"fdg": "Coreg,_Avg"}`.
    skip_faulty : bool
        Whether to leave out what cannot be used, in place of refusing the tables:
        visits with a diagnosis that is not known or with two of them, days that are
        none, a stage or an arm that is not known, images with one number. It is listed
        in `adni_skipped.tsv` and `adni_unused_images.tsv`.

    Returns
    -------
    AdniImport
        The folder, tables of pairs, unused images and labels, notes, and what was
        skipped.

    Raises
    ------
    CohortError
        Where tables or images are missing, contradict themselves or say words and codes
        that are not known, or no image joins a visit.
    ParameterError
        Where an argument cannot be used, or `out` holds something.
    """
    modalities = dict(modalities or {})
    check_at_least("window", window, 0)
    for name in (*require, *modalities):
        check_choice("modality", name, MODALITIES)
    with fill_folder(out) as whole:
        visits, listed_images, notes, faults = gather_adni_tables(tables)
        if not skip_faulty:
            refuse_faults(Path(tables), faults)
        found, image_notes, strange = find_images(
            images, listed_images, modalities, skip_faulty=skip_faulty
        )
        notes += image_notes
        skipped = pd.DataFrame(faults, columns=AdniFault._fields)
        if faults:
            notes.append(
                f"faults of tables that were skipped: {len(faults)}, of RID "
                f"{listed(skipped['rid'].unique(), 3)} (adni_skipped.tsv)"
            )
        # names that no table gives are those of images' folders: they end with the RID
        by_number = {str(int(n.rsplit("_", 1)[1])): n for n in found["ptid"]}
        ptid = visits["ptid"].astype(object).fillna(visits["rid"].map(by_number))
        visits = visits.assign(
            ptid=ptid,
            participant_id="sub-ADNI" + ptid.str.replace("_", ""),
            session_id="ses-M" + visits["month"].astype(str).str.zfill(3),
            exam_date=visits["date"].dt.strftime("%Y-%m-%d"),
        )
        pairs, unused = pair_images(visits, found, window)
        unused = pd.concat([unused, strange[UNUSED_COLUMNS]], ignore_index=True)
        visits = visits[~visits["is_faulty"].astype(bool)]
        by_visit = pairs.groupby(_VISIT)["modality"]
        has_all = by_visit.transform(lambda m: set(require) <= set(m)).astype(bool)
        if n_left := len(pairs.loc[~has_all, _VISIT].drop_duplicates()):
            notes.append(f"{n_left} visits lack one of {', '.join(require)}: left out")
        pairs = pairs[has_all].reset_index(drop=True)
        if pairs.empty:
            raise CohortError(
                f"no image joins a visit: {len(found)} images of "
                f"{found['ptid'].nunique()} people, {len(visits)} visits, within "
                f"{window} days; {n_left} visits left out for want of a modality"
            )
        labels = labels_by_phase(visits)
        unstaged = labels.groupby("phase")["none"].sum()
        told = ", ".join(f"{n} of {phase}" for phase, n in unstaged.items() if n)
        notes += [f"people without a stage: {told}"] if told else []
        counts = pairs["modality"].value_counts().sort_index()
        lines = (
            f"{pairs['participant_id'].nunique()} people, "
            f"{len(pairs[_VISIT].drop_duplicates())} visits with images",
            "images: " + ", ".join(f"{name} {n}" for name, n in counts.items()),
            f"images that are not used: {len(unused)} (adni_unused_images.tsv)",
            *notes,
            "stage is given at baseline visits only; diagnosis at every visit",
        )
        _write_people(pairs, visits, whole)
        for row in pairs.to_dict("records"):
            _link_files(row, whole)
        write_tsv(pairs, whole / "adni_pairing.tsv")
        write_tsv(unused, whole / "adni_unused_images.tsv")
        write_tsv(labels, whole / "adni_labels_by_phase.tsv")
        if faults:
            write_tsv(skipped, whole / "adni_skipped.tsv")
        (whole / "adni_notes.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return AdniImport(Path(out), pairs, unused, labels, lines, skipped)


def labels_by_phase(visits: pd.DataFrame) -> pd.DataFrame:
    """Count people by the phase in which they came in, site and baseline label."""
    absent = {"first_phase": "n/a", "site": "n/a", "stage": "none"}
    people = visits.drop_duplicates("rid").fillna(absent)
    table = pd.crosstab([people["first_phase"], people["site"]], people["stage"])
    table = table.reindex(columns=[*STAGES, "none"], fill_value=0)
    return table.rename_axis(index=["phase", "site"], columns=None).reset_index()


def _write_people(pairs: pd.DataFrame, visits: pd.DataFrame, folder: Path) -> None:
    describe_dataset(folder, "ADNI", {"Name": "brainlsap import-adni"}, "raw")
    kept = visits[visits["ptid"].isin(pairs["ptid"])]
    kept = kept.assign(stage=kept["stage"].where(kept["month"] == 0))
    known = pairs.dropna(subset="scanner").sort_values("modality")
    scanners = known.groupby(_VISIT)["scanner"].agg(lambda of: "; ".join(of.unique()))
    kept = kept.join(scanners, on=_VISIT)
    kept["scanner"] = kept["scanner"].fillna(kept["field"])
    people = kept.drop_duplicates("participant_id")
    write_tsv(people[["participant_id", *_PERSON]], folder / "participants.tsv")
    for name, rows in kept.groupby("participant_id"):
        (folder / str(name)).mkdir()
        write_tsv(rows[list(_SESSION)], folder / str(name) / f"{name}_sessions.tsv")


def _link_files(row: dict[str, str], folder: Path) -> None:
    """Link to the files of an image below the visit that it joins.

    One NIfTI image and its sidecars get the names of BIDS; other files keep theirs
    behind the visit's; of many (DICOM), the folder is linked in `sourcedata/`.
    """
    pet = "pet", f"trc-{tracer_of(row['description'], row['modality'])}_pet"
    kinds = {"anat": ("anat", "T1w"), "dwi": ("dwi", "dwi")}
    kind, ending = kinds.get(row["modality"], pet)
    visit = Path(row["participant_id"], row["session_id"], kind)
    name = f"{row['participant_id']}_{row['session_id']}"
    (folder / visit).mkdir(parents=True, exist_ok=True)
    source = Path(row["source"]).resolve()
    paths = [path for path in source.iterdir() if path.is_file()]
    files = {path: "".join(_SUFFIX.findall(path.name.lower())) for path in paths}
    if not _DICOM.isdisjoint(files.values()):
        (folder / "sourcedata" / visit).mkdir(parents=True, exist_ok=True)
        (folder / "sourcedata" / visit / row["image"]).symlink_to(source)
        return
    is_one = sum(suffix in _NAMED[:2] for suffix in files.values()) == 1
    for path, suffix in files.items():
        new = f"{ending}{suffix}" if is_one and suffix in _NAMED else path.name
        (folder / visit / f"{name}_{new}").symlink_to(path)
