"""Remake the table of regions of destrieux164 from those of two other atlases.

    python atlases/destrieux164/build.py

The cortex is that of destrieux160. Of the deep regions, those that are also a structure
of FreeSurfer are rows of desikan82; the two parts of each thalamus have no centroid.
"""

from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).resolve().parent
# Regions of Tian's scale S1 on one side, in their order, by their names in desikan82.
STRUCTURES = (
    *("Hippocampus", "Amygdala", "Thalamus-Posterior", "Thalamus-Anterior"),
    *("Accumbens-area", "Pallidum", "Putamen", "Caudate"),
)
THALAMUS = {
    "Thalamus-Posterior": ("Posterior thalamus", "Sub.thal.post"),
    "Thalamus-Anterior": ("Anterior thalamus", "Sub.thal.ant"),
}


def main() -> None:
    """Write the table."""
    cortex = read("destrieux160").query("structure == 'cortex'")
    aseg = read("desikan82").set_index("name", drop=False)
    deep = [
        part_of_thalamus(side, structure)
        if structure in THALAMUS
        else aseg.loc[f"{side}-{structure}"].to_dict()
        for side in ("Right", "Left")
        for structure in STRUCTURES
    ]
    regions = pd.concat([cortex, pd.DataFrame(deep)], ignore_index=True)
    regions["index"] = range(len(regions))
    regions.to_csv(FOLDER / "regions.tsv", sep="\t", index=False, lineterminator="\n")


def read(atlas: str) -> pd.DataFrame:
    """Return the table of regions of an atlas, as text."""
    path = FOLDER.parent / atlas / "regions.tsv"
    return pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)


def part_of_thalamus(side: str, structure: str) -> dict[str, str]:
    """Return the row of a part of the thalamus; nothing is known of its place."""
    long_name, short_name = THALAMUS[structure]
    return {
        "name": f"{side}-{structure}",
        "freesurfer_id": "n/a",
        "hemisphere": side[0],
        "structure": "subcortex",
        "annot_name": "n/a",
        "long_name": long_name,
        "lobe": "subcortical",
        "short_name": f"({side[0]}) {short_name}",
        **dict.fromkeys("xyz", "n/a"),
    }


if __name__ == "__main__":
    main()
