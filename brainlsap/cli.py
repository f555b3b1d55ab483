"""The command line: parse, call one function of a room, say where it wrote.

Exit codes: 0 done; 2 bad input, with one message on standard error and nothing
written; 130 stopped by Ctrl-C or SIGTERM, with a line on how to continue.
"""

import argparse
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from brainlsap.commands import COMMANDS
from brainlsap.exceptions import BrainlsapError, CohortError
from brainlsap.options import Parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        Exit code.

    Examples
    --------
    >>> main(["atlases"])
    desikan82: 82 regions
    destrieux160: 160 regions
    0
    """
    options = build_parser().parse_args(arguments)
    try:
        with _answering_signals():
            COMMANDS[options.command].call(options)
    except (BrainlsapError, OSError) as error:
        print(f"brainlsap: error: {_one_message(error, options)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        told = str(stop) or "stopped; nothing half-written is left."
        print(f"brainlsap: {told}", file=sys.stderr)
        return 130
    return 0


@contextmanager
def _answering_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a command tidily, and answer before that is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {one: signal.signal(one, _stop) for one in signals}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _stop(*_: object) -> None:
    # Processes that fit need a moment to end; the answer does not wait for them.
    told = "\nbrainlsap: stopping; a run continues if the same command is given again\n"
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, told.encode())
    raise KeyboardInterrupt


def _one_message(error: BrainlsapError | OSError, options: argparse.Namespace) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = str(error)
    if isinstance(error, CohortError) and len(error.faults) == 1:
        text = text.replace(":\n  ", ": ", 1)
    # Messages say "by label="; here it is --label. Nothing that is part of a path.
    names = "|".join(name for name in vars(options) if name != "command")
    keyword = re.compile(rf"(?<![\w/.=-])({names or '(?!)'})=(?=[\s.,;:)]|$)")
    return keyword.sub(lambda found: "--" + found[1].replace("_", "-"), text)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; `command` is the one that was given."""
    from brainlsap import __version__

    parser = Parser(
        prog="brainlsap",
        description="Learnable heat-kernel graph convolution for brain networks: "
        "cross-validated stages, ranked regions, brain figures, a report.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(
        title="commands", required=True, metavar="COMMAND", dest="command"
    )
    for command in COMMANDS.values():
        command.add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
