"""One module for each command: `add` its options, `call` what it does.

A command parses, calls one function of a room, and says where it wrote. What it
imports at the top must be light, so that `--help` is quick.
"""

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

__all__ = ["COMMANDS"]
