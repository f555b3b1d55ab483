import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_hex

from brainlsap.data.atlas import load_atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report import (
    plot_training_scales,
    plot_trajectories,
    scales_at_quarters,
    write_training_animation,
)

ATLAS = load_atlas("desikan82")
EPOCHS = np.arange(0, 41, 2)  # 21 looks


def draw_history(seed=0):
    """Scales that leave 2 for ends of their own, the first three for the smallest."""
    rng = np.random.default_rng(seed)
    ends = np.concatenate([[0.3, 0.1, 0.2], rng.uniform(0.8, 4, size=len(ATLAS) - 3)])
    way = (1 - np.exp(-EPOCHS / 12.0)) / (1 - np.exp(-EPOCHS[-1] / 12.0))
    return 2 + way[:, None] * (ends - 2)


def test_quarters_are_the_nearest_looks():
    scales = draw_history()
    told = scales_at_quarters(scales, EPOCHS, ATLAS.names)
    assert list(told) == [
        "epoch 0 (start)",
        "epoch 10 (25%)",
        "epoch 20 (50%)",
        "epoch 30 (75%)",
        "epoch 40 (end)",
    ]
    assert list(told.index) == list(ATLAS.names)
    np.testing.assert_array_equal(told.to_numpy().T, scales[[0, 5, 10, 15, 20]])


def test_quarters_count_epochs_and_not_looks():
    told = scales_at_quarters(np.arange(4.0)[:, None], [0, 1, 60, 100], ["a"])
    assert told.columns.tolist() == [
        "epoch 0 (start)",
        "epoch 1 (25%)",
        "epoch 60 (50%)",
        "epoch 100 (end)",
    ]
    alone = scales_at_quarters([[2.0, 1.0]], [7], ["a", "b"])
    assert alone.columns.tolist() == ["epoch 7 (start)"]


def test_one_row_of_brains_for_each_quarter_on_one_scale():
    scales = draw_history()
    figure = plot_training_scales(scales, EPOCHS, ATLAS.names, ATLAS, views="top")
    rows = [ax for ax in figure.axes if ax.get_label() == "top"]
    assert len(rows) == 5
    (bar,) = [ax for ax in figure.axes if ax.get_label() == "colour bar"]
    assert bar.get_ylim() == pytest.approx((0.1, scales.max()))
    assert bar.get_ylabel() == "heat scale"
    names = {one.get_text().replace("\n", " ") for one in figure.texts}
    assert "epoch 30 (75%)" in names


def test_lines_of_the_smallest_are_coloured_and_named():
    scales = draw_history()
    ax = plot_trajectories(scales, EPOCHS, ATLAS.names, highlight=3, best_epoch=24)
    named = {one.get_text(): one for one in ax.texts}
    assert list(named) == [*np.array(ATLAS.names)[[1, 2, 0]], "chosen epoch"]
    heights = sorted(named[name].xy[1] for name in ATLAS.names[:3])
    assert np.diff(heights).min() >= 0.045 * scales.max() - 1e-9
    lines = [line for line in ax.lines if to_hex(line.get_color()) != "#bbbbbb"]
    np.testing.assert_array_equal(lines[0].get_ydata(), scales[:, 1])
    assert lines[-1].get_xdata() == [24, 24]
    grey = [line for line in ax.lines if to_hex(line.get_color()) == "#bbbbbb"]
    assert len(grey) == len(ATLAS) - 3
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("epoch", "heat scale")


def test_lines_can_be_named_by_hand_and_unmeasured_regions_are_not_smallest():
    scales = draw_history()
    scales[:, 1] = np.nan
    ax = plot_trajectories(scales, EPOCHS, ATLAS.names, highlight=1)
    assert [one.get_text() for one in ax.texts] == [ATLAS.names[2]]
    ax = plot_trajectories(scales, EPOCHS, ATLAS.names, highlight=[ATLAS.names[9]])
    assert [one.get_text() for one in ax.texts] == [ATLAS.names[9]]


def test_the_animation_goes_from_the_first_to_the_last_look(tmp_path):
    from PIL import Image

    values = np.array([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]])
    names = ["lh_insula", "lh_precentral"]
    path = write_training_animation(
        values,
        [0, 4, 9],
        names,
        tmp_path / "training.gif",
        ATLAS,
        views="outer left",
        seconds=1.5,
    )
    with Image.open(path) as image:
        assert image.n_frames == 3
        frames = []
        pauses = []
        for number in range(3):
            image.seek(number)
            pauses.append(image.info["duration"])
            frames.append(np.asarray(image.convert("RGB")).astype(int))
    assert pauses == [500, 500, 1500]
    yellow = np.array(colormaps["viridis"](1.0, bytes=True)[:3], dtype=int)
    shares = [(np.abs(one - yellow).max(axis=-1) < 6).mean() for one in frames]
    assert shares[1] < min(shares[0], shares[2])
    assert not any(tmp_path.glob(".partial*"))


BAD = [
    (np.ones((3, 2)), [0, 1], ["a", "b"], r"expected \(2, 2\) .*got \(3, 2\)"),
    (np.ones((0, 2)), [], ["a", "b"], r"a look at least"),
    (np.ones((2, 1)), [4, 4], ["a"], r"epochs must rise, got \[4, 4\]"),
]


@pytest.mark.parametrize(("scales", "epochs", "names", "message"), BAD)
def test_histories_that_do_not_fit_are_refused(scales, epochs, names, message):
    with pytest.raises(ParameterError, match=message):
        scales_at_quarters(scales, epochs, names)


def test_other_wishes_that_cannot_be_met_are_refused(tmp_path):
    history = ([[1.0]], [0], ["lh_insula"])
    with pytest.raises(ParameterError, match=r"names 'b', which is none of the 1"):
        plot_trajectories(*history, highlight=["b"])
    with pytest.raises(ParameterError, match=r"end its name in \.gif, got .*a\.mp4"):
        write_training_animation(*history, tmp_path / "a.mp4", ATLAS)
    with pytest.raises(ParameterError, match=r"n_frames of at least 1 .*n_frames=0"):
        write_training_animation(*history, tmp_path / "a.gif", ATLAS, n_frames=0)
