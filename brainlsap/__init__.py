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

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def load_lazily(
    package: str, names: Mapping[str, str]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package of heavy modules.

    A module is imported when it, or a public name of it, is first used; `names` are
    those of every module.
    """
    module_of = {
        name: module for module, some in names.items() for name in some.split()
    }

    def load(name: str) -> Any:
        if name in names:
            return import_module(f"{package}.{name}")
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return sorted(module_of), load, lambda: sorted([*module_of, *names])


_NAMES = {
    "adni": "",
    "atlas": "Atlas available_atlases load_atlas",
    "data": "Cohort check_cohort load_cohort",
    "images": "make_atlas",
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
__all__, __getattr__, __dir__ = load_lazily(__name__, _NAMES)

try:
    __version__ = version("brainlsap")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0+unknown"
