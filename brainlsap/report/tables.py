"""Every table of a report: a data frame of text, ready for a paper."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.atlas import load_atlas
from brainlsap.data.find_files import visit_order
from brainlsap.evaluation import ConnectomeGain, Evaluation, comparison
from brainlsap.evaluation import ranking as ranks
from brainlsap.evaluation.confounds import find_covariate_column
from brainlsap.evaluation.leakage import check_title
from brainlsap.evaluation.ranking import find_subcortex_substitute
from brainlsap.evaluation.results import check_evaluation_given
from brainlsap.evaluation.scores import SCORES, fold_scores, main_scores, score_titles
from brainlsap.exceptions import ParameterError, check_at_least, check_choice
from brainlsap.text import count, with_and

FEATURES = {
    "thickness": "cortical thickness",
    "volume": "regional volume",
    "area": "cortical surface area",
    "strength": "strength of the connectome (sum of a region's weights)",
    "fdg": "FDG-PET SUVR",
    "amyloid": "amyloid-PET SUVR",
    "tau": "tau-PET SUVR",
}
"""Titles of features in text; other features are called by their names."""

N_DRAWS, N_SWAPS = 1000, 5000
"""Bootstrap draws for intervals; exchanges in tests of nested models."""

MIN_PEOPLE = 3
"""Means over fewer people are not shown: they would disclose a person's value."""

_LATEX = {"<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$"}
_LATEX |= {"\N{EN DASH}": "--", "\N{MINUS SIGN}": "$-$"}
"""Signs that pandas does not translate to LaTeX."""

_SIGN = r"(?<![\w.)\]-])-(?=\.?\d)"
"""A hyphen that is the sign of a number, unlike the hyphens of 1-2 and HRF-2."""


def feature_title(cohort: Any, name: str, region: str | None = None) -> str:
    """Return the title of a feature, of one region or of all.

    In the subcortex another measure may be substituted for one of the cortical surface.
    """
    title = FEATURES.get(name, name)
    subcortex_substitute = find_subcortex_substitute(cohort, name)
    if not subcortex_substitute:
        return title
    if region is None:
        measure = subcortex_substitute.partition(" in ")[0]  # Without its unit.
        return f"{title} (subcortex: {measure})"
    structure = cohort.regions.set_index("name")["structure"]
    return subcortex_substitute if structure[region] == "subcortex" else title


def feature_text(cohort: Any) -> str:
    """Return the titles of a cohort's features."""
    return with_and(feature_title(cohort, name) for name in cohort.feature_names)


def measured_text(cohort: Any) -> str:
    """Return in how many regions each feature was measured, and how much is missing."""
    all_regions = count(len(cohort.region_names), "region")
    texts = []
    for name in cohort.feature_names:
        n_regions, missing_share = _measured_regions(cohort, name)
        text = f"{feature_title(cohort, name)} in {n_regions} of {all_regions}"
        if missing_share > 0:
            text += f" ({max(missing_share, 0.001):.1%} of values missing)"
        texts.append(text)
    return with_and(texts)


def has_missing_values(cohort: Any) -> bool:
    """Return whether a feature is missing in some people of the regions measured."""
    return any(_measured_regions(cohort, name)[1] > 0 for name in cohort.feature_names)


def _measured_regions(cohort: Any, feature: str) -> tuple[int, float]:
    """Return the number of regions with a feature, and the share missing there."""
    class_features = cohort.class_features.dropna(subset="mean")
    rows = class_features[class_features["feature"] == feature]
    n_regions = rows["region"].nunique()
    n_people = cohort.class_counts()["participants"].sum()
    return n_regions, 1 - rows["people"].sum() / (n_regions * n_people)


def p_text(p: float) -> str:
    """Return a p-value for a table: three decimals, "< 0.001", or "n/a"."""
    if not np.isfinite(p):
        return "n/a"
    if p < 0.001:
        return "< 0.001"
    return f"{p:.4f}" if 0.0495 <= p < 0.05 else f"{p:.3f}"  # no 0.050 below 0.05


