"""Ctrl-C and SIGTERM: an answer at once, a way to continue, nothing half-written."""

import hashlib
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from brainlsap.cli import main
from brainlsap.commands.stopping import ANSWER, answering_signals


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_says_how_to_continue(
    simulated_folder, tmp_path, command, monkeypatch, capfd, sign
):
    from brainlsap.evaluation import tasks

    real, seen = tasks.fit_task, []

    def stop_at_third(task, scans):
        seen.append(task.name)
        if len(seen) == 3:
            os.kill(os.getpid(), sign)
        return real(task, scans)

    before = signal.getsignal(sign)
    monkeypatch.setattr(tasks, "fit_task", stop_at_third)
    asked = command(simulated_folder, tmp_path / "out")
    asked[asked.index("exact,chebyshev")] = "exact"
    assert main(asked) == 130
    told = capfd.readouterr().err
    assert "brainlsap: stopping; a run continues if the same command is given" in told
    assert told.strip().endswith("nothing half-written is left.")
    assert "2 finished tasks are kept in" in told
    assert signal.getsignal(sign) is before
    left = sorted(one.name for one in tmp_path.rglob("*") if one.is_file())
    assert len(left) == 2
    assert all(name.endswith(".safetensors") for name in left)


def test_the_answer_does_not_wait_for_a_library_that_computes(monkeypatch):
    read, write = os.pipe()
    monkeypatch.setattr(sys, "__stderr__", SimpleNamespace(fileno=lambda: write))
    answered = []

    def stop_and_listen():
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        answered.append((os.read(read, 200).decode(), time.monotonic()))

    def compute():
        with answering_signals():
            listener.start()
            # one instruction of Python, about a second long, that no signal ends
            hashlib.pbkdf2_hmac("sha256", b"a", b"b", 3_000_000)

    listener = threading.Thread(target=stop_and_listen)
    with pytest.raises(KeyboardInterrupt):
        compute()
    ended = time.monotonic()
    listener.join()
    os.close(read)
    os.close(write)
    ((told, when),) = answered
    assert told == f"\nbrainlsap: {ANSWER}\n"
    assert when < ended


def test_a_thread_runs_commands_without_hearing_signals():
    before = signal.getsignal(signal.SIGINT)

    def enter():
        with answering_signals():
            return signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(enter).result() is before


class Departing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)  # the handler is called in here, where nobody hears it


def test_a_stop_that_python_lost_is_sent_again(capfd):
    def lose():
        with answering_signals():
            Departing()
            time.sleep(30)

    hook, start = sys.unraisablehook, time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        lose()
    assert time.monotonic() - start < 20
    assert sys.unraisablehook is hook
    assert "Exception ignored" not in capfd.readouterr().err


def test_other_things_that_python_lost_are_told_as_ever(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: told.append(lost.exc_type))

    class Broken:
        def __del__(self):
            raise LookupError

    with answering_signals():
        Broken()
    assert told == [LookupError]
