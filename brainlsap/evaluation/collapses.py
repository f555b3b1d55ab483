"""Fewer classes out of five stages, by name, with what each merges."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from brainlsap._arrays import check_choice
from brainlsap.data import Cohort
from brainlsap.evaluation.records import FoldResult, ModelResult
from brainlsap.exceptions import ParameterError

COLLAPSES: dict[str, dict[str, tuple[str, ...]]] = {
    "5->3": {"CN": ("CN", "SMC"), "MCI": ("EMCI", "LMCI"), "AD": ("AD",)},
    "5->2": {"unimpaired": ("CN", "SMC"), "impaired": ("EMCI", "LMCI", "AD")},
    "CN or AD": {"CN": ("CN",), "AD": ("AD",)},
    "early or late": {"early": ("CN", "SMC", "EMCI"), "late": ("LMCI", "AD")},
}
"""Every collapse by name: its classes in order of stage, and the stages of each."""


def find_collapse(collapse: str | Mapping) -> dict[str, tuple[str, ...]]:
    """Return the classes of a collapse in order, and the stages that each merges.

    Parameters
    ----------
    collapse : str or mapping of str to sequence of str
        A name of :data:`COLLAPSES` (case, blanks and hyphens do not matter, and "to"
        stands for "->"), or the classes and what each merges.

    Returns
    -------
    dict of str to tuple of str

    Raises
    ------
    ParameterError
        Where the name is unknown, or a stage is in two classes.

    Examples
    --------
    >>> find_collapse("5-to-2")["unimpaired"]
    ('CN', 'SMC')
    """
    if isinstance(collapse, str):
        by_key = {_key(name): name for name in COLLAPSES}
        if _key(collapse) not in by_key:
            # a shell would take the ">" of "5->2" for the name of a file
            plain = [name.replace("->", "-to-").replace(" ", "-") for name in COLLAPSES]
            check_choice("collapse", collapse, plain)
        return COLLAPSES[by_key[_key(collapse)]]
    merged = {str(name): _stages(stages) for name, stages in collapse.items()}
    stages = [one for some in merged.values() for one in some]
    doubled = sorted({one for one in stages if stages.count(one) > 1})
    if doubled:
        raise ParameterError(f"collapse has the stage {doubled[0]!r} in two classes.")
    return merged


def collapse_cohort(cohort: Cohort, collapse: str | Mapping) -> Cohort:
    """Return the cohort with stages merged to fewer classes.

    Parameters
    ----------
    cohort : Cohort
        With the stages as classes.
    collapse : str or mapping of str to sequence of str
        A name of :data:`COLLAPSES`, or the classes and what each merges. Scans of
        stages that are in none are left out.

    Returns
    -------
    Cohort
        With a note that says what was merged and how many scans were left out.

    Raises
    ------
    ParameterError
        Where the name is unknown, a stage is in two classes, or no scan is left.

    Examples
    --------
    >>> from brainlsap.data import make_cohort
    >>> three = collapse_cohort(make_cohort(40, atlas="desikan82"), "5->3")
    >>> three.classes, three.notes[-1]
    (('CN', 'MCI', 'AD'), 'classes merged: CN + SMC = CN, EMCI + LMCI = MCI, AD = AD')
    """
    merged = find_collapse(collapse)
    class_of = {stage: name for name, stages in merged.items() for stage in stages}
    kept = np.isin(cohort.y.astype(str), list(class_of))
    if not kept.any():
        raise ParameterError(
            f"no scan has a class of the collapse ({', '.join(class_of)}); the cohort "
            f"has {', '.join(cohort.classes)}."
        )
    label = np.array([class_of.get(one, one) for one in cohort.y], dtype=object)
    told = ", ".join(f"{' + '.join(some)} = {name}" for name, some in merged.items())
    note = f"classes merged: {told}"
    if not kept.all():
        note += f"; {int((~kept).sum())} scans of other classes left out"
    # Classes of scans that are left out must stay named until the scans are gone.
    both = tuple(dict.fromkeys((*merged, *cohort.classes)))
    relabelled = replace(
        cohort,
        table=cohort.table.assign(label=label),
        classes=both,
        notes=(*cohort.notes, note),
        provenance=cohort.provenance
        | {"collapse": {name: list(stages) for name, stages in merged.items()}},
    )
    return replace(relabelled.select(kept), classes=tuple(merged))


def collapse_result(result: ModelResult, collapse: str | Mapping) -> ModelResult:
    """Return predictions of all stages as predictions of merged classes.

    Probabilities are added within a class; where stages are left out, those of the
    others are scaled to sum to 1. This asks a model of five stages a coarser question;
    a model that was fitted to merged classes may do better.

    Parameters
    ----------
    result : ModelResult
        One model over all folds.
    collapse : str or mapping of str to sequence of str
        As for :func:`collapse_cohort`.

    Returns
    -------
    ModelResult
        Test scans of stages that are left out are gone.

    Raises
    ------
    ParameterError
        As for :func:`collapse_cohort`, and where the model knows none of the stages
        of a class.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> cohort = make_cohort(60, atlas="desikan82")
    >>> result = cross_validate(DummyClassifier(), cohort, 3, baselines=False).main
    >>> collapse_result(result, "5->3").classes
    ('CN', 'MCI', 'AD')
    """
    merged = find_collapse(collapse)
    columns = {
        name: [result.classes.index(one) for one in stages if one in result.classes]
        for name, stages in merged.items()
    }
    empty = [name for name, places in columns.items() if not places]
    if empty:
        raise ParameterError(
            f"no stage of the class {empty[0]!r} is among the classes of the model "
            f"({', '.join(result.classes)})."
        )
    folds = tuple(_collapse_fold(fold, merged, columns) for fold in result.folds)
    return replace(result, folds=folds, classes=tuple(merged))


def _collapse_fold(
    fold: FoldResult,
    merged: Mapping[str, tuple[str, ...]],
    columns: Mapping[str, list[int]],
) -> FoldResult:
    class_of = {stage: name for name, stages in merged.items() for stage in stages}
    kept = np.isin(fold.truth.astype(str), list(class_of))
    added = np.stack(
        [fold.probability[kept][:, places].sum(axis=1) for places in columns.values()],
        axis=1,
    )
    total = added.sum(axis=1, keepdims=True)
    even = np.full_like(added, 1 / len(columns))
    return replace(
        fold,
        test=fold.test[kept],
        scans=fold.scans[kept],
        participants=fold.participants[kept],
        truth=np.array([class_of[one] for one in fold.truth[kept]], dtype=object),
        probability=np.where(total > 0, added / np.where(total > 0, total, 1), even),
        classes=tuple(merged),
    )


def _stages(stages: str | Sequence[str]) -> tuple[str, ...]:
    return (stages,) if isinstance(stages, str) else tuple(map(str, stages))


def _key(name: str) -> str:
    return "".join(name.lower().replace("->", "to").replace("-", " ").split())
