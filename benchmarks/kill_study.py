"""Commands killed at random moments and started again: the same bytes at the end.

`build`, `run` and `report` are each done once undisturbed. Then, several times over,
the same command is started and killed with SIGKILL, with all processes that it started,
at a random moment; every series ends with a start that is left alone. At the end every
file must hold the same bytes as the undisturbed one's, but for the seconds that fits
took, and nothing stray (temporary files and folders, locks) may be left. After every
kill a results folder must be whole: what it was before, or what it shall be.

    python benchmarks/kill_study.py --kills 54 --series 9
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"
BRAINLSAP = (sys.executable, "-m", "brainlsap")
# What a run says of its own speed; the manifest has hashes of these.
SECONDS = ("seconds_fit", "seconds_predict")
TIMED = ("report/timing.tsv", "report/log.txt", "brainlsap-report.json")
REGIONS = tuple("abcdefg")


@dataclass
class Place:
    """One command in a folder of its own."""

    folder: Path
    command: Sequence[str]
    out: Path
    start: Callable[[Path], None]
    seconds: float = 0.0
    wanted: dict[str, str] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)


def write_images(cohort: Path, n_scans: int, rng: np.random.Generator) -> None:
    """Write a small atlas, and tractogram, parcellation and PET of every scan."""
    import nibabel
    from nibabel.streamlines import Tractogram

    atlas = cohort.parent / "seven" / "regions.tsv"
    atlas.parent.mkdir(parents=True)
    atlas.write_text("name\themisphere\n" + "".join(f"lh_{r}\tL\n" for r in REGIONS))
    names = [*(f"lh_{r}" for r in REGIONS), "Left-Cerebellum-Cortex"]
    rows = "".join(f"{k}\t{name}\n" for k, name in enumerate(names, 1))
    (cohort.parent / "labels.tsv").write_text("index\tname\n" + rows)
    for number in range(n_scans):
        name = f"sub-{number:02d}_ses-M00"
        folder = cohort / name[:6] / "ses-M00"
        for kind in ("anat", "dwi", "pet"):
            (folder / kind).mkdir(parents=True)
        labels = rng.integers(1, len(names) + 1, (40, 40, 40)).astype(np.int16)
        image = nibabel.Nifti1Image(labels, np.eye(4))
        nibabel.save(image, folder / f"anat/{name}_atlas-seven_dseg.nii.gz")
        lines = rng.uniform(0, 39, (4000, 9, 3)).astype(np.float32)
        whole = Tractogram(list(lines), affine_to_rasmm=np.eye(4))
        nibabel.streamlines.save(whole, str(folder / f"dwi/{name}_tracts.tck"))
        pet = nibabel.Nifti1Image(rng.gamma(9, 1, labels.shape), np.eye(4))
        nibabel.save(pet, folder / f"pet/{name}_trc-18FFDG_pet.nii.gz")


def run_whole(command: Sequence[str]) -> float:
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return time.monotonic() - start


def run_and_kill(command: Sequence[str], seconds: float) -> bool:
    """Kill a command, and all that it started, after a while; False if it ended."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def without_seconds(value: object) -> object:
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in SECONDS}
        return {k: without_seconds(v) for k, v in kept.items()}
    return [without_seconds(v) for v in value] if isinstance(value, list) else value


def digest(path: Path) -> str:
    """Return a hash of a file; of those that hold seconds, of all else in them."""
    content = path.read_bytes()
    if path.name == "evaluation.json":
        content = json.dumps(without_seconds(json.loads(content))).encode()
    elif path.suffix == ".safetensors":
        size = int.from_bytes(content[:8], "little")
        told = json.loads(content[8 : 8 + size])
        task = json.loads(told["__metadata__"]["task"])
        kept = {k: v for k, v in task.items() if k != "sha256"}
        told["__metadata__"] = without_seconds(kept)
        content = json.dumps(told, sort_keys=True).encode() + content[8 + size :]
    return hashlib.sha256(content).hexdigest()


def digests(out: Path) -> dict[str, str]:
    """Return the hash of every file of a folder, by its path inside."""
    files = {p.relative_to(out).as_posix(): p for p in out.rglob("*") if p.is_file()}
    return {
        name: "present" if name in TIMED else digest(path)
        for name, path in sorted(files.items())
    }


def strays(place: Place) -> list[str]:
    """Return what stands beside a results folder, or half-written in it."""
    patterns = (f".{place.out.name}*", ".old-*", ".partial-*")
    beside = [one.name for p in patterns for one in place.out.parent.glob(p)]
    inside = [one.name for one in place.out.rglob(".*")]
    return beside + inside