def spread_text(mean: float, sd: float = np.nan, digits: int = 3) -> str:
    """Return "mean ± s.d.", without the s.d. where it is unknown."""
    mean += np.copysign(1e-12, mean)  # round halves up as in figures: 0.125 is 0.13
    mean_text = f"{mean:z.{digits}f}" if np.isfinite(mean) else "n/a"
    return f"{mean_text} ± {sd:.{digits}f}" if np.isfinite(sd) else mean_text


def interval_text(estimate: float, low: float, high: float, digits: int = 3) -> str:
    """Return "estimate [low, high]", without bounds that are unknown."""
    numbers = (estimate, min(low, estimate), max(high, estimate))
    texts = [spread_text(number, digits=digits) for number in numbers]
    are_known = np.isfinite([estimate, low, high]).all()
    return "{} [{}, {}]".format(*texts) if are_known else texts[0]


def shorten_name(text: str, max_length: int) -> str:
    """Shorten a long name in its middle; names may differ at either end."""
    if len(text) <= max_length:
        return text
    half_length = (max_length - 5) // 2
    return f"{text[:half_length]} ... {text[-half_length:]}"


def number_texts(
    frame: pd.DataFrame, titles: Mapping[str, str], digits: int = 3
) -> pd.DataFrame:
    """Return columns as text for a paper, under these titles.

    Numbers with bounds, `<name>_low` or else `low`, are written with them.
    """
    table = frame[list(titles)].copy()
    for name in table.select_dtypes("float"):
        stem = name.removesuffix("_scale")
        bounds = [f"{stem}_low", f"{stem}_high"]
        bounds = bounds if bounds[0] in frame else ["low", "high"]
        if name in ("p", "p_holm"):
            table[name] = table[name].map(p_text)
        elif bounds[0] in frame:
            rows = frame[[name, *bounds]].to_numpy()
            table[name] = [interval_text(a, b, c, digits) for a, b, c in rows]
        else:
            table[name] = [spread_text(number, digits=digits) for number in table[name]]
    return table.rename(columns=titles)


def table_text(frame: pd.DataFrame, style: str = "markdown") -> str:
    r"""Return a table as text that goes into a file or a manuscript.

    Parameters
    ----------
    frame : DataFrame
        Its index is not printed.
    style : {"latex", "markdown"}
        LaTeX needs the package booktabs. Its special characters are escaped; letters of
        other alphabets need XeLaTeX or LuaLaTeX. Columns of long cells are 45 mm wide.

    Returns
    -------
    str
        Ends with a line break.

    Raises
    ------
    ParameterError
        Where `style` is unknown.

    Examples
    --------
    >>> frame = pd.DataFrame({"region": ["G&S_front"], "scale": [0.5]})
    >>> print(table_text(frame, "latex"), end="")
    \begin{tabular}{lr}
    \toprule
    region & scale \\
    \midrule
    G\&S\_front & 0.5 \\
    \bottomrule
    \end{tabular}
    """
    check_choice("style", style, ("latex", "markdown"))
    cells = frame.astype(object).where(frame.notna(), "")
    cells = cells.map(lambda cell: " ".join(str(cell).split()))
    is_numeric = [pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]
    if style == "latex":
        is_long = [cells[name].str.len().max() > 40 for name in cells]
        column_kinds = zip(is_numeric, is_long, strict=True)
        columns = "".join(
            "r" if n else "p{45mm}" if x else "l" for n, x in column_kinds
        )
        cells = cells.replace(_SIGN, "\N{MINUS SIGN}", regex=True)
        text = cells.to_latex(index=False, escape=True, column_format=columns)
        return text.translate(str.maketrans(_LATEX))
    alignments = ["---:" if is_number else "---" for is_number in is_numeric]
    rows = [
        [cell.replace("\\", r"\\").replace("|", r"\|") for cell in row]
        for row in [list(cells), *cells.to_numpy()]
    ]
    rows.insert(1, alignments)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def reported_values(fits: pd.DataFrame, key: str) -> list[Any]:
    """Return the values that models report of their fits under a key."""
    reports = [json.loads(report) or {} for report in fits["report"]]
    return [report[key] for report in reports if report.get(key)]


def summary_of(evaluation: Evaluation, score: str) -> pd.DataFrame:
    """Return the summary of one score, by model: role, mean, sd, n_folds, n_failed."""
    summary = evaluation.summary()
    return summary[summary["score"] == score].set_index("model")


