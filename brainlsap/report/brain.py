"""One value per region drawn on cortex and subcortex, by region name."""

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection
from matplotlib.colors import Colormap, ListedColormap, Normalize, to_rgba
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Circle, PathPatch, Rectangle
from matplotlib.path import Path as Shape
from matplotlib.patheffects import Normal, Stroke, withStroke
from matplotlib.pyplot import get_cmap
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D, Transform

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.evaluation import Evaluation
from brainlsap.evaluation.results import check_evaluation_given
from brainlsap.exceptions import ParameterError, RegionNameError, check_choice
from brainlsap.report import figures
from brainlsap.report.brain_layout import (
    LABEL_HEIGHT,
    LEGEND_HEIGHT,
    MAP_NAME_HEIGHT,
    MIN_VIEW_HEIGHT,
    NO_REGION,
    VIEWS,
    Box,
    FigureLayout,
    PlacedBar,
    PlacedView,
    ViewPicture,
    compute_text_width_mm,
    is_short_label,
    make_figure_layout,
    make_view_picture,
    wrap_text,
)
from brainlsap.report.figures import (
    LETTER_WIDTH,
    MM,
    PAGE_WIDTH,
    check_width,
    make_figure,
    use_paper_style,
)
from brainlsap.report.plots import QUARTERS, label_rows, make_training_scale_table
from brainlsap.report.regions import (
    difference_title_by_column,
    is_trend_tested,
    list_significant_regions,
)
from brainlsap.report.tables import shorten_name
from brainlsap.text import join_with_commas

RegionValues: TypeAlias = Mapping | pd.Series | pd.DataFrame
"""A value for every region by name, or several maps of such values by title."""

NO_VALUE = "#b4b4b4"  # regions without a value
NO_REGION_COLOR = "#ededed"  # brain that belongs to no region
LINE_COLOR = "#2b2b2b"
MAX_DOTS = 40
SWATCH_WIDTH, KEY_GAP = 5.0, 5.0  # of an entry of a key, and after it, in mm
MARKER_VIEW_SCALE = 1.4  # minimum height of views with markers, relative to surfaces

EFFECT_LIMITS = (2.0, 4.0)
"""Values of Cohen's d, positive and negative, at which colours of effect maps end."""

# Drawn around a shape, which keeps all of its colour: dark around white, so that one of
# the two stands out from any colour beside it.
OUTLINE_STYLE = [
    Stroke(linewidth=3),
    Stroke(linewidth=1.3, foreground="white"),
    Normal(),
]
# A mark of a region: a dot that stands out from light and dark colours.
DOT_STYLE: dict[str, Any] = {
    "marker": "o",
    "markersize": 2.6,
    "linestyle": "none",
    "markerfacecolor": "white",
    "markeredgecolor": "black",
    "markeredgewidth": 0.6,
    "zorder": 4,
    "clip_on": False,
}
HALO = [withStroke(linewidth=1.6, foreground="white")]

# Views of markers on nilearn's glass brain: its name there, and the range in mm that it
# shows across and up.
GLASS_VIEWS: dict[str, tuple[str, tuple[float, float], tuple[float, float]]] = {
    "dorsal": ("z", (-75, 77), (-112, 80)),
    "posterior": ("y", (-77, 77), (-77, 88)),
    "lateral left": ("l", (82, -113), (-76, 87)),
    "lateral right": ("r", (-113, 82), (-76, 87)),
}


