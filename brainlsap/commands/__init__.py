"""One module for each command: `add` its options, `call` what it does.

A command parses, calls one function of a room, and says where it wrote. What it
imports at the top must be light, so that `--help` is quick.
"""

from typing import Any

from brainlsap.commands import (
    atlases,
    audit,
    build,
    check,
    compare,
    completion,
    demo,
    export,
    fit,
    import_adni,
    nodes,
    predict,
    rank,
    report,
    run,
    simulate,
    verify,
)
from brainlsap.options import add_owner_only

# In the order of the help.
COMMANDS = {
    "demo": demo,
    "simulate": simulate,
    "import-adni": import_adni,
    "build": build,
    "check": check,
    "audit": audit,
    "run": run,
    "rank": rank,
    "report": report,
    "export": export,
    "compare": compare,
    "verify": verify,
    "fit": fit,
    "predict": predict,
    "nodes": nodes,
    "atlases": atlases,
    "completion": completion,
}
WRITING_NOTHING = ("atlases", "completion", "verify")

__all__ = ["COMMANDS", "WRITING_NOTHING", "add_commands"]


def add_commands(commands: Any) -> None:
    """Add every command with its options to a parser.

    Parameters
    ----------
    commands : argparse's subparsers
        What `add_subparsers` of the parser returned.

    Examples
    --------
    >>> import argparse
    >>> commands = argparse.ArgumentParser().add_subparsers()
    >>> add_commands(commands)
    >>> list(commands.choices)[:2]
    ['demo', 'simulate']
    """
    for name, command in COMMANDS.items():
        command.add(commands)
        if name not in WRITING_NOTHING:
            add_owner_only(commands.choices[name])
