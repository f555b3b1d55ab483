import nibabel
import numpy as np
import pytest

from brainlsap.data.gifti_files import read_gifti
from brainlsap.exceptions import FileFormatError


def write(path):
    array = nibabel.gifti.GiftiDataArray(np.arange(6, dtype=np.float32).reshape(2, 3))
    nibabel.gifti.GiftiImage(darrays=[array]).to_filename(path)
    return path


def test_arrays_are_read(tmp_path):
    (array,) = read_gifti(write(tmp_path / "a.gii")).darrays
    np.testing.assert_array_equal(array.data, [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        # nibabel counts to it, one by one
        (b'Dimensionality="2"', b'Dimensionality="99999999999"', "99999999999 axes"),
        (b'Dimensionality="2"', b'Dimensionality="two"', "an array of two axes"),
        (b"GZipBase64Binary", b"ExternalFileBinary", "lie in another file"),
        (b"GIFTI", b"G\0I\0F\0T\0I\0", "no text in UTF-8"),
        (b"</GIFTI>", b"", "may be cut short"),
    ],
)
def test_files_that_lie_are_refused(tmp_path, before, after, said):
    path = write(tmp_path / "a.gii")
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after))
    with pytest.raises(FileFormatError, match=f"a.gii: cannot be read.*{said}"):
        read_gifti(path)
