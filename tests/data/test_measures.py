"""Tracers and measures of PET: one entry each, in any order."""

import pytest

from brainlsap.adni.convert import MODALITIES, find_modality_name, find_tracer_entity
from brainlsap.data import TRACERS, measures
from brainlsap.data.covariates import find_covariate_kind
from brainlsap.data.find_files import StudyFiles
from brainlsap.data.measures import (
    KNOWN_MEASURE_NAMES,
    PET_FEATURE_TITLES,
    PET_FEATURES,
    Tracer,
    _add_generic_tracers,
    _find_entity_meanings,
    find_longest_tracer,
    find_measure_names_of_file,
    find_tracers,
    find_tracers_of_file,
    get_measure_record,
    wrong_tracer_text,
)
from brainlsap.options import OPTIONS
from brainlsap.report.tables import FEATURE_TITLES
from tests.data.conftest import refused
from tests.data.test_find_files import scan_of

# A tracer of a third party, with names that no registered one has.
OWN = Tracer(
    *("Own-1", "own", ("11COWN1", "Own-1"), (0.1, 9.0), (0.5, 7.0)),
    feature_title="own PET",
)
SPECIFIC = tuple(tracer for tracer in TRACERS if not tracer.is_generic)


@pytest.mark.parametrize("tracer", TRACERS, ids=lambda tracer: tracer.name)
def test_every_tracer_is_found_by_each_of_its_entities(tracer):
    for entity in tracer.entities:
        assert {found.name for found in find_tracers(f"[18F]{entity}")} == {tracer.name}
        assert find_longest_tracer(f"Coreg_{entity}_Avg") == tracer
        assert find_modality_name(f"Coreg {entity}", {}) == tracer.feature
        assert (
            find_tracer_entity(f"Coreg {entity}", tracer.feature) == tracer.entities[0]
        )


@pytest.mark.parametrize("tracer", SPECIFIC, ids=lambda tracer: tracer.name)
def test_every_tracer_is_found_where_it_is_glued_to_the_name_of_a_file(tracer):
    for entity in tracer.entities:
        # "sheet807" holds T807.
        if "T807" not in entity:
            for name in (f"UCBERKELEY{entity}_8mm_02_17_23.csv", f"x{entity}PVC.csv"):
                assert find_tracers_of_file(name) == {tracer}
                other = {"fdg": "tau"}.get(tracer.feature, "fdg")
                assert wrong_tracer_text(name, other) == tracer.name
                assert wrong_tracer_text(name, tracer.feature) is None


def test_every_measure_of_tracers_has_one_title():
    assert PET_FEATURE_TITLES.keys() == {*PET_FEATURES}
    with pytest.raises(TypeError, match="feature_title"):
        _add_generic_tracers((*SPECIFIC, OWN._replace(feature_title="")))
    second = OWN._replace(name="Own-2", entities=("Own-2",), feature_title="another")
    with pytest.raises(TypeError, match="feature_title"):
        _add_generic_tracers((*SPECIFIC, OWN, second))


@pytest.mark.parametrize("tracer", TRACERS, ids=lambda tracer: tracer.name)
def test_a_median_like_that_of_the_reference_is_usual(tracer):
    """The unit of the ranges: the reference region has the ratio 1."""
    lowest_median, highest_median = tracer.usual_median_range
    assert lowest_median <= 1 <= highest_median


def test_the_start_of_a_longer_word_is_no_tracer():
    meanings = {"ucbj": "sv2a", "fdg": "fdg", "tau": "tau"}

    def find(name):
        return _find_entity_meanings(name, meanings)

    assert not find("ucbjan.csv")
    assert not find("UCBJuly_2024.csv")
    for name in ("ucbj.csv", "UCBERKELEYUCBJ_8mm.csv", "UCBJ_suvr.csv", "ucbjpvc.csv"):
        assert find(name) == {"sv2a"}
    assert find("fdgall.csv") == {"fdg"}


def test_short_names_are_found_beside_known_words_only():
    names = ("UCBERKELEYTAU.csv", "UCBERKELEY_TAUPVC_6MM.csv", "TauSUVR.csv")
    assert [find_measure_names_of_file(name) for name in names] == 3 * [{"tau"}]
    assert find_measure_names_of_file("UCBERKELEYAMY_6MM.csv") == {"amyloid"}
    assert find_measure_names_of_file("surfaceArea.csv") == {"area"}
    assert find_measure_names_of_file("amyloid_hippocampus.csv") == {"amyloid"}
    assert find_measure_names_of_file("thicknessstd.csv") == {"other"}
    for name in (
        "restaurant.csv",
        "sheet807.csv",
        "sub-TAU01_tacs.tsv",
        "hippo_amy.csv",
    ):
        assert not find_measure_names_of_file(name)