def folds_lacking(evaluation: Evaluation) -> int:
    """Return the number of test folds without a scan of some class."""
    folds = evaluation.predictions.groupby(["repeat", "fold"])["truth"].nunique()
    return int((folds < len(evaluation.cohort.classes)).sum())


def shown_scores(evaluation: Evaluation) -> dict[str, str]:
    """Return the scores that are defined here, with their titles in tables."""
    check_evaluation_given(evaluation)
    cohort = evaluation.cohort
    return score_titles(len(cohort.classes), is_ordered=cohort.classes_ordered)


def score_table(
    evaluation: Evaluation, scores: str | Sequence[str] | None = None
) -> pd.DataFrame:
    """Return the scores of every model as "mean ± s.d." over folds.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    scores : str or sequence of str, optional
        Of :func:`brainlsap.evaluation.fold_scores`, which returns all; by default
        those of :func:`brainlsap.evaluation.main_scores`.

    Returns
    -------
    DataFrame
        One row per model, in order: model, then these scores under their written-out
        name; errors in stages only where the order of the classes is known. "n/a"
        where a score does not exist, "failed" where a fit did not train. A remark says
        so where a model predicted the same as another, as LSAP-R does where it chose
        one ridge in every fold, or one class for everybody.

    Raises
    ------
    ParameterError
        Where a score is unknown.
    """
    scores = main_scores() if scores is None else scores
    scores = [scores] if isinstance(scores, str) else [*scores]
    for score in scores:
        check_choice("scores", score, fold_scores())
    titles, summary = shown_scores(evaluation), evaluation.summary()
    texts = [spread_text(*row) for row in summary[["mean", "sd"]].to_numpy()]
    summary["text"] = np.where(summary["n_failed"] > 0, "failed", texts)
    table = summary.pivot(index="model", columns="score", values="text")
    order = [score for score in scores if score in titles]
    table = table.loc[list(evaluation.models), order].rename(columns=titles)
    return _mark_limits(table.reset_index(), evaluation)


def _mark_limits(frame: pd.DataFrame, evaluation: Evaluation) -> pd.DataFrame:
    """Add columns where folds share people, or a model predicts as another does."""
    if "model" in frame and (remarks := model_remarks(evaluation)):
        frame = frame.assign(remark=frame["model"].map(remarks).fillna(""))
    if evaluation.settings["people_shared"]:
        frame = frame.assign(folds="folds share people: not a score by person")
    return frame.rename_axis(columns=None)


@lru_cache(maxsize=32)  # the table and the headline of one study use it
def intervals(evaluation: Evaluation, model: str) -> pd.DataFrame:
    """Return scores of all test scans with their 95% intervals, a row a score."""
    return comparison.bootstrap_scores(evaluation, model, N_DRAWS).set_index("score")


def model_remarks(evaluation: Evaluation) -> dict[str, str]:
    """Return which models predict one class for everybody, or the same as another."""
    remarks = {}
    for name, labels in evaluation.predictions.groupby("model")["predicted"]:
        if labels.nunique() == 1 and name != "majority class":
            remarks[str(name)] = f"predicts {labels.min()} for everybody"
    for name, same_model in evaluation.same_as.items():
        remarks[name] = f"same predictions as {same_model}"
    return remarks


