"""Run a whole study, from a cohort to its report, as `brainlsap run` does."""

import atexit
import gc
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from joblib import hash as hash_of

from brainlsap.arrays import match_class_name, to_jsonable
from brainlsap.data import Cohort, quality_table
from brainlsap.data.check import CohortCheck
from brainlsap.data.cohort import check_cohort_given
from brainlsap.data.covariates import STAGE_OF_WORD
from brainlsap.data.flow import OTHER_CLASS
from brainlsap.data.participants import (
    find_absent_class_faults,
    make_unordered_class_notes,
)
from brainlsap.data.quality import (
    list_swapped_scan_sentences,
    list_swapped_scans_by_value,
)
from brainlsap.data.stored_cohort import renew_order_findings
from brainlsap.evaluation import (
    Deconfounder,
    Evaluation,
    add_region_tests,
    choose_covariate_columns,
    choose_subgroup_columns,
    compare_regions,
    connectome_gain,
    leave_one_out_splits,
    make_models,
    rank_regions,
    region_properties,
)
from brainlsap.evaluation.confounds import STEP_OPTIONS, find_covariate_column
from brainlsap.evaluation.connectome_worth import MIN_PEOPLE_OF_CLASS
from brainlsap.evaluation.cross_validation import (
    choose_n_jobs,
    cross_validate_with_calls,
    list_baseline_names,
    make_cohort_splits,
    split_model_and_role,
)
from brainlsap.evaluation.learning_curve import learning_curve as compute_learning_curve
from brainlsap.evaluation.models import (
    ADDED_VALUE_MODELS,
    NESTED_RIDGES,
    CovariateClassifier,
)
from brainlsap.evaluation.ranking import (
    N_HALVES,
    N_SCALE_HALVES,
    fit_scale_table_and_half_correlations,
    list_half_correlations_by_statistic,
    make_half_correlation_table,
)
from brainlsap.evaluation.results import data_hash
from brainlsap.evaluation.splits import Split
from brainlsap.exceptions import CohortError, ParameterError
from brainlsap.files import lock_folder
from brainlsap.findings import (
    CLASSES,
    FAULT,
    LEFT_OUT,
    OTHER_CLASSES,
    Finding,
    list_grouped_finding_texts,
    make_fault_findings,
)
from brainlsap.options import check_whole_numbers, list_settings_option_names
from brainlsap.report import check_results_folder, write_report
from brainlsap.report.demographics import make_table1_settings
from brainlsap.report.report import check_same_study
from brainlsap.text import named_counts_text, option_name, option_text

__all__ = ["MERGED_CLASSES", "merge_classes", "run_study"]

MERGED_CLASSES: dict[str, dict[str, tuple[str, ...]]] = {
    "5-to-3": {"CN": ("CN", "SMC"), "MCI": ("EMCI", "LMCI"), "AD": ("AD",)},
    "5-to-2": {"unimpaired": ("CN", "SMC"), "impaired": ("EMCI", "LMCI", "AD")},
    "cn-or-ad": {"CN": ("CN",), "AD": ("AD",)},
    "early-or-late": {"early": ("CN", "SMC", "EMCI"), "late": ("LMCI", "AD")},
}
"""Named ways to merge five stages: each new class, in order, and its stages."""


