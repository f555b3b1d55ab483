"""The truncation bound against 50 digits, for 10,000 random draws of each kind.

    python benchmarks/bound_study.py [--draws 10000]

Draws are (kernel, scale, degree, eigenvalue); the bound must never be exceeded, and
for Chebyshev at scales of at most 4 be at most 100 times the largest error.
"""

import argparse
import sys

import numpy as np
from measuring import HERE, keep, table

from brainlsap.graph import error_bound

sys.path.insert(0, str(HERE.parent / "tests" / "graph"))
from test_kernels import truncation_error

KERNELS = ("chebyshev", "hermite", "laguerre")


def draws_table(n_draws: int) -> tuple[str, int]:
    rng = np.random.default_rng(0)
    exceeded = dict.fromkeys(KERNELS, 0)
    tightest = dict.fromkeys(KERNELS, 0.0)
    count = dict.fromkeys(KERNELS, 0)
    for draw in range(n_draws):
        kernel = KERNELS[draw % 3]
        s, lam = float(rng.uniform(0, 10)), float(rng.uniform(0, 2))
        degree = int(rng.integers(0, 61))
        error = truncation_error(kernel, s, degree, lam)
        bound = error_bound(kernel, s, degree)
        count[kernel] += 1
        exceeded[kernel] += error > bound * (1 + 1e-9) + 1e-45
        if bound > 1e-40:
            tightest[kernel] = max(tightest[kernel], error / bound)
    rows = [(k, count[k], exceeded[k], f"{tightest[k]:.3f}") for k in KERNELS]
    head = ("kernel", "draws", "bound exceeded", "largest error / bound")
    return table(head, rows), sum(exceeded.values())


def looseness(n_draws: int) -> str:
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(n_draws):
        s, degree = float(rng.uniform(0.05, 4)), int(rng.integers(0, 25))
        places = [truncation_error("chebyshev", s, degree, lam)
                  for lam in (0.0, 2.0, *rng.uniform(0, 2, 6))]  # fmt: skip
        worst = max(worst, error_bound("chebyshev", s, degree) / max(places))
    return (
        f"Chebyshev, s <= 4, {n_draws} draws of (s, degree): the bound is at most "
        f"{worst:.2f} times the largest error at 8 eigenvalues (limit 100)."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10_000)
    options = parser.parse_args()
    text, n_exceeded = draws_table(options.draws)
    text += "\n\n" + looseness(options.draws // 20)
    keep("bounds", "Truncation bound against 50 digits", text)
    return int(n_exceeded > 0)


if __name__ == "__main__":
    sys.exit(main())
