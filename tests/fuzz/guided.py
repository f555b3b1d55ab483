"""Fuzz one reader guided by coverage; atheris does not return, so in a process."""

import mmap
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TIMEOUT, MOST_MEGABYTES = 20, 4096


def run_guided(name: str, seconds: float, found: Path) -> tuple:
    """Return executions, how many were read, seconds and the escapes."""
    corpus = found / f"corpus.{name.replace(':', '+')}"
    corpus.mkdir(parents=True, exist_ok=True)
    count = found / f"{corpus.name}.count"
    count.write_bytes(bytes(8))
    words = [sys.executable, "-W", "ignore", "-m", "tests.fuzz.guided", name]
    words += [str(count), str(corpus), f"-max_total_time={seconds:.0f}"]
    words += [f"-timeout={TIMEOUT}"]
    words += ["-print_final_stats=1", f"-rss_limit_mb={MOST_MEGABYTES}"]
    words += [f"-artifact_prefix={found}/", "-verbosity=1"]
    done = subprocess.run(
        words, check=False, capture_output=True, text=True, errors="replace"
    )
    text = done.stdout + done.stderr
    told = re.search(r"number_of_executed_units:\s*(\d+)", text)
    n_read = int.from_bytes(count.read_bytes(), "little")
    count.unlink()
    escapes = ()
    if done.returncode:
        lines = [
            line for line in text.splitlines() if "Error" in line or "SUMM" in line
        ]
        escapes = (" | ".join(lines[-3:])[:500] or f"ended with {done.returncode}",)
    return (
        int(told[1]) if told else 0,
        n_read,
        seconds,
        escapes,
    )


def main() -> None:
    import atheris

    with atheris.instrument_imports(include=["brainlsap"]):
        from tests.fuzz.mutations import mutate
        from tests.fuzz.one_input import Place
        from tests.fuzz.targets import TARGETS
    import logging

    import numpy as np

    logging.disable()
    name, count, corpus, *rest = sys.argv[1:]
    folder = "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()
    place = Place(TARGETS[name], folder)
    (Path(corpus) / "seed").write_bytes(place.seed)
    for number, content in enumerate(TARGETS[name].corpus()):
        (Path(corpus) / f"kept{number}").write_bytes(content)
    # libFuzzer ends the process where it stands: what was counted is in a file by then
    with Path(count).open("r+b") as file:
        shared = mmap.mmap(file.fileno(), 8)
    n_read = np.frombuffer(shared, "<u8")

    def one(content: bytes) -> None:
        n_read[0] += place.try_bytes(content)

    def change(content: bytes, most: int, seed: int) -> bytes:
        rng = np.random.default_rng(seed)
        if rng.random() < 0.5:
            return atheris.Mutate(content, most)
        return mutate(content, rng)[:most]

    atheris.Setup([sys.argv[0], *rest, corpus], one, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
