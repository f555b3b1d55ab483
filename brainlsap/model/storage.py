"""A fitted model in one file: safetensors with a JSON header; nothing is pickled.

Arrays are tensors of the file; everything else is JSON in its header, under the key
`brainlsap`: `about`, and `sha256` of that and of the arrays, so that two region names
exchanged, or one byte of a weight, are noticed.
"""

import hashlib
import json
import struct
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from brainlsap._files import replace_when_whole
from brainlsap.exceptions import BrainlsapError, FileFormatError, ParameterError
from brainlsap.model.classifier import LSAPClassifier
from brainlsap.model.fitted_state import restore_classifier, state_of

FORMAT = "brainlsap model"
FORMAT_VERSION = 1
HEADER = "brainlsap"


@dataclass(frozen=True, eq=False)
class ModelOrigin:
    """What a model was fitted on, by name.

    Parameters
    ----------
    region_names : tuple of str
        Name of every region, in the order of the model's arrays.
    feature_names : tuple of str
        Name of every feature of a region, in order.
    classes : tuple of str
        All classes, in order of stage.
    label_name, atlas_name : str
        What is predicted, and the region set.
    reading : dict
        How the cohort was read: options of :func:`brainlsap.data.load_cohort` that
        a cohort to be predicted must be read with too. Expressible as JSON.
    facts : dict
        Further facts, such as how many people there were. Expressible as JSON.

    Examples
    --------
    >>> ModelOrigin(("a", "b"), ("thickness",)).feature_names
    ('thickness',)
    """

    region_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    classes: tuple[str, ...] = ()
    label_name: str = "diagnosis"
    atlas_name: str = ""
    reading: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


def save_model(
    model: LSAPClassifier,
    path: str | Path,
    *,
    region_names: tuple[str, ...] | list[str] | None = None,
    feature_names: tuple[str, ...] | list[str] | None = None,
    origin: ModelOrigin | None = None,
) -> Path:
    """Write a fitted model to one file, whole or not at all.

    Parameters
    ----------
    model : LSAPClassifier
        Fitted.
    path : str or Path
        The file; an existing one is replaced. `.safetensors` is a fitting suffix.
    region_names, feature_names : sequences of str
        Name of every region and feature of the arrays that it was fitted on, such as
        `cohort.region_names` and `cohort.feature_names`.
    origin : ModelOrigin, optional
        In the place of the names, with more facts; by default that of a model which
        :func:`load_model` gave.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        Where the model is not fitted, or names are missing, doubled or too few.

    Examples
    --------
    See :func:`brainlsap.model.load_model`.
    """
    from safetensors.numpy import save

    if not hasattr(model, "networks_"):
        raise ParameterError("the model is not fitted; call fit before save_model.")
    if region_names is not None and feature_names is not None:
        origin = ModelOrigin(tuple(region_names), tuple(feature_names))
    origin = origin or getattr(model, "origin_", None)
    _check_names(model, origin)
    arrays: dict[str, np.ndarray] = {}
    about = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": _versions(),
        "origin": asdict(origin),  # type: ignore[arg-type]
        "state": state_of(model, arrays),
    }
    header = {"about": about, "sha256": _digest(about, arrays)}
    kept = {HEADER: json.dumps(header, sort_keys=True)}
    with replace_when_whole(path) as partial:
        partial.write_bytes(save(arrays, metadata=kept))
    return Path(path)


