"""Find images downloaded from LONI and assign each to a visit."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.adni.tables import parse_days
from brainlsap.data import TRACERS
from brainlsap.data.measures import PET_FEATURES, find_longest_tracer
from brainlsap.data.tables import letters_of
from brainlsap.exceptions import CohortError, reading
from brainlsap.text import listed

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


def modality_of(description: str, words: Mapping[str, str]) -> str | None:
    """Return the modality named in a description; search for `words` first."""
    text = description.lower().replace(" ", "_")
    for modality, word in words.items():
        if word.lower().replace(" ", "_") in text:
            return modality
    if any(word in text for word in _DIFFUSION_WORDS):
        return "dwi"
    tracer = find_longest_tracer(text)
    if tracer is not None:
        return tracer.feature
    if any(word in text for word in _ANATOMICAL_WORDS):
        return "anat"
    return None


def tracer_of(description: str, modality: str) -> str:
    """Return the `trc-` entity of a PET image, or else its modality."""
    tracer = find_longest_tracer(description, modality)
    modality_tracers = [tracer for tracer in TRACERS if tracer.feature == modality]
    if tracer is None and len(modality_tracers) == 1:
        tracer = modality_tracers[0]
    return modality if tracer is None else tracer.entities[0]


class AdniImages(NamedTuple):
    """The images of a download, and those that cannot be used."""

    images: pd.DataFrame  # by person, day and number
    notes: list[str]
    unused_images: (
        pd.DataFrame
    )  # folders and images with a reason: ptid, image, reason ...


def find_images(
    folder: str | Path,
    listed_images: pd.DataFrame,
    words: Mapping[str, str],
    *,
    skip_faulty: bool = False,
) -> AdniImages:
    """Return the images in a folder downloaded from LONI, and those left out.

    Images are sorted by participant, day and number. Scanners come from LONI's list of
    images. Raises CohortError if there is no image, or, unless `skip_faulty`, if two
    images have one number or the name of a folder is no date.
    """
    rows = list[tuple[object, ...]]()
    reasons = list[str]()
    for person in _find_people(Path(folder)):
        for path, image, reason in _find_image_folders(person):
            description, day = (*path.relative_to(person).parts, "", "")[:2]
            modality = modality_of(description, words)
            is_empty = not any(file.is_file() for file in path.iterdir())
            ptid = person.name.upper()
            rows.append((ptid, image, day, modality, description, str(path), is_empty))
            reasons.append(reason)
    all_images = pd.DataFrame(rows, columns=_FOUND_COLUMNS).assign(reason=reasons)
    is_strange = all_images["reason"] != ""
    is_used = all_images["modality"].notna() & ~all_images["is_empty"].astype(bool)
    images = all_images[is_used & ~is_strange].sort_values("source", ignore_index=True)
    if images.empty:
        strange_rows = all_images.loc[is_strange, ["source", "reason"]].head(3)
        raise CohortError(
            f"{folder}: no image found; expected PTID/description/date/I-id, such as "
            "002_S_0295/Axial_DTI/2011-06-02_07_58_30.0/I240811, with files in it",
            [f"{path}: {reason}" for path, reason in strange_rows.to_numpy()],
        )
    days = parse_days(images["day"])
    _mark_faults(images, days)
    is_faulty = images["reason"] != ""
    if is_faulty.any() and not skip_faulty:
        raise CohortError(
            f"{folder}: images that cannot be used. Correct the folders, or leave "
            "such images out by skip_faulty=True",
            _describe_faults(images[is_faulty]),
        )
    unused_images = pd.concat(
        [all_images[is_strange], images[is_faulty]], ignore_index=True
    )
    unused_images["scan_date"] = parse_days(unused_images["day"]).dt.strftime(
        "%Y-%m-%d"
    )
    notes = []
    lost_descriptions = all_images.loc[~is_used & ~is_strange, "description"]
    if len(lost_descriptions):
        counts = lost_descriptions.value_counts().sort_index()
        counts_text = ", ".join(f"{name} ({n})" for name, n in counts.items())
        notes.append(
            "images without files or of no modality that is used, left out: "
            f"{counts_text}"
        )
    scanners = _listed_scanners(listed_images)
    if len(listed_images):
        listed_numbers = listed_images["image data id"].dropna().map(_image_number)
        n_absent = (~listed_numbers.isin(all_images["image"].map(_image_number))).sum()
        if n_absent:
            notes.append(f"images of LONI's list that are not there: {n_absent}")
    images, days = images[~is_faulty], days[~is_faulty]
    path_and_number = zip(images["source"], images["image"], strict=True)
    scanner = [
        _scanner_of(Path(path)) or scanners.get(_image_number(image))
        for path, image in path_and_number
    ]
    scan_dates = days.dt.strftime("%Y-%m-%d")
    images = images.assign(day=days, scan_date=scan_dates, scanner=scanner)
    images = images.sort_values(["ptid", "day", "image"], ignore_index=True)
    return AdniImages(images.drop(columns="reason"), notes, unused_images)


def _mark_faults(images: pd.DataFrame, days: pd.Series) -> None:
    """Write into the column `reason` why images cannot be used."""
    for row in images[days.isna()].itertuples():
        reason = f"{row.day!r} is no day such as 2006-04-18_08_20_30.0"
        images.loc[row.Index, "reason"] = reason
    duplicates = images[images.duplicated("image", keep=False)]
    for image, rows in duplicates.groupby("image"):
        sources = " and in ".join(rows["source"])
        images.loc[rows.index, "reason"] = f"{image} stands in {sources}"


def _describe_faults(faulty_images: pd.DataFrame) -> list[str]:
    """Return a line for each reason why images cannot be used."""
    lines = []
    for row in faulty_images.drop_duplicates("reason").itertuples():
        # The reason of a duplicate begins with its number and names its folders.
        names_image = str(row.reason).startswith(str(row.image))
        lines.append(str(row.reason) if names_image else f"{row.source}: {row.reason}")
    return lines


def _find_people(folder: Path) -> list[Path]:
    """Return the folders named by a PTID, at most three levels below `folder`."""
    paths = (path for depth in ("*", "*/*", "*/*/*") for path in folder.glob(depth))
    return sorted(
        path for path in paths if _PTID_PATTERN.fullmatch(path.name) and path.is_dir()
    )


def _find_image_folders(person: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield folder and number of a person's images, and an error message or "".

    The folder of an image is `description/date/I-id`. The folder of a series,
    `description/date/S-id`, has a folder for each image, or the image number at the end
    of its file names.
    """
    level = "expected files in PTID/description/date/I-id"
    for path in (person, *person.glob("*"), *person.glob("*/*")):
        if path.is_dir() and any(file.is_file() for file in path.iterdir()):
            yield path, "n/a", level
    for path in sorted(person.glob("*/*/*")):
        if not path.is_dir():
            continue
        if _IMAGE_PATTERN.fullmatch(path.name):
            yield path, path.name, ""
        elif not _SERIES_PATTERN.fullmatch(path.name):
            reason = "the folder is named neither I nor S and a number"
            yield path, "n/a", f"{reason}; {level}"
        else:
            yield from _find_series_images(path)


