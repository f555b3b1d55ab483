"""What the tests of images share: the tiny atlas."""

from tests.data.conftest import tiny

__all__ = ["tiny"]
