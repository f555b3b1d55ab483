"""The figures of a report, drawn and kept as bytes with caption and alt text."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from brainlsap.data import Atlas
from brainlsap.evaluation import Evaluation, ModelResult, confusion_counts
from brainlsap.exceptions import BrainlsapError
from brainlsap.report.audit_tables import NOT_BY_PERSON
from brainlsap.report.figures import (
    calibration_points,
    plot_calibration,
    plot_confusion,
    plot_scores,
)
from brainlsap.report.ranking_figures import plot_ranks, plot_scales
from brainlsap.report.surface import plot_regions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 200
SCALE_MAP = "mean over folds"
SCALE_LABEL = "heat scale"


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of a report.

    Parameters
    ----------
    name : str
        Its file, without ending.
    caption : str
        What it shows.
    alt : str
        The same for those who cannot see it, with its main numbers.
    png : bytes
        The image.
    """

    name: str
    caption: str
    alt: str
    png: bytes

    @property
    def uri(self) -> str:
        """The image as a data URI, so that a page needs no other file."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}"


def draw_scores(evaluation: Evaluation) -> tuple[Picture, Picture]:
    """Draw the scores of all models and the confusion matrix of the first.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    scores : Picture
    confusion : Picture
    """
    means = ", ".join(
        f"{name} {result.scores()['balanced_accuracy'].mean():.3f}"
        for name, result in evaluation.results.items()
    )
    main = evaluation.main
    mark, axes = "", (plot_scores(evaluation), plot_confusion(main))
    if evaluation.people_shared:
        mark = f" {NOT_BY_PERSON[:1].upper()}{NOT_BY_PERSON[1:]}."
        for ax in axes:
            ax.figure.suptitle(NOT_BY_PERSON, color="#B00020", fontsize=10)
    scores = Picture(
        "scores",
        "Balanced accuracy of every model on the same folds. Small dots are folds, "
        "the large dot is their mean, the bar one s.d.; blue: models asked for, grey: "
        f"baselines; dashed: what guessing gives.{mark}",
        f"Dot plot of balanced accuracy, means: {means}.",
        as_png(axes[0].figure),
    )
    confusion = Picture(
        "confusion",
        f"Confusion matrix of {main.name}, all test folds together. Rows are true "
        "classes and add up to 100%; below each share stands the number of "
        f"scans.{mark}",
        f"Confusion matrix of {main.name}. Recognised as what they are: "
        f"{_recognised(main)}.",
        as_png(axes[1].figure),
    )
    return scores, confusion


def draw_calibration(evaluation: Evaluation) -> Picture:
    """Draw how far the first model's probabilities can be believed.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    Picture
    """
    main = evaluation.main
    sure, share, _, _ = calibration_points(main)
    points = ", ".join(
        f"{a:.2f} sure, {b:.2f} right" for a, b in zip(sure, share, strict=True)
    )
    return Picture(
        "calibration",
        f"Calibration of {main.name} on all test scans: how often its prediction is "
        "right, against the probability it gave. On the dashed line the two are equal; "
        "below it the model is too sure. Bars: 95% intervals.",
        f"Calibration of {main.name}, in groups of scans: {points}.",
        as_png(plot_calibration(main).figure),
    )


def draw_ranking(ranking: pd.DataFrame, atlas: Atlas) -> tuple[Picture, Picture]:
    """Draw the regions of smallest scale, and the scales of all in order.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`, with a measured region.
    atlas : Atlas
        Holds the names of the regions.

    Returns
    -------
    scales : Picture
    ranks : Picture
    """
    ranked = ranking.dropna(subset=["rank"]).sort_values("rank", kind="stable").head(5)
    short = [atlas.short_names[place] for place in atlas.match(list(ranked["region"]))]
    key = " Diamonds: seeds of the answer key." if "seed" in ranking else ""
    scales = Picture(
        "scales",
        "Regions of smallest learned heat scale, mean and s.d. over folds; hollow: the "
        f"scale did not leave its start.{key}",
        f"Dot plot of heat scales; the smallest are {', '.join(short)}.",
        as_png(plot_scales(ranking, atlas).figure),
    )
    ranks = Picture(
        "ranks",
        f"Learned heat scales of all measured regions in order of scale.{key}",
        f"Scales of {int(ranking['measured'].sum())} regions in increasing order, from "
        f"{ranking['scale'][ranking['measured']].min():.2f} to "
        f"{ranking['scale'][ranking['measured']].max():.2f}.",
        as_png(plot_ranks(ranking).figure),
    )
    return scales, ranks


def draw_maps(
    maps: Mapping[str, Any], atlas: Atlas, label: str = SCALE_LABEL
) -> tuple[tuple[Picture, ...], tuple[str, ...]]:
    """Draw maps on the brain as one figure: a row for each, one scale of colours.

    Parameters
    ----------
    maps : mapping of str to (mapping or Series)
        One value per region name, by the name of the row, such as a model.
    atlas : Atlas
        With surface files.
    label : str
        What the values are, beside the colour bar.

    Returns
    -------
    pictures : tuple of Picture
        One figure, or none.
    gaps : tuple of str
        Why a map could not be drawn: it has no value, or the atlas has no surfaces.
    """
    drawn = {name: one for name, one in maps.items() if known_values(one).size}
    gaps = [
        f"{name} could not be drawn on the brain: no region has a value."
        for name in maps
        if name not in drawn
    ]
    if not drawn:
        return (), tuple(gaps)
    names = ", ".join(drawn)
    try:
        # A single map needs no name beside it: the caption has it.
        shown = next(iter(drawn.values())) if len(drawn) == 1 else drawn
        figure = plot_regions(shown, atlas, colorbar_label=label)
    except BrainlsapError as error:
        return (), (*gaps, f"{names} could not be drawn on the brain: {error}")
    smallest = "; ".join(
        f"{name}: {', '.join(known_values(one).nsmallest(3).index)}"
        for name, one in drawn.items()
    )
    rows = "" if len(drawn) == 1 else "One row for each model, one scale of colours. "
    picture = Picture(
        "surface",
        f"{label[:1].upper()}{label[1:]} of every region on the cortex (fsaverage5) "
        f"and the subcortex: {names}. {rows}Grey: no value. L and R: left and right "
        "hemisphere.",
        f"{label} drawn on the brain from seven sides; smallest in {smallest}.",
        as_png(figure),
    )
    return (picture,), tuple(gaps)


def scale_map(ranking: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the mean scales of the measured regions as a map to draw.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.

    Returns
    -------
    dict of str to Series
        One map; regions that were not measured are NaN.
    """
    scale = ranking["scale"].where(ranking["measured"])
    return {SCALE_MAP: pd.Series(scale.to_numpy(), index=list(ranking["region"]))}


def _recognised(result: ModelResult) -> str:
    told = result.predictions()
    counts = confusion_counts(told["truth"], told["predicted"], result.classes)
    share = counts.diagonal() / np.maximum(counts.sum(axis=1), 1)
    pairs = zip(result.classes, share, strict=True)
    return ", ".join(f"{name} {part:.0%}" for name, part in pairs)


def known_values(values: Any) -> pd.Series:
    """Return the values of a map that are known, by region."""
    return pd.Series(values, dtype=float).dropna()


def as_png(figure: "Figure | Any") -> bytes:
    """Return a figure as the bytes of a PNG."""
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=DPI, bbox_inches="tight")
    return stream.getvalue()