def run_study(
    cohort: Cohort,
    out: str | Path,
    models: str | Sequence[str] | Mapping[str, Any] = ("LSAP-C",),
    *,
    baselines: bool = True,
    cv: int | Iterable | None = None,
    n_repeats: int = 1,
    leave_out: str | None = None,
    random_state: int = 0,
    merge_classes: str | Mapping[str, Sequence[str]] | None = None,
    harmonize: str | None = None,
    regress_out: str | Sequence[str] = (),
    covariates: str | Sequence[str] | None = None,
    subgroups: str | Sequence[str] | None = None,
    reference_class: str | None = None,
    n_permutations: int = 200,
    preset: str = "default",
    n_jobs: int | None = None,
    verbose: bool = True,
    title: str | None = None,
    learning_curve: bool = False,
    table1: str | Sequence[str] | None = None,
    table1_holm: bool = False,
    overwrite: bool = False,
    **classifier_settings: Any,
) -> Evaluation:
    """Cross-validate models and baselines, test and rank regions, and write a report.

    All fits use the same preprocessing and folds.
    An interrupted study continues where it stopped. Where every class has four people
    or more, :func:`brainlsap.evaluation.connectome_gain` says what the connectome adds.

    Parameters
    ----------
    cohort : Cohort
        From :func:`brainlsap.load_cohort` or :func:`brainlsap.make_cohort`.
    out : str or Path
        Results folder: new, empty, or of an earlier study of the same data and
        settings, which is replaced once the new one is complete.
    models : str, sequence of str, or mapping of str to classifier
        Names of :data:`brainlsap.evaluation.MODELS`, or "all", "models", "controls";
        or your own classifiers by name. The others are compared with the first; named
        models are in the order of MODELS. Regions are ranked by the ridge regression
        with a scale for each region; without baselines, by the first model with scales.
    baselines : bool
        Whether to run baselines on the same folds: majority class; logistic
        regression on global means, on selected features and on all features; linear
        SVM; and ridge regressions without diffusion, with one scale, with a scale for
        each region, and with the choice among these ("LSAP-R").
    cv : int, splitter, or iterable of (train, test)
        As in :func:`brainlsap.cross_validate`, by default 5; a person is never in two
        folds.
    n_repeats : int
        Number of cross-validations, each with new folds.
    leave_out : str, optional
        Column, for example `site`: each of its values is the test fold once. It cannot
        be combined with `cv`.
    random_state : int
        Seed of folds and models.
    merge_classes : str or mapping, optional
        Classes to merge, as in :func:`merge_classes`.
    harmonize : str, optional
        Column of the site or scanner. ComBat, fitted to the training scans of each
        fold, removes its effects from the features. Scans of a site without training
        scans are not changed, with a warning.
    regress_out : str or sequence of str
        Columns, for example age and sex, to regress out of the features inside folds.
    covariates : str or sequence of str, optional
        Columns of covariates. The report says whether brain data improve the prediction
        from these columns: LSAP-R, the covariates, and both run on the same folds. By
        default age and sex, if the table has them and baselines are run; none for an
        empty list.
    subgroups : str or sequence of str, optional
        Columns of groups in which the first model is scored, by default sex, age, site
        and scanner, as of :func:`brainlsap.evaluation.choose_subgroup_columns`.
    reference_class : str, optional
        Class, for example the controls, from whose training people alone `harmonize`
        and `regress_out` are learned (after `merge_classes`). They are applied to all;
        the regression returns W-scores (:class:`brainlsap.evaluation.Deconfounder`).
        Regions are tested without it, in a model of class and covariates together.
    n_permutations : int
        Number of permutations of labels among people, for the p-values of regions; 0
        for no p-values.
    preset : {"default", "paper"}
        Settings of the LSAP models.
    n_jobs : int, optional
        Number of processes, as in :func:`brainlsap.cross_validate`; results do not
        depend on it.
    verbose : bool
        Whether to show progress on standard error.
    title : str, optional
        Title of the report.
    learning_curve : bool
        Whether to fit the first model and LSAP-R also to 25, 50 and 75% of the training
        people of each fold, as :func:`brainlsap.evaluation.learning_curve`.
    table1 : str or sequence of str, optional
        Columns of the table of participants, as for
        :func:`brainlsap.report.demographics_table`.
    table1_holm : bool
        Whether the table of participants has Holm's p as well.
    overwrite : bool
        Whether to replace a report of other data or settings, too.
    **classifier_settings
        Further settings of :class:`brainlsap.LSAPClassifier`.

    Returns
    -------
    Evaluation
        The content of the report; the page is `out/report/report.html`.

    Raises
    ------
    BrainlsapError
        If the input cannot be used, or a report would be lost. Nothing is written.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap import make_cohort
    >>> cohort = make_cohort(20, atlas="desikan82")
    >>> brief = {"n_epochs": 4, "n_starts": 1, "baselines": False}
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     evaluation = run_study(cohort, f"{folder}/results", cv=2, **brief)
    >>> evaluation.models[0]  # doctest: +SKIP
    'LSAP-C'
    """
    check_cohort_given(cohort)
    if hasattr(models, "fit"):
        models = {type(models).__name__: models}
    results_folder = check_results_folder(out)
    cohort = _merge_classes_of(cohort, merge_classes)
    subgroup_columns = choose_subgroup_columns(cohort.table, subgroups)
    user_model_by_name = models if isinstance(models, Mapping) else {}
    model_settings = {
        "preset": preset,
        "random_state": random_state,
        **classifier_settings,
    }
    covariate_names: tuple[str, ...] = ()
    if baselines or covariates is not None:
        covariate_names = choose_covariate_columns(cohort.table, covariates)
    with _import_models_in_processes(choose_n_jobs(n_jobs, cohort)):
        model_by_name = _make_model_by_name(
            models,
            covariate_names,
            list_baseline_names(cohort) if baselines else (),
            **model_settings,
        )
        cv = resolve_folds_or_number(cohort, cv, leave_out)
        table1_settings = make_table1_settings(
            cohort.table, table1, is_corrected=table1_holm
        )
        if not isinstance(cv, int) and not hasattr(cv, "split"):
            cv = list(cv)
        analysis_options = _collect_analysis_options(
            models=list(model_by_name),
            preset=preset,
            cv=cv if isinstance(cv, int) else hash_of(cv),
            n_repeats=n_repeats,
            leave_out=leave_out,
            random_state=random_state,
            harmonize=harmonize,
            regress_out=regress_out,
            reference_class=reference_class,
            covariates=list(covariate_names),
            subgroups=list(subgroup_columns),
            merge_classes=cohort.provenance.get("merged_classes"),
            learning_curve=learning_curve or None,
            n_permutations=n_permutations,
        )
        study_options = to_jsonable(
            cohort.reading_options.to_jsonable() | model_settings
        )
        study_options |= analysis_options | {"feature": list(cohort.feature_names)}
        for model_name, model in user_model_by_name.items():
            model_parameters = to_jsonable(split_model_and_role(model)[0].get_params())
            study_options |= {
                f"{model_name}__{parameter_name}": parameter_value
                for parameter_name, parameter_value in model_parameters.items()
            }
        if not overwrite:
            compared_settings = {"study_options": study_options}
            check_same_study(
                results_folder, compared_settings, partial(data_hash, cohort)
            )
        finished_fits_path = results_folder / "private" / "folds"
        has_all_fits = False
        with lock_folder(results_folder):
            try:
                ridge_classifier, _ = model_by_name.get(NESTED_RIDGES[-1], (None, ""))
                deconfounder = Deconfounder(harmonize, regress_out, reference_class)
                evaluation, result_iterator = cross_validate_with_calls(
                    _make_call_by_table(
                        cohort, deconfounder, ridge_classifier, random_state
                    ),
                    model_by_name,
                    cohort,
                    cv,
                    baselines=False,  # They are among the estimators.
                    n_repeats=n_repeats,
                    random_state=random_state,
                    harmonize=harmonize,
                    regress_out=regress_out,
                    reference_class=reference_class,
                    n_jobs=n_jobs,
                    verbose=verbose,
                    memory=finished_fits_path,
                )
                has_all_fits = True
                evaluation, scan_quality_table = _make_evaluation_and_quality_table(
                    evaluation,
                    cohort,
                    result_iterator,
                    n_permutations=n_permutations,
                    random_state=random_state,
                )
                if learning_curve:
                    curve_table = _compute_learning_curve_table(
                        cohort,
                        evaluation,
                        model_by_name,
                        make_cohort_splits(cohort, cv, random_state, n_repeats),
                        n_jobs=n_jobs,
                        verbose=verbose,
                        memory_folder=finished_fits_path,
                    )
                    evaluation = replace(evaluation, learning_curve=curve_table)
                # The evaluation's own record of steps, folds and models comes first.
                study_settings = analysis_options | evaluation.settings["steps"]
                study_settings |= evaluation.settings
                study_settings |= {"study_options": study_options} | table1_settings
                for swapped_sentence in list_swapped_scan_sentences(
                    list_swapped_scans_by_value(scan_quality_table["swapped"])
                ):
                    warnings.warn(swapped_sentence, stacklevel=2)
                evaluation = replace(evaluation, settings=study_settings)
                write_report(
                    evaluation,
                    results_folder,
                    title=title,
                    atlas=cohort.atlas,
                    quality=scan_quality_table,
                    overwrite=overwrite,
                    n_jobs=n_jobs,
                )
            except KeyboardInterrupt as interruption:
                if has_all_fits:
                    interruption.add_note(
                        "All fits of the cross-validation are stored."
                    )
                raise
            finally:
                _remove_empty_folders(
                    finished_fits_path, results_folder / "private", results_folder
                )
    return evaluation


