"""Run the suite with the oldest dependencies that pyproject.toml allows, or the newest.

    python packaging/dependency_sets.py oldest [--keep FOLDER] [PYTEST ARGUMENTS]
    python packaging/dependency_sets.py newest

Oldest: of every direct dependency with a lower bound X the line X.*; newest: whatever
the index has, without the constraints file. PyTorch is the exception on both sides: its
old builds are gigabytes, so the build of the constraints file stands in both sets.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
BOUND = re.compile(r"([A-Za-z0-9_-]+)>=([0-9.]+)$")
# What the suite needs beside the package; its own tools are not what is tried here.
GROUP = "test"


def declared() -> list[str]:
    """Return every requirement of the package, its extras and its tests."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = list(told["project"]["dependencies"])
    for extra in told["project"]["optional-dependencies"].values():
        wanted += extra
    return sorted({*wanted, *told["dependency-groups"][GROUP]})


def oldest(requirement: str) -> str:
    """Return the constraint that allows only the line of the lower bound."""
    found = BOUND.match(requirement)
    if found is None:
        raise SystemExit(f"{requirement}: expected NAME>=VERSION in pyproject.toml.")
    return f"{found[1]}=={found[2]}.*"


def torch_line() -> str:
    """Return the PyTorch that the constraints file names."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    return re.search(r"^torch==.*$", text, re.MULTILINE)[0]


def install(which: str, place: Path) -> Path:
    """Install one set into a fresh environment; return its Python."""
    venv.create(place, with_pip=True, clear=True)
    python = place / "bin" / "python"
    lines = [torch_line()]
    if which == "oldest":
        lines += [oldest(one) for one in declared() if not one.startswith("torch>")]
    constraints = place / "constraints.txt"
    constraints.write_text("\n".join(lines) + "\n", encoding="utf-8")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "pip>=25.1"], check=True)
    wanted = ["--group", GROUP, "--editable", ".[download,xlsx,tract]"]
    if which == "newest":
        wanted.append("--upgrade")
    subprocess.run([*pip, "-c", constraints, *wanted], check=True, cwd=ROOT)
    return python


def main() -> int:
    """Install the set and hand its Python to pytest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=("oldest", "newest"))
    parser.add_argument("--keep", type=Path, help="environment to make and keep")
    options, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as scratch:
        python = install(options.which, options.keep or Path(scratch) / "venv")
        named = [re.split("[>=]", one)[0] for one in declared()]
        told = subprocess.run(
            [python, "-m", "pip", "freeze", "--exclude-editable"],
            check=True, capture_output=True, text=True,
        ).stdout.splitlines()  # fmt: skip
        print(*(t for t in told if t.split("==")[0].lower() in named), sep="\n")
        command = [python, "-m", "pytest", *(rest or ["--numprocesses", "2"])]
        if options.which == "oldest":
            # the suite takes warnings for errors; old packages deprecate new ones
            command += ["-W", "ignore::DeprecationWarning"]
        threads = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.run(command, cwd=ROOT, env=threads, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
