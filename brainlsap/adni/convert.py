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
    skipped_entry_table: pd.DataFrame  # skipped table entries: rid, viscode, column ...


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
    for modality_name in (*require, *modalities):
        check_choice("modality", modality_name, MODALITIES)
    with fill_folder(out) as study_folder:
        visits, listed_images, import_notes, table_faults = gather_adni_tables(tables)
        if not skip_faulty:
            refuse_faults(Path(tables), table_faults)
        image_table, image_notes, unusable_images = find_images(
            images, listed_images, modalities, skip_faulty=skip_faulty
        )
        import_notes += image_notes
        skipped_entry_table = pd.DataFrame(table_faults, columns=AdniFault._fields)
        if table_faults:
            import_notes.append(
                f"faults of tables that were skipped: {len(table_faults)}, of RID "
                f"{listed(skipped_entry_table['rid'].unique(), 3)} (adni_skipped.tsv)"
            )
        # If no table has the PTID, take it from the image folders: it ends with the
        # RID.
        ptid_of_rid = {
            str(int(ptid.rsplit("_", 1)[1])): ptid for ptid in image_table["ptid"]
        }
        participant_codes = (
            visits["ptid"].astype(object).fillna(visits["rid"].map(ptid_of_rid))
        )
        visits = visits.assign(
            ptid=participant_codes,
            participant_id="sub-ADNI" + participant_codes.str.replace("_", ""),
            session_id="ses-M" + visits["month"].astype(str).str.zfill(3),
            exam_date=visits["date"].dt.strftime("%Y-%m-%d"),
        )
        image_visit_pairs, unused_images = pair_images(visits, image_table, window)
        unused_images = pd.concat(
            [unused_images, unusable_images[UNUSED_COLUMNS]], ignore_index=True
        )
        visits = visits[~visits["is_faulty"].astype(bool)]
        modalities_by_visit = image_visit_pairs.groupby(_VISIT_COLUMNS)["modality"]
        has_required = modalities_by_visit.transform(
            lambda visit_modalities: set(require) <= set(visit_modalities)
        ).astype(bool)
        if n_incomplete := len(
            image_visit_pairs.loc[~has_required, _VISIT_COLUMNS].drop_duplicates()
        ):
            import_notes.append(
                f"{n_incomplete} visits lack one of {', '.join(require)}: left out"
            )
        image_visit_pairs = image_visit_pairs[has_required].reset_index(drop=True)
        if image_visit_pairs.empty:
            raise CohortError(
                f"no image joins a visit: {len(image_table)} images of "
                f"{image_table['ptid'].nunique()} people, {len(visits)} visits, within "
                f"{window} days; {n_incomplete} visits left out for want of a modality"
            )
        labels = labels_by_phase(visits)
        n_without_stage = labels.groupby("phase")["none"].sum()
        counts_text = ", ".join(
            f"{n} of {phase_name}" for phase_name, n in n_without_stage.items() if n
        )
        import_notes += (
            [f"people without a stage: {counts_text}"] if counts_text else []
        )
        modality_counts = image_visit_pairs["modality"].value_counts().sort_index()
        note_lines = (
            f"{image_visit_pairs['participant_id'].nunique()} people, "
            f"{len(image_visit_pairs[_VISIT_COLUMNS].drop_duplicates())} visits with "
            "images",
            "images: "
            + ", ".join(
                f"{modality_name} {n}" for modality_name, n in modality_counts.items()
            ),
            f"images that are not used: {len(unused_images)} (adni_unused_images.tsv)",
            *import_notes,
            "stage is given at baseline visits only; diagnosis at every visit",
        )
        _write_people(image_visit_pairs, visits, study_folder)
        for pair_row in image_visit_pairs.to_dict("records"):
            _link_files(pair_row, study_folder)
        write_tsv(image_visit_pairs, study_folder / "adni_pairing.tsv")
        write_tsv(unused_images, study_folder / "adni_unused_images.tsv")
        write_tsv(labels, study_folder / "adni_labels_by_phase.tsv")
        if table_faults:
            write_tsv(skipped_entry_table, study_folder / "adni_skipped.tsv")
        (study_folder / "adni_notes.txt").write_text(
            "\n".join([*note_lines, ""]), encoding="utf-8"
        )
    return AdniImport(
        Path(out),
        image_visit_pairs,
        unused_images,
        labels,
        note_lines,
        skipped_entry_table,
    )