@contextmanager
def _import_models_in_processes(n_jobs: int | None) -> Iterator[None]:
    """Start the processes of a study, which import what fits need, beside this one.

    This one does not wait for them: it audits the cohort meanwhile.
    """
    n_processes = effective_n_jobs(n_jobs)
    import_calls = [delayed(_import_models)()] * n_processes
    import_iterator = iter(())
    if n_processes > 1:
        import_iterator = Parallel(n_jobs, return_as="generator")(import_calls)
    try:
        yield
    finally:
        # Wait for them if something was refused. The first fit tells what failed here.
        with suppress(Exception):
            deque(import_iterator, maxlen=0)


def _import_models() -> None:
    """Import what fits need: this module and the models."""
    import_module("brainlsap.model")
    # At its end a process looks for cycles in all that it has imported, and the study
    # waits for that.
    atexit.register(gc.freeze)


def _collect_analysis_options(**value_by_option: object) -> dict[str, Any]:
    """Return the options of a study that change results, as they were used.

    Raises TypeError unless they are those of the table of options, and ParameterError
    if a whole number is wrong.
    """
    # Folds of a table are in `cv`, baselines are among the models.
    expected_name_set = {*list_settings_option_names("study", changes_results=True)}
    expected_name_set -= {"splits", "baselines"}
    if wrong_names := expected_name_set ^ value_by_option.keys():
        raise TypeError(
            "analysis_options in run_study must contain exactly the options that have "
            "changes_results=True in OPTIONS (recipient 'study'). These options are in "
            f"only one of the two places: {sorted(wrong_names)}. Add each option to "
            "analysis_options, or correct its entry of OPTIONS."
        )
    # Folds of the user's own are recorded in `cv` as text.
    check_whole_numbers(
        {
            option_name: option_value
            for option_name, option_value in value_by_option.items()
            if not (option_name == "cv" and isinstance(option_value, str))
        }
    )
    return to_jsonable(value_by_option)


