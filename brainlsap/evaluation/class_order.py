"""A model with an ordinal head is told the order of the cohort's classes."""

from typing import Any


def told_order(model: Any, classes: tuple[str, ...]) -> Any:
    """Return the model with the order of the classes, if it has an ordinal head.

    Parameters
    ----------
    model : estimator
        Left as it is; a head with an order of its own keeps that.
    classes : tuple of str
        All classes, in order of stage.

    Returns
    -------
    estimator
        The same object where it needs no order, else a clone.
    """
    from sklearn.base import clone

    given = model.get_params(deep=True)
    heads = [name for name, value in given.items() if str(value) == "ordinal"]
    orders = [name.removesuffix("head") + "classes" for name in heads]
    unset = [name for name in orders if name in given and given[name] is None]
    return clone(model).set_params(**dict.fromkeys(unset, classes)) if unset else model
