"""Does an installed brainlsap work? Run it by the Python that has it, from anywhere.

    python smoke.py

Goes a short way from simulated folders to a report and to the classes of people by a
stored model, in a temporary folder, and looks whether atlases are found and the import
is quiet and light. Prints one line for each step; the exit code is 0 if all went well.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

LIGHT = (
    "import sys, brainlsap; print(brainlsap.__version__); "
    "heavy = {'torch', 'matplotlib', 'nilearn'} & set(sys.modules); "
    "sys.exit(f'loads {heavy}' if heavy else 0)"
)
WHERE = (
    "import sys; from pathlib import Path; import brainlsap; "
    "from brainlsap import load_atlas; "
    "sizes = [len(load_atlas(name)) for name in ('destrieux160', 'desikan82')]; "
    "print(sizes, Path(brainlsap.__file__).parent); sys.exit(sizes != [160, 82])"
)
READING = ("--atlas", "desikan82", "--feature", "fdg", "--classes", "CN,EMCI")
BRIEF = ("--epochs", "4")


def steps() -> list[tuple[str, list[str]]]:
    """Return the name and the arguments of Python of every step."""
    command = ["-W", "error", "-m", "brainlsap"]
    run = ["-m", "brainlsap", "run", "study", *READING, *BRIEF]
    return [
        ("import is quiet and light", ["-W", "error", "-c", LIGHT]),
        ("atlases come along", ["-c", WHERE]),
        ("python -m brainlsap", [*command, "--version"]),
        (
            "simulate",
            [*command, "simulate", "study", "--people", "16", *READING[:2]],
        ),
        ("check", [*command, "check", "study", *READING]),
        ("run", [*run, "--folds", "2", "--models", "lsap-c,gcn", "--out", "out"]),
        ("report", [*command, "report", "out", "--title", "Another"]),
        (
            "fit",
            ["-m", "brainlsap", "fit", "study", *READING, *BRIEF, "--out", "model"],
        ),
        (
            "predict",
            ["-m", "brainlsap", "predict", "model", "study", "--out", "new.tsv"],
        ),
    ]


def main() -> int:
    """Run every step in an empty folder; stop at the first that fails."""
    with tempfile.TemporaryDirectory() as place:
        for name, arguments in steps():
            done = subprocess.run(
                [sys.executable, *arguments],
                cwd=place,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                print(f"FAILED {name}\n{done.stdout}{done.stderr}")
                return 1
            last = (done.stdout.strip().splitlines() or [""])[-1]
            print(f"ok     {name}: {last[:90]}", flush=True)
        if not (Path(place) / "out" / "report" / "report.html").is_file():
            print("FAILED run: no report.html")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
