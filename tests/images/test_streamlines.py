"""Streamlines of every format are the same; what is cut or changed is refused."""

import gzip
import io
import json
import struct
import zipfile
from itertools import pairwise

import nibabel
import numpy as np
import pytest
from nibabel.streamlines import Tractogram

from brainlsap.exceptions import FileFormatError
from brainlsap.images.tractography import (
    TRACTOGRAM_FORMATS,
    StreamlineBlock,
    read_streamline_weights,
    read_streamlines,
)
from tests.conftest import raises_kind

N_LINES = 31
LPS = np.diag([-2.0, -2.0, 2.0, 1.0])
LPS[:3, 3] = 13, 17, -9


def draw():
    rng = np.random.default_rng(4)
    sizes = [0, 1, *rng.integers(2, 12, N_LINES - 2)]
    return [rng.normal(0, 9, (n, 3)).astype(np.float32) for n in sizes]


def trx_bytes(
    lines, kind="float32", compression=zipfile.ZIP_STORED, last=True, **header
):
    points = np.concatenate(lines).astype(f"<{np.dtype(kind).str[1:]}")
    offsets = np.cumsum([0, *map(len, lines)]).astype("<u8")
    counts = {"NB_VERTICES": len(points), "NB_STREAMLINES": len(lines)}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.writestr("header.json", json.dumps(counts | header))
        archive.writestr(f"positions.3.{kind}", points.tobytes())
        archive.writestr("offsets.uint64", offsets[: None if last else -1].tobytes())
    return out.getvalue()


def trk_bytes(lines, scalars=0, properties=0):
    """Return what nibabel writes, with scalars and properties to be skipped."""
    rng = np.random.default_rng(0)
    some = [line for line in lines if len(line)]
    made = Tractogram(some, affine_to_rasmm=np.eye(4))
    if scalars:
        made.data_per_point["s"] = [rng.random((len(x), scalars)) for x in some]
        made.data_per_streamline["p"] = rng.random((len(some), properties))
    header = {"voxel_to_rasmm": LPS, "voxel_sizes": (2, 2, 2), "dimensions": (9, 9, 9)}
    file = nibabel.streamlines.TrkFile(made, header | {"voxel_order": b"LPS"})
    out = io.BytesIO()
    file.save(out)
    return out.getvalue()


def tck_bytes(lines, kind="<f4"):
    name = {"<f4": "Float32LE", ">f4": "Float32BE"}[kind]
    head = f"mrtrix tracks\ncount: {len(lines)}\ndatatype: {name}\nfile: . 90\nEND\n"
    gap = np.full((1, 3), np.nan)
    body = [row for line in lines for row in (line, gap)] + [np.full((1, 3), np.inf)]
    return head.encode().ljust(90, b"\0") + np.concatenate(body).astype(kind).tobytes()


WRITERS = {
    "le.tck": tck_bytes,
    "be.tck": lambda lines: tck_bytes(lines, ">f4"),
    "plain.trk": trk_bytes,
    "more.trk": lambda lines: trk_bytes(lines, 2, 3),
    "plain.trk.gz": lambda lines: gzip.compress(trk_bytes(lines)),
    "stored.trx": trx_bytes,
    "zipped.trx": lambda lines: trx_bytes(lines, "float64", zipfile.ZIP_DEFLATED),
    "early.trx": lambda lines: trx_bytes(lines, last=False),
}


def lines_of(path):
    return [
        one.points[a:b]
        for one in read_streamlines(path)
        for a, b in zip(one.start_rows, one.stop_rows, strict=True)
    ]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("block", [1, 20, 10_000])
def test_every_format_gives_the_streamlines(tmp_path, monkeypatch, name, block):
    monkeypatch.setattr("brainlsap.images.tractography.BLOCK_POINTS", block)
    lines = draw()
    (tmp_path / name).write_bytes(WRITERS[name](lines))
    found = lines_of(tmp_path / name)
    # nibabel leaves out a streamline without points
    wanted = [x for x in lines if len(x)] if ".trk" in name else lines
    assert list(map(len, found)) == list(map(len, wanted))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_lengths_are_sums_of_steps_each_by_itself(tmp_path):
    lines = draw()
    (tmp_path / "a.tck").write_bytes(tck_bytes(lines[1:]))
    (block,) = read_streamlines(tmp_path / "a.tck")
    slow = [
        sum(np.linalg.norm(np.subtract(b, a, dtype=float)) for a, b in pairwise(x))
        for x in lines[1:]
    ]
    np.testing.assert_allclose(block.lengths_mm, slow, rtol=1e-12, atol=1e-12)
    points = np.array([[1, 0, 0], [2e30, 0, 0], [0, 3, 4], [0, 6, 8], [0, 6, 9]])
    bounds = np.array([0, 2, 2, 5]), np.array([2, 2, 5, 5])
    block = StreamlineBlock(points, *bounds)
    np.testing.assert_allclose(block.lengths_mm, [2e30, 0.0, 6.0, 0.0], rtol=1e-12)


