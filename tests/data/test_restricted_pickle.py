"""Pickles of arrays are read, everything else is refused and nothing is run."""

import contextlib
import pickle
import warnings
from collections import defaultdict

import numpy as np
import pytest
from scipy import sparse

from brainlsap.data.restricted_pickle import read_restricted_pickle
from brainlsap.exceptions import FileFormatError

SCALAR = b"cnumpy.core.multiarray\nscalar\n"
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


@pytest.fixture
def written(tmp_path):
    """Return a function that writes bytes to a file and gives its path."""

    def write(content):
        path = tmp_path / "ind.toy.x"
        path.write_bytes(content)
        return path

    return write


class Touch:
    """Whoever unpickles it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


class TestWhatIsRead:
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize("made", [sparse.csr_matrix, sparse.csc_array])
    def test_sparse_matrices_of_every_protocol(self, written, protocol, made):
        matrix = made(np.arange(15.0).reshape(5, 3) % 4)
        found = read_restricted_pickle(written(pickle.dumps(matrix, protocol)))
        assert found.shape == (5, 3)
        assert np.array_equal(found.toarray(), matrix.toarray())

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    @pytest.mark.parametrize(
        "array",
        [
            np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
            np.array([True, False]),
            np.float32([1.5, np.nan]),
        ],
    )
    def test_arrays_of_every_protocol(self, written, protocol, array):
        found = read_restricted_pickle(written(pickle.dumps(array, protocol)))
        assert found.dtype == array.dtype
        assert np.array_equal(found, array, equal_nan=array.dtype.kind == "f")

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_dictionaries_of_lists(self, written, protocol):
        graph = defaultdict(list, {0: [1, 2], np.int64(2): [], 7: [np.int32(5)]})
        found = read_restricted_pickle(written(pickle.dumps(graph, protocol)))
        assert found == {0: [1, 2], 2: [], 7: [5]}

    def test_text_and_numbers(self, written):
        things = (None, True, 2.5, "a", b"\xff", 10**30, [(), {}])
        assert read_restricted_pickle(written(pickle.dumps(things))) == things

    def test_a_container_that_is_named_often_is_unwrapped_once(self, written):
        nest = []
        for _ in range(60):
            nest = [nest, nest]
        assert len(read_restricted_pickle(written(pickle.dumps(nest)))) == 2


class TestWhatIsRefused:
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_a_function_to_call_is_named_and_not_called(
        self, written, tmp_path, protocol
    ):
        target = tmp_path / "touched"
        path = written(pickle.dumps(Touch(target), protocol))
        with pytest.raises(FileFormatError, match=r"it names .*open.*nothing of it"):
            read_restricted_pickle(path)
        assert not target.exists()

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"cos\nsystem\n(S'true'\ntR.", "it names os.system"),
            (b"(S'true'\nios\nsystem\n.", "the instruction INST has no place"),
            (b"\x82\x01.", "EXT1 has no place"),
            (b"S'os'\n(S'true'\ntR.", "it calls something that is no array"),
            (b"(lp0\n(dp1\nb.", "it sets the state of something"),
            (b"cnumpy\ndtype\n(S'O8'\ntR.", "'O8' are not numeric"),
            (b"cnumpy\ndtype\n(S'f4,i4'\ntR.", "are not numeric"),
            (b"c_codecs\nencode\n(S'a'\nS'rot13'\ntR.", "encoded in another way"),
            (
                b"ccopy_reg\n_reconstructor\n(cnumpy\ndtype\ntR.",
                "something else than an array",
            ),
        ],
    )
    def test_what_is_no_array(self, written, content, said):
        with pytest.raises(FileFormatError, match=said):
            read_restricted_pickle(written(content))

    def test_arrays_of_objects(self, written):
        array = np.array([{"a": 1}], dtype=object)
        with pytest.raises(FileFormatError, match="not numeric"):
            read_restricted_pickle(written(pickle.dumps(array)))

    def test_every_truncation(self, written):
        matrix = sparse.csr_matrix(np.arange(12.0).reshape(4, 3) % 3)
        whole = pickle.dumps({"m": matrix, "a": np.arange(3)}, 2)
        for length in range(0, len(whole), 7):
            with pytest.raises(FileFormatError, match="truncated or something else"):
                read_restricted_pickle(written(whole[:length]))

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"\x85.", "its stack runs empty"),
            (b"t.", ""),
            (b"K\x01t.", "a mark is missing"),
            (b"K\x01K\x01a.", "only lists are appended to"),
            (b"K\x01K\x01K\x01s.", "only dictionaries have items"),
            (b"(K\x01d.", ""),
            (b"h\x05.", ""),
            (b"cnumpy\ndtype\nK\x01R.", "arguments are no tuple"),
            (b"hello", ""),
            (b"ccollections\ndefaultdict\n)R(K\x01.", ""),
            (
                b"cnumpy\ndtype\n(S'007,f8'\ntR.",
                "arrays of type '007,f8' are not numeric",
            ),
            (SCALAR + b"(I1\nS'a'\ntR.", "the type of an array is missing"),
            (
                SCALAR + b"(cnumpy\ndtype\n(S'f8'\ntRI1\ntR.",
                "the elements of an array are no bytes",
            ),
            (
                b"ccopy_reg\n_reconstructor\n(cscipy.sparse.csr\ncsr_matrix\n"
                b"c__builtin__\nobject\nNtR(dS'data'\nI1\nsS'indices'\nI1\ns"
                b"S'indptr'\nI1\nsS'_shape'\n(I1\nI1\ntsb.",
                "a matrix is not made of arrays",
            ),
        ],
    )
    def test_what_does_not_fit(self, written, content, said):
        with pytest.raises(FileFormatError, match=rf"no whole pickle .*\({said}"):
            read_restricted_pickle(written(content))

    def test_a_matrix_whose_indices_point_outside(self, written):
        matrix = sparse.csr_matrix(np.eye(3))
        matrix.indices[1] = 9_000
        with pytest.raises(FileFormatError, match="no whole pickle of arrays"):
            read_restricted_pickle(written(pickle.dumps(matrix)))

    def test_a_matrix_whose_pointers_end_at_0(self, written):
        """SciPy's own check passes it; its loops then wrote outside of memory."""
        matrix = sparse.csr_matrix(np.eye(3))
        matrix.indptr[-1] = 0
        with pytest.raises(FileFormatError, match="its pointers do not ascend"):
            read_restricted_pickle(written(pickle.dumps(matrix)))

    @pytest.mark.parametrize("seed", range(3))
    def test_damaged_files_never_raise_anything_else(self, written, seed):
        rng = np.random.default_rng(seed)
        matrix = sparse.csr_matrix(rng.random((6, 4)))
        whole = np.frombuffer(pickle.dumps([matrix, {1: [2]}], seed), np.uint8)
        for _ in range(40):
            damaged = whole.copy()
            damaged[rng.integers(0, len(whole), 3)] = rng.integers(0, 256, 3)
            path = written(damaged.tobytes())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # anything but our own error would end the test
                with contextlib.suppress(FileFormatError):
                    read_restricted_pickle(path)
