"""Whether left and right of a new study are those of a training."""

import numpy as np
import pytest

from brainlsap.data.quality import (
    SideComparison,
    learn_asymmetry_record,
    make_exchanged_scan_mask,
    make_side_comparison,
)

N_PAIRS = 34
HOMOTOPIC = np.r_[np.arange(N_PAIRS) + N_PAIRS, np.arange(N_PAIRS)]
SITE_SD = 0.04


def draw_study(rng, asymmetry, n_people, site_sd=SITE_SD):
    """Draw thickness in mm: people, regions and the scanner of a site vary."""
    mean = np.r_[2.5 + asymmetry / 2, 2.5 - asymmetry / 2]
    mean = mean + rng.normal(0, site_sd, 2 * N_PAIRS)
    people = rng.normal(0, 0.08, (n_people, 1))
    values = mean + people + rng.normal(0, 0.13, (n_people, 2 * N_PAIRS))
    return values, np.arange(n_people).astype(str)


def test_swapped_studies_are_found_and_others_are_not():
    """In 60 trainings of 50 people, new studies have 1 to 60 people and a scanner."""
    rng = np.random.default_rng(0)
    verdicts = {"correct": [], "swapped": []}
    for _ in range(60):
        asymmetry = rng.normal(0, 0.08, N_PAIRS)
        training = learn_asymmetry_record(*draw_study(rng, asymmetry, 50), HOMOTOPIC)
        values, people = draw_study(rng, asymmetry, int(rng.choice([1, 8, 30, 60])))
        verdicts["correct"].append(make_side_comparison(values, people, training))
        swapped = values[:, HOMOTOPIC]
        verdicts["swapped"].append(make_side_comparison(swapped, people, training))
    assert SideComparison.EXCHANGED not in verdicts["correct"]
    assert SideComparison.CORRECT not in verdicts["swapped"]
    assert verdicts["swapped"].count(SideComparison.EXCHANGED) > 0.6 * 60


def test_single_swapped_scans_are_found_by_the_training():
    """At most 1 in 1,000 correct scans is flagged, whatever the asymmetry."""
    rng = np.random.default_rng(3)
    n_false = n_found = n_judged = 0
    strengths = np.repeat([0.02, 0.05, 0.1, 0.2], 10)
    for strength in strengths:
        asymmetry = rng.normal(0, strength, N_PAIRS)
        training = learn_asymmetry_record(*draw_study(rng, asymmetry, 50), HOMOTOPIC)
        values, _ = draw_study(rng, asymmetry, 100)
        n_false += make_exchanged_scan_mask(values, training).sum()
        n_flagged = make_exchanged_scan_mask(values[:, HOMOTOPIC], training).sum()
        # One by one as well, for the other scans do not matter.
        assert n_flagged == sum(
            make_exchanged_scan_mask(one[None, HOMOTOPIC], training)[0]
            for one in values
        )
        n_found += n_flagged
        n_judged += 100 * (n_flagged > 0)
    assert n_false <= 100 * len(strengths) / 1000
    assert n_judged >= 100 * len(strengths) / 4
    assert n_found >= 0.95 * n_judged


@pytest.mark.parametrize("site_sd", [0, SITE_SD])
def test_without_asymmetry_nothing_is_taken_for_swapped(site_sd):
    rng = np.random.default_rng(1)
    for _ in range(60):
        training = learn_asymmetry_record(
            *draw_study(rng, np.zeros(N_PAIRS), 50, 0), HOMOTOPIC
        )
        new_study = draw_study(rng, np.zeros(N_PAIRS), 30, site_sd)
        assert (
            make_side_comparison(*new_study, training) is not SideComparison.EXCHANGED
        )


def test_visits_and_missing_values_do_not_change_the_sides():
    rng = np.random.default_rng(2)
    asymmetry = rng.normal(0, 0.1, N_PAIRS)
    values, people = draw_study(rng, asymmetry, 40)
    training = learn_asymmetry_record(values, people, HOMOTOPIC)
    assert (
        learn_asymmetry_record(np.r_[values, values], [*people, *people], HOMOTOPIC)
        == training
    )
    values[:, 3] = np.nan
    assert make_side_comparison(values, people, training) is SideComparison.CORRECT
    assert learn_asymmetry_record(values[:7], people[:7], HOMOTOPIC) is None
    assert make_side_comparison(values, people, None) is SideComparison.UNKNOWN
