"""Tables of a report for a paper, in LaTeX or Markdown, with captions and notes.

LaTeX tables have a width that fits the page.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainlsap.evaluation import Evaluation
from brainlsap.evaluation.splits import EXCHANGE_PHRASE
from brainlsap.report.demographics import several_classes_text
from brainlsap.report.tables import (
    latex_cells_and_titles,
    table_text,
    text_with_minus_signs,
)
from brainlsap.text import count_text

PAGE_WIDTH = 160.0
"""Text width of A4 with margins of 25 mm, in mm."""

MAX_ROWS = 48
"""Largest number of rows of a table on one page; longer tables are divided."""

# Widths of letters of Computer Modern at 8 pt (footnotesize of a document of 10 pt), in
# mm. Those of other usual fonts are smaller.
_MM_PER_EM = 8.0 * 0.3515 * 1.07
_NARROW, _WIDE = "fijlrt.,:;|!I()[]'/- ", "mwMW\N{PLUS-MINUS SIGN}<>%@&=+#"
_NARROW_WIDTH, _COMMON_WIDTH, _CAPITAL_WIDTH, _WIDE_WIDTH = 0.36, 0.52, 0.74, 0.86

_COLUMN_GAP = 2.2  # mm, twice \tabcolsep
# Longest text (mm) that stays in one line; longer ones are wrapped.
_MAX_UNBROKEN = 34.0


@dataclass(frozen=True)
class PaperText:
    """Texts above and below a table of a paper.

    Attributes
    ----------
    caption : str
        Title of the table.
    note : str
        Explanation of its numbers, below it; may be empty.
    """

    caption: str
    note: str = ""


_INTERVALS = (
    "95% percentile bootstrap intervals, which resample participants with all their "
    "scans."
)
_SMALLEST_SCALE = (
    "A relative scale is a scale divided by the scale of the median region of its fold."
)

PAPER_TEXTS = {
    "scores": PaperText(
        "Scores of all models on the same folds",
        f"Balanced accuracy over all test scans has {_INTERVALS} The column p "
        f"(chance) contains one-sided p-values from permutations {EXCHANGE_PHRASE}. "
        "Differences have 95% t intervals over participants (Bonett and Price 2012), "
        "which are not corrected for the number of comparisons. The p-values of "
        "differences are from a permutation test that exchanges the predictions of two "
        "models within participants. Scores over folds are mean ± s.d.",
    ),
    "added_value": PaperText(
        "Prediction from covariates, from brain features, and from both",
        f"Balanced accuracy over all test scans has {_INTERVALS} Differences have 95% "
        "t intervals over participants (Bonett and Price 2012). The p-values are from "
        "a permutation test that exchanges the predictions of two models within "
        "participants. Two p-values have Holm's correction. If covariates and brain "
        "features together have a lower score than brain features alone, no benefit of "
        "the covariates was shown.",
    ),
    "ladder": PaperText(
        "Comparison of nested ridge regressions",
        "Differences in balanced accuracy over all test scans have 95% t intervals "
        "over participants (Bonett and Price 2012). The p-values are from a "
        "permutation test that exchanges the predictions of two models within "
        "participants.",
    ),
    "intervals": PaperText(
        "Scores over all test scans together",
        f"Scores have {_INTERVALS} AUC is the mean over folds.",
    ),
    "learning_curve": PaperText(
        "Balanced accuracy by the number of training participants",
        "Scores are means over folds and over four random subsets of the training "
        "participants, with 95% intervals over test participants and subsets. The "
        "gain is the slope from 50 to 100% of the training participants.",
    ),
    "connectome_gain": PaperText(
        "Information that connectomes add to the regions' own values and their mean",
        "The table gives the gain in log evidence and the reduction of the squared "
        "error of left-out participants, with 90% intervals over participants.",
    ),
    "classes": PaperText(
        "Rates of every class against all others",
        "Estimates have 95% intervals over participants. PPV and NPV are the positive "
        "and the negative predictive value at the class shares of this cohort. AUC is "
        "the mean over folds.",
    ),
    "case_mix": PaperText("Participants of the training and of this test"),
    "calibration": PaperText(
        "Calibration of the probability of every class against all others",
        "The 95% intervals use robust standard errors over participants and are not "
        "corrected. The p-values are of score tests and are corrected for all slopes "
        "and intercepts.",
    ),
    "coverage": PaperText(
        "Coverage of prediction sets at 90%",
        ("Intervals are 95% Wilson intervals over participants."),
    ),
    "subgroups": PaperText(
        "Balanced accuracy in groups of participants",
        "All groups of a column are scored on the classes with at least two "
        "participants in every scored group. "
        "The number of participants of a group includes only these classes. Scores "
        "have 95% intervals over participants. The intervals of the largest "
        "differences are simultaneous for all pairs of groups of all columns.",
    ),
    "flow": PaperText(
        "Flow of participants and scans from the tables of the study to the analysis",
        "A scan that was left out counts only once, under the first reason that "
        "applies. The rows have the order of these reasons. A participant counts only "
        "once, in the row of the scan that was kept through the most steps. The counts "
        "add up to the numbers listed.",
    ),
    "demographics": PaperText(
        "Characteristics of the participants",
        "The table counts participants, not scans, and uses the values of their first "
        "scan. Percentages are of the participants with a value. The column missing is "
        "the number of participants without a value. "
        "Median, quartiles and the Kruskal-Wallis test are used if the skewness within "
        "classes exceeds 1. Permuted means that a test used 5,000 permutations of the "
        "labels, because an expected count is below 5. The leakage audit uses other "
        "tests, and warns only of variables that also predict the class. A variable "
        "can therefore have a small p-value in this table but no warning of the audit.",
    ),
    "audit": PaperText("Findings of the leakage audit"),
    "fits": PaperText("Fits of every model over all folds"),
    "quality": PaperText("Scans with unusual values", "Scans are given by codes."),
    "regions": PaperText(
        "Differences between classes by region",
        "The table shows the regions with the smallest p-values. The p-values are "
        "corrected for the number of regions. The regions were selected with the "
        "labels of these scans.",
    ),
    "region_groups": PaperText("Mean Cohen's d over groups of regions"),
    "directions": PaperText(
        "Class means and differences of features by region",
        "The 95% intervals over participants are not corrected for the number of "
        "regions. Differences are in pooled standard deviations.",
    ),
    "scales": PaperText(
        "Regions with the smallest scales", f"{_SMALLEST_SCALE} Ranges are over folds."
    ),
    "agreement": PaperText("Agreement of folds and models on the order of scales"),
    "confounds": PaperText(
        "Correlation of relative scales with properties of regions",
        "The p-values are too small, because neighbouring regions are similar and the "
        "test treats them as independent.",
    ),
    "common_regions": PaperText(
        "Regions among the twenty smallest scales of several models",
        "Scales are medians over folds. A dash means that the scale of the region is "
        "not among the twenty smallest scales of the model. RMSE is the root mean "
        "square difference from the scales of the first model over all measured "
        "regions.",
    ),
}
"""Caption and note of every table of a report, by its name."""

UNSHOWN_TABLES = (
    "fold_scores",
    "region_tests",
    "group_differences",
    "ranking",
    "class_features",
)
"""Names of tables of all folds or regions, which the page does not show."""


def table_file_path(table_name: str) -> str:
    """Return the path of a table in the folder of a report.

    Raises ValueError if no table of a report has this name.
    """
    if table_name not in (*PAPER_TEXTS, *UNSHOWN_TABLES):
        raise ValueError(f"no table of a report is named {table_name!r}")
    return f"tables/{table_name}.tsv"


def latex_table_text(
    frame: pd.DataFrame,
    caption: str,
    note: str = "",
    *,
    label: str = "",
    width: float = PAGE_WIDTH,
) -> str:
    r"""Return a table as LaTeX that is at most as wide as the text of a page.

    Long cells and heads are wrapped. Columns that do not fit are continued in a further
    table that repeats the first column, long tables in one that repeats the head.

    Parameters
    ----------
    frame : DataFrame
        Its index is not printed. A first column `group` becomes headings of rows.
    caption, note : str
        Text above and below the table; special characters are escaped.
    label : str
        Name for `\ref`; tables that continue it have none.
    width : float
        Largest width in mm.

    Returns
    -------
    str
        A comment that gives the packages the document needs (array, booktabs) and its
        width of text, then environments `table`.

    Examples
    --------
    >>> frame = pd.DataFrame({"region": ["G&S_front"], "scale": ["0.5"]})
    >>> text = latex_table_text(frame, "Scales", label="tab:scales")
    >>> r"G\&S\_front & 0.5 \\" in text
    True
    """
    is_categorical_covariate = frame.columns[0] == "group"
    row_group_names = frame["group"] if is_categorical_covariate else None
    body_table = frame.drop(columns="group") if is_categorical_covariate else frame
    cell_rows, column_heads = latex_cells_and_titles(body_table)
    column_widths_mm = _smallest_column_widths(body_table)
    tabular_texts = []
    for column_indices in _split_column_indices(column_widths_mm, width):
        block_table = body_table.iloc[:, column_indices]
        block_column_widths_mm = _fit_column_widths(
            block_table, column_widths_mm, column_indices, width
        )
        for start_index in range(0, max(len(body_table), 1), MAX_ROWS):
            row_slice = slice(start_index, start_index + MAX_ROWS)
            tabular_texts.append(
                _latex_tabular_text(
                    [column_heads[column_index] for column_index in column_indices],
                    [
                        [cell_row[column_index] for column_index in column_indices]
                        for cell_row in cell_rows[row_slice]
                    ],
                    block_column_widths_mm,
                    None
                    if row_group_names is None
                    else list(row_group_names.iloc[row_slice]),
                )
            )
    escaped_caption, escaped_note = (
        _escape_latex_specials(caption),
        _escape_latex_specials(note),
    )
    table_texts = []
    for part_number, tabular_text in enumerate(tabular_texts):
        continuation_suffix = " (continued)" if part_number else ""
        latex_lines = [
            r"\begin{table}[htbp]",
            r"\footnotesize",
            rf"\setlength{{\tabcolsep}}{{{_COLUMN_GAP / 2:.1f}mm}}",
        ]
        if part_number:
            latex_lines.append(r"\addtocounter{table}{-1}")
        latex_lines.append(rf"\caption{{{escaped_caption}{continuation_suffix}}}")
        if label and not part_number:
            latex_lines.append(rf"\label{{{label}}}")
        latex_lines.append(tabular_text)
        if escaped_note and part_number == len(tabular_texts) - 1:
            latex_lines.append(
                rf"\par\smallskip\parbox{{{width:.0f}mm}}{{{escaped_note}}}"
            )
        latex_lines.append(r"\end{table}")
        table_texts.append("\n".join(latex_lines))
    head_comment = (
        r"% Packages of the document: \usepackage{array,booktabs} and, for a text of "
        rf"{width:.0f} mm, \usepackage[textwidth={width:.0f}mm]{{geometry}}."
    )
    return "\n".join([head_comment, "\n\n".join(table_texts), ""])


def list_captioned_texts(
    table_names: Iterable[str], evaluation: Evaluation
) -> dict[str, PaperText]:
    """Return caption and note of tables of a report, by name; captions give the n."""
    cohort, study_settings = evaluation.cohort, evaluation.settings
    n_folds = study_settings["n_folds"] * study_settings["n_repeats"]
    sample_phrase = (
        f"{count_text(cohort.n_scans, 'scan')} of "
        f"{count_text(cohort.n_participants, 'participant')}"
    )
    if n_folds > 1:
        sample_phrase += f", {count_text(n_folds, 'fold')}"
    if cohort.truth is not None:
        sample_phrase += "; simulated data"
    paper_text_by_name = {}
    for table_name in table_names:
        paper_text = PAPER_TEXTS.get(table_name, PaperText(table_name))
        note = paper_text.note
        if table_name == "demographics":
            note = f"{several_classes_text(cohort.table)} {note}".strip()
        paper_text_by_name[table_name] = PaperText(
            f"{paper_text.caption} ({sample_phrase}).", note
        )
    return paper_text_by_name


def make_latex_by_table(
    table_by_name: Mapping[str, pd.DataFrame], evaluation: Evaluation
) -> dict[str, str]:
    """Return every table of a report as LaTeX, by name, with caption and note."""
    paper_text_by_name = list_captioned_texts(table_by_name, evaluation)
    return {
        table_name: latex_table_text(
            report_table,
            paper_text_by_name[table_name].caption,
            paper_text_by_name[table_name].note,
            label=f"tab:{table_name}",
        )
        for table_name, report_table in table_by_name.items()
    }


def make_markdown_by_table(
    table_by_name: Mapping[str, pd.DataFrame], evaluation: Evaluation
) -> dict[str, str]:
    """Return every table of a report as Markdown, by name, with caption and note."""
    paper_text_by_name = list_captioned_texts(table_by_name, evaluation)
    markdown_by_name = {}
    for table_name, report_table in table_by_name.items():
        paper_text = paper_text_by_name[table_name]
        blocks = [
            _escape_markdown(paper_text.caption),
            table_text(report_table, "markdown").rstrip("\n"),
            _escape_markdown(paper_text.note),
        ]
        markdown_by_name[table_name] = "\n\n".join(filter(None, blocks)) + "\n"
    return markdown_by_name


def _escape_markdown(text: str) -> str:
    """Return a text with the signs escaped that Markdown would read as markup."""
    return re.sub(r"([\\`*_<])", r"\\\1", text)


def cell_text_width(text: str) -> float:
    """Return the width of a line of text in a table, in mm (rather too large)."""
    width_in_ems = 0.0
    for letter in text_with_minus_signs(text):
        if letter in _NARROW:
            width_in_ems += _NARROW_WIDTH
        elif letter in _WIDE or ord(letter) > 0x250:
            width_in_ems += _WIDE_WIDTH
        elif letter.isupper():
            width_in_ems += _CAPITAL_WIDTH
        else:
            width_in_ems += _COMMON_WIDTH
    return width_in_ems * _MM_PER_EM


def _widest_word_width(cell_texts: Sequence[str]) -> float:
    """Return the width of the widest word of texts, in mm."""
    all_words = [
        word for cell_text in cell_texts for word in re.split(r"[\s]+", cell_text)
    ]
    return max(map(cell_text_width, all_words), default=0.0)


def _smallest_column_widths(body_table: pd.DataFrame) -> list[float]:
    """Return the smallest width (mm) of each column: longer texts are wrapped.

    Numbers with their interval stay in one line; heads are wrapped at blanks.
    """
    column_widths_mm = []
    for column_title in body_table:
        cell_texts = [
            " ".join(str(cell_value).split()) for cell_value in body_table[column_title]
        ]
        cell_width_mm = max(map(cell_text_width, cell_texts), default=0.0)
        if cell_width_mm > _MAX_UNBROKEN:
            cell_width_mm = max(_MAX_UNBROKEN * 0.7, _widest_word_width(cell_texts))
        column_widths_mm.append(
            max(cell_width_mm, _widest_word_width([str(column_title)]))
        )
    return column_widths_mm


def _split_column_indices(
    column_widths_mm: Sequence[float], table_width_mm: float
) -> list[list[int]]:
    """Return the columns of each part of a table; the first is in all of them."""
    column_index_lists, column_indices = [], [0]
    for column_index in range(1, len(column_widths_mm)):
        block_width_mm = sum(
            column_widths_mm[i] + _COLUMN_GAP for i in [*column_indices, column_index]
        )
        if block_width_mm > table_width_mm and len(column_indices) > 1:
            column_index_lists.append(column_indices)
            column_indices = [0]
        column_indices.append(column_index)
    return [*column_index_lists, column_indices]


def _fit_column_widths(
    body_table: pd.DataFrame,
    column_widths_mm: Sequence[float],
    column_indices: Sequence[int],
    table_width_mm: float,
) -> list[float]:
    """Widen columns of wrapped texts into the space that is left, within the width."""
    block_column_widths_mm = np.array(
        [column_widths_mm[column_index] for column_index in column_indices]
    )
    natural_widths = []
    for column_title in body_table:
        cell_texts = [
            str(column_title),
            *(
                " ".join(str(cell_value).split())
                for cell_value in body_table[column_title]
            ),
        ]
        natural_widths.append(max(map(cell_text_width, cell_texts)))
    missing_widths = np.maximum(np.array(natural_widths) - block_column_widths_mm, 0.0)
    free_width = (
        table_width_mm
        - block_column_widths_mm.sum()
        - _COLUMN_GAP * len(block_column_widths_mm)
    )
    if free_width > 0 and missing_widths.sum() > 0:
        block_column_widths_mm = block_column_widths_mm + missing_widths * min(
            1.0, free_width / missing_widths.sum()
        )
    excess_width = (
        block_column_widths_mm.sum()
        + _COLUMN_GAP * len(block_column_widths_mm)
        - table_width_mm
    )
    if excess_width > 0:  # The first column and one more do not fit: wrap the widest.
        block_column_widths_mm[block_column_widths_mm.argmax()] -= excess_width
    return [float(column_width) for column_width in block_column_widths_mm]


def _latex_tabular_text(
    column_heads: Sequence[str],
    cell_rows: Sequence[Sequence[str]],
    column_widths_mm: Sequence[float],
    row_group_names: Sequence[str] | None,
) -> str:
    """Return a tabular with columns of these widths (mm) and headings of groups."""
    column_format = "".join(
        rf">{{\raggedright\arraybackslash}}p{{{column_width_mm:.1f}mm}}"
        for column_width_mm in column_widths_mm
    )
    latex_lines = [rf"\begin{{tabular}}{{@{{}}{column_format}@{{}}}}", r"\toprule"]
    latex_lines += [" & ".join(column_heads) + r" \\", r"\midrule"]
    previous_group_name = None
    for row_number, cell_row in enumerate(cell_rows):
        if (
            row_group_names is not None
            and row_group_names[row_number] != previous_group_name
        ):
            if previous_group_name is not None:
                latex_lines.append(r"\addlinespace")
            previous_group_name = row_group_names[row_number]
            group_text = (
                rf"\textit{{{_escape_latex_specials(str(previous_group_name))}}}"
            )
            group_heading = (
                rf"\multicolumn{{{len(column_heads)}}}{{@{{}}l@{{}}}}{{{group_text}}}"
            )
            latex_lines.append(group_heading + r" \\")
        latex_lines.append(" & ".join(cell_row) + r" \\")
    return "\n".join([*latex_lines, r"\bottomrule", r"\end{tabular}"])


def _escape_latex_specials(unescaped_text: str) -> str:
    """Return text with the special characters of LaTeX escaped."""
    escaped_cells, _ = latex_cells_and_titles(pd.DataFrame({"text": [unescaped_text]}))
    return escaped_cells[0][0]
