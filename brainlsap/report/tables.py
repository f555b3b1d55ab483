"""Every table of a report: a data frame of text, ready for a paper."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.atlas import load_atlas
from brainlsap.data.find_files import visit_order
from brainlsap.evaluation import MAIN_SCORES, Evaluation, comparison, metrics
from brainlsap.evaluation import ranking as ranks
from brainlsap.evaluation.confounds import find_column
from brainlsap.evaluation.leakage import count
from brainlsap.evaluation.ranking import stands_below
from brainlsap.evaluation.results import check_evaluation_given
from brainlsap.exceptions import ParameterError, check_at_least, check_choice

FEATURES = {
    "thickness": "cortical thickness",
    "volume": "regional volume",
    "area": "cortical surface area",
    "strength": "strength of the connectome (sum of a region's weights)",
    "fdg": "FDG-PET SUVR",
    "amyloid": "amyloid-PET SUVR",
    "tau": "tau-PET SUVR",
}
"""What text calls features; others go by their names."""

N_DRAWS, N_SWAPS = 1000, 5000
"""Bootstrap draws of the intervals in tables; exchanges in tests of the ladder."""

FEWEST_PEOPLE = 3
"""Mean ages of fewer people are not shown: they would give away a person's age."""

_LATEX = {"<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$"}
_LATEX |= {"\N{EN DASH}": "--", "\N{MINUS SIGN}": "$-$"}
"""What pandas leaves as it is."""

_SIGN = r"(?<![\w.)\]-])-(?=\.?\d)"
"""A hyphen that is the sign of a number, unlike those of 1-2 and HRF-2."""


def with_and(names: Iterable[Any]) -> str:
    """Return "a, b and c"."""
    *first, last = [str(one) for one in names] or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def feature_title(cohort: Any, name: str, region: str | None = None) -> str:
    """Return what text calls a feature, of a region or of all.

    Below the cortex something else may stand for what is measured on its surface.
    """
    title, policy = FEATURES.get(name, name), stands_below(cohort, name)
    if region is None:
        below = f" (subcortex: {policy.partition(' in ')[0]})" if policy else ""
        return f"{title}{below}"
    structure = cohort.regions.set_index("name")["structure"]
    return policy if policy and structure[region] != "cortex" else title


def feature_text(cohort: Any) -> str:
    """Return what text calls the features of a cohort."""
    return with_and(feature_title(cohort, name) for name in cohort.feature_names)


def measured_text(cohort: Any) -> str:
    """Say in how many regions each feature was measured, and how much is missing."""
    known, told = cohort.class_features.dropna(subset="mean"), list[str]()
    people = cohort.class_counts()["participants"].sum()
    all_regions = count(len(cohort.region_names), "region")
    for name in cohort.feature_names:
        own = known[known["feature"] == name]
        n_regions = own["region"].nunique()
        missing = 1 - own["people"].sum() / (n_regions * people)
        told.append(f"{feature_title(cohort, name)} in {n_regions} of {all_regions}")
        if missing > 0:
            told[-1] += f" ({max(missing, 0.001):.1%} of values missing)"
    return with_and(told)


def p_text(p: float) -> str:
    """Return a p-value for a table: three decimals, "< 0.001", or "n/a"."""
    if not np.isfinite(p):
        return "n/a"
    if p < 0.001:
        return "< 0.001"
    return f"{p:.4f}" if 0.0495 <= p < 0.05 else f"{p:.3f}"  # no 0.050 below 0.05


def spread_text(mean: float, sd: float = np.nan, digits: int = 3) -> str:
    """Return "mean ± s.d.", without the s.d. where it is unknown."""
    mean += np.copysign(1e-12, mean)  # 0.125 is 0.13, as in figures; z: no -0.000
    told = f"{mean:z.{digits}f}" if np.isfinite(mean) else "n/a"
    return f"{told} ± {sd:.{digits}f}" if np.isfinite(sd) else told


def interval_text(estimate: float, low: float, high: float, digits: int = 3) -> str:
    """Return "estimate [low, high]", without bounds that are unknown."""
    numbers = (estimate, min(low, estimate), max(high, estimate))
    texts = [spread_text(one, digits=digits) for one in numbers]
    known = np.isfinite([estimate, low, high]).all()
    return "{} [{}, {}]".format(*texts) if known else texts[0]