def plot_regions(
    values: RegionValues,
    atlas: Any = "destrieux160",
    *,
    title: str | None = None,
    cmap: str | Colormap | Sequence[str | Colormap | None] | None = None,
    vmin: float | Sequence[float | None] | None = None,
    vmax: float | Sequence[float | None] | None = None,
    shared_scale: bool = True,
    views: str | Sequence[str] = "all",
    colorbar_label: str | Sequence[str] | None = None,
    outline: str | Sequence[str] | Mapping[str, str] = (),
    mark: str | Sequence[str] = (),
    outline_label: str = "",
    mark_label: str = "",
    highlighted_maps: Sequence[str] | None = None,
    width: float = PAGE_WIDTH,
    figure: Figure | SubFigure | None = None,
) -> Figure | SubFigure:
    r"""Draw one value per region on cortex and subcortex: the seven-view figure.

    Colours on the inflated cortex (fsaverage5) are flat, so each is exactly a colour of
    the colour bar. The subcortex is lit from the viewer; there, surfaces that face the
    viewer have the colour of the bar. A view assigns parts of a region that appear less
    than 1 mm wide to its neighbour.

    An atlas without surfaces is drawn as markers at the coordinates of its regions.
    Markers that stand out, by the distance of their value from the median (or from 0 if
    signs differ), lie above the others. An atlas with neither surfaces nor coordinates
    is drawn as dots, one line per region. For an atlas with an image,
    :func:`export_maps` writes a map that nilearn's `plot_stat_map` draws.

    Parameters
    ----------
    values : Series or mapping of str to float; or DataFrame or mapping of str to these
        One value per region *by name*, in any spelling that the atlas matches; or
        several maps by title (columns of a DataFrame), drawn one per row with a common
        colour scale. Regions without a value, or with NaN, are grey.
    atlas : str, Path or Atlas
        Argument of :func:`brainlsap.atlas.load_atlas`.
    title : str, optional
        Title of the figure. In the title and in `colorbar_label`, `$t_{38}$` is
        mathematics and `\$` a dollar sign; in region names dollar signs are literal.
    cmap : str or Colormap, or sequence of these, optional
        Colours from low to high; by default "viridis", and "RdBu_r" for values of both
        signs. A colour map of at most 20 colours (for example "tab10") gives each whole
        number its own colour. For values of both signs, the middle of a diverging
        colour map (lighter or darker there than at both ends) is at 0. The map may be
        your own; nilearn's are known by name after `import nilearn.plotting`.
    vmin, vmax : float or sequence of float, optional
        Values of the first and last colour; by default the smallest and largest value
        of all maps, and symmetric about 0 for diverging colours. There, a
        single limit is mirrored, and two limits are used as given. Values beyond have
        the end colours, and the colour bar shows this.
    shared_scale : bool
        If False, each of several maps has its own colours and colour bar; `cmap`,
        `vmin`, `vmax` and `colorbar_label` may then be lists with one item per map.
    views : "all", "compact", str or sequence of str
        Columns: "dorsal", "ventral", "lateral left", "lateral right", "medial left",
        "medial right" and "subcortex"; "lateral" and "medial" are both sides, "cortex"
        is all but the last. Markers have the views "dorsal", "posterior", "lateral
        left" and "lateral right". Views that would be too small for their titles wrap
        to several lines. "all" leaves out the cortex or the subcortex if none of its
        regions has a value, and the note states this; "compact" also leaves out the
        dorsal and the ventral view of surfaces, so that the others are larger.
    colorbar_label : str or sequence of str, optional
        Quantity and unit of the values.
    outline : str, sequence of str, or mapping of str to str
        Regions with a thick outline, or with a ring around the marker or dot. A mapping
        also gives each a label, drawn above or below a view (not for dots).
    mark : str or sequence of str
        Regions with a small dot in every view that shows them, white with a dark rim.
    outline_label, mark_label : str
        Meanings of outlines and dots, written in a key below the figure. The key
        contains only marks that a region has.
    highlighted_maps : sequence of str, optional
        Titles of the maps that have outlines and dots; by default all maps.
    width : float
        Width of a new figure in mm, from 60 to 400: for example 85 (one column of a
        journal) or 180 (two). The size of the text does not change. Rows are at most
        140 mm tall, so few views in a wide figure leave white margins.
    figure : Figure or SubFigure, optional
        An empty figure to draw in; its size replaces `width`, and views wrap to the
        number of lines that makes them largest. To draw beside other axes, use one of
        `fig.subfigures(1, 2)`. You then set the size and the options for saving
        yourself: `plt.rcParams["pdf.fonttype"] = 42`,
        `plt.rcParams["svg.fonttype"] = "none"`, `savefig(dpi=300)`.

    Returns
    -------
    Figure
        A pyplot figure. It is saved at 300 dpi with text as text (PDF: TrueType, at
        least 6 points, sub- and superscripts 4.9). In SVG, every region or marker has
        an id: map, view and region name, without signs other than `_`, `-` and `.`. The
        attribute `note` is a remark for the caption: what replaces surfaces, and which
        values or outlines were not drawn. A warning also reports missing outlines and
        regions without coordinates. An atlas of names alone shows dots for the 40
        regions that stand out most. Saving with `bbox_inches="tight"` would change the
        width.

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is nothing to draw, or a value, view, limit or width cannot be used.
    """
    max_width_mm, max_height_mm = _find_available_width_and_height(width, figure)
    atlas = load_atlas(atlas)
    map_table = make_map_table(values, atlas)
    scalar_mappables, bar_labels = _make_mappables_and_labels(
        map_table, shared_scale, cmap, vmin, vmax, colorbar_label or ""
    )
    label_by_region = _match_label_by_region_index("outline", outline, atlas)
    marked_region_indices = sorted(_match_label_by_region_index("mark", mark, atlas))
    if highlighted_maps is None:
        highlighted_maps = list(map_table.columns)
    legend_label_by_kind = {
        legend_kind: wrap_text(entry_label, max_width_mm - SWATCH_WIDTH - 4)
        for legend_kind, entry_label, legend_indices in (
            ("outline", outline_label, label_by_region),
            ("mark", mark_label, marked_region_indices),
        )
        if entry_label and legend_indices
    }
    valued_region_mask = map_table.notna().any(axis=1).to_numpy()
    located_region_mask = np.isfinite(atlas.coordinates).all(axis=1)
    title = wrap_text(title or "", (max_width_mm - 4) * 7 / 9)
    picture_by_view: dict[str, ViewPicture] = {}
    # Axes of dots have no room for more: small numbers as 2.5, and "1e-4" below.
    with use_paper_style(**{"axes.formatter.limits": (-2, 4)}):
        if atlas.has_surfaces or located_region_mask.any():
            if atlas.has_surfaces:
                available_view_names, located_region_mask, coverage_note = (
                    _find_views_region_mask_and_note(atlas, map_table, views)
                )
                for view_name in _expand_view_names(views, available_view_names):
                    picture_by_view[view_name] = make_view_picture(atlas, view_name)
                min_view_height_mm = MIN_VIEW_HEIGHT
            else:
                coverage_note = (
                    f"Atlas {atlas.name} has no surfaces, so markers show the centres "
                    "of regions."
                )
                for view_name in _expand_view_names(views, list(GLASS_VIEWS)):
                    picture_by_view[view_name] = _make_glass_view_picture(
                        atlas, view_name
                    )
                min_view_height_mm = MARKER_VIEW_SCALE * MIN_VIEW_HEIGHT
            figure_layout = make_figure_layout(
                picture_by_view,
                list(map_table.columns),
                bar_labels,
                _list_tick_texts(scalar_mappables),
                _make_no_value_bar_mask(
                    map_table, picture_by_view, len(scalar_mappables)
                ),
                label_by_region,
                title=title,
                figure_width_mm=max_width_mm,
                max_height_mm=max_height_mm,
                min_view_height_mm=min_view_height_mm,
                fills_height=figure is not None,
                n_legend_lines=_count_legend_lines(legend_label_by_kind, max_width_mm),
            )
            figure = figure or make_figure(figure_layout.width, figure_layout.height)
            _draw_layout(
                figure,
                figure_layout,
                atlas,
                map_table,
                scalar_mappables,
                picture_by_view,
                label_by_region,
                marked_region_indices,
                highlighted_maps,
            )
            _draw_region_legend(
                figure,
                figure_layout,
                legend_label_by_kind,
                has_markers=not atlas.has_surfaces,
            )
            visible_index_set = {
                region_index
                for view_picture in picture_by_view.values()
                for region_index in view_picture.centre_by_region
            }
        else:
            figure, coverage_note, visible_index_set = _plot_dots(
                map_table,
                scalar_mappables,
                title,
                bar_labels,
                max_width_mm,
                figure,
                outlined_region_indices=sorted(label_by_region),
                marked_region_indices=marked_region_indices,
                highlighted_map_names=highlighted_maps,
                legend_label_by_kind=legend_label_by_kind,
            )
            coverage_note = (
                f"Atlas {atlas.name} has neither surfaces nor coordinates, so dots "
                f"show its regions. {coverage_note}"
            )
            located_region_mask = ~located_region_mask
    drawing_figure: Any = figure
    drawing_figure.note = _undrawn_regions_note(
        atlas,
        coverage_note.strip(),
        visible_index_set,
        valued_region_mask,
        located_region_mask,
        [*label_by_region, *marked_region_indices],
        has_views=bool(picture_by_view),
    )
    return drawing_figure


def _find_available_width_and_height(
    figure_width_mm: float, figure: object
) -> tuple[float, float]:
    """Return the width and the largest height of the drawing, in mm."""
    check_width(figure_width_mm)
    if figure is None:
        return figure_width_mm, figures.MAX_FIGURE_HEIGHT
    if not isinstance(figure, Figure | SubFigure) or figure.axes:
        raise ParameterError(
            "figure must be a Figure without axes, because brains would cover the "
            "axes. To draw brains beside axes, pass one of fig.subfigures(1, 2)."
        )
    root_figure: Any = figure.get_figure(root=True)
    figure_width_mm, available_height_mm = (
        np.array(figure.bbox.size) / root_figure.dpi / MM
    )
    return figure_width_mm, available_height_mm


