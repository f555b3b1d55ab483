"""What may be tuned, by name, and the paper's hyperparameters by biomarker."""

from collections.abc import Mapping, Sequence
from typing import Any

from brainlsap._arrays import check_choice
from brainlsap.exceptions import ParameterError

SPACES: dict[str, dict[str, dict[str, Sequence[Any]]]] = {
    "default": {
        "LSAPClassifier": {
            "hidden_units": (8, 16),
            "dropout": (0.1, 0.3, 0.5),
            "readout_penalty": (1e-3, 1e-2, 1e-1),
        },
        "NetworkClassifier": {
            "hidden_units": (8, 16, 32),
            "dropout": (0.1, 0.3, 0.5),
            "learning_rate": (1e-3, 1e-2),
        },
    },
    "paper": {
        "LSAPClassifier": {
            "hidden_units": (16, 32),
            "penalty_weight": (0.1, 1.0),
            "scale_step": (1.0, 10.0),
        },
        "NetworkClassifier": {
            "hidden_units": (16, 32),
            "dropout": (0.1, 0.5),
            "learning_rate": (1e-2,),
        },
    },
}
"""Spaces by name and class of model: what each setting may be. "paper" holds the values
that the paper's table of hyperparameters has for any of its data sets."""

_PAPER = {"hidden_units": 16, "learning_rate": 0.01, "dropout": 0.5}
_PAPER_LSAP = {**_PAPER, "preset": "paper", "penalty_weight": 1.0, "scale_step": 1.0}

PAPER_HYPERPARAMETERS: dict[str, dict[str, dict[str, Any]]] = {
    biomarker: {
        "lsap": dict(_PAPER_LSAP),
        "mlp": dict(_PAPER),
        "gcn": dict(_PAPER),
        "gat": {**_PAPER, "dropout": 0.1},
        "gdc": dict(_PAPER),
        "graphheat": {**_PAPER, "hidden_units": units},
        "adc": dict(_PAPER),
    }
    for biomarker, units in (("thickness", 32), ("fdg", 16))
}
"""The paper's hyperparameters (supplement, table of graph classification) by biomarker
and model. Its `b` of 1.2 is below the largest eigenvalue and is not used."""


def paper_settings(biomarker: str, model: str = "lsap") -> dict[str, Any]:
    """Return the paper's hyperparameters of one model for one biomarker.

    Parameters
    ----------
    biomarker : {"fdg", "thickness"}
        What the features are.
    model : {"lsap", "mlp", "gcn", "gat", "gdc", "graphheat", "adc"}
        For :class:`brainlsap.model.LSAPClassifier`, or as its name in
        :data:`brainlsap.model.NETWORKS`.

    Returns
    -------
    dict
        Settings to pass on.

    Raises
    ------
    ParameterError
        For an unknown biomarker or model.

    Examples
    --------
    >>> paper_settings("thickness", "graphheat")["hidden_units"]
    32
    """
    check_choice("biomarker", biomarker, PAPER_HYPERPARAMETERS)
    check_choice("model", model, PAPER_HYPERPARAMETERS[biomarker])
    return dict(PAPER_HYPERPARAMETERS[biomarker][model])


def space_of(
    model: Any, space: str | Mapping[str, Sequence[Any]]
) -> dict[str, Sequence[Any]]:
    """Return the values that each setting of a model may have, by name.

    Parameters
    ----------
    model : classifier
        Or a pipeline, whose last step is tuned.
    space : str or mapping
        As for :func:`tuned`.

    Returns
    -------
    dict of str to sequence

    Raises
    ------
    ParameterError
        Where the space is unknown, or says nothing of this model.
    """
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    prefix = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
    if isinstance(space, str):
        check_choice("space", space, SPACES)
        kind = type(last).__name__
        if kind not in SPACES[space]:
            raise ParameterError(
                f"the space {space!r} says nothing of {kind}; it knows "
                f"{', '.join(SPACES[space])}. Give a mapping of settings to values."
            )
        return {prefix + name: one for name, one in SPACES[space][kind].items()}
    unknown = [name for name in space if name not in model.get_params(deep=True)]
    if unknown or not space:
        told = f"got {unknown[0]!r}" if unknown else "got none"
        raise ParameterError(f"space must name settings of the model, {told}.")
    return dict(space)
