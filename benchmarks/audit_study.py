"""The audit on what it must find and on what is clean.

`planted`: the tests that plant one leak each (tests/evaluation/test_leakage.py).
`clean`: simulated cohorts of many sizes, features and designs, on which it must raise
no error; warnings are counted, since a cohort may have some by chance.

    python benchmarks/audit_study.py
"""

import argparse
import re
import subprocess
import sys
from collections import Counter

from measuring import HERE, keep

from brainlsap.evaluation import audit, make_splits
from brainlsap.simulation import make_cohort

ROOT = HERE.parent


def planted() -> list[str]:
    tests = ROOT / "tests" / "evaluation" / "test_leakage.py"
    command = [sys.executable, "-m", "pytest", "-v", str(tests)]
    said = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True
    ).stdout
    outcome: dict[str, set[str]] = {}
    for name, result in re.findall(
        r"::test_(\w+)(?:\[.*?\])? (PASSED|FAILED|ERR)", said
    ):
        outcome.setdefault(name.replace("_", " "), set()).add(result)
    lines = ["| planted leak | found |", "| --- | --- |"]
    lines += [
        f"| {name} | {'yes' if results == {'PASSED'} else 'NO'} |"
        for name, results in outcome.items()
    ]
    found = sum(results == {"PASSED"} for results in outcome.values())
    return [*lines, f"\nFound: {found} of {len(outcome)}."]


def clean(n_cohorts: int) -> list[str]:
    errors, warned = 0, Counter()
    for seed in range(n_cohorts):
        cohort = make_cohort(
            60 + 17 * seed % 120,
            atlas=("desikan82", "destrieux160")[seed % 5 == 0],
            feature=("fdg", "thickness", "volume")[seed % 3],
            random_state=seed,
        )
        splits = make_splits(cohort.y, cohort.groups, 3 + seed % 3, random_state=seed)
        found = audit(cohort, splits)
        errors += "error" in set(found["severity"])
        warned.update(set(found.loc[found["severity"] == "warning", "check"]))
    told = ", ".join(f"{name} ({count})" for name, count in warned.items()) or "none"
    return [
        f"Clean simulated cohorts: {n_cohorts}; with an error: {errors}; "
        f"warnings by number of cohorts: {told}."
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, default=50)
    options = parser.parse_args()
    text = "\n".join([*planted(), "", *clean(options.cohorts)])
    keep("audit", "Planted leaks and clean cohorts", text)


if __name__ == "__main__":
    main()
