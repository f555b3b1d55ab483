"""Until images have moved: what they took from here."""

from brainlsap.atlas.region_names import nearest_names


def unknown_message(atlas, names, unknown, n_given):
    """Return the sentence that refuses unknown names."""
    told = [f"{n!r} (nearest: {', '.join(nearest_names(n, names))})" for n in unknown]
    return f"{len(unknown)} of {n_given} names unknown to atlas {atlas}: {told[:5]}"
