"""The way to all commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from countersign_client.cli.commands import ask, cancel, get, result, wait
from countersign_client.cli.gating import gate
from countersign_client.cli.hooking import hook
from countersign_client.cli.parser import build_parser
from countersign_client.cli.process import DONE, Process, guarded
from countersign_client.cli.serving import mcp, mcp_proxy

_COMMANDS = {
    "ask": ask,
    "gate": gate,
    "wait": wait,
    "get": get,
    "cancel": cancel,
    "result": result,
    "hook": hook,
    "mcp": mcp,
    "mcp-proxy": mcp_proxy,
}


def main(argv: Sequence[str] | None = None, process: Process | None = None) -> int:
    """Run a command; without the name of one, `ask`.

    Args:
        argv: The arguments after the program's name; None: of the process.
        process: The process; None: the real one.

    Returns:
        The exit code.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv and argv[0].startswith("-") and argv[0] not in ("-h", "--help"):
        argv = ["ask", *argv]
    command = _COMMANDS.get(argv[0]) if argv else None
    if command is None:
        build_parser().parse_args(argv)  # prints help, or what is wrong, and exits
        return DONE
    return guarded(process or Process(), lambda: command(argv[1:], process))
