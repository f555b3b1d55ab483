"""One name per region, whatever spelling a tool uses.

Tools write the same region as `ctx_lh_G_and_S_paracentral`, `lh.G&S_paracentral`,
`L G_and_S_paracentral`, `G.S.paracentral_lh` or `(L) G&S.paracentral`. A name is
split into a hemisphere and a core. The core keeps only the letters and digits (of
every script), in lower case, so separators and case do not matter. Nothing is guessed:
a core that is not exactly a region's core is an unknown name.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache
from unicodedata import category, normalize

# Words that name a hemisphere.
HEMISPHERE_WORDS = {"l": "L", "lh": "L", "left": "L", "r": "R", "rh": "R", "right": "R"}
_LEFT_WORDS = (
    *("links", "linke", "linker", "linkes", "gauche", "izquierdo", "izquierda"),
    *("sinistro", "sinistra", "esquerdo", "esquerda", "vänster", "venstre"),
    *("lewy", "lewa", "lewe", "левый", "левая", "левое", "左", "左侧", "左側"),
)
_RIGHT_WORDS = (
    *("rechts", "rechte", "rechter", "rechtes", "droit", "droite", "derecho"),
    *("derecha", "destro", "destra", "direito", "direita", "höger", "højre", "høyre"),
    *("prawy", "prawa", "prawe", "правый", "правая", "правое", "右", "右侧", "右側"),
)
HEMISPHERE_WORDS |= dict.fromkeys(_LEFT_WORDS, "L") | dict.fromkeys(_RIGHT_WORDS, "R")
# Initials of left and right in French, Spanish, Italian, Portuguese, Nordic languages,
# Polish and Russian. They name no hemisphere, because they can mean something else.
_RIGHT_INITIAL_BY_LEFT = {"л": "п", "v": "h", "l": "p"} | dict.fromkeys("gise", "d")
# Values of a column of sides that mean neither side.
MIDLINE_WORDS = ("m", "midline", "both", "bilateral", "n/a", "none")
# Chinese and Japanese names have no separator after the side.
_SIDE_WITHOUT_GAP = re.compile("^([左右][侧側]?)(?=.)|(?<=.)([左右][侧側]?)$")
_APOSTROPHES = str.maketrans("", "", "'\u2019\u02bc`")
# A word of a name -> FreeSurfer's word. The paper's tables misspell the orbital sulcus.
_WORD_ALIASES = {"ortibal": "orbital"}
SUBCORTEX_SHORT = {
    "thalamus": "Sub.thal",
    "caudate": "Sub.caud",
    "putamen": "Sub.put",
    "pallidum": "Sub.pal",
    "hippocampus": "Sub.hip",
    "amygdala": "Sub.amyg",
    "accumbens": "Sub.acc",
}
# A whole core -> FreeSurfer's core. No region has one of the keys as its own core.
# ENIGMA writes `Laccumb`, the paper's tables `Sub.acc`.
_ENIGMA = ("accumb", "amyg", "caud", "hippo", "pal", "put", "thal")
_CORE_ALIASES = {
    "thalamusproper": "thalamus",
    **dict.fromkeys(("accumbensarea", "nucleusaccumbens", "nacc", "nac"), "accumbens"),
    **dict.fromkeys(("hipp", "hip"), "hippocampus"),
    "tha": "thalamus",  # codespell:ignore tha
    "cau": "caudate",
    "pall": "pallidum",
    "amy": "amygdala",
    # Tian's atlas writes `GP-rh`, `pTHA-rh`, `aTHA-rh`.
    "gp": "pallidum",
    **dict.fromkeys(("ptha", "subthalpost"), "thalamusposterior"),
    **dict.fromkeys(("atha", "subthalant"), "thalamusanterior"),
    **dict(zip(_ENIGMA, sorted(SUBCORTEX_SHORT), strict=True)),
    **{
        short_name.replace(".", "").lower(): core_name
        for core_name, short_name in SUBCORTEX_SHORT.items()
    },
}
_ENIGMA_NAME = re.compile(f"([lr])({'|'.join(_ENIGMA)})")
_SIDE = f"(?:{'|'.join(sorted(HEMISPHERE_WORDS, key=len, reverse=True))})"
# The hemisphere before, after or between the other words; the first match wins.
_SIDE_PATTERNS = [
    re.compile(side_pattern, re.IGNORECASE)
    for side_pattern in (
        rf"^\W?{_SIDE}[\W_]+|^[左右][侧側]?(?=.)",
        rf"[\W_]+{_SIDE}\)?$|(?<=.)[左右][侧側]?$",
        rf"[\W_]+{_SIDE}(?=[\W_])",
    )
]
# Prefixes that carry no information about the region: `ctx-`, `7Networks_LH_Vis_1`,
# and in UK Biobank's lists `aparc.a2009s_left_` and `Tian_Subcortex_S1_3T_`.
_PREFIX = re.compile(
    r"^(ctx[^a-z0-9]+)?(([lr]h[^a-z0-9]+)?\d+networks[^a-z0-9]+(?=[lr]h[^a-z0-9]))?"
    r"(aparc(\.a2009s)?_(?=left_|right_)|tian_subcortex_s\d_\dt_)?",
    re.IGNORECASE,
)
# Names of parts of white matter, such as `wm-lh-precuneus`.
_WHITE_MATTER = re.compile(r"wm[-_.]", re.IGNORECASE)
# Cores of names in lookup tables of tools that are of white matter, fluid, vessels or
# nothing.
_NO_GREY_MATTER = re.compile(
    "unknown|background|corpuscallosum|cc(mid)?(posterior|anterior)|cccentral|csf"
    "|((cerebral|cerebellum)?whitematter|cerebralexterior|vessel|choroidplexus)"
    "|(lateral|inferiorlateral|3rd|4th|5th|third|fourth)ventricle|inflatvent"
    "|opticchiasm|(non|left|right)?wmhypointensities"
)
# Cores of names in files of FreeSurfer and MRtrix that are not regions of an atlas:
# label 0, medial wall, cerebellum, brain stem, white matter, fluid, and totals.
_OUTSIDE = re.compile(
    "unknown|background|none|(backgroundfreesurferdefined)?medialwall|corpuscallosum"
    "|cc(mid)?(posterior|anterior)|cccentral|brainstem|accumbens|ventraldc|vermis|pons"
    "|cerebellum(cortex|whitematter)?|cerebral(whitematter|cortex|exterior)|csf|vessel"
    "|(lateral|3rd|4th|5th|third|fourth)ventricle|inflatvent|choroidplexus|opticchiasm"
    "|(non)?wmhypointensities|substancianigra|lesion|whitematter|hypothalamus"
    "|meanthickness(thickness)?|whitesurfarea(area)?|(lh|rh)?surfaceholes|etiv|icv"
    "|(lh|rh)?(brainseg|supratentorial|mask|cortex|ventriclechoroid|subcortgray"
    "|cerebralwhitematter|corticalwhitematter|totalgray|intracranial"
    "|estimatedtotalintracranial)vol(notvent|toetiv)?(surf|vox)?"
)


def as_text(raw_name: str | bytes) -> str:
    """Return a name as text without spaces around it; readers may return bytes."""
    decoded_name = (
        raw_name.decode("utf-8", "replace")
        if isinstance(raw_name, bytes)
        else str(raw_name)
    )
    return decoded_name.strip()


def are_default_row_names(row_names: Sequence[str]) -> bool:
    """Return whether names are row numbers from 0 or 1, as in a default index."""
    row_numbers = [str(i) for i in range(len(row_names) + 1)]
    return list(row_names) in (row_numbers[:-1], row_numbers[1:])


@lru_cache(maxsize=8192)  # every scan of a cohort repeats the same names
def split_side_from_name(name: str | bytes) -> tuple[str | None, str]:
    """Split a name into its hemisphere (None if it has none) and its core.

    >>> (
    ...     split_side_from_name("ctx_lh_G_and_S_paracentral"),
    ...     split_side_from_name(b"rh.Thalamus-Proper*"),
    ... )
    (('L', 'gsparacentral'), ('R', 'thalamus'))
    """
    name_words = [
        _WORD_ALIASES.get(name_word, name_word)
        for name_word in split_words(_PREFIX.sub("", as_text(name)))
        if name_word != "and"
    ]
    if len(name_words) == 1 and (enigma_match := _ENIGMA_NAME.fullmatch(name_words[0])):
        name_words = list(enigma_match.groups())
    hemisphere = None
    side_word_index = _find_side_word_index(name_words)
    if side_word_index is not None:
        hemisphere = HEMISPHERE_WORDS[name_words.pop(side_word_index)]
    core_name = "".join(name_words)
    return hemisphere, _CORE_ALIASES.get(core_name, core_name)


def split_words(cell_text: str) -> list[str]:
    """Return runs of letters and digits in lower case, of any script.

    Apostrophes join letters; a combining mark belongs to the letter before it.

    >>> split_words("Lóbulo_paracentral-L"), split_words("L'insula")
    (['lóbulo', 'paracentral', 'l'], ['linsula'])
    """
    cell_text = normalize("NFKC", cell_text).lower().translate(_APOSTROPHES)
    cell_text = _SIDE_WITHOUT_GAP.sub(r" \1\2 ", cell_text)
    if cell_text.isascii():
        return re.findall("[a-z0-9]+", cell_text)
    characters_or_spaces = [
        character if character.isalnum() or category(character)[0] == "M" else " "
        for character in cell_text
    ]
    return "".join(characters_or_spaces).split()


def _find_side_word_index(name_words: Sequence[str]) -> int | None:
    """Return the index of the word that names the hemisphere.

    It is the first word, else the last, else the only such word in between. None if
    there is no such word, several in between, or no other word.
    """
    side_word_indices = [
        i for i, name_word in enumerate(name_words) if name_word in HEMISPHERE_WORDS
    ]
    if len(name_words) < 2 or not side_word_indices:
        return None
    if side_word_indices[0] == 0:
        return 0
    if side_word_indices[-1] == len(name_words) - 1:
        return side_word_indices[-1]
    return side_word_indices[0] if len(side_word_indices) == 1 else None


def find_side(cell_text: str) -> str | None:
    """Return the hemisphere that a table cell names; None if none or both.

    >>> find_side("right hemisphere"), find_side("ctx-lh"), find_side("1")
    ('R', 'L', None)
    """
    hemispheres = {
        HEMISPHERE_WORDS.get(cell_word) for cell_word in split_words(cell_text)
    } - {None}
    return hemispheres.pop() if len(hemispheres) == 1 else None


def list_unclear_side_pairs(region_names: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of names that may be left and right by an initial of a language.

    >>> list_unclear_side_pairs(["Hippocampe G", "Hippocampe D", "Vermis"])
    [('Hippocampe G', 'Hippocampe D')]
    """
    name_by_words = {tuple(split_words(name)): name for name in region_names}
    unclear_name_pairs = []
    for name_words, name in name_by_words.items():
        if len(name_words) < 2:
            continue
        # No name has an empty word.
        right_first_word = _RIGHT_INITIAL_BY_LEFT.get(name_words[0], "")
        right_last_word = _RIGHT_INITIAL_BY_LEFT.get(name_words[-1], "")
        right_names = (
            name_by_words.get((right_first_word, *name_words[1:])),
            name_by_words.get((*name_words[:-1], right_last_word)),
        )
        unclear_name_pairs += [
            (name, right_name) for right_name in right_names if right_name
        ]
    return unclear_name_pairs


