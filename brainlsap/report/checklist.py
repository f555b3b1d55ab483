"""The reporting checklist TRIPOD+AI: what a run answers, and what authors must write.

G. S. Collins et al. TRIPOD+AI statement: updated guidance for reporting clinical
prediction models that use regression or machine learning methods. BMJ 2024;385:e078378.
Numbers and topics of the items are those of the statement; its wording is not copied.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import pandas as pd

from brainlsap.evaluation import Evaluation, subgroup_table
from brainlsap.report import tables
from brainlsap.report.conclusions import method_text, sample_text
from brainlsap.report.external import is_external
from brainlsap.report.paper_tables import table_file
from brainlsap.text import count, with_and

ANSWERED, PARTLY = "answered", "partly answered"
AUTHORS, NOT_APPLICABLE = "for the authors", "not applicable"
"""States of an item."""

DEVELOPMENT, EVALUATION, BOTH = "development", "evaluation", "both"

ABOUT = (
    "Numbers and topics of TRIPOD+AI (Collins et al., BMJ 2024;385:e078378); read the "
    "full wording of each item in the statement. States say what this run answers, not "
    "whether a manuscript reports it."
)
"""What the file is, in its last row."""

Answer = str | Callable[[Evaluation], str]


@dataclass(frozen=True)
class Item:
    """One item of the checklist.

    Attributes
    ----------
    number, section, topic : str
        Those of the statement.
    study : {"both", "development", "evaluation"}
        Studies that the item is for.
    to_write : str
        What the authors must write; "" where the run says all.
    answer : str, or callable, optional
        What the run says, or `(evaluation) -> value`; "" for nothing.
    places : tuple of str
        Files of the report, with a section of the page behind #, that say it. Only
        those that exist are named.
    """

    number: str
    section: str
    topic: str
    study: str = BOTH
    to_write: str = ""
    answer: Answer | None = None
    places: tuple[str, ...] = ()


def _describe_title(evaluation: Evaluation) -> str:
    cohort = evaluation.cohort
    kind = "evaluation" if is_external(evaluation) else "development"
    return f"{kind} of a model of {cohort.label_name} ({', '.join(cohort.classes)})"


def _describe_objective(evaluation: Evaluation) -> str:
    if is_external(evaluation):
        return "Evaluation of a stored model in other participants."
    return "Development with internal validation by cross-validation."


def _count_sites(evaluation: Evaluation) -> str:
    n_sites = _n_values(evaluation, "site")
    return count(n_sites, "site") if n_sites else ""


def _n_values(evaluation: Evaluation, covariate_name: str) -> int:
    """Return the number of values of a covariate, 0 where the cohort lacks it."""
    from brainlsap.report.demographics import covariate

    values = covariate(evaluation.cohort.table, covariate_name)
    return 0 if values is None else int(values.nunique())


def _describe_sample(evaluation: Evaluation) -> str:
    return sample_text(evaluation)


def _describe_outcome(evaluation: Evaluation) -> str:
    cohort = evaluation.cohort
    order = "in this order" if cohort.classes_ordered else "without an order"
    return f"{cohort.label_name}: {with_and(cohort.classes)}, {order}."


def _describe_predictors(evaluation: Evaluation) -> str:
    cohort = evaluation.cohort
    return (
        f"{tables.feature_text(cohort)} of all measured regions of "
        f"{cohort.atlas_name}; no selection before the models."
    )


def _describe_measures(evaluation: Evaluation) -> str:
    return tables.feature_text(evaluation.cohort)


def _describe_missing_values(evaluation: Evaluation) -> str:
    return f"Measured: {tables.measured_text(evaluation.cohort)}."


def _describe_size(evaluation: Evaluation) -> str:
    class_counts = evaluation.cohort.class_counts()
    counts = zip(class_counts["class"], class_counts["participants"], strict=True)
    sizes = ", ".join(f"{name} {n_people}" for name, n_people in counts)
    return f"Participants by class: {sizes}."


def _describe_learning(evaluation: Evaluation) -> str:
    sentence = tables.learning_curve_sentence(evaluation)
    return f"{_describe_size(evaluation)} {sentence}".strip()


def _describe_design(evaluation: Evaluation) -> str:
    if is_external(evaluation):
        return ""
    return method_text(evaluation)


def _describe_steps(evaluation: Evaluation) -> str:
    adjusted = tables.regressed_text(evaluation)
    text = "Standardised on training scans."
    return f"{text} Adjusted for {adjusted}." if adjusted else text


def _name_models(evaluation: Evaluation) -> str:
    return f"Models: {', '.join(evaluation.models)}."


def _describe_clusters(evaluation: Evaluation) -> str:
    left_out = evaluation.settings.get("leave_out")
    return f"Whole values of {left_out} were held out." if left_out else ""


def _name_scores(evaluation: Evaluation) -> str:
    return with_and(tables.shown_scores(evaluation).values())


def _describe_prior(evaluation: Evaluation) -> str:
    priors = {str(prior) for prior in evaluation.class_priors().values()}
    if not priors:
        return ""
    return f"Probabilities assume these class shares: {', '.join(sorted(priors))}."


def _describe_output(evaluation: Evaluation) -> str:
    predictions = evaluation.predictions
    is_main = predictions["model"] == evaluation.models[0]
    if predictions[is_main].filter(regex="^p_").isna().all(axis=None):
        return "The class of the largest decision value."
    return "A probability of every class, and the class that it favours."


def _describe_folds(evaluation: Evaluation) -> str:
    fits = evaluation.fits
    if is_external(evaluation) or "n_train_people" not in fits:
        return ""
    return (
        f"{fits['n_train_people'].mean():.0f} participants for training in a fold, on "
        f"average; {evaluation.cohort.n_participants} tested."
    )


def _name_version(evaluation: Evaluation) -> str:
    version = evaluation.settings["version"]
    return f"brainlsap {version}; settings.json has every setting and version."


def _name_subgroups(evaluation: Evaluation) -> str:
    columns = dict.fromkeys(subgroup_table(evaluation)["column"])
    return f"Scored in groups by {with_and(columns)}." if columns else ""


def _describe_performance(evaluation: Evaluation) -> str:
    model = evaluation.models[0]
    interval = tables.intervals(evaluation, model).loc["balanced_accuracy"]
    text = tables.interval_text(*interval)
    return f"{model}: balanced accuracy {text}, 95% interval over participants."


PAGE = "report.html"
PAGE_SECTIONS = {
    section: f"{PAGE}#{section}"
    for section in ("scores", "regions", "people", "methods")
}
"""Place of every section of the page, by its id."""

_PEOPLE, _SCORES = PAGE_SECTIONS["people"], PAGE_SECTIONS["scores"]
_METHODS = ("methods.txt", PAGE_SECTIONS["methods"])
_CASE_MIX = (table_file("case_mix"),)
_SUBGROUPS = (table_file("subgroups"),)

ITEMS = (
    Item(
        "1",
        "Title",
        "Title",
        BOTH,
        "Name the target population and the outcome.",
        _describe_title,
        (PAGE,),
    ),
    Item("2", "Abstract", "Abstract", BOTH, "Use TRIPOD+AI for Abstracts."),
    Item(
        "3a",
        "Introduction",
        "Background",
        BOTH,
        "Healthcare context, rationale, and existing models.",
    ),
    Item(
        "3b",
        "Introduction",
        "Background",
        BOTH,
        "Target population, purpose in care, and intended users.",
    ),
    Item(
        "3c",
        "Introduction",
        "Background",
        BOTH,
        "Known health inequalities between groups.",
    ),
    Item(
        "4",
        "Introduction",
        "Objectives",
        BOTH,
        "Objectives of the study.",
        _describe_objective,
        _METHODS,
    ),
    Item(
        "5a",
        "Methods",
        "Data",
        BOTH,
        "Sources of the data, why these, and how representative they are.",
    ),
    Item("5b", "Methods", "Data", BOTH, "Dates of recruitment and follow-up."),
    Item(
        "6a",
        "Methods",
        "Participants",
        BOTH,
        "Setting, and location of the centres.",
        _count_sites,
        (table_file("demographics"),),
    ),
    Item(
        "6b",
        "Methods",
        "Participants",
        BOTH,
        "Eligibility criteria of the study that recruited.",
        _describe_sample,
        (table_file("flow"), _PEOPLE),
    ),
    Item("6c", "Methods", "Participants", BOTH, "Treatments, if relevant."),
    Item(
        "7",
        "Methods",
        "Data preparation",
        BOTH,
        "Processing and quality control of the images before this run.",
        _describe_missing_values,
        (_PEOPLE, table_file("quality")),
    ),
    Item(
        "8a",
        "Methods",
        "Outcome",
        BOTH,
        "How and when the outcome was assessed, and why it was chosen.",
        _describe_outcome,
        _METHODS,
    ),
    Item("8b", "Methods", "Outcome", BOTH, "Who assessed the outcome."),
    Item("8c", "Methods", "Outcome", BOTH, "Blinding of the assessment."),
    Item(
        "9a",
        "Methods",
        "Predictors",
        DEVELOPMENT,
        "Why these measures.",
        _describe_predictors,
        _METHODS,
    ),
    Item(
        "9b",
        "Methods",
        "Predictors",
        BOTH,
        "Acquisition and processing of the images, and blinding.",
        _describe_measures,
        _METHODS,
    ),
    Item(
        "9c",
        "Methods",
        "Predictors",
        BOTH,
        "Who measured, if measurement needs judgement.",
    ),
    Item(
        "10",
        "Methods",
        "Sample size",
        BOTH,
        "Why the size was sufficient.",
        _describe_learning,
        (table_file("learning_curve"), _PEOPLE),
    ),
    Item(
        "11",
        "Methods",
        "Missing data",
        BOTH,
        "Why data are missing.",
        _describe_missing_values,
        _METHODS,
    ),
    Item(
        "12a",
        "Methods",
        "Analytical methods",
        DEVELOPMENT,
        "",
        _describe_design,
        _METHODS,
    ),
    Item(
        "12b",
        "Methods",
        "Analytical methods",
        DEVELOPMENT,
        "",
        _describe_steps,
        _METHODS,
    ),
    Item(
        "12c",
        "Methods",
        "Analytical methods",
        DEVELOPMENT,
        "Why this model.",
        _name_models,
        _METHODS,
    ),
    Item(
        "12d",
        "Methods",
        "Analytical methods",
        BOTH,
        "How differences between centres were handled.",
        _describe_clusters,
        (*_METHODS, table_file("fold_scores")),
    ),
    Item(
        "12e",
        "Methods",
        "Analytical methods",
        BOTH,
        "Why these measures of performance; clinical utility.",
        _name_scores,
        (*_METHODS, table_file("intervals")),
    ),
    Item(
        "12f",
        "Methods",
        "Analytical methods",
        EVALUATION,
        "",
        "The model was not updated.",
        _METHODS,
    ),
    Item(
        "12g",
        "Methods",
        "Analytical methods",
        EVALUATION,
        "",
        "The stored model was applied by brainlsap without any change.",
        _METHODS,
    ),
    Item(
        "13",
        "Methods",
        "Class imbalance",
        BOTH,
        "Why, and whether predictions were recalibrated.",
        _describe_prior,
        _METHODS,
    ),
    Item(
        "14",
        "Methods",
        "Fairness",
        BOTH,
        "Approaches to fairness, and why.",
        _name_subgroups,
        _SUBGROUPS,
    ),
    Item(
        "15",
        "Methods",
        "Model output",
        DEVELOPMENT,
        "Why classes or probabilities are used.",
        _describe_output,
        ("predictions.tsv", *_METHODS),
    ),
    Item(
        "16",
        "Methods",
        "Training versus evaluation",
        BOTH,
        "Differences in setting, eligibility and outcome.",
        lambda evaluation: "Case mix is compared." if is_external(evaluation) else "",
        _CASE_MIX,
    ),
    Item("17", "Methods", "Ethical approval", BOTH, "Committee, and consent."),
    Item("18a", "Open science", "Funding", BOTH, "Source and role of funders."),
    Item("18b", "Open science", "Conflicts of interest", BOTH, "Of all authors."),
    Item("18c", "Open science", "Protocol", BOTH, "Where it is, or that none is."),
    Item("18d", "Open science", "Registration", BOTH, "Register and number."),
    Item("18e", "Open science", "Data sharing", BOTH, "Where the data are."),
    Item(
        "18f",
        "Open science",
        "Code sharing",
        BOTH,
        "Where your own code is.",
        _name_version,
        ("settings.json",),
    ),
    Item(
        "19",
        "Patient and public involvement",
        "Patient and public involvement",
        BOTH,
        "Involvement, or that there was none.",
    ),
    Item(
        "20a",
        "Results",
        "Participants",
        BOTH,
        "People who were left out before this run.",
        _describe_sample,
        (table_file("flow"), _PEOPLE),
    ),
    Item(
        "20b",
        "Results",
        "Participants",
        BOTH,
        "Key dates and treatments.",
        _describe_size,
        (table_file("demographics"),),
    ),
    Item(
        "20c",
        "Results",
        "Participants",
        EVALUATION,
        "",
        "Training and test participants side by side.",
        _CASE_MIX,
    ),
    Item(
        "21",
        "Results",
        "Model development",
        BOTH,
        "",
        lambda evaluation: _describe_folds(evaluation) or _describe_size(evaluation),
        (table_file("fits"), table_file("classes")),
    ),
    Item(
        "22",
        "Results",
        "Model specification",
        DEVELOPMENT,
        "Where the fitted model is (`brainlsap fit` writes it), and who may use it.",
        _name_version,
        ("settings.json", *_METHODS),
    ),
    Item(
        "23a",
        "Results",
        "Model performance",
        BOTH,
        "Key subgroups.",
        _describe_performance,
        (_SCORES, table_file("intervals"), *_SUBGROUPS),
    ),
    Item(
        "23b",
        "Results",
        "Model performance",
        BOTH,
        "Differences between centres, if examined.",
        _describe_clusters,
        (table_file("fold_scores"), *_SUBGROUPS),
    ),
    Item(
        "24",
        "Results",
        "Model updating",
        EVALUATION,
        "",
        "The model was not updated.",
        _METHODS,
    ),
    Item(
        "25",
        "Discussion",
        "Interpretation",
        BOTH,
        "Interpretation in the light of earlier studies, and fairness.",
    ),
    Item(
        "26",
        "Discussion",
        "Limitations",
        BOTH,
        "Limitations and their effects; the first screen of the page names some.",
    ),
    Item(
        "27a",
        "Discussion",
        "Usability in current care",
        DEVELOPMENT,
        "What to do with poor or missing input.",
    ),
    Item(
        "27b",
        "Discussion",
        "Usability in current care",
        DEVELOPMENT,
        "What users must do, and the expertise that they need.",
    ),
    Item(
        "27c",
        "Discussion",
        "Usability in current care",
        BOTH,
        "Next steps, and where the model may be applied.",
    ),
)
"""The 52 items, in the order of the statement."""


def checklist_table(evaluation: Evaluation, files: Collection[str]) -> pd.DataFrame:
    """Return the items of TRIPOD+AI with what a run answers, and where.

    Parameters
    ----------
    evaluation : Evaluation
        For example from :func:`brainlsap.report.read_results`.
    files : collection of str
        Files of the report, as paths in its folder, and sections of its page
        ("report.html#people").

    Returns
    -------
    DataFrame
        item, section, topic, state ("answered", "partly answered", "for the authors",
        "not applicable"), value, where, and the authors write. The last row says what
        the table is.
    """
    study = EVALUATION if is_external(evaluation) else DEVELOPMENT
    rows = []
    for item in ITEMS:
        row = {"item": item.number, "section": item.section, "topic": item.topic}
        if item.study not in (BOTH, study):
            rows.append(row | {"state": NOT_APPLICABLE, "value": f"for {item.study}"})
            continue
        value = item.answer or ""
        if callable(value):
            value = value(evaluation)
        places = [place for place in item.places if place in files]
        state = AUTHORS
        if value and places:
            state = PARTLY if item.to_write else ANSWERED
            row |= {"value": value, "where": "; ".join(places)}
        rows.append(row | {"state": state, "the authors write": item.to_write})
    rows.append({"item": "about", "value": ABOUT})
    columns = ["item", "section", "topic", "state", "value", "where"]
    return pd.DataFrame(rows, columns=[*columns, "the authors write"]).fillna("")