def _make_mappables_and_labels(
    map_table: pd.DataFrame,
    has_shared_scale: bool,
    cmap: Any,
    vmin: Any,
    vmax: Any,
    colorbar_label: Any,
) -> tuple[list[ScalarMappable], list[str]]:
    """Return the colours and the label of every colour bar: of all maps, or of each."""
    bar_tables = (
        [map_table]
        if has_shared_scale
        else [map_table[[map_name]] for map_name in map_table]
    )
    n_bars = len(bar_tables)
    scalar_mappables = [
        make_scalar_mappable(bar_table, *cmap_and_limits)
        for bar_table, *cmap_and_limits in zip(
            bar_tables,
            _list_bar_values("cmap", cmap, n_bars),
            _list_bar_values("vmin", vmin, n_bars),
            _list_bar_values("vmax", vmax, n_bars),
            strict=True,
        )
    ]
    return scalar_mappables, _list_bar_values("colorbar_label", colorbar_label, n_bars)


def _list_bar_values(argument_name: str, argument_value: Any, n_bars: int) -> list[Any]:
    """Return a value for every colour bar; a single value holds for all."""
    is_single_value = isinstance(argument_value, str) or not np.iterable(argument_value)
    argument_values = (
        [argument_value] * n_bars if is_single_value else [*argument_value]
    )
    if len(argument_values) != n_bars:
        raise ParameterError(
            f"{argument_name} has {len(argument_values)} values for {n_bars} colour "
            "bars; expected one value for each colour bar (shared_scale=False makes a "
            "bar for each map)."
        )
    return argument_values


def _match_label_by_region_index(
    argument_name: str,
    names_or_label_by_name: str | Sequence[str] | Mapping[str, str],
    atlas: Atlas,
) -> dict[int, str]:
    """Return the labels of the regions of an argument, by position; "" for none."""
    if isinstance(names_or_label_by_name, str):
        names_or_label_by_name = [names_or_label_by_name]
    if isinstance(names_or_label_by_name, Mapping):
        label_by_name = names_or_label_by_name
    else:
        label_by_name = dict.fromkeys(names_or_label_by_name, "")
    try:
        region_indices = atlas.match(list(label_by_name)).tolist()
    except RegionNameError as error:
        raise RegionNameError(
            f"{argument_name}= must contain names of regions. {error}",
            kind=error.kind,
            values=error.values,
        ) from error
    return dict(zip(region_indices, map(str, label_by_name.values()), strict=True))


def _undrawn_regions_note(
    atlas: Atlas,
    coverage_note: str,
    visible_index_set: set[int],
    valued_region_mask: np.ndarray,
    located_region_mask: np.ndarray,
    highlighted_region_indices: Collection[int],
    *,
    has_views: bool,
) -> str:
    """Return the figure's note with what was not drawn; warn of regions not drawn.

    Raises ParameterError where no region with a value can be drawn.
    """
    note_texts = [coverage_note] if coverage_note else []
    n_hidden_regions = len(
        set(np.flatnonzero(valued_region_mask & located_region_mask))
        - visible_index_set
    )
    if has_views and n_hidden_regions:
        note_texts.append(
            f"No view shows {n_hidden_regions} of the {valued_region_mask.sum()} "
            "regions with a value. The colour scale includes the values of these "
            "regions."
        )
    unlocated_indices = np.flatnonzero(
        valued_region_mask & ~located_region_mask
    ).tolist()
    if len(unlocated_indices) == valued_region_mask.sum() > 0:
        region_names = join_with_commas(
            (atlas.full_names[k] for k in unlocated_indices), 5
        )
        raise ParameterError(
            f"atlas {atlas.name} does not contain the positions of {region_names}."
        )
    indices_by_reason = {
        f"drawn, because atlas {atlas.name} gives no position": unlocated_indices,
        "outlined or marked, because they are not drawn": sorted(
            {*highlighted_region_indices} - visible_index_set
        ),
    }
    for omission_reason_text, undrawn_indices in indices_by_reason.items():
        if undrawn_indices:
            region_names = ", ".join(atlas.full_names[k] for k in undrawn_indices)
            note_texts.append(f"Not {omission_reason_text}: {region_names}.")
            warnings.warn(note_texts[-1], UserWarning, stacklevel=3)
    return " ".join(note_texts)


def _find_views_region_mask_and_note(
    atlas: Atlas, map_table: pd.DataFrame, views: str | Sequence[str]
) -> tuple[list[str], np.ndarray, str]:
    """Return the views that there are, whether they show each region, and a note.

    Of "all" and "compact", those of the cortex or the subcortex are left out if no
    region there has a value.
    """
    cortex_vertex_labels = np.concatenate(
        [atlas.vertex_labels(hemisphere) for hemisphere in "LR"]
    )
    subcortex_indices = atlas.match(list(atlas.meshes()))
    region_indices = np.arange(len(atlas))
    region_mask_by_structure = {
        "cortex": np.isin(region_indices, cortex_vertex_labels),
        "subcortex": np.isin(region_indices, subcortex_indices),
    }
    structure_names_with_regions = [
        structure_name
        for structure_name in region_mask_by_structure
        if region_mask_by_structure[structure_name].any()
    ]
    structure_names_with_values = [
        structure_name
        for structure_name in structure_names_with_regions
        if map_table[region_mask_by_structure[structure_name]].notna().any(axis=None)
    ]
    is_automatic = views in ("all", "compact")
    drawn_structure_names = (
        structure_names_with_values
        if structure_names_with_values and is_automatic
        else structure_names_with_regions
    )
    coverage_note = "".join(
        f"No region of the {structure_name} has a value, so the {structure_name} is "
        "not drawn."
        for structure_name in structure_names_with_regions
        if structure_name not in drawn_structure_names
    )
    available_view_names = [
        view_name
        for view_name in VIEWS
        if ("subcortex" if view_name == "subcortex" else "cortex")
        in drawn_structure_names
    ]
    return (
        available_view_names,
        region_mask_by_structure["cortex"] | region_mask_by_structure["subcortex"],
        coverage_note,
    )