def _make_model_by_name(
    models: str | Sequence[str] | Mapping[str, Any],
    covariate_names: Sequence[str],
    baseline_names: Sequence[str],
    **model_settings: Any,
) -> dict[str, Any]:
    """Return the models of a study by name: the user's own, named ones, baselines."""
    user_model_by_name = models if isinstance(models, Mapping) else {}
    model_names = ({models} if isinstance(models, str) else {*models}) - {
        *user_model_by_name
    }
    model_names |= {*baseline_names}
    if covariate_names:
        model_names |= {*ADDED_VALUE_MODELS}
    model_by_name = make_models([*model_names], **model_settings)
    for estimator, _ in model_by_name.values():
        if isinstance(estimator, CovariateClassifier):
            estimator.set_params(covariate_names=tuple(covariate_names))
    return {**user_model_by_name, **model_by_name}


def _remove_empty_folders(*folders: Path) -> None:
    """Remove folders that were made for a run and hold nothing."""
    for folder in folders:
        with suppress(OSError):  # It does not exist, or is not empty.
            folder.rmdir()


def _make_call_by_table(
    cohort: Cohort, deconfounder: Deconfounder, ridge_classifier: Any, random_state: int
) -> dict[str, Any]:
    """Return calls by name that compute tables of the whole cohort, the longest first.

    They need no result of the cross-validation.
    """
    seed = random_state
    return {
        "scales": delayed(fit_scale_table_and_half_correlations)(
            cohort,
            deconfounder,
            ridge_classifier,
            n_halves=N_SCALE_HALVES,
            random_state=seed,
        ),
        "gain": delayed(_compute_connectome_gain_table)(
            cohort, deconfounder, ridge_classifier, seed
        ),
        "quality": delayed(quality_table)(cohort),
        "half tests": delayed(list_half_correlations_by_statistic)(
            cohort, deconfounder, range(N_HALVES), seed
        ),
    }


