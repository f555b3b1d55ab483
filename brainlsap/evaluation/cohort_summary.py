"""What a report tells of a cohort, taken out of it."""

import hashlib

import numpy as np

from brainlsap._scratch import row_blocks
from brainlsap.data import Cohort
from brainlsap.evaluation.records import CohortSummary


def summarise_cohort(cohort: Cohort) -> CohortSummary:
    """Return what a report tells of a cohort, without its arrays.

    Parameters
    ----------
    cohort : Cohort
        The scans.

    Returns
    -------
    CohortSummary
    """
    digest = hashlib.sha256()
    # A shared connectome is one matrix seen n_scans times; it is hashed once.
    shared = cohort.connectomes.strides[0] == 0
    for array in (
        cohort.connectomes[:1] if shared else cohort.connectomes,
        cohort.features,
    ):
        digest.update(repr(array.shape).encode())
        for part in row_blocks(array):
            digest.update(np.ascontiguousarray(array[part]).data)
    digest.update("\0".join(map(str, cohort.y)).encode())
    return CohortSummary(
        table=cohort.table.copy(),
        classes=tuple(cohort.classes),
        label_name=cohort.label_name,
        atlas_name=cohort.atlas.name,
        region_names=tuple(cohort.region_names),
        measured=np.asarray(np.any(cohort.measured, axis=(0, 2))),
        feature_names=tuple(cohort.feature_names),
        notes=tuple(cohort.notes),
        provenance=dict(cohort.provenance),
        data_hash=digest.hexdigest(),
    )