def _expand_view_names(
    views: str | Sequence[str], available_view_names: list[str]
) -> list[str]:
    """Return the full names of the views that a user names."""
    view_names = [
        *available_view_names,
        *(view_name.split()[0] for view_name in available_view_names),
    ]
    views_by_name = {
        name_or_group: [v for v in available_view_names if v.startswith(name_or_group)]
        for name_or_group in view_names
    }
    views_by_name["all"] = available_view_names
    views_by_name["cortex"] = [
        view_name for view_name in available_view_names if view_name != "subcortex"
    ]
    has_surface_views = not {"medial left", "subcortex"}.isdisjoint(
        available_view_names
    )
    views_by_name["compact"] = [
        view_name
        for view_name in available_view_names
        if not (has_surface_views and view_name in ("dorsal", "ventral"))
    ]
    view_names = [views] if isinstance(views, str) else [*views]
    if not view_names:
        check_choice("views", views, [*views_by_name])
    for name_or_group in view_names:
        check_choice("views", name_or_group, [*views_by_name])
    return [
        view_name
        for name_or_group in view_names
        for view_name in views_by_name[name_or_group]
    ]


def plot_scales_at_quarters(
    evaluation: Evaluation,
    model: str | None = None,
    atlas: str | Path | Atlas | None = None,
    **options: Any,
) -> Figure | SubFigure:
    """Draw a model's heat scales at the start, the quarters and the end of training.

    Folds may begin at different scales, so what is drawn is relative, as in
    :func:`brainlsap.evaluation.rank_regions`: each scale over the median of its fold at
    that share of the training, mean over folds. The value of the median region is 1.

    Parameters
    ----------
    evaluation : Evaluation
        With scales at several shares of training.
    model : str, optional
        By default the first that has such scales.
    atlas : str, Path or Atlas, optional
        By default that of the evaluation's cohort.
    **options
        As for :func:`plot_regions`.

    Returns
    -------
    Figure
        One row a share of training, on one scale of colours.

    Raises
    ------
    ParameterError
        If the model is unknown or has no scales during training.
    """
    model_names = list(evaluation.scales.query("share < 1")["model"].unique())
    model = model or next(iter(model_names), "none")
    check_choice("model with scales during training", model, model_names)
    map_table = make_training_scale_table(evaluation, model).rename(columns=QUARTERS)
    options = {"colorbar_label": "relative scale", **options}
    return plot_regions(map_table, atlas or evaluation.cohort, **options)


def plot_effects(
    evaluation: Evaluation,
    feature: str | None = None,
    atlas: str | Path | Atlas | None = None,
    **options: Any,
) -> Figure | SubFigure:
    """Draw how every class differs from the reference in every region.

    Parameters
    ----------
    evaluation : Evaluation
        With `region_test_table` of :func:`brainlsap.evaluation.compare_regions`.
    feature : str, optional
        By default the first.
    atlas : str, Path or Atlas, optional
        By default that of the evaluation's cohort.
    **options
        As for :func:`plot_regions`.

    Returns
    -------
    Figure
        One row a class: Cohen's d from the reference. Colours end at the smallest of
        `EFFECT_LIMITS` that holds all values, so that maps of two studies can be
        compared; values beyond the largest limit have the last colour. With 99
        permutations or more, regions with p_effect below 0.05 are outlined, and regions
        with p_contrast below 0.05 have a dot. Both are tests of all classes together,
        not of one class, so they are drawn in the last row alone.

    Raises
    ------
    ParameterError
        If the evaluation has no `region_test_table`, or the feature is unknown.
    """
    check_evaluation_given(evaluation)
    feature_names = evaluation.cohort.feature_names
    feature = feature or feature_names[0]
    check_choice("feature", feature, feature_names)
    title_by_column = difference_title_by_column(evaluation)
    region_test_table: Any = evaluation.region_tests
    feature_test_table = region_test_table[region_test_table["feature"] == feature]
    map_table = feature_test_table.set_index("region")[list(title_by_column)]
    map_table = map_table.rename(columns=title_by_column).dropna(axis=1, how="all")
    if map_table.empty:
        raise ParameterError(
            f"no class has at least three people with a value of {feature}, so "
            "classes cannot be compared."
        )
    largest_difference = float(map_table.abs().max(axis=None))
    color_limit = next(
        (
            candidate_limit
            for candidate_limit in EFFECT_LIMITS
            if candidate_limit >= largest_difference
        ),
        EFFECT_LIMITS[-1],
    )
    test_label = "corrected p < 0.05"
    marked_regions_by_statistic = {
        statistic_name: list_significant_regions(evaluation, statistic_name, feature)
        for statistic_name in ("effect", "contrast")
    }
    if map_table.shape[1] > 1:
        hypothesis_text = "trend" if is_trend_tested(evaluation) else "difference"
        test_label = f"{hypothesis_text} over all classes ({test_label}; last row)"
        if any(marked_regions_by_statistic.values()):
            # Without these words, the marks are read as a test of the last class.
            last_title = map_table.columns[-1]
            test_name = "trend" if is_trend_tested(evaluation) else "overall"
            map_table = map_table.rename(
                columns={last_title: f"{last_title} (outlines: {test_name})"}
            )
    options = {
        "cmap": "RdBu_r",
        "vmin": -color_limit,
        "vmax": color_limit,
        "colorbar_label": "Cohen's d",
        "views": "compact",
        "outline": marked_regions_by_statistic["effect"],
        "mark": marked_regions_by_statistic["contrast"],
        "outline_label": test_label,
        "mark_label": "stands out from connected regions (corrected p < 0.05)",
        "highlighted_maps": list(map_table.columns[-1:]),
        **options,
    }
    drawn_atlas: Any = atlas or evaluation.cohort
    effects_figure: Any = plot_regions(map_table, drawn_atlas, **options)
    reference_class_name = evaluation.cohort.classes[0]
    color_note = (
        f"Blue is lower and red is higher than {reference_class_name}. "
        f"Colours end at ±{color_limit:g}"
    )
    if largest_difference > color_limit:
        color_note += f", and the largest difference is {largest_difference:.1f}"
    if load_atlas(drawn_atlas).has_surfaces:
        color_note += ". Pale grey parts of the brain belong to no region"
    effects_figure.note = f"{color_note}. {effects_figure.note}".strip()
    return effects_figure


