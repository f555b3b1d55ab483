"""Every table of a report: a data frame of text, ready for a paper."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.evaluation import (
    SCORES,
    Evaluation,
    agreement_table,
    bootstrap_scores,
    class_table,
    common_regions,
    compare_models,
    confound_table,
    ladder_table,
)
from brainlsap.evaluation.confounds import find_column
from brainlsap.evaluation.metrics import (
    INTERVAL_SCORES,
    LOWER_IS_BETTER,
    ORDINAL_SCORES,
)
from brainlsap.exceptions import ParameterError, check_at_least, check_choice

FEATURES = {
    "thickness": "cortical thickness",
    "volume": "grey-matter volume",
    "area": "cortical surface area",
    "strength": "strength of the connectome (sum of a region's weights)",
    "fdg": "FDG-PET SUVR",
    "amyloid": "amyloid-PET SUVR",
    "tau": "tau-PET SUVR",
}
"""What text calls features; others go by their names."""

Codes = Mapping[str, str] | None
"""From scan to code."""

N_DRAWS = 1000
"""Bootstrap draws of the intervals in tables."""

FEWEST_PEOPLE = 3
"""Mean ages of fewer people are not shown: they would give away a person's age."""

_LATEX = {
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "\N{EN DASH}": "--",
    "\N{MINUS SIGN}": "$-$",
}
"""What pandas leaves as it is."""


def listed(names: Iterable[Any]) -> str:
    """Return "a, b and c"."""
    *first, last = [str(one) for one in names] or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def feature_text(names: Iterable[str]) -> str:
    """Return what text calls the features of a cohort."""
    return listed(FEATURES.get(name, name) for name in names)


def p_text(p: float) -> str:
    """Return a p-value for a table: three decimals, "< 0.001", or "n/a"."""
    if not np.isfinite(p):
        return "n/a"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def spread_text(mean: float, sd: float = np.nan, digits: int = 3) -> str:
    """Return "mean ± s.d.", without the s.d. where it is unknown."""
    if not np.isfinite(mean):
        return "n/a"
    told = f" ± {sd:.{digits}f}" if np.isfinite(sd) else ""
    return f"{mean:.{digits}f}{told}"


def interval_text(estimate: float, low: float, high: float, *, digits: int = 3) -> str:
    """Return "estimate [low, high]", without bounds that are unknown."""
    if not np.isfinite(estimate):
        return "n/a"
    estimate, low, high = (np.round(one, digits) + 0.0 for one in (estimate, low, high))
    known = np.isfinite(low) and np.isfinite(high)
    bounds = f" [{low:.{digits}f}, {high:.{digits}f}]" if known else ""
    return f"{estimate:.{digits}f}{bounds}"


