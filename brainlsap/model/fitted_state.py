"""What a fitted classifier knows, as JSON and arrays, and back."""

import re
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch

import brainlsap.graph
from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.model.classifier import LSAPClassifier
from brainlsap.model.inputs import InputScaler
from brainlsap.model.network import HeatNetwork
from brainlsap.model.records import History
from brainlsap.model.settings import Settings

# Records that may stand in a model's file: these, and those of the room of graphs.
_KINDS = {
    one.__name__: one
    for one in (History, InputScaler, Settings, *vars(brainlsap.graph).values())
    if isinstance(one, type) and is_dataclass(one)
}
# Networks have a form of their own; where the model comes from is told elsewhere.
_ELSEWHERE = ("networks_", "origin_")
# Arrays that stand in the text: of at most 9,999 characters, or of any objects of JSON.
_TEXT_KIND = re.compile(r"[<>]U[0-9]{1,4}|\|O")


def state_of(model: LSAPClassifier, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return everything that a fitted classifier knows, as JSON takes it.

    Parameters
    ----------
    model : LSAPClassifier
        Fitted.
    arrays : dict of str to array
        Numeric arrays are put here, by the name that the JSON has for them.

    Returns
    -------
    dict

    Raises
    ------
    ParameterError
        Where an attribute is neither an array nor expressible as JSON.
    """
    for number, network in enumerate(model.networks_):
        for name, tensor in network.state_dict().items():
            values = tensor.detach().cpu().numpy()
            arrays[f"networks.{number}.{name}"] = np.ascontiguousarray(values)
    fitted = {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and name not in _ELSEWHERE
    }
    settings = Settings(**model.fit_report_["settings"])
    return {
        "kind": type(model).__name__,
        "parameters": _encode(model.get_params(deep=False), "parameters", arrays),
        "fitted": _encode(fitted, "fitted", arrays),
        # "auto" is settled in these
        "network_settings": _encode(settings, "network_settings", arrays),
        "n_networks": len(model.networks_),
    }


def restore_classifier(
    state: dict[str, Any], arrays: dict[str, np.ndarray]
) -> LSAPClassifier:
    """Return the classifier of a state, on the CPU.

    Parameters
    ----------
    state : dict
        From :func:`state_of`.
    arrays : dict of str to array
        Those that it put aside.

    Returns
    -------
    LSAPClassifier

    Raises
    ------
    FileFormatError
        Where the state is of another kind of model.
    """
    if state["kind"] != LSAPClassifier.__name__:
        raise FileFormatError(f"the model is a {state['kind']}, not an LSAPClassifier")
    parameters = _decode(state["parameters"], arrays) | {"device": "cpu"}
    model = LSAPClassifier(**parameters)
    for name, value in _decode(state["fitted"], arrays).items():
        setattr(model, name, value)
    settings = _decode(state["network_settings"], arrays)
    model.networks_ = [
        _network(model, settings, f"networks.{number}.", arrays)
        for number in range(state["n_networks"])
    ]
    return model


def _network(
    model: LSAPClassifier, settings: Settings, start: str, arrays: dict[str, np.ndarray]
) -> HeatNetwork:
    tensors = {
        name.removeprefix(start): torch.from_numpy(np.array(values))
        for name, values in arrays.items()
        if name.startswith(start)
    }
    if settings.n_layers > len(tensors):
        raise FileFormatError(
            f"the model has {settings.n_layers} layers, and weights of fewer"
        )
    measured = torch.from_numpy(np.array(model.measured_))
    # without memory, whatever sizes the file says; its own arrays come in their place
    with torch.device("meta"):
        network = HeatNetwork(
            model.n_rois_, model.n_features_, len(model.classes_), settings, measured
        )
    network.load_state_dict(tensors, assign=True)
    return network.eval()


def _encode(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """Turn a value into JSON; arrays of numbers go to `arrays` under the name."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return _encode_array(value, name, arrays)
    if type(value).__name__ in _KINDS:
        kept = {one.name: getattr(value, one.name) for one in fields(value)}
        return {"__record__": type(value).__name__} | _encode(kept, name, arrays)
    if isinstance(value, dict):
        return {str(k): _encode(v, f"{name}.{k}", arrays) for k, v in value.items()}
    if isinstance(value, list | tuple):
        told = [_encode(one, f"{name}.{k}", arrays) for k, one in enumerate(value)]
        return {"__tuple__": told} if isinstance(value, tuple) else told
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ParameterError(
        f"{name} is a {type(value).__name__}, which a model file cannot hold; only "
        "numbers, text, arrays and lists of them are stored."
    )


def _encode_array(
    value: np.ndarray, name: str, arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    if value.dtype.kind in "biuf":
        arrays[name] = np.ascontiguousarray(value)
        return {"__array__": name}
    listed = [_encode(one, name, arrays) for one in value.tolist()]
    return {"__list_array__": listed, "dtype": value.dtype.str}


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
        held = str(value["dtype"])
        if not _TEXT_KIND.fullmatch(held):
            raise ValueError(f"an array of {held!r}, which is no text")
        return np.array(value["__list_array__"], dtype=np.dtype(held))
    rest = {k: _decode(one, arrays) for k, one in value.items() if k != "__record__"}
    kind = value.get("__record__")
    return rest if kind is None else _KINDS[kind](**rest)
