"""The command line: parse, call one function of a room, say where it wrote."""

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from brainlsap._files import owner_only
from brainlsap.commands import COMMANDS, add_commands
from brainlsap.commands.stopping import answering_signals
from brainlsap.exceptions import BrainlsapError, CohortError
from brainlsap.options import Parser

EXIT_CODES = """exit codes:
  0    done
  1    a fault of brainlsap itself; please report it, with the text above it
  2    bad input, a place that cannot be written (full disk, read-only folder), a
       folder in use by another run; also a leak (audit), a difference (verify)
  130  stopped by Ctrl-C or SIGTERM; the same command continues"""


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
        private = getattr(options, "owner_only", False)
        with answering_signals(), owner_only() if private else nullcontext():
            COMMANDS[options.command].call(options)
    except (BrainlsapError, OSError) as error:
        print(f"brainlsap: error: {_one_message(error, options)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        told = str(stop) or "stopped; nothing half-written is left."
        print(f"brainlsap: {told}", file=sys.stderr)
        return 130
    return 0


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
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(
        title="commands", required=True, metavar="COMMAND", dest="command"
    )
    add_commands(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
