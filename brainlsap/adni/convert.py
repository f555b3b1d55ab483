"""Create a study folder from ADNI tables and images.

Images downloaded from LONI are found, and each is assigned to a visit.

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

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from brainlsap.adni.tables import (
    ADNI_STAGES,
    AdniFault,
    gather_adni_tables,
    parse_date_series,
    refuse_table_faults,
    standardize_ptid,
)
from brainlsap.data import write_tsv
from brainlsap.data.measures import PET_FEATURES, TRACERS, find_longest_tracer
from brainlsap.data.tables import get_name_letters, write_dataset_description
from brainlsap.exceptions import (
    CohortError,
    check_at_least,
    check_choice,
    convert_reading_errors,
)
from brainlsap.files import fill_folder
from brainlsap.text import (
    count_text,
    join_with_commas,
    named_counts_text,
    option_text,
    verb_form,
)

# Words in an image description, in the order of search: dwi, PET, anat.
_DIFFUSION_WORDS = ("dti", "dwi", "dmri", "diffusion")
_ANATOMICAL_WORDS = ("mprage", "mp-rage", "mp_rage", "spgr", "t1w", "t1_")
MODALITIES = ("dwi", *PET_FEATURES, "anat")
_FOUND_COLUMNS = [
    "ptid",
    "image",
    "day",
    "modality",
    "description",
    "source",
    "is_empty",
]
_IMAGE_PATTERN = re.compile(r"I\d+")
_SERIES_PATTERN = re.compile(r"S\d+")
# File names in a series folder end with the image number: ADNI_..._S8916_I40657.nii.
_IMAGE_IN_FILE_NAME = re.compile(r"_(I\d+)(?=\.)")
UNUSED_COLUMNS = ["ptid", "image", "modality", "scan_date", "reason"]
PAIR_COLUMNS = (
    *("participant_id", "ptid", "session_id", "viscode", "exam_date", "modality"),
    *("image", "scan_date", "days", "description", "scanner", "source"),
)

_PERSON_COLUMNS = ("ptid", "rid", "sex", "education", "apoe4", "first_phase", "site")
_SESSION_COLUMNS = (
    *("session_id", "viscode", "exam_date", "phase", "age", "mmse", "diagnosis"),
    *("stage", "scanner"),
)
_VISIT_COLUMNS = ["participant_id", "session_id"]
_BIDS_SUFFIXES = (".nii", ".nii.gz", ".bval", ".bvec", ".json")
_DICOM_SUFFIXES = {".dcm", ".ima", ""}
_SUFFIX_PATTERN = re.compile(r"\.nii\.gz$|\.[^.]*$")


def find_modality_name(
    series_description: str, word_by_modality: Mapping[str, str]
) -> str | None:
    """Return the modality that a description names; look for given words first."""
    normalized_description = series_description.lower().replace(" ", "_")
    for modality, modality_word in word_by_modality.items():
        if modality_word.lower().replace(" ", "_") in normalized_description:
            return modality
    if any(known_word in normalized_description for known_word in _DIFFUSION_WORDS):
        return "dwi"
    tracer = find_longest_tracer(normalized_description)
    if tracer is not None:
        return tracer.feature
    if any(known_word in normalized_description for known_word in _ANATOMICAL_WORDS):
        return "anat"
    return None


def find_tracer_entity(series_description: str, modality: str) -> str:
    """Return the `trc-` entity of a PET image, or else its modality."""
    tracer = find_longest_tracer(series_description, modality)
    modality_tracers = [tracer for tracer in TRACERS if tracer.feature == modality]
    if tracer is None and len(modality_tracers) == 1:
        tracer = modality_tracers[0]
    return modality if tracer is None else tracer.entities[0]


class AdniImages(NamedTuple):
    """The images of a download, and those that cannot be used."""

    image_table: pd.DataFrame  # by person, day and number
    notes: list[str]
    unused_image_table: pd.DataFrame  # with a reason: ptid, image, reason ...


def find_adni_images(
    folder: str | Path,
    image_list_table: pd.DataFrame,
    word_by_modality: Mapping[str, str],
    *,
    skip_faulty: bool = False,
) -> AdniImages:
    """Return the images in a folder downloaded from LONI, and those left out.

    Images are sorted by participant, day and number. Scanners come from LONI's list of
    images. Raises CohortError if there is no image, or, unless `skip_faulty`, if two
    images have one number or the name of a folder is no date.
    """
    image_tuples = list[tuple[object, ...]]()
    omission_reasons = list[str]()
    person_folders = _find_person_folders(Path(folder))
    for person_folder in person_folders:
        for image_folder, image_id, omission_reason in _iter_image_folders_and_faults(
            person_folder
        ):
            series_description, date_folder_name = (
                *image_folder.relative_to(person_folder).parts,
                "",
                "",
            )[:2]
            modality = find_modality_name(series_description, word_by_modality)
            is_empty_folder = not any(
                image_path.is_file() for image_path in image_folder.iterdir()
            )
            ptid = standardize_ptid(person_folder.name)
            image_tuples.append(
                (
                    ptid,
                    image_id,
                    date_folder_name,
                    modality,
                    series_description,
                    str(image_folder),
                    is_empty_folder,
                )
            )
            omission_reasons.append(omission_reason)
    download_table = pd.DataFrame(image_tuples, columns=_FOUND_COLUMNS).assign(
        reason=omission_reasons
    )
    misplaced_image_mask = download_table["reason"] != ""
    image_without_modality_mask = (
        download_table["modality"].isna() & ~misplaced_image_mask
    )
    image_without_files_mask = (
        download_table["is_empty"].astype(bool)
        & ~misplaced_image_mask
        & ~image_without_modality_mask
    )
    unusable_image_mask = (
        misplaced_image_mask | image_without_modality_mask | image_without_files_mask
    )
    image_table = download_table[~unusable_image_mask].sort_values(
        "source", ignore_index=True
    )
    if image_table.empty:
        misplaced_table = download_table.loc[
            misplaced_image_mask, ["source", "reason"]
        ].head(3)
        raise CohortError(
            f"{folder}: the folder contains no image. Each image is expected in a "
            "folder PTID/description/date/I-id, for example "
            "002_S_0295/Axial_DTI/2011-06-02_07_58_30.0/I240811. Tables of regions "
            "without images need no import: brainlsap check TABLES --label DX --id RID "
            "--atlas desikan82 --connectome none --feature FEATURE",
            [
                f"{image_folder}: {omission_reason}"
                for image_folder, omission_reason in misplaced_table.to_numpy()
            ],
        )
    acquisition_dates = parse_date_series(image_table["day"])
    _write_fault_reasons(image_table, acquisition_dates)
    faulty_image_mask = image_table["reason"] != ""
    if faulty_image_mask.any() and not skip_faulty:
        raise CohortError(
            f"{folder}: some images cannot be used. Correct the folders of these "
            f"images, or leave them out with {option_text('skip_faulty', True)}",
            _list_image_fault_lines(image_table[faulty_image_mask]),
        )
    download_table.loc[image_without_files_mask, "reason"] = "the image has no files"
    download_table.loc[image_without_modality_mask, "reason"] = (
        "the description names no modality"
    )
    unused_table = pd.concat(
        [download_table[unusable_image_mask], image_table[faulty_image_mask]],
        ignore_index=True,
    )
    unused_table["scan_date"] = parse_date_series(unused_table["day"]).dt.strftime(
        "%Y-%m-%d"
    )
    omission_notes = []
    modality_advice = (
        ". Name the modality of a description with "
        f"{option_text('modality', 'fdg=DESCRIPTION')}"
    )
    for unused_image_mask, cause_text, advice_text in (
        (image_without_files_mask, "they have no files", ""),
        (
            image_without_modality_mask,
            "their description names no modality",
            modality_advice,
        ),
    ):
        unused_descriptions = download_table.loc[unused_image_mask, "description"]
        if len(unused_descriptions):
            n_images_by_description = unused_descriptions.value_counts().sort_index()
            counts_text = named_counts_text(n_images_by_description.items())
            omission_notes.append(
                f"images are left out because {cause_text}: {counts_text}{advice_text}"
            )
    other_folder_names = _list_other_folder_names(Path(folder), person_folders)
    if other_folder_names:
        omission_notes.append(
            "folders were not searched, because their names are not PTIDs (for "
            f"example 005_S_4010): {join_with_commas(other_folder_names, 5)}"
        )
    scanner_by_image = _parse_scanner_by_image(image_list_table)
    if len(image_list_table):
        image_digit_series = (
            image_list_table["image data id"].dropna().map(_get_image_id_digits)
        )
        n_absent_images = (
            ~image_digit_series.isin(download_table["image"].map(_get_image_id_digits))
        ).sum()
        if n_absent_images:
            omission_notes.append(
                f"{count_text(n_absent_images, 'image')} of the LONI image list "
                f"{verb_form(n_absent_images, 'are')} not in the folder"
            )
    image_table, acquisition_dates = (
        image_table[~faulty_image_mask],
        acquisition_dates[~faulty_image_mask],
    )
    folder_id_pairs = zip(image_table["source"], image_table["image"], strict=True)
    scanner_names = [
        _read_scanner_name(Path(image_folder_text))
        or scanner_by_image.get(_get_image_id_digits(image_id))
        for image_folder_text, image_id in folder_id_pairs
    ]
    iso_dates = acquisition_dates.dt.strftime("%Y-%m-%d")
    image_table = image_table.assign(
        day=acquisition_dates, scan_date=iso_dates, scanner=scanner_names
    )
    image_table = image_table.sort_values(["ptid", "day", "image"], ignore_index=True)
    return AdniImages(image_table.drop(columns="reason"), omission_notes, unused_table)


def _write_fault_reasons(
    image_table: pd.DataFrame, acquisition_dates: pd.Series
) -> None:
    """Write into the column `reason` why images cannot be used."""
    for image_row in image_table[acquisition_dates.isna()].itertuples():
        fault_text = (
            f"{image_row.day!r} is not a date; expected a date such as "
            "2006-04-18_08_20_30.0"
        )
        image_table.loc[image_row.Index, "reason"] = fault_text
    duplicate_image_table = image_table[image_table.duplicated("image", keep=False)]
    for image_id, same_image_table in duplicate_image_table.groupby("image"):
        folders_text = " and in ".join(same_image_table["source"])
        image_table.loc[same_image_table.index, "reason"] = (
            f"the image {image_id} occurs in {folders_text}; expected one folder"
        )


def _list_image_fault_lines(faulty_table: pd.DataFrame) -> list[str]:
    """Return a line for each reason why images cannot be used."""
    duplicate_image_mask = faulty_table.duplicated("image", keep=False)
    reason_series = faulty_table["reason"]
    # The reason of a duplicate names its folders.
    reason_line_series = reason_series.where(
        duplicate_image_mask, faulty_table["source"] + ": " + reason_series
    )
    return reason_line_series[~reason_series.duplicated()].tolist()


def _find_person_folders(folder: Path) -> list[Path]:
    """Return the folders named by a PTID, at most three levels below `folder`."""
    subfolders = (
        subfolder
        for glob_pattern in ("*", "*/*", "*/*/*")
        for subfolder in folder.glob(glob_pattern)
    )
    return sorted(
        subfolder
        for subfolder in subfolders
        if standardize_ptid(subfolder.name) and subfolder.is_dir()
    )


def _list_other_folder_names(folder: Path, person_folders: Iterable[Path]) -> list[str]:
    """Return the names of folders that are not named by a PTID and contain none."""
    top_folder_names = {
        person_folder.relative_to(folder).parts[0] for person_folder in person_folders
    }
    return sorted(
        subfolder.name
        for subfolder in folder.iterdir()
        if subfolder.is_dir() and subfolder.name not in top_folder_names
    )


def _iter_image_folders_and_faults(
    person_folder: Path,
) -> Iterator[tuple[Path, str, str]]:
    """Yield folder and number of a person's images, and an error message or "".

    The folder of an image is `description/date/I-id`. The folder of a series,
    `description/date/S-id`, has a folder for each image, or the image number at the end
    of its file names.
    """
    layout_text = "files are expected in PTID/description/date/I-id"
    for image_folder in (
        person_folder,
        *person_folder.glob("*"),
        *person_folder.glob("*/*"),
    ):
        if image_folder.is_dir() and any(
            inner_path.is_file() for inner_path in image_folder.iterdir()
        ):
            yield image_folder, "n/a", layout_text
    for image_folder in sorted(person_folder.glob("*/*/*")):
        if not image_folder.is_dir():
            continue
        if _IMAGE_PATTERN.fullmatch(image_folder.name):
            yield image_folder, image_folder.name, ""
        elif not _SERIES_PATTERN.fullmatch(image_folder.name):
            fault_text = "the name of the folder is not I or S followed by a number"
            yield image_folder, "n/a", f"{fault_text}; {layout_text}"
        else:
            yield from _iter_series_images_and_faults(image_folder)


def _iter_series_images_and_faults(
    series_folder: Path,
) -> Iterator[tuple[Path, str, str]]:
    """Yield folder and number of the images of a series, or its own number if none."""
    image_folders = [
        image_folder
        for image_folder in sorted(series_folder.iterdir())
        if image_folder.is_dir() and _IMAGE_PATTERN.fullmatch(image_folder.name)
    ]
    for image_folder in image_folders:
        yield image_folder, image_folder.name, ""
    file_names = [
        inner_path.name
        for inner_path in series_folder.iterdir()
        if inner_path.is_file()
    ]
    if image_folders and not file_names:
        return
    image_ids = sorted(
        {n for file_name in file_names for n in _IMAGE_IN_FILE_NAME.findall(file_name)}
    )
    if len(image_ids) > 1:
        fault_text = (
            "one folder contains files of several images "
            f"({join_with_commas(image_ids, 3)})"
        )
        yield series_folder, "n/a", fault_text
        return
    yield series_folder, image_ids[0] if image_ids else series_folder.name, ""


def _get_image_id_digits(image_id: object) -> str:
    """Return the digits of an image number, which lists write with or without I."""
    return str(image_id).strip().upper().removeprefix("I").removesuffix(".0")


def _read_scanner_name(folder: Path) -> str | None:
    """Return the scanner from a BIDS sidecar of the image, if it is given."""
    scanner_keys = ("Manufacturer", "ManufacturersModelName", "MagneticFieldStrength")
    for sidecar_path in sorted(folder.glob("*.json")):
        with convert_reading_errors(sidecar_path, "a sidecar of an image"):
            value_by_sidecar_key = json.loads(sidecar_path.read_text(encoding="utf-8"))
        if "Manufacturer" in value_by_sidecar_key:
            return " ".join(
                str(value_by_sidecar_key[scanner_key])
                for scanner_key in scanner_keys
                if scanner_key in value_by_sidecar_key
            )
    return None


def _parse_scanner_by_image(image_list_table: pd.DataFrame) -> dict[str, str]:
    """Return scanners by image number, from LONI's list.

    The list has one column (`Manufacturer=SIEMENS;Mfg Model=...`), or one column for
    each property.
    """
    scanner_by_image = {}
    spelling_groups = (
        ("manufacturer", "mfr"),
        ("mfgmodel", "model", "manufacturermodel"),
        ("fieldstrength", "magneticfieldstrength"),
    )
    for value_by_column in image_list_table.to_dict("records"):
        cell_by_column = {
            get_name_letters(str(column_name)): cell_text
            for column_name, cell_text in value_by_column.items()
        }
        protocol_entries = str(cell_by_column.get("imagingprotocol") or "").split(";")
        protocol_pairs = (
            protocol_entry.split("=", 1)
            for protocol_entry in protocol_entries
            if "=" in protocol_entry
        )
        cell_by_column |= {
            get_name_letters(protocol_key): protocol_value
            for protocol_key, protocol_value in protocol_pairs
        }
        scanner_words = [
            next(
                (
                    str(cell_by_column[column_letters])
                    for column_letters in column_spellings
                    if cell_by_column.get(column_letters)
                ),
                "",
            )
            for column_spellings in spelling_groups
        ]
        scanner_text = " ".join(
            scanner_word
            for scanner_word in scanner_words
            if scanner_word not in ("", "nan")
        )
        if scanner_text:
            scanner_by_image[_get_image_id_digits(value_by_column["image data id"])] = (
                scanner_text
            )
    return scanner_by_image


def make_pair_and_unused_tables(
    visit_table: pd.DataFrame, image_table: pd.DataFrame, max_days: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Assign every image to the nearest visit of the person within a window of days.

    An image belongs to its nearest visit only (of two equally near visits, the
    earlier), because an image of another date must not represent a visit. A visit has
    one image of each modality: the nearest, or else the earliest. Images of visits with
    errors (`is_faulty`) are not used. Returns the pairs (`PAIR_COLUMNS`, `days` from
    visit to image), and the other images with the reason.
    """
    pair_table = image_table.merge(visit_table.dropna(subset="date"), on="ptid")
    pair_table["days"] = (pair_table["day"] - pair_table["date"]).dt.days
    pair_table["distance"] = pair_table["days"].abs()
    pair_table = pair_table[pair_table["distance"] <= max_days]
    pair_table = pair_table.sort_values(["distance", "month", "day", "image"])
    nearest_visit_table = pair_table.drop_duplicates("image")
    used_pair_table = nearest_visit_table.drop_duplicates(["ptid", "month", "modality"])
    faulty_image_ids = used_pair_table.loc[
        used_pair_table["is_faulty"].astype(bool), "image"
    ]
    used_pair_table = used_pair_table[~used_pair_table["image"].isin(faulty_image_ids)]
    used_pair_table = used_pair_table.sort_values(
        ["participant_id", "session_id", "modality"], ignore_index=True
    )
    omission_reason_series = pd.Series(
        "another image of this modality is nearer to the visit", image_table.index
    )
    omission_reason_series[~image_table["image"].isin(pair_table["image"])] = (
        f"the person has no visit within {max_days} days of the image"
    )
    omission_reason_series[~image_table["ptid"].isin(visit_table["ptid"])] = (
        "the tables do not contain the person"
    )
    omission_reason_series[image_table["image"].isin(faulty_image_ids)] = (
        "the visit was skipped because its rows in the tables have faults"
    )
    unused_table = image_table.assign(reason=omission_reason_series)[
        ~image_table["image"].isin(used_pair_table["image"])
    ]
    return used_pair_table[list(PAIR_COLUMNS)], unused_table[
        UNUSED_COLUMNS
    ].reset_index(drop=True)


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

    Each image is assigned to the nearest visit of the participant within the window. If
    several images of a modality have the same nearest visit, only the nearest image is
    used; the others are listed in `adni_unused_images.tsv`.
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
        visit_table, image_list_table, import_notes, table_faults = gather_adni_tables(
            tables
        )
        if not skip_faulty:
            refuse_table_faults(Path(tables), table_faults)
        image_table, image_notes, unusable_table = find_adni_images(
            images, image_list_table, modalities, skip_faulty=skip_faulty
        )
        import_notes += image_notes
        skipped_entry_table = pd.DataFrame(table_faults, columns=AdniFault._fields)
        if table_faults:
            import_notes.append(
                f"the tables have {count_text(len(table_faults), 'fault')}. The "
                "entries with these faults were skipped, and adni_skipped.tsv lists "
                "them. Their RIDs are "
                f"{join_with_commas(skipped_entry_table['rid'].unique(), 3)}"
            )
        # If no table has the PTID, take it from the image folders: it ends with the
        # RID.
        ptid_by_rid = {
            str(int(ptid.rsplit("_", 1)[1])): ptid for ptid in image_table["ptid"]
        }
        ptid_series = (
            visit_table["ptid"]
            .astype(object)
            .fillna(visit_table["rid"].map(ptid_by_rid))
        )
        visit_table = visit_table.assign(
            ptid=ptid_series,
            participant_id="sub-ADNI" + ptid_series.str.replace("_", ""),
            session_id="ses-M" + visit_table["month"].astype(str).str.zfill(3),
            exam_date=visit_table["date"].dt.strftime("%Y-%m-%d"),
        )
        pair_table, unpaired_table = make_pair_and_unused_tables(
            visit_table, image_table, window
        )
        unused_table = pd.concat(
            [unpaired_table, unusable_table[UNUSED_COLUMNS]], ignore_index=True
        )
        visit_table = visit_table[~visit_table["is_faulty"].astype(bool)]
        modality_groupby = pair_table.groupby(_VISIT_COLUMNS)["modality"]
        complete_visit_mask = modality_groupby.transform(
            lambda visit_modalities: set(require) <= set(visit_modalities)
        ).astype(bool)
        if n_incomplete := len(
            pair_table.loc[~complete_visit_mask, _VISIT_COLUMNS].drop_duplicates()
        ):
            import_notes.append(
                f"{count_text(n_incomplete, 'visit', 'are')} left out, because they "
                f"lack at least one of these modalities: {', '.join(require)}"
            )
        recognised_modality_counts = pair_table["modality"].value_counts().sort_index()
        pair_table = pair_table[complete_visit_mask].reset_index(drop=True)
        if pair_table.empty:
            raise CohortError(
                f"no visit has an image: {count_text(len(image_table), 'image')} of "
                f"{count_text(image_table['ptid'].nunique(), 'person')} "
                f"{verb_form(len(image_table), 'were')} compared with "
                f"{count_text(len(visit_table), 'visit')}",
                _list_pairing_hint_lines(
                    unpaired_table,
                    visit_table,
                    recognised_modality_counts,
                    n_incomplete,
                    require,
                )
                + image_notes,
            )
        label_count_table = make_label_count_table(visit_table)
        n_unstaged_by_phase = label_count_table.groupby("phase")["none"].sum()
        counts_text = ", ".join(
            f"{n} in {phase_name}" for phase_name, n in n_unstaged_by_phase.items() if n
        )
        import_notes += (
            [f"people without a stage, by phase: {counts_text}"] if counts_text else []
        )
        n_images_by_modality = pair_table["modality"].value_counts().sort_index()
        n_people = pair_table["participant_id"].nunique()
        n_visits = len(pair_table[_VISIT_COLUMNS].drop_duplicates())
        note_lines = (
            f"{count_text(n_people, 'person')}, {count_text(n_visits, 'visit')} with "
            "images",
            "images: "
            + ", ".join(
                f"{modality_name} {n}"
                for modality_name, n in n_images_by_modality.items()
            ),
            f"{count_text(len(unused_table), 'image', 'are')} not used "
            "(adni_unused_images.tsv)",
            *import_notes,
            "the stage is given at baseline visits only, and the diagnosis at "
            "every visit. To predict the stage: brainlsap check STUDY --label stage "
            "--scans baseline",
        )
        _write_person_tables(pair_table, visit_table, study_folder)
        for pair_row in pair_table.to_dict("records"):
            _link_image_files(pair_row, study_folder)
        write_tsv(pair_table, study_folder / "adni_pairing.tsv")
        write_tsv(unused_table, study_folder / "adni_unused_images.tsv")
        write_tsv(label_count_table, study_folder / "adni_labels_by_phase.tsv")
        if table_faults:
            write_tsv(skipped_entry_table, study_folder / "adni_skipped.tsv")
        (study_folder / "adni_notes.txt").write_text(
            "\n".join([*note_lines, ""]), encoding="utf-8"
        )
    return AdniImport(
        Path(out),
        pair_table,
        unused_table,
        label_count_table,
        note_lines,
        skipped_entry_table,
    )


