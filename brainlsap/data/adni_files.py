"""Put ADNI's images where a cohort's folder has them: linked, copied or not at all."""

import shutil
from pathlib import Path

import pandas as pd

# Modality -> folder, and the end of the name of an image.
PLACES = {
    "anat": ("anat", "T1w"),
    "dwi": ("dwi", "dwi"),
    "fdg": ("pet", "trc-18FFDG_pet"),
    "amyloid": ("pet", "trc-amyloid_pet"),
    "tau": ("pet", "trc-tau_pet"),
}
_IMAGES = (".nii", ".nii.gz", ".bval", ".bvec", ".json")


def place_files(pairs: pd.DataFrame, folder: Path, how: str) -> None:
    """Put the files of every image below the visit that it joins.

    One NIfTI image and its sidecars get the names of BIDS; other files keep theirs
    behind the visit's; of many (DICOM), the folder is linked in `sourcedata/`.

    Parameters
    ----------
    pairs : DataFrame
        From :func:`.pair_images`.
    folder : Path
        Of the cohort.
    how : {"link", "copy", "none"}
        With `none` only the visits' folders are made.
    """
    for row in pairs.to_dict("records"):
        kind, ending = PLACES[row["modality"]]
        visit = Path(row["participant_id"]) / row["session_id"]
        name = f"{row['participant_id']}_{row['session_id']}"
        (folder / visit / kind).mkdir(parents=True, exist_ok=True)
        if how == "none":
            continue
        source = Path(row["source"]).resolve()
        files = sorted(path for path in source.iterdir() if path.is_file())
        named = _names(files, name, ending)
        if named is None:
            target = folder / "sourcedata" / visit / kind / row["image"]
            target.parent.mkdir(parents=True, exist_ok=True)
            _put(source, target, how)
            continue
        for path, new in named.items():
            _put(path, folder / visit / kind / new, how)


def _names(files: list[Path], name: str, ending: str) -> dict[Path, str] | None:
    """Return the new name of every file; None for the many slices of DICOM."""
    if any(path.suffix.lower() in (".dcm", ".ima", "") for path in files):
        return None
    suffixes = {path: _suffix(path) for path in files}
    images = [path for path, suffix in suffixes.items() if suffix in _IMAGES[:2]]
    return {
        path: f"{name}_{ending}{suffix}"
        if len(images) == 1 and suffix in _IMAGES
        else f"{name}_{path.name}"
        for path, suffix in suffixes.items()
    }


def _suffix(path: Path) -> str:
    return ".nii.gz" if path.name.lower().endswith(".nii.gz") else path.suffix.lower()


def _put(source: Path, target: Path, how: str) -> None:
    if how == "link":
        target.symlink_to(source)
    elif source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)