def interval_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return scores of all test scans with 95% bootstrap intervals over people.

    Returns
    -------
    DataFrame
        One row per model: model, then "estimate [low, high]" for the scores of
        all classes together, and the expected calibration error.
    """
    titles = {
        name: title
        for name, title in shown_scores(evaluation).items()
        if SCORES[name].is_shown_with_interval
    }
    intervals_of_models = {
        model: intervals(evaluation, model) for model in evaluation.models
    }
    columns = [
        number_texts(scores, {"estimate": model})
        for model, scores in intervals_of_models.items()
    ]
    table = pd.concat(columns, axis=1).T[list(titles)].rename(columns=titles)
    return _mark_limits(table.rename_axis("model").reset_index(), evaluation)


def comparison_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return how every other model compares with the first, in balanced accuracy.

    Returns
    -------
    DataFrame
        One row per other model: its name, its score minus that of the first with the
        95% interval, Holm p (of how many comparisons: models of the very same
        predictions are one), and whether it is better than the first ("unclear": p is
        0.05 or more, also where the interval, which is not corrected, leaves out 0);
        empty where there is one model. Tests are those of
        :func:`brainlsap.evaluation.compare_models`.
    """
    first, comparisons = evaluation.models[0], comparison.compare_models(evaluation)
    titles = {"model": "model", "difference": f"model minus {first} [95%]"}
    n_comparisons = comparisons["n_comparisons"].max()
    titles["p_holm"] = (
        f"Holm p ({n_comparisons} comparisons)" if n_comparisons > 1 else "p"
    )
    titles["better"] = f"better than {first}"
    return _mark_limits(number_texts(comparisons, titles), evaluation)


@lru_cache(maxsize=1)  # hashed by identity; headline and page use it
def nested_model_text(evaluation: Evaluation) -> pd.DataFrame:
    """Return what each step from no network to averaging by region gains."""
    titles = {"below": "from", "above": "to", "difference": "difference [95%]"}
    steps = comparison.nested_model_table(evaluation, N_SWAPS)
    titles |= {"p_holm": "Holm p" if len(steps) > 1 else "p", "adds": "gain"}
    return _mark_limits(number_texts(steps, titles), evaluation)


CONNECTOMES = {
    "original": "connectome of the study",
    "relabelled": "regions relabelled",
    "rewired": "rewired, same strengths",
    "exchanged": "exchanged between participants",
    "group mean": "group mean for everybody",
}
"""Titles of connectomes whose gains are compared."""


def connectome_gain_table(gain: ConnectomeGain) -> pd.DataFrame:
    """Return what each connectome adds to the regions' own values, as text.

    Parameters
    ----------
    gain : ConnectomeGain
        Of :func:`brainlsap.evaluation.connectome_gain`.

    Returns
    -------
    DataFrame
        connectome, draws, gain in log evidence (nats), gain of the study's connectome
        minus this gain, and the part of the left-out squared error that the connectome
        removes, in percent; each with its 90% interval.
    """
    table = gain.table.copy()
    error_columns = [name for name in table if name.startswith("error_")]
    table[error_columns] *= 100
    table["connectome"] = table["connectome"].map(CONNECTOMES)
    table = table.rename(columns={"n_draws": "draws"})
    texts = number_texts(
        table,
        {
            "connectome": "connectome",
            "draws": "draws",
            "evidence_gain": "gain in log evidence (nats) [90%]",
            "evidence_lead": "study minus this [90%]",
            "error_gain": "left-out squared error removed (%) [90%]",
        },
        digits=1,
    )
    return texts.replace("n/a", "")


def class_rate_table(evaluation: Evaluation, model: str | None = None) -> pd.DataFrame:
    """Return sensitivity, specificity and predictive value of every class.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    model : str, optional
        Name of the model; by default the first.

    Returns
    -------
    DataFrame
        One row per class: class, people, scans and the three rates as
        "estimate [low, high]", 95% intervals over people.
    """
    rates = comparison.class_table(evaluation, model or evaluation.models[0], N_DRAWS)
    rate_names = [name for name in rates if not name.endswith(("_low", "_high"))]
    titles = {
        k: k.replace("_", " ").replace("pred", "positive pred") for k in rate_names
    }
    return _mark_limits(number_texts(rates, titles, 2), evaluation)


def covariate(table: pd.DataFrame, name: str) -> pd.Series | None:
    """Return the column of age, sex or site, by any usual name of it, or None."""
    try:
        values = table[find_covariate_column(table, name)]
    except ParameterError:
        return None
    blank = values.astype(str).str.strip().str.lower().isin(["", "n/a", "nan"])
    values = values.mask(blank)
    return pd.to_numeric(values, errors="coerce") if name == "age" else values