@pytest.mark.parametrize("feature", PET_FEATURES)
def test_every_measure_of_pet_is_known_everywhere(feature):
    measure = get_measure_record(feature)
    assert feature in KNOWN_MEASURE_NAMES
    assert feature in MODALITIES
    assert feature in FEATURE_TITLES
    assert find_covariate_kind(f"{feature}_tracer") == "tracer"
    for tracer in TRACERS:
        if tracer.feature == feature:
            assert measure.plausible_range[0] <= tracer.plausible_range[0]
            assert measure.plausible_range[1] >= tracer.plausible_range[1]
            assert measure.usual_median_range[0] <= tracer.usual_median_range[0]
            assert measure.usual_median_range[1] >= tracer.usual_median_range[1]
    missing = [
        f"name {feature} in the help of --{name}"
        for name in ("feature", "require")
        if not any(o.name == name and feature in o.help for o in OPTIONS)
    ]
    assert not missing


def test_the_order_of_tracers_has_no_effect(monkeypatch):
    texts = ("amyloid_AV45", "tau AV1451", "florbetapir", "Amyloid PET")
    names = [find_longest_tracer(text).name for text in texts]
    assert names == ["florbetapir", "flortaucipir", "florbetapir", "amyloid"]
    expected_files_text = get_measure_record("amyloid").expected_files_text
    patterns = [set(group) for group in get_measure_record("amyloid").file_patterns[:8]]
    monkeypatch.setattr(measures, "TRACERS", TRACERS[::-1])
    assert [find_longest_tracer(text).name for text in texts] == names
    assert get_measure_record("amyloid").expected_files_text == expected_files_text
    reversed_files = measures._make_pet_measure_record("amyloid").file_patterns[:8]
    assert [set(group) for group in reversed_files] == patterns


def test_a_tracer_of_a_new_measure_needs_one_entry(monkeypatch):
    tracers = _add_generic_tracers((OWN, *SPECIFIC))
    generic = OWN._replace(name="own", entities=("own",), feature_title="")
    assert {*tracers} == {*TRACERS, OWN, generic}
    monkeypatch.setattr(measures, "TRACERS", tracers)
    measure = measures._make_pet_measure_record("own")
    assert measure.plausible_range == (0.1, 9.0)
    assert measure.file_patterns[0] == ("*11cown1*regions.*", "*own-1*regions.*")
    assert find_longest_tracer("Own-1_amyloid", "own") == OWN


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entities": ("AV-45",)}, "'av-45' is an entity of florbetapir and Own-1"),
        ({"name": "PiB"}, "tracers must have different names"),
    ],
)
def test_tracers_that_cannot_be_told_apart_are_refused(changes, message):
    with pytest.raises(TypeError, match=message):
        _add_generic_tracers((*SPECIFIC, OWN._replace(**changes)))


@pytest.mark.parametrize(
    "changes",
    [
        {"plausible_range": (4.0, 0.1)},
        {"usual_median_range": (3.0, 0.5)},
        {"usual_median_range": (0.0, 3.0)},
        {"usual_median_range": (0.5, 30.0)},
    ],
)
def test_ranges_of_a_tracer_that_contradict_each_other_are_refused(changes):
    with pytest.raises(TypeError, match="usual_median_range of Own-1"):
        _add_generic_tracers((*SPECIFIC, OWN._replace(**changes)))


def test_files_of_two_tracers_of_a_measure_are_ambiguous(write, tmp_path, tiny):
    write("sub-01/pet/sub-01_trc-11CPIB_regions.tsv", "")
    write("sub-01/pet/sub-01_desc-amyloid_regions.tsv", "")
    files = StudyFiles(tmp_path)
    assert "PIB" in files.find_region_table_path(scan_of(files), "amyloid", tiny).name
    write("sub-01/pet/sub-01_trc-18FAV45_regions.tsv", "")
    files = StudyFiles(tmp_path)
    with refused("2 files could be the amyloid"):
        files.find_region_table_path(scan_of(files), "amyloid", tiny)


def test_usual_medians_are_those_of_the_tracer(monkeypatch):
    registered = measures._add_generic_tracers((*SPECIFIC, OWN))
    monkeypatch.setattr(measures, "TRACERS", registered)
    assert (
        measures._make_pet_measure_record("own").usual_median_range
        == OWN.usual_median_range
    )
