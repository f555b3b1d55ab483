"""Simulated cohorts (forwarding until the packages are merged)."""

from brainlsap.data.decisive_cohorts import make_decisive_cohort as make_benchmark_cohort
from brainlsap.data.simulate import make_cohort
from brainlsap.data.subject_folders import write_subject_folders as write_study_folder

__all__ = ["make_benchmark_cohort", "make_cohort", "write_study_folder"]
