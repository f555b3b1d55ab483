"""Files become named arrays.

:func:`load_cohort` reads a study's folder into a :class:`Cohort`, whose axes are named
by an atlas; :func:`check_cohort` says what a folder holds. Module by module:

- `load`: the way from a folder to a cohort, top to bottom;
- `reading_options`: the options of reading, as one record;
- `check`: what a folder holds, and how else it could be read;
- `find_files`: which file is of which scan;
- `participants`: people, visits, labels, order of classes;
- `connectomes`, `row_order`: matrices of any tool in the order of the atlas;
- `measures`: tracers, columns, what the subcortex has; `features`: where they are read,
  FreeSurfer's stats;
- `tables`, `region_tables`: the layouts of other tools;
- `cohort`: the record; `stored_cohort`: its file;
- `quality`: what is unusual about scans and regions; `sides`: whether left and right of
  a new study are those of a training.
"""

from brainlsap.data.check import CohortCheck, check_cohort, suggest_options
from brainlsap.data.cohort import Cohort
from brainlsap.data.connectomes import FORMATS, ConnectomeFile, read_connectome
from brainlsap.data.features import FeatureFile, read_feature
from brainlsap.data.load import load_cohort
from brainlsap.data.measures import TRACERS
from brainlsap.data.participants import order_classes
from brainlsap.data.quality import quality_table
from brainlsap.data.reading_options import ReadingOptions
from brainlsap.data.stored_cohort import read_study
from brainlsap.data.tables import read_table, write_tsv

__all__ = [
    "FORMATS",
    "TRACERS",
    "Cohort",
    "CohortCheck",
    "ConnectomeFile",
    "FeatureFile",
    "ReadingOptions",
    "check_cohort",
    "load_cohort",
    "order_classes",
    "quality_table",
    "read_connectome",
    "read_feature",
    "read_study",
    "read_table",
    "suggest_options",
    "write_tsv",
]
