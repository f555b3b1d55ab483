"""Write the BNU_1 archive of connectomes as a cohort of subject folders.

    python benchmarks/bnu1_cohort.py [--archive FOLDER] OUT
    brainlsap run OUT --atlas desikan82 --feature strength --label sex

The archive (Petrov et al., MICCAI 2017; imaging: CoRR BNU_1, INDI) holds 106 matrices
of streamline counts, 84 x 84, without names: 35 cortical rows a side in the order of
FreeSurfer's aparc annotation, the corpus callosum among them (rows 3 and 38, always
empty), then 14 below the cortex. Of those the source says no more than their number;
they are taken in FreeSurfer's order, seven left and seven right, which fits their
numbers of streamlines, and by which every region's profile of connections is most
like that of the same region on the other side.
The callosum is dropped, so 82 regions are left: the atlas desikan82.

Written are the 98 scans of 49 people (two visits each) that have a label, each as a
matrix with names, its diagonal kept. The label is `sex` as the source codes it (0 or
1, not explained there). Eight scans without a label are left out. There is no other
feature than what the connectome itself gives; `--feature strength` is the sum of a
region's weights.
"""

import argparse
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.atlas import load_atlas

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
MATRICES = "BNU_1_track_proba_csd_aparc68+subcort.npz"
LABELS = "data_metadata_BNU_1_gender_df.csv"
CALLOSA = [3, 38]
README = """BNU_1 of CoRR (INDI): structural connectomes, counts of streamlines.

Written from the archive by benchmarks/bnu1_cohort.py of brainlsap, which says what
was kept and what was assumed. CC BY-NC as the source; not for redistribution.
"""


def read_archive(folder: Path) -> tuple[dict[str, np.ndarray], pd.Series]:
    """Return the matrix and the label of every labelled scan, callosa dropped."""
    labels = pd.read_csv(folder / LABELS, dtype=str).set_index("full_id")["gender"]
    with np.load(folder / MATRICES, allow_pickle=False) as archive:
        counts, scans = archive["count"], archive["scan_id"].tolist()
    if counts[:, CALLOSA].any():
        raise SystemExit(f"{folder / MATRICES}: rows {CALLOSA} are not empty callosa.")
    kept = np.delete(np.arange(counts.shape[1]), CALLOSA)
    counts = counts[:, kept][:, :, kept]
    matrices = dict(zip(scans, counts, strict=True))
    return {scan: matrices[scan] for scan in labels.index}, labels


def write_cohort(
    matrices: dict[str, np.ndarray], labels: pd.Series, out: Path
) -> pd.Series:
    """Write the folders; return the label of every person."""
    # without the callosa, the order of the annotation is that of the atlas
    names = load_atlas("desikan82").names
    for scan, matrix in matrices.items():
        person, visit = scan.split("_")
        folder = out / person / visit / "dwi"
        folder.mkdir(parents=True)
        name = f"{scan}_atlas-desikan_connectivity.csv"
        table = pd.DataFrame(matrix, names, names)
        table.to_csv(folder / name, index_label="region")
    people = labels.groupby(labels.index.str.split("_").str[0])
    if (people.nunique() > 1).any():
        raise SystemExit("a person has two labels; the archive is not as it was.")
    table = people.first().rename_axis("participant_id").rename("sex")
    table.to_csv(out / "participants.tsv", sep="\t")
    (out / "README").write_text(README, encoding="utf-8")
    return table


def main() -> None:
    """Write the folders, whole or not at all, and say where."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--archive", type=Path, default=SHARED / "bnu1_connectomes")
    arguments = parser.parse_args()
    if arguments.out.exists():
        raise SystemExit(f"{arguments.out} exists; name a new folder, or remove it.")
    matrices, labels = read_archive(arguments.archive)
    partial = arguments.out.with_name(f".partial-{arguments.out.name}")
    partial.mkdir(parents=True)
    try:
        people = write_cohort(matrices, labels, partial)
        partial.rename(arguments.out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(f"{len(matrices)} scans of {len(people)} people: {arguments.out}")


if __name__ == "__main__":
    main()