def _make_evaluation_and_quality_table(
    evaluation: Evaluation,
    cohort: Cohort,
    name_result_pairs: Iterable[tuple[str, Any]],
    *,
    n_permutations: int,
    random_state: int,
) -> tuple[Evaluation, pd.DataFrame]:
    """Return the evaluation with tables of the whole cohort, and that of its quality.

    This process tests regions while others compute the results of the table calls.
    """
    region_test_table = compare_regions(
        cohort, evaluation, n_permutations=n_permutations, random_state=random_state
    )
    # Load the libraries of figures while other processes compute.
    import_module("brainlsap.report.page")
    result_by_name = dict(name_result_pairs)
    scale_table, scale_correlations = result_by_name["scales"]
    scan_quality_table = result_by_name["quality"]
    evaluation = replace(
        evaluation,
        region_tests=region_test_table,
        replicability=make_half_correlation_table(
            [result_by_name["half tests"], scale_correlations]
        ),
        connectome_gain=result_by_name["gain"],
    )
    if evaluation.scales.empty:
        return evaluation, scan_quality_table
    ranking_table = rank_regions(evaluation)
    if n_permutations:
        ranking_table = add_region_tests(ranking_table, region_test_table)
    for column_table in (scale_table, region_properties(cohort)):
        ranking_table = ranking_table.merge(column_table, on="region", how="left")
    return replace(evaluation, ranking=ranking_table), scan_quality_table


def _compute_connectome_gain_table(
    cohort: Cohort, deconfounder: Deconfounder, ridge_classifier: Any, random_state: int
) -> pd.DataFrame | None:
    """Return the gain of the connectome, or None if a class has too few people."""
    people_count_series = cohort.table.groupby("label")["participant"].nunique()
    if people_count_series.min() < MIN_PEOPLE_OF_CLASS:
        return None
    return connectome_gain(
        cohort, deconfounder, ridge_classifier, random_state=random_state
    ).table


def _compute_learning_curve_table(
    cohort: Cohort,
    evaluation: Evaluation,
    model_by_name: Mapping[str, Any],
    splits: Sequence[Split],
    *,
    n_jobs: int | None,
    verbose: bool,
    memory_folder: Path,
) -> pd.DataFrame:
    """Return the learning curve of the first model and of LSAP-R."""
    study_settings = evaluation.settings
    model_names = [evaluation.models[0]]
    if "LSAP-R" in model_by_name and "LSAP-R" not in model_names:
        model_names.append("LSAP-R")
    return compute_learning_curve(
        cohort,
        {model_name: model_by_name[model_name] for model_name in model_names},
        splits,
        random_state=study_settings["random_state"],
        n_jobs=n_jobs,
        verbose=verbose,
        memory=memory_folder,
        **{name: study_settings["steps"][name] for name in STEP_OPTIONS},
    )


def resolve_folds_or_number(
    cohort: Cohort, cv: Any = None, leave_out: str | None = None
) -> Any:
    """Return the folds of a study, or their number, which is 5 by default."""
    if leave_out is None:
        return 5 if cv is None else cv
    if cv is not None:
        raise ParameterError(
            f"{option_text('leave_out')} cannot be combined with {option_text('cv')} "
            "or your own folds (--splits). Leave one of these options out."
        )
    fold_values = cohort.table[find_covariate_column(cohort.table, leave_out)]
    return leave_one_out_splits(fold_values, cohort.groups)


