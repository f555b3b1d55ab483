"""The old place of stages, for the simulation until it has moved."""

from brainlsap.data import participants

STAGES = ("CN", "SMC", "EMCI", "LMCI", "AD")


def order_classes(labels, classes=None):
    """Return classes alone."""
    return participants.order_classes(labels, classes)[0]