def make_map_table(values: RegionValues, atlas: Atlas) -> pd.DataFrame:
    """Return a row a region and a column a map ("" for a single one); NaN if absent."""
    has_row_numbers = isinstance(getattr(values, "index", None), pd.RangeIndex)
    if has_row_numbers or not isinstance(values, Mapping | pd.Series | pd.DataFrame):
        raise ParameterError(
            "values must be a mapping, Series or DataFrame that has the names of the "
            "regions as keys or index (set_index('region')); got "
            f"{type(values).__name__}{' with row numbers' if has_row_numbers else ''}."
        )
    map_by_title = dict(values.items())
    is_single_map = not all(
        isinstance(x, Mapping | pd.Series) for x in map_by_title.values()
    )
    if not map_by_title or is_single_map:
        map_by_title = {"": values}
    map_table = pd.DataFrame(index=list(atlas.names))
    for title, map_series in map_by_title.items():
        # Match before anything becomes a dict: an index may hold a name twice.
        region_indices = atlas.match(list(map_series.keys()))
        region_values = np.full(len(atlas), np.nan)
        try:
            region_values[region_indices] = list(dict(map_series).values())
        except (TypeError, ValueError) as error:
            map_title = f"values {title}".rstrip()
            raise ParameterError(
                f"{map_title} must be numbers ({error}). If the numbers of a file have "
                "decimal commas, read it with pandas.read_csv(..., decimal=',')."
            ) from error
        map_table[str(title)] = region_values
    for title in map_table.columns[np.isinf(map_table).any() | map_table.isna().all()]:
        invalid_region_names = (
            map_table.index[np.isinf(map_table[title])].tolist()[:5] or "every region"
        )
        map_title = title or "the map"
        raise ParameterError(
            f"values of {map_title}: the value is missing or infinite in "
            f"{invalid_region_names}."
        )
    return map_table


def _find_colormap(cmap: str | Colormap) -> Colormap:
    """Return a colour map of matplotlib by its name; raise for unknown names."""
    is_colormap = isinstance(cmap, Colormap)
    if not is_colormap and cmap not in list(colormaps):
        similar_names = get_close_matches(str(cmap), colormaps, n=3)
        advice_text = "Give the name of a colour map of matplotlib, or a Colormap."
        if similar_names:
            advice_text = f"Similar names are {', '.join(similar_names)}."
        raise ParameterError("cmap is unknown", got=repr(cmap), advice=advice_text)
    return get_cmap(cmap)


def make_scalar_mappable(
    map_table: pd.DataFrame, cmap: Any, vmin: Any, vmax: Any
) -> ScalarMappable:
    """Return the colours of all maps; their bar says where values are beyond it."""
    min_value = float(map_table.min(axis=None))
    max_value = float(map_table.max(axis=None))
    is_constant = max_value - min_value <= 1e-12 * abs(min_value)
    constant_margin = 0.5 * (abs(min_value) or 1.0) if is_constant else 0.0
    lower_limit = min_value - constant_margin if vmin is None else float(vmin)
    upper_limit = max_value + constant_margin if vmax is None else float(vmax)
    if not (
        np.isfinite([lower_limit, upper_limit]).all() and lower_limit < upper_limit
    ):
        raise ParameterError(
            f"vmin must be less than vmax, got {lower_limit:g} and {upper_limit:g}."
        )
    colormap_name = "RdBu_r" if lower_limit < 0 < upper_limit else "viridis"
    colormap: Any = _find_colormap(cmap or colormap_name)
    n_integers = max_value - min_value + 1
    is_qualitative = (
        vmin is vmax is None
        and n_integers <= colormap.N <= 20
        and (map_table.stack().dropna() % 1 == 0).all()
    )
    if is_qualitative:  # clusters and the like: a colour for every whole number
        colormap = ListedColormap(colormap(range(int(n_integers))))
        colormap = colormap.with_extremes(bad=NO_VALUE)
        return ScalarMappable(Normalize(min_value - 0.5, max_value + 0.5), colormap)
    start_luminance, middle_luminance, end_luminance = colormap([0.0, 0.5, 1.0])[
        :, :3
    ] @ (0.299, 0.587, 0.114)
    # the middle is lighter than both ends, or darker
    is_diverging = (middle_luminance - start_luminance) * (
        middle_luminance - end_luminance
    ) > 0.01
    if is_diverging and lower_limit < 0 < upper_limit and None in (vmin, vmax):
        absolute_color_limits = [
            abs(color_limit) for color_limit in (vmin, vmax) if color_limit is not None
        ]
        upper_limit = float(max(absolute_color_limits or [-lower_limit, upper_limit]))
        lower_limit = -upper_limit
    if is_diverging and min(lower_limit, min_value) < 0 < max(
        upper_limit, max_value
    ):  # the middle is at 0
        colormap_positions = 0.5 + np.linspace(lower_limit, upper_limit, 256) / (
            2 * max(abs(lower_limit), abs(upper_limit))
        )
        colormap = ListedColormap(colormap(colormap_positions), colormap.name)
    colormap = colormap.with_extremes(bad=NO_VALUE)
    extend_keywords = [["neither", "max"], ["min", "both"]]
    colormap.colorbar_extend = extend_keywords[min_value < lower_limit][
        max_value > upper_limit
    ]
    return ScalarMappable(Normalize(lower_limit, upper_limit, clip=True), colormap)


def compute_region_rgba(
    region_values: np.ndarray, scalar_mappable: ScalarMappable
) -> np.ndarray:
    """Return RGBA of every region (n_rois + 1, 4); the last, -1, is of no region."""
    return np.vstack([scalar_mappable.to_rgba(region_values), to_rgba(NO_REGION_COLOR)])


def _make_no_value_bar_mask(
    map_table: pd.DataFrame, picture_by_view: Mapping[str, ViewPicture], n_bars: int
) -> np.ndarray:
    """Return for every colour bar whether its maps show a region without a value."""
    visible_indices = sorted(
        {
            k
            for view_picture in picture_by_view.values()
            for k in view_picture.centre_by_region
        }
    )
    incomplete_map_mask = map_table.iloc[visible_indices].isna().any().to_numpy()
    return incomplete_map_mask.reshape(-1, n_bars).any(axis=0)


