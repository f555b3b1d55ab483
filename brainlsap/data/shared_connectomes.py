"""One connectome for everybody, where people have no diffusion imaging."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.data.atlas import Atlas
from brainlsap.data.atlas_order import ConnectomeFile, in_atlas_order
from brainlsap.data.cohort import Cohort
from brainlsap.data.connectomes import check_connectome, read_connectome
from brainlsap.data.matrices import NamedMatrix
from brainlsap.exceptions import ParameterError

TRACTOGRAMS = (".tck", ".trk", ".trx", ".trk.gz")


def shared_connectome(
    cohort: Cohort,
    connectome: np.ndarray | pd.DataFrame | str | Path,
    *,
    parcellation: str | Path | None = None,
    **options: Any,
) -> Cohort:
    """Return the cohort with one connectome for everybody.

    The connectome comes from elsewhere: a template, a tractogram of a template, or
    other people. A mean or a covariance of *this* cohort's people has to be learned
    inside each fold; those are the models' options `preparation={"connectome":
    "mean"}` and `{"connectome": "covariance"}`, see
    :class:`brainlsap.graph.Preparation`.

    Parameters
    ----------
    cohort : Cohort
        Of people whose own connectomes, if any, are put aside.
    connectome : array, DataFrame or path
        A matrix in the order of the cohort's atlas; one with named rows and columns;
        a file that :func:`.read_connectome` reads; or a tractogram (`.tck`, `.trk`,
        `.trx`), with `parcellation`.
    parcellation : path, optional
        Labels of the regions in the space of the tractogram.
    **options
        Further arguments of :func:`.read_connectome` or `build_connectome`.

    Returns
    -------
    Cohort
        With the features, people and labels of `cohort`; a note says whose
        connectome it has.

    Raises
    ------
    ParameterError, FileFormatError, RegionNameError
        Where the connectome does not fit the atlas.

    Examples
    --------
    >>> from brainlsap.simulation import make_cohort
    >>> cohort = make_cohort(6)
    >>> template = pd.DataFrame(1.0, cohort.region_names, cohort.region_names)
    >>> shared_connectome(cohort, template.iloc[::-1, ::-1]).shares_connectome
    True
    """
    found = _read(connectome, cohort.atlas, parcellation, options)
    what = connectome if isinstance(connectome, str | Path) else "one matrix"
    shape = (cohort.n_scans, cohort.n_rois, cohort.n_rois)
    return replace(
        cohort,
        connectomes=np.broadcast_to(found.matrix, shape),
        notes=(
            *cohort.notes,
            f"one connectome for everybody: {what}",
            *(f"the connectome: {note}" for note in found.notes),
        ),
        provenance=cohort.provenance | {"connectome": str(what)},
    )


def _read(
    connectome: np.ndarray | pd.DataFrame | str | Path,
    atlas: Atlas,
    parcellation: str | Path | None,
    options: dict[str, Any],
) -> ConnectomeFile:
    if isinstance(connectome, pd.DataFrame):
        names = [
            tuple(map(str, axis)) for axis in (connectome.index, connectome.columns)
        ]
        values = connectome.to_numpy(dtype=np.float64)
        raw = NamedMatrix(values, names[0], names[1])
        return in_atlas_order(raw, atlas, Path("connectome="))
    if not isinstance(connectome, str | Path):
        return check_connectome(np.asarray(connectome), atlas, "connectome=")
    if not str(connectome).lower().endswith(TRACTOGRAMS):
        return read_connectome(connectome, atlas, **options)
    if parcellation is None:
        raise ParameterError(
            f"{connectome} is a tractogram; give parcellation=, the image of the "
            f"regions of {atlas.name} in its space."
        )
    return _build(connectome, parcellation, atlas, options)


def _build(
    tractogram: str | Path,
    parcellation: str | Path,
    atlas: Atlas,
    options: dict[str, Any],
) -> ConnectomeFile:
    from brainlsap.images import build_connectome

    made = build_connectome(tractogram, parcellation, atlas, **options)
    return ConnectomeFile(made.matrix, made.notes)