def merge_classes(
    cohort: Cohort, merged: str | Mapping[str, Sequence[str]] | None
) -> Cohort:
    """Return the cohort with some of its classes merged.

    Parameters
    ----------
    cohort : Cohort
        Cohort with the original classes.
    merged : str, mapping of str to sequence of str, or None
        A name of :data:`MERGED_CLASSES`, or each new class, in order, with the classes
        that it merges, also as text: "healthy=CN+SMC,ill=AD". Scans of other classes
        are left out. None merges nothing. The numbers 1 and 1.0 and the text "1" name
        the same class.

    Returns
    -------
    Cohort
        With a note on the merged classes and the number of scans left out.

    Raises
    ------
    ParameterError
        If the name is unknown, or a class is in two new ones.
    CohortError
        If the cohort does not have one of the classes.

    Examples
    --------
    >>> from brainlsap import make_cohort
    >>> merge_classes(make_cohort(40, atlas="desikan82"), "5-to-3").classes
    ('CN', 'MCI', 'AD')
    """
    if merged is None:
        return cohort
    label_merging = _merge_labels(
        cohort.table["label"], cohort.classes, cohort.label_name, merged
    )
    selected_scan_mask = label_merging.labels.notna().to_numpy()
    selected_cohort = cohort.select(selected_scan_mask, fate=OTHER_CLASS)
    return replace(
        selected_cohort,
        table=selected_cohort.table.assign(
            label=label_merging.labels[selected_scan_mask].to_numpy()
        ),
        classes=tuple(label_merging.originals_by_class),
        classes_ordered=True,  # They are in the order of `merged`.
        findings=(
            *renew_order_findings(cohort, unordered_classes=()),
            *label_merging.findings,
        ),
        provenance=cohort.provenance
        | {"merged_classes": label_merging.originals_by_class},
    )


class _LabelMerging(NamedTuple):
    """Merged labels, missing for other classes, with their origin and notes."""

    labels: pd.Series
    originals_by_class: dict[str, list[str]]
    findings: tuple[Finding, ...]


def _merge_labels(
    label_series: pd.Series,
    class_names: Sequence[str],
    label_name: str,
    merged: str | Mapping[str, Sequence[str]],
) -> _LabelMerging:
    """Return the labels of scans with classes merged as in `merge_classes`."""
    if isinstance(merged, str):
        merged = parse_originals_by_class(merged, class_names)
    originals_by_class = list_originals_by_class(merged, class_names)
    all_originals = [
        class_name
        for original_names in originals_by_class.values()
        for class_name in original_names
    ]
    for class_name in all_originals:
        if all_originals.count(class_name) > 1:
            raise ParameterError(
                f"{option_name('merge_classes')} has {class_name!r} in two classes. "
                f"Write {class_name!r} in one class only."
            )
    scan_count_series = label_series.value_counts().reindex(class_names, fill_value=0)
    absent_class_findings = find_absent_class_faults(
        label_name, all_originals, scan_count_series
    )
    if absent_class_findings:
        raise CohortError(
            f"{option_text('merge_classes')} cannot be applied because of these faults",
            absent_class_findings,
        )
    class_by_original = {
        class_name: new_class_name
        for new_class_name, original_names in originals_by_class.items()
        for class_name in original_names
    }
    new_label_series = label_series.map(class_by_original)
    merging_text = ", ".join(
        f"{new_class} = {' + '.join(original_names)}"
        for new_class, original_names in originals_by_class.items()
    )
    if new_label_series.nunique() < 2:
        raise CohortError(
            f"{option_text('merge_classes')} must result in at least two classes that "
            f"have scans; got {merging_text}. The scans have the classes "
            f"{', '.join(class_names)}."
        )
    findings = [Finding(f"classes merged: {merging_text}", kind=CLASSES)]
    left_out_labels = label_series[new_label_series.isna()].dropna()
    if len(left_out_labels):
        counts_text = named_counts_text(left_out_labels.value_counts().items())
        message = f"scans of other classes are left out: {counts_text}"
        findings.append(Finding(message, LEFT_OUT, kind=OTHER_CLASSES))
    return _LabelMerging(new_label_series, originals_by_class, tuple(findings))


