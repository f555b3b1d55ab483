"""Build sdist and wheel, install the wheel elsewhere, and try it.

    python packaging/release_check.py [--fresh]

Everything happens in temporary folders. Without --fresh the wheel's dependencies are
those of the Python that runs this, so that PyTorch is not fetched again; with it they
are installed anew. The wheel is made from the sdist, so the sdist is whole.
"""

import argparse
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IN_WHEEL = (
    "brainlsap/py.typed",
    "brainlsap/_atlases/destrieux160/regions.tsv",
    "brainlsap/_atlases/destrieux160/LICENSE.txt",
    "brainlsap/_atlases/desikan82/lh.annot",
    "brainlsap/_atlases/desikan82/atlas.json",
    "brainlsap/_atlases/schaefer400/rh.annot",
    "brainlsap/_atlases/schaefer400/LICENSE.txt",
    "brainlsap/_atlases/subcortex/Left-Thalamus.surf.gii",
    "brainlsap/nodes/settings.json",
    "brainlsap/report/report.html.j2",
)
IN_SDIST = ("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile")


def main() -> int:
    """Go through all steps; the first that fails raises."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="install dependencies")
    options = parser.parse_args()
    check_versions()
    with tempfile.TemporaryDirectory() as place:
        sdist, wheel = build(Path(place))
        check_content(sdist, wheel)
        python = install(wheel, Path(place) / "elsewhere", options.fresh)
        run(python, ROOT / "packaging" / "smoke.py", folder=Path(place))
    print("ready for release")
    return 0


def check_versions() -> None:
    """Raise unless changelog and citation speak of the version of pyproject."""
    asked = re.search(r'^version = "(.*)"', read("pyproject.toml"), re.MULTILINE)[1]
    for name in ("CHANGELOG.md", "CITATION.cff"):
        if asked not in read(name):
            raise SystemExit(f"{name} does not speak of version {asked}.")
    print(f"ok     version {asked}")


def read(name: str) -> str:
    """Return a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def build(place: Path) -> tuple[Path, Path]:
    """Return sdist and wheel, built by an environment of their own."""
    venv.create(place / "builder", with_pip=True)
    python = place / "builder" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "build")
    run(python, "-m", "build", "--outdir", place / "dist", ROOT)
    (sdist,) = (place / "dist").glob("*.tar.gz")
    (wheel,) = (place / "dist").glob("*.whl")
    for made in (sdist, wheel):
        print(f"ok     {made.name}: {made.stat().st_size / 1e6:.1f} MB")
    return sdist, wheel


def check_content(sdist: Path, wheel: Path) -> None:
    """Raise where a file is missing."""
    with zipfile.ZipFile(wheel) as archive:
        missing = set(IN_WHEEL) - set(archive.namelist())
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    missing |= set(IN_SDIST) - inside
    if missing:
        raise SystemExit(f"not in sdist or wheel: {', '.join(sorted(missing))}")
    print("ok     nothing is missing in them")


def install(wheel: Path, place: Path, fresh: bool) -> Path:
    """Return the Python of a new environment that has the wheel."""
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    if fresh:
        run(python, "-m", "pip", "install", "--quiet", wheel)
        return python
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    (site,) = place.glob("lib/python*/site-packages")
    # A folder named in a .pth is looked at last, and its own .pth files, such as that
    # of an editable brainlsap, are not followed.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def run(*words: object, folder: Path | None = None) -> None:
    """Run a command; raise with what it said if it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        stdout=None if "smoke.py" in str(words[-1]) else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))} failed:\n{done.stdout or ''}")


if __name__ == "__main__":
    sys.exit(main())