def _draw_layout(
    figure: Any,
    figure_layout: FigureLayout,
    atlas: Atlas,
    map_table: pd.DataFrame,
    scalar_mappables: Sequence[ScalarMappable],
    picture_by_view: Mapping[str, ViewPicture],
    label_by_region: Mapping[int, str],
    marked_region_indices: Collection[int],
    highlighted_map_names: Collection[str],
) -> None:
    """Draw views, names, colour bars and the title at their places."""
    for placed_view in figure_layout.placed_views:
        axes = _add_axes(figure, figure_layout, placed_view.box, placed_view.view_name)
        axes.set_axis_off()
        map_name = map_table.columns[placed_view.map_index]
        is_highlighted_map = map_name in highlighted_map_names
        _draw_view(
            atlas,
            axes,
            picture_by_view[placed_view.view_name],
            f"{map_name}.{placed_view.view_name}".strip("."),
            map_table[map_name],
            scalar_mappables[placed_view.map_index % len(scalar_mappables)],
            label_by_region.keys() if is_highlighted_map else (),
            marked_region_indices if is_highlighted_map else (),
        )
        for side_letter, (x, text_alignment) in zip(
            placed_view.side_letters, ((0, "left"), (1, "right")), strict=False
        ):
            axes.text(
                x, 0, side_letter, ha=text_alignment, va="top", transform=axes.transAxes
            )
        _write_labels(axes, placed_view, figure_layout)
        if placed_view.title_pad is not None:
            axes.set_title(
                placed_view.view_name.capitalize(),
                y=1.0,  # Otherwise matplotlib moves titles away from other artists.
                pad=placed_view.title_pad,
                fontsize=7,
            )
    for placed_name in figure_layout.placed_names:
        name_position = (
            placed_name.x / figure_layout.width,
            placed_name.y / figure_layout.height,
        )
        text_style: Any = {
            "rotation": 90,
            "ha": "center",
            "va": "center",
            "fontsize": 8,
        }
        figure.text(*name_position, placed_name.text, **text_style)
    for scalar_mappable, placed_bar in zip(
        scalar_mappables, figure_layout.placed_bars, strict=True
    ):
        _draw_color_bar(
            _add_axes(figure, figure_layout, placed_bar.box, "colour bar"),
            scalar_mappable,
            placed_bar,
        )
    text_style = {"fontsize": 9, "ha": "center", "va": "top", "parse_math": True}
    figure.text(
        0.5,
        figure_layout.placed_title.y / figure_layout.height,
        figure_layout.placed_title.text,
        **text_style,
    )


def _add_axes(
    figure: Any, figure_layout: FigureLayout, axes_box: Box, axes_label: str
) -> Axes:
    """Return new axes at a place in mm."""
    figure_size_mm = np.array([figure_layout.width, figure_layout.height] * 2)
    return figure.add_axes(np.array(axes_box) / figure_size_mm, label=axes_label)


def _list_tick_texts(scalar_mappables: Sequence[ScalarMappable]) -> list[str]:
    """Return the numbers at the ticks of all colour bars."""
    tick_texts = list[str]()
    for tick_values, number_format in map(
        _choose_ticks_and_number_format, scalar_mappables
    ):
        tick_texts += [number_format.format(x=tick_value) for tick_value in tick_values]
    return tick_texts


def _choose_ticks_and_number_format(
    scalar_mappable: ScalarMappable,
) -> tuple[Sequence[float], str]:
    """Return the ticks of a bar, and their format, with equal numbers of decimals.

    Very small and very large numbers are written as 1e-06.
    """
    lower_limit, upper_limit = scalar_mappable.get_clim()
    if (
        upper_limit - lower_limit == scalar_mappable.cmap.N
    ):  # a colour for each whole number
        return [*np.arange(lower_limit + 0.5, upper_limit)], "{x:.0f}"
    tick_locator = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])
    tick_values = tick_locator.tick_values(lower_limit, upper_limit)
    if not 1e-4 <= np.abs(tick_values).max() < 1e6:
        return tick_values, "{x:.3g}"
    step_text = np.format_float_positional(
        tick_values[1] - tick_values[0], 6, fractional=False, trim="-"
    )
    n_decimals = len(step_text.partition(".")[2])
    return tick_values, f"{{x:z.{n_decimals}f}}"


def _draw_color_bar(
    axes: Any, scalar_mappable: ScalarMappable, placed_bar: PlacedBar
) -> None:
    """Draw a colour bar, and below it the colour of regions without a value."""
    tick_values, number_format = _choose_ticks_and_number_format(scalar_mappable)
    axes.figure.colorbar(
        scalar_mappable,
        cax=axes,
        ticks=tick_values,
        format=number_format,
        label=placed_bar.label,
    )
    axes.yaxis.label.set_parse_math(True)
    if is_short_label(placed_bar.label):  # upright: a turned "t" looks like a plus
        axes.yaxis.label.set(rotation=0, ha="left", va="center")
    if placed_bar.has_no_value_swatch:
        bar_height = placed_bar.box.height
        patch_style: Any = {
            "facecolor": NO_VALUE,
            "edgecolor": LINE_COLOR,
            "linewidth": 0.5,
        }
        text_placement: Any = {"transform": axes.transAxes, "clip_on": False}
        axes.add_artist(
            Rectangle(
                (0, -5 / bar_height),
                1,
                2.3 / bar_height,
                **patch_style,
                **text_placement,
            )
        )
        axes.text(1.5, -3.9 / bar_height, "no value", va="center", **text_placement)


def _draw_view(
    atlas: Atlas,
    axes: Any,
    view_picture: ViewPicture,
    svg_id_prefix: str,
    region_value_series: pd.Series,
    scalar_mappable: ScalarMappable,
    outlined_region_indices: Collection[int],
    marked_region_indices: Collection[int],
) -> None:
    """Draw the regions of one view; ids in SVG begin with `svg_id_prefix`."""
    region_rgba = compute_region_rgba(region_value_series, scalar_mappable)
    region_names = (*atlas.names, "brain")
    view_name = axes.get_label()
    shape_by_region = view_picture.shape_by_region
    view_transform = (
        Affine2D().scale(1 / view_picture.width, 1 / view_picture.height)
        + axes.transAxes
    )
    ordered_region_indices = [*shape_by_region]
    if NO_REGION not in shape_by_region:  # markers on a glass brain
        projection_name, x_range, y_range = GLASS_VIEWS[view_name]
        glass_outlines, edge_colors = _list_glass_outlines_and_colors(projection_name)
        patch_style: Any = {
            "edgecolors": edge_colors,
            "facecolors": "none",
            "linewidths": 0.5,
        }
        axes.add_collection(
            PathCollection(glass_outlines, **patch_style), autolim=False
        )
        axes.set(xlim=x_range, ylim=y_range)
        # Draw markers that stand out above the others.
        central_value = (
            0
            if region_value_series.min() < 0 < region_value_series.max()
            else region_value_series.median()
        )
        ordered_region_indices.sort(
            key=(region_value_series - central_value)
            .abs()
            .fillna(-1)
            .to_numpy()
            .__getitem__
        )
    for region_index in ordered_region_indices:  # -1: the brain, below its regions
        # lines at the edge of a view are not clipped
        patch_style = {
            "facecolor": region_rgba[region_index],
            "edgecolor": LINE_COLOR,
            "clip_on": False,
        }
        # no "$", "(" or "²", which ids of XML and CSS cannot hold
        id_words = re.sub(
            r"[^\w\s.-]|[²³]", "", f"{svg_id_prefix}.{region_names[region_index]}"
        ).split()
        patch_style |= {
            "linewidth": 0.25,
            "transform": view_transform,
            "gid": "-".join(id_words),
        }
        if (
            region_index in outlined_region_indices
        ):  # above other regions, below the shade
            patch_style |= {"zorder": 1.5, "path_effects": OUTLINE_STYLE}
        axes.add_artist(PathPatch(shape_by_region[region_index], **patch_style))
    if view_picture.shade_rgba is not None:
        axes.imshow(
            view_picture.shade_rgba, extent=(0, 1, 0, 1), zorder=2, aspect="auto"
        )
    view_size = (view_picture.width, view_picture.height)
    mark_positions = [
        np.divide(mark_xy, view_size)
        for region_index in marked_region_indices
        for mark_xy in view_picture.mark_spots_by_region.get(region_index, [])
    ]
    if mark_positions:
        axes.plot(*np.transpose(mark_positions), **DOT_STYLE, transform=axes.transAxes)
    if view_name == "subcortex":
        _write_subcortex_titles(axes)


