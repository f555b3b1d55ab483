"""The models of a study by the names of the paper, and the baselines beside them."""

from collections.abc import Sequence
from typing import Any

from brainlsap._arrays import check_choice
from brainlsap.evaluation import baseline_models
from brainlsap.exceptions import ParameterError
from brainlsap.graph import KERNELS
from brainlsap.model import DiffusedLogisticRegression, LSAPClassifier

MODEL_NAMES = {
    "exact": "Exact",
    "chebyshev": "LSAP-C",
    "hermite": "LSAP-H",
    "laguerre": "LSAP-L",
}


def study_models(
    kernels: Sequence[str] = ("chebyshev",),
    *,
    preset: str = "default",
    random_state: int = 0,
    **settings: Any,
) -> dict[str, LSAPClassifier]:
    """Return LSAP models by the paper's names, unfitted.

    Parameters
    ----------
    kernels : sequence of {"exact", "chebyshev", "hermite", "laguerre"}
        One model for each.
    preset : {"default", "paper"}
        As for :class:`brainlsap.model.LSAPClassifier`.
    random_state : int
        Seed of every model.
    **settings
        Further settings of :class:`brainlsap.model.LSAPClassifier`.

    Returns
    -------
    dict of str to LSAPClassifier

    Raises
    ------
    ParameterError
        For an unknown kernel or setting that cannot be used.

    Examples
    --------
    >>> list(study_models(["exact", "chebyshev"]))
    ['Exact', 'LSAP-C']
    """
    for kernel in kernels:
        check_choice("kernel", kernel, KERNELS)
    models = {
        MODEL_NAMES[kernel]: LSAPClassifier(
            kernel, preset=preset, random_state=random_state
        ).set_params(**settings)
        for kernel in kernels
    }
    for model in models.values():
        model.settings()  # raises for what cannot be used, before any work is done
        _check_device(model.device)
    return models


def _check_device(device: str) -> None:
    import torch

    try:
        torch.empty(1, device=device)
    except (AssertionError, RuntimeError) as error:  # torch raises both
        reason = str(error).splitlines()[0].rstrip(".")
        raise ParameterError(
            f"device {device!r} cannot be used here ({reason}); leave it at 'cpu'."
        ) from None


def study_baselines(
    random_state: int = 0, preparation: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the baselines of every study, unfitted, by name.

    Parameters
    ----------
    random_state : int
        Seed of their inner folds.
    preparation : dict, optional
        How the one with a network prepares it, as the models do.

    Returns
    -------
    dict of str to classifier

    Examples
    --------
    >>> list(study_baselines())[-1]
    'diffused logistic regression'
    """
    return {
        **baseline_models(random_state),
        "diffused logistic regression": DiffusedLogisticRegression(
            random_state=random_state, preparation=preparation
        ),
    }
