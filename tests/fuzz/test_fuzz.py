"""A short run of the fuzzing programs; `make fuzz` is the long one."""

from contextlib import closing

import numpy as np
import pytest

from tests.fuzz.mutations import mutate
from tests.fuzz.one_input import EscapeError, Place, seed_of
from tests.fuzz.targets import TARGETS, Target


@pytest.mark.parametrize("name", TARGETS)
def test_only_the_packages_errors_come_out(name):
    rng = np.random.default_rng(20)
    whole = seed_of(TARGETS[name])
    with closing(Place(TARGETS[name])) as place:
        assert place.try_bytes(whole)
        read = [place.try_bytes(mutate(whole, rng)) for _ in range(15)]
    assert not all(read)


def test_an_escape_is_seen():
    def read(path):
        return int(path.read_text())

    target = Target("n.txt", lambda path: path.write_text("7"), read)
    with closing(Place(target)) as place:
        assert place.try_bytes(b"8")
        with pytest.raises(EscapeError, match=r"n\.txt: ValueError: invalid literal"):
            place.try_bytes(b"eight")


# What once got through: the file, and how it was changed.
ONCE = {
    "image.mgz": lambda content: content[:4] + bytes(4) + content[8:],
    "ind.toy.test.index": lambda content: b"9" * 30 + b"\n" + content,
    "lh.aparc.stats": lambda content: content.replace(b", ", b" "),
}
HARMLESS = {"lh.aparc.stats"}  # a line of the header that is not needed here


@pytest.mark.parametrize("name", ONCE)
def test_what_once_got_through_does_no_more(name):
    content = ONCE[name](seed_of(TARGETS[name]))
    with closing(Place(TARGETS[name])) as place:
        assert place.try_bytes(content) == (name in HARMLESS)
