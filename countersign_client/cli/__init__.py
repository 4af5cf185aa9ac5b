"""The command line for programs in a shell: ask people, and run exactly what they approved.

Words for people go to stderr, JSON alone to stdout; the exit codes are those of `process`.
"""

from countersign_client.cli.commands import ask, cancel, get, result, wait
from countersign_client.cli.entry import main
from countersign_client.cli.gating import gate

__all__ = ["ask", "cancel", "gate", "get", "main", "result", "wait"]