def bare_name(name: str) -> str:
    """Return a name without `ctx` and its hemisphere, otherwise as it is spelled.

    >>> bare_name("ctx_lh_G_and_S_cingul-Ant"), bare_name("Precentral_L")
    ('G_and_S_cingul-Ant', 'Precentral')
    """
    bare_text = _PREFIX.sub("", as_text(name))
    if _ENIGMA_NAME.fullmatch(bare_text.lower()):
        return bare_text[1:]
    if split_side_from_name(name)[0] is None:
        return bare_text
    for side_pattern in _SIDE_PATTERNS:
        core_text = side_pattern.sub("", bare_text, count=1)
        if core_text not in ("", bare_text):
            return core_text
    return bare_text


# Word stems of structures below the cortex in several languages, without accents. They
# include white matter and fluid, which are not cortex either.
_DEEP_STEMS = re.compile(
    r"t[h]?alam|caudat|caudad|caude\b|putamen|pallid|globus|h?ip+ocamp|am[iy]gdal"
    r"|ac+umb|striatum|striatal|nigra|cerebel|cervelet|kleinhirn|vermis|\bcrus|midbrain"
    r"|brain ?stem|mesenceph|dienceph|rhombenceph|medulla|\bpons\b|raphe|habenul"
    r"|geniculat|pulvinar|mam+illar|ganglia|tegment|c(o|a)?eruleus|collicul|aqueduct"
    r"|incerta|claustrum|forebrain|nucle(us|i|o)\b|noyau|subicul|dentat|fimbria|fornix"
    r"|red ?n\b|ventral ?dc|ventric|white matter|corpus callosum|choroid|chiasm|plexus"
    r"|fascicul|capsul|peduncl|\btract\b"
)
_PARAHIPPOCAMPAL = re.compile(r"para ?h?ip+o?(camp\w*)?\b")
# Abbreviations of such structures: a word of a name (_DEEP_WORDS), or the whole core
# (_DEEP_NAMES). The last lines of _DEEP_WORDS are from Brainnetome and Tian's atlas.
_DEEP_WORDS = """
    hip hipp hippo amy amyg thal tha cau caud put pall pal nac nacc acb gpe gpi snc snr
    snpc snpr stn sth vta pag lgn mgn vpl vpm bg bnst bst vdc nbm pbp hth pul ca1 ca2
    ca3 ca4
    mamyg lamyg rhipp chipp vca dca vmpu dlpu mpftha mpmtha stha rttha pptha otha cttha
    lpftha ptha atha ahip phip lamy mamy aput pput acau pcau"""
