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

from brainlsap.data.streamline_blocks import StreamlineBlock
from brainlsap.data.streamline_files import FORMATS, read_streamlines
from brainlsap.data.tractography import build_connectome
from brainlsap.exceptions import FileFormatError

N_LINES = 31
LPS = np.diag([-2.0, -2.0, 2.0, 1.0])
LPS[:3, 3] = 13, 17, -9


def draw():
    rng = np.random.default_rng(4)
    sizes = [0, 1, *rng.integers(2, 12, N_LINES - 2)]
    return [rng.normal(0, 9, (n, 3)).astype(np.float32) for n in sizes]


def trx_bytes(lines, kind="float32", compression=zipfile.ZIP_STORED, last=True):
    points = np.concatenate(lines).astype(f"<{np.dtype(kind).str[1:]}")
    offsets = np.cumsum([0, *map(len, lines)]).astype("<u8")
    header = {"NB_VERTICES": len(points), "NB_STREAMLINES": len(lines)}
    header |= {"DIMENSIONS": [9, 9, 9], "VOXEL_TO_RASMM": np.eye(4).tolist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr(f"positions.3.{kind}", points.tobytes())
        archive.writestr("offsets.uint64", offsets[: None if last else -1].tobytes())
    return out.getvalue()


def trk_bytes(lines, scalars=0, properties=0):
    """Return what nibabel writes, with scalars and properties to be skipped."""
    rng = np.random.default_rng(0)
    made = Tractogram(
        [line for line in lines if len(line)],
        data_per_point={"s": [rng.random((len(x), scalars)) for x in lines if len(x)]}
        if scalars
        else None,
        data_per_streamline={"p": rng.random((len(lines) - 1, properties))}
        if properties
        else None,
        affine_to_rasmm=np.eye(4),
    )
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


def lines_of(path, block=20):
    blocks = list(read_streamlines(path, block))
    assert [one.first for one in blocks] == np.cumsum(
        [0, *(len(one) for one in blocks)]
    )[:-1].tolist()
    return [
        one.points[a:b]
        for one in blocks
        for a, b in zip(one.starts, one.stops, strict=True)
    ]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("block", [1, 20, 10_000])
def test_every_format_gives_the_streamlines(tmp_path, name, block):
    lines = draw()
    (tmp_path / name).write_bytes(WRITERS[name](lines))
    found = lines_of(tmp_path / name, block)
    # nibabel leaves out a streamline without points
    wanted = [x for x in lines if len(x)] if ".trk" in name else lines
    assert list(map(len, found)) == list(map(len, wanted))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_lengths_are_sums_of_steps(tmp_path):
    lines = draw()
    (tmp_path / "a.tck").write_bytes(tck_bytes(lines[1:]))
    (block,) = read_streamlines(tmp_path / "a.tck")
    slow = [
        sum(np.linalg.norm(np.subtract(b, a, dtype=float)) for a, b in pairwise(x))
        for x in lines[1:]
    ]
    np.testing.assert_allclose(block.lengths, slow, rtol=1e-12, atol=1e-12)


def test_a_line_that_leaves_the_head_leaves_the_others_their_lengths():
    points = np.array([[1, 0, 0], [2e30, 0, 0], [0, 3, 4], [0, 6, 8], [0, 6, 9]])
    bounds = np.array([0, 2, 2, 5]), np.array([2, 2, 5, 5])
    block = StreamlineBlock(0, points, *bounds)
    np.testing.assert_allclose(block.lengths, [2e30, 0.0, 6.0, 0.0], rtol=1e-12)
    nothing = np.zeros(0, dtype=int)
    assert StreamlineBlock(0, points[:0], nothing, nothing).lengths.shape == (0,)


def test_every_format_gives_the_same_connectome(tmp_path, tiny):
    labels = np.zeros((20, 20, 20), dtype=np.int32)
    numbers = [1101, 1102, 1103, 2101, 2102, 2103, 18]
    rng = np.random.default_rng(8)
    labels[:] = rng.choice([0, *numbers], labels.shape)
    affine = np.eye(4)
    affine[:3, 3] = -10
    nibabel.save(nibabel.Nifti1Image(labels, affine), tmp_path / "labels.nii")
    # halves of numbers are the same in all formats, whatever affine is undone
    lines = [np.round(line * 2) / 2 for line in draw()]
    made = {}
    for name, write in WRITERS.items():
        (tmp_path / name).write_bytes(write(lines))
        made[name] = build_connectome(tmp_path / name, tmp_path / "labels.nii", tiny)
    first = made["le.tck"]
    assert first.matrix.sum() > 20
    for one in made.values():
        np.testing.assert_array_equal(one.matrix, first.matrix)


@pytest.mark.parametrize("name", WRITERS)
def test_a_cut_file_is_refused(tmp_path, name):
    whole = WRITERS[name](draw())
    path = tmp_path / name
    for size in [0, 3, 40, 95, *range(1001, len(whole) - 1, len(whole) // 11)]:
        if size < len(whole):
            path.write_bytes(whole[:size])
            with pytest.raises(FileFormatError, match=name):
                lines_of(path)


@pytest.mark.parametrize("name", WRITERS)
def test_a_changed_file_never_crashes(tmp_path, name):
    whole = WRITERS[name](draw())
    path = tmp_path / name
    rng = np.random.default_rng(2)
    refused = 0
    for place in rng.integers(0, len(whole), 60):
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        path.write_bytes(changed)
        try:
            lines_of(path)
        except FileFormatError:
            refused += 1
    assert refused > (40 if name.endswith(("gz", "trx")) else 0)


def message(path):
    with pytest.raises(FileFormatError) as caught:
        lines_of(path)
    return str(caught.value)


def test_what_is_wrong_is_said(tmp_path):
    lines = draw()[1:]
    path = tmp_path / "a.tck"
    whole = tck_bytes(lines)
    path.write_bytes(whole[:-12])
    assert "the mark at the end is missing" in message(path)
    path.write_bytes(whole[:-24] + whole[-12:])
    assert "the last streamline has no end" in message(path)
    path.write_bytes(whole.replace(b"count: 30", b"count: 29"))
    assert "the header says 29 streamlines, found 30" in message(path)
    path.write_bytes(whole[:94] + struct.pack("<f", np.nan) + whole[98:])
    assert "coordinates that are no numbers" in message(path)
    path.write_bytes(whole.replace(b"Float32LE", b"Float64LE"))
    assert "the header is wrong" in message(path)
    path = tmp_path / "a.trk"
    whole = trk_bytes(lines)
    path.write_bytes(whole[:1016] + struct.pack("<i", -5) + whole[1020:])
    assert "a streamline of -5 points" in message(path)
    path.write_bytes(whole[:-4])
    assert "the last streamline is incomplete" in message(path)
    path.write_bytes(whole[:-3])
    assert "the last number is incomplete" in message(path)
    path = tmp_path / "a.trx"
    path.write_bytes(trx_bytes(lines).replace(b"positions", b"positionz"))
    assert "no positions.float16|float32|float64 in the archive" in message(path)
    assert "no such file" in message(tmp_path / "b.trx")
    assert f"are read from {', '.join(FORMATS)} files, got .vtk" in message(
        tmp_path / "a.vtk"
    )


def test_trx_counts_that_do_not_fit_are_refused(tmp_path):
    lines = draw()
    path = tmp_path / "a.trx"
    for change, said in [
        ({"NB_VERTICES": 3}, "the offsets do not lead from 0 to 3 points"),
        ({"NB_STREAMLINES": 7}, "the header says 7 streamlines, found 31"),
    ]:
        with zipfile.ZipFile(io.BytesIO(trx_bytes(lines))) as old:
            parts = {name: old.read(name) for name in old.namelist()}
        header = json.loads(parts["header.json"]) | change
        parts["header.json"] = json.dumps(header).encode()
        with zipfile.ZipFile(path, "w") as new:
            for name, data in parts.items():
                new.writestr(name, data)
        assert said in message(path)
    parts["header.json"] = json.dumps(header | {"NB_STREAMLINES": 31}).encode()
    parts["positions.3.float32"] = parts["positions.3.float32"][:-12]
    with zipfile.ZipFile(path, "w") as new:
        for name, data in parts.items():
            new.writestr(name, data)
    assert "points expected" in message(path)


def test_trx_without_streamlines_is_empty(tmp_path):
    (tmp_path / "a.trx").write_bytes(trx_bytes([np.empty((0, 3))]))
    assert [len(x) for x in lines_of(tmp_path / "a.trx")] == [0]


@pytest.mark.parametrize(
    "name",
    [
        "nibabel_standard.tck",
        "nibabel_standard.trk",
        "nibabel_standard.LPS.trk",
        "nibabel_complex.trk",
        "dipy_tracks300.trk",
    ],
)
def test_real_files_are_read_as_nibabel_reads_them(shared, name):
    path = shared / "tract_formats" / name
    peer = nibabel.streamlines.load(path).streamlines
    found = lines_of(path, 500)
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
