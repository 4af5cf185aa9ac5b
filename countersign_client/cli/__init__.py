"""The command line for programs in a shell: ask people, and run exactly what they approved.

Words for people go to stderr, JSON alone to stdout; the exit codes are those of `process`.
"""

from countersign_client.cli.entry import main

__all__ = ["main"]