_DEEP_NAMES = "gp sn snpc snpr rn redn lc hn mn vep pu dg nacc lthal"
# Part of a structure: lower-case letters before its abbreviation (`pCAU`), or `tha`
# after capitals.
_DEEP_PART = re.compile(
    "[a-z]{1,3}(AMYG?|Amyg?|HIPP?|Hipp?|CAUD?|Caud?|Ca|PUT|Put?|GP[ei]?|NA[Cc]{1,2}"
    "|THAL?|Thal?|PALL?|Pall?)|[a-zA-Z]*[A-Z][a-zA-Z]*tha|Ca"
)
_CORTEX_STEMS = re.compile(
    r"\bctx\b|gyr(us|i|al|e)\b|sulc|cort(ex|ic)|front|tempor|pariet|occipit|cingul"
    r"|insul|operc|lobul|cuneus|fusiform|lingual|calcarin|rolandic|heschl|rectus|orbit"
    r"|parahip|entorh|perirh|angular|supramarg|motor|olfact|(pre|post|para)centr|central"
    r"|bankssts|\bofc|\bpars ?(oper|orb|tri)|striate|planum|splenial|subgenual|brodmann"
    r"|\bba ?\d+|visual|auditor|somato|sylvi|triangul|uncus|broca|wernicke"
    r"|^[gs] \w|^lat fis|^pole "
)
_CORTEX_WORDS = """
    sfg mfg ifg org prg pcl stg mtg itg fug phg psts sts spl ipl pcun pog ins mvocc
    locc smg dlpfc vlpfc dmpfc vmpfc mpfc ofc mcc pcc rsc v1 v2 v3 v4 m1 s1 s2 sma tpj
    sommot dorsattn salventattn"""
