"""A fitted model in one file: safetensors with a JSON header; nothing is pickled.

Arrays are tensors of the file; everything else is JSON in its header, under the key
`brainlsap`: `about`, and `sha256` of that and of the arrays, so that two region names
exchanged, or one byte of a weight, are noticed.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import brainlsap
from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.files import replace_when_whole
from brainlsap.model.classifier import (
    GraphClassifier,
    LSAPClassifier,
    NetworkClassifier,
)
from brainlsap.model.inputs import InputScaler
from brainlsap.model.network import GraphNetwork
from brainlsap.model.settings import Settings
from brainlsap.model.training import History

FORMAT = "brainlsap model"
FORMAT_VERSION = 2
HEADER = "brainlsap"

_CLASSIFIERS = {one.__name__: one for one in (LSAPClassifier, NetworkClassifier)}
_RECORDS = {one.__name__: one for one in (History, InputScaler, Settings)}
# Networks have a form of their own; where the model comes from stands elsewhere.
_ELSEWHERE = ("networks_", "origin_", "shared_connectome_")


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
    connectome : array of shape (n_rois, n_rois), optional
        The connectome, where one served everybody; :func:`save_model` fills it in.
    """

    region_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    classes: tuple[str, ...] = ()
    label_name: str = "diagnosis"
    atlas_name: str = ""
    reading: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    connectome: np.ndarray | None = None

    def check(self, model: GraphClassifier) -> None:
        """Raise unless regions and features are named, once each."""
        for name, given, count in (
            ("region_names", self.region_names, model.n_rois_),
            ("feature_names", self.feature_names, model.n_features_),
        ):
            if not len(given) == len(set(given)) == count:
                raise ParameterError(
                    f"{name} must be {count} different names, as in the fit; got "
                    f"{len(given)}, {len(set(given))} of them different."
                )


def save_model(
    model: GraphClassifier,
    path: str | Path,
    *,
    region_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    origin: ModelOrigin | None = None,
) -> Path:
    """Write a fitted model to one file, whole or not at all.

    A connectome that all its training scans shared goes with it.

    Parameters
    ----------
    model : LSAPClassifier or NetworkClassifier
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
    """
    from safetensors.numpy import save

    if not hasattr(model, "networks_"):
        raise ParameterError("the model is not fitted; call fit before save_model.")
    if region_names is not None and feature_names is not None:
        origin = ModelOrigin(tuple(region_names), tuple(feature_names))
    origin = origin or getattr(model, "origin_", None)
    if origin is None:
        raise ParameterError(
            "region_names and feature_names must be given: cohort.region_names and "
            "cohort.feature_names of what the model was fitted on."
        )
    origin.check(model)
    if origin.connectome is None:
        origin = replace(origin, connectome=model.shared_connectome_)
    arrays: dict[str, np.ndarray] = {}
    about = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": {
            "brainlsap": brainlsap.__version__,
            "torch": str(torch.__version__),
            "numpy": np.__version__,
        },
        "origin": _encode(asdict(origin), "origin", arrays),
        "state": _state_of(model, arrays),
    }
    header = {"about": about, "sha256": _digest(about, arrays)}
    kept = {HEADER: json.dumps(header, sort_keys=True)}
    with replace_when_whole(path) as partial:
        partial.write_bytes(save(arrays, metadata=kept))
    return Path(path)


def load_model(path: str | Path) -> GraphClassifier:
    """Read a model that :func:`save_model` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    LSAPClassifier or NetworkClassifier
        As it was fitted, on the CPU; its attribute `origin_` is a
        :class:`ModelOrigin`. `predict` takes arrays as they are; what takes out sites
        and covariates is in `origin_.facts`, for :mod:`brainlsap.prediction`.

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
    >>> names = {"region_names": ["a", "b", "c"], "feature_names": ["thickness"]}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = save_model(model, f"{place}/model.safetensors", **names)
    ...     loaded = load_model(path)
    >>> bool((loaded.predict_proba(X) == model.predict_proba(X)).all())
    True
    >>> loaded.origin_.region_names
    ('a', 'b', 'c')
    """
    from safetensors import safe_open

    path, what = Path(path), "not a whole model file"
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file; expected one of save_model.")
    try:
        with safe_open(path, framework="numpy") as file:
            kept = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        what = "no model of brainlsap"
        header = json.loads(kept[HEADER])
        about = header["about"]
        _check_version(path, about)
        if header["sha256"] != _digest(about, arrays):
            raise FileFormatError(
                f"{path}: changed after it was written: names, settings or weights do "
                "not fit their checksum. Get the file again, or fit the model again."
            )
        what = "cannot be read as a model"
        model = _restore(about["state"], arrays)
        model.origin_ = ModelOrigin(**_decode(about["origin"], arrays))
        model.origin_.check(model)
        model.shared_connectome_ = model.origin_.connectome
    except FileFormatError:
        raise
    except Exception as error:
        raise FileFormatError(
            f"{path}: {what} ({error}). Get the file again, or fit the model again."
        ) from error
    return model


