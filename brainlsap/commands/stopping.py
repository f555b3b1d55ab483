"""Ctrl-C and SIGTERM: an answer at once, a tidy end."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

ANSWER = "stopping; a run continues if the same command is given again"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def answering_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a command tidily, and answer before that is done.

    Python itself learns of a signal only between two of its own instructions, which
    may take long while a library computes; the answer comes from a thread that is told
    by the system.

    Raises
    ------
    KeyboardInterrupt
        Where the block is stopped by either signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    waiting = threading.Thread(target=_answer, args=(told,), daemon=True)
    waiting.start()
    woken = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    before = {one: signal.signal(one, _stop) for one in _SIGNALS}
    hook = sys.unraisablehook
    sys.unraisablehook = partial(_stop_again, hook)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for one, handler in before.items():
            signal.signal(one, handler)
        signal.set_wakeup_fd(woken)
        os.close(tell)
        waiting.join()
        os.close(told)


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def _stop_again(hook: Callable[[Any], object], lost: Any) -> None:
    """Send the signal again where Python lost what it raised, as in a destructor."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        hook(lost)
        return
    main = threading.main_thread().ident
    if main is not None:
        again = threading.Timer(0.02, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()


def _answer(told: int) -> None:
    """Say once that a signal came; end when the other end of the pipe is closed."""
    answered = False
    while numbers := os.read(told, 64):
        if not answered and not set(numbers).isdisjoint(_SIGNALS):
            answered = True
            line = f"\nbrainlsap: {ANSWER}\n"
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, line.encode())
