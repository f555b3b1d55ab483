"""One run in one results folder, which can be stopped and continued."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from brainlsap._files import write_text
from brainlsap._locks import hold_folder
from brainlsap.exceptions import BrainlsapError
from brainlsap.report.folder_files import TASKS
from brainlsap.report.log import fault_text


@contextmanager
def hold_results(out: Path, cache: str | Path | None = None) -> Iterator[Path]:
    """Hold a results folder, remove what a killed run left, and say how to resume.

    Parameters
    ----------
    out : Path
        Results folder, absolute.
    cache : str or Path, optional
        Folder of finished tasks; by default in the results folder.

    Yields
    ------
    Path
        Folder of finished tasks.

    Raises
    ------
    ParameterError
        Where another run holds the folder.
    KeyboardInterrupt
        Where the run is stopped; the message says how to continue.
    Exception
        Any fault of the package itself; a log of it that names nobody is written
        beside the folder, until the next run.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with hold_results(Path(place).resolve() / "out") as tasks:
    ...         tasks.relative_to(Path(place).resolve()).as_posix()
    'out/private/tasks'
    """
    with hold_folder(out):
        tasks = out / TASKS if cache is None else Path(cache).expanduser()
        fresh = not out.exists()
        if cache is None:
            tasks.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fault = out.with_name(f"{out.name}-fault.txt")
        fault.unlink(missing_ok=True)
        try:
            yield tasks
        except (BrainlsapError, OSError, MemoryError):
            raise
        except Exception as error:
            write_text(fault, fault_text(error))
            error.add_note(f"A log for a report of this, with no names, is in {fault}")
            raise
        except KeyboardInterrupt:
            kept = sum(1 for _ in tasks.glob("*.safetensors"))
            if not kept:
                raise
            raise KeyboardInterrupt(
                f"stopped. Run the same command again to continue: {kept} finished "
                f"tasks are kept in {tasks}; nothing half-written is left."
            ) from None
        finally:
            if cache is None:
                _remove_empty([tasks, tasks.parent, *([out] if fresh else [])])


def _remove_empty(folders: list[Path]) -> None:
    """Leave no empty folders where nothing was finished."""
    for folder in folders:
        with suppress(OSError):  # not there, or not empty
            folder.rmdir()