def is_torn(place: Place) -> bool:
    """Tell whether a report is neither what it was nor what it shall be."""
    there = digests(place.out) if place.out.is_dir() else {}
    reports = {k: v for k, v in there.items() if not k.startswith("private/tasks/")}
    whole = [
        {k: v for k, v in one.items() if not k.startswith("private/tasks/")}
        for one in (place.before, place.wanted)
    ]
    return bool(reports) and reports not in whole


def prepare(root: Path, people: int, epochs: int = 60) -> list[Place]:
    """Make the cohorts, do every command once undisturbed, and note its bytes."""
    images, cohort = root / "images" / "study", root / "cohort"
    write_images(images, 8, np.random.default_rng(0))
    made = ["--people", str(people), "--atlas", "desikan82"]
    run_whole([*BRAINLSAP, "simulate", str(cohort), *made])
    labels = ["--atlas", str(images.parent / "seven")]
    labels += ["--labels", str(images.parent / "labels.tsv")]
    asked = ["--atlas", "desikan82", "--feature", "fdg", "--kernel", "exact"]
    asked += ["--epochs", str(epochs), "--starts", "2", "--folds", "3"]
    work = root / "work"
    built = images / "derivatives" / "brainlsap"
    places = [
        Place(
            work,
            [*BRAINLSAP, "build", str(images), *labels],
            built,
            lambda _: shutil.rmtree(built.parent, ignore_errors=True),
        ),
        Place(
            work,
            [*BRAINLSAP, "run", str(cohort), "--out", str(work / "run"), *asked],
            work / "run",
            lambda out: shutil.rmtree(out, ignore_errors=True),
        ),
        Place(
            work,
            [*BRAINLSAP, "report", str(work / "report"), "--title", "Another"],
            work / "report",
            lambda out: _copy(work / "finished", out),
        ),
    ]
    for place in places:
        if place.out.name == "report":
            place.out.parent.joinpath("run").rename(work / "finished")
            place.before = digests(work / "finished")
        place.start(place.out)
        place.seconds = run_whole(place.command)
        place.wanted = digests(place.out)
        print(f"{place.command[3]}: {place.seconds:.1f} s", flush=True)
    return places


def _copy(finished: Path, out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(finished, out)


def one_series(place: Place, kills: int, rng: random.Random, jobs: int) -> list[str]:
    """Kill a command some times, then leave it alone; return a row of the table."""
    what = place.command[3]
    command = [*place.command, *(["--jobs", str(jobs)] if what != "report" else [])]
    place.start(place.out)
    moments, kept, torn, again = [], [], 0, 0
    while len(moments) < kills:
        # before a sixth of the time little but imports is done
        moment = rng.uniform(1 / 6, 1) * place.seconds
        if not run_and_kill(command, moment):
            place.seconds *= 0.9
            again += 1
            place.start(place.out)
            continue
        moments.append(moment)
        kept.append(sum(1 for one in place.out.rglob("*") if one.is_file()))
        torn += what != "build" and is_torn(place)
    run_whole(command)
    there = digests(place.out)
    unlike = [
        k for k in place.wanted.keys() | there if place.wanted.get(k) != there.get(k)
    ]
    left = strays(place)
    sound = not (unlike or left or torn)
    verdict = "yes" if sound else f"NO: {sorted(unlike)[:5]} {left[:5]} torn {torn}"
    when = ", ".join(f"{one:.1f}" for one in moments)
    told = [what, str(jobs), when, ", ".join(map(str, kept)), str(len(there)), verdict]
    print(" | ".join(told), f"(began anew {again} times)", flush=True)
    return told


def study(options: argparse.Namespace, root: Path) -> tuple[list[str], int]:
    rng = random.Random(options.seed)
    places = prepare(root, options.people)
    heads = ["command", "processes", "killed after (s)", "files there", "files at last"]
    rows = [[*heads, "same bytes, nothing stray"], ["---"] * (len(heads) + 1)]
    each, rest = divmod(options.kills, options.series)
    for number in range(options.series):
        place = places[number % len(places)]
        jobs = 1 + number // len(places) % 2
        rows.append(one_series(place, each + (number < rest), rng, jobs))
    sound = sum(row[-1] == "yes" for row in rows[2:])
    killed = sum(len(re.findall(r",", row[2])) + 1 for row in rows[2:])
    told = f"{killed} kills, {sound} of {options.series} series sound"
    return [told, "", *(f"| {' | '.join(row)} |" for row in rows)], sound


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=54)
    parser.add_argument("--series", type=int, default=9)
    parser.add_argument("--people", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "kill.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        lines, sound = study(options, Path(root).resolve())
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = "\n".join([f"## {lines[0]}, {now}", *lines[1:], ""])
    print(text)
    with options.out.open("a", encoding="utf-8") as file:
        file.write("\n" + text)
    sys.exit(sound < options.series)


if __name__ == "__main__":
    main()