def load_model(path: str | Path) -> LSAPClassifier:
    """Read a model that :func:`save_model` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    LSAPClassifier
        As it was fitted, on the CPU; its attribute `origin_` is a
        :class:`ModelOrigin`. What takes out sites and covariates is in `origin_.facts`;
        :func:`brainlsap.study.predict_people` applies it, the model's own `predict`
        takes arrays as they are.

    Raises
    ------
    FileFormatError
        Where the file is missing, cut short, changed, no model, or of a version that
        this brainlsap does not read.

    Examples
    --------
    >>> import tempfile
    >>> X = np.random.default_rng(0).uniform(size=(12, 3, 4))
    >>> model = LSAPClassifier("exact", n_epochs=2, n_starts=1)
    >>> _ = model.fit(X, np.arange(12) % 2, groups=np.arange(12))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = save_model(
    ...         model,
    ...         f"{place}/model.safetensors",
    ...         region_names=["a", "b", "c"],
    ...         feature_names=["thickness"],
    ...     )
    ...     loaded = load_model(path)
    >>> bool((loaded.predict_proba(X) == model.predict_proba(X)).all())
    True
    >>> loaded.origin_.region_names
    ('a', 'b', 'c')
    """
    path = Path(path)
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no such file"
        raise FileFormatError(
            f"{path}: {what}; expected the file of a model (brainlsap fit, save_model)."
        )
    try:
        header, arrays = _read(path)
        about = json.loads(header)["about"]
        _check_version(path, about)
        if json.loads(header)["sha256"] != _digest(about, arrays):
            raise FileFormatError(
                f"{path}: the model was changed after it was written: its names, "
                "settings or weights do not fit their checksum. Fit it again, or get "
                "the file again."
            )
        known = {one.name for one in fields(ModelOrigin)}
        told = {key: value for key, value in about["origin"].items() if key in known}
        names = ("region_names", "feature_names", "classes")
        told |= {key: tuple(map(str, told[key])) for key in names}
        model = restore_classifier(about["state"], arrays)
        model.origin_ = ModelOrigin(**told)
        _check_names(model, model.origin_)
    except FileFormatError:
        raise
    except (
        BrainlsapError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        raise FileFormatError(
            f"{path}: damaged model file ({error}). Fit the model again."
        ) from error
    except (RuntimeError, OSError, MemoryError) as error:
        raise FileFormatError(
            f"{path}: cannot be read as a model ({error})."
        ) from error
    return model


def _read(path: Path) -> tuple[str, dict[str, np.ndarray]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            kept = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, struct.error) as error:
        raise FileFormatError(
            f"{path}: not a whole model file; expected safetensors written by "
            f"save_model, got: {error}. Get the file again, or fit the model again."
        ) from error
    if HEADER not in kept:
        raise FileFormatError(
            f"{path}: a safetensors file, but no model of brainlsap; its header has "
            f"no {HEADER!r}."
        )
    return kept[HEADER], arrays


def _check_version(path: Path, about: dict[str, Any]) -> None:
    if about["format"] != FORMAT or about["format_version"] != FORMAT_VERSION:
        raise FileFormatError(
            f"{path}: {about['format']} of version {about['format_version']}; this "
            f"brainlsap reads {FORMAT} of version {FORMAT_VERSION}. Use the brainlsap "
            "that wrote it, or fit the model again."
        )
    theirs, ours = str(about["versions"]["brainlsap"]), _versions()["brainlsap"]
    # what a number means may change with the second part, before 1.0 too
    if theirs.split(".")[:2] != ours.split(".")[:2]:
        raise FileFormatError(
            f"{path}: fitted by brainlsap {theirs}, and this is {ours}; predictions "
            f"may differ. Install brainlsap {theirs}, or fit the model again."
        )


def _check_names(model: LSAPClassifier, origin: ModelOrigin | None) -> None:
    if origin is None:
        raise ParameterError(
            "region_names and feature_names must say what the model was fitted on; "
            "give cohort.region_names and cohort.feature_names."
        )
    wanted = {"region_names": model.n_rois_, "feature_names": model.n_features_}
    for name, count in wanted.items():
        given = getattr(origin, name)
        if len(given) != count or len(set(given)) != count:
            raise ParameterError(
                f"{name} must be {count} different names, as many as the model was "
                f"fitted on; got {len(given)}, {len(set(given))} of them different."
            )


def _digest(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        told = f"{name} {arrays[name].dtype.str} {arrays[name].shape}"
        digest.update(told.encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("brainlsap")
    except PackageNotFoundError:  # a checkout that was never installed
        own = "unknown"
    return {"brainlsap": own, "torch": str(torch.__version__), "numpy": np.__version__}
