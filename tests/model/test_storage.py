"""A model in a file: the same predictions, and nothing else.

`test_processes.py` loads a model in another process.
"""

import json
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import load_file, save_file

from brainlsap.exceptions import BrainlsapError, FileFormatError, ParameterError
from brainlsap.model import (
    LSAPClassifier,
    LSAPRidgeClassifier,
    ModelOrigin,
    NetworkClassifier,
    load_model,
    save_model,
)
from brainlsap.model.storage import FORMAT_VERSION, HEADER, _hash_model
from tests.conftest import raises_kind
from tests.model.conftest import draw_scans

REGIONS = tuple(f"region {k}" for k in range(7))
FEATURES = ("thickness", "volume")
ORIGIN = ModelOrigin(REGIONS, FEATURES)
SHORT = {"n_epochs": 4, "n_starts": 2}


@pytest.fixture(scope="module")
def fitted():
    scans = draw_scans(classes=("CN", "LMCI", "AD"))
    options = {"readout_units": 5}
    model = LSAPClassifier(n_layers=2, start="constant", options=options, **SHORT)
    return model.fit(scans.X, scans.y, groups=scans.people), scans.X


@pytest.fixture
def stored(fitted, tmp_path):
    return save_model(fitted[0], tmp_path / "m", ORIGIN)


def test_everything_learned_comes_back(fitted, stored, tmp_path):
    model, X = fitted
    loaded = load_model(stored)
    assert vars(loaded).keys() == vars(model).keys() | {"origin_"}
    assert loaded.get_params() == model.get_params()
    assert loaded.fit_report_ == model.fit_report_
    assert loaded.settings_ == model.settings_
    assert loaded.history_[1].train_loss == model.history_[1].train_loss
    for name in ("scales_by_start_", "scale_path_", "measured_"):
        assert_array_equal(getattr(loaded, name), getattr(model, name))
    assert tuple(loaded.origin_.region_names) == REGIONS
    # stored again, not a byte is another
    assert save_model(loaded, tmp_path / "again").read_bytes() == stored.read_bytes()
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


@pytest.mark.parametrize(
    "model",
    [
        NetworkClassifier("adc", n_epochs=2, patience=0),
        NetworkClassifier("gat", n_epochs=2, patience=0, hidden_units=3),
        LSAPClassifier("exact", head="ordinal", **SHORT),
        LSAPClassifier(connectome="covariance", **SHORT),
        LSAPClassifier(options={"network_weight": 0.5}, **SHORT),
        LSAPRidgeClassifier("regions", n_draws=2),
    ],
)
@pytest.mark.filterwarnings("ignore:.*did not learn")
def test_every_kind_of_model_is_stored(model, scans, tmp_path):
    X, people = scans.X, scans.people
    for y in (people % 3, np.array(["x", "yy"])[people % 2]):
        model.fit(X, y, groups=people)
        loaded = load_model(save_model(model, tmp_path / "m", ORIGIN))
        assert type(loaded) is type(model)
        assert loaded.classes_.dtype == model.classes_.dtype
        assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def change(path, edit, *, sign=False):
    """Write the file again with another header."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()[HEADER])
    about, arrays = json.loads(header["about"]), load_file(path)
    edit(about)
    header["about"] = json.dumps(about)
    if sign:
        header["sha256"] = _hash_model(header["about"], arrays)
    save_file(arrays, path, {HEADER: json.dumps(header)})


def swap_regions(about):
    names = about["origin"]["region_names"]
    names[0], names[3] = names[3], names[0]


def setter(value, *keys):
    def edit(about):
        for key in keys[:-1]:
            about = about[key]
        about[keys[-1]] = value

    return edit


SETTINGS = "model", "settings_", "hidden_units"


@pytest.mark.parametrize(
    ("edit", "sign", "message"),
    [
        (swap_regions, False, "changed after it was written"),
        (dict.clear, True, "as a whole model file, .*'version'"),
        (
            setter(8, "format_version"),
            True,
            f"format 8; this version reads {FORMAT_VERSION}",
        ),
        (setter("99.3.1", "version"), True, "fitted by brainlsap 99"),
        (setter(9, *SETTINGS), True, "size mismatch"),
        (setter("Stranger", "model", "__record__"), True, "as a whole .*'Stranger'"),
        (setter(["a"], "origin", "region_names"), True, "must be 7 different names"),
    ],
)
def test_changed_headers_are_refused(stored, edit, sign, message):
    change(stored, edit, sign=sign)
    with pytest.raises(BrainlsapError, match=f"(?s){message}"):
        load_model(stored)


def test_damaged_and_strange_files_are_refused(stored, tmp_path):
    whole = bytearray(stored.read_bytes())
    whole[-3] ^= 1
    stored.write_bytes(bytes(whole))
    with pytest.raises(FileFormatError, match="do not match its checksum"):
        load_model(stored)
    for length in (0, 5, len(whole) // 2):
        stored.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match="as a whole model file"):
            load_model(stored)
    save_file({"a": np.ones(2)}, tmp_path / "other")
    with pytest.raises(FileFormatError, match="as a whole model file"):
        load_model(tmp_path / "other")
    with raises_kind("no such file"):
        load_model(tmp_path / "absent")
    with pytest.raises(FileFormatError, match="a folder; expected a model file"):
        load_model(tmp_path)
    (tmp_path / "pickle").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(FileFormatError, match="looks like a pickle"):
        load_model(tmp_path / "pickle")


def test_what_cannot_be_stored_is_refused(fitted, tmp_path):
    model, _ = fitted
    with pytest.raises(ParameterError, match=r"the model is not fitted\. Call fit"):
        save_model(LSAPClassifier(), tmp_path / "m")
    with pytest.raises(
        ParameterError,
        match=r"origin must name the regions and .* of the fit\. Pass ModelOrigin",
    ):
        save_model(model, tmp_path / "m")
    doubled = ModelOrigin(("a",) * 7, FEATURES)
    with pytest.raises(ParameterError, match=r"7 different names.* got 7, 1 of them"):
        save_model(model, tmp_path / "m", origin=doubled)
    odd = ModelOrigin(REGIONS, FEATURES, facts={"odd": object()})
    with pytest.raises(ParameterError, match=r"type object cannot be stored"):
        save_model(model, tmp_path / "m", origin=odd)
    assert not (tmp_path / "m").exists()
