"""The reporting checklist TRIPOD+AI: what a run answers, and what authors must write.

G. S. Collins et al. TRIPOD+AI statement: updated guidance for reporting clinical
prediction models that use regression or machine learning methods. BMJ 2024;385:e078378.
Numbers and topics of the items are those of the statement; its wording is not copied.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import pandas as pd

from brainlsap.data.covariates import find_acquisition_kind
from brainlsap.evaluation import Evaluation, subgroup_table
from brainlsap.report import tables
from brainlsap.report.conclusions import model_and_test_text, sample_text
from brainlsap.report.methods import collect_model_settings, has_connectome, prior_text
from brainlsap.report.paper_tables import table_file_path
from brainlsap.report.tables import is_external, is_simulated
from brainlsap.text import count_text, join_with_and

ANSWERED, PARTLY = "answered", "partly answered"
AUTHORS, NOT_APPLICABLE = "for the authors", "not applicable"
"""States of an item."""

DEVELOPMENT, EVALUATION, BOTH = "development", "evaluation", "both"

ABOUT = (
    "Numbers and topics are those of TRIPOD+AI (Collins et al., BMJ "
    "2024;385:e078378). Read the full wording of each item in the statement. The "
    "state of an item says whether this run answers the item, not whether a manuscript "
    "reports it."
)
"""Description of the file, in its last row."""

Answer = str | Callable[[Evaluation], str]


@dataclass(frozen=True)
class ChecklistItem:
    """One item of the checklist.

    Attributes
    ----------
    number, section, topic : str
        Those of the statement.
    study_kind : {"both", "development", "evaluation"}
        Studies that the item is for.
    authors_task : str
        Information that the authors must write; "" if the run gives all of it.
    answer : str, or callable, optional
        Information from the run, or `(evaluation) -> value`; "" for none.
    answer_places : tuple of str
        Files of the report, with a section of the page behind #, that say it. Only
        those that exist are named.
    """

    number: str
    section: str
    topic: str
    study_kind: str = BOTH
    authors_task: str = ""
    answer: Answer | None = None
    answer_places: tuple[str, ...] = ()


def _title_text(evaluation: Evaluation) -> str:
    cohort = evaluation.cohort
    study_kind = "evaluation" if is_external(evaluation) else "development"
    data_phrase = " in simulated data" if is_simulated(evaluation) else ""
    return (
        f"{study_kind} of a model that predicts {cohort.label_name} "
        f"({', '.join(cohort.classes)}){data_phrase}"
    )


def _objective_text(evaluation: Evaluation) -> str:
    if is_external(evaluation):
        return "A stored model was evaluated in other participants."
    return "Models were developed and validated internally by cross-validation."


def _site_count_text(evaluation: Evaluation) -> str:
    n_sites = _count_covariate_values(evaluation, "site")
    return count_text(n_sites, "site") if n_sites else ""


def _count_covariate_values(evaluation: Evaluation, covariate_name: str) -> int:
    """Return the number of values of a covariate, 0 where the cohort lacks it."""
    from brainlsap.report.demographics import find_covariate_series

    covariate_series = find_covariate_series(evaluation.cohort.table, covariate_name)
    return 0 if covariate_series is None else int(covariate_series.nunique())


def _sample_text(evaluation: Evaluation) -> str:
    return sample_text(evaluation)


def _outcome_text(evaluation: Evaluation) -> str:
    cohort = evaluation.cohort
    order_phrase = "in this order" if cohort.classes_ordered else "without an order"
    return f"{cohort.label_name}: {join_with_and(cohort.classes)}, {order_phrase}."


def _predictors_text(evaluation: Evaluation) -> str:
    cohort = evaluation.cohort
    connectome_text = "Connectome and " if has_connectome(evaluation) else ""
    return (
        f"{connectome_text}{tables.feature_text(cohort)} of all measured regions of "
        f"{cohort.atlas_name}. No features were selected before modelling."
    )


def _measures_text(evaluation: Evaluation) -> str:
    return tables.feature_text(evaluation.cohort)


def _missing_values_text(evaluation: Evaluation) -> str:
    return f"Measured: {tables.measured_regions_text(evaluation.cohort)}."


def _sample_size_text(evaluation: Evaluation) -> str:
    count_table = evaluation.cohort.class_counts()
    name_count_pairs = zip(
        count_table["class"], count_table["participants"], strict=True
    )
    class_sizes_text = ", ".join(
        f"{class_name} {n_people}" for class_name, n_people in name_count_pairs
    )
    return f"Participants by class: {class_sizes_text}."


def _learning_text(evaluation: Evaluation) -> str:
    learning_sentence = tables.learning_curve_sentence(evaluation)
    return f"{_sample_size_text(evaluation)} {learning_sentence}".strip()


def _design_text(evaluation: Evaluation) -> str:
    if is_external(evaluation):
        return ""
    return model_and_test_text(evaluation)


def _steps_text(evaluation: Evaluation) -> str:
    covariates_text = tables.regressed_covariates_text(evaluation)
    steps_sentence = "Features were standardised on the training scans."
    return (
        f"{steps_sentence} The features were adjusted for {covariates_text}."
        if covariates_text
        else steps_sentence
    )


def _model_names_text(evaluation: Evaluation) -> str:
    return f"Models: {', '.join(evaluation.models)}."


def _clusters_text(evaluation: Evaluation) -> str:
    left_out_column = evaluation.settings.get("leave_out")
    if left_out_column:
        return (
            f"All scans with the same value of {left_out_column} were held out "
            "together."
        )
    if is_external(evaluation):
        site_column = evaluation.settings["steps"].get("harmonize")
        if not site_column:
            return ""
        return (
            f"Features were adjusted by ComBat of {site_column}, which was fitted to "
            "the training participants."
        )
    if _count_covariate_values(evaluation, "site") < 2:
        return ""
    if "site" in tables.find_adjusted_covariate_kinds(evaluation):
        return "Features were adjusted for site."
    return "Folds were not divided by site, and features were not adjusted for site."


def _site_scores_text(evaluation: Evaluation) -> str:
    if evaluation.settings.get("leave_out"):
        return _clusters_text(evaluation)
    group_table = subgroup_table(evaluation)
    site_row_flags = [
        find_acquisition_kind(column_name) == "site"
        for column_name in group_table["column"]
    ]
    site_scores = group_table.loc[site_row_flags, "balanced_accuracy"]
    if not site_scores.notna().any():
        return ""
    return (
        f"The model was scored in {site_scores.notna().sum()} of "
        f"{count_text(len(site_scores), 'site')}."
    )


def _score_names_text(evaluation: Evaluation) -> str:
    return join_with_and(tables.find_title_by_score(evaluation).values())


def _prior_text(evaluation: Evaluation) -> str:
    main_model_name = evaluation.models[0]
    model_fit_table = evaluation.fits[evaluation.fits["model"] == main_model_name]
    sentences = [prior_text(evaluation)]
    if collect_model_settings(model_fit_table).get("class_weight") == "balanced":
        sentences.insert(
            0, f"{main_model_name} gives all classes the same total weight."
        )
    return " ".join(filter(None, sentences))


def _output_text(evaluation: Evaluation) -> str:
    prediction_table = evaluation.predictions
    main_model_row_mask = prediction_table["model"] == evaluation.models[0]
    if prediction_table[main_model_row_mask].filter(regex="^p_").isna().all(axis=None):
        return "The output is the class with the largest decision value."
    return "The output is a probability of every class, and the predicted class."


def _folds_text(evaluation: Evaluation) -> str:
    fit_table = evaluation.fits
    if is_external(evaluation) or "n_train_people" not in fit_table:
        return ""
    return (
        f"Models were trained on {fit_table['n_train_people'].mean():.0f} participants "
        f"per fold on average; {evaluation.cohort.n_participants} participants were "
        "tested."
    )


def _version_text(evaluation: Evaluation) -> str:
    version = evaluation.settings["version"]
    return (
        f"brainlsap {version}. The file settings.json contains every setting and "
        "version."
    )


def _performance_text(evaluation: Evaluation) -> str:
    model_name = evaluation.models[0]
    estimate_and_bounds = tables.score_interval_table(evaluation, model_name).loc[
        "balanced_accuracy"
    ]
    interval_phrase = tables.interval_text(*estimate_and_bounds)
    score_sentence = (
        f"{model_name}: balanced accuracy {interval_phrase}, 95% interval over "
        "participants."
    )
    return f"{score_sentence} {tables.scored_subgroups_sentences(evaluation)}".strip()


PAGE_FILE = "report.html"
PAGE_SECTIONS = {
    section_id: f"{PAGE_FILE}#{section_id}"
    for section_id in ("scores", "regions", "people", "methods")
}
"""Place of every section of the page, by its id."""

_PEOPLE, _SCORES = PAGE_SECTIONS["people"], PAGE_SECTIONS["scores"]
_METHODS = ("methods.txt", PAGE_SECTIONS["methods"])
_CASE_MIX = (table_file_path("case_mix"),)
_SUBGROUPS = (table_file_path("subgroups"),)

ITEMS = (
    ChecklistItem(
        "1",
        "Title",
        "Title",
        BOTH,
        "Name the target population and the outcome.",
        _title_text,
        (PAGE_FILE,),
    ),
    ChecklistItem(
        "2",
        "Abstract",
        "Abstract",
        BOTH,
        ("Use the checklist TRIPOD+AI for Abstracts."),
    ),
    ChecklistItem(
        "3a",
        "Introduction",
        "Background",
        BOTH,
        "State the healthcare context, the rationale, and existing models.",
    ),
    ChecklistItem(
        "3b",
        "Introduction",
        "Background",
        BOTH,
        "State the target population, the purpose in care, and the intended users.",
    ),
    ChecklistItem(
        "3c",
        "Introduction",
        "Background",
        BOTH,
        "State known health inequalities between groups.",
    ),
    ChecklistItem(
        "4",
        "Introduction",
        "Objectives",
        BOTH,
        "State the objectives of the study.",
        _objective_text,
        _METHODS,
    ),
    ChecklistItem(
        "5a",
        "Methods",
        "Data",
        BOTH,
        "State the sources of the data, the reasons for choosing them, and how "
        "representative they are.",
    ),
    ChecklistItem(
        "5b", "Methods", "Data", BOTH, ("State the dates of recruitment and follow-up.")
    ),
    ChecklistItem(
        "6a",
        "Methods",
        "Participants",
        BOTH,
        "State the setting and the location of the centres.",
        _site_count_text,
        (table_file_path("demographics"),),
    ),
    ChecklistItem(
        "6b",
        "Methods",
        "Participants",
        BOTH,
        "State the eligibility criteria of the study that recruited the participants.",
        _sample_text,
        (table_file_path("flow"), _PEOPLE),
    ),
    ChecklistItem(
        "6c",
        "Methods",
        "Participants",
        BOTH,
        ("State treatments, if they are relevant."),
    ),
    ChecklistItem(
        "7",
        "Methods",
        "Data preparation",
        BOTH,
        "Describe the processing and quality control of the images before this run.",
        _missing_values_text,
        (_PEOPLE, table_file_path("quality")),
    ),
    ChecklistItem(
        "8a",
        "Methods",
        "Outcome",
        BOTH,
        "State how and when the outcome was assessed, and why it was chosen.",
        _outcome_text,
        _METHODS,
    ),
    ChecklistItem("8b", "Methods", "Outcome", BOTH, "State who assessed the outcome."),
    ChecklistItem(
        "8c", "Methods", "Outcome", BOTH, "State whether the assessment was blinded."
    ),
    ChecklistItem(
        "9a",
        "Methods",
        "Predictors",
        DEVELOPMENT,
        "State why these measures were chosen.",
        _predictors_text,
        _METHODS,
    ),
    ChecklistItem(
        "9b",
        "Methods",
        "Predictors",
        BOTH,
        "Describe acquisition and processing of the images, and blinding.",
        _measures_text,
        _METHODS,
    ),
    ChecklistItem(
        "9c",
        "Methods",
        "Predictors",
        BOTH,
        "State who made the measurements, if these need judgement.",
    ),
    ChecklistItem(
        "10",
        "Methods",
        "Sample size",
        BOTH,
        "State why the sample size was sufficient.",
        _learning_text,
        (table_file_path("learning_curve"), _PEOPLE),
    ),
    ChecklistItem(
        "11",
        "Methods",
        "Missing data",
        BOTH,
        "State why data are missing.",
        _missing_values_text,
        _METHODS,
    ),
    ChecklistItem(
        "12a",
        "Methods",
        "Analytical methods",
        DEVELOPMENT,
        "",
        _design_text,
        _METHODS,
    ),
    ChecklistItem(
        "12b",
        "Methods",
        "Analytical methods",
        DEVELOPMENT,
        "",
        _steps_text,
        _METHODS,
    ),
    ChecklistItem(
        "12c",
        "Methods",
        "Analytical methods",
        DEVELOPMENT,
        "State why this model was chosen.",
        _model_names_text,
        _METHODS,
    ),
    ChecklistItem(
        "12d",
        "Methods",
        "Analytical methods",
        BOTH,
        "State why differences between centres were handled in this way.",
        _clusters_text,
        (*_METHODS, table_file_path("fold_scores")),
    ),
    ChecklistItem(
        "12e",
        "Methods",
        "Analytical methods",
        BOTH,
        "State why these measures of performance were chosen, and the clinical "
        "utility.",
        _score_names_text,
        (*_METHODS, table_file_path("intervals")),
    ),
    ChecklistItem(
        "12f",
        "Methods",
        "Analytical methods",
        EVALUATION,
        "",
        "The model was not updated.",
        _METHODS,
    ),
    ChecklistItem(
        "12g",
        "Methods",
        "Analytical methods",
        EVALUATION,
        "",
        "The stored model was applied by brainlsap without any change.",
        _METHODS,
    ),
    ChecklistItem(
        "13",
        "Methods",
        "Class imbalance",
        BOTH,
        "State why class imbalance was handled in this way, and whether predictions "
        "were recalibrated.",
        _prior_text,
        _METHODS,
    ),
    ChecklistItem(
        "14",
        "Methods",
        "Fairness",
        BOTH,
        "State why these groups were chosen, and other approaches to fairness.",
        tables.scored_subgroups_sentences,
        _SUBGROUPS,
    ),
    ChecklistItem(
        "15",
        "Methods",
        "Model output",
        DEVELOPMENT,
        "State why classes or probabilities are used.",
        _output_text,
        ("predictions.tsv", *_METHODS),
    ),
    ChecklistItem(
        "16",
        "Methods",
        "Training versus evaluation",
        BOTH,
        "State differences in setting, eligibility and outcome.",
        lambda evaluation: (
            ("The case mix of training and test is compared.")
            if is_external(evaluation)
            else ""
        ),
        _CASE_MIX,
    ),
    ChecklistItem(
        "17",
        "Methods",
        "Ethical approval",
        BOTH,
        ("Name the ethics committee, and state how consent was obtained."),
    ),
    ChecklistItem(
        "18a",
        "Open science",
        "Funding",
        BOTH,
        ("State the source of funding and the role of the funders."),
    ),
    ChecklistItem(
        "18b",
        "Open science",
        "Conflicts of interest",
        BOTH,
        ("State the conflicts of interest of all authors."),
    ),
    ChecklistItem(
        "18c",
        "Open science",
        "Protocol",
        BOTH,
        ("State where the protocol is, or that there is none."),
    ),
    ChecklistItem(
        "18d",
        "Open science",
        "Registration",
        BOTH,
        ("State the register and the registration number."),
    ),
    ChecklistItem(
        "18e",
        "Open science",
        "Data sharing",
        BOTH,
        ("State where the data are available."),
    ),
    ChecklistItem(
        "18f",
        "Open science",
        "Code sharing",
        BOTH,
        "State where your own code is available.",
        _version_text,
        ("settings.json",),
    ),
    ChecklistItem(
        "19",
        "Patient and public involvement",
        "Patient and public involvement",
        BOTH,
        "Describe the involvement, or state that there was none.",
    ),
    ChecklistItem(
        "20a",
        "Results",
        "Participants",
        BOTH,
        "State which people were left out before this run.",
        _sample_text,
        (table_file_path("flow"), _PEOPLE),
    ),
    ChecklistItem(
        "20b",
        "Results",
        "Participants",
        BOTH,
        "State key dates and treatments.",
        _sample_size_text,
        (table_file_path("demographics"),),
    ),
    ChecklistItem(
        "20c",
        "Results",
        "Participants",
        EVALUATION,
        "",
        "Training and test participants are compared in a table.",
        _CASE_MIX,
    ),
    ChecklistItem(
        "21",
        "Results",
        "Model development",
        BOTH,
        "",
        lambda evaluation: _folds_text(evaluation) or _sample_size_text(evaluation),
        (table_file_path("fits"), table_file_path("classes")),
    ),
    ChecklistItem(
        "22",
        "Results",
        "Model specification",
        DEVELOPMENT,
        "State where the fitted model is available (`brainlsap fit` writes it), and "
        "who may use it.",
        _version_text,
        ("settings.json", *_METHODS),
    ),
    ChecklistItem(
        "23a",
        "Results",
        "Model performance",
        BOTH,
        "State which subgroups are key, and discuss their performance.",
        _performance_text,
        (_SCORES, table_file_path("intervals"), *_SUBGROUPS),
    ),
    ChecklistItem(
        "23b",
        "Results",
        "Model performance",
        BOTH,
        "Discuss differences between centres, if these were examined.",
        _site_scores_text,
        (table_file_path("fold_scores"), *_SUBGROUPS),
    ),
    ChecklistItem(
        "24",
        "Results",
        "Model updating",
        EVALUATION,
        "",
        "The model was not updated.",
        _METHODS,
    ),
    ChecklistItem(
        "25",
        "Discussion",
        "Interpretation",
        BOTH,
        "Interpret the results in the light of earlier studies, and discuss fairness.",
    ),
    ChecklistItem(
        "26",
        "Discussion",
        "Limitations",
        BOTH,
        "Discuss limitations and their effects. The row Beware of the first screen "
        "contains those that this run detected.",
    ),
    ChecklistItem(
        "27a",
        "Discussion",
        "Usability in current care",
        DEVELOPMENT,
        "State how to handle input of low quality and missing input.",
    ),
    ChecklistItem(
        "27b",
        "Discussion",
        "Usability in current care",
        DEVELOPMENT,
        "State what users must do, and the expertise that they need.",
    ),
    ChecklistItem(
        "27c",
        "Discussion",
        "Usability in current care",
        BOTH,
        "State the next steps, and where the model may be applied.",
    ),
)
"""The 52 items, in the order of the statement."""


def checklist_table(
    evaluation: Evaluation, report_places: Collection[str]
) -> pd.DataFrame:
    """Return the items of TRIPOD+AI with what a run answers, and where.

    Parameters
    ----------
    evaluation : Evaluation
        For example from :func:`brainlsap.report.read_results`.
    report_places : collection of str
        Files of the report, as paths in its folder, and sections of its page
        ("report.html#people").

    Returns
    -------
    DataFrame
        item, section, topic, state ("answered", "partly answered", "for the authors",
        "not applicable"), value, where, and the authors write. The last row says what
        the table is.
    """
    study_kind = EVALUATION if is_external(evaluation) else DEVELOPMENT
    checklist_records = []
    for checklist_item in ITEMS:
        checklist_record = {
            "item": checklist_item.number,
            "section": checklist_item.section,
            "topic": checklist_item.topic,
        }
        if checklist_item.study_kind not in (BOTH, study_kind):
            checklist_records.append(
                checklist_record
                | {"state": NOT_APPLICABLE, "value": f"for {checklist_item.study_kind}"}
            )
            continue
        answer_text = checklist_item.answer or ""
        if callable(answer_text):
            answer_text = answer_text(evaluation)
        item_places = [
            item_place
            for item_place in checklist_item.answer_places
            if item_place in report_places
        ]
        item_state = AUTHORS
        if answer_text and item_places:
            item_state = PARTLY if checklist_item.authors_task else ANSWERED
            checklist_record |= {"value": answer_text, "where": "; ".join(item_places)}
        checklist_records.append(
            checklist_record
            | {"state": item_state, "the authors write": checklist_item.authors_task}
        )
    checklist_records.append({"item": "about", "value": ABOUT})
    column_names = ["item", "section", "topic", "state", "value", "where"]
    return pd.DataFrame(
        checklist_records, columns=[*column_names, "the authors write"]
    ).fillna("")
