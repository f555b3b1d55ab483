"""Learnable heat-kernel graph convolution for brain networks.

The rooms, from the ground up; each imports only from those below it:

- :mod:`brainlsap.data`: files become named arrays (:class:`~brainlsap.data.Cohort`).
- :mod:`brainlsap.graph`: connectomes become Laplacians and heat kernels.
- :mod:`brainlsap.model`: LSAP behind scikit-learn's face, and its training.
- :mod:`brainlsap.evaluation`: folds that never share a person, scores, rankings.
- :mod:`brainlsap.report`: tables, surface figures, one page that binds them.
- :mod:`brainlsap.study`: models and folds together; what the command line runs.

The names below are loaded on first use, so `import brainlsap` stays light.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

_ROOM_OF = {
    "Atlas": "data",
    "Cohort": "data",
    "LSAPClassifier": "model",
    "LSAPNodeClassifier": "model",
    "available_atlases": "data",
    "cross_validate": "evaluation",
    "heat_kernel": "graph",
    "load_atlas": "data",
    "load_cohort": "data",
    "load_nodes": "data",
    "make_cohort": "simulation",
    "plot_regions": "report",
    "rank_regions": "evaluation",
    "region_table": "report",
    "run_study": "study",
    "score_table": "report",
    "write_interactive": "report",
    "write_region_maps": "report",
    "write_report": "report",
}

__all__ = [  # noqa: PLE0604 (the names are those of _ROOM_OF)
    *sorted(_ROOM_OF),
]

try:
    __version__ = version("brainlsap")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0+unknown"


def __getattr__(name: str) -> object:
    """Load a public name from its room on first use."""
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'brainlsap' has no attribute {name!r}")
    value = getattr(import_module(f"brainlsap.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