def shortened(text: str, most: int) -> str:
    """Take the middle out of a long name; names may differ at either end."""
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def number_texts(
    frame: pd.DataFrame, titles: Mapping[str, str], digits: int = 3
) -> pd.DataFrame:
    """Return columns as text for a paper, under these titles.

    Numbers with bounds, `<name>_low` or else `low`, are told with them.
    """
    table = frame[list(titles)].copy()
    for name in table.select_dtypes("float"):
        own = name.removesuffix("_scale")
        bounds = [f"{own}_low", f"{own}_high"]
        bounds = bounds if bounds[0] in frame else ["low", "high"]
        if name in ("p", "p_holm"):
            table[name] = table[name].map(p_text)
        elif bounds[0] in frame:
            rows = frame[[name, *bounds]].to_numpy()
            table[name] = [interval_text(a, b, c, digits) for a, b, c in rows]
        else:
            table[name] = [spread_text(one, digits=digits) for one in table[name]]
    return table.rename(columns=titles)


def table_text(frame: pd.DataFrame, style: str = "markdown") -> str:
    r"""Return a table as text that goes into a file or a manuscript.

    Parameters
    ----------
    frame : DataFrame
        Its index is not printed.
    style : {"latex", "markdown"}
        LaTeX needs the package booktabs. What is special to it is escaped; letters of
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
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]
    if style == "latex":
        long = [cells[name].str.len().max() > 40 for name in cells]
        kinds = zip(numeric, long, strict=True)
        columns = "".join("r" if n else "p{45mm}" if x else "l" for n, x in kinds)
        cells = cells.replace(_SIGN, "\N{MINUS SIGN}", regex=True)
        text = cells.to_latex(index=False, escape=True, column_format=columns)
        return text.translate(str.maketrans(_LATEX))
    line = ["---:" if one else "---" for one in numeric]
    rows = [
        [one.replace("\\", r"\\").replace("|", r"\|") for one in row]
        for row in [list(cells), *cells.to_numpy()]
    ]
    rows.insert(1, line)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def reported(fits: pd.DataFrame, key: str) -> list[Any]:
    """Return what models reported of their fits under a key, where they did."""
    reports = [json.loads(one) or {} for one in fits["report"]]
    return [one[key] for one in reports if one.get(key)]


def summary_of(evaluation: Evaluation, score: str) -> pd.DataFrame:
    """Return the summary of one score, by model: role, mean, sd, n_folds, n_failed."""
    summary = evaluation.summary()
    return summary[summary["score"] == score].set_index("model")


def folds_lacking(evaluation: Evaluation) -> int:
    """Return how many test folds hold no scan of some class."""
    folds = evaluation.predictions.groupby(["repeat", "fold"])["truth"].nunique()
    return int((folds < len(evaluation.cohort.classes)).sum())


def shown_scores(evaluation: Evaluation) -> dict[str, str]:
    """Return the scores that mean something here, and what tables call them."""
    check_evaluation_given(evaluation)
    two = len(evaluation.cohort.classes) == 2
    hidden = set() if evaluation.cohort.classes_ordered else set(metrics.ORDINAL_SCORES)
    hidden |= {"stage_error", "adjacent_accuracy"} if two else set()
    # no weights between two classes
    names = metrics.INTERVAL_SCORES | ({"kappa": "Cohen's kappa"} if two else {})
    return {
        name: f"{title} (less is better)" if name in metrics.LOWER_IS_BETTER else title
        for name, title in names.items()
        if name not in hidden
    }


def score_table(
    evaluation: Evaluation, scores: str | Sequence[str] = MAIN_SCORES
) -> pd.DataFrame:
    """Return the scores of every model as "mean ± s.d." over folds.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    scores : str or sequence of str, optional
        Of :data:`brainlsap.evaluation.SCORES`, which as ``list(SCORES)`` is all; by
        default four.

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
    scores = [scores] if isinstance(scores, str) else [*scores]
    for one in scores:
        check_choice("scores", one, metrics.SCORES)
    titles, found = shown_scores(evaluation), evaluation.summary()
    texts = [spread_text(*row) for row in found[["mean", "sd"]].to_numpy()]
    found["text"] = np.where(found["n_failed"] > 0, "failed", texts)
    table = found.pivot(index="model", columns="score", values="text")
    order = [one for one in scores if one in titles]
    table = table.loc[list(evaluation.models), order].rename(columns=titles)
    return _marked(table.reset_index(), evaluation)