def table_text(frame: pd.DataFrame, style: str = "markdown") -> str:
    r"""Return a table as text that goes into a file or a manuscript.

    Parameters
    ----------
    frame : DataFrame
        Its index is not printed.
    style : {"latex", "markdown"}
        LaTeX needs the package booktabs; everything special is escaped.

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
        columns = "".join("r" if one else "l" for one in numeric)
        text = cells.to_latex(index=False, escape=True, column_format=columns)
        return text.translate(str.maketrans(_LATEX))
    line = ["---:" if one else "---" for one in numeric]
    rows = [
        [one.replace("\\", r"\\").replace("|", r"\|") for one in row]
        for row in [list(cells), *cells.to_numpy()]
    ]
    rows.insert(1, line)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def intervals(frame: pd.DataFrame, columns: Sequence, digits: int = 3) -> list[str]:
    """Return "estimate [low, high]" of each row of three columns."""
    rows = frame[list(columns)].to_numpy()
    return [interval_text(*row, digits=digits) for row in rows]


def summary_of(evaluation: Evaluation, score: str) -> pd.DataFrame:
    """Return the summary of one score, by model: role, mean, sd, n_folds, n_failed."""
    summary = evaluation.summary()
    return summary[summary["score"] == score].set_index("model")


def shown_scores(evaluation: Evaluation) -> dict[str, str]:
    """Return the scores that mean something here, and what tables call them."""
    two = len(evaluation.cohort.classes) == 2
    hidden = set() if evaluation.cohort.classes_ordered else set(ORDINAL_SCORES)
    hidden |= {"stage_error", "adjacent_accuracy"} if two else set()
    names = INTERVAL_SCORES
    if two:  # one AUC; no weights between two classes
        names = {**names, "auc": "AUC", "kappa": "Cohen's kappa"}
    return {
        name: f"{title} (less is better)" if name in LOWER_IS_BETTER else title
        for name, title in names.items()
        if name not in hidden
    }


def score_table(
    evaluation: Evaluation, scores: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return the scores of every model as "mean ± s.d." over folds.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    scores : sequence of str, optional
        Of :data:`brainlsap.evaluation.SCORES`; by default all.

    Returns
    -------
    DataFrame
        One row per model, in order: model, then every score under its written-out
        name; errors in stages only where the order of the classes is known. "n/a"
        where a score does not exist, "failed" where a fit did not train.
    """
    wanted = list(SCORES if scores is None else scores)
    titles = {k: v for k, v in shown_scores(evaluation).items() if k in wanted}
    found = evaluation.summary()
    texts = [spread_text(*row) for row in found[["mean", "sd"]].to_numpy()]
    found["text"] = np.where(found["n_failed"] > 0, "failed", texts)
    table = found.pivot(index="model", columns="score", values="text")
    order = sorted(titles, key=wanted.index)
    table = table.loc[list(evaluation.models), order].rename(columns=titles)
    return _marked(table.rename_axis(columns=None).reset_index(), evaluation)


def _marked(frame: pd.DataFrame, evaluation: Evaluation) -> pd.DataFrame:
    """Say so in the table where its folds share people."""
    if not evaluation.settings["people_shared"]:
        return frame
    return frame.assign(folds="folds share people: not a score by person")


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
    rows = []
    for model in evaluation.models:
        found = bootstrap_scores(evaluation, model, N_DRAWS).set_index("score")
        texts = intervals(found.loc[list(titles)], ("estimate", "low", "high"))
        rows.append([model, *texts])
    return _marked(pd.DataFrame(rows, columns=["model", *titles.values()]), evaluation)