def merge_classes_in_check(
    cohort_check: CohortCheck, merged: str | Mapping[str, Sequence[str]]
) -> CohortCheck:
    """Return the check of a refused study with merged classes.

    If the classes cannot be merged, this is one more fault.
    """
    labelled_scans = cohort_check.labelled_scans
    if labelled_scans is None:
        return cohort_check
    try:
        label_merging = _merge_labels(
            labelled_scans.table["label"],
            labelled_scans.classes,
            labelled_scans.label_name,
            merged,
        )
    except CohortError as error:
        merging_faults = [
            replace(
                fault_finding,
                message=f"{option_text('merge_classes')} cannot be applied: "
                f"{fault_finding.message}",
            )
            for fault_finding in make_fault_findings(error.faults)
        ] or [Finding.from_error(error)]
        findings = (*cohort_check.findings, *merging_faults)
        fault_texts = list_grouped_finding_texts(
            (finding for finding in findings if finding.severity == FAULT),
            cohort_check.folder,
        )
        return replace(cohort_check, findings=findings, faults=tuple(fault_texts))
    selected_scan_mask = label_merging.labels.notna()
    merged_scans = labelled_scans._replace(
        table=labelled_scans.table.assign(label=label_merging.labels)[
            selected_scan_mask
        ],
        classes=tuple(label_merging.originals_by_class),
    )
    n_people_texts = len(labelled_scans.list_count_texts())
    order_notes = make_unordered_class_notes(labelled_scans.classes)
    order_messages = [finding.message for finding in order_notes]
    other_findings = [
        finding
        for finding in cohort_check.findings
        if finding.message not in order_messages
    ]
    return replace(
        cohort_check,
        count_texts=(
            *merged_scans.list_count_texts(),
            *cohort_check.count_texts[n_people_texts:],
        ),
        findings=(*other_findings, *label_merging.findings),
        labelled_scans=merged_scans,
    )


# run_study has an argument with the name of the function.
_merge_classes_of = merge_classes


def list_originals_by_class(
    originals_by_class: Mapping[Any, Any], cohort_class_names: Sequence[str]
) -> dict[str, list[str]]:
    """Return the original classes of each new class, as the cohort names them.

    A single class may be given without a list, and 1, "1" and 1.0 are the same class.
    """
    return {
        str(new_class): [
            match_class_name(original_name, cohort_class_names)
            for original_name in (
                [original_names]
                if isinstance(original_names, str) or np.isscalar(original_names)
                else original_names
            )
        ]
        for new_class, original_names in originals_by_class.items()
    }


def parse_originals_by_class(
    merged_text: str, cohort_class_names: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    """Return each new class of a text and the classes that it merges."""
    if "=" in merged_text:
        originals_by_class: dict[str, list[str]] = {}
        for assignment in merged_text.split(","):
            new_class, _, names_text = assignment.partition("=")
            class_names = [class_name.strip() for class_name in names_text.split("+")]
            if not new_class.strip() or not all(class_names):
                raise ParameterError(
                    f"{option_name('merge_classes')} must be NEW=OLD or NEW=OLD+OLD; "
                    f"got {assignment.strip()!r}. Separate several new classes by "
                    "commas. To keep a class CN, write CN=CN."
                )
            originals_by_class.setdefault(new_class.strip(), []).extend(class_names)
        return originals_by_class
    if merged_text not in MERGED_CLASSES:
        raise ParameterError(
            f"{option_name('merge_classes')} must be one of "
            f"{', '.join(map(repr, MERGED_CLASSES))}, or text such as "
            f"'healthy=CN+SMC,ill=AD'; got {merged_text!r}."
        )
    return _match_originals_by_class(cohort_class_names, MERGED_CLASSES[merged_text])


def _match_originals_by_class(
    cohort_class_names: Sequence[str], stages_by_new_class: Mapping[str, Sequence[str]]
) -> Mapping[str, Sequence[str]]:
    """Return the classes of a cohort that each new class merges, for named stages.

    New classes of stages that the cohort does not have are left out. If it has none of
    them, the stages are returned unchanged.
    """
    originals_by_class: dict[str, Sequence[str]] = {}
    for new_class, stage_names in stages_by_new_class.items():
        group_stage_set = {
            STAGE_OF_WORD[class_name.lower()] for class_name in stage_names
        }
        original_names = [
            class_name
            for class_name in cohort_class_names
            if STAGE_OF_WORD.get(class_name.lower()) in group_stage_set
        ]
        if original_names:
            originals_by_class[new_class] = original_names
    return originals_by_class or stages_by_new_class
