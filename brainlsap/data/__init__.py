"""Room 1: files become named arrays.

:func:`load_cohort` reads subject folders, :func:`make_cohort` simulates people with a
planted answer; both give a :class:`Cohort`, whose axes are named by an :class:`Atlas`.
"""

from importlib import import_module

from brainlsap.data.atlas import Atlas, available_atlases, is_outside, load_atlas
from brainlsap.data.atlas_order import ConnectomeFile
from brainlsap.data.classes import order_classes
from brainlsap.data.cohort import Cohort
from brainlsap.data.cohort_check import CohortCheck, check_cohort
from brainlsap.data.connectomes import FORMATS, read_connectome
from brainlsap.data.feature_tables import read_feature_table
from brainlsap.data.features import FeatureFile, read_feature
from brainlsap.data.folders import load_cohort
from brainlsap.data.node_graph import NodeGraph
from brainlsap.data.node_splits import (
    NodeSplit,
    read_node_split,
    split_by_share,
    split_per_class,
)
from brainlsap.data.nodes import (
    load_nodes,
    make_node_split,
    read_gnn_benchmark,
    read_planetoid,
)
from brainlsap.data.quality import quality_table, region_quality_table
from brainlsap.data.region_volumes import region_volumes
from brainlsap.data.shared_connectomes import shared_connectome

__all__ = [
    "FORMATS",
    "Atlas",
    "Cohort",
    "CohortCheck",
    "ConnectomeFile",
    "FeatureFile",
    "NodeGraph",
    "NodeSplit",
    "available_atlases",
    "check_cohort",
    "is_outside",
    "load_atlas",
    "load_cohort",
    "load_nodes",
    "make_node_split",
    "order_classes",
    "quality_table",
    "read_connectome",
    "read_feature",
    "read_feature_table",
    "read_gnn_benchmark",
    "read_node_split",
    "read_planetoid",
    "region_quality_table",
    "region_volumes",
    "shared_connectome",
    "split_by_share",
    "split_per_class",
]

# Where names of before stand now, until those who use them have moved as well.
_MOVED = {
    "import_adni": ("adni", "import_adni"),
    "build_cohort": ("images", "build_study"),
    "build_connectome": ("images", "build_connectome"),
    "extract_suvr": ("images", "extract_suvr"),
    "make_cohort": ("simulation", "make_cohort"),
    "make_decisive_cohort": ("simulation", "make_benchmark_cohort"),
    "write_subject_folders": ("simulation", "write_study_folder"),
}


def __getattr__(name: str) -> object:
    if name not in _MOVED:
        raise AttributeError(f"module 'brainlsap.data' has no attribute {name!r}")
    package, new = _MOVED[name]
    return getattr(import_module(f"brainlsap.{package}"), new)
