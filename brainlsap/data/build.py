"""Build connectomes and feature tables of a whole cohort from its images.

What is made stands in `derivatives/brainlsap` in the layout that
:func:`.load_cohort` reads. Each file has a `.json` beside it, written last, with the
parameters and the sizes and times of the inputs: what is there with the same ones is
not made again.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainlsap._arrays import check_at_least
from brainlsap._files import remove_partials, saying_where, write_text
from brainlsap._locks import hold_folder
from brainlsap._processes import deaf_to_ctrl_c
from brainlsap.data.atlas import Atlas, load_atlas
from brainlsap.data.build_inputs import ScanInputs, find_inputs
from brainlsap.data.build_outputs import build_scan, describe_dataset
from brainlsap.data.find_files import StudyFiles as CohortFiles
from brainlsap.data.participants import PEOPLE_FILES, read_people
from brainlsap.exceptions import CohortError

FOLDER = Path("derivatives") / "brainlsap"


@dataclass(frozen=True)
class BuiltCohort:
    """What was built of a cohort.

    Parameters
    ----------
    folder : Path
        Where it stands.
    made, kept : tuple of Path
        Files that were made now, and those that were there already.
    faults : tuple of str
        One line for each scan that failed.

    Examples
    --------
    See :func:`brainlsap.data.build_cohort`.
    """

    folder: Path
    made: tuple[Path, ...]
    kept: tuple[Path, ...]
    faults: tuple[str, ...]


def build_cohort(
    folder: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    out: str | Path | None = None,
    derivatives: Sequence[str | Path] = (),
    subjects_dir: str | Path | None = None,
    patterns: Mapping[str, str] | None = None,
    connectome: Mapping[str, Any] | None = None,
    suvr: Mapping[str, Any] | None = None,
    n_jobs: int = 1,
    progress: bool = False,
) -> BuiltCohort:
    """Build what is missing of a cohort's connectomes and SUVR tables.

    Parameters
    ----------
    folder : str or Path
        With `sub-*` folders or `derivatives/*/sub-*`; tractograms (`.tck`, `.trk`,
        `.trx`) and `*_pet.nii.gz` of a scan are looked for there, the parcellation
        also in FreeSurfer's `mri`.
    atlas : str, Path or Atlas
        As :func:`.load_atlas` takes it.
    out : path, optional
        By default `derivatives/brainlsap` in the folder.
    derivatives : sequence of path
        Further data sets to look through.
    subjects_dir : path, optional
        Where FreeSurfer's subjects are, if not below the folder.
    patterns : mapping of str to str, optional
        Patterns of the names of files, by `tractogram`, `parcellation`, `pet`,
        `transform` (registration of PET to parcellation) and `streamline_weights`.
    connectome, suvr : mapping, optional
        Arguments of :func:`.build_connectome` and of :func:`.extract_suvr`.
    n_jobs : int
        Scans at once, by joblib.
    progress : bool
        Whether to show a bar on standard error.

    Returns
    -------
    BuiltCohort

    Raises
    ------
    CohortError
        Where no image is found.
    ParameterError
        Where an argument cannot be used, or another process is building there.
    WritingError
        Where the disk is full, or the folder may not be written to; what is finished
        is kept.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     build_cohort(place)
    Traceback (most recent call last):
    brainlsap.exceptions.CohortError: ...: no tractogram (.tck, ...
    """
    folder, atlas = Path(folder), load_atlas(atlas)
    if n_jobs != -1:
        check_at_least("n_jobs", n_jobs, 1)
    if not folder.is_dir():
        raise CohortError(f"{folder}: no such folder")
    tables = [folder / name for name in PEOPLE_FILES if (folder / name).is_file()]
    people = read_people(tables[0]).values() if tables else ()
    names = [person.participant for person in people]
    files = CohortFiles(folder, names, derivatives, subjects_dir)
    scans = find_inputs(files, atlas, patterns or {})
    place = folder / FOLDER if out is None else Path(out)
    settings = dict(connectome or {}), dict(suvr or {})
    with _hold(place):
        _describe(place)
        done = list(_in_parallel(scans, atlas, place, settings, n_jobs, progress))
    done.sort(key=lambda outcome: outcome.name)
    return BuiltCohort(
        place,
        tuple(path for outcome in done for path in outcome.made),
        tuple(path for outcome in done for path in outcome.kept),
        tuple(f"{one.name}: {one.fault}" for one in done if one.fault),
    )


@contextmanager
def _hold(place: Path) -> Iterator[None]:
    """Keep other builds out, and half-written files of killed ones away."""
    with hold_folder(place), saying_where(place):
        remove_partials(place)
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "stopped. Run the same command again to continue: what is finished is "
                f"kept in {place}; nothing half-written is left."
            ) from None
        finally:
            remove_partials(place)  # of processes that were ended with this one


def _describe(place: Path) -> None:
    text = json.dumps(describe_dataset(), indent=2) + "\n"
    description = place / "dataset_description.json"
    if not description.is_file() or description.read_text(encoding="utf-8") != text:
        write_text(description, text)


def _in_parallel(
    scans: Sequence[ScanInputs],
    atlas: Atlas,
    place: Path,
    settings: tuple[dict[str, Any], dict[str, Any]],
    n_jobs: int,
    progress: bool,
) -> Iterator[Any]:
    """Build scan by scan, behind a progress bar if wanted."""
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend
    from tqdm import tqdm

    # a Dask cluster, which the caller may have chosen, gives all results at once
    backend, _ = get_active_backend()
    in_turn = getattr(backend, "supports_return_generator", False)
    order = "generator_unordered" if in_turn else "list"

    calls = (delayed(build_scan)(scan, atlas, place, *settings) for scan in scans)
    with deaf_to_ctrl_c(n_jobs):
        results = Parallel(n_jobs=n_jobs, return_as=order)(calls)
    return iter(
        tqdm(
            results,
            total=len(scans),
            desc="building",
            unit="scan",
            file=sys.stderr,
            disable=not progress,
        )
    )
