"""Ways in which files go wrong: cut, doubled, zeroed, numbers at their limits."""

import numpy as np

# What size fields and text are most often broken by.
TELLING = (
    b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80",
    b"\xff" * 8, b"nan", b"inf", b"-1", b"1e999", b"9" * 20, b"0", b"\n", b"\t", b",",
    b'"', b"\x00", b"../", b"\xef\xbb\xbf", b"\r\n", b"#", b"None", b"{", b"[" * 50,
)  # fmt: skip


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the content after one to four random faults."""
    for _ in range(int(rng.integers(1, 5))):
        content = FAULTS[int(rng.integers(len(FAULTS)))](content, rng)
    return content


def _place(content: bytes, rng: np.random.Generator) -> int:
    # headers are short and matter most
    limit = min(len(content), 600) if rng.random() < 0.5 else len(content)
    return int(rng.integers(0, limit + 1))


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: _place(content, rng)]


def _flip(content: bytes, rng: np.random.Generator) -> bytes:
    k = _place(content, rng)
    return content[:k] + bytes([int(rng.integers(256))]) + content[k + 1 :]


def _overwrite(content: bytes, rng: np.random.Generator) -> bytes:
    k, told = _place(content, rng), TELLING[int(rng.integers(len(TELLING)))]
    return content[:k] + told + content[k + len(told) :]


def _insert(content: bytes, rng: np.random.Generator) -> bytes:
    k, told = _place(content, rng), TELLING[int(rng.integers(len(TELLING)))]
    return content[:k] + told + content[k:]


def _double(content: bytes, rng: np.random.Generator) -> bytes:
    k = _place(content, rng)
    return content[:k] + content[k : k + int(rng.integers(1, 200))] + content[k:]


def _drop(content: bytes, rng: np.random.Generator) -> bytes:
    k = _place(content, rng)
    return content[:k] + content[k + int(rng.integers(1, 60)) :]


FAULTS = (_cut, _flip, _flip, _overwrite, _overwrite, _insert, _double, _drop)