def labels_by_phase(visits: pd.DataFrame) -> pd.DataFrame:
    """Count participants by phase of enrolment, site and baseline label."""
    missing_values = {"first_phase": "n/a", "site": "n/a", "stage": "none"}
    first_visits = visits.drop_duplicates("rid").fillna(missing_values)
    label_counts = pd.crosstab(
        [first_visits["first_phase"], first_visits["site"]], first_visits["stage"]
    )
    label_counts = label_counts.reindex(columns=[*ADNI_STAGES, "none"], fill_value=0)
    return label_counts.rename_axis(index=["phase", "site"], columns=None).reset_index()


def _write_people(
    image_visit_pairs: pd.DataFrame, visits: pd.DataFrame, folder: Path
) -> None:
    describe_dataset(folder, "ADNI", {"Name": "brainlsap import-adni"}, "raw")
    visit_rows = visits[visits["ptid"].isin(image_visit_pairs["ptid"])]
    visit_rows = visit_rows.assign(
        stage=visit_rows["stage"].where(visit_rows["month"] == 0)
    )
    rows_with_scanner = image_visit_pairs.dropna(subset="scanner").sort_values(
        "modality"
    )
    scanner_of_visit = rows_with_scanner.groupby(_VISIT_COLUMNS)["scanner"].agg(
        lambda names: "; ".join(names.unique())
    )
    visit_rows = visit_rows.join(scanner_of_visit, on=_VISIT_COLUMNS)
    visit_rows["scanner"] = visit_rows["scanner"].fillna(visit_rows["field"])
    first_visits = visit_rows.drop_duplicates("participant_id")
    write_tsv(
        first_visits[["participant_id", *_PERSON_COLUMNS]], folder / "participants.tsv"
    )
    for participant_name, person_rows in visit_rows.groupby("participant_id"):
        (folder / str(participant_name)).mkdir()
        write_tsv(
            person_rows[list(_SESSION_COLUMNS)],
            folder / str(participant_name) / f"{participant_name}_sessions.tsv",
        )


def _link_files(pair_row: dict[str, str], folder: Path) -> None:
    """Link the files of an image into the folder of its visit.

    A single NIfTI image and its sidecars get BIDS names. Other files keep their names
    after that of the visit. The folder of a DICOM series is linked in `sourcedata/`.
    """
    if pair_row["modality"] == "anat":
        bids_datatype, file_suffix = "anat", "T1w"
    elif pair_row["modality"] == "dwi":
        bids_datatype, file_suffix = "dwi", "dwi"
    else:
        bids_datatype = "pet"
        file_suffix = (
            f"trc-{tracer_of(pair_row['description'], pair_row['modality'])}_pet"
        )
    visit_folder = Path(
        pair_row["participant_id"], pair_row["session_id"], bids_datatype
    )
    file_stem = f"{pair_row['participant_id']}_{pair_row['session_id']}"
    (folder / visit_folder).mkdir(parents=True, exist_ok=True)
    source_folder = Path(pair_row["source"]).resolve()
    image_paths = [
        image_path for image_path in source_folder.iterdir() if image_path.is_file()
    ]
    suffix_of_file = {
        image_path: "".join(_SUFFIX_PATTERN.findall(image_path.name.lower()))
        for image_path in image_paths
    }
    if not _DICOM_SUFFIXES.isdisjoint(suffix_of_file.values()):
        (folder / "sourcedata" / visit_folder).mkdir(parents=True, exist_ok=True)
        (folder / "sourcedata" / visit_folder / pair_row["image"]).symlink_to(
            source_folder
        )
        return
    is_one = (
        sum(
            image_suffix in _BIDS_SUFFIXES[:2]
            for image_suffix in suffix_of_file.values()
        )
        == 1
    )
    for image_path, image_suffix in suffix_of_file.items():
        link_name = (
            f"{file_suffix}{image_suffix}"
            if is_one and image_suffix in _BIDS_SUFFIXES
            else image_path.name
        )
        (folder / visit_folder / f"{file_stem}_{link_name}").symlink_to(image_path)
