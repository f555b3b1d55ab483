"""Finished numbers become figures: axes in, axes out, nothing saved or shown."""

from typing import TYPE_CHECKING

import numpy as np

from brainlsap._arrays import check_choice
from brainlsap.evaluation import SCORES, Evaluation, ModelResult, confusion_counts
from brainlsap.report.axes import BLUE, GREY, INK, bare, new_axes, verbatim

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_confusion(result: ModelResult, ax: "Axes | None" = None) -> "Axes":
    """Draw the confusion matrix of all out-of-fold predictions.

    Parameters
    ----------
    result : ModelResult
        One model over all folds.
    ax : Axes, optional
        Where to draw; by default a new figure, without a window.

    Returns
    -------
    Axes
        Rows are true classes and sum to 100%, columns predicted ones, both in order
        of stage; below each share stands the number of scans.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> evaluation = cross_validate(DummyClassifier(), cohort, 2, baselines=False)
    >>> plot_confusion(evaluation.main).get_ylabel()
    'true class'
    """
    predictions = result.predictions()
    counts = confusion_counts(
        predictions["truth"], predictions["predicted"], result.classes
    )
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    side = 1.2 + 0.75 * len(counts)
    ax = new_axes(side + 1.2, side) if ax is None else ax
    image = ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        ax.text(
            column,
            row,
            f"{share[row, column]:.0%}\n{count}",
            ha="center",
            va="center",
            color="white" if share[row, column] > 0.55 else INK,
            fontsize=9 if len(counts) < 8 else 6,
        )
    names = [verbatim(name) for name in result.classes]
    totals = counts.sum(axis=1)
    turned = max(map(len, names)) > 7
    ax.set_xticks(range(len(names)), names, rotation=45 if turned else 0)
    ax.set_yticks(
        range(len(names)),
        [f"{name}\nn = {total}" for name, total in zip(names, totals, strict=True)],
    )
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, pad=0.03)
    bar.set_label("share of the true class")
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    bar.outline.set_visible(False)
    return ax


def plot_calibration(
    result: ModelResult, n_bins: int = 8, ax: "Axes | None" = None
) -> "Axes":
    """Draw how often predictions are right against how sure the model was.

    Parameters
    ----------
    result : ModelResult
        One model over all folds.
    n_bins : int
        Groups of equally many test scans, by the probability of the predicted class.
    ax : Axes, optional
        Where to draw; by default a new figure, without a window.

    Returns
    -------
    Axes
        Points on the dashed line are calibrated; below it the model is too sure.
        Bars are 95% Wilson intervals of the share, which take scans for independent.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> evaluation = cross_validate(DummyClassifier(), cohort, 2, baselines=False)
    >>> plot_calibration(evaluation.main).get_ylabel()
    'share predicted rightly'
    """
    sure, share, low, high = calibration_points(result, n_bins)
    ax = new_axes(4.2, 3.8) if ax is None else ax
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=(0, (4, 3)), linewidth=1)
    reach = np.abs(np.stack([share - low, high - share]))
    ax.errorbar(sure, share, yerr=reach, fmt="o", color=BLUE, capsize=3)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel("probability of the predicted class")
    ax.set_ylabel("share predicted rightly")
    bare(ax)
    return ax


def calibration_points(
    result: ModelResult, n_bins: int = 8
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the points of :func:`plot_calibration`.

    Parameters
    ----------
    result : ModelResult
        One model over all folds.
    n_bins : int
        Groups of equally many test scans.

    Returns
    -------
    sure, share, low, high : arrays of shape (n_bins,)
        Mean probability, share predicted rightly, and its 95% Wilson interval.
    """
    told = result.predictions()
    columns = [f"p_{name}" for name in result.classes]
    probability = told[columns].to_numpy().max(axis=1)
    right = (told["truth"] == told["predicted"]).to_numpy(dtype=float)
    order = np.argsort(probability, kind="stable")
    parts = [one for one in np.array_split(order, n_bins) if len(one)]
    sure = np.array([probability[one].mean() for one in parts])
    share = np.array([right[one].mean() for one in parts])
    n, z = np.array([len(one) for one in parts]), 1.96
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return sure, share, centre - half, centre + half


def plot_scores(
    evaluation: Evaluation,
    score: str = "balanced_accuracy",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw one score of all models side by side, a dot for every fold.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    score : str
        One of :data:`brainlsap.evaluation.SCORES`.
    ax : Axes, optional
        Where to draw; by default a new figure, without a window.

    Returns
    -------
    Axes
        Small dots are folds, the large one is their mean, the bar its s.d. For
        balanced accuracy a dashed line shows what guessing gives.

    Raises
    ------
    ParameterError
        Where `score` is unknown.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> evaluation = cross_validate(DummyClassifier(), cohort, 2, baselines=False)
    >>> plot_scores(evaluation, "accuracy").get_xlabel()
    'accuracy (dots: folds; bar: mean ± s.d.)'
    """
    check_choice("score", score, SCORES)
    names, baselines = list(evaluation.results), set(evaluation.baselines())
    ax = new_axes(6.4, 1.3 + 0.5 * len(names)) if ax is None else ax
    if score == "balanced_accuracy":
        _mark_chance(ax, 1 / len(evaluation.cohort.classes))
    for place, name in enumerate(names):
        values = evaluation.result(name).scores()[score].to_numpy()
        color = GREY if name in baselines else BLUE
        # The same fold lies at the same height in every row.
        height = place + np.linspace(-0.2, 0.2, len(values))
        ax.plot(values, height, ".", color=color, alpha=0.45, markersize=7)
        spread = values.std(ddof=1) if len(values) > 1 else None
        ax.errorbar(
            values.mean(), place, xerr=spread, fmt="o", color=color, capsize=3, zorder=3
        )
        ax.annotate(
            f"{values.mean():.3f}",
            (1, place),
            (6, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=INK,
        )
    ax.set_yticks(range(len(names)), [verbatim(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(f"{SCORES[score]} (dots: folds; bar: mean ± s.d.)")
    bare(ax)
    return ax


def _mark_chance(ax: "Axes", value: float) -> None:
    ax.axvline(value, color=GREY, linestyle=(0, (4, 3)), linewidth=1)
    ax.annotate(
        "chance",
        (value, 1),
        (0, 3),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="center",
        color=GREY,
        fontsize=8,
    )
