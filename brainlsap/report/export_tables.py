"""Regional maps as tables: BIDS, ggseg, the ENIGMA toolbox."""

from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap._files import write_text
from brainlsap.data.spreadsheets import guarded_text
from brainlsap.report.export_record import SIDES, Export, write_sidecar

# The order of the ENIGMA toolbox's plot_subcortical, on each side, without ventricles.
_ENIGMA_BELOW = (
    *("Accumbens-area", "Amygdala", "Caudate", "Hippocampus"),
    *("Pallidum", "Putamen", "Thalamus"),
)


def write_tables(export: Export, separator: str = "\t") -> list[Path]:
    """Write one row per region as BIDS has tables, and what the columns are.

    Parameters
    ----------
    export : Export
        What to write.
    separator : str
        Tab, or comma.

    Returns
    -------
    list of Path
        Table and sidecar.
    """
    known = export.atlas.regions
    columns = ["name", "hemisphere", "structure", "lobe", "freesurfer_id"]
    frame = known[columns].rename(columns={"name": "region"}).reset_index(drop=True)
    for name, values in export.maps.items():
        frame[name or "value"] = values
    ending = {"\t": "tsv", ",": "csv"}[separator]
    missing = "n/a" if ending == "tsv" else ""
    text = guarded_text(frame, separator, missing)
    table = write_text(export.folder / f"regions.{ending}", text)
    told = {
        "region": {"Description": f"Name of the region in atlas {export.atlas.name}."},
        "hemisphere": {"Levels": {"L": "left", "R": "right", "M": "midline"}},
        "structure": {"Levels": {"cortex": "cortex", "subcortex": "below it"}},
        "lobe": {"Description": "Lobe that the region belongs to."},
        "freesurfer_id": {"Description": "FreeSurfer's number; -1 if it has none."},
    }
    for name in export.maps:
        about = {"Description": export.measure, "Units": export.unit}
        told[name or "value"] = about
    return [table, write_sidecar(table, told)]


def write_ggseg(export: Export) -> list[Path]:
    """Write the table that ggseg (R) joins to its atlases by `label`.

    Parameters
    ----------
    export : Export
        What to write.

    Returns
    -------
    list of Path
        One row a region: label (such as lh_bankssts, Left-Putamen), hemi, maps.
    """
    regions = export.atlas.regions
    cortex = (regions["structure"] == "cortex").to_numpy()
    short = {side: one for side, (one, _, _) in SIDES.items()}
    label = [
        f"{short.get(side, side)}_{own}" if outer else name
        for name, side, own, outer in zip(
            regions["name"],
            regions["hemisphere"],
            regions["annot_name"],
            cortex,
            strict=True,
        )
    ]
    full = {side: one for side, (_, one, _) in SIDES.items()}
    frame = pd.DataFrame(
        {"label": label, "hemi": regions["hemisphere"].map(full).fillna("midline")}
    )
    for name, values in export.maps.items():
        frame[name or "value"] = values
    text = guarded_text(frame, ",", "NA")
    return [write_text(export.folder / "ggseg.csv", text)]


def write_enigma(export: Export) -> list[Path]:
    """Write what the ENIGMA toolbox plots: vertices of fsaverage5, and subcortex.

    Parameters
    ----------
    export : Export
        What to write.

    Returns
    -------
    list of Path
        A table of 20,484 rows, left hemisphere first, for `plot_cortical(...,
        surface_name="fsa5")`; and one of 14 structures for `plot_subcortical(...,
        ventricles=False)`, empty where the atlas has no such region.
    """
    cortex = pd.DataFrame(
        {
            name or "value": np.concatenate(
                [export.on_vertices(values, side) for side in SIDES]
            )
            for name, values in export.maps.items()
        }
    )
    wanted = [
        (f"{side}_{core}", export.atlas.find(f"{full.title()}-{core}"))
        for side, (_, full, _) in SIDES.items()
        for core in _ENIGMA_BELOW
    ]
    below = pd.DataFrame({"structure": [name for name, _ in wanted]})
    for name, values in export.maps.items():
        below[name or "value"] = [
            np.nan if place is None else values[place] for _, place in wanted
        ]
    paths = []
    for stem, frame in (("enigma_cortex_fsa5", cortex), ("enigma_subcortex", below)):
        text = guarded_text(frame, ",", "NaN")
        paths.append(write_text(export.folder / f"{stem}.csv", text))
    return paths
