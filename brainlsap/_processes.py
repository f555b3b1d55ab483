"""Processes that work for a command, and end with it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def deaf_to_ctrl_c(n_jobs: int) -> Iterator[None]:
    """Let processes that joblib starts in the block not hear Ctrl-C.

    A terminal sends it to all processes at once; those that work for another would each
    print where they were. Who started them hears it and ends them.

    Parameters
    ----------
    n_jobs : int
        With 1 there are none, and nothing is done.
    """
    if n_jobs == 1 or (
        not hasattr(signal, "pthread_sigmask")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    _start_trackers()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_trackers() -> None:
    """Start what would else start with the first worker, and unblock the signal."""
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()
    with suppress(ImportError, AttributeError):
        from joblib.externals.loky.backend import resource_tracker as of_joblib

        of_joblib.ensure_running()
