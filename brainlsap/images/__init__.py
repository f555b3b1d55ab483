"""Connectomes, regional PET and atlases from images.

:func:`build_connectome` counts streamlines between regions, :func:`extract_suvr`
averages PET over regions, :func:`build_study` does both for a whole study folder, and
:func:`make_atlas` makes an atlas of a parcellation of one's own.
"""

from brainlsap.images.build import BuiltStudy, build_study
from brainlsap.images.parcellation import make_atlas
from brainlsap.images.suvr import RegionalUptake, extract_suvr
from brainlsap.images.tractography import BuiltConnectome, build_connectome

__all__ = [
    "BuiltConnectome",
    "BuiltStudy",
    "RegionalUptake",
    "build_connectome",
    "build_study",
    "extract_suvr",
    "make_atlas",
]
