"""What the tests of images share: a tiny atlas, and files of random images."""

import nibabel
import pandas as pd
import pytest

from brainlsap.atlas import Atlas


@pytest.fixture(scope="session")
def tiny():
    """Seven regions, six of them cortical, with numbers that are not in order."""
    names = ("lh_a", "lh_b", "lh_c", "rh_a", "rh_b", "rh_c", "Left-Amygdala")
    regions = pd.DataFrame(
        {
            "name": names,
            "freesurfer_id": [1101, 1102, 1103, 2101, 2102, 2103, 18],
            "hemisphere": [*"LLLRRRL"],
            "structure": ["cortex"] * 6 + ["subcortex"],
            "short_name": names,
        }
    )
    return Atlas("tiny", regions, None)


@pytest.fixture(scope="session")
def save_image():
    def save(path, values, affine):
        nibabel.save(nibabel.Nifti1Image(values, affine), path)
        return path

    return save