# Networks of Schaefer et al., with numbered parcels.
_NUMBERED_PARCEL = re.compile(r"\b(vis|limbic|cont|default|temppar)\b.* \d+$")

_DEEP_WORD_SET = frozenset(_DEEP_WORDS.split())
_DEEP_NAME_SET = frozenset(_DEEP_NAMES.split())
_CORTEX_WORD_SET = frozenset(_CORTEX_WORDS.split())


@lru_cache(maxsize=8192)
def find_structure_name(name: str) -> str:
    """Return the structure that a name implies: "cortex", "subcortex" or "unknown".

    >>> [*map(find_structure_name, ("lh_insula", "pTHA-rh", "A8m_L"))]
    ['cortex', 'subcortex', 'unknown']
    """
    hemisphere, core_name = split_side_from_name(name)
    original_words = [
        name_part
        for name_part in re.findall(r"[^\W_]+", as_text(name))
        if name_part.lower() not in HEMISPHERE_WORDS
    ]
    decomposed_text = normalize("NFKD", " ".join(original_words).lower())
    name_text = "".join(
        character for character in decomposed_text if category(character) != "Mn"
    )
    # The parahippocampal gyrus is cortex, although it contains "hippocamp".
    parahippocampal_match = _PARAHIPPOCAMPAL.search(name_text)
    text_without_parahippocampal = _PARAHIPPOCAMPAL.sub(" ", name_text)
    is_subcortex = (
        _DEEP_STEMS.search(text_without_parahippocampal)
        or core_name in _DEEP_NAME_SET
        or re.sub(r"\d+$", "", core_name) in _DEEP_NAME_SET
        or core_name in SUBCORTEX_SHORT
        or not _DEEP_WORD_SET.isdisjoint(text_without_parahippocampal.split())
        or any(map(_DEEP_PART.fullmatch, original_words))
    )
    if is_subcortex:
        return "subcortex"
    is_cortex = (
        parahippocampal_match
        or _CORTEX_STEMS.search(name_text)
        or not _CORTEX_WORD_SET.isdisjoint(name_text.split())
        or (hemisphere and _NUMBERED_PARCEL.search(name_text))
    )
    return "cortex" if is_cortex else "unknown"


