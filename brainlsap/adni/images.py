"""Find images downloaded from LONI and assign each to a visit."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.adni.tables import parse_days
from brainlsap.data.measures import PET_FEATURES, TRACERS, find_longest_tracer
from brainlsap.data.tables import letters_of
from brainlsap.exceptions import CohortError, reading
from brainlsap.text import listed, option_text

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
_PTID_PATTERN = re.compile(r"\d{3}_S_\d{4,5}", re.IGNORECASE)
_IMAGE_PATTERN = re.compile(r"I\d+")
_SERIES_PATTERN = re.compile(r"S\d+")
# File names in a series folder end with the image number: ADNI_..._S8916_I40657.nii.
_IMAGE_IN_FILE_NAME = re.compile(r"_(I\d+)(?=\.)")
UNUSED_COLUMNS = ["ptid", "image", "modality", "scan_date", "reason"]
PAIR_COLUMNS = (
    *("participant_id", "ptid", "session_id", "viscode", "exam_date", "modality"),
    *("image", "scan_date", "days", "description", "scanner", "source"),
)


def modality_of(
    series_description: str, word_of_modality: Mapping[str, str]
) -> str | None:
    """Return the modality that a description names; look for given words first."""
    normalized_description = series_description.lower().replace(" ", "_")
    for modality, modality_word in word_of_modality.items():
        if modality_word.lower().replace(" ", "_") in normalized_description:
            return modality
    if any(word in normalized_description for word in _DIFFUSION_WORDS):
        return "dwi"
    tracer = find_longest_tracer(normalized_description)
    if tracer is not None:
        return tracer.feature
    if any(word in normalized_description for word in _ANATOMICAL_WORDS):
        return "anat"
    return None


def tracer_of(series_description: str, modality: str) -> str:
    """Return the `trc-` entity of a PET image, or else its modality."""
    tracer = find_longest_tracer(series_description, modality)
    modality_tracers = [tracer for tracer in TRACERS if tracer.feature == modality]
    if tracer is None and len(modality_tracers) == 1:
        tracer = modality_tracers[0]
    return modality if tracer is None else tracer.entities[0]


class AdniImages(NamedTuple):
    """The images of a download, and those that cannot be used."""

    images: pd.DataFrame  # by person, day and number
    notes: list[str]
    unused_images: pd.DataFrame  # with a reason: ptid, image, reason ...


def find_images(
    folder: str | Path,
    listed_images: pd.DataFrame,
    word_of_modality: Mapping[str, str],
    *,
    skip_faulty: bool = False,
) -> AdniImages:
    """Return the images in a folder downloaded from LONI, and those left out.

    Images are sorted by participant, day and number. Scanners come from LONI's list of
    images. Raises CohortError if there is no image, or, unless `skip_faulty`, if two
    images have one number or the name of a folder is no date.
    """
    image_rows = list[tuple[object, ...]]()
    omission_reasons = list[str]()
    for person_folder in _find_people(Path(folder)):
        for image_folder, image, omission_reason in _find_image_folders(person_folder):
            series_description, acquisition_day = (
                *image_folder.relative_to(person_folder).parts,
                "",
                "",
            )[:2]
            modality = modality_of(series_description, word_of_modality)
            is_empty = not any(
                image_file.is_file() for image_file in image_folder.iterdir()
            )
            participant_code = person_folder.name.upper()
            image_rows.append(
                (
                    participant_code,
                    image,
                    acquisition_day,
                    modality,
                    series_description,
                    str(image_folder),
                    is_empty,
                )
            )
            omission_reasons.append(omission_reason)
    all_images = pd.DataFrame(image_rows, columns=_FOUND_COLUMNS).assign(
        reason=omission_reasons
    )
    is_strange = all_images["reason"] != ""
    is_used = all_images["modality"].notna() & ~all_images["is_empty"].astype(bool)
    images = all_images[is_used & ~is_strange].sort_values("source", ignore_index=True)
    if images.empty:
        strange_rows = all_images.loc[is_strange, ["source", "reason"]].head(3)
        raise CohortError(
            f"{folder}: no image found; expected PTID/description/date/I-id, such as "
            "002_S_0295/Axial_DTI/2011-06-02_07_58_30.0/I240811, with files in it",
            [
                f"{image_folder}: {omission_reason}"
                for image_folder, omission_reason in strange_rows.to_numpy()
            ],
        )
    acquisition_dates = parse_days(images["day"])
    _mark_faults(images, acquisition_dates)
    is_faulty = images["reason"] != ""
    if is_faulty.any() and not skip_faulty:
        raise CohortError(
            f"{folder}: images that cannot be used. Correct the folders, or leave "
            f"such images out by {option_text('skip_faulty', True)}",
            _describe_faults(images[is_faulty]),
        )
    unused_images = pd.concat(
        [all_images[is_strange], images[is_faulty]], ignore_index=True
    )
    unused_images["scan_date"] = parse_days(unused_images["day"]).dt.strftime(
        "%Y-%m-%d"
    )
    omission_notes = []
    lost_descriptions = all_images.loc[~is_used & ~is_strange, "description"]
    if len(lost_descriptions):
        description_counts = lost_descriptions.value_counts().sort_index()
        counts_text = ", ".join(
            f"{description_name} ({n})"
            for description_name, n in description_counts.items()
        )
        omission_notes.append(
            "images without files or of no modality that is used, left out: "
            f"{counts_text}"
        )
    scanner_of_image = _listed_scanners(listed_images)
    if len(listed_images):
        listed_numbers = listed_images["image data id"].dropna().map(_image_number)
        n_absent = (~listed_numbers.isin(all_images["image"].map(_image_number))).sum()
        if n_absent:
            omission_notes.append(
                f"images of LONI's list that are not there: {n_absent}"
            )
    images, acquisition_dates = images[~is_faulty], acquisition_dates[~is_faulty]
    path_and_number = zip(images["source"], images["image"], strict=True)
    image_scanners = [
        _scanner_of(Path(image_folder)) or scanner_of_image.get(_image_number(image))
        for image_folder, image in path_and_number
    ]
    scan_dates = acquisition_dates.dt.strftime("%Y-%m-%d")
    images = images.assign(
        day=acquisition_dates, scan_date=scan_dates, scanner=image_scanners
    )
    images = images.sort_values(["ptid", "day", "image"], ignore_index=True)
    return AdniImages(images.drop(columns="reason"), omission_notes, unused_images)


def _mark_faults(images: pd.DataFrame, acquisition_dates: pd.Series) -> None:
    """Write into the column `reason` why images cannot be used."""
    for image_row in images[acquisition_dates.isna()].itertuples():
        fault_text = f"{image_row.day!r} is no day such as 2006-04-18_08_20_30.0"
        images.loc[image_row.Index, "reason"] = fault_text
    repeated_images = images[images.duplicated("image", keep=False)]
    for image, duplicate_rows in repeated_images.groupby("image"):
        source_folders = " and in ".join(duplicate_rows["source"])
        images.loc[duplicate_rows.index, "reason"] = (
            f"{image} stands in {source_folders}"
        )


def _describe_faults(faulty_images: pd.DataFrame) -> list[str]:
    """Return a line for each reason why images cannot be used."""
    is_duplicate = faulty_images.duplicated("image", keep=False)
    reasons = faulty_images["reason"]
    # The reason of a duplicate names its folders.
    lines = reasons.where(is_duplicate, faulty_images["source"] + ": " + reasons)
    return lines[~reasons.duplicated()].tolist()


def _find_people(folder: Path) -> list[Path]:
    """Return the folders named by a PTID, at most three levels below `folder`."""
    subfolders = (
        subfolder
        for glob_pattern in ("*", "*/*", "*/*/*")
        for subfolder in folder.glob(glob_pattern)
    )
    return sorted(
        subfolder
        for subfolder in subfolders
        if _PTID_PATTERN.fullmatch(subfolder.name) and subfolder.is_dir()
    )


def _find_image_folders(person_folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield folder and number of a person's images, and an error message or "".

    The folder of an image is `description/date/I-id`. The folder of a series,
    `description/date/S-id`, has a folder for each image, or the image number at the end
    of its file names.
    """
    expected_layout = "expected files in PTID/description/date/I-id"
    for image_folder in (
        person_folder,
        *person_folder.glob("*"),
        *person_folder.glob("*/*"),
    ):
        if image_folder.is_dir() and any(
            image_file.is_file() for image_file in image_folder.iterdir()
        ):
            yield image_folder, "n/a", expected_layout
    for image_folder in sorted(person_folder.glob("*/*/*")):
        if not image_folder.is_dir():
            continue
        if _IMAGE_PATTERN.fullmatch(image_folder.name):
            yield image_folder, image_folder.name, ""
        elif not _SERIES_PATTERN.fullmatch(image_folder.name):
            fault_text = "the folder is named neither I nor S and a number"
            yield image_folder, "n/a", f"{fault_text}; {expected_layout}"
        else:
            yield from _find_series_images(image_folder)


