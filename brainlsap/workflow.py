"""One study from a cohort to its report: what `brainlsap run` and `demo` do."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from joblib import hash as hash_of

from brainlsap.data import Cohort, quality_table
from brainlsap.data.cohort import check_cohort_given
from brainlsap.data.covariates import STAGE_OF_WORD
from brainlsap.data.participants import find_absent
from brainlsap.evaluation import (
    Evaluation,
    cross_validate,
    leave_one_out_splits,
    make_models,
    permutation_null,
    rank_regions,
    region_properties,
)
from brainlsap.evaluation.confounds import find_covariate_column
from brainlsap.evaluation.cross_validation import split_role
from brainlsap.evaluation.models import NESTED_RIDGES
from brainlsap.evaluation.results import data_hash, to_jsonable
from brainlsap.exceptions import CohortError, ParameterError
from brainlsap.files import lock_folder
from brainlsap.findings import CLASSES, LEFT_OUT, OTHER_CLASSES, Finding
from brainlsap.report import check_results_folder, write_report
from brainlsap.report.report import check_same_study

__all__ = ["MERGED_CLASSES", "merge_classes", "run_study"]

MERGED_CLASSES: dict[str, dict[str, tuple[str, ...]]] = {
    "5-to-3": {"CN": ("CN", "SMC"), "MCI": ("EMCI", "LMCI"), "AD": ("AD",)},
    "5-to-2": {"unimpaired": ("CN", "SMC"), "impaired": ("EMCI", "LMCI", "AD")},
    "cn-or-ad": {"CN": ("CN",), "AD": ("AD",)},
    "early-or-late": {"early": ("CN", "SMC", "EMCI"), "late": ("LMCI", "AD")},
}
"""Fewer classes out of five stages: each new class in order, and what it merges."""


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
    merged_classes: str | Mapping[str, Sequence[str]] | None = None,
    harmonize: str | None = None,
    regress_out: str | Sequence[str] = (),
    n_permutations: int = 200,
    preset: str = "default",
    n_jobs: int | None = None,
    verbose: bool = True,
    title: str | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> Evaluation:
    """Cross-validate models and controls, rank regions, and write the report.

    Every fit of the study, those to permuted labels included, goes through the same
    steps on the same folds. A study that was stopped continues where it stopped.

    Parameters
    ----------
    cohort : Cohort
        From :func:`brainlsap.load_cohort` or :func:`brainlsap.make_cohort`.
    out : str or Path
        Results folder: new, empty, or of an earlier study of the same data and
        settings, which is replaced when the new one is whole.
    models : str, sequence of str, or mapping of str to classifier
        Names of :data:`brainlsap.evaluation.MODELS`, or "all", "models", "controls";
        or classifiers of your own by name. The first is the one that the others are
        compared with (named ones stand in the order of MODELS). Regions are ranked by
        the ridge with a scale per region; without baselines, by the first with scales.
    baselines : bool
        Whether majority class, logistic regression, linear SVM and nested
        ridges (no network, one scale, a scale per region, the choice among them as
        "LSAP-R") run through the same folds.
    cv : int, splitter, or iterable of (train, test)
        As in :func:`brainlsap.cross_validate`, by default 5; folds never share a
        person.
    n_repeats : int
        How often folds are drawn anew.
    leave_out : str, optional
        Column such as `site`: each of its values is the test fold once. It goes
        without `cv`.
    random_state : int
        Seed of folds and models.
    merged_classes : str or mapping, optional
        As :func:`merge_classes` takes it.
    harmonize : str, optional
        Column of the site or scanner, taken out of the features by ComBat that is
        fitted on the training scans of each fold; scans of a site without training
        scans are left as they are, with a warning.
    regress_out : str or sequence of str
        Columns, such as age and sex, regressed out of the features inside the folds.
    n_permutations : int
        Fits of the ridge to permuted labels, for the p-values of the ranking; 0 for
        none.
    preset : {"default", "paper"}
        Settings of the LSAP models.
    n_jobs : int, optional
        Processes, as in :func:`brainlsap.cross_validate`; the result does not depend
        on it.
    verbose : bool
        Whether to show progress on standard error.
    title : str, optional
        Heading of the report.
    overwrite : bool
        Whether a report of other data or settings may be replaced, too.
    **settings
        Further settings of :class:`brainlsap.LSAPClassifier`.

    Returns
    -------
    Evaluation
        What the report was made of; the page is `out/report/report.html`.

    Raises
    ------
    BrainlsapError
        For input that cannot be used, or a report that would be lost; nothing is
        written then.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap import make_cohort
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> with tempfile.TemporaryDirectory() as place:
    ...     found = run_study(cohort, f"{place}/results", cv=2, n_epochs=4)
    >>> found.models[0]
    'LSAP-C'
    """
    check_cohort_given(cohort)
    models = {type(models).__name__: models} if hasattr(models, "fit") else models
    results = check_results_folder(out)
    cohort = merge_classes(cohort, merged_classes)
    own = models if isinstance(models, Mapping) else {}
    names = ({models} if isinstance(models, str) else {*models}) - {*own}
    names |= {"baselines"} if baselines else set()
    how_made = {"preset": preset, "random_state": random_state, **settings}
    made = {**own, **make_models([*names], **how_made)}
    cv = choose_folds(cohort, cv, leave_out)
    how: dict[str, Any] = {
        "random_state": random_state,
        "harmonize": harmonize,
        "regress_out": regress_out,
    }
    cv = cv if isinstance(cv, int) or hasattr(cv, "split") else list(cv)
    asked = to_jsonable((cohort.provenance.get("asked") or {}) | how | how_made)
    asked |= {
        "models": list(made),
        "cv": cv if isinstance(cv, int) else hash_of(cv),
        "n_repeats": n_repeats,
        "leave_out": leave_out,
        "n_permutations": n_permutations,
        "merged_classes": to_jsonable(cohort.provenance.get("merged_classes")),
        "feature": list(cohort.feature_names),
    }
    for name, model in own.items():
        known = to_jsonable(split_role(model)[0].get_params())
        asked |= {f"{name}__{key}": value for key, value in known.items()}
    if not overwrite:
        check_same_study(results, {"asked": asked}, data_hash(cohort))
    folds = results / "private" / "folds"
    with lock_folder(results):
        try:
            # the baselines are among the models already
            evaluation = cross_validate(
                made,
                cohort,
                cv,
                baselines=False,
                n_repeats=n_repeats,
                n_jobs=n_jobs,
                verbose=verbose,
                memory=folds,
                **how,
            )
            if not evaluation.scales.empty:
                ranking = rank_regions(evaluation)
                if n_permutations:
                    model, _ = made.get(NESTED_RIDGES[-1], (None, ""))
                    given = {"model": model, "random_state": random_state}
                    ranking = permutation_null(ranking, cohort, n_permutations, **given)
                facts = region_properties(cohort)
                ranking = ranking.merge(facts, on="region", how="left")
                evaluation = replace(evaluation, ranking=ranking)
            told = {"asked": asked, "leave_out": leave_out}
            evaluation = replace(evaluation, settings=evaluation.settings | told)
            write_report(
                evaluation,
                results,
                title=title,
                atlas=cohort.atlas,
                quality=quality_table(cohort).rename_axis("scan").reset_index(),
                overwrite=overwrite,
            )
        finally:
            for empty in (folds, results / "private", results):
                with suppress(OSError):  # not there, or not empty
                    empty.rmdir()
    return evaluation


def choose_folds(cohort: Cohort, cv: Any = None, leave_out: str | None = None) -> Any:
    """Return the folds of a study, or their number: 5 where nothing was asked for."""
    if leave_out is None:
        return 5 if cv is None else cv
    if cv is not None:
        raise ParameterError("leave_out= goes without cv= and other folds (--splits).")
    site = cohort.table[find_covariate_column(cohort.table, leave_out)]
    return leave_one_out_splits(site, cohort.groups)


def _merged_stages(
    classes: Sequence[str], merged: Mapping[str, Sequence[str]]
) -> Mapping[str, Sequence[str]]:
    """Return what stages merge, by the words that a cohort has for them.

    It may lack some stages; unchanged where it has none of them.
    """
    found = {}
    for new, old in merged.items():
        stages = {STAGE_OF_WORD[one.lower()] for one in old}
        found[new] = [
            one for one in classes if STAGE_OF_WORD.get(one.lower()) in stages
        ]
    return {new: some for new, some in found.items() if some} or merged


def merge_classes(
    cohort: Cohort, merged: str | Mapping[str, Sequence[str]] | None
) -> Cohort:
    """Return the cohort with its classes merged to fewer.

    Parameters
    ----------
    cohort : Cohort
        With the finer classes.
    merged : str, mapping of str to sequence of str, or None
        A name of :data:`MERGED_CLASSES`, or each new class in order and what it
        merges, also as text: "healthy=CN+SMC,ill=AD". Scans of classes that are in none
        are left out. None merges nothing.

    Returns
    -------
    Cohort
        With a note of what was merged and how many scans were left out.

    Raises
    ------
    ParameterError
        Where the name is unknown, or a class is in two new ones.
    CohortError
        Where the cohort has no such class.

    Examples
    --------
    >>> from brainlsap import make_cohort
    >>> merge_classes(make_cohort(40, atlas="desikan82"), "5-to-3").classes
    ('CN', 'MCI', 'AD')
    """
    if merged is None:
        return cohort
    if isinstance(merged, str) and "=" in merged:
        said = (part.partition("=") for part in merged.split(","))
        merged = {n.strip(): [*map(str.strip, old.split("+"))] for n, _, old in said}
    elif isinstance(merged, str):
        if merged not in MERGED_CLASSES:
            raise ParameterError(
                f"merged_classes must be {', '.join(MERGED_CLASSES)}, or such as "
                f"'healthy=CN+SMC,ill=AD'; got {merged!r}."
            )
        merged = _merged_stages(cohort.classes, MERGED_CLASSES[merged])
    parts = {name: list(old) for name, old in merged.items()}
    new_of = {one: name for name, old in parts.items() for one in old}
    listed = [one for old in parts.values() for one in old]
    if doubled := [one for one in listed if listed.count(one) > 1]:
        raise ParameterError(f"merged_classes has {doubled[0]!r} in two classes.")
    label = cohort.table["label"].map(new_of)
    kept = label.notna().to_numpy()
    found = cohort.table["label"].value_counts().reindex(cohort.classes)
    absent = find_absent(cohort.label_name, listed, found)
    if absent:
        raise CohortError("merged_classes= cannot be made", [*map(str, absent)])
    told = ", ".join(f"{' + '.join(old)} = {name}" for name, old in parts.items())
    if label.nunique() < 2:
        scans = f"{told} of scans of {', '.join(cohort.classes)}"
        raise CohortError(f"merged_classes= must leave two classes, got {scans}.")
    findings = [Finding(f"classes merged: {told}", kind=CLASSES)]
    if not kept.all():
        others = cohort.table["label"][~kept].value_counts()
        counted = ", ".join(f"{name} ({n})" for name, n in others.items())
        message = f"scans of other classes left out: {counted}"
        findings.append(Finding(message, LEFT_OUT, kind=OTHER_CLASSES))
    chosen = cohort.select(kept)
    return replace(
        chosen,
        table=chosen.table.assign(label=label[kept].to_numpy()),
        classes=tuple(parts),
        classes_ordered=True,  # they stand in the order given
        findings=(*cohort.findings, *findings),
        provenance=cohort.provenance | {"merged_classes": parts},
    )