def comparison_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return how the first model compares with every other, in balanced accuracy.

    Returns
    -------
    DataFrame
        One row per other model: its name, difference with its 95% interval, Holm
        p, and whether the first is better; empty where there is one model.
        Tests are those of :func:`brainlsap.evaluation.compare_models`.
    """
    first, found = evaluation.models[0], compare_models(evaluation)
    table = {
        f"{first} minus": found["model"],
        "difference [95% interval]": intervals(found, ("difference", "low", "high")),
        "Holm p": found["p_holm"].map(p_text),
        f"{first} is better": found["better"],
    }
    return _marked(pd.DataFrame(table), evaluation)


def ladder_text(evaluation: Evaluation) -> pd.DataFrame:
    """Return what each step from no network to a scale per region adds."""
    found = ladder_table(evaluation)
    table = {
        "from": found["below"],
        "to": found["above"],
        "difference [95%]": intervals(found, ("difference", "low", "high")),
        "Holm p": found["p_holm"].map(p_text),
        "adds": found["adds"],
    }
    return _marked(pd.DataFrame(table), evaluation)


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
    found = class_table(evaluation, model or evaluation.models[0], N_DRAWS)
    table = found[["class", "people", "scans"]].copy()
    for rate in ("sensitivity", "specificity", "predictive_value"):
        columns = (rate, f"{rate}_low", f"{rate}_high")
        table[rate.replace("_", " ")] = intervals(found, columns, 2)
    return _marked(table, evaluation)


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
    """Return people, scans, age, sex and sites of every class, and whether they differ.

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
        years, not shown for fewer than three people; sexes are counts. The last row
        has p-values: Kruskal-Wallis for age, chi-square of independence for sex and
        site ("*": expected counts under 5), a person in the class of the first scan.

    Examples
    --------
    >>> table = pd.DataFrame({"participant": range(8), "label": ["CN", "AD"] * 4})
    >>> table["SEX"] = ["F", "M", "F", "F", "M", "M", "F", "F"]
    >>> demographics_table(table, ["CN", "AD"])
      class people scans       sex
    0    CN      4     4  F 3, M 1
    1    AD      4     4  F 2, M 2
    2     p                 0.465*
    """
    rows: list[dict[str, Any]] = []
    for name in classes:
        scans = table[table["label"].astype(str) == name]
        people = scans.drop_duplicates("participant")
        rows.append({"class": name, "people": len(people), "scans": len(scans)})
        if (ages := covariate(people, "age")) is not None:
            few = ages.count() < FEWEST_PEOPLE
            rows[-1]["age"] = "n/a" if few else spread_text(ages.mean(), ages.std(), 1)
        if (sexes := covariate(people, "sex")) is not None:
            counts = sexes.dropna().astype(str).value_counts().sort_index()
            told = [f"{sex} {n}" for sex, n in counts.items()] or ["n/a"]
            rows[-1]["sex"] = ", ".join(told)
        if (sites := covariate(people, "site")) is not None:
            rows[-1]["sites"] = int(sites.nunique())
    people = table.drop_duplicates("participant")
    people = people[people["label"].astype(str).isin(list(classes))]
    tests = {one: _difference_p(people, one.rstrip("s")) for one in list(rows[0])[3:]}
    rows += [{"class": "p", **tests}] if tests else []
    return pd.DataFrame(rows, dtype=object).fillna("")


def _difference_p(people: pd.DataFrame, name: str) -> str:
    """Return the p-value of a covariate's difference between classes."""
    from scipy.stats import chi2_contingency, kruskal

    values = covariate(people, name)
    values = people["label"].iloc[:0] if values is None else values.dropna()
    label = people.loc[values.index, "label"].astype(str)
    counts = pd.crosstab(values.astype(str), label)
    if min(counts.shape) < 2:
        return "n/a"
    if name == "age":
        return p_text(kruskal(*(one for _, one in values.groupby(label))).pvalue)
    found = chi2_contingency(counts.to_numpy(), correction=False)
    return p_text(found.pvalue) + "*" * bool((found.expected_freq < 5).any())


def region_labels(
    regions: Sequence[str], atlas: Atlas | None, kind: str = "brief"
) -> list[str]:
    """Return names of regions: "short", "full", or "brief", to the first comma.

    Names are as they are without an atlas.
    """
    if atlas is None:
        return list(regions)
    names = atlas.short_names if kind == "short" else atlas.full_names
    found = [names[place] for place in atlas.match(list(regions))]
    return [one.partition(", ")[0] for one in found] if kind == "brief" else found


def ranked_regions(ranking: pd.DataFrame, n_regions: int) -> pd.DataFrame:
    """Return measured regions, smallest scale first; ties with the last are kept."""
    check_at_least("n_regions", n_regions, 1)
    ranked = ranking.dropna(subset=["rank"]).sort_values("rank", kind="stable")
    if ranked.empty:
        raise ParameterError("ranking has no measured region.")
    return ranked[ranked["rank"] <= n_regions]