def demographics_table(table: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """Return people, scans, age, sex and sites of every class.

    Parameters
    ----------
    table : DataFrame
        One row per scan: participant, label and, where known, age, sex and site,
        under any case (`AGE`, `SEX`, `SITE` as in ADNI's tables).
    classes : sequence of str
        Order of the rows.

    Returns
    -------
    DataFrame
        One row per class: class, people, scans, age, sex, sites. A person counts once
        in each class, with the first scan in it. Age is mean ± s.d. over people in
        years, not shown for fewer than three people; sexes are counts.

    Examples
    --------
    >>> table = pd.DataFrame({"participant": range(8), "label": ["CN", "AD"] * 4})
    >>> table["SEX"] = ["F", "M", "F", "F", "M", "M", "F", "F"]
    >>> demographics_table(table, ["CN", "AD"])
      class  people  scans       sex
    0    CN       4      4  F 3, M 1
    1    AD       4      4  F 2, M 2
    """
    table = sort_by_visit(table)
    label = table["label"].astype(str).rename("class")
    is_first_visit = ~table[["participant"]].assign(label=label).duplicated()
    demographics = pd.DataFrame({"people": label[is_first_visit].value_counts()})
    demographics["scans"] = label.value_counts()
    aggregations: Any = {"age": _age_text, "sex": _counts_text, "sites": "nunique"}
    for title, aggregate in aggregations.items():
        values = covariate(table, title.rstrip("s"))
        if values is not None:
            demographics[title] = (
                values[is_first_visit].groupby(label[is_first_visit]).agg(aggregate)
            )
    return demographics.loc[list(classes)].reset_index()


def sort_by_visit(table: pd.DataFrame) -> pd.DataFrame:
    """Return scans in the order of their visits, where these are known."""
    if "session" not in table:
        return table
    visits = [*table["session"].map(visit_order)]
    return table.iloc[sorted(range(len(table)), key=visits.__getitem__)]


def _age_text(ages: pd.Series) -> str:
    is_withheld, n_missing = ages.count() < MIN_PEOPLE, ages.isna().sum()
    age_text = "n/a" if is_withheld else spread_text(ages.mean(), ages.std(), 1)
    return (
        f"{age_text} ({n_missing} missing)"
        if n_missing and not is_withheld
        else age_text
    )


def _counts_text(values: pd.Series) -> str:
    counts = values.value_counts().sort_index().to_dict()
    counts["n/a"] = values.isna().sum()
    return ", ".join(f"{value} {n}" for value, n in counts.items() if n)


def region_labels(regions: Sequence[str], atlas: Any, kind: str = "brief") -> list[str]:
    """Return names of regions: "short", "full", or "brief", to the first comma.

    That is where it tells regions of the atlas apart. Names are as they are without an
    atlas, else of what load_atlas takes.
    """
    if atlas is None:
        return list(regions)
    atlas = load_atlas(atlas)
    names = atlas.short_names if kind == "short" else atlas.full_names
    labels = [names[position] for position in atlas.match(list(regions))]
    if kind != "brief":
        return labels
    brief = {name: name.partition(", ")[0] for name in names}
    n_uses = Counter(brief.values())
    return [brief[label] if n_uses[brief[label]] == 1 else label for label in labels]


def ranked_regions(ranking: pd.DataFrame, n_regions: int) -> pd.DataFrame:
    """Return measured regions, smallest scale first; few ties with the last stay."""
    check_at_least("n_regions", n_regions, 1)
    ranked_rows = ranking.dropna(subset="rank").sort_values("rank", kind="stable")
    if ranked_rows.empty:
        raise ParameterError("ranking has no measured region.")
    top_rows = ranked_rows[ranked_rows["rank"] <= n_regions]
    return top_rows if len(top_rows) <= 2 * n_regions else ranked_rows.head(n_regions)


def region_table(
    ranking: pd.DataFrame, atlas: Any = None, n_regions: int = 10
) -> pd.DataFrame:
    """Return the regions of smallest relative scale as a table for a paper.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    atlas : str, Path, Atlas or sequence of str, optional
        Holds names and coordinates of the regions.
    n_regions : int
        How many; regions tied with the last are shown too.

    Returns
    -------
    DataFrame
        rank, region, short name where it is another, coordinates (MNI152, mm); relative
        scale (to the median of the fold; mean over folds) and ranks with their range
        over all fits (of 20 or more the middle 95%); scale (median over folds); p where
        at least 99 permutations were made, which is no test of the rank; remark
        (planted, tied, not
        learned: a scale that kept within 5% of its start in most folds).

    Raises
    ------
    ParameterError
        Where `n_regions` is less than 1, or no region has a rank.
    """
    top_regions = ranked_regions(ranking, n_regions).reset_index(drop=True)
    regions = list(top_regions["region"])
    table = pd.DataFrame({"rank": top_regions["rank"].astype(int)})
    table["region"] = names = region_labels(regions, atlas, "full")
    if atlas is not None:
        atlas = load_atlas(atlas)
        short_names = region_labels(regions, atlas, "short")
        table = (
            table
            if short_names == names
            else table.assign(**{"short name": short_names})
        )
        coordinates = atlas.coordinates[atlas.match(regions)]
        centres = [
            ", ".join(f"{coordinate:z.0f}" for coordinate in point)
            for point in coordinates
        ]
        table["x, y, z"] = np.where(np.isfinite(coordinates).all(axis=1), centres, "")
    table = table.join(number_texts(top_regions, {"relative_scale": "relative scale"}))
    bounds = top_regions[["rank_low", "rank_high"]].astype(int).astype(str)
    remark_texts = bounds.agg("\N{EN DASH}".join, axis=1)
    table["ranks of fits"] = remark_texts.mask(
        bounds.nunique(axis=1) == 1, bounds["rank_low"]
    )
    table["scale"] = top_regions["scale"].map(spread_text)
    if "p" in top_regions:
        is_tested = top_regions["n_permutations"] >= ranks.FEWEST_PERMUTATIONS
        requirement = f"needs {ranks.FEWEST_PERMUTATIONS} permutations"
        p_title = f"p ({'labels permuted' if is_tested.all() else requirement})"
        table[p_title] = top_regions["p"].where(is_tested).map(p_text)
    remarks = pd.DataFrame(
        {"planted": top_regions.get("planted", False)}, top_regions.index
    )
    remarks["tied"] = top_regions["rank"].duplicated(keep=False)
    remarks["not learned"] = top_regions["moved"] < 0.5
    remark_texts = [", ".join(remarks.columns[row]) for row in remarks.to_numpy(bool)]
    return table.assign(remark=remark_texts) if any(remark_texts) else table


def class_differences(evaluation: Evaluation) -> pd.DataFrame:
    """Return features by class, and the difference of every class from the first.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds. Classes of fewer than three people are left out.

    Returns
    -------
    DataFrame
        feature, region, class, people; mean with its 95% t interval, low and high; and
        difference, from the first class in pooled standard deviations (Cohen's d),
        with its 95% interval, difference_low and difference_high (NaN for the first
        class). A person's value is the mean over their scans in the class. Features
        are as read, or, if covariates were regressed out, adjusted to their mean over
        scans by slopes within classes.
    """
    from scipy.stats import t as student

    columns = ["feature", "region", "class", "people", "mean", "sd"]
    table: Any = evaluation.cohort.class_features
    table = table[table["people"] >= MIN_PEOPLE]
    first = table.loc[table["class"] == evaluation.cohort.classes[0], columns]
    table = table.merge(first, "left", on=columns[:2], suffixes=("", "_first"))
    n_people, mean, sd = table["people"], table["mean"], table["sd"]
    n_first, mean_first, sd_first = (table[f"{name}_first"] for name in columns[3:])
    # Estimating the slopes of covariates widens the intervals.
    of_mean, of_difference = (
        table.get(f"{name}_factor", 1.0) for name in ("mean", "difference")
    )
    half_width = student.ppf(0.975, n_people - 1) * sd * np.sqrt(of_mean / n_people)
    squares = (n_people - 1) * sd**2 + (n_first - 1) * sd_first**2
    difference = (mean - mean_first) / np.sqrt(squares / (n_people + n_first - 2))
    difference[table["class"] == evaluation.cohort.classes[0]] = np.nan
    variance = of_difference * (n_people + n_first) / (
        n_people * n_first
    ) + difference**2 / (2 * (n_people + n_first))
    bound = 1.96 * np.sqrt(variance)
    return table[columns[:5]].assign(
        low=mean - half_width,
        high=mean + half_width,
        difference=difference,
        difference_low=difference - bound,
        difference_high=difference + bound,
    )


def regressed_text(evaluation: Evaluation) -> str:
    """Return the covariates that were removed from the features inside the folds."""
    steps = evaluation.settings["steps"]
    names = dict.fromkeys([steps["harmonize"], *steps["regress_out"]])
    return with_and(filter(None, names)) if any(names) else ""


def basis_text(evaluation: Evaluation) -> str:
    """Return which values the means and differences of classes are computed from."""
    table: Any = evaluation.cohort.class_features
    if "mean_factor" in table:
        adjustment = regressed_text(evaluation)
        return f"adjusted for {adjustment} by slopes within classes"
    return "as read, before any step of the folds"


def direction_table(
    evaluation: Evaluation,
    ranking: pd.DataFrame,
    atlas: Any = None,
    n_regions: int = 10,
) -> pd.DataFrame:
    """Return how the features of the first regions differ between classes.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    ranking, atlas, n_regions
        As for :func:`region_table`.

    Returns
    -------
    DataFrame
        Region, feature, "mean [95%]" of every class, and for every class but the first
        its difference from the first in pooled standard deviations [95%], computed by
        :func:`class_differences`.
    """
    regions = list(ranked_regions(ranking, n_regions)["region"])
    features, classes = evaluation.cohort.feature_names, evaluation.cohort.classes
    row_keys = pd.MultiIndex.from_product([regions, features])
    differences = class_differences(evaluation).set_index(["region", "feature"])
    names = region_labels(regions, atlas, "full")
    feature_titles = [
        feature_title(evaluation.cohort, f, region) for region, f in row_keys
    ]
    names = np.repeat(names, len(features)).tolist()
    table = pd.DataFrame({"region": names, "feature": feature_titles})
    for name in classes:
        class_rows = (
            differences[differences["class"] == name]
            .reindex(row_keys)
            .reset_index(drop=True)
        )
        table = table.join(number_texts(class_rows, {"mean": name}))
        if name != classes[0]:
            title = f"{name} \N{MINUS SIGN} {classes[0]} (s.d.)"
            table = table.join(number_texts(class_rows, {"difference": title}, 2))
    # A measure may be missing in a region, for example thickness in the subcortex.
    is_known = (table[list(classes)] != "n/a").any(axis=1)
    return table[is_known | (not is_known.any())].reset_index(drop=True)


def common_region_table(
    evaluation: Evaluation, atlas: Any = None, n_smallest: int = 20
) -> pd.DataFrame:
    """Return the regions of smallest scale that several models share.

    This is the table in the supplement of Sim et al. 2024, with the numbers of
    :func:`brainlsap.evaluation.common_regions`.

    Parameters
    ----------
    evaluation : Evaluation
        At least two models with scales.
    atlas : str, Path, Atlas or sequence of str, optional
        Source of the region names.
    n_smallest : int
        Number of smallest scales per model.

    Returns
    -------
    DataFrame
        Number of models, region, and one column for each model with its scale, or "-"
        if the region is not among its smallest. The first column is the reference:
        "Exact", or the first model if "Exact" was not run. The last row is the RMSE of
        every model to the reference over all measured regions.

    Raises
    ------
    ParameterError
        If fewer than two models have scales.
    """
    common, rmse = ranks.common_regions(evaluation, n_smallest)
    models = sorted(rmse.index, key=lambda name: name != "Exact")
    table = common[models].map(spread_text).replace("n/a", "-")
    table.insert(0, "models", common["n_models"].astype(str))
    table.insert(1, "region", region_labels(list(common["region"]), atlas, "short"))
    distances = ["-", *rmse[models[1:]].map(spread_text)]
    table.loc[len(table)] = ["", "RMSE", *distances]
    return table


def agreement_text(evaluation: Evaluation) -> pd.DataFrame:
    """Return how far folds of each model, and models, agree on the order of regions."""
    agreement = ranks.agreement_table(evaluation)
    pairs = zip(agreement["first"], agreement["second"], strict=True)
    comparisons = [f"folds of {a}" if a == b else f"{a} and {b}" for a, b in pairs]
    titles = {"what": "what", "kendall_w": "Kendall's W", "chance_w": "W by chance"}
    titles |= {"spearman": "Spearman", "jaccard": "overlap of ten smallest (Jaccard)"}
    return number_texts(agreement.assign(what=comparisons), titles, 2)


def confound_text(ranking: pd.DataFrame) -> pd.DataFrame:
    """Return how scales correlate with properties of regions, which a ranking holds.

    The columns degree, strength and variance_<feature>, as of
    :func:`brainlsap.evaluation.region_properties`; empty where there are none.
    """
    properties = ranking.filter(regex="^(region|degree|strength|variance_.*)$")
    correlations = ranks.confound_table(ranking, properties)
    property_titles = {
        f"variance_{k}": f"variance of {title}" for k, title in FEATURES.items()
    }
    correlations["property"] = (
        correlations["property"].replace(property_titles).str.replace("_", " of ")
    )
    correlations["remark"] = np.where(correlations["flagged"], "scale follows it", "")
    titles = {"property": "property", "n_regions": "regions"}
    titles |= {"spearman": "Spearman with relative scale", "p_holm": "Holm p"}
    titles |= {"remark": "remark"} if correlations["flagged"].any() else {}
    return number_texts(correlations, titles, 2)


def fit_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return fits, failures, epochs, kernel's error and range of scales by model."""
    final_scales = evaluation.scales.query("start == 'mean' and share == 1")
    rows = []
    for name, fits in evaluation.fits.groupby("model", sort=False):
        scales = final_scales.query("model == @name")["scale"]
        epochs = fits["epochs"].mean() + 1  # counted from 0
        error = max(reported_values(fits, "error_bound"), default=0.0)
        row = {"model": name, "role": fits["role"].iloc[0], "fits": len(fits)}
        row["failed"] = int((fits["failed"] != "").sum())
        row["epoch kept"] = f"{epochs:.0f}" if np.isfinite(epochs) else ""
        row["error of the kernel"] = f"{error:.1e}" if error else ""
        bounds = f"{scales.min():.2f} to {scales.max():.2f}"
        rows.append(row | {"scales": bounds if len(scales) else ""})
    return pd.DataFrame(rows)


def audit_table(
    evaluation: Evaluation, codes: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return the findings of the leakage audit, gravest first.

    Parameters
    ----------
    evaluation : Evaluation
        With or without an audit.
    codes : mapping of str to str, optional
        Maps scans to the codes that replace them in a table that may be shared.

    Returns
    -------
    DataFrame
        The columns severity, check, finding, what to do and scans.
    """
    columns = ["severity", "check", "finding", "what_to_do", "scans"]
    audit = pd.DataFrame() if evaluation.audit is None else evaluation.audit
    table = audit.reindex(columns=columns, fill_value="")
    table["check"] = table["check"].map(check_title)
    table["scans"] = _encode_scans(table["scans"], codes, "[name withheld]")
    empty_columns = ["scans"] if (table["scans"] == "").all() else []
    return table.drop(columns=empty_columns).rename(
        columns={"what_to_do": "what to do"}
    )


def unusual_scans_table(
    evaluation: Evaluation, codes: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return the scans that quality control flagged, under their codes and sorted so.

    Parameters
    ----------
    evaluation : Evaluation
        Its cohort's table has the column quality, as in results of `run_study`.
    codes : mapping of str to str, optional
        Maps scans to their codes; by default the table has names.

    Returns
    -------
    DataFrame
        The columns scan and what is unusual; codes also replace scans in the latter.
    """
    unusual_scans = evaluation.cohort.table.query("quality != ''")[["scan", "quality"]]
    table = unusual_scans.apply(_encode_scans, codes=codes).sort_values(
        "scan", ignore_index=True
    )
    return table.rename(columns={"quality": "what is unusual"})


def _encode_scans(
    texts: pd.Series, codes: Any, replacement: str | None = None
) -> pd.Series:
    """Replace scans by their codes, and any other word by `replacement`."""
    if codes is None or texts.empty:
        return texts
    return texts.str.replace(
        r"[^\s,;()]+",
        lambda word: codes.get(word[0], replacement or word[0]),
        regex=True,
    )
