"""Join images of ADNI to visits: each modality to the nearest, each file once."""

from collections.abc import Sequence

import pandas as pd

from brainlsap.data.adni_images import AdniImage

PAIR_COLUMNS = (
    *("participant_id", "ptid", "session_id", "viscode", "exam_date", "modality"),
    *("image", "scan_date", "days", "description", "scanner", "source"),
)


def subject_of(ptid: str) -> str:
    """Return the BIDS name of a person.

    Examples
    --------
    >>> subject_of("002_S_0295")
    'sub-ADNI002S0295'
    """
    return f"sub-ADNI{ptid.replace('_', '')}"


def session_of(month: int) -> str:
    """Return the BIDS name of a visit.

    Examples
    --------
    >>> session_of(6)
    'ses-M006'
    """
    return f"ses-M{month:03d}"


def pair_images(
    visits: pd.DataFrame, images: Sequence[AdniImage], window: int = 180
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Join every image to the nearest visit of the person, within a window.

    The closest pairs are made first. A visit takes one image of a modality, and an
    image is used for one visit; between equals the earlier visit and image come first.

    Parameters
    ----------
    visits : DataFrame
        From :func:`.read_adni_tables`.
    images : sequence of AdniImage
        Of all people.
    window : int
        Days between image and visit, at the most.

    Returns
    -------
    pairs : DataFrame
        One row for every image that is used: :data:`PAIR_COLUMNS`, `days` from visit
        to image.
    spare : DataFrame
        ptid, image, modality, scan_date and the reason, for every other image.
    """
    by_person = {
        ptid: table.to_dict("records")
        for ptid, table in visits[visits["date"].notna()].groupby("ptid")
    }
    known = set(visits["ptid"].dropna())
    wanted = []
    for image in images:
        for visit in by_person.get(image.ptid, []):
            days = (image.day - visit["date"]).days
            if abs(days) <= window:
                wanted.append(
                    (abs(days), visit["month"], image.day, image.image, image, visit)
                )
    wanted.sort(key=lambda one: one[:4])
    used: set[str] = set()
    taken: set[tuple[str, int, str]] = set()
    pairs = []
    for *_, image, visit in wanted:
        place = (image.ptid, visit["month"], image.modality)
        if image.image in used or place in taken:
            continue
        used.add(image.image)
        taken.add(place)
        pairs.append(_pair(image, visit))
    near = {one[3] for one in wanted}
    spare = [
        {
            "ptid": one.ptid,
            "image": one.image,
            "modality": one.modality,
            "scan_date": one.day.isoformat(),
            "reason": _reason(one, known, near, window),
        }
        for one in images
        if one.image not in used
    ]
    made = pd.DataFrame(pairs, columns=list(PAIR_COLUMNS))
    made = made.sort_values(["participant_id", "session_id", "modality"])
    columns = ["ptid", "image", "modality", "scan_date", "reason"]
    return made.reset_index(drop=True), pd.DataFrame(spare, columns=columns)


def _pair(image: AdniImage, visit: dict[str, object]) -> dict[str, object]:
    day = visit["date"]
    return {
        "participant_id": subject_of(image.ptid),
        "ptid": image.ptid,
        "session_id": session_of(int(visit["month"])),  # type: ignore[call-overload]
        "viscode": visit["viscode"],
        "exam_date": day.isoformat(),  # type: ignore[attr-defined]
        "modality": image.modality,
        "image": image.image,
        "scan_date": image.day.isoformat(),
        "days": (image.day - day).days,  # type: ignore[operator]
        "description": image.description,
        "scanner": image.scanner,
        "source": str(image.folder),
    }


def _reason(image: AdniImage, known: set[str], near: set[str], window: int) -> str:
    if image.ptid not in known:
        return "the person is in no table"
    if image.image not in near:
        return f"no visit within {window} days"
    return "the visit has a nearer image of this modality"
