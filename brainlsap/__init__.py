"""Learnable heat-kernel graph convolution for brain networks.

From files to a report, in two lines of packages that meet in `evaluation` (who imports
whom is held by contracts in `pyproject.toml`):

- :mod:`brainlsap.atlas`: regions by name. :mod:`brainlsap.data`: a study's files become
  a :class:`Cohort` (also from images, ADNI, or simulation: :mod:`~brainlsap.images`,
  :mod:`~brainlsap.adni`, :mod:`~brainlsap.simulation`).
- :mod:`brainlsap.graph`: Laplacians and heat kernels. :mod:`brainlsap.model`: LSAP and
  baselines behind scikit-learn's face. :mod:`brainlsap.nodes`: citation graphs.
- :mod:`brainlsap.evaluation`: folds by person, scores, ranking: an :class:`Evaluation`.
- :mod:`brainlsap.report`: tables, figures, one page. :mod:`brainlsap.workflow` and
  :mod:`brainlsap.prediction`: what one command does.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

_PACKAGE_OF = {
    "Atlas": "atlas",
    "Cohort": "data",
    "Evaluation": "evaluation",
    "LSAPClassifier": "model",
    "LSAPNodeClassifier": "nodes",
    "available_atlases": "atlas",
    "check_cohort": "data",
    "cross_validate": "evaluation",
    "fit_model": "prediction",
    "heat_kernel": "graph",
    "load_atlas": "atlas",
    "load_cohort": "data",
    "load_nodes": "nodes",
    "make_cohort": "simulation",
    "plot_regions": "report",
    "predict_people": "prediction",
    "rank_regions": "evaluation",
    "region_table": "report",
    "run_study": "workflow",
    "score_table": "report",
    "write_interactive": "report",
    "write_report": "report",
}

__all__ = sorted(_PACKAGE_OF)  # noqa: PLE0605 (the names of _PACKAGE_OF)

try:
    __version__ = version("brainlsap")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0+unknown"


def __getattr__(name: str) -> object:
    """Load a public name on first use, so that `import brainlsap` stays light."""
    if name not in _PACKAGE_OF:
        raise AttributeError(f"module 'brainlsap' has no attribute {name!r}")
    value = getattr(import_module(f"brainlsap.{_PACKAGE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
