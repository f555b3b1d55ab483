"""Which class shares the probabilities of a classifier assume.

By Bayes' rule a probability holds for people among whom each class has a certain
share, the prior. A fit in which all classes weigh alike learns probabilities for equal
shares; :func:`change_prior` turns them into those for any other shares.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from brainlsap.exceptions import ParameterError

TRAINING, BALANCED = "training", "balanced"

ClassPrior = str | Mapping[Any, float]
"""`TRAINING`, `BALANCED`, or the share of every class by name."""

# Shares that were rounded to two digits still sum to 1.
_TOLERANCE = 0.01


def class_shares(y: Sequence | np.ndarray) -> np.ndarray:
    """Return the share of every class among scans, in the order of sorted classes.

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
    """Return the share of every class that `class_prior` names, in order of `classes`.

    Parameters
    ----------
    class_prior : {"training", "balanced"} or mapping of class to share
        A mapping may name further classes, as where a fold has no scan of one; the
        shares of those that are in `classes` are then scaled to sum to 1.
    classes : sequence
    training_shares : array of shape (n_classes,)
        Of :func:`class_shares`.

    Raises
    ------
    ParameterError
        For another word, or shares that miss a class, are not positive or do not sum
        to 1.
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
        if not (values > 0).all() or abs(values.sum() - 1) > _TOLERANCE:
            told = ", ".join(f"{name}={share}" for name, share in shares.items())
            raise ParameterError(
                f"class_prior must have shares above 0 that sum to 1; got {told}."
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
    probability: np.ndarray, before: np.ndarray, after: np.ndarray
) -> np.ndarray:
    """Return probabilities for other class shares, by Bayes' rule.

    Parameters
    ----------
    probability : array of shape (n_scans, n_classes)
        Where classes have the shares `before`.
    before, after : arrays of shape (n_classes,)

    Examples
    --------
    >>> change_prior(np.array([[0.5, 0.5]]), np.array([0.5, 0.5]), np.array([0.9, 0.1]))
    array([[0.9, 0.1]])
    """
    if np.array_equal(before, after):
        return probability
    joint = probability * (after / before)
    return joint / joint.sum(axis=1, keepdims=True)


class ClassPriorMixin:
    """What classifiers share of which the probabilities assume named class shares.

    The predicted class does not depend on these shares: it is the class of highest
    probability where classes weigh as they did in the fit, which for balanced weights
    is the rule that balanced accuracy scores. Under a prior that favours large classes
    rare ones would hardly ever be predicted.

    Attributes
    ----------
    class_prior_ : array of shape (n_classes,)
        Shares that `predict_proba` assumes, in the order of `classes_`.
    learned_prior_ : array of shape (n_classes,)
        Shares for which the fit learned probabilities.
    training_shares_ : array of shape (n_classes,)
        Shares among the scans of the training.
    """

    classes_: Any

    def _learn_prior(
        self, y: Sequence | np.ndarray, class_prior: ClassPrior, *, is_balanced: bool
    ) -> None:
        """Learn class shares; `is_balanced` says that all classes weighed alike."""
        self.training_shares_ = class_shares(y)
        self.learned_prior_ = self.training_shares_
        if is_balanced:
            equal = np.full(len(self.classes_), 1 / len(self.classes_))
            self.learned_prior_ = equal
        self.class_prior_ = resolve_class_prior(
            class_prior, self.classes_, self.training_shares_
        )

    def _assume_prior(self, probability: np.ndarray) -> np.ndarray:
        """Return learned probabilities for the class shares that are assumed."""
        return change_prior(probability, self.learned_prior_, self.class_prior_)

    def _prior_report(self) -> dict[str, float]:
        """Return the shares that probabilities assume, by class."""
        names = (str(name) for name in self.classes_)
        return dict(zip(names, self.class_prior_.tolist(), strict=True))

    def choose_classes(self, probability: np.ndarray) -> np.ndarray:
        """Return the index in `classes_` of the class that each row speaks for.

        Parameters
        ----------
        probability : array of shape (n_scans, n_classes)
            Of `predict_proba`.
        """
        return (probability * (self.learned_prior_ / self.class_prior_)).argmax(axis=1)