def _check_version(path: Path, about: dict[str, Any]) -> None:
    if about["format"] != FORMAT or about["format_version"] != FORMAT_VERSION:
        raise FileFormatError(
            f"{path}: {about['format']} of version {about['format_version']}; this "
            f"brainlsap reads {FORMAT} of version {FORMAT_VERSION}. Fit it again."
        )
    theirs, ours = str(about["versions"]["brainlsap"]), brainlsap.__version__
    # what a number means may change with the second part, before 1.0 too
    if theirs.split(".")[:2] != ours.split(".")[:2]:
        raise FileFormatError(
            f"{path}: fitted by brainlsap {theirs}, and this is {ours}; predictions "
            f"may differ. Install brainlsap {theirs}, or fit the model again."
        )


def _state_of(model: GraphClassifier, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return all that a fitted classifier knows as JSON; its arrays go to `arrays`."""
    for number, network in enumerate(model.networks_):
        for name, tensor in network.state_dict().items():
            values = tensor.detach().cpu().numpy()
            arrays[f"networks.{number}.{name}"] = np.ascontiguousarray(values)
    state = {
        "kind": type(model).__name__,
        "parameters": model.get_params(deep=False),
        "fitted": {
            name: value
            for name, value in vars(model).items()
            if name.endswith("_") and name not in _ELSEWHERE
        },
        # in these "auto" is settled
        "network_settings": Settings(**model.fit_report_["settings"]),
        "n_networks": len(model.networks_),
    }
    return {name: _encode(value, name, arrays) for name, value in state.items()}


def _restore(state: dict[str, Any], arrays: dict[str, np.ndarray]) -> GraphClassifier:
    state = _decode(state, arrays)
    model = _CLASSIFIERS[state["kind"]](**state["parameters"] | {"device": "cpu"})
    model.__dict__.update(state["fitted"])
    sizes = model.n_rois_, model.n_features_, len(model.classes_)
    measured = torch.from_numpy(np.array(model.measured_))
    tensors: list[dict] = [{} for _ in range(state["n_networks"])]
    for name, values in arrays.items():
        if name.startswith("networks."):
            _, number, own = name.split(".", 2)
            tensors[int(number)][own] = torch.from_numpy(np.array(values))
    # no weights are drawn (a generator would move); the file's come in their place
    with torch.device("meta"):
        model.networks_ = [
            GraphNetwork(*sizes, state["network_settings"], measured) for _ in tensors
        ]
    for network, given in zip(model.networks_, tensors, strict=True):
        network.load_state_dict(given, assign=True)
        network.eval()
    return model


def _encode(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """Turn a value into JSON; arrays of numbers go to `arrays` under the name."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        arrays[name] = np.ascontiguousarray(value)
        return {"__array__": name}
    if isinstance(value, np.ndarray):  # of text or objects
        listed = _encode(value.tolist(), name, arrays)
        return {"__list_array__": listed, "dtype": value.dtype.str}
    if type(value).__name__ in _RECORDS:
        kept = _encode(vars(value), name, arrays)
        return {"__record__": type(value).__name__} | kept
    if isinstance(value, dict):
        return {str(k): _encode(v, f"{name}.{k}", arrays) for k, v in value.items()}
    if isinstance(value, list | tuple):
        each = [_encode(one, f"{name}.{k}", arrays) for k, one in enumerate(value)]
        return {"__tuple__": each} if isinstance(value, tuple) else each
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ParameterError(
        f"{name} is a {type(value).__name__}, which a model file cannot hold."
    )


def _decode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_decode(one, arrays) for one in value]
    if not isinstance(value, dict):
        return value
    if "__array__" in value:
        return arrays[value["__array__"]]
    if "__tuple__" in value:
        return tuple(_decode(one, arrays) for one in value["__tuple__"])
    if "__list_array__" in value:
        return np.array(value["__list_array__"], dtype=np.dtype(value["dtype"]))
    rest = {k: _decode(one, arrays) for k, one in value.items() if k != "__record__"}
    kind = value.get("__record__")
    return rest if kind is None else _RECORDS[kind](**rest)


def _digest(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        head = f"{name} {arrays[name].dtype.str} {arrays[name].shape}"
        digest.update(head.encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
