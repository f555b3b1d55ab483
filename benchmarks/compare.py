"""Every model and control on two open data sets, by `brainlsap compare`.

BNU_1 (98 scans of 49 people, own connectomes, sex from node strength) and FCON1000
(1,078 people, one shared connectome, sex from thickness and volume); the tables and
the times go to benchmarks/results/compare.md, with a date.

    python benchmarks/compare.py [bnu1] [fcon1000] [--full] [--jobs 2]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from brainlsap.data import load_cohort
from brainlsap.report import table_text
from brainlsap.study import compare_models

HERE = Path(__file__).parent
SHARED = HERE.parents[1] / "shared" / "data"
TEMPLATE = SHARED / "tract_mni_destrieux/expected/count_radial4_sym_zerodiag.csv"


def bnu1():
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "study"
        subprocess.run(
            [sys.executable, str(HERE / "bnu1_cohort.py"), str(folder)], check=True
        )
        return load_cohort(folder, atlas="desikan82", feature="strength", label="sex")


def fcon1000():
    return load_cohort(
        SHARED / "fcon1000_destrieux",
        label="sex",
        connectome=TEMPLATE,
        subcortex="volume",
    )


COHORTS = {"bnu1": bnu1, "fcon1000": fcon1000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohorts", nargs="*", choices=sorted(COHORTS))
    parser.add_argument("--full", action="store_true", help="nothing fixed in advance")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--epochs", type=int, help="of every network, at the most")
    options = parser.parse_args()
    for name in options.cohorts or sorted(COHORTS):
        started = time.monotonic()
        cohort = COHORTS[name]()
        found = compare_models(
            cohort,
            fast=not options.full,
            n_epochs=options.epochs,
            n_jobs=options.jobs,
            progress=True,
        )
        elapsed = time.monotonic() - started
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
        text = (
            f"## {name}: {cohort.n_scans} scans of {len(set(cohort.groups))} people\n\n"
            f"Settings: {found.settings}\n\n{table_text(found.table)}\n"
            f"{now}. {found.times(elapsed)} Load of the machine's {os.cpu_count()} "
            f"cores (1, 5 and 15 min): {load}.\n"
        )
        print(text, flush=True)
        with (HERE / "results" / "compare.md").open("a", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