def _draw_region_legend(
    figure: Any,
    figure_layout: FigureLayout,
    legend_label_by_kind: Mapping[str, str],
    *,
    has_markers: bool,
) -> None:
    """Write below all views what outlines and dots mean, centred.

    The outline of a region that is drawn as a marker is a ring.
    """
    if not legend_label_by_kind:
        return
    is_stacked = _is_legend_stacked(legend_label_by_kind, figure_layout.width)
    entry_widths_mm = _legend_entry_widths(legend_label_by_kind)
    legend_width_mm = max(entry_widths_mm) if is_stacked else sum(entry_widths_mm)
    legend_height_mm = LEGEND_HEIGHT * _count_legend_lines(
        legend_label_by_kind, figure_layout.width
    )
    axes_box = Box(
        max(1.0, (figure_layout.width - legend_width_mm) / 2),
        figure_layout.legend_y_mm - legend_height_mm / 2,
        legend_width_mm,
        legend_height_mm,
    )
    axes = _add_axes(figure, figure_layout, axes_box, "key")
    axes.set(xlim=(0, legend_width_mm), ylim=(-legend_height_mm, 0))
    axes.set_axis_off()
    x, entry_top = 0.0, 0.0
    for (legend_kind, entry_label), entry_width in zip(
        legend_label_by_kind.items(), entry_widths_mm, strict=True
    ):
        entry_height = legend_height_mm
        if is_stacked:
            entry_height = LEGEND_HEIGHT * (1 + entry_label.count("\n"))
        y = entry_top - entry_height / 2
        if legend_kind == "outline":
            swatch_style: Any = {"facecolor": NO_REGION_COLOR, "edgecolor": LINE_COLOR}
            swatch_style |= {"linewidth": 0.25, "path_effects": OUTLINE_STYLE}
            if has_markers:
                axes.add_artist(Circle((x + 2.0, y), 0.9, **swatch_style))
            else:
                axes.add_artist(Rectangle((x + 0.7, y - 0.8), 2.6, 1.6, **swatch_style))
        else:
            axes.plot(x + 2.0, y, **DOT_STYLE)
        axes.text(x + SWATCH_WIDTH, y, entry_label, va="center")
        if is_stacked:
            entry_top -= entry_height
        else:
            x += entry_width


def _legend_entry_widths(legend_label_by_kind: Mapping[str, str]) -> list[float]:
    """Return the width of every entry of a key, with the gap after it, in mm."""
    return [
        SWATCH_WIDTH
        + max(map(compute_text_width_mm, entry_label.split("\n")))
        + KEY_GAP
        for entry_label in legend_label_by_kind.values()
    ]


def _is_legend_stacked(
    legend_label_by_kind: Mapping[str, str], figure_width_mm: float
) -> bool:
    """Return whether the entries of a key are too wide to stand side by side."""
    return (
        sum(_legend_entry_widths(legend_label_by_kind)) - KEY_GAP > figure_width_mm - 2
    )


def _count_legend_lines(
    legend_label_by_kind: Mapping[str, str], figure_width_mm: float
) -> int:
    """Return on how many lines of text a key stands."""
    entry_line_counts = [
        1 + entry_label.count("\n") for entry_label in legend_label_by_kind.values()
    ]
    if _is_legend_stacked(legend_label_by_kind, figure_width_mm):
        return sum(entry_line_counts)
    return max(entry_line_counts, default=0)


def _write_subcortex_titles(axes: Axes) -> None:
    """Write lateral and medial beside the two lines of drawings if there is room."""
    axes_height_mm = axes.bbox.height / axes.figure.dpi / MM
    line_titles: tuple[str, ...] = ()
    if axes_height_mm > 17:
        line_titles = ("lateral", "medial")
    elif axes_height_mm > 9:
        line_titles = ("lat.", "med.")
    text_style: Any = {"ha": "right", "va": "center", "rotation": 90, "fontsize": 6}
    for k, line_title in enumerate(line_titles):
        axes.text(-0.01, 0.75 - k / 2, line_title, **text_style)


@lru_cache
def _list_glass_outlines_and_colors(
    projection_name: str,
) -> tuple[list[Shape], list[Any]]:
    """Return the lines of nilearn's glass brain, in mm, and their colours."""
    from nilearn.plotting.displays import GlassBrainAxes

    axes = Figure().add_subplot()
    GlassBrainAxes(axes, projection_name, 0)
    outline_shapes, edge_colors = list[Shape](), list[Any]()
    for brain_patch in axes.patches:
        mm_transform = brain_patch.get_transform() - axes.transData
        outline_shapes.append(mm_transform.transform_path(brain_patch.get_path()))
        edge_colors.append(brain_patch.get_edgecolor())
    return outline_shapes, edge_colors


def _make_glass_view_picture(atlas: Atlas, view_name: str) -> ViewPicture:
    """Return the markers that a view of the glass brain shows."""
    centroids = atlas.coordinates
    projection_name, x_range, y_range = GLASS_VIEWS[view_name]
    x, y, z = centroids.T
    coordinates_by_projection = {
        "z": (x, y, z),
        "y": (x, z, -y),
        "l": (y, z, -x),
        "r": (y, z, x),
    }
    right_coordinates, up_coordinates, viewer_coordinates = coordinates_by_projection[
        projection_name
    ]
    visible_region_mask = np.isfinite(centroids).all(axis=1)
    if projection_name in "lr":
        visible_region_mask &= viewer_coordinates >= 0
    visible_indices = np.flatnonzero(visible_region_mask).tolist()
    marker_centre_by_region = {
        k: (abs(right_coordinates[k] - x_range[0]), up_coordinates[k] - y_range[0])
        for k in visible_indices
    }
    marker_shape_by_region = {
        k: Shape.circle(marker_xy, 0.0275 * np.ptp(y_range))
        for k, marker_xy in marker_centre_by_region.items()
    }
    # The fewer markers, the more room each one has.
    marker_area_by_region = dict.fromkeys(
        visible_indices, 1 / max(1, len(visible_indices))
    )
    return ViewPicture(
        np.ptp(x_range),
        np.ptp(y_range),
        marker_shape_by_region,
        marker_area_by_region,
        marker_centre_by_region,
        {k: [marker_centre] for k, marker_centre in marker_centre_by_region.items()},
        shade_rgba=None,
    )


