"""False positives of the spin test where two maps know few regions.

    python benchmarks/spin_study.py [--maps 60] [--spins 39]

Pairs of unrelated maps of Destrieux's 148 cortical regions: white noise, or smooth
(the noise averaged over neighbours within 30 mm), known in so many regions, drawn at
random or next to each other in the left hemisphere.
"""

import argparse

import numpy as np
import pandas as pd
from measuring import keep, table

from brainlsap.atlas import load_atlas
from brainlsap.evaluation import spin_test
from brainlsap.exceptions import ParameterError

DESIGNS = (
    *(("scattered", n) for n in (5, 12, 25, 50, 100)),
    *(("neighbours", n) for n in (12, 40, 74)),
    ("all", 148),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--maps", type=int, default=60)
    parser.add_argument("--spins", type=int, default=39)
    options = parser.parse_args()
    atlas = load_atlas("destrieux160")
    names, place = np.array(atlas.names), np.asarray(atlas.coordinates)
    cortex = np.flatnonzero(atlas.cortex)
    distance = np.linalg.norm(place[:, None] - place, axis=2)
    kernel = np.exp(-((distance / 30) ** 2) / 2)
    left = cortex[place[cortex, 0] < 0]
    rows = []
    for is_smooth in (False, True):
        for kind, n_regions in DESIGNS:
            p_values, n_refused = [], 0
            for seed in range(options.maps):
                rng = np.random.default_rng(seed)
                maps = rng.normal(size=(2, len(names)))
                maps = maps @ kernel if is_smooth else maps
                chosen = rng.choice(cortex, n_regions, replace=False)
                if kind == "neighbours":
                    nearest = np.argsort(distance[rng.choice(left), left])
                    chosen = left[nearest[:n_regions]]
                one, two = (pd.Series(m[chosen], names[chosen]) for m in maps)
                try:
                    test = spin_test(one, two, atlas, options.spins, seed)
                    p_values.append(test.p_value)
                except ParameterError:
                    n_refused += 1
            n_tested = len(p_values)
            positive = (np.array(p_values) <= 0.05).mean() if n_tested else np.nan
            share = f"{positive:.2f}" if n_tested else "n/a"
            texture = "smooth" if is_smooth else "noise"
            rows.append((texture, kind, n_regions, n_refused, n_tested, share))
            print(*rows[-1], flush=True)
    head = ("maps", "regions", "how many", "refused", "tested", "p at most 0.05")
    text = f"{options.maps} pairs of unrelated maps a row, {options.spins} rotations."
    title = "Spin test of unrelated maps"
    keep("spin", title, f"{text}\n\n{table(head, rows)}")


if __name__ == "__main__":
    main()
