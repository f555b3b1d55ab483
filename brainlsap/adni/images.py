"""LONI's images (`PTID/description/date/I-id`), and which visit each joins."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.adni.tables import parse_days
from brainlsap.data import TRACERS
from brainlsap.data.tables import letters_of
from brainlsap.exceptions import CohortError, reading
from brainlsap.text import listed

_PET = {
    feature: tuple(w for t in TRACERS if t.feature == feature for w in t.lower_entities)
    for feature in ("tau", "amyloid", "fdg")
}
# Modality -> words in a description by which it is known, in the order of the search.
MODALITIES: dict[str, tuple[str, ...]] = {
    "dwi": ("dti", "dwi", "dmri", "diffusion"),
    **_PET,
    "anat": ("mprage", "mp-rage", "mp_rage", "spgr", "t1w", "t1_"),
}
_COLUMNS = ["ptid", "image", "day", "modality", "description", "source", "is_empty"]
_PTID = re.compile(r"\d{3}_S_\d{4,5}", re.IGNORECASE)
_IMAGE = re.compile(r"I\d+")
_SERIES = re.compile(r"S\d+")
# Files of a series folder say their image at the end: ADNI_..._S8916_I40657.nii.
_IMAGE_OF_FILE = re.compile(r"_(I\d+)(?=\.)")
UNUSED_COLUMNS = ["ptid", "image", "modality", "scan_date", "reason"]
PAIR_COLUMNS = (
    *("participant_id", "ptid", "session_id", "viscode", "exam_date", "modality"),
    *("image", "scan_date", "days", "description", "scanner", "source"),
)


def modality_of(description: str, words: Mapping[str, str]) -> str | None:
    """Return the modality that a description names, the caller's words first."""
    text = description.lower().replace(" ", "_")
    own = ((name, (word.lower().replace(" ", "_"),)) for name, word in words.items())
    known = (*own, *MODALITIES.items())
    return next((name for name, some in known if any(w in text for w in some)), None)


def tracer_of(description: str, modality: str) -> str:
    """Return the `trc-` entity of a PET image; the modality where it does not say."""
    text = description.lower()
    of_kind = [tracer for tracer in TRACERS if tracer.feature == modality]
    usual = of_kind[0].entities[0] if modality == "fdg" else modality
    found = (
        one.entities[0] for one in of_kind if any(w in text for w in one.lower_entities)
    )
    return next(found, usual)


class AdniImages(NamedTuple):
    """The images of a download, and what cannot be used of it."""

    images: pd.DataFrame  # by person, day and number
    notes: list[str]
    unused: pd.DataFrame  # folders and images with a reason: ptid, image, reason ...


