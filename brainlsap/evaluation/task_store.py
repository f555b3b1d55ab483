"""Finished tasks on disk: safetensors with a JSON header, each whole or not at all."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap._files import remove_partials, replace_when_whole, saying_where
from brainlsap.evaluation.records import FoldResult

SUFFIX = ".safetensors"
NAME = re.compile(rf"[0-9a-f]{{64}}{re.escape(SUFFIX)}")
"""What a finished task's file is called."""

ARRAYS = ("train", "test", "probability", "scales", "scales_start", "scale_path")
WORDS = ("scans", "participants", "truth")
_KEY = "task"


class TaskStore:
    """A folder of finished tasks; it names people and is for its owner's eyes only.

    A file that is cut short, changed or of another making counts as absent, and its
    task is done again.

    Parameters
    ----------
    folder : str or Path
        Made if need be; what an interrupted run left half-written in it is removed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     TaskStore(place).find("0" * 64) is None
    True
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        with saying_where(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            remove_partials(self.folder)

    def find(self, key: str) -> FoldResult | None:
        """Return a finished task, or None.

        Parameters
        ----------
        key : str
            From :func:`brainlsap.evaluation.task_keys.task_key`.

        Returns
        -------
        FoldResult or None
        """
        from safetensors import SafetensorError, safe_open

        path = self._path(key)
        if not path.is_file():
            return None
        try:
            with safe_open(path, framework="numpy") as file:
                told = json.loads((file.metadata() or {})[_KEY])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if told.pop("sha256") != _digest(told, arrays):
                return None
            return _result(told, arrays)
        except (
            *(SafetensorError, OSError, ValueError, LookupError, TypeError),
            *(RecursionError, AttributeError),
        ):
            return None

    def keep(self, key: str, result: FoldResult) -> Path:
        """Write a finished task, whole or not at all.

        Parameters
        ----------
        key : str
            Its key.
        result : FoldResult
            What came of it.

        Returns
        -------
        Path
        """
        from safetensors.numpy import save

        arrays = {
            name: np.ascontiguousarray(getattr(result, name))
            for name in ARRAYS
            if getattr(result, name) is not None
        }
        told: dict[str, Any] = {
            name: [str(one) for one in getattr(result, name)] for name in WORDS
        }
        told |= {
            "fold": result.fold,
            "classes": list(result.classes),
            "details": result.details,
        }
        told["sha256"] = _digest(told, arrays)
        path = self._path(key)
        with replace_when_whole(path) as partial:
            partial.write_bytes(save(arrays, metadata={_KEY: json.dumps(told)}))
        path.chmod(0o600)
        return path

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"


def _result(told: dict[str, Any], arrays: dict[str, np.ndarray]) -> FoldResult:
    words = {name: np.array(told[name], dtype=object) for name in WORDS}
    return FoldResult(
        fold=told["fold"],
        classes=tuple(told["classes"]),
        details=told["details"],
        **words,
        **{name: arrays.get(name) for name in ARRAYS},  # type: ignore[arg-type]
    )


def _digest(told: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()
