"""Tables and facts of an external evaluation, beside those of every evaluation."""

import pandas as pd

from brainlsap.evaluation import Evaluation
from brainlsap.report import tables

# Share of people of every class whose prediction set should hold their class.
NOMINAL_COVERAGE = 0.9


def is_external(evaluation: Evaluation) -> bool:
    """Return whether a stored model was tested on other people."""
    return "external" in evaluation.settings


def is_simulated(evaluation: Evaluation) -> bool:
    """Return whether the people, or those of the stored model, were simulated."""
    external_facts = evaluation.settings.get("external", {})
    is_simulated_model = external_facts.get("card", {}).get("is_simulated", False)
    return evaluation.cohort.truth is not None or is_simulated_model


def make_external_table_by_name(evaluation: Evaluation) -> dict[str, pd.DataFrame]:
    """Return the tables that only an external evaluation has, as text by name."""
    if not is_external(evaluation):
        return {}
    external_facts = evaluation.settings["external"]
    case_mix_table = pd.DataFrame(external_facts["case_mix"])
    calibration_table = make_number_table(external_facts["calibration"])
    coverage_table = make_number_table(external_facts["coverage"])
    table_by_name = {
        "case_mix": case_mix_table.rename(
            columns={
                "difference": "difference (s.d. of training)",
                "points": "difference (percentage points)",
            }
        )
    }
    if len(calibration_table):
        title_by_column = {
            "class": "class",
            "people": "people",
            "frequency": "frequency",
            "mean_probability": "mean probability",
            "slope": "slope [95%]",
            "p_slope": "p (slope 1)",
            "intercept": "intercept [95%]",
            "p_intercept": "p (intercept 0)",
        }
        table_by_name["calibration"] = tables.make_number_text_table(
            calibration_table, title_by_column
        )
    if len(coverage_table):
        coverage_table = coverage_table.rename(
            columns={"low": "coverage_low", "high": "coverage_high"}
        )
        title_by_column = {
            "class": "class",
            "people": "people",
            "coverage": "coverage [95%]",
            "mean_size": "classes in a set",
        }
        table_by_name["coverage"] = tables.make_number_text_table(
            coverage_table, title_by_column
        )
    return table_by_name


def make_number_table(table_records: list[dict[str, object]]) -> pd.DataFrame:
    """Return stored rows of classes; a number that is null in the file is NaN."""
    number_table = pd.DataFrame(table_records)
    number_columns = number_table.columns.drop(["class", "people"], errors="ignore")
    return number_table.astype(dict.fromkeys(number_columns, float))