def find_images(
    folder: str | Path,
    listed_images: pd.DataFrame,
    words: Mapping[str, str],
    *,
    skip_faulty: bool = False,
) -> AdniImages:
    """Return the images below a folder of LONI's download, and what was left out.

    Sorted by person, day and number. Scanners come from LONI's list of images. Raises
    CohortError where there is no image, or, unless these are skipped, one number in
    two places or a folder of a day that is none.
    """
    rows, reasons = list[tuple[object, ...]](), list[str]()
    for person in _find_people(Path(folder)):
        for path, image, reason in _find_image_folders(person):
            description, day = (*path.relative_to(person).parts, "", "")[:2]
            modality = modality_of(description, words)
            is_empty = not any(file.is_file() for file in path.iterdir())
            ptid = person.name.upper()
            rows.append((ptid, image, day, modality, description, str(path), is_empty))
            reasons.append(reason)
    found = pd.DataFrame(rows, columns=_COLUMNS).assign(reason=reasons)
    is_strange = found["reason"] != ""
    is_used = found["modality"].notna() & ~found["is_empty"].astype(bool)
    images = found[is_used & ~is_strange].sort_values("source", ignore_index=True)
    if images.empty:
        others = found.loc[is_strange, ["source", "reason"]].head(3)
        raise CohortError(
            f"{folder}: no image found; expected PTID/description/date/I-id, such as "
            "002_S_0295/Axial_DTI/2011-06-02_07_58_30.0/I240811, with files in it",
            [f"{path}: {reason}" for path, reason in others.to_numpy()],
        )
    days = parse_days(images["day"])
    for row in images[days.isna()].itertuples():
        reason = f"{row.day!r} is no day such as 2006-04-18_08_20_30.0"
        images.loc[row.Index, "reason"] = reason
    for image, same in images[images.duplicated("image", keep=False)].groupby("image"):
        places = " and in ".join(same["source"])
        images.loc[same.index, "reason"] = f"{image} stands in {places}"
    is_faulty = images["reason"] != ""
    if is_faulty.any() and not skip_faulty:
        faulty = images[is_faulty].drop_duplicates("reason")
        raise CohortError(
            f"{folder}: images that cannot be used. Correct the folders, or leave "
            "such images out by skip_faulty=True",
            [
                reason if reason.startswith(image) else f"{path}: {reason}"
                for image, path, reason in faulty[
                    ["image", "source", "reason"]
                ].to_numpy()
            ],
        )
    unused = pd.concat([found[is_strange], images[is_faulty]], ignore_index=True)
    unused["scan_date"] = parse_days(unused["day"]).dt.strftime("%Y-%m-%d")
    notes = []
    lost = found.loc[~is_used & ~is_strange, "description"]
    if len(lost):
        counts = lost.value_counts().sort_index()
        texts = ", ".join(f"{name} ({n})" for name, n in counts.items())
        notes.append(
            f"images without files or of no modality that is used, left out: {texts}"
        )
    scanners = _listed_scanners(listed_images)
    if len(listed_images):
        numbers = listed_images["image data id"].dropna().map(_image_number)
        n_absent = (~numbers.isin(found["image"].map(_image_number))).sum()
        if n_absent:
            notes.append(f"images of LONI's list that are not there: {n_absent}")
    images, days = images[~is_faulty], days[~is_faulty]
    files = zip(images["source"], images["image"], strict=True)
    scanner = [
        _scanner_of(Path(path)) or scanners.get(_image_number(image))
        for path, image in files
    ]
    days_text = days.dt.strftime("%Y-%m-%d")
    images = images.assign(day=days, scan_date=days_text, scanner=scanner)
    images = images.sort_values(["ptid", "day", "image"], ignore_index=True)
    return AdniImages(images.drop(columns="reason"), notes, unused)


def _find_people(folder: Path) -> list[Path]:
    """Return the folders named by a PTID: here, or a little below."""
    paths = (path for depth in ("*", "*/*", "*/*/*") for path in folder.glob(depth))
    return sorted(
        path for path in paths if _PTID.fullmatch(path.name) and path.is_dir()
    )


