import pytest

from brainlsap.atlas import available_atlases, load_atlas
from brainlsap.atlas.region_names import (
    bare_name,
    find_side,
    find_structure_name,
    is_non_region_name,
    split_side_from_name,
)
from brainlsap.exceptions import RegionNameError

# Every region that the paper's tables name, spelt as there.
PAPER_LEFT = """
    G&S.occipital.inf G&S.paracentral G.cingul.Post.ventral G.cuneus
    G.front.inf.Orbital G.temp.sup.G.T.transv Lat.Fis.ant.Horizont
    Lat.Fis.ant.Vertical S.occipital.ant S.postcentral S.suborbital S.temporal.inf
    Sub.put
    """
PAPER_RIGHT = """
    G&S.cingul.Mid.Ant G&S.paracentral G.cingul.Post.ventral G.cuneus
    G.front.inf.Orbital G.oc.temp.med.Lingual G.parietal.sup G.precuneus
    Lat.Fis.ant.Horizont Lat.Fis.ant.Vertical Lat.Fis.post S.calcarine
    S.intrapariet&P.trans S.oc.temp.lat S.oc.temp.med&Lingual S.ortibal.med.olfact
    S.pericallosal S.precentral.inf.part S.suborbital S.temporal.sup Sub.put
    """


def spellings(bare, side):
    """Every spelling of one region that a tool is known to write."""
    word = {"L": "left", "R": "right"}[side]
    cores = {bare, bare.replace("_and_", "&")}
    cores |= {core.replace("-", "_") for core in cores}
    cores |= {core.replace("_", "-") for core in cores}
    cores |= {core.replace("_", ".").replace("-", ".") for core in cores}
    if bare == "Thalamus":
        cores |= {"Thalamus-Proper", "Thalamus-Proper*", "Thalamus_Proper"}
    if bare == "Accumbens-area":
        cores |= {"Accumbens"}
    h = side.lower()
    written = set()
    for core in cores:
        written |= {f"ctx_{h}h_{core}", f"ctx-{h}h-{core}", f"{h}h_{core}"}
        written |= {f"{h}h.{core}", f"{core}_{h}h", f"{core}_{word}"}
        written |= {f"{side} {core}", f"{word} {core}", f"({side}) {core}"}
        written |= {f"{side}_{core}", f"{word}-{core}", f"{word.title()}-{core}"}
    return written | {s.lower() for s in written} | {s.upper() for s in written}


@pytest.mark.parametrize("name", available_atlases())
def test_every_spelling_of_every_region_comes_home(name):
    atlas = load_atlas(name)
    owner = {}
    for place, row in atlas.regions.iterrows():
        bare, side = bare_name(row["name"]), row["hemisphere"]
        other = {"L": "R", "R": "L"}[side]
        for text in spellings(bare, side) | {row["short_name"]}:
            assert owner.setdefault(text, place) == place, text
            assert atlas.find(text) == place, text
            assert atlas.find(text, other) is None, text
        assert atlas.find(row["name"].encode()) == place
        assert atlas.find(bare, side) == place
        # a parcel may be counted on one side only
        assert atlas.find(bare) in ((None, place) if bare[-1].isdigit() else (None,))
    assert len(owner) > 20 * len(atlas)


def test_the_papers_names_are_known_and_printed_rightly():
    atlas = load_atlas("destrieux160")
    written = [f"(L) {name}" for name in PAPER_LEFT.split()]
    written += [f"(R) {name}" for name in PAPER_RIGHT.split()]
    printed = [atlas.short_names[place] for place in atlas.match(written)]
    assert printed == [name.replace("ortibal", "orbital") for name in written]
    assert atlas.names[atlas.find("(R) Sub.put")] == "Right-Putamen"


def test_names_of_schaefers_parcels_and_enigmas_structures():
    atlas = load_atlas("schaefer100")
    for name in ("7Networks_LH_Vis_2", "ctx-lh-7Networks_LH_Vis_2", b"LH_Vis_2"):
        assert atlas.find(name) == 1
    assert atlas.find("7Networks_RH_Vis_2", "L") is None
    assert atlas.full_names[1] == "left visual network 2"
    for name in ("Laccumb", "Left-Accumbens-area", "lh.accumbens", "Accumbens_L"):
        assert atlas.find(name) == 100
    assert load_atlas("desikan82").find("Rthal") == 75
    with pytest.raises(RegionNameError, match=r"to schaefer200, not to schaefer1"):
        atlas.match(load_atlas("schaefer200").names)


