"""Class priors: the class shares that the probabilities of a classifier assume.

By Bayes' rule, the probability of a class depends on the share of this class in the
population, the prior. A fit with balanced class weights learns probabilities for equal
shares. :func:`change_prior` converts them to any other shares.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from brainlsap.exceptions import ParameterError

TRAINING = "training"
BALANCED = "balanced"

ClassPrior = str | Mapping[Any, float]
"""`TRAINING`, `BALANCED`, or the share of every class by name."""

# Largest deviation of the sum of shares from 1; shares may be rounded to two digits.
_SUM_TOLERANCE = 0.01


def class_shares(y: Sequence | np.ndarray) -> np.ndarray:
    """Return the share of each class among scans, classes in sorted order.

    Examples
    --------
    >>> class_shares(["AD", "CN", "CN", "CN"])
    array([0.25, 0.75])
    """
    _, counts = np.unique(np.asarray(y), return_counts=True)
    return counts / counts.sum()


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
        Share of each class among the training scans, from :func:`class_shares`.

    Raises
    ------
    ParameterError
        If `class_prior` is another text, or its shares lack a class, are not positive,
        or do not sum to 1.
    """
    names = [str(name) for name in classes]
    if isinstance(class_prior, Mapping):
        shares = {str(name): share for name, share in class_prior.items()}
        missing = [name for name in names if name not in shares]
        if missing:
            raise ParameterError(
                f"class_prior has no share of {', '.join(missing)}; it names "
                f"{', '.join(shares) or 'no class'}. Give a share of each of "
                f"{', '.join(names)}."
            )
        try:
            values = np.array([float(share) for share in shares.values()])
        except (TypeError, ValueError):
            values = np.array([np.nan])
        if not (values > 0).all() or abs(values.sum() - 1) > _SUM_TOLERANCE:
            given_shares = ", ".join(
                f"{name}={share}" for name, share in shares.items()
            )
            raise ParameterError(
                "class_prior must have shares above 0 that sum to 1; got "
                f"{given_shares}."
            )
        prior = np.array([float(shares[name]) for name in names])
        return prior / prior.sum()
    if class_prior == TRAINING:
        return np.array(training_shares, dtype=np.float64)
    if class_prior == BALANCED:
        return np.full(len(names), 1 / len(names))
    raise ParameterError(
        f"class_prior must be {TRAINING!r}, {BALANCED!r}, or the share of every class "
        f"as {{class: share}}; got {class_prior!r}."
    )


def change_prior(
    probability: np.ndarray, old_prior: np.ndarray, new_prior: np.ndarray
) -> np.ndarray:
    """Convert probabilities to other class shares by Bayes' rule.

    Parameters
    ----------
    probability : array of shape (n_scans, n_classes)
        Probabilities that assume the class shares `old_prior`.
    old_prior, new_prior : arrays of shape (n_classes,)

    Examples
    --------
    >>> change_prior(np.array([[0.5, 0.5]]), np.array([0.5, 0.5]), np.array([0.9, 0.1]))
    array([[0.9, 0.1]])
    """
    if np.array_equal(old_prior, new_prior):
        return probability
    joint = probability * (new_prior / old_prior)
    return joint / joint.sum(axis=1, keepdims=True)


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
        self.training_shares_ = class_shares(y)
        self.learned_prior_ = self.training_shares_
        if is_balanced:
            n_classes = len(self.classes_)
            self.learned_prior_ = np.full(n_classes, 1 / n_classes)
        self.class_prior_ = resolve_class_prior(
            class_prior, self.classes_, self.training_shares_
        )

    def _assume_prior(self, probability: np.ndarray) -> np.ndarray:
        """Convert probabilities of the fit to the assumed class shares."""
        return change_prior(probability, self.learned_prior_, self.class_prior_)

    def _prior_report(self) -> dict[str, float]:
        """Return the class shares that probabilities assume, by class."""
        names = [str(name) for name in self.classes_]
        return dict(zip(names, self.class_prior_.tolist(), strict=True))

    def choose_classes(self, probability: np.ndarray) -> np.ndarray:
        """Return the index in `classes_` of the class to predict for each row.

        Parameters
        ----------
        probability : array of shape (n_scans, n_classes)
            Probabilities from `predict_proba`.
        """
        fit_probability = probability * (self.learned_prior_ / self.class_prior_)
        return fit_probability.argmax(axis=1)