@lru_cache(maxsize=8192)
def is_no_grey_matter(region_name: str) -> bool:
    """Return whether a name is of white matter, fluid, vessels or nothing.

    >>> is_no_grey_matter("Left-Lateral-Ventricle"), is_no_grey_matter("Brain-Stem")
    (True, False)
    """
    if _WHITE_MATTER.match(as_text(region_name)):
        return True
    return _NO_GREY_MATTER.fullmatch(split_side_from_name(region_name)[1]) is not None


@lru_cache(maxsize=8192)
def is_non_region_name(region_name: str | bytes) -> bool:
    """Return whether a name is not a region on purpose, so that readers may drop it.

    Such names are label 0, the medial wall, cerebellum, ventricles, white matter, and
    the totals in FreeSurfer's tables. Any other unknown name may be a misspelt region.
    """
    name_text = as_text(region_name)
    if _WHITE_MATTER.match(name_text) or set(name_text) == {"?"}:
        return True
    return _OUTSIDE.fullmatch(split_side_from_name(name_text)[1]) is not None


def list_nearest_names(
    name: str | bytes, known_names: Sequence[str], hemisphere: str | None = None
) -> list[str]:
    """Return up to three names with the spelling most similar to an unknown name."""
    region_side, core_name = split_side_from_name(name)
    hemisphere_letter = region_side or hemisphere
    names_by_core: dict[str, list[str]] = {}
    for known_name in known_names:
        candidate_side, candidate_core_name = split_side_from_name(known_name)
        if (
            None in (hemisphere_letter, candidate_side)
            or candidate_side == hemisphere_letter
        ):
            names_by_core.setdefault(candidate_core_name, []).append(known_name)
    nearest_core_names = get_close_matches(core_name, names_by_core, n=3, cutoff=0.6)
    similar_names = [
        name for core_name in nearest_core_names for name in names_by_core[core_name]
    ]
    return similar_names[:3]
