"""Heads of columns in UCSF's FreeSurfer tables of ADNI: `ST24TA`, `ST29SV` ...

The number is the structure, the letters the measure. Structures stand in the order of
the alphabet, left before right: the number on the right is that on the left and 59,
except for the insula, which was added last.
"""

import re

_LEFT = {
    11: "Accumbens-area",
    12: "Amygdala",
    13: "bankssts",
    14: "caudalanteriorcingulate",
    15: "caudalmiddlefrontal",
    16: "Caudate",
    17: "Cerebellum-Cortex",
    18: "Cerebellum-White-Matter",
    23: "cuneus",
    24: "entorhinal",
    25: "frontalpole",
    26: "fusiform",
    29: "Hippocampus",
    31: "inferiorparietal",
    32: "inferiortemporal",
    34: "isthmuscingulate",
    35: "lateraloccipital",
    36: "lateralorbitofrontal",
    38: "lingual",
    39: "medialorbitofrontal",
    40: "middletemporal",
    42: "Pallidum",
    43: "paracentral",
    44: "parahippocampal",
    45: "parsopercularis",
    46: "parsorbitalis",
    47: "parstriangularis",
    48: "pericalcarine",
    49: "postcentral",
    50: "posteriorcingulate",
    51: "precentral",
    52: "precuneus",
    53: "Putamen",
    54: "rostralanteriorcingulate",
    55: "rostralmiddlefrontal",
    56: "superiorfrontal",
    57: "superiorparietal",
    58: "superiortemporal",
    59: "supramarginal",
    60: "temporalpole",
    61: "Thalamus",
    62: "transversetemporal",
}
STRUCTURES = {
    **{number: f"Left-{name}" for number, name in _LEFT.items()},
    **{number + 59: f"Right-{name}" for number, name in _LEFT.items()},
    129: "Left-insula",
    130: "Right-insula",
}
MEASURES = {"TA": "thickness", "SA": "area", "CV": "volume", "SV": "volume"}
HEAD_SIZE = "st10cv"
_HEAD = re.compile(r"ST(\d{1,3})(TA|SA|CV|SV|TS|HS)", re.IGNORECASE)


def parse_adni_head(head: str) -> tuple[str, str] | None:
    """Return measure and region of a column of UCSF's tables.

    Parameters
    ----------
    head : str
        Of the column.

    Returns
    -------
    (measure, region) or None
        None for any other head, and for structures that are no region.

    Examples
    --------
    >>> parse_adni_head("ST24TA"), parse_adni_head("ST88SV"), parse_adni_head("AGE")
    (('thickness', 'Left-entorhinal'), ('volume', 'Right-Hippocampus'), None)
    """
    found = _HEAD.fullmatch(head)
    if found is None or int(found[1]) not in STRUCTURES:
        return None
    return MEASURES.get(found[2].upper(), "other"), STRUCTURES[int(found[1])]
