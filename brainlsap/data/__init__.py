"""Files become named arrays.

:func:`load_cohort` reads a study's folder into a :class:`Cohort`, whose axes are named
by an atlas; :func:`check_cohort` says what a folder holds. Module by module:

- `load`: the way from a folder to a cohort, top to bottom;
- `find_files`: which file is of which scan;
- `participants`: people, visits, labels, order of classes;
- `connectomes`, `row_order`: matrices of any tool in the order of the atlas;
- `measures`: tracers, columns, what the subcortex has; `features`: where they are read;
- `tables`, `region_tables`, `pet_tables`, `freesurfer`: the layouts of tools;
- `cohort`: the record; `quality`: what is unusual about scans and regions.
"""

from importlib import import_module
from typing import Any

from brainlsap.data.cohort import Cohort
from brainlsap.data.connectomes import FORMATS, ConnectomeFile, read_connectome
from brainlsap.data.features import FeatureFile, read_feature
from brainlsap.data.load import (
    CohortCheck,
    check_cohort,
    load_cohort,
    shared_connectome,
)
from brainlsap.data.measures import TRACERS
from brainlsap.data.participants import order_classes
from brainlsap.data.quality import quality_table, region_quality_table
from brainlsap.data.tables import read_table, write_tsv

__all__ = [
    "FORMATS",
    "TRACERS",
    "Cohort",
    "CohortCheck",
    "ConnectomeFile",
    "FeatureFile",
    "check_cohort",
    "load_cohort",
    "order_classes",
    "quality_table",
    "read_connectome",
    "read_feature",
    "read_table",
    "region_quality_table",
    "shared_connectome",
    "write_tsv",
]

# Where names of before stand now, until those who use them have moved as well.
_ELSEWHERE = {
    "atlas.Atlas": "Atlas",
    "atlas.available_atlases": "available_atlases",
    "atlas.load_atlas": "load_atlas",
    "atlas.region_names.is_outside": "is_outside",
    "adni.AdniImport": "AdniImport",
    "adni.import_adni": "import_adni",
    "images.BuiltConnectome": "BuiltConnectome",
    "images.BuiltStudy": "BuiltCohort",
    "images.RegionalUptake": "RegionalUptake",
    "images.build_connectome": "build_connectome",
    "images.build_study": "build_cohort",
    "images.extract_suvr": "extract_suvr",
    "simulation.make_benchmark_cohort": "make_decisive_cohort",
    "simulation.make_cohort": "make_cohort",
    "simulation.write_study_folder": "write_subject_folders",
    "data.node_graph.NodeGraph": "NodeGraph",
    **{
        f"data.node_splits.{name}": name
        for name in ("NodeSplit", "read_node_split", "split_by_share", "split_per_class")
    },
    **{
        f"data.nodes.{name}": name
        for name in (
            *("load_nodes", "make_node_split", "read_gnn_benchmark", "read_planetoid"),
        )
    },
    "data.region_volumes.region_volumes": "region_volumes",
}


def __getattr__(name: str) -> Any:
    for place, old in _ELSEWHERE.items():
        if old == name:
            module, _, new = place.rpartition(".")
            return getattr(import_module(f"brainlsap.{module}"), new)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
