"""Remake schaefer100, schaefer200 and schaefer400 from the ENIGMA Toolbox's files.

    python atlases/schaefer.py FOLDER [--out FOLDER]

The first folder holds, of `enigmatoolbox/datasets` (github MICA-MNI/ENIGMA, commit
d66a7ef): `parcellations/schaefer_{100,200,400}_fsa5.csv`, and
`matrices/hcp_connectivity`'s names `labels_ctx_schaefer_*.csv` and `labels_sctx.csv`
and its connectome `sc_with_sctx_schaefer_400.csv`. The numbers of parcels among 17
networks are those of PennLINC/AtlasPack (`Schaefer2018v0143_desc-*AllNetworks`); they
stay as they are in `atlas.json`.
"""

import argparse
import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
from nibabel.freesurfer import write_annot
from nilearn.datasets import load_fsaverage

from brainlsap.atlas import load_atlas

TEMPLATE = 400  # parcels of the atlas that has the template connectome
N_SIDE = 10242  # vertices of one hemisphere of fsaverage5
WALL = "Background+FreeSurfer_Defined_Medial_Wall"  # as FreeSurfer's own files have it
NETWORKS = {
    "Vis": "Visual network",
    "SomMot": "Somatomotor network",
    "DorsAttn": "Dorsal attention network",
    "SalVentAttn": "Salience and ventral attention network",
    "Limbic": "Limbic network",
    "Cont": "Control network",
    "Default": "Default mode network",
}
PARTS = {
    "Cing": "cingulate cortex",
    "FEF": "frontal eye field",
    "FrOperIns": "frontal operculum and insula",
    "Med": "medial",
    "OFC": "orbitofrontal cortex",
    "PFC": "prefrontal cortex",
    "PFCdPFCm": "dorsal and medial prefrontal cortex",
    "PFCl": "lateral prefrontal cortex",
    "PFCmp": "medial posterior prefrontal cortex",
    "PFCv": "ventral prefrontal cortex",
    "PHC": "parahippocampal cortex",
    "Par": "parietal",
    "ParOper": "parietal operculum",
    "Post": "posterior",
    "PrC": "precentral",
    "PrCv": "ventral precentral",
    "Temp": "temporal",
    "TempOcc": "temporo-occipital",
    "TempOccPar": "temporo-occipito-parietal",
    "TempPole": "temporal pole",
    "pCun": "precuneus",
    "pCunPCC": "precuneus and posterior cingulate cortex",
}


