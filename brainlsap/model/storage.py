"""Store a fitted model in one file: safetensors with a JSON header, no pickle.

Arrays are tensors of the file. Everything else is JSON in its header, under the key
`brainlsap`: `about`, and `sha256`, a checksum of `about` and of the arrays that detects
any change of the file.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import brainlsap
from brainlsap.exceptions import FileFormatError, ParameterError, convert_reading_errors
from brainlsap.files import replace_when_whole
from brainlsap.graph import Preparation
from brainlsap.model.classifier import LSAPClassifier, NetworkClassifier
from brainlsap.model.inputs import InputScaler, PackedClassifier
from brainlsap.model.network import GraphNetwork
from brainlsap.model.ridge import LSAPRidgeClassifier
from brainlsap.model.settings import Settings
from brainlsap.model.training import History

FORMAT_VERSION = 12
HEADER = "brainlsap"

CLASSIFIERS = {
    classifier_class.__name__: classifier_class
    for classifier_class in (LSAPClassifier, LSAPRidgeClassifier, NetworkClassifier)
}
# Classes whose objects are stored by their attributes.
_RECORDS: dict[str, Any] = CLASSIFIERS | {
    record_class.__name__: record_class
    for record_class in (History, InputScaler, Preparation, Settings)
}


@dataclass(frozen=True)
class ModelOrigin:
    """Description of the training data of a model.

    Parameters
    ----------
    region_names : sequence of str
        Name of every region, in the order of the model's arrays.
    feature_names : sequence of str
        Name of every feature of a region, in order.
    classes : sequence of str
        All classes, in order of stage.
    label_name, atlas_name : str
        Name of the predicted label, and of the atlas.
    reading : dict
        Options of :func:`brainlsap.data.load_cohort` with which new participants must
        be read, too, as JSON allows.
    facts : dict
        Further properties of the training data, as JSON allows.
    """

    region_names: Sequence[str]
    feature_names: Sequence[str]
    classes: Sequence[str] = ()
    label_name: str = "diagnosis"
    atlas_name: str = ""
    reading: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict, repr=False)

    def check(self, model: PackedClassifier) -> None:
        """Raise unless every region and feature has a name of its own."""
        for parameter_name, expected_names, n_expected_names in (
            ("region_names", self.region_names, model.n_rois_),
            ("feature_names", self.feature_names, model.n_features_),
        ):
            n_different_names = len(set(expected_names))
            if not len(expected_names) == n_different_names == n_expected_names:
                raise ParameterError(
                    f"{parameter_name} must be {n_expected_names} different names, as "
                    f"in the fit; got {len(expected_names)}, {n_different_names} of "
                    "them different."
                )


def save_model(
    model: PackedClassifier, path: str | Path, origin: ModelOrigin | None = None
) -> Path:
    """Write a fitted model to one file, completely or not at all.

    The file includes the connectome if all training scans shared one.

    Parameters
    ----------
    model : LSAPClassifier, LSAPRidgeClassifier or NetworkClassifier
        Fitted.
    path : str or Path
        The file; an existing one is replaced. `.safetensors` is a fitting suffix.
    origin : ModelOrigin, optional
        At least the names of regions and features, such as `cohort.region_names` and
        `cohort.feature_names`; by default that of a model from :func:`load_model`.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        If the model is not fitted, or names are missing, doubled or too few.
    """
    from safetensors.numpy import save

    if not hasattr(model, "classes_"):
        raise ParameterError("the model is not fitted. Call fit before save_model.")
    origin = origin or getattr(model, "origin_", None)
    if origin is None:
        raise ParameterError(
            "origin must name the regions and features of the fit. Pass "
            "ModelOrigin(cohort.region_names, cohort.feature_names)."
        )
    origin.check(model)
    array_by_name: dict[str, np.ndarray] = {}

    def encode(unserialized_value: Any) -> Any:
        """Convert what JSON cannot store; arrays of numbers become tensors."""
        if isinstance(unserialized_value, np.generic):
            return unserialized_value.item()
        if isinstance(unserialized_value, GraphNetwork):
            tensor_by_name = unserialized_value.state_dict()
            return {
                weight_name: tensor.cpu().numpy()
                for weight_name, tensor in tensor_by_name.items()
            }
        if (
            isinstance(unserialized_value, np.ndarray)
            and unserialized_value.dtype.kind in "biuf"
        ):
            array_name = f"array.{len(array_by_name)}"
            array_by_name[array_name] = np.ascontiguousarray(unserialized_value)
            return {"__array__": array_name}
        if isinstance(unserialized_value, np.ndarray):  # of text or objects
            return {
                "__texts__": unserialized_value.tolist(),
                "dtype": unserialized_value.dtype.str,
            }
        if type(unserialized_value).__name__ in _RECORDS:
            # Leave out the origin, which has a key of its own, and private attributes,
            # which scikit-learn adds.
            value_by_attribute = {
                k: v for k, v in vars(unserialized_value).items() if k[0] != "_"
            }
            value_by_attribute.pop("origin_", None)
            return {
                "__record__": type(unserialized_value).__name__
            } | value_by_attribute
        raise ParameterError(
            f"a value of type {type(unserialized_value).__name__} cannot be stored "
            f"in a model file: {unserialized_value!r}. Use numbers, text or lists "
            "as settings of the model."
        )

    model_record = {
        "format_version": FORMAT_VERSION,
        "version": brainlsap.__version__,
        "origin": vars(origin),
        "model": model,
    }
    model_json_text = json.dumps(model_record, default=encode)
    # Use one key: the order of several is not fixed.
    header_text = json.dumps(
        {
            "about": model_json_text,
            "sha256": _hash_model(model_json_text, array_by_name),
        }
    )
    with replace_when_whole(path) as partial_path:
        partial_path.write_bytes(save(array_by_name, metadata={HEADER: header_text}))
    return Path(path)


def load_model(path: str | Path) -> Any:
    """Read a model that :func:`save_model` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    LSAPClassifier, LSAPRidgeClassifier or NetworkClassifier
        As it was fitted, on the CPU; its attribute `origin_` is a
        :class:`ModelOrigin`. `predict` takes arrays as they are; what takes out sites
        and covariates is in `origin_.facts`, for :mod:`brainlsap.prediction`.

    Raises
    ------
    FileFormatError
        If the file is missing, cut short, changed, no model, or of a version that
        this brainlsap does not read.

    Examples
    --------
    >>> import tempfile
    >>> X = np.random.default_rng(0).uniform(size=(12, 3, 4))
    >>> X[..., :-1] += X[..., :-1].transpose(0, 2, 1)  # connectomes are symmetric
    >>> model = LSAPClassifier("exact", n_epochs=2, n_starts=1)
    >>> _ = model.fit(X, np.arange(12) % 2, groups=np.arange(12))
    >>> origin = ModelOrigin(["a", "b", "c"], ["thickness"])
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = save_model(model, f"{place}/model.safetensors", origin)
    ...     loaded = load_model(path)
    >>> bool((loaded.predict_proba(X) == model.predict_proba(X)).all())
    True
    >>> loaded.origin_.region_names
    ['a', 'b', 'c']
    """
    from safetensors import safe_open

    if Path(path).is_dir():
        raise FileFormatError(
            "the path is a folder; expected a model file. Write the model file first "
            "and the study folder second.",
            path=path,
        )
    with convert_reading_errors(path, "a whole model file, as `brainlsap fit` writes"):
        with Path(path).open("rb") as model_file:
            first_bytes = model_file.read(9)
            # The header of a model file begins at byte 8.
            if first_bytes.startswith(b"\x80") and not first_bytes.endswith(b"{"):
                raise FileFormatError(
                    "the file looks like a pickle, and brainlsap opens no pickle, "
                    "because a pickle can run any program. Store the model with "
                    "`brainlsap fit`.",
                    path=path,
                )
        with safe_open(path, framework="numpy") as safetensors_file:
            header_record = json.loads((safetensors_file.metadata() or {})[HEADER])
            array_by_name = {
                array_name: safetensors_file.get_tensor(array_name)
                for array_name in safetensors_file.keys()  # noqa: SIM118
            }
        if header_record["sha256"] != _hash_model(
            header_record["about"], array_by_name
        ):
            raise FileFormatError(
                "the file was changed after it was written, because its names, "
                "settings or weights do not match its checksum. Copy the file "
                "again, or fit the model again.",
                path=path,
            )
        file_record = json.loads(header_record["about"])
        file_version = str(file_record["version"])
        file_format = file_record["format_version"]
        running_version = brainlsap.__version__
        # The meaning of numbers may change with the minor version.
        is_same_minor = file_version.split(".")[:2] == running_version.split(".")[:2]
        if not is_same_minor or file_format != FORMAT_VERSION:
            raise FileFormatError(
                f"the model was fitted by brainlsap {file_version}, but the installed "
                f"version is {running_version} (format {file_format}; this version "
                f"reads {FORMAT_VERSION}). Predictions may differ. Install brainlsap "
                f"{file_version}, or fit the model again.",
                path=path,
            )
        return _restore_model(header_record["about"], array_by_name)


def _restore_model(model_json_text: str, array_by_name: dict[str, np.ndarray]) -> Any:
    """Return the model that `save_model` wrote as JSON text and arrays."""

    def decode(json_record: dict[str, Any]) -> Any:
        if "__array__" in json_record:
            return array_by_name[json_record["__array__"]]
        if "__texts__" in json_record:
            return np.array(
                json_record["__texts__"], dtype=np.dtype(json_record["dtype"])
            )
        if "__record__" not in json_record:
            return json_record
        restored_record = object.__new__(_RECORDS[json_record.pop("__record__")])
        restored_record.__dict__.update(json_record)
        return restored_record

    model_record = json.loads(model_json_text, object_hook=decode)
    model = model_record["model"]
    model.origin_ = ModelOrigin(**model_record["origin"])
    model.origin_.check(model)
    if isinstance(model, LSAPRidgeClassifier):
        return model
    model.device = "cpu"
    measured_region_mask = torch.from_numpy(np.array(model.measured_))
    weight_arrays_of_networks = model.networks_
    model.networks_ = []
    for array_by_weight in weight_arrays_of_networks:
        # The meta device draws no initial weights, so no random generator advances.
        with torch.device("meta"):
            network = GraphNetwork(
                model.n_rois_,
                model.n_features_,
                len(model.classes_),
                model.settings_,
                measured_region_mask,
                0.0,
            )
        tensor_by_name = {
            array_name: torch.from_numpy(np.array(stored_array))
            for array_name, stored_array in array_by_weight.items()
        }
        network.load_state_dict(tensor_by_name, assign=True)
        model.networks_.append(network.eval())
    return model


def _hash_model(model_json_text: str, array_by_name: dict[str, np.ndarray]) -> str:
    """Return the checksum of a stored model."""
    sha256 = hashlib.sha256(model_json_text.encode())
    for array_name in sorted(array_by_name):
        named_array = array_by_name[array_name]
        array_header_text = f"{array_name} {named_array.dtype.str} {named_array.shape}"
        sha256.update(array_header_text.encode())
        sha256.update(np.ascontiguousarray(named_array).tobytes())
    return sha256.hexdigest()
