"""Simulated cohorts in which it is known where the disease was planted.

:func:`make_cohort` draws people, connectomes and regional values;
:func:`make_benchmark_cohort` the fixed cohorts that methods are judged on;
:func:`write_study_folder` writes either as the folder that a study has on disk.
"""

from brainlsap.simulation.cohort import make_benchmark_cohort, make_cohort
from brainlsap.simulation.study_folder import write_study_folder

__all__ = ["make_benchmark_cohort", "make_cohort", "write_study_folder"]
