"""A short run of the fuzzing programs; `make fuzz` is the long one."""

from contextlib import closing

import numpy as np
import pytest

from tests.fuzz.mutations import mutate
from tests.fuzz.one_input import EscapeError, Place
from tests.fuzz.table import table_text
from tests.fuzz.target import CORPUS, Target
from tests.fuzz.targets import TARGETS

N_CHANGED = 12
# What never refuses: it finds its images with or without a readable sidecar, and
# names of classes are replaced by numbers.
LENIENT = {"scan.json", "toy.npz:class_names.npy"}


# Nested, endless, of one sign: what no reader is prepared for by its format.
HOSTILE = (
    b"",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"9" * 10_000,
    b'{"NodeFiles": ' + b"[" * 50_000,
    b"\0" * 1000,
    b"<a>" * 5_000,
    b"," * 20_000 + b"\n1",
    "\ufeffparticipant_id\t²\n٣\t\N{MINUS SIGN}1\n".encode(),
)


def target_of(read, make=lambda path: path.write_text("7"), **how):
    return Target("n.txt", make, read, "numbers", **how)


@pytest.mark.parametrize("name", TARGETS)
def test_only_the_packages_errors_come_out(name):
    target = TARGETS[name]
    rng = np.random.default_rng(20)
    with closing(Place(target)) as place:
        assert place.try_bytes(place.seed)
        kept = [place.try_bytes(content) for content in (*target.corpus(), *HOSTILE)]
        read = [place.try_bytes(mutate(place.seed, rng)) for _ in range(N_CHANGED)]
    assert name in LENIENT or not all(read + kept)


def test_every_kept_input_is_of_a_target():
    known = {target.slug for target in TARGETS.values()}
    assert {folder.name for folder in CORPUS.iterdir()} <= known


def test_an_escape_is_seen():
    with closing(Place(target_of(lambda path: int(path.read_text())))) as place:
        assert place.try_bytes(b"8")
        with pytest.raises(EscapeError, match=r"n\.txt: ValueError: invalid literal"):
            place.try_bytes(b"eight")


def test_too_much_memory_is_seen():
    def read(path):
        return bytearray(int(path.read_text()))

    with (
        closing(Place(target_of(read))) as place,
        pytest.raises(EscapeError, match=r"n\.txt: MemoryError"),
    ):
        place.try_bytes(b"4_000_000_000")


def test_an_endless_loop_is_seen(monkeypatch):
    monkeypatch.setattr("tests.fuzz.one_input.MOST_SECONDS", 0.2)

    def read(path):
        while path.read_text() != "7":
            pass

    with (
        closing(Place(target_of(read))) as place,
        pytest.raises(EscapeError, match=r"n\.txt: more than"),
    ):
        place.try_bytes(b"8")


def test_the_table_counts_since_the_last_escape():
    heads = ("date", "reader", "target", "executions", "seconds", "read", "escapes")
    rows = [
        ("2026-01-01", "text", "a.csv", "100", "1", "5", "2"),
        ("2026-01-02", "text", "a.csv", "2000", "3", "7", "0"),
        ("2026-01-02", "text", "b.csv", "30", "4", "1", "0"),
    ]
    text = table_text([dict(zip(heads, row, strict=True)) for row in rows])
    assert "2026-01-02, Python" in text
    assert "| text | 2,030 | 7 | 8 |" in text
    assert "| a.csv | 2,000 | 3 | 7 |" in text