@pytest.mark.parametrize("name", WRITERS)
def test_a_cut_file_is_refused(tmp_path, name):
    whole = WRITERS[name](draw())
    path = tmp_path / name
    for size in [0, 3, 40, 95, *range(1001, len(whole) - 1, len(whole) // 11)]:
        if size < len(whole):
            path.write_bytes(whole[:size])
            with pytest.raises(FileFormatError, match=name):
                lines_of(path)


LINES = draw()[1:]
TCK, TRK, TRX = tck_bytes(LINES), trk_bytes(LINES), trx_bytes(LINES)
NAN = struct.pack("<f", np.nan)
COUNTS = (b"\x1d\0\0\0\2\0\0\0", b"\x1e\0\0\0\2\0\0\0")  # and the version
SHORT = trx_bytes(
    [*LINES[:-1], LINES[-1][:-1]], NB_VERTICES=sum(map(len, LINES)), last=False
)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.tck", TCK[:-12], "does not end with the end mark"),
        ("a.tck", TCK[:-24] + TCK[-12:], "the last streamline has no end"),
        (
            "a.tck",
            TCK.replace(b"count: 30", b"count: 29"),
            "count of 29 streamlines, but",
        ),
        ("a.tck", TCK[:94] + NAN + TCK[98:], "coordinates of a point are not numbers"),
        ("a.trk", TRK[:-4], "buffer is too small"),
        (
            "a.trk",
            trk_bytes(LINES[:-1]).replace(*COUNTS),
            "count of 30 streamlines, but",
        ),
        ("a.trx", TRX.replace(b"positions", b"positionz"), "contains no positions"),
        (
            "a.trx",
            trx_bytes(LINES, NB_VERTICES=3),
            "do not increase from 0 to the number of points .3.",
        ),
        (
            "a.trx",
            trx_bytes(LINES, NB_STREAMLINES=7),
            "count of 7 streamlines, but the file contains 30",
        ),
        ("a.trx", SHORT, "bytes; expected .* points"),
        ("a.vtk", b"", f"{', '.join(TRACTOGRAM_FORMATS)} files; got .vtk"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, name, data, said):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FileFormatError, match=said):
        lines_of(tmp_path / name)


REAL = ["standard.tck", "standard.trk", "standard.LPS.trk", "complex.trk"]


@pytest.mark.parametrize(
    "name", [*(f"nibabel_{x}" for x in REAL), "dipy_tracks300.trk"]
)
def test_real_files_are_read_as_nibabel_reads_them(shared, name):
    path = shared / "tract_formats" / name
    peer = nibabel.streamlines.load(path).streamlines
    found = lines_of(path)
    assert len(found) == len(peer)
    np.testing.assert_allclose(np.concatenate(found), peer.get_data(), atol=1e-4)


def test_real_trx_is_read_as_its_library_reads_it(shared, tmp_path):
    library = pytest.importorskip("trx.trx_file_memmap", reason="trx-python is absent")
    (source,) = (shared / "tract_formats").glob("*.trx")
    copy = tmp_path / "a.trx"
    copy.write_bytes(source.read_bytes())  # the library needs the right to write
    peer = library.load(str(copy))
    wanted = [np.array(line, dtype=np.float32) for line in peer.streamlines]
    peer.close()
    found = lines_of(source)
    assert len(found) == len(wanted) == 508
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("text", ["1 2.5 0\n", "# tcksift2\n1\n2.5\n0\n"])
def test_weights_are_read_as_mrtrix_writes_them(tmp_path, text):
    (tmp_path / "w.txt").write_text(text)
    assert read_streamline_weights(tmp_path / "w.txt").tolist() == [1, 2.5, 0]


def test_what_is_no_weight_is_refused(tmp_path):
    (tmp_path / "w.txt").write_text("1 two 3")
    with raises_kind("unreadable", "w.txt"):
        read_streamline_weights(tmp_path / "w.txt")
    for bad in (-1, np.nan, np.inf):
        with pytest.raises(FileFormatError, match="not negative; got"):
            read_streamline_weights(np.array([1, bad]))