def _find_series_images(series: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield folder and number of the images of a series, or its own number if none."""
    image_folders = [
        path
        for path in sorted(series.iterdir())
        if path.is_dir() and _IMAGE_PATTERN.fullmatch(path.name)
    ]
    for path in image_folders:
        yield path, path.name, ""
    file_names = [path.name for path in series.iterdir() if path.is_file()]
    if image_folders and not file_names:
        return
    numbers = sorted(
        {n for name in file_names for n in _IMAGE_IN_FILE_NAME.findall(name)}
    )
    if len(numbers) > 1:
        reason = f"files of several images in one folder ({listed(numbers, 3)})"
        yield series, "n/a", reason
        return
    yield series, numbers[0] if numbers else series.name, ""


def _image_number(image: object) -> str:
    """Return the digits of an image number, which lists write with or without I."""
    return str(image).strip().upper().removeprefix("I").removesuffix(".0")


def _scanner_of(folder: Path) -> str | None:
    """Return the scanner from a BIDS sidecar of the image, if it is given."""
    keys = ("Manufacturer", "ManufacturersModelName", "MagneticFieldStrength")
    for path in sorted(folder.glob("*.json")):
        with reading(path, "a sidecar of an image"):
            sidecar = json.loads(path.read_text(encoding="utf-8"))
        if "Manufacturer" in sidecar:
            return " ".join(str(sidecar[key]) for key in keys if key in sidecar)
    return None


def _listed_scanners(listed_images: pd.DataFrame) -> dict[str, str]:
    """Return scanners by image number, from LONI's list.

    The list has one column (`Manufacturer=SIEMENS;Mfg Model=...`), or one column for
    each property.
    """
    scanners = {}
    keys = (
        ("manufacturer", "mfr"),
        ("mfgmodel", "model", "manufacturermodel"),
        ("fieldstrength", "magneticfieldstrength"),
    )
    for row in listed_images.to_dict("records"):
        cell_by_head = {letters_of(str(head)): cell for head, cell in row.items()}
        protocol_entries = str(cell_by_head.get("imagingprotocol") or "").split(";")
        pairs = (entry.split("=", 1) for entry in protocol_entries if "=" in entry)
        cell_by_head |= {letters_of(key): value for key, value in pairs}
        values = [
            next(
                (str(cell_by_head[key]) for key in spellings if cell_by_head.get(key)),
                "",
            )
            for spellings in keys
        ]
        text = " ".join(value for value in values if value not in ("", "nan"))
        if text:
            scanners[_image_number(row["image data id"])] = text
    return scanners


def pair_images(
    visits: pd.DataFrame, images: pd.DataFrame, window: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Assign every image to the nearest visit of the person within a window of days.

    The closest pairs are made first; of equally close pairs, those with the earlier
    visit and image. A visit has one image of each modality, and an image is assigned
    once. Images of visits with errors (`is_faulty`) are not used. Returns the pairs
    (`PAIR_COLUMNS`, `days` from visit to image), and the other images with the reason.
    """
    candidates = images.merge(visits.dropna(subset="date"), on="ptid")
    candidates["days"] = (candidates["day"] - candidates["date"]).dt.days
    candidates["distance"] = candidates["days"].abs()
    candidates = candidates[candidates["distance"] <= window]
    candidates = candidates.sort_values(["distance", "month", "day", "image"])
    used_keys = set[tuple[object, ...]]()
    is_chosen = list[bool]()
    for image, *visit in candidates[["image", "ptid", "month", "modality"]].to_numpy():
        keys = {(image,), tuple(visit)}
        is_free = not keys & used_keys
        is_chosen.append(is_free)
        if is_free:
            used_keys |= keys
    pairs = candidates[np.array(is_chosen, dtype=bool)]
    images_of_faulty_visits = pairs.loc[pairs["is_faulty"].astype(bool), "image"]
    pairs = pairs[~pairs["image"].isin(images_of_faulty_visits)]
    pairs = pairs.sort_values(
        ["participant_id", "session_id", "modality"], ignore_index=True
    )
    reason = pd.Series("the visit has a nearer image of this modality", images.index)
    reason[~images["image"].isin(candidates["image"])] = (
        f"no visit within {window} days"
    )
    reason[~images["ptid"].isin(visits["ptid"])] = "the person is in no table"
    reason[images["image"].isin(images_of_faulty_visits)] = (
        "the visit was skipped, it has faults"
    )
    unused_images = images.assign(reason=reason)[~images["image"].isin(pairs["image"])]
    return pairs[list(PAIR_COLUMNS)], unused_images[UNUSED_COLUMNS].reset_index(
        drop=True
    )
