"""Find ADNI's images as LONI delivers them: `PTID/description/date/I-id`."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pandas as pd

from brainlsap.data.adni_codes import (
    MODALITIES,
    cell,
    is_ptid,
    modality_of,
    read_day,
)
from brainlsap.exceptions import CohortError

_IMAGE_ID = re.compile(r"I\d+")
_SCANNER_KEYS = ("Manufacturer", "ManufacturersModelName", "MagneticFieldStrength")


@dataclass(frozen=True)
class AdniImage:
    """One image of one person.

    Parameters
    ----------
    ptid : str
        Whose, such as `002_S_0295`.
    image : str
        LONI's number of the image, such as `I13722`.
    day : date
        When it was taken.
    modality : str
        `dwi`, `anat`, `fdg`, `amyloid` or `tau`.
    description : str
        As its folder is called.
    folder : Path
        With its files.
    scanner : str or None
        Maker, model and field strength, where a file or table says them.
    """

    ptid: str
    image: str
    day: date
    modality: str
    description: str
    folder: Path
    scanner: str | None = None

    def files(self) -> list[Path]:
        """Return its files, sorted."""
        return sorted(p for p in self.folder.iterdir() if p.is_file())


def find_adni_images(
    place: str | Path,
    listed: pd.DataFrame | None = None,
    modalities: Mapping[str, str] | None = None,
) -> tuple[list[AdniImage], list[str]]:
    """Find images below a folder of LONI's download.

    Parameters
    ----------
    place : str or Path
        Holds `PTID/description/date/I-id`, at any depth.
    listed : DataFrame, optional
        LONI's list of images, for scanners.
    modalities : mapping of str to str, optional
        Further words in descriptions, by modality; these are looked for first.

    Returns
    -------
    images : list of AdniImage
        Sorted by person, day and number.
    notes : list of str
        Descriptions that name no modality, with counts, and folders without files.

    Raises
    ------
    CohortError
        Where there is no such folder, no image, or one number in two places.

    Examples
    --------
    See :func:`brainlsap.data.import_adni`.
    """
    root = Path(place)
    if not root.is_dir():
        raise CohortError(f"{root}: no such folder")
    words = {
        name: (text.lower().replace(" ", "_"),)
        for name, text in (modalities or {}).items()
    }
    scanners = _scanners(listed)
    found: dict[str, AdniImage] = {}
    unknown: Counter[str] = Counter()
    faults, empty = [], 0
    for folder, ptid, description, day in _image_folders(root):
        modality = modality_of(description, words) or modality_of(description)
        if modality is None:
            unknown[description] += 1
        elif not any(path.is_file() for path in folder.iterdir()):
            empty += 1
        elif folder.name in found:
            other = found[folder.name].folder
            faults.append(f"{folder.name} stands in {other} and in {folder}")
        elif (when := _day(folder, day, faults)) is not None:
            image = folder.name
            scanner = _scanner_of(folder) or scanners.get(image.lstrip("I"))
            found[image] = AdniImage(
                ptid, image, when, modality, description, folder, scanner
            )
    if faults:
        raise CohortError(f"{root}: images that cannot be used", faults)
    if not found:
        raise CohortError(
            f"{root}: no image found; expected PTID/description/date/I-id, such as "
            "002_S_0295/Axial_DTI/2011-06-02_07_58_30.0/I240811, with files in it"
        )
    images = sorted(found.values(), key=lambda one: (one.ptid, one.day, one.image))
    return images, _notes(unknown, empty)


def _image_folders(root: Path) -> Iterator[tuple[Path, str, str, str]]:
    """Yield the folder of every image, with person, description and date."""
    for place, inside, _ in os.walk(root):
        inside.sort()
        parts = (root.name, *Path(place).relative_to(root).parts)
        if len(parts) < 3 or not is_ptid(parts[-3]):
            continue
        for name in [name for name in inside if _IMAGE_ID.fullmatch(name)]:
            yield Path(place) / name, parts[-3], parts[-2], parts[-1]
        inside.clear()  # slices of images may be very many


def _day(folder: Path, text: str, faults: list[str]) -> date | None:
    try:
        return read_day(text)
    except ValueError:
        faults.append(f"{folder}: {text!r} is no day such as 2006-04-18_08_20_30.0")
        return None


def _notes(unknown: Counter[str], empty: int) -> list[str]:
    notes = []
    if unknown:
        told = ", ".join(f"{name} ({n})" for name, n in sorted(unknown.items()))
        notes.append(
            f"images of no modality that is used ({', '.join(sorted(MODALITIES))}), "
            f"left out: {told}"
        )
    if empty:
        notes.append(f"{empty} image folders without files: left out")
    return notes


def _scanner_of(folder: Path) -> str | None:
    """Return the scanner of a BIDS sidecar beside the image, where one says it."""
    for path in sorted(folder.glob("*.json")):
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(told, dict) and "Manufacturer" in told:
            return " ".join(str(told[key]) for key in _SCANNER_KEYS if key in told)
    return None


def _scanners(listed: pd.DataFrame | None) -> dict[str, str]:
    """Return scanners by the number of the image, from LONI's list."""
    found: dict[str, str] = {}
    for row in [] if listed is None else listed.to_dict("records"):
        told = dict(
            part.split("=", 1)
            for part in (cell(row.get("imaging protocol")) or "").split(";")
            if "=" in part
        )
        parts = [
            told.get(key) for key in ("Manufacturer", "Mfg Model", "Field Strength")
        ]
        parts = [part for part in parts if part] or [cell(row.get("scanner")) or ""]
        if any(parts):
            number = str(row["image data id"]).lstrip("I")
            found[number] = " ".join(part for part in parts if part)
    return found