def _find_series_images(series_folder: Path) -> Iterator[tuple[Path, str, str]]:
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
    image_numbers = sorted(
        {n for file_name in file_names for n in _IMAGE_IN_FILE_NAME.findall(file_name)}
    )
    if len(image_numbers) > 1:
        fault_text = (
            f"files of several images in one folder ({listed(image_numbers, 3)})"
        )
        yield series_folder, "n/a", fault_text
        return
    yield series_folder, image_numbers[0] if image_numbers else series_folder.name, ""


def _image_number(image: object) -> str:
    """Return the digits of an image number, which lists write with or without I."""
    return str(image).strip().upper().removeprefix("I").removesuffix(".0")


def _scanner_of(folder: Path) -> str | None:
    """Return the scanner from a BIDS sidecar of the image, if it is given."""
    scanner_keys = ("Manufacturer", "ManufacturersModelName", "MagneticFieldStrength")
    for sidecar_path in sorted(folder.glob("*.json")):
        with reading(sidecar_path, "a sidecar of an image"):
            sidecar_fields = json.loads(sidecar_path.read_text(encoding="utf-8"))
        if "Manufacturer" in sidecar_fields:
            return " ".join(
                str(sidecar_fields[scanner_key])
                for scanner_key in scanner_keys
                if scanner_key in sidecar_fields
            )
    return None


