"""How often the check of the order of rows errs, on real connectomes.

    python benchmarks/row_orders.py [--every 4]

The matrices of BNU_1 (106, or every so many of them), a tractogram on destrieux160 and
ENIGMA's group connectome are written in every known order of a size. What an order has
and the matrix has not (cerebellum, a wall) is empty; parts of the thalamus halve its
weights. Each is then checked against every order that it might be taken for. The table
counts refusals: 0 is right on the diagonal (*), all of them elsewhere. Mirror images
(=) cannot be told apart by weights.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import SHARED

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.order_check import OrderCheck, is_same_or_mirrored
from brainlsap.data.row_order import (
    RowNames,
    RowOrder,
    find_region_index_by_row,
    list_fitting_orders,
)

BNU1 = "bnu1_connectomes/BNU_1_track_proba_csd_aparc68+subcort.npz"
CALLOSA = (3, 38)
SIZES = {
    "desikan82": (82, 84, 85),
    "destrieux160": (160, 164),
    "schaefer100": (114, 116),
}


def main() -> None:
    """Print a table for each atlas and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1)
    every = parser.parse_args().every
    for name, all_matrices in read_matrices().items():
        atlas = load_atlas(name)
        matrices = all_matrices[::every]
        for n_rows in SIZES[name]:
            print(f"\n{name}, {n_rows} rows, {len(matrices)} matrices")
            print(count_verdicts(matrices, atlas, n_rows).to_string())


def read_matrices() -> dict[str, np.ndarray]:
    """Return matrices in the order of an atlas, by its name."""
    with np.load(SHARED / BNU1) as file:
        counts = file["count"].astype(float)
    kept = [row for row in range(counts.shape[1]) if row not in CALLOSA]
    path = SHARED / "tract_mni_destrieux/expected/count_radial4_sym_zerodiag.csv"
    nodes = np.loadtxt(path, delimiter=",")
    destrieux = load_atlas("destrieux160")
    mrtrix = next(
        o for o in list_fitting_orders(destrieux, 164) if o.tool_name == "mrtrix"
    )
    rows, _ = destrieux.find_file_rows(mrtrix.names)
    enigma = SHARED / "enigma_parcellations/sc_with_sctx_schaefer_100.csv"
    return {
        "desikan82": counts[:, kept][:, :, kept],
        "destrieux160": nodes[np.ix_(rows, rows)][None],
        "schaefer100": np.loadtxt(enigma, delimiter=",")[None],
    }


def write_in_order(matrix: np.ndarray, order: RowOrder, atlas: Atlas) -> np.ndarray:
    """Return a matrix of the atlas as a tool with this order would write it."""
    regions = find_region_index_by_row(atlas, order.names)
    n_parts = pd.Series(regions).value_counts()
    spread = np.zeros((len(regions), len(atlas)))
    for row, region in enumerate(regions):
        if region is not None:
            spread[row, region] = 1 / n_parts[region]
    return spread @ matrix @ spread.T


def count_verdicts(matrices: np.ndarray, atlas: Atlas, n_rows: int) -> pd.DataFrame:
    """Return how many matrices are refused, by true order and the one asked for."""
    orders = list_fitting_orders(atlas, n_rows)
    table = pd.DataFrame(
        "", [o.tool_name for o in orders], [o.tool_name for o in orders]
    )
    for true in orders:
        for taken in orders:
            rows = RowNames(taken.names, taken.note, "row_order", taken.adds_parts)
            n_refused = 0
            for matrix in matrices:
                check = OrderCheck(atlas)
                check.add_matrix(
                    write_in_order(matrix, true, atlas), rows, Path("matrix")
                )
                n_refused += bool(check.list_refusals())
            mark = "*" if true == taken else ""
            mirror = true != taken and is_same_or_mirrored(taken, as_names(true), atlas)
            table.loc[true.tool_name, taken.tool_name] = (
                f"{n_refused}{mark or '=' * mirror}"
            )
    return table


def as_names(order: RowOrder) -> RowNames:
    """Return the rows of an order."""
    return RowNames(order.names, order.note, "row_order")


if __name__ == "__main__":
    main()
