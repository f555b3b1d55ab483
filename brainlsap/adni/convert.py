"""Create a study folder from ADNI tables and images.

Files that are written::

    participants.tsv              participant_id, ptid, rid, sex ... first_phase, site
    sub-ADNI002S0295/
        sub-ADNI002S0295_sessions.tsv    session_id, diagnosis, stage, scanner ...
        ses-M000/dwi/sub-ADNI002S0295_ses-M000_dwi.nii.gz    a link to LONI's file
        ses-M000/pet/sub-ADNI002S0295_ses-M000_trc-18FAV45_pet.nii.gz
    adni_pairing.tsv              image and visit, and the days between them
    adni_unused_images.tsv        images that are not used, and the reason
    adni_skipped.tsv              table entries that were skipped, if any, and why
    adni_labels_by_phase.tsv      participants by phase, site and baseline label
    adni_notes.txt                numbers of used, skipped and estimated entries
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
    ADNI_STAGES,
    AdniFault,
    gather_adni_tables,
    refuse_faults,
)
from brainlsap.data import write_tsv
from brainlsap.data.tables import describe_dataset
from brainlsap.exceptions import CohortError, check_at_least, check_choice
from brainlsap.files import fill_folder
from brainlsap.text import listed

_PERSON_COLUMNS = ("ptid", "rid", "sex", "education", "apoe4", "first_phase", "site")
_SESSION_COLUMNS = (
    *("session_id", "viscode", "exam_date", "phase", "age", "mmse", "diagnosis"),
    *("stage", "scanner"),
)
_VISIT_COLUMNS = ["participant_id", "session_id"]
_BIDS_SUFFIXES = (".nii", ".nii.gz", ".bval", ".bvec", ".json")
_DICOM_SUFFIXES = {".dcm", ".ima", ""}
_SUFFIX_PATTERN = re.compile(r"\.nii\.gz$|\.[^.]*$")


class AdniImport(NamedTuple):
    """Result of an import from ADNI."""

    folder: Path  # the study's folder
    pairs: pd.DataFrame  # used images, their visits, the days between
    unused_images: pd.DataFrame  # images that are not used, and the reason
    labels: pd.DataFrame  # participants by phase, site and baseline label
    notes: tuple[str, ...]  # numbers of used, skipped and estimated entries
    skipped_entries: pd.DataFrame  # skipped table entries: rid, viscode, column ...


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
    r"""Create a study folder from ADNI tables and images downloaded from LONI.

    Each image is assigned to the nearest visit of the participant within the window. A
    visit has at most one image of each modality, and no image is used twice.
    `diagnosis` (CN, MCI, AD) is given at each visit; `stage` (CN, SMC, EMCI, LMCI, AD)
    only at baseline. PET files are named by their tracer. :mod:`brainlsap.adni.convert`
    describes the layout, which :func:`.load_cohort` reads.

    Parameters
    ----------
    tables : str or Path
        Folder with CSV files: ADNIMERGE, or DXSUM and ARM (and, if available, PTDEMOG
        and REGISTRY), and LONI's list of images; or the file ADNIMERGE.
    images : str or Path
        Folder downloaded from LONI: `PTID/description/date/I-id`.
    out : str or Path
        New or empty folder.
    window : int
        Maximum number of days between an image and its visit.
    require : sequence of str
        Modalities (dwi, anat, fdg, amyloid, tau) that a visit must have; other visits
        are left out.
    modalities : mapping of str to str, optional
        Text in the description of an image that identifies a modality, for example
        `{"fdg": "Coreg,_Avg"}`. It is searched for before the built-in words.
    skip_faulty : bool
        Whether to leave out entries that cannot be used instead of raising an error:
        visits with an unknown diagnosis or with two, invalid dates, unknown stages or
        arms, and images with the same number. They are listed in `adni_skipped.tsv` and
        `adni_unused_images.tsv`.

    Returns
    -------
    AdniImport
        The folder, tables of pairs, unused images, labels and skipped entries, and
        notes.

    Raises
    ------
    CohortError
        If tables or images are missing, contradict themselves or have unknown codes, or
        no image matches a visit.
    ParameterError
        If an argument cannot be used, or `out` is not empty.
    """
    modalities = dict(modalities or {})
    check_at_least("window", window, 0)
    for name in (*require, *modalities):
        check_choice("modality", name, MODALITIES)
    with fill_folder(out) as study_folder:
        visits, listed_images, notes, faults = gather_adni_tables(tables)
        if not skip_faulty:
            refuse_faults(Path(tables), faults)
        image_table, image_notes, unusable_images = find_images(
            images, listed_images, modalities, skip_faulty=skip_faulty
        )
        notes += image_notes
        skipped_entries = pd.DataFrame(faults, columns=AdniFault._fields)
        if faults:
            notes.append(
                f"faults of tables that were skipped: {len(faults)}, of RID "
                f"{listed(skipped_entries['rid'].unique(), 3)} (adni_skipped.tsv)"
            )
        # If no table has the PTID, take it from the image folders: it ends with the
        # RID.
        ptid_of_rid = {
            str(int(ptid.rsplit("_", 1)[1])): ptid for ptid in image_table["ptid"]
        }
        ptid = visits["ptid"].astype(object).fillna(visits["rid"].map(ptid_of_rid))
        visits = visits.assign(
            ptid=ptid,
            participant_id="sub-ADNI" + ptid.str.replace("_", ""),
            session_id="ses-M" + visits["month"].astype(str).str.zfill(3),
            exam_date=visits["date"].dt.strftime("%Y-%m-%d"),
        )
        pairs, unused_images = pair_images(visits, image_table, window)
        unused_images = pd.concat(
            [unused_images, unusable_images[UNUSED_COLUMNS]], ignore_index=True
        )
        visits = visits[~visits["is_faulty"].astype(bool)]
        modalities_by_visit = pairs.groupby(_VISIT_COLUMNS)["modality"]
        has_required = modalities_by_visit.transform(
            lambda modalities: set(require) <= set(modalities)
        ).astype(bool)
        if n_incomplete := len(
            pairs.loc[~has_required, _VISIT_COLUMNS].drop_duplicates()
        ):
            notes.append(
                f"{n_incomplete} visits lack one of {', '.join(require)}: left out"
            )
        pairs = pairs[has_required].reset_index(drop=True)
        if pairs.empty:
            raise CohortError(
                f"no image joins a visit: {len(image_table)} images of "
                f"{image_table['ptid'].nunique()} people, {len(visits)} visits, within "
                f"{window} days; {n_incomplete} visits left out for want of a modality"
            )
        labels = labels_by_phase(visits)
        n_without_stage = labels.groupby("phase")["none"].sum()
        counts_text = ", ".join(
            f"{n} of {phase}" for phase, n in n_without_stage.items() if n
        )
        notes += [f"people without a stage: {counts_text}"] if counts_text else []
        counts = pairs["modality"].value_counts().sort_index()
        lines = (
            f"{pairs['participant_id'].nunique()} people, "
            f"{len(pairs[_VISIT_COLUMNS].drop_duplicates())} visits with images",
            "images: " + ", ".join(f"{name} {n}" for name, n in counts.items()),
            f"images that are not used: {len(unused_images)} (adni_unused_images.tsv)",
            *notes,
            "stage is given at baseline visits only; diagnosis at every visit",
        )
        _write_people(pairs, visits, study_folder)
        for row in pairs.to_dict("records"):
            _link_files(row, study_folder)
        write_tsv(pairs, study_folder / "adni_pairing.tsv")
        write_tsv(unused_images, study_folder / "adni_unused_images.tsv")
        write_tsv(labels, study_folder / "adni_labels_by_phase.tsv")
        if faults:
            write_tsv(skipped_entries, study_folder / "adni_skipped.tsv")
        (study_folder / "adni_notes.txt").write_text(
            "\n".join([*lines, ""]), encoding="utf-8"
        )
    return AdniImport(Path(out), pairs, unused_images, labels, lines, skipped_entries)


def labels_by_phase(visits: pd.DataFrame) -> pd.DataFrame:
    """Count participants by phase of enrolment, site and baseline label."""
    placeholders = {"first_phase": "n/a", "site": "n/a", "stage": "none"}
    people = visits.drop_duplicates("rid").fillna(placeholders)
    table = pd.crosstab([people["first_phase"], people["site"]], people["stage"])
    table = table.reindex(columns=[*ADNI_STAGES, "none"], fill_value=0)
    return table.rename_axis(index=["phase", "site"], columns=None).reset_index()


def _write_people(pairs: pd.DataFrame, visits: pd.DataFrame, folder: Path) -> None:
    describe_dataset(folder, "ADNI", {"Name": "brainlsap import-adni"}, "raw")
    visit_rows = visits[visits["ptid"].isin(pairs["ptid"])]
    visit_rows = visit_rows.assign(
        stage=visit_rows["stage"].where(visit_rows["month"] == 0)
    )
    rows_with_scanner = pairs.dropna(subset="scanner").sort_values("modality")
    scanners = rows_with_scanner.groupby(_VISIT_COLUMNS)["scanner"].agg(
        lambda names: "; ".join(names.unique())
    )
    visit_rows = visit_rows.join(scanners, on=_VISIT_COLUMNS)
    visit_rows["scanner"] = visit_rows["scanner"].fillna(visit_rows["field"])
    people = visit_rows.drop_duplicates("participant_id")
    write_tsv(people[["participant_id", *_PERSON_COLUMNS]], folder / "participants.tsv")
    for name, rows in visit_rows.groupby("participant_id"):
        (folder / str(name)).mkdir()
        write_tsv(
            rows[list(_SESSION_COLUMNS)], folder / str(name) / f"{name}_sessions.tsv"
        )


def _link_files(row: dict[str, str], folder: Path) -> None:
    """Link the files of an image into the folder of its visit.

    A single NIfTI image and its sidecars get BIDS names. Other files keep their names
    after that of the visit. The folder of a DICOM series is linked in `sourcedata/`.
    """
    if row["modality"] == "anat":
        kind, ending = "anat", "T1w"
    elif row["modality"] == "dwi":
        kind, ending = "dwi", "dwi"
    else:
        kind = "pet"
        ending = f"trc-{tracer_of(row['description'], row['modality'])}_pet"
    visit = Path(row["participant_id"], row["session_id"], kind)
    name = f"{row['participant_id']}_{row['session_id']}"
    (folder / visit).mkdir(parents=True, exist_ok=True)
    source = Path(row["source"]).resolve()
    paths = [path for path in source.iterdir() if path.is_file()]
    files = {
        path: "".join(_SUFFIX_PATTERN.findall(path.name.lower())) for path in paths
    }
    if not _DICOM_SUFFIXES.isdisjoint(files.values()):
        (folder / "sourcedata" / visit).mkdir(parents=True, exist_ok=True)
        (folder / "sourcedata" / visit / row["image"]).symlink_to(source)
        return
    is_one = sum(suffix in _BIDS_SUFFIXES[:2] for suffix in files.values()) == 1
    for path, suffix in files.items():
        link_name = (
            f"{ending}{suffix}" if is_one and suffix in _BIDS_SUFFIXES else path.name
        )
        (folder / visit / f"{name}_{link_name}").symlink_to(path)
