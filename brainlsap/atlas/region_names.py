"""One name per region, however a tool spells it.

Tools write the same region as `ctx_lh_G_and_S_paracentral`, `lh.G&S_paracentral`,
`L G_and_S_paracentral`, `G.S.paracentral_lh` or `(L) G&S.paracentral`. A name is
taken apart into a hemisphere and a core; the core keeps letters and digits only, so
that separators and case cannot differ. Nothing is guessed: a core that is not
exactly a region's core is an unknown name.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache

HEMISPHERE_WORDS = {"l": "L", "lh": "L", "left": "L", "r": "R", "rh": "R", "right": "R"}
# One word of a name -> the word that FreeSurfer uses. "ortibal" stands in the
# paper's tables for the orbital sulcus.
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
# So begin the cores of what is no cortex, whole or in parts (`Cerebelum_Crus1_L`).
_DEEP = (
    *("striatum", "ventralstriatum", "hypothalam", "subthalam", "substantianigra"),
    *("cerebell?[ua]", "vermis", "brainstem", "midbrain", "medulla", "pons$"),
    *("raphe", "redn", r"(?:gp[ei]|sn|snp[cr]|stn|vta)$"),  # as AAL3 has them
)
BELOW_CORTEX = "|".join((*SUBCORTEX_SHORT, *_DEEP))
# One whole core -> FreeSurfer's core; the left-hand sides are no region's name. ENIGMA
# writes `Laccumb`, the paper's tables `Sub.acc`.
_ENIGMA = ("accumb", "amyg", "caud", "hippo", "pal", "put", "thal")
_CORE_ALIASES = {
    "thalamusproper": "thalamus",
    **dict.fromkeys(("accumbensarea", "nucleusaccumbens", "nacc"), "accumbens"),
    **dict.fromkeys(("hipp", "hip"), "hippocampus"),
    "tha": "thalamus",  # codespell:ignore tha
    "cau": "caudate",
    "pall": "pallidum",
    "amy": "amygdala",
    **dict(zip(_ENIGMA, sorted(SUBCORTEX_SHORT), strict=True)),
    **{name.replace(".", "").lower(): core for core, name in SUBCORTEX_SHORT.items()},
}
_ENIGMA_NAME = re.compile(f"([lr])({'|'.join(_ENIGMA)})")
# Atlases put before the side what names of regions need not say (`7Networks_LH_Vis_1`).
_PREFIX = re.compile(
    r"^(ctx[^a-z0-9]+)?(([lr]h[^a-z0-9]+)?\d+networks[^a-z0-9]+(?=[lr]h[^a-z0-9]))?",
    re.IGNORECASE,
)
# Cores of what FreeSurfer, MRtrix and their tables name beside the regions:
# label 0, the medial wall, cerebellum, brain stem, white matter, fluid, and sums.
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


def as_text(name: str | bytes) -> str:
    """Return a name as text; older tools hand out byte strings."""
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
    return text.strip()


def are_counts(names: Sequence[str]) -> bool:
    """Return whether names only count the rows from 0 or 1, as data frames do."""
    numbers = [str(i) for i in range(len(names) + 1)]
    return list(names) in (numbers[:-1], numbers[1:])


@lru_cache(maxsize=8192)  # cohorts repeat the same few hundred names per scan
def split_name(name: str | bytes) -> tuple[str | None, str]:
    """Take a name apart into its hemisphere (None where not said) and its core.

    >>> split_name("ctx_lh_G_and_S_paracentral"), split_name(b"rh.Thalamus-Proper*")
    (('L', 'gsparacentral'), ('R', 'thalamus'))
    """
    words = [
        _WORD_ALIASES.get(word, word)
        for word in re.split(r"[^a-z0-9]+", _PREFIX.sub("", as_text(name)).lower())
        if word and word != "and"
    ]
    if len(words) == 1 and (parts := _ENIGMA_NAME.fullmatch(words[0])):
        words = list(parts.groups())
    hemisphere = None
    if len(words) > 1 and words[0] in HEMISPHERE_WORDS:
        hemisphere, words = HEMISPHERE_WORDS[words[0]], words[1:]
    elif len(words) > 1 and words[-1] in HEMISPHERE_WORDS:
        hemisphere, words = HEMISPHERE_WORDS[words[-1]], words[:-1]
    core = "".join(words)
    return hemisphere, _CORE_ALIASES.get(core, core)


def bare_name(name: str) -> str:
    """Return a name without `ctx` and its hemisphere, spelling kept.

    >>> bare_name("ctx_lh_G_and_S_cingul-Ant"), bare_name("Precentral_L")
    ('G_and_S_cingul-Ant', 'Precentral')
    """
    side = "|".join(sorted(HEMISPHERE_WORDS, key=len, reverse=True))
    text = _PREFIX.sub("", as_text(name))
    if _ENIGMA_NAME.fullmatch(text.lower()):
        return text[1:]
    ends = rf"^\(?({side})[^a-z0-9]+|[^a-z0-9]+({side})$"
    return re.sub(ends, "", text, count=1, flags=re.IGNORECASE) or text


@lru_cache(maxsize=8192)
def is_outside(name: str | bytes) -> bool:
    """Say whether atlases leave a name out on purpose, so that a reader may drop it.

    Such are label 0, the medial wall, cerebellum, ventricles, white matter, and the
    sums in FreeSurfer's tables. Any other unknown name may be a region spelt wrongly.
    """
    text = as_text(name)
    if re.match(r"wm[-_.]", text, flags=re.IGNORECASE) or set(text) == {"?"}:
        return True
    return _OUTSIDE.fullmatch(split_name(text)[1]) is not None


def nearest_names(
    name: str | bytes, names: Sequence[str], hemisphere: str | None = None
) -> list[str]:
    """Return at most three names that are spelt most like an unknown one."""
    side, core = split_name(name)
    side, found = side or hemisphere, dict[str, list[str]]()
    for candidate in names:
        its, its_core = split_name(candidate)
        if None in (side, its) or its == side:
            found.setdefault(its_core, []).append(candidate)
    close = get_close_matches(core, found, n=3, cutoff=0.6)
    return [candidate for one in close for candidate in found[one]][:3]