def main() -> None:
    """Write the three atlases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    for n_regions in (100, 200, 400):
        build(arguments.source, n_regions, arguments.out / f"schaefer{n_regions}")


def build(source: Path, n_regions: int, folder: Path) -> None:
    """Write the annotations, the table of regions and the settings of one atlas."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = np.loadtxt(source / f"schaefer_{n_regions}_fsa5.csv", dtype=int)
    names = read_row_names(source / f"labels_ctx_schaefer_{n_regions}.csv")
    half = n_regions // 2
    for side, first in (("lh", 0), ("rh", half)):
        here = labels[:N_SIDE] if side == "lh" else labels[N_SIDE:]
        codes = np.where(here > 0, here - first, 0)
        listed = [WALL, *names[first : first + half]]
        write_annot(folder / f"{side}.annot", codes, colours(half), listed)
    regions = pd.DataFrame(cortex(names, labels) + subcortex(source))
    regions.insert(0, "index", range(len(regions)))
    regions.to_csv(folder / "regions.tsv", sep="\t", index=False, lineterminator="\n")
    annotation = f"Schaefer2018_{n_regions}Parcels_7Networks_order"
    settings = {
        "citation": "A. Schaefer et al. Local-global parcellation of the human "
        "cerebral cortex from intrinsic functional connectivity MRI. Cerebral Cortex "
        "28(9):3095-3114, 2018. On fsaverage5, with 14 structures: S. Larivière et al. "
        "The ENIGMA Toolbox. Nature Methods 18(7):698-700, 2021.",
        "space": "MNI305",
        "annotation": annotation,
        "segmentation": f"{annotation}+aseg.mgz",
        "ukbiobank": f"Schaefer7n{n_regions}p",
        "file_words": [
            *(f"schaefer{n_regions}", f"schaefer-{n_regions}"),
            f"schaefer2018_{n_regions}parcels",
        ],
        "other_words": ["schaefer1000", "schaefer-1000"],
        "image_patterns": [f"*{annotation}*", f"*schaefer*{n_regions}*", "*nodes*"],
        "atlas_by_size": {
            str(n + 14): f"schaefer{n}" for n in (100, 200, 400) if n != n_regions
        },
        "sizes": {
            str(n_regions): "cortex only, without the subcortex that it needs",
            str(n_regions + 2): "cortex with a medial wall on each side",
            **{
                str(n + 14): f"Schaefer's parcellation of {n} and 14 structures "
                f"(atlas schaefer{n})"
                for n in (100, 200, 400)
                if n != n_regions
            },
        },
        "remake_connectome": "Make the connectome again with the nodes of "
        f"{folder.name}, or choose the atlas that fits.",
        "remake_values": f"Make the values again with {folder.name} (stats by "
        f"mris_anatomical_stats with {annotation}), or choose the atlas that fits.",
    }
    path = folder / "atlas.json"
    if path.is_file():  # of other sources
        known = json.loads(path.read_text(encoding="utf-8"))
        settings["sizes"] = known["sizes"] | settings["sizes"]
        settings |= {k: v for k, v in known.items() if k == "order_17networks"}
    path.write_text(
        json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    if n_regions == TEMPLATE:
        write_template(source, regions["name"].tolist(), folder)


def write_template(source: Path, names: list[str], folder: Path) -> None:
    """Write the group connectome: logarithms of weights times 100, 0 where none."""
    path = source / f"sc_with_sctx_schaefer_{TEMPLATE}.csv"
    log_weights = np.loadtxt(path, delimiter=",")
    hundredths = np.round(log_weights * 100).astype(int)
    table = pd.DataFrame(hundredths, names, names)
    text = table.to_csv(index_label="region", lineterminator="\n")
    with (
        (folder / "template_connectome.csv.gz").open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
    ):
        packed.write(text.encode())


def read_row_names(path: Path) -> list[str]:
    """Return the names of the one line of a file."""
    return path.read_text(encoding="utf-8").strip().split(",")


def colours(n_labels: int) -> np.ndarray:
    """Return a table of different colours; the first is the wall's."""
    number = np.arange(n_labels + 1)
    red, green, blue = (number * 67 % 256, number * 149 % 256, 20 + number)
    return np.column_stack([red, green, blue % 256, 0 * number])


def cortex(names: list[str], labels: np.ndarray) -> list[dict[str, object]]:
    """Return the rows of the cortex: names, lobes, centroids."""
    white, pial = (
        load_fsaverage("fsaverage5")[kind] for kind in ("white_matter", "pial")
    )
    sides = [
        (white.parts[side].coordinates + pial.parts[side].coordinates) / 2
        for side in ("left", "right")
    ]
    middle, desikan = np.concatenate(sides), load_atlas("desikan82")
    gyri = np.concatenate([desikan.vertex_labels(side) for side in "LR"])
    lobes = desikan.regions["lobe"].to_numpy()
    found = []
    for number, name in enumerate(names, start=1):
        _, side, network, *parts, place = name.split("_")
        here = labels == number
        overlap = pd.Series(lobes[gyri[here & (gyri >= 0)]]).value_counts()
        part = "".join(f", {PARTS[one]}" for one in parts)
        first = 0 if side == "LH" else len(names) // 2
        found.append(
            {
                "name": name,
                "freesurfer_id": (1000 if side == "LH" else 2000) + number - first,
                "hemisphere": side[0],
                "structure": "cortex",
                "annot_name": name,
                "long_name": f"{NETWORKS[network]}{part} {place}",
                "lobe": overlap.index[0],
                "short_name": f"({side[0]}) {'.'.join([network, *parts, place])}",
                **dict(zip("xyz", middle[here].mean(axis=0).round(1), strict=True)),
                "network": network,
            }
        )
    return found


def subcortex(source: Path) -> list[dict[str, object]]:
    """Return the rows of ENIGMA's 14 structures, as desikan82 has them."""
    desikan = load_atlas("desikan82")
    found = []
    for name in read_row_names(source / "labels_sctx.csv"):
        row = desikan.regions.iloc[desikan.match([name])[0]].to_dict()
        found.append({**row, "name": name, "annot_name": "n/a", "network": "n/a"})
    return found


if __name__ == "__main__":
    main()
