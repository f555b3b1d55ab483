"""A model in a file: the same predictions in another process, and nothing else."""

import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.model import LSAPClassifier, ModelOrigin, load_model, save_model
from brainlsap.model.storage import FORMAT_VERSION, HEADER, _digest

REGIONS = tuple(f"region {k}" for k in range(7))
FEATURES = ("thickness", "volume")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    half = rng.gamma(1.0, 40.0, (26, 7, 7))
    X = np.concatenate(
        [half + half.transpose(0, 2, 1), rng.normal(size=(26, 7, 2))], axis=2
    )
    X[:, 5, 7:] = np.nan
    y = np.array(["CN", "LMCI", "AD"], dtype=object)[np.arange(26) % 3]
    model = LSAPClassifier(n_layers=2, n_epochs=6, n_starts=2)
    return model.fit(X, y, groups=np.arange(26)), X


@pytest.fixture
def stored(fitted, tmp_path):
    return save_model(
        fitted[0], tmp_path / "m", region_names=REGIONS, feature_names=FEATURES
    )


def header_of(path):
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()[HEADER])


def change(path, edit, *, sign=False):
    """Write the file again with another header, as a stranger might."""
    arrays, header = load_file(path), header_of(path)
    edit(header["about"])
    if sign:
        header["sha256"] = _digest(header["about"], arrays)
    save_file(arrays, path, {HEADER: json.dumps(header)})


def test_everything_learned_comes_back(fitted, stored):
    model, X = fitted
    loaded = load_model(stored)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.scales_by_start_, model.scales_by_start_)
    assert vars(loaded).keys() == vars(model).keys() | {"origin_"}
    assert loaded.get_params() == model.get_params()
    assert loaded.fit_report_ == model.fit_report_
    assert loaded.settings_ == model.settings_
    assert loaded.history_[1].train_loss == model.history_[1].train_loss
    assert loaded.origin_.region_names == REGIONS
    assert loaded.origin_.feature_names == FEATURES


def test_a_fresh_process_predicts_the_same_bytes(fitted, stored, tmp_path):
    model, X = fitted
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy as np; from brainlsap.model import load_model; "
        "X = np.load(sys.argv[2]); "
        "sys.stdout.write(load_model(sys.argv[1]).predict_proba(X).tobytes().hex())"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(stored), str(tmp_path / "X.npy")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert bytes.fromhex(told.stdout) == model.predict_proba(X).tobytes()


def test_a_loaded_model_is_stored_again_byte_for_byte(stored, tmp_path):
    again = save_model(load_model(stored), tmp_path / "again")
    assert again.read_bytes() == stored.read_bytes()


def test_classes_keep_their_kind(fitted, tmp_path):
    _, X = fitted
    model = LSAPClassifier("exact", n_epochs=2, n_starts=1)
    for y in (np.arange(26) % 2, np.array(["x", "yy"])[np.arange(26) % 2]):
        model.fit(X, y, groups=np.arange(26))
        path = save_model(
            model, tmp_path / "m", region_names=REGIONS, feature_names=FEATURES
        )
        loaded = load_model(path)
        assert loaded.classes_.dtype == model.classes_.dtype
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def of_kind(kind):
    def edit(about):
        about["state"]["fitted"]["classes_"]["dtype"] = kind

    return edit


def swap_regions(about):
    names = about["origin"]["region_names"]
    names[0], names[3] = names[3], names[0]


def other_format(about):
    about["format_version"] = FORMAT_VERSION + 1


def other_package(about):
    about["versions"]["brainlsap"] = "99.3.1"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (swap_regions, "was changed after it was written"),
        (other_format, rf"version {FORMAT_VERSION + 1}; this brainlsap reads .*again"),
        (other_package, r"fitted by brainlsap 99\.3\.1, and this is .*Install"),
        (dict.clear, r"damaged model file \('format'\)"),
    ],
)
def test_changed_headers_are_refused(stored, edit, message):
    change(stored, edit)
    with pytest.raises(FileFormatError, match=message):
        load_model(stored)


@pytest.mark.parametrize("kind", [",U2", "<U99999", "<V9", "|S3", "i4,f8"])
def test_arrays_of_text_are_of_text(stored, kind):
    """NumPy takes some of these for Python, or for gigabytes."""
    change(stored, of_kind(kind), sign=True)
    with pytest.raises(FileFormatError, match=r"damaged model .* which is no text"):
        load_model(stored)


def test_one_weight_changed_is_noticed(stored):
    content = bytearray(stored.read_bytes())
    content[-3] ^= 1
    stored.write_bytes(bytes(content))
    with pytest.raises(FileFormatError, match="do not fit their checksum"):
        load_model(stored)


def test_truncated_bytes_are_refused(stored):
    whole = stored.read_bytes()
    for length in (0, 5, 40, len(whole) // 2, len(whole) - 1):
        stored.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match="not a whole model file"):
            load_model(stored)


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        load_model(tmp_path / "absent")
    with pytest.raises(FileFormatError, match=r"a folder; .* \(brainlsap fit, save"):
        load_model(tmp_path)
    save_file({"a": np.ones(2)}, tmp_path / "other")
    with pytest.raises(FileFormatError, match="no model of brainlsap"):
        load_model(tmp_path / "other")


def huge(about):
    about["state"]["network_settings"]["hidden_units"] = 10**9


def deep(about):
    about["state"]["network_settings"]["n_layers"] = 10**9


def stranger(about):
    about["state"]["kind"] = "Stranger"


def short(about):
    about["origin"]["region_names"].pop()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (huge, "cannot be read as a model .*size mismatch"),
        (deep, "1000000000 layers, and weights of fewer"),
        (stranger, "is a Stranger, not an LSAPClassifier"),
        (short, "region_names must be 7 different names"),
    ],
)
def test_a_file_made_to_mislead_is_refused(stored, edit, message):
    change(stored, edit, sign=True)
    with pytest.raises(FileFormatError, match=f"(?s){message}"):
        load_model(stored)


def test_what_cannot_be_stored_is_refused(fitted, tmp_path):
    model, _ = fitted
    with pytest.raises(ParameterError, match="the model is not fitted; call fit"):
        save_model(LSAPClassifier(), tmp_path / "m")
    with pytest.raises(ParameterError, match="region_names and feature_names must"):
        save_model(model, tmp_path / "m")
    doubled = ModelOrigin(("a",) * 7, FEATURES)
    with pytest.raises(ParameterError, match=r"7 different names.* got 7, 1 of them"):
        save_model(model, tmp_path / "m", origin=doubled)
    assert not (tmp_path / "m").exists()


def test_parts_that_a_file_cannot_hold_are_named(fitted, tmp_path):
    from copy import copy

    model = copy(fitted[0])
    model.odd_ = object()
    with pytest.raises(ParameterError, match=r"fitted\.odd_ is a object, which a mod"):
        save_model(model, tmp_path / "m", region_names=REGIONS, feature_names=FEATURES)
