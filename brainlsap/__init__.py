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
from typing import Any

_NAMES = {
    "atlas": "Atlas available_atlases load_atlas",
    "data": "Cohort check_cohort load_cohort make_atlas",
    "simulation": "make_cohort",
    "graph": "heat_kernel",
    "model": "LSAPClassifier LSAPRidgeClassifier load_model",
    "nodes": "LSAPNodeClassifier load_nodes",
    "evaluation": "Evaluation cross_validate permutation_null rank_regions",
    "report": "export_maps plot_regions region_table score_table write_interactive "
    "write_report",
    "workflow": "merge_classes run_study",
    "prediction": "fit_model predict_people read_people",
}
_PACKAGES = {*_NAMES, "adni", "images"}
_PACKAGE_OF = {
    name: package for package, names in _NAMES.items() for name in names.split()
}

__all__ = sorted(_PACKAGE_OF)  # noqa: PLE0605 (the names above)

try:
    __version__ = version("brainlsap")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0+unknown"


def __getattr__(name: str) -> Any:
    """Load a package or public name on first use: `import brainlsap` stays light."""
    if name in _PACKAGES:
        return import_module(f"brainlsap.{name}")
    if name not in _PACKAGE_OF:
        raise AttributeError(f"module 'brainlsap' has no attribute {name!r}")
    value = getattr(import_module(f"brainlsap.{_PACKAGE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
