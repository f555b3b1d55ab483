"""The old place of `read_annotation`."""

from brainlsap.atlas.atlas import read_annotation as read_annotated  # noqa: F401