def region_table(
    ranking: pd.DataFrame, atlas: Atlas | None = None, n_regions: int = 10
) -> pd.DataFrame:
    """Return the regions of smallest relative scale as a table for a paper.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    atlas : Atlas, optional
        Holds names and coordinates of the regions.
    n_regions : int
        How many; regions tied with the last are shown too.

    Returns
    -------
    DataFrame
        rank, region, short name, coordinates (MNI152, mm); relative scale (to the
        median of the fold; mean over folds) and ranks with the middle 95% of all fits;
        scale (median over folds); p where a null was made; remark (planted, tied, not
        learned: a scale that kept within 5% of its start in most folds).

    Raises
    ------
    ParameterError
        Where `n_regions` is less than 1, or no region has a rank.
    """
    ranked = ranked_regions(ranking, n_regions)
    regions = list(ranked["region"])
    columns: dict[str, Any] = {
        "rank": list(ranked["rank"].astype(int)),
        "region": region_labels(regions, atlas, "full"),
    }
    if atlas is not None:
        places = atlas.coordinates[atlas.match(regions)]
        columns["short name"] = region_labels(regions, atlas, "short")
        columns["x, y, z"] = [
            ", ".join(f"{one:.0f}" for one in place) if np.isfinite(place).all() else ""
            for place in places
        ]
    # the estimate is of means over starts, the bounds of single starts
    low = ranked[["relative_low", "relative_scale"]].min(axis=1)
    high = ranked[["relative_high", "relative_scale"]].max(axis=1)
    scales = pd.DataFrame({"mean": ranked["relative_scale"], "low": low, "high": high})
    columns["relative scale"] = intervals(scales, ("mean", "low", "high"), 2)
    columns["ranks of fits"] = [
        f"{low:.0f}\N{EN DASH}{high:.0f}"
        for low, high in ranked[["rank_low", "rank_high"]].to_numpy()
    ]
    columns["scale"] = [spread_text(one) for one in ranked["scale"]]
    if "p" in ranked:
        columns["p (family-wise)"] = [p_text(one) for one in ranked["p"]]
    planted = ranked.get("planted", pd.Series(False, index=ranked.index))
    tied, still = ranked["rank"].duplicated(keep=False), ranked["moved"] < 0.5
    kinds = zip(planted, tied, still, strict=True)
    words = ("planted", "tied", "not learned")
    told = [", ".join(compress(words, one)) for one in kinds]
    return pd.DataFrame(columns | ({"remark": told} if any(told) else {}))


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
        its 95% interval, difference_low and difference_high. Features are those of the
        scans as read, means over a person's scans of the class.
    """
    from scipy.stats import t as student

    columns = ["feature", "region", "class", "people", "mean", "sd"]
    table = evaluation.cohort.class_features
    table = pd.DataFrame(columns=columns) if table is None else table[columns]
    table = table[table["people"] >= FEWEST_PEOPLE]
    keys = ["feature", "region"]
    reference = table[table["class"] == evaluation.cohort.classes[0]].set_index(keys)
    reference = reference[["people", "mean", "sd"]].add_suffix("_first")
    table = table.join(reference, on=keys)
    n, m = table["people"], table["people_first"]
    half = student.ppf(0.975, n - 1) * table["sd"] / np.sqrt(n)
    squares = (n - 1) * table["sd"] ** 2 + (m - 1) * table["sd_first"] ** 2
    difference = (table["mean"] - table["mean_first"]) / np.sqrt(squares / (n + m - 2))
    bound = 1.96 * np.sqrt((n + m) / (n * m) + difference**2 / (2 * (n + m)))
    return table[columns[:5]].assign(
        low=table["mean"] - half,
        high=table["mean"] + half,
        difference=difference,
        difference_low=difference - bound,
        difference_high=difference + bound,
    )


def direction_table(
    evaluation: Evaluation,
    ranking: pd.DataFrame,
    atlas: Atlas | None = None,
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
    features, first = evaluation.cohort.feature_names, evaluation.cohort.classes[0]
    rows = pd.MultiIndex.from_product([regions, features])
    found = class_differences(evaluation).set_index(["region", "feature"])
    table = pd.DataFrame(index=rows)
    for name in evaluation.cohort.classes:
        some = found[found["class"] == name].reindex(rows)
        table[name] = intervals(some, ("mean", "low", "high"))
        if name != first:
            columns = ("difference", "difference_low", "difference_high")
            title = f"{name} \N{MINUS SIGN} {first} (s.d.)"
            table[title] = intervals(some, columns, 2)
    names = np.repeat(region_labels(regions, atlas, "full"), len(features))
    table.insert(0, "region", names)
    table.insert(1, "feature", [FEATURES.get(one, one) for _, one in rows])
    return table.reset_index(drop=True)


def common_region_table(
    evaluation: Evaluation, atlas: Atlas | None = None, n_smallest: int = 20
) -> pd.DataFrame:
    """Return the regions whose scale is among the smallest in several models.

    The table of the supplement of Sim et al. 2024, with the numbers of
    :func:`brainlsap.evaluation.common_regions`.

    Parameters
    ----------
    evaluation : Evaluation
        With two or more models that have scales.
    atlas : Atlas, optional
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
    found, rmse = common_regions(evaluation, n_smallest)
    first = "Exact" if "Exact" in rmse.index else rmse.index[0]
    rows = {
        "models": [*found["n_models"].astype(str), ""],
        "region": [*region_labels(list(found["region"]), atlas, "short"), "RMSE"],
    }
    for model in sorted(rmse.index, key=lambda name: name != first):
        texts = ["-" if np.isnan(one) else f"{one:.3f}" for one in found[model]]
        rows[model] = [*texts, "-" if model == first else f"{rmse[model]:.3f}"]
    return pd.DataFrame(rows)


