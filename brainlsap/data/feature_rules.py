"""The old place of a feature's record."""

from brainlsap.data.features import FeatureFile  # noqa: F401
