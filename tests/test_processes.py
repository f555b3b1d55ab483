"""Processes that work for another do not hear Ctrl-C; the one that asked does."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from brainlsap._processes import deaf_to_ctrl_c

ASK = "import signal; print(signal.SIGINT in signal.pthread_sigmask(0, []))"


def is_deaf():
    asked = [sys.executable, "-c", ASK]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return told.strip() == "True"


def test_what_is_started_in_the_block_does_not_hear():
    with deaf_to_ctrl_c(2):
        assert is_deaf()
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert not is_deaf()


def test_alone_nothing_is_blocked():
    with deaf_to_ctrl_c(1):
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_workers_of_joblib_do_not_hear():
    code = (
        "import signal; from joblib import Parallel, delayed\n"
        "from brainlsap._processes import deaf_to_ctrl_c\n"
        "if __name__ == '__main__':\n"
        "    asked = (delayed(signal.pthread_sigmask)(0, []) for _ in range(4))\n"
        "    with deaf_to_ctrl_c(2):\n"
        "        masks = Parallel(n_jobs=2, return_as='generator')(asked)\n"
        "    print([signal.SIGINT in one for one in masks])\n"
    )
    asked = [sys.executable, "-c", code]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([True] * 4)


def test_other_threads_are_left_alone():
    def mask():
        with deaf_to_ctrl_c(2):
            return signal.pthread_sigmask(signal.SIG_BLOCK, [])

    with ThreadPoolExecutor(1) as threads:
        assert signal.SIGINT not in threads.submit(mask).result()
