"""Learnable heat-kernel graph convolution for brain networks.

- :mod:`~brainlsap.atlas` names and matches regions; :mod:`~brainlsap.data` reads the
  files of a study into a :class:`Cohort`.
- :mod:`~brainlsap.images` builds connectomes and regional PET values from images;
  :mod:`~brainlsap.adni` imports ADNI; :mod:`~brainlsap.simulation` simulates studies.
- :mod:`~brainlsap.graph` computes Laplacians and heat kernels.
- :mod:`~brainlsap.model` holds the classifiers: LSAP, its ridge regression, and other
  graph networks; :mod:`~brainlsap.nodes` classifies the nodes of one graph.
- :mod:`~brainlsap.evaluation` cross-validates models, tests them and ranks regions.
- :mod:`~brainlsap.report` writes tables, figures and a report from an
  :class:`Evaluation`.
- :mod:`~brainlsap.workflow` runs a whole study; :mod:`~brainlsap.prediction` applies a
  fitted model to new participants, and :mod:`~brainlsap.external` tests it on them;
  :mod:`~brainlsap.cli` is the command line.

Contracts in `pyproject.toml` say which package may import which.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def make_lazy_module_attributes(
    package_name: str, names_of_module: Mapping[str, str]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package with slow imports.

    `names_of_module` lists the public names of every module. A module is imported when
    it, or one of its public names, is first used.
    """
    module_of_name: dict[str, str] = {}
    for module_name, names_text in names_of_module.items():
        for name in names_text.split():
            module_of_name[name] = module_name

    def load_attribute(name: str) -> Any:
        if name in names_of_module:
            return import_module(f"{package_name}.{name}")
        if name not in module_of_name:
            raise AttributeError(f"module {package_name!r} has no attribute {name!r}")
        return getattr(import_module(f"{package_name}.{module_of_name[name]}"), name)

    def list_attributes() -> list[str]:
        return sorted([*module_of_name, *names_of_module])

    return sorted(module_of_name), load_attribute, list_attributes


_PUBLIC_NAMES = {
    "adni": "",
    "atlas": "Atlas available_atlases load_atlas",
    "data": "Cohort check_cohort load_cohort",
    "images": "make_atlas",
    "simulation": "make_cohort",
    "graph": "heat_kernel",
    "model": "LSAPClassifier LSAPRidgeClassifier load_model",
    "nodes": "LSAPNodeClassifier load_nodes",
    "evaluation": "Evaluation compare_regions cross_validate rank_regions",
    "report": "export_maps plot_regions region_table score_table write_interactive "
    "write_report",
    "workflow": "merge_classes run_study",
    "prediction": "card_text contribution_table fit_model predict_people "
    "read_new_people",
    "external": "evaluate_model read_labelled_people",
}
__all__, __getattr__, __dir__ = make_lazy_module_attributes(__name__, _PUBLIC_NAMES)

try:
    __version__ = version("brainlsap")
except PackageNotFoundError:  # The checkout has not been installed.
    __version__ = "0+unknown"
