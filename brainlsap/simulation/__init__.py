"""Simulated cohorts in which it is known where the disease was planted.

:func:`make_cohort` draws people, connectomes and regional values;
:func:`write_study_folder` writes them as the folder that a study has on disk.
"""

from brainlsap.simulation.cohort import make_cohort
from brainlsap.simulation.study_folder import write_study_folder

__all__ = ["make_cohort", "write_study_folder"]