def _list_pairing_hint_lines(
    unpaired_image_table: pd.DataFrame,
    visit_table: pd.DataFrame,
    image_count_by_modality: pd.Series,
    n_incomplete_visits: int,
    required_modalities: tuple[str, ...],
) -> list[str]:
    """Return lines on why no image was assigned to a visit."""
    hint_lines = []
    n_undated = int(visit_table["date"].isna().sum())
    if n_undated:
        hint_lines.append(
            f"{n_undated} of {len(visit_table)} visits have no date. Add the column "
            "EXAMDATE to ADNIMERGE. If you use DXSUM, add the table REGISTRY, which "
            "contains the dates of visits"
        )
    if n_incomplete_visits:
        hint_lines.append(
            f"{count_text(n_incomplete_visits, 'visit', 'lack')} one of the required "
            f"modalities ({', '.join(required_modalities)}); images were recognised as "
            f"{named_counts_text(image_count_by_modality.items())}"
        )
    if n_undated < len(visit_table):
        n_images_by_reason = unpaired_image_table["reason"].value_counts().sort_index()
        hint_lines += [
            f"{count_text(n_images, 'image', 'are')} not used, because {unused_reason}"
            for unused_reason, n_images in n_images_by_reason.items()
        ]
    return hint_lines


def make_label_count_table(visit_table: pd.DataFrame) -> pd.DataFrame:
    """Count participants by phase of enrolment, site and baseline label."""
    fill_value_by_column = {"first_phase": "n/a", "site": "n/a", "stage": "none"}
    first_visit_table = visit_table.drop_duplicates("rid").fillna(fill_value_by_column)
    label_count_table = pd.crosstab(
        [first_visit_table["first_phase"], first_visit_table["site"]],
        first_visit_table["stage"],
    )
    label_count_table = label_count_table.reindex(
        columns=[*ADNI_STAGES, "none"], fill_value=0
    )
    return label_count_table.rename_axis(
        index=["phase", "site"], columns=None
    ).reset_index()


