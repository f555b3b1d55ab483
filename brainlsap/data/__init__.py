"""Room 1: files become named arrays.

:func:`load_cohort` reads subject folders, :func:`make_cohort` simulates people with a
planted answer; both give a :class:`Cohort`, whose axes are named by an :class:`Atlas`.
"""

from brainlsap.data.adni import import_adni
from brainlsap.data.adni_folder import AdniImport
from brainlsap.data.atlas import Atlas, available_atlases, is_outside, load_atlas
from brainlsap.data.atlas_order import ConnectomeFile
from brainlsap.data.build import BuiltCohort, build_cohort
from brainlsap.data.classes import order_classes
from brainlsap.data.cohort import Cohort
from brainlsap.data.cohort_check import CohortCheck, check_cohort
from brainlsap.data.connectomes import FORMATS, read_connectome
from brainlsap.data.decisive_cohorts import make_decisive_cohort
from brainlsap.data.feature_tables import read_feature_table
from brainlsap.data.features import FeatureFile, read_feature
from brainlsap.data.folders import load_cohort
from brainlsap.data.quality import quality_table, region_quality_table
from brainlsap.data.region_volumes import region_volumes
from brainlsap.data.shared_connectomes import shared_connectome
from brainlsap.data.simulate import make_cohort
from brainlsap.data.subject_folders import write_subject_folders
from brainlsap.data.spreadsheets import write_tsv
from brainlsap.data.tables import read_table
from brainlsap.data.suvr import RegionalUptake, extract_suvr
from brainlsap.data.tractography import BuiltConnectome, build_connectome

__all__ = [
    "FORMATS",
    "AdniImport",
    "Atlas",
    "BuiltCohort",
    "BuiltConnectome",
    "Cohort",
    "CohortCheck",
    "ConnectomeFile",
    "FeatureFile",
    "RegionalUptake",
    "available_atlases",
    "build_cohort",
    "build_connectome",
    "check_cohort",
    "extract_suvr",
    "import_adni",
    "is_outside",
    "load_atlas",
    "load_cohort",
    "make_cohort",
    "make_decisive_cohort",
    "order_classes",
    "quality_table",
    "read_connectome",
    "read_feature",
    "read_feature_table",
    "region_quality_table",
    "region_volumes",
    "shared_connectome",
    "read_table",
    "write_subject_folders",
    "write_tsv",
]
