"""LONI's images (`PTID/description/date/I-id`), and which visit each joins."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.adni.tables import parse_days
from brainlsap.data import TRACERS
from brainlsap.exceptions import CohortError, reading

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
_PTID, _IMAGE = re.compile(r"\d{3}_S_\d{4,5}"), re.compile(r"I\d+")
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


def find_images(
    folder: str | Path, listed: pd.DataFrame, words: Mapping[str, str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return the images below a folder of LONI's download, and what was left out.

    Sorted by person, day and number. `listed` is LONI's list of images, for scanners.
    Raises CohortError where there is no image, or one number in two places.
    """
    rows = []
    depths = ("", "*/", "*/*/")  # PTID's folders are here, or a little below
    paths = (path for d in depths for path in Path(folder).glob(f"{d}*_S_*/*/*/I*"))
    for path in sorted(paths):
        ptid, description, day, image = path.parts[-4:]
        if _PTID.fullmatch(ptid) and _IMAGE.fullmatch(image):
            modality = modality_of(description, words)
            is_empty = not any(file.is_file() for file in path.iterdir())
            rows.append((ptid, image, day, modality, description, str(path), is_empty))
    found = pd.DataFrame(rows, columns=_COLUMNS)
    is_used = found["modality"].notna() & ~found["is_empty"].astype(bool)
    images = found[is_used].sort_values("source", ignore_index=True)
    if images.empty:
        raise CohortError(
            f"{folder}: no image found; expected PTID/description/date/I-id, such as "
            "002_S_0295/Axial_DTI/2011-06-02_07_58_30.0/I240811, with files in it"
        )
    days = parse_days(images["day"])
    faults = [
        f"{row.source}: {row.day!r} is no day such as 2006-04-18_08_20_30.0"
        for row in images[days.isna()].itertuples()
    ]
    for image, same in images[images.duplicated("image", keep=False)].groupby("image"):
        faults.append(f"{image} stands in {' and in '.join(same['source'])}")
    if faults:
        raise CohortError(f"{folder}: images that cannot be used", faults)
    lost = found.loc[~is_used, "description"].value_counts().sort_index()
    told = ", ".join(f"{name} ({n})" for name, n in lost.items())
    note = "images without files or of no modality that is used, left out: "
    scanners = _listed_scanners(listed)
    files = zip(images["source"], images["image"], strict=True)
    scanner = [_scanner_of(Path(p)) or scanners.get(n.lstrip("I")) for p, n in files]
    days_text = days.dt.strftime("%Y-%m-%d")
    images = images.assign(day=days, scan_date=days_text, scanner=scanner)
    images = images.sort_values(["ptid", "day", "image"], ignore_index=True)
    return images, [note + told] if told else []


def _scanner_of(folder: Path) -> str | None:
    """Return the scanner of a BIDS sidecar beside the image, where one says it."""
    keys = ("Manufacturer", "ManufacturersModelName", "MagneticFieldStrength")
    for path in sorted(folder.glob("*.json")):
        with reading(path, "a sidecar of an image"):
            told = json.loads(path.read_text(encoding="utf-8"))
        if "Manufacturer" in told:
            return " ".join(str(told[key]) for key in keys if key in told)
    return None


def _listed_scanners(listed: pd.DataFrame) -> dict[str, str]:
    """Return scanners by the number of the image, from LONI's list."""
    found = {}
    for row in listed.to_dict("records"):
        parts = str(row.get("imaging protocol") or "").split(";")
        told = dict(part.split("=", 1) for part in parts if "=" in part)
        keys = ("Manufacturer", "Mfg Model", "Field Strength")
        if said := " ".join(told[key] for key in keys if told.get(key)):
            found[str(row["image data id"]).lstrip("I")] = said
    return found


def pair_images(
    visits: pd.DataFrame, images: pd.DataFrame, window: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Join every image to the nearest visit of the person, within a window of days.

    The closest pairs are made first. A visit takes one image of a modality, and an
    image is used for one visit; between equals the earlier visit and image come first.
    Returns the pairs (`PAIR_COLUMNS`, `days` from visit to image), and every other
    image with the reason.
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
    pairs = pairs.sort_values(
        ["participant_id", "session_id", "modality"], ignore_index=True
    )
    reason = pd.Series("the visit has a nearer image of this modality", images.index)
    reason[~images["image"].isin(near["image"])] = f"no visit within {window} days"
    reason[~images["ptid"].isin(visits["ptid"])] = "the person is in no table"
    unused = images.assign(reason=reason)[~images["image"].isin(pairs["image"])]
    columns = ["ptid", "image", "modality", "scan_date", "reason"]
    return pairs[list(PAIR_COLUMNS)], unused[columns].reset_index(drop=True)
