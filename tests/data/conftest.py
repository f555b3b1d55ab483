"""What the tests of reading share: a tiny atlas, a small study on disk."""

import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import Atlas
from brainlsap.exceptions import CohortError

NAMES = ("lh_a", "lh_b", "lh_c", "rh_a", "rh_b", "rh_c", "Left-Amygdala")
SIDES = ("L", "L", "L", "R", "R", "R", "L")


def refused(message):
    """Expect a CohortError with a message that fits."""
    return pytest.raises(CohortError, match=message)


@pytest.fixture(scope="session")
def tiny():
    """Seven regions, six of them cortical, with numbers that are not in order."""
    regions = pd.DataFrame(
        {
            "name": NAMES,
            "freesurfer_id": [1101, 1102, 1103, 2101, 2102, 2103, 18],
            "hemisphere": SIDES,
            "structure": ["cortex"] * 6 + ["subcortex"],
            "short_name": NAMES,
        }
    )
    return Atlas("tiny", regions, None, {"unnamed_rows": True})


@pytest.fixture
def matrix():
    """Symmetric whole counts of the tiny atlas' regions; no two are alike."""
    values = np.zeros((7, 7))
    values[np.triu_indices(7, 1)] = np.arange(1, 22)
    return values + values.T


@pytest.fixture
def study(tmp_path, write, matrix):
    """A study of five people of the tiny atlas: 7 scans, one connectome each.

    Columns: two visits for the first two people. Every value tells its scan.
    """
    people = ["sub-01", "sub-02", "sub-03", "sub-04", "sub-05"]
    labels = ["CN", "AD", "CN", "AD", "CN"]
    rows = [
        f"{person}\t{label}\t{70 + i}\n"
        for i, (person, label) in enumerate(zip(people, labels, strict=True))
    ]
    write("study/participants.tsv", "participant_id\tdiagnosis\tage\n" + "".join(rows))
    scans = [(p, s) for p in people[:2] for s in ("ses-M00", "ses-M12")]
    scans += [(p, "ses-M00") for p in people[2:]]
    for number, (person, session) in enumerate(scans, start=1):
        stem = f"study/{person}/{session}"
        name = f"{person}_{session}"
        header = "region," + ",".join(NAMES)
        cells = "".join(
            f"{region},{','.join(f'{v:g}' for v in row)}\n"
            for region, row in zip(NAMES, matrix * number, strict=True)
        )
        write(f"{stem}/dwi/{name}_connectivity.csv", f"{header}\n{cells}")
        values = "".join(f"{r}\t{number + i / 10}\n" for i, r in enumerate(NAMES))
        write(f"{stem}/pet/{name}_trc-18FFDG_regions.tsv", f"region\tsuvr\n{values}")
    return tmp_path / "study"
