"""From images to what a cohort is made of.

:func:`build_connectome` counts streamlines between regions, :func:`extract_suvr`
averages PET over them, :func:`build_study` does both for a whole study folder.
"""

from brainlsap.images.build import BuiltStudy, build_study
from brainlsap.images.suvr import RegionalUptake, extract_suvr
from brainlsap.images.tractography import BuiltConnectome, build_connectome

__all__ = [
    "BuiltConnectome",
    "BuiltStudy",
    "RegionalUptake",
    "build_connectome",
    "build_study",
    "extract_suvr",
]