def _marked(frame: pd.DataFrame, evaluation: Evaluation) -> pd.DataFrame:
    """Say so in the table where its folds share people, or a model is another one."""
    if "model" in frame and (remarks := model_remarks(evaluation)):
        frame = frame.assign(remark=frame["model"].map(remarks).fillna(""))
    if evaluation.settings["people_shared"]:
        frame = frame.assign(folds="folds share people: not a score by person")
    return frame.rename_axis(columns=None)


@lru_cache(maxsize=32)  # of one study: the table and the headline ask
def intervals(evaluation: Evaluation, model: str) -> pd.DataFrame:
    """Return scores of all test scans with their 95% intervals, a row a score."""
    return comparison.bootstrap_scores(evaluation, model, N_DRAWS).set_index("score")


def model_remarks(evaluation: Evaluation) -> dict[str, str]:
    """Say which models predict one class for everybody, or the same as another."""
    told = evaluation.predictions.groupby("model")["predicted"].agg(["nunique", "min"])
    one = told["min"][(told["nunique"] == 1) & (told.index != "majority class")]
    same = evaluation.same_as.items()
    found = {name: f"predicts {label} for everybody" for name, label in one.items()}
    return found | {name: f"same predictions as {other}" for name, other in same}


def interval_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return scores of all test scans with 95% bootstrap intervals over people.

    Returns
    -------
    DataFrame
        One row per model: model, then "estimate [low, high]" for the scores of
        all classes together, and the expected calibration error.
    """
    hidden = ("accuracy", "precision", "f1", "stage_error")
    titles = {k: v for k, v in shown_scores(evaluation).items() if k not in hidden}
    each = {model: intervals(evaluation, model) for model in evaluation.models}
    told = [number_texts(found, {"estimate": model}) for model, found in each.items()]
    table = pd.concat(told, axis=1).T[list(titles)].rename(columns=titles)
    return _marked(table.rename_axis("model").reset_index(), evaluation)


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
    first, found = evaluation.models[0], comparison.compare_models(evaluation)
    titles = {"model": "model", "difference": f"model minus {first} [95%]"}
    n = found["n_comparisons"].max()
    titles["p_holm"] = f"Holm p ({n} comparisons)" if n > 1 else "p"
    titles["better"] = f"better than {first}"
    return _marked(number_texts(found, titles), evaluation)


@lru_cache(maxsize=1)  # an evaluation is hashed by identity; headline and page ask
def ladder_text(evaluation: Evaluation) -> pd.DataFrame:
    """Return what each step from no network to averaging by region gains."""
    titles = {"below": "from", "above": "to", "difference": "difference [95%]"}
    found = comparison.ladder_table(evaluation, N_SWAPS)
    titles |= {"p_holm": "Holm p" if len(found) > 1 else "p", "adds": "gain"}
    return _marked(number_texts(found, titles), evaluation)


def class_rate_table(evaluation: Evaluation, model: str | None = None) -> pd.DataFrame:
    """Return sensitivity, specificity and predictive value of every class.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    model : str, optional
        Which; by default the first.

    Returns
    -------
    DataFrame
        One row per class: class, people, scans and the three rates as
        "estimate [low, high]", 95% intervals over people.
    """
    found = comparison.class_table(evaluation, model or evaluation.models[0], N_DRAWS)
    kept = [one for one in found if not one.endswith(("_low", "_high"))]
    titles = {k: k.replace("_", " ").replace("pred", "positive pred") for k in kept}
    return _marked(number_texts(found, titles, 2), evaluation)


def covariate(table: pd.DataFrame, name: str) -> pd.Series | None:
    """Return the column of age, sex or site, by any usual name of it, or None."""
    try:
        values = table[find_column(table, name)]
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
    table = in_time(table)
    label = table["label"].astype(str).rename("class")
    first = ~table[["participant"]].assign(label=label).duplicated()
    found = pd.DataFrame({"people": label[first].value_counts()})
    found["scans"] = label.value_counts()
    told: Any = {"age": _age_text, "sex": _counts_text, "sites": "nunique"}
    for title, tell in told.items():
        values = covariate(table, title.rstrip("s"))
        if values is not None:
            found[title] = values[first].groupby(label[first]).agg(tell)
    return found.loc[list(classes)].reset_index()


def in_time(table: pd.DataFrame) -> pd.DataFrame:
    """Return scans in the order of their visits, where these are known."""
    if "session" not in table:
        return table
    visits = [*table["session"].map(visit_order)]
    return table.iloc[sorted(range(len(table)), key=visits.__getitem__)]


def _age_text(ages: pd.Series) -> str:
    few, n = ages.count() < FEWEST_PEOPLE, ages.isna().sum()
    known = "n/a" if few else spread_text(ages.mean(), ages.std(), 1)
    return f"{known} ({n} missing)" if n and not few else known


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
    found = [names[place] for place in atlas.match(list(regions))]
    if kind != "brief":
        return found
    brief = {name: name.partition(", ")[0] for name in names}
    alike = Counter(brief.values())
    return [brief[one] if alike[brief[one]] == 1 else one for one in found]


def ranked_regions(ranking: pd.DataFrame, n_regions: int) -> pd.DataFrame:
    """Return measured regions, smallest scale first; few ties with the last stay."""
    check_at_least("n_regions", n_regions, 1)
    ranked = ranking.dropna(subset="rank").sort_values("rank", kind="stable")
    if ranked.empty:
        raise ParameterError("ranking has no measured region.")
    first = ranked[ranked["rank"] <= n_regions]
    return first if len(first) <= 2 * n_regions else ranked.head(n_regions)


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
    ranked = ranked_regions(ranking, n_regions).reset_index(drop=True)
    regions = list(ranked["region"])
    table = pd.DataFrame({"rank": ranked["rank"].astype(int)})
    table["region"] = names = region_labels(regions, atlas, "full")
    if atlas is not None:
        atlas = load_atlas(atlas)
        short = region_labels(regions, atlas, "short")
        table = table if short == names else table.assign(**{"short name": short})
        places = atlas.coordinates[atlas.match(regions)]
        centres = [", ".join(f"{one:z.0f}" for one in place) for place in places]
        table["x, y, z"] = np.where(np.isfinite(places).all(axis=1), centres, "")
    table = table.join(number_texts(ranked, {"relative_scale": "relative scale"}))
    bounds = ranked[["rank_low", "rank_high"]].astype(int).astype(str)
    told = bounds.agg("\N{EN DASH}".join, axis=1)
    table["ranks of fits"] = told.mask(bounds.nunique(axis=1) == 1, bounds["rank_low"])
    table["scale"] = ranked["scale"].map(spread_text)
    if "p" in ranked:
        enough = ranked["n_permutations"] >= ranks.FEWEST_PERMUTATIONS
        few = f"needs {ranks.FEWEST_PERMUTATIONS} permutations"
        head = f"p ({'labels permuted' if enough.all() else few})"
        table[head] = ranked["p"].where(enough).map(p_text)
    remarks = pd.DataFrame({"planted": ranked.get("planted", False)}, ranked.index)
    remarks["tied"] = ranked["rank"].duplicated(keep=False)
    remarks["not learned"] = ranked["moved"] < 0.5
    told = [", ".join(remarks.columns[row]) for row in remarks.to_numpy(bool)]
    return table.assign(remark=told) if any(told) else table


def class_differences(evaluation: Evaluation) -> pd.DataFrame:
    r"""Return features by class, and how far every class is from the first.

    Parameters
    ----------
    evaluation : Evaluation
        Of a cohort; classes of fewer than three people are left out.

    Returns
    -------
    DataFrame
        feature, region, class, people, mean, low and high (95%, Student's t);
        difference from the first class in pooled standard deviations (Cohen's d) with
        its 95% interval, difference_low and difference_high; NaN for the first.
        Features are those of the scans as read, or adjusted for what was regressed
        out, at its mean over scans, by slopes within classes; means over a person's
        scans of the class.
    """
    from scipy.stats import t as student

    columns = ["feature", "region", "class", "people", "mean", "sd"]
    table: Any = evaluation.cohort.class_features
    table = table[table["people"] >= FEWEST_PEOPLE]
    first = table.loc[table["class"] == evaluation.cohort.classes[0], columns]
    table = table.merge(first, "left", on=columns[:2], suffixes=("", "_first"))
    n, mean, sd = table["people"], table["mean"], table["sd"]
    m, mean_first, sd_first = (table[f"{one}_first"] for one in columns[3:])
    # slopes of what was adjusted for are not known for sure
    of_mean, of_difference = (
        table.get(f"{one}_factor", 1.0) for one in ("mean", "difference")
    )
    half = student.ppf(0.975, n - 1) * sd * np.sqrt(of_mean / n)
    squares = (n - 1) * sd**2 + (m - 1) * sd_first**2
    difference = (mean - mean_first) / np.sqrt(squares / (n + m - 2))
    difference[table["class"] == evaluation.cohort.classes[0]] = np.nan
    variance = of_difference * (n + m) / (n * m) + difference**2 / (2 * (n + m))
    bound = 1.96 * np.sqrt(variance)
    return table[columns[:5]].assign(
        low=mean - half,
        high=mean + half,
        difference=difference,
        difference_low=difference - bound,
        difference_high=difference + bound,
    )


def taken_out(evaluation: Evaluation) -> str:
    """Name the covariates that were taken out of the features inside the folds."""
    steps = evaluation.settings["steps"]
    names = dict.fromkeys([steps["harmonize"], *steps["regress_out"]])
    return with_and(filter(None, names)) if any(names) else ""


def basis_text(evaluation: Evaluation) -> str:
    """Say of which values means and differences of classes are."""
    table: Any = evaluation.cohort.class_features
    if "mean_factor" in table:
        return f"adjusted for {taken_out(evaluation)} by slopes within classes"
    return "as read, before any step of the folds"


def direction_table(
    evaluation: Evaluation,
    ranking: pd.DataFrame,
    atlas: Any = None,
    n_regions: int = 10,
) -> pd.DataFrame:
    """Return whether features of the first regions rise or fall from class to class.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    ranking, atlas, n_regions
        As of :func:`region_table`.

    Returns
    -------
    DataFrame
        region, feature, "mean [95%]" of every class; and of every class but the first
        the difference from the first in pooled standard deviations [95%], as of
        :func:`class_differences`.
    """
    regions = list(ranked_regions(ranking, n_regions)["region"])
    features, classes = evaluation.cohort.feature_names, evaluation.cohort.classes
    rows = pd.MultiIndex.from_product([regions, features])
    found = class_differences(evaluation).set_index(["region", "feature"])
    names = region_labels(regions, atlas, "full")
    told = [feature_title(evaluation.cohort, f, region) for region, f in rows]
    names = np.repeat(names, len(features)).tolist()
    table = pd.DataFrame({"region": names, "feature": told})
    for name in classes:
        some = found[found["class"] == name].reindex(rows).reset_index(drop=True)
        table = table.join(number_texts(some, {"mean": name}))
        if name != classes[0]:
            title = f"{name} \N{MINUS SIGN} {classes[0]} (s.d.)"
            table = table.join(number_texts(some, {"difference": title}, 2))
    known = (table[list(classes)] != "n/a").any(axis=1)  # volume has no cortex ...
    return table[known | (not known.any())].reset_index(drop=True)


def common_region_table(
    evaluation: Evaluation, atlas: Any = None, n_smallest: int = 20
) -> pd.DataFrame:
    """Return the regions whose scale is among the smallest in several models.

    The table of the supplement of Sim et al. 2024, with the numbers of
    :func:`brainlsap.evaluation.common_regions`.

    Parameters
    ----------
    evaluation : Evaluation
        With two or more models that have scales.
    atlas : str, Path, Atlas or sequence of str, optional
        Holds the names of the regions.
    n_smallest : int
        How many of each model count as smallest.

    Returns
    -------
    DataFrame
        Number of models, region, and one column for each model, first "Exact" (or the
        first model, where there is none), the reference:
        its scale, "-" where the region is not among its smallest; the last row is the
        RMSE of every model to the reference over all measured regions.

    Raises
    ------
    ParameterError
        Where fewer than two models have scales.
    """
    found, rmse = ranks.common_regions(evaluation, n_smallest)
    models = sorted(rmse.index, key=lambda name: name != "Exact")
    table = found[models].map(spread_text).replace("n/a", "-")
    table.insert(0, "models", found["n_models"].astype(str))
    table.insert(1, "region", region_labels(list(found["region"]), atlas, "short"))
    distances = ["-", *rmse[models[1:]].map(spread_text)]
    table.loc[len(table)] = ["", "RMSE", *distances]
    return table


def agreement_text(evaluation: Evaluation) -> pd.DataFrame:
    """Return how far folds of each model, and models, agree on the order of regions."""
    found = ranks.agreement_table(evaluation)
    pairs = zip(found["first"], found["second"], strict=True)
    what = [f"folds of {a}" if a == b else f"{a} and {b}" for a, b in pairs]
    titles = {"what": "what", "kendall_w": "Kendall's W", "chance_w": "W by chance"}
    titles |= {"spearman": "Spearman", "jaccard": "overlap of ten smallest (Jaccard)"}
    return number_texts(found.assign(what=what), titles, 2)


def confound_text(ranking: pd.DataFrame) -> pd.DataFrame:
    """Return how scale goes with the properties of regions that a ranking carries.

    The columns degree, strength and variance_<feature>, as of
    :func:`brainlsap.evaluation.region_properties`; empty where there are none.
    """
    carried = ranking.filter(regex="^(region|degree|strength|variance_.*)$")
    found = ranks.confound_table(ranking, carried)
    named = {f"variance_{k}": f"variance of {one}" for k, one in FEATURES.items()}
    found["property"] = found["property"].replace(named).str.replace("_", " of ")
    found["remark"] = np.where(found["flagged"], "scale follows it", "")
    titles = {"property": "property", "n_regions": "regions"}
    titles |= {"spearman": "Spearman with relative scale", "p_holm": "Holm p"}
    titles |= {"remark": "remark"} if found["flagged"].any() else {}
    return number_texts(found, titles, 2)


def fit_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return fits, failures, epochs, kernel's error and range of scales by model."""
    final = evaluation.scales.query("start == 'mean' and share == 1")
    rows = []
    for name, fits in evaluation.fits.groupby("model", sort=False):
        scales = final.query("model == @name")["scale"]
        epochs = fits["epochs"].mean() + 1  # which are kept from 0
        error = max(reported(fits, "error_bound"), default=0.0)
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
        With an audit, or none.
    codes : mapping of str to str, optional
        From scan to code: what the column of scans says in their place, for a table
        that may be shared.

    Returns
    -------
    DataFrame
        severity, check, finding, what to do, scans.
    """
    columns = ["severity", "check", "finding", "what_to_do", "scans"]
    audit = pd.DataFrame() if evaluation.audit is None else evaluation.audit
    table = audit.reindex(columns=columns, fill_value="")
    table["scans"] = _coded(table["scans"], codes, "[name withheld]")
    unnamed = ["scans"] if (table["scans"] == "").all() else []
    return table.drop(columns=unnamed).rename(columns={"what_to_do": "what to do"})


def unusual_scans_table(
    evaluation: Evaluation, codes: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return the scans that quality control flagged, under their codes and sorted so.

    Parameters
    ----------
    evaluation : Evaluation
        Whose cohort's table has the column quality, as results of run_study have.
    codes : mapping of str to str, optional
        From scan to code; by default names.

    Returns
    -------
    DataFrame
        scan, what is unusual; other scans that a flag names go by code as well.
    """
    flagged = evaluation.cohort.table.query("quality != ''")[["scan", "quality"]]
    table = flagged.apply(_coded, codes=codes).sort_values("scan", ignore_index=True)
    return table.rename(columns={"quality": "what is unusual"})


def _coded(texts: pd.Series, codes: Any, other: str | None = None) -> pd.Series:
    """Put codes in the place of scans; `other` in that of any other word."""
    if codes is None or texts.empty:
        return texts
    return texts.str.replace(
        r"[^\s,;()]+", lambda word: codes.get(word[0], other or word[0]), regex=True
    )