OUTSIDE = """
    Unknown Medial_wall ctx-lh-corpuscallosum ctx_rh_unknown Left-Cerebellum-Cortex
    Brain-Stem Right-VentralDC Left-Inf-Lat-Vent 3rd-Ventricle wm-lh-insula eTIV ???
    CC_Mid_Posterior lh_MeanThickness Background+FreeSurfer_Defined_Medial_Wall
    """


@pytest.mark.parametrize("name", OUTSIDE.split())
def test_what_atlases_leave_out(name):
    assert is_non_region_name(name)
    assert all(load_atlas(a).find(name) is None for a in available_atlases())


def test_no_region_is_left_out_but_the_accumbens():
    for name in available_atlases():
        atlas = load_atlas(name)
        out = {
            split_side_from_name(region)[1]
            for region in atlas.names
            if is_non_region_name(region)
        }
        # destrieux160 leaves it out; where an atlas has it, find answers first.
        assert out <= {"accumbens"}
    assert not is_non_region_name("lh_G_precuneuss")  # nor one that is misspelt


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("SFG_L_7_1", "SFG_R_7_1"),
        ("Hippocampus_lh_head", "Hippocampus_rh_head"),
        ("Lóbulo paracentral L", "Lóbulo paracentral R"),
        ("L_Área 44", "R_Área 44"),
        ("Hippocampe gauche", "Hippocampe (droit)"),
        ("Amygdala links", "Amygdala rechts"),
        ("左海马", "右海马"),
        ("海马_L", "海马_R"),
        ("Νησίδα_lh", "Νησίδα_rh"),
    ],
)
def test_sides_are_read_amid_names_and_in_every_script(left, right):
    """Of "Lóbulo" the L was a side; sides in the middle or in words were none."""
    assert (split_side_from_name(left)[0], split_side_from_name(right)[0]) == ("L", "R")
    assert split_side_from_name(left)[1] == split_side_from_name(right)[1] != ""
    assert bare_name(left) == bare_name(right).replace("(", "").replace(")", "")


def test_what_is_no_side_is_none():
    for name in ("L'insula", "Región motriz G", "Lóbulo", "L", "a_L_R_b"):
        assert split_side_from_name(name)[0] is None, name
    assert bare_name("Lóbulo") == "Lóbulo"
    assert [find_side(text) for text in ("hemi-rh", "1", "left and right", "")] == [
        *("R", None, None, None)
    ]


DEEP = """
    mAmyg_L lHipp_R rHipp_L vCa_L dCa_R GP_L NAC_R vmPu_L dlPu_R mPFtha_L Stha_R cTtha_L
    pTHA-rh aTHA-lh NAc-shell-lh aGP-rh PUT-DA-lh CAU-tail-rh HIP-head-m-lh AMY-mAMY-rh
    Amyg_L_2_1 BG_R_6_1 Tha_L_8_3 Thal_AV_L N_Acc_R SN_pc_L Red_N_L Raphe_D VTA_R LC_L
    ACCUMBENS_LEFT LH_GPe LH_STH Left-VentralDC Noyau_caudé_gauche L_CA1 Tálamo_R
    """
CORTEX = """
    ParaHippocampal_L Para_Hip_R Striate_L Caudal_anterior_cingulate_L SFG_L_7_1
    LH_Vis_1 TemporalPole_R Gyrus_frontal_superieur_L L_entorhinal PhG_R_6_1
    """
UNKNOWN = "A8m_L TH_R TL_L L_PGp_ROI L_5L_ROI R_44_ROI Area_7 北_L"


@pytest.mark.parametrize(
    ("names", "structure"),
    [(DEEP, "subcortex"), (CORTEX, "cortex"), (UNKNOWN, "unknown")],
)
def test_what_is_not_known_to_be_cortex_is_not_called_cortex(names, structure):
    """Brainnetome's amygdala, hippocampus, basal ganglia, thalamus were cortex."""
    found = {name: find_structure_name(name) for name in names.split()}
    assert found == dict.fromkeys(found, structure)