def _write_person_tables(
    pair_table: pd.DataFrame, visit_table: pd.DataFrame, study_folder: Path
) -> None:
    write_dataset_description(
        study_folder, "ADNI", {"Name": "brainlsap import-adni"}, "raw"
    )
    study_visit_table = visit_table[visit_table["ptid"].isin(pair_table["ptid"])]
    study_visit_table = study_visit_table.assign(
        stage=study_visit_table["stage"].where(study_visit_table["month"] == 0)
    )
    scanner_pair_table = pair_table.dropna(subset="scanner").sort_values("modality")
    scanner_by_visit = scanner_pair_table.groupby(_VISIT_COLUMNS)["scanner"].agg(
        lambda names: "; ".join(names.unique())
    )
    study_visit_table = study_visit_table.join(scanner_by_visit, on=_VISIT_COLUMNS)
    study_visit_table["scanner"] = study_visit_table["scanner"].fillna(
        study_visit_table["field"]
    )
    first_visit_table = study_visit_table.drop_duplicates("participant_id")
    write_tsv(
        first_visit_table[["participant_id", *_PERSON_COLUMNS]],
        study_folder / "participants.tsv",
    )
    for participant_name, person_visit_table in study_visit_table.groupby(
        "participant_id"
    ):
        (study_folder / str(participant_name)).mkdir()
        write_tsv(
            person_visit_table[list(_SESSION_COLUMNS)],
            study_folder / str(participant_name) / f"{participant_name}_sessions.tsv",
        )


