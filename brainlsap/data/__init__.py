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

# What other packages will hold, at its old place until it has moved there.
_ELSEWHERE = {
    "atlas": "Atlas available_atlases is_outside load_atlas",
    "adni": "import_adni",
    "adni_folder": "AdniImport",
    "build": "BuiltCohort build_cohort",
    "decisive_cohorts": "make_decisive_cohort",
    "node_graph": "NodeGraph",
    "node_splits": "NodeSplit read_node_split split_by_share split_per_class",
    "nodes": "load_nodes make_node_split read_gnn_benchmark read_planetoid",
    "region_volumes": "region_volumes",
    "simulate": "make_cohort",
    "subject_folders": "write_subject_folders",
    "suvr": "RegionalUptake extract_suvr",
    "tractography": "BuiltConnectome build_connectome",
}


def __getattr__(name: str) -> Any:
    for module, names in _ELSEWHERE.items():
        if name in names.split():
            return getattr(import_module(f"brainlsap.data.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
