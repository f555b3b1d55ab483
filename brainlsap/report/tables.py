"""Every table of a report: a data frame of text, ready for a paper."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.arrays import check_at_least, check_choice
from brainlsap.atlas import Atlas
from brainlsap.exceptions import ParameterError

NAMES = {"short": "short_name", "long": "long_name", "atlas": "name"}
"""How a table may call regions, and the atlas column that holds it."""

FEWEST_PEOPLE = 3
"""Mean ages of fewer people are not shown: they would give away a person's age."""

COVARIATES = {
    "age": ("age", "age_years", "ageatscan"),
    "sex": ("sex", "gender", "ptgender"),
    "site": ("site", "siteid", "site_id", "scanner", "center", "centre"),
}
"""Names, in lower case, that a column of age, sex or site goes by."""

_LATEX = {
    **{one: rf"\{one}" for one in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "\N{EN DASH}": "--",
    "\N{MINUS SIGN}": "$-$",
}


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


def interval_text(estimate: float, low: float, high: float, digits: int = 3) -> str:
    """Return "estimate [low, high]", without bounds that are unknown."""
    if not np.isfinite(estimate):
        return "n/a"
    known = np.isfinite(low) and np.isfinite(high)
    bounds = f" [{low:.{digits}f}, {high:.{digits}f}]" if known else ""
    return f"{estimate:.{digits}f}{bounds}"


def table_text(frame: pd.DataFrame, style: str = "markdown") -> str:
    r"""Return a table as text that goes into a file or a manuscript.

    Parameters
    ----------
    frame : DataFrame
        Its index is not printed.
    style : {"csv", "latex", "markdown", "tsv"}
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
    check_choice("style", style, ("csv", "latex", "markdown", "tsv"))
    if style in ("csv", "tsv"):
        separator = "," if style == "csv" else "\t"
        return frame.to_csv(sep=separator, index=False, lineterminator="\n")
    rows = [list(frame.columns), *frame.itertuples(index=False, name=None)]
    cells = [
        ["" if pd.isna(one) else re.sub(r"\s+", " ", str(one)) for one in row]
        for row in rows
    ]
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]
    if style == "markdown":
        cells = [
            [one.replace("\\", "\\\\").replace("|", r"\|") for one in row]
            for row in cells
        ]
        cells.insert(1, ["---:" if one else "---" for one in numeric])
        return "".join(f"| {' | '.join(row)} |\n" for row in cells)
    escape = str.maketrans(_LATEX)
    head, *body = [
        " & ".join(one.translate(escape) for one in row) + " \\\\\n" for row in cells
    ]
    columns = "".join("r" if one else "l" for one in numeric)
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{head}\\midrule\n"
        f"{''.join(body)}\\bottomrule\n\\end{{tabular}}\n"
    )


def covariate(table: pd.DataFrame, name: str) -> pd.Series | None:
    """Return the column of age, sex or site, whatever its case, or None."""
    known = {str(column).lower(): column for column in reversed(table.columns)}
    for alias in COVARIATES[name]:
        if alias in known:
            values = table[known[alias]]
            blank = values.astype(str).str.strip().str.lower().isin(["", "n/a", "nan"])
            values = values.mask(blank | values.isna())
            return pd.to_numeric(values, errors="coerce") if name == "age" else values
    return None


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
    >>> table = pd.DataFrame({"participant": ["a", "a", "b"], "label": ["CN"] * 3})
    >>> demographics_table(table.assign(SEX=["F", "F", "M"]), ["CN"])
      class  people  scans       sex
    0    CN       2      3  F 1, M 1
    """
    rows = []
    for name in classes:
        scans = table[table["label"].astype(str) == name]
        people = scans.drop_duplicates("participant")
        row: dict[str, Any] = {"class": name, "people": len(people)}
        row["scans"] = len(scans)
        if (ages := covariate(people, "age")) is not None:
            few = ages.count() < FEWEST_PEOPLE
            row["age"] = "n/a" if few else spread_text(ages.mean(), ages.std(), 1)
        if (sexes := covariate(people, "sex")) is not None:
            counts = sexes.dropna().astype(str).value_counts().sort_index()
            row["sex"] = ", ".join(f"{sex} {n}" for sex, n in counts.items()) or "n/a"
        if (sites := covariate(people, "site")) is not None:
            row["sites"] = int(sites.nunique())
        rows.append(row)
    return pd.DataFrame(rows)


def demographics_tests(table: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """Return tests of whether classes differ in age, sex and site.

    Parameters
    ----------
    table : DataFrame
        As for :func:`demographics_table`.
    classes : sequence of str
        Groups to compare.

    Returns
    -------
    DataFrame
        One row for each of age (Kruskal-Wallis), sex and site (chi-square of
        independence) that is known: variable, test, people, statistic, df and p.
        A person counts once, in the class of the first scan. "n/a" where a test
        cannot be made; "*" behind p marks expected counts under 5.

    Examples
    --------
    >>> table = pd.DataFrame({"participant": range(8), "label": ["CN", "AD"] * 4})
    >>> table["AGE"] = [60, 70, 61, 71, 62, 72, 63, 73]
    >>> demographics_tests(table, ["CN", "AD"])[["variable", "statistic", "p"]]
      variable statistic      p
    0      age      5.33  0.021
    """
    from scipy.stats import chi2_contingency, kruskal

    people = table.drop_duplicates("participant")
    people = people[people["label"].astype(str).isin(list(classes))]
    label = people["label"].astype(str)
    rows = []
    for name in COVARIATES:
        values = covariate(people, name)
        if values is None:
            continue
        known, told = values.notna(), ("n/a", "n/a", "n/a")
        if name == "age":
            groups = [one.to_numpy() for _, one in values[known].groupby(label[known])]
            if len(groups) > 1 and values.nunique() > 1:
                statistic, p = kruskal(*groups)
                told = (f"{statistic:.2f}", str(len(groups) - 1), p_text(p))
        else:
            counts = pd.crosstab(values[known].astype(str), label[known])
            if min(counts.shape, default=0) > 1:
                found = chi2_contingency(counts.to_numpy(), correction=False)
                few = "*" if (found.expected_freq < 5).any() else ""
                p = f"{p_text(found.pvalue)}{few}"
                told = (f"{found.statistic:.2f}", str(found.dof), p)
        test = "Kruskal-Wallis" if name == "age" else "chi-square"
        rows.append((name, test, int(known.sum()), *told))
    columns = ["variable", "test", "people", "statistic", "df", "p"]
    return pd.DataFrame(rows, columns=columns)