def _listed_scanners(listed_images: pd.DataFrame) -> dict[str, str]:
    """Return scanners by image number, from LONI's list.

    The list has one column (`Manufacturer=SIEMENS;Mfg Model=...`), or one column for
    each property.
    """
    scanner_of_image = {}
    scanner_columns = (
        ("manufacturer", "mfr"),
        ("mfgmodel", "model", "manufacturermodel"),
        ("fieldstrength", "magneticfieldstrength"),
    )
    for image_row in listed_images.to_dict("records"):
        cell_by_head = {
            letters_of(str(column_name)): cell_text
            for column_name, cell_text in image_row.items()
        }
        protocol_entries = str(cell_by_head.get("imagingprotocol") or "").split(";")
        protocol_pairs = (
            protocol_entry.split("=", 1)
            for protocol_entry in protocol_entries
            if "=" in protocol_entry
        )
        cell_by_head |= {
            letters_of(protocol_key): protocol_value
            for protocol_key, protocol_value in protocol_pairs
        }
        scanner_words = [
            next(
                (
                    str(cell_by_head[column_head])
                    for column_head in column_spellings
                    if cell_by_head.get(column_head)
                ),
                "",
            )
            for column_spellings in scanner_columns
        ]
        scanner_text = " ".join(
            scanner_word
            for scanner_word in scanner_words
            if scanner_word not in ("", "nan")
        )
        if scanner_text:
            scanner_of_image[_image_number(image_row["image data id"])] = scanner_text
    return scanner_of_image


def pair_images(
    visits: pd.DataFrame, images: pd.DataFrame, max_days: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Assign every image to the nearest visit of the person within a window of days.

    The closest pairs are made first; of equally close pairs, those with the earlier
    visit and image. A visit has one image of each modality, and an image is assigned
    once. Images of visits with errors (`is_faulty`) are not used. Returns the pairs
    (`PAIR_COLUMNS`, `days` from visit to image), and the other images with the reason.
    """
    image_visit_pairs = images.merge(visits.dropna(subset="date"), on="ptid")
    image_visit_pairs["days"] = (
        image_visit_pairs["day"] - image_visit_pairs["date"]
    ).dt.days
    image_visit_pairs["distance"] = image_visit_pairs["days"].abs()
    image_visit_pairs = image_visit_pairs[image_visit_pairs["distance"] <= max_days]
    image_visit_pairs = image_visit_pairs.sort_values(
        ["distance", "month", "day", "image"]
    )
    used_keys = set[tuple[object, ...]]()
    is_chosen = list[bool]()
    for image, *visit_key in image_visit_pairs[
        ["image", "ptid", "month", "modality"]
    ].to_numpy():
        pair_keys = {(image,), tuple(visit_key)}
        is_free = not pair_keys & used_keys
        is_chosen.append(is_free)
        if is_free:
            used_keys |= pair_keys
    nearest_pairs = image_visit_pairs[np.array(is_chosen, dtype=bool)]
    images_of_faulty_visits = nearest_pairs.loc[
        nearest_pairs["is_faulty"].astype(bool), "image"
    ]
    nearest_pairs = nearest_pairs[~nearest_pairs["image"].isin(images_of_faulty_visits)]
    nearest_pairs = nearest_pairs.sort_values(
        ["participant_id", "session_id", "modality"], ignore_index=True
    )
    omission_reasons = pd.Series(
        "the visit has a nearer image of this modality", images.index
    )
    omission_reasons[~images["image"].isin(image_visit_pairs["image"])] = (
        f"no visit within {max_days} days"
    )
    omission_reasons[~images["ptid"].isin(visits["ptid"])] = "the person is in no table"
    omission_reasons[images["image"].isin(images_of_faulty_visits)] = (
        "the visit was skipped, it has faults"
    )
    unused_images = images.assign(reason=omission_reasons)[
        ~images["image"].isin(nearest_pairs["image"])
    ]
    return nearest_pairs[list(PAIR_COLUMNS)], unused_images[UNUSED_COLUMNS].reset_index(
        drop=True
    )
