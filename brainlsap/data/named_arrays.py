"""Until nodes have moved: what they took from here."""


def is_text(array):
    """Tell whether an array of text holds characters only."""
    try:
        return bool(array.astype(str).tolist() is not None)
    except ValueError:
        return False