def _link_image_files(text_by_pair_column: dict[str, str], study_folder: Path) -> None:
    """Link the files of an image into the folder of its visit.

    A single NIfTI image and its sidecars get BIDS names. Other files keep their names
    after that of the visit. The folder of a DICOM series is linked in `sourcedata/`.
    """
    if text_by_pair_column["modality"] == "anat":
        bids_datatype, bids_suffix = "anat", "T1w"
    elif text_by_pair_column["modality"] == "dwi":
        bids_datatype, bids_suffix = "dwi", "dwi"
    else:
        bids_datatype = "pet"
        tracer_entity = find_tracer_entity(
            text_by_pair_column["description"], text_by_pair_column["modality"]
        )
        bids_suffix = f"trc-{tracer_entity}_pet"
    visit_folder = Path(
        text_by_pair_column["participant_id"],
        text_by_pair_column["session_id"],
        bids_datatype,
    )
    file_stem = (
        f"{text_by_pair_column['participant_id']}_{text_by_pair_column['session_id']}"
    )
    (study_folder / visit_folder).mkdir(parents=True, exist_ok=True)
    source_folder = Path(text_by_pair_column["source"]).resolve()
    image_paths = [
        image_path for image_path in source_folder.iterdir() if image_path.is_file()
    ]
    suffix_by_path = {
        image_path: "".join(_SUFFIX_PATTERN.findall(image_path.name.lower()))
        for image_path in image_paths
    }
    if not _DICOM_SUFFIXES.isdisjoint(suffix_by_path.values()):
        (study_folder / "sourcedata" / visit_folder).mkdir(parents=True, exist_ok=True)
        (
            study_folder / "sourcedata" / visit_folder / text_by_pair_column["image"]
        ).symlink_to(source_folder)
        return
    is_single_image = (
        sum(
            image_suffix in _BIDS_SUFFIXES[:2]
            for image_suffix in suffix_by_path.values()
        )
        == 1
    )
    for image_path, image_suffix in suffix_by_path.items():
        link_name = (
            f"{bids_suffix}{image_suffix}"
            if is_single_image and image_suffix in _BIDS_SUFFIXES
            else image_path.name
        )
        (study_folder / visit_folder / f"{file_stem}_{link_name}").symlink_to(
            image_path
        )
