"""Class priors: the class shares that the probabilities of a classifier assume.

By Bayes' rule, the probability of a class depends on the share of this class in the
population, the prior. A fit with balanced class weights learns probabilities for equal
shares. :func:`change_prior` converts them to any other shares.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from brainlsap.arrays import match_class_name
from brainlsap.exceptions import ParameterError
from brainlsap.text import option_name

TRAINING = "training"
BALANCED = "balanced"

ClassPrior = str | Mapping[Any, float]
"""`TRAINING`, `BALANCED`, or the share of every class by name."""

# Largest deviation of the sum of shares from 1; shares may be rounded to two digits.
_SUM_TOLERANCE = 0.01


def compute_class_shares(y: Sequence | np.ndarray) -> np.ndarray:
    """Return the share of each class among scans, classes in sorted order.

    Examples
    --------
    >>> compute_class_shares(["AD", "CN", "CN", "CN"])
    array([0.25, 0.75])
    """
    _, class_counts = np.unique(np.asarray(y), return_counts=True)
    return class_counts / class_counts.sum()


def resolve_class_prior(
    class_prior: ClassPrior, classes: Sequence, training_shares: np.ndarray
) -> np.ndarray:
    """Return the share that `class_prior` gives to each class, in order of `classes`.

    Parameters
    ----------
    class_prior : {"training", "balanced"} or mapping of class to share
        A mapping may have more classes, because a fold may have no scan of one. The
        shares of `classes` are then scaled to sum to 1.
    classes : sequence
    training_shares : array of shape (n_classes,)
        Share of each class among the training scans, from :func:`compute_class_shares`.

    Raises
    ------
    ParameterError
        If `class_prior` is another text, or its shares lack a class, are not positive,
        or do not sum to 1.
    """
    class_names = [str(class_name) for class_name in classes]
    if isinstance(class_prior, Mapping):
        share_by_class = _match_class_shares(class_prior, class_names)
        missing_class_names = [
            class_name for class_name in class_names if class_name not in share_by_class
        ]
        if missing_class_names:
            raise ParameterError(
                f"{option_name('class_prior')} contains shares for "
                f"{', '.join(share_by_class) or 'no class'} but not for "
                f"{', '.join(missing_class_names)}. Give a share for each of the "
                f"classes {', '.join(class_names)}."
            )
        try:
            class_shares = np.array(
                [float(class_share) for class_share in share_by_class.values()]
            )
        except (TypeError, ValueError):
            class_shares = np.array([np.nan])
        if not (class_shares > 0).all() or abs(class_shares.sum() - 1) > _SUM_TOLERANCE:
            shares_text = ", ".join(
                f"{class_name}={class_share}"
                for class_name, class_share in share_by_class.items()
            )
            raise ParameterError(
                f"{option_name('class_prior')} must have shares above 0 that sum to "
                f"1; got {shares_text}."
            )
        prior_shares = np.array(
            [float(share_by_class[class_name]) for class_name in class_names]
        )
        return prior_shares / prior_shares.sum()
    if class_prior == TRAINING:
        return np.array(training_shares, dtype=np.float64)
    if class_prior == BALANCED:
        return np.full(len(class_names), 1 / len(class_names))
    raise ParameterError(
        f"{option_name('class_prior')} must be {TRAINING!r}, {BALANCED!r}, or "
        f"the share of every class as {{class: share}}; got {class_prior!r}."
    )


def _match_class_shares(
    class_prior: Mapping[Any, float], class_names: Sequence[str]
) -> dict[str, float]:
    """Return the shares by class, with the numbers of classes in one spelling."""
    share_by_class: dict[str, float] = {}
    for original_name, class_share in class_prior.items():
        class_name = match_class_name(original_name, class_names)
        if class_name in share_by_class:
            raise ParameterError(
                f"{option_name('class_prior')} contains two shares for the class "
                f"{class_name}. Give one share for each class."
            )
        share_by_class[class_name] = class_share
    return share_by_class


def change_prior(
    class_probabilities: np.ndarray, old_prior: np.ndarray, new_prior: np.ndarray
) -> np.ndarray:
    """Convert probabilities to other class shares by Bayes' rule.

    Parameters
    ----------
    class_probabilities : array of shape (n_scans, n_classes)
        Probabilities that assume the class shares `old_prior`.
    old_prior, new_prior : arrays of shape (n_classes,)

    Examples
    --------
    >>> change_prior(np.array([[0.5, 0.5]]), np.array([0.5, 0.5]), np.array([0.9, 0.1]))
    array([[0.9, 0.1]])
    """
    if np.array_equal(old_prior, new_prior):
        return class_probabilities
    reweighted_probabilities = class_probabilities * (new_prior / old_prior)
    return reweighted_probabilities / reweighted_probabilities.sum(
        axis=1, keepdims=True
    )


class ClassPriorMixin:
    """Class priors of a classifier.

    The probabilities of a classifier assume `class_prior_`. The predicted class does
    not: it is the most probable class under the class weights of the fit, and with
    balanced weights this rule maximises balanced accuracy. Under a prior that favours
    large classes, rare ones would hardly ever be predicted.

    Attributes
    ----------
    class_prior_ : array of shape (n_classes,)
        Shares that `predict_proba` assumes, in the order of `classes_`.
    learned_prior_ : array of shape (n_classes,)
        Shares that the probabilities of the fit assume.
    training_shares_ : array of shape (n_classes,)
        Shares among the training scans.
    """

    classes_: Any

    def _learn_prior(
        self, y: Sequence | np.ndarray, class_prior: ClassPrior, *, is_balanced: bool
    ) -> None:
        """Learn class shares; `is_balanced` if all classes had the same weight."""
        self.training_shares_ = compute_class_shares(y)
        self.learned_prior_ = self.training_shares_
        if is_balanced:
            n_classes = len(self.classes_)
            self.learned_prior_ = np.full(n_classes, 1 / n_classes)
        self.class_prior_ = resolve_class_prior(
            class_prior, self.classes_, self.training_shares_
        )

    def _reweight_probabilities(self, class_probabilities: np.ndarray) -> np.ndarray:
        """Convert probabilities of the fit to the assumed class shares."""
        return change_prior(class_probabilities, self.learned_prior_, self.class_prior_)

    def _share_by_class(self) -> dict[str, float]:
        """Return the class shares that probabilities assume, by class."""
        class_names = [str(class_name) for class_name in self.classes_]
        return dict(zip(class_names, self.class_prior_.tolist(), strict=True))

    def choose_class_indices(self, class_probabilities: np.ndarray) -> np.ndarray:
        """Return the index in `classes_` of the class to predict for each row.

        Parameters
        ----------
        class_probabilities : array of shape (n_scans, n_classes)
            Probabilities from `predict_proba`.
        """
        fit_prior_probabilities = class_probabilities * (
            self.learned_prior_ / self.class_prior_
        )
        return fit_prior_probabilities.argmax(axis=1)