def agreement_text(evaluation: Evaluation) -> pd.DataFrame:
    """Return how far folds of each model, and models, agree on the order of regions."""
    found = agreement_table(evaluation)
    pairs = found[["first", "second"]].to_numpy()
    titles = ("Kendall's W", "Spearman", "overlap of the ten smallest (Jaccard)")
    table = found[["kendall_w", "spearman", "jaccard"]].set_axis(titles, axis=1)
    table = table.map(lambda one: spread_text(one, digits=2))
    what = [f"folds of {a}" if a == b else f"{a} and {b}" for a, b in pairs]
    table.insert(0, "what", what)
    return table


def confound_text(ranking: pd.DataFrame) -> pd.DataFrame:
    """Return how scale goes with the properties of regions that a ranking carries.

    The columns degree, strength and variance_<feature>, as of
    :func:`brainlsap.evaluation.region_properties`; empty where there are none.
    """
    carried = list(ranking.filter(regex="^(degree|strength|variance_.*)$"))
    if not carried:
        return pd.DataFrame()
    found = confound_table(ranking, ranking[["region", *carried]])
    table = {
        "property": found["property"].str.replace("_", " of "),
        "regions": found["n_regions"],
        "Spearman with relative scale": found["spearman"].map("{:+.2f}".format),
        "Holm p": found["p_holm"].map(p_text),
        "remark": np.where(found["flagged"], "scale follows it", ""),
    }
    return pd.DataFrame(table)


def fit_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return fits, failures, epochs, kernel's error and range of scales by model."""
    final = evaluation.scales.query("start == 'mean' and share == 1")
    rows = []
    for name, fits in evaluation.fits.groupby("model", sort=False):
        reports = [json.loads(one) or {} for one in fits["report"]]
        error = max(float(one.get("error_bound") or 0) for one in reports)
        scales, epochs = final.query("model == @name")["scale"], fits["epochs"].mean()
        row = {"model": name, "role": fits["role"].iloc[0], "fits": len(fits)}
        row["failed"] = int((fits["failed"] != "").sum())
        row["epochs"] = f"{epochs:.0f}" if np.isfinite(epochs) else ""
        row["error of the kernel"] = f"{error:.1e}" if error else ""
        bounds = f"{scales.min():.2f} to {scales.max():.2f}"
        rows.append(row | {"scales": bounds if len(scales) else ""})
    return pd.DataFrame(rows)


def audit_table(evaluation: Evaluation, codes: Codes = None) -> pd.DataFrame:
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
    if (table["scans"] == "").all():
        table = table.drop(columns="scans")
    return table.rename(columns={"what_to_do": "what to do"})


def unusual_scans_table(evaluation: Evaluation, codes: Codes = None) -> pd.DataFrame:
    """Return the scans that quality control flagged, under their codes and sorted so.

    Parameters
    ----------
    evaluation : Evaluation
        Whose cohort's table has the column quality.
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


def _coded(texts: pd.Series, codes: Codes, other: str | None = None) -> pd.Series:
    """Put codes in the place of scans; `other` in that of any other word."""
    if codes is None or texts.empty:
        return texts
    return texts.str.replace(
        r"[^\s,;()]+", lambda word: codes.get(word[0], other or word[0]), regex=True
    )