def _find_image_folders(person: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield folder and number of a person's images, and why it cannot be used or "".

    `description/date/I-id`, or `description/date/S-id` of a series, with a folder of
    each image in it, or the image's number at the end of the files' names.
    """
    level = "expected files in PTID/description/date/I-id"
    for path in (person, *person.glob("*"), *person.glob("*/*")):
        if path.is_dir() and any(file.is_file() for file in path.iterdir()):
            yield path, "n/a", level
    for path in sorted(person.glob("*/*/*")):
        if not path.is_dir():
            continue
        if _IMAGE.fullmatch(path.name):
            yield path, path.name, ""
        elif not _SERIES.fullmatch(path.name):
            reason = "the folder is named neither I nor S and a number"
            yield path, "n/a", f"{reason}; {level}"
        else:
            yield from _find_series_images(path)


def _find_series_images(series: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield folder and number of the images of a series; its own number if none."""
    inner = [
        path
        for path in sorted(series.iterdir())
        if path.is_dir() and _IMAGE.fullmatch(path.name)
    ]
    for path in inner:
        yield path, path.name, ""
    names = [path.name for path in series.iterdir() if path.is_file()]
    if inner and not names:
        return
    numbers = sorted({n for name in names for n in _IMAGE_OF_FILE.findall(name)})
    if len(numbers) > 1:
        reason = f"files of several images in one folder ({listed(numbers, 3)})"
        yield series, "n/a", reason
        return
    yield series, numbers[0] if numbers else series.name, ""


def _image_number(image: object) -> str:
    """Return the digits of an image's number, which lists write with I or without."""
    return str(image).strip().upper().removeprefix("I").removesuffix(".0")


def _scanner_of(folder: Path) -> str | None:
    """Return the scanner of a BIDS sidecar beside the image, where one says it."""
    keys = ("Manufacturer", "ManufacturersModelName", "MagneticFieldStrength")
    for path in sorted(folder.glob("*.json")):
        with reading(path, "a sidecar of an image"):
            told = json.loads(path.read_text(encoding="utf-8"))
        if "Manufacturer" in told:
            return " ".join(str(told[key]) for key in keys if key in told)
    return None


def _listed_scanners(listed_images: pd.DataFrame) -> dict[str, str]:
    """Return scanners by the number of the image, from LONI's list.

    The list says them in one column (`Manufacturer=SIEMENS;Mfg Model=...`), or in one
    column each.
    """
    scanners = {}
    keys = (
        ("manufacturer", "mfr"),
        ("mfgmodel", "model", "manufacturermodel"),
        ("fieldstrength", "magneticfieldstrength"),
    )
    for row in listed_images.to_dict("records"):
        facts = {letters_of(str(head)): cell for head, cell in row.items()}
        parts = str(facts.get("imagingprotocol") or "").split(";")
        pairs = (part.split("=", 1) for part in parts if "=" in part)
        facts |= {letters_of(key): value for key, value in pairs}
        values = [
            next((str(facts[key]) for key in spellings if facts.get(key)), "")
            for spellings in keys
        ]
        text = " ".join(value for value in values if value not in ("", "nan"))
        if text:
            scanners[_image_number(row["image data id"])] = text
    return scanners


def pair_images(
    visits: pd.DataFrame, images: pd.DataFrame, window: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Join every image to the nearest visit of the person, within a window of days.

    The closest pairs are made first. A visit takes one image of a modality, and an
    image is used for one visit; between equals the earlier visit and image come first.
    Images of a visit that `is_faulty` are not used. Returns the pairs
    (`PAIR_COLUMNS`, `days` from visit to image), and every other image with the reason.
    """
    near = images.merge(visits.dropna(subset="date"), on="ptid")
    near["days"] = (near["day"] - near["date"]).dt.days
    near["apart"] = near["days"].abs()
    near = near[near["apart"] <= window]
    near = near.sort_values(["apart", "month", "day", "image"])
    used, chosen = set[tuple[object, ...]](), []
    for image, *visit in near[["image", "ptid", "month", "modality"]].to_numpy():
        names = {(image,), tuple(visit)}
        chosen.append(not names & used)
        used |= names if chosen[-1] else set()
    pairs = near[np.array(chosen, dtype=bool)]
    of_faulty = pairs.loc[pairs["is_faulty"].astype(bool), "image"]
    pairs = pairs[~pairs["image"].isin(of_faulty)]
    pairs = pairs.sort_values(
        ["participant_id", "session_id", "modality"], ignore_index=True
    )
    reason = pd.Series("the visit has a nearer image of this modality", images.index)
    reason[~images["image"].isin(near["image"])] = f"no visit within {window} days"
    reason[~images["ptid"].isin(visits["ptid"])] = "the person is in no table"
    reason[images["image"].isin(of_faulty)] = "the visit was skipped, it has faults"
    unused = images.assign(reason=reason)[~images["image"].isin(pairs["image"])]
    return pairs[list(PAIR_COLUMNS)], unused[UNUSED_COLUMNS].reset_index(drop=True)