def _write_labels(
    axes: Any, placed_view: PlacedView, figure_layout: FigureLayout
) -> None:
    """Write the labels of regions above and below a view, with lines to the regions."""
    for placed_label in placed_view.placed_labels:
        view_edge = (
            placed_view.upper_edge if placed_label.is_above else placed_view.lower_edge
        )
        label_direction = 1 if placed_label.is_above else -1
        elbow_point = (
            placed_label.line_x / figure_layout.width,
            view_edge / figure_layout.height,
        )
        y = (
            view_edge + label_direction * LABEL_HEIGHT * placed_label.lower_line_number
        ) / figure_layout.height
        line_start = (
            (placed_label.line_x - placed_label.left_x) / placed_label.width,
            0.5 - label_direction / 2,
        )
        axes.annotate(
            placed_label.text,
            (placed_label.region_x, placed_label.region_y),
            (placed_label.left_x / figure_layout.width, y),
            xycoords="axes fraction",
            textcoords="subfigure fraction",
            va="bottom" if placed_label.is_above else "top",
            bbox={"fc": "white", "ec": "none", "pad": 0.5},
            arrowprops={
                "arrowstyle": "-",
                "linewidth": 0.6,
                "path_effects": HALO,
                "relpos": line_start,
                "connectionstyle": partial(
                    _make_bent_line, axes.figure.transSubfigure, elbow_point
                ),
            },
        )


def _make_bent_line(
    transform: Transform,
    elbow_point: tuple[float, float],
    start_point: Any,
    end_point: Any,
    **_: Any,
) -> Shape:
    """Return a line from a label straight to its elbow, and on to a region."""
    return Shape([start_point, transform.transform(elbow_point), end_point])


def _plot_dots(
    map_table: pd.DataFrame,
    scalar_mappables: Sequence[ScalarMappable],
    title: str,
    bar_labels: Sequence[str],
    figure_width_mm: float,
    figure: Any,
    *,
    outlined_region_indices: Collection[int],
    marked_region_indices: Collection[int],
    highlighted_map_names: Collection[str],
    legend_label_by_kind: Mapping[str, str],
) -> tuple[Any, str, set[int]]:
    """Draw a dot for each region that stands out in a map.

    Return the figure, how many regions are left out, and the positions of the others.
    Outlined and marked regions come before all others.
    """
    outlined_name_set = {
        map_table.index[region_index] for region_index in outlined_region_indices
    }
    marked_name_set = {
        map_table.index[region_index] for region_index in marked_region_indices
    }
    shown_map_table = map_table.dropna(how="all")
    signed_map_mask = (shown_map_table.min() < 0) & (shown_map_table.max() > 0)
    deviation_table = (
        shown_map_table - shown_map_table.median().mask(signed_map_mask, 0)
    ).abs()
    region_ranks = deviation_table.rank(ascending=False).min(axis=1)
    highlighted_region_mask = region_ranks.index.isin(
        outlined_name_set | marked_name_set
    )
    region_ranks -= len(region_ranks) * highlighted_region_mask
    shown_region_names = region_ranks.sort_values(kind="stable").index[:MAX_DOTS]
    n_omitted_regions, omission_note = len(region_ranks) - len(shown_region_names), ""
    if n_omitted_regions:
        omission_note = (
            f"The figure leaves out {n_omitted_regions} of {len(region_ranks)} "
            "regions, whose values are nearest to the middle."
        )
    shown_map_table = map_table.loc[shown_region_names].sort_values([*map_table])
    max_letters = max(30, int(0.4 * figure_width_mm / LETTER_WIDTH))
    short_region_names = [
        shorten_name(region_name, max_letters) for region_name in shown_map_table.index
    ]
    figure = figure or make_figure(
        figure_width_mm, 22 + 3.6 * len(short_region_names), layout="constrained"
    )
    axes_row = figure.subplots(
        1,
        shown_map_table.shape[1],
        sharex=len(scalar_mappables) == 1,
        sharey=True,
        squeeze=False,
    )[0]
    outlined_region_mask = shown_map_table.index.isin(outlined_name_set)
    marked_region_mask = shown_map_table.index.isin(marked_name_set)
    for k, (axes, (map_name, map_series)) in enumerate(
        zip(axes_row, shown_map_table.items(), strict=True)
    ):
        has_highlights = map_name in highlighted_map_names
        dot_colors = scalar_mappables[k % len(scalar_mappables)].to_rgba(
            map_series.to_numpy()
        )
        row_positions = np.arange(len(short_region_names))
        axes.scatter(
            map_series,
            row_positions,
            20,
            dot_colors,
            edgecolors=LINE_COLOR,
            lw=np.where(outlined_region_mask & has_highlights, 1.4, 0.4),
            zorder=3,
        )
        if has_highlights and marked_region_mask.any():
            mark_style = DOT_STYLE | {"markersize": 2.0}
            axes.plot(
                map_series[marked_region_mask],
                row_positions[marked_region_mask],
                **mark_style,
            )
        label_rows(axes, short_region_names)
        axes.set_title(wrap_text(map_name, MAP_NAME_HEIGHT))
        if map_series.min() < 0 < map_series.max():
            axes.axvline(0, color=LINE_COLOR, linewidth=0.5)
        axes.set_xlabel(bar_labels[k] if len(bar_labels) > 1 else "", parse_math=True)
    figure.suptitle(title, fontsize=9, parse_math=True)
    text_by_kind = {"outline": "Thick ring", "mark": "White centre"}
    footer_lines = [
        bar_labels[0] if len(bar_labels) == 1 else "",
        "\n".join(
            f"{text_by_kind[legend_kind]}: {legend_label_by_kind[legend_kind]}"
            for legend_kind in legend_label_by_kind
        ),
        wrap_text(omission_note, figure_width_mm - 4),
    ]
    figure.supxlabel("\n".join(filter(None, footer_lines)), fontsize=7, parse_math=True)
    return (
        figure,
        omission_note,
        {*map_table.index.get_indexer(shown_region_names).tolist()},
    )
