"""Text that looks like tables: what is written comes back, the rest is refused.

Examples are few and the same on every run; BRAINLSAP_EXAMPLES=400 makes more.
"""

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainlsap.data.connectomes import read_connectome
from brainlsap.data.features import read_feature
from brainlsap.data.freesurfer_text import aparc_text, aseg_text
from brainlsap.data.participants import read_participants
from brainlsap.evaluation import read_splits, write_splits
from tests.data import feature_formats
from tests.data.test_reader_properties import DESIKAN, NAMES, TINY, few
from tests.fuzz.one_input import Place
from tests.fuzz.targets import TARGETS

TEXTS = (
    *("c.csv", "r.tsv", "regions.tsv", "wide.csv", "gtm.stats.dat", "x_tacs.tsv"),
    *("lh.aparc.stats", "aseg.stats", "participants.tsv", "sub-01_sessions.tsv"),
    *("ADNIMERGE.csv", "colours.txt", "labels.txt", "weights.txt", "truth.tsv"),
    *("s.tsv", "itk.txt", "flirt.mat", "frames.json", "evaluation.json"),
    *("regions.tsv:atlas", "seg-destrieux_nodes.tsv", "lh.cortex.label"),
)
HEADS = ("participant_id", "session_id", "region", "name", "index", "suvr", "label")
ODD = ("nan", "1e999", "-1", "n/a", "", '"', "'", "#", "{", "[", "\0", "\ufeff", "²")
numbers = st.one_of(st.integers(-(10**20), 10**20), st.floats()).map(str)
cells = st.one_of(numbers, st.sampled_from([*HEADS, *NAMES, *ODD]), st.text(max_size=5))
rows = st.lists(cells, min_size=1, max_size=6)


@st.composite
def tables(draw):
    """Draw lines of cells with one delimiter, mostly of one length."""
    delimiter = draw(st.sampled_from([",", "\t", ";", " ", "  "]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    lines = [delimiter.join(row) for row in draw(st.lists(rows, max_size=6))]
    return end.join(lines) + draw(st.sampled_from(["", end]))


@pytest.mark.parametrize("name", TEXTS)
def test_any_text_is_read_or_refused(name):
    with closing(Place(TARGETS[name])) as place:
        whole = place.seed.decode().splitlines(keepends=True)

        @few
        @given(tables(), st.integers(0, len(whole)), st.booleans())
        def check(text, line, alone):
            # alone, or among the lines of a whole file
            lines = [text] if alone else [*whole[:line], text, *whole[line:]]
            place.try_bytes("".join(lines).encode("utf-8", "replace"))

        check()


values = st.lists(
    st.floats(0.001, 1e6, allow_subnormal=False), min_size=7, max_size=7
).map(np.array)


@few
@given(st.lists(st.floats(0, 1e9), min_size=21, max_size=21), st.permutations(range(7)))
def test_a_matrix_in_text_comes_back(weights, order):
    matrix = np.zeros((7, 7))
    matrix[np.triu_indices(7, 1)] = weights
    matrix += matrix.T
    lines = [",".join(["", *(NAMES[i] for i in order)])]
    rows = [[NAMES[i], *map(repr, matrix[i, list(order)].tolist())] for i in order]
    lines += map(",".join, rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.csv"
        path.write_text("\n".join(lines) + "\n")
        found = read_connectome(path, TINY).matrix if matrix.any() else matrix
    np.testing.assert_array_equal(found, matrix)


@few
@given(values, st.sampled_from(["label_name", "region"]))
def test_a_table_of_regions_comes_back(drawn, head):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.tsv"
        other = "label_value" if head == "label_name" else "suvr"
        feature_formats.write_clinica(path, NAMES, drawn, (head, other))
        found = read_feature(path, "suvr", TINY).values
    np.testing.assert_allclose(found, drawn, rtol=1e-8)


@few
@given(st.integers(0, 2**32 - 1))
def test_stats_come_back(seed):
    drawn = np.random.default_rng(seed).uniform(1, 5, len(DESIKAN)).round(3)
    measured = {"thickness": drawn, "volume": drawn * 1000}
    with tempfile.TemporaryDirectory() as folder:
        for side, hemisphere in (("lh", "L"), ("rh", "R")):
            text = aparc_text(DESIKAN, hemisphere, "s", measured)
            (Path(folder) / f"{side}.aparc.stats").write_text(text)
        text = aseg_text(DESIKAN, "s", drawn * 1000)
        (Path(folder) / "aseg.stats").write_text(text)
        found = read_feature(Path(folder), "volume", DESIKAN).values
    np.testing.assert_allclose(found, drawn * 1000, rtol=1e-6)


words = st.text("abcXYZ019.", min_size=1, max_size=6).filter(
    lambda text: text.lower() not in {"na", "nan", "none", "null"}
)


@few
@given(st.lists(st.tuples(words, words), min_size=1, max_size=5))
def test_participants_come_back(facts):
    lines = ["participant_id\tdiagnosis\tsite"]
    lines += [f"sub-{k}\t{label}\t{site}" for k, (label, site) in enumerate(facts)]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "participants.tsv").write_text("\n".join(lines) + "\n")
        people = read_participants(Path(folder))
    assert [(p.facts["diagnosis"], p.facts["site"]) for p in people] == facts


@few
@given(st.lists(st.text(min_size=1, max_size=4), min_size=2, max_size=6, unique=True))
def test_splits_of_any_names_come_back(names):
    # a line cannot hold what ends it; names of scans never do
    names = [f"s{k}" + "".join(c for c in name if c.isprintable())
             for k, name in enumerate(names)]  # fmt: skip
    folds = [([0], list(range(1, len(names))))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.tsv"
        write_splits(folds, path, scans=names, participants=names)
        ((train, test),) = read_splits(path, names)
    assert (train.tolist(), test.tolist()) == folds[0]
