"""FreeSurfer's numbers for what its segmentations hold beside an atlas' regions."""

# Those of FreeSurferColorLUT.txt that aseg, aparc+aseg, wmparc and gtmseg write.
BESIDE = {
    1: "Left-Cerebral-Exterior",
    2: "Left-Cerebral-White-Matter",
    3: "Left-Cerebral-Cortex",
    4: "Left-Lateral-Ventricle",
    5: "Left-Inf-Lat-Vent",
    6: "Left-Cerebellum-Exterior",
    7: "Left-Cerebellum-White-Matter",
    8: "Left-Cerebellum-Cortex",
    10: "Left-Thalamus",
    11: "Left-Caudate",
    12: "Left-Putamen",
    13: "Left-Pallidum",
    14: "3rd-Ventricle",
    15: "4th-Ventricle",
    16: "Brain-Stem",
    17: "Left-Hippocampus",
    18: "Left-Amygdala",
    24: "CSF",
    25: "Left-Lesion",
    26: "Left-Accumbens-area",
    27: "Left-Substantia-Nigra",
    28: "Left-VentralDC",
    29: "Left-undetermined",
    30: "Left-vessel",
    31: "Left-choroid-plexus",
    40: "Right-Cerebral-Exterior",
    41: "Right-Cerebral-White-Matter",
    42: "Right-Cerebral-Cortex",
    43: "Right-Lateral-Ventricle",
    44: "Right-Inf-Lat-Vent",
    45: "Right-Cerebellum-Exterior",
    46: "Right-Cerebellum-White-Matter",
    47: "Right-Cerebellum-Cortex",
    49: "Right-Thalamus",
    50: "Right-Caudate",
    51: "Right-Putamen",
    52: "Right-Pallidum",
    53: "Right-Hippocampus",
    54: "Right-Amygdala",
    57: "Right-Lesion",
    58: "Right-Accumbens-area",
    59: "Right-Substantia-Nigra",
    60: "Right-VentralDC",
    61: "Right-undetermined",
    62: "Right-vessel",
    63: "Right-choroid-plexus",
    72: "5th-Ventricle",
    77: "WM-hypointensities",
    78: "Left-WM-hypointensities",
    79: "Right-WM-hypointensities",
    80: "non-WM-hypointensities",
    81: "Left-non-WM-hypointensities",
    82: "Right-non-WM-hypointensities",
    85: "Optic-Chiasm",
    118: "Left_Cerebral_CSF",
    119: "Right_Cerebral_CSF",
    165: "Skull",
    172: "Vermis",
    173: "Midbrain",
    174: "Pons",
    175: "Medulla",
    177: "Vermis-White-Matter",
    178: "SCP",
    192: "Corpus_Callosum",
    251: "CC_Posterior",
    252: "CC_Mid_Posterior",
    253: "CC_Central",
    254: "CC_Mid_Anterior",
    255: "CC_Anterior",
    257: "CSF-ExtraCerebral",
    258: "Head-ExtraCerebral",
    1000: "ctx-lh-unknown",
    1004: "ctx-lh-corpuscallosum",
    2000: "ctx-rh-unknown",
    2004: "ctx-rh-corpuscallosum",
    5001: "Left-UnsegmentedWhiteMatter",
    5002: "Right-UnsegmentedWhiteMatter",
    11100: "ctx_lh_Unknown",
    11142: "ctx_lh_Medial_wall",
    12100: "ctx_rh_Unknown",
    12142: "ctx_rh_Medial_wall",
}
# White matter below each region of the cortex, as wmparc numbers it.
_WHITE = ((3000, 3036), (4000, 4036), (13100, 13176), (14100, 14176))


def name_beside(number: int) -> str | None:
    """Return FreeSurfer's name of a label, where it is no region of the cortex.

    Parameters
    ----------
    number : int
        The label.

    Returns
    -------
    str or None
        None for regions of the cortex, and for numbers that are not FreeSurfer's.

    Examples
    --------
    >>> name_beside(8), name_beside(13117), name_beside(11117)
    ('Left-Cerebellum-Cortex', 'white matter 13117', None)
    """
    if any(first <= number < last for first, last in _WHITE):
        return f"white matter {number}"
    return BESIDE.get(number)
