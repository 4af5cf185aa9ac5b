"""What a real MongoDB refuses: one command in, the names of the broken rules out.

The servers of the tests accept more than MongoDB does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Command = Mapping[str, Any]


def broken_rules(command: Command) -> list[str]:
    """Return what MongoDB would refuse in a command; empty if it takes the command."""
    return list(_create_indexes(command)) if "createIndexes" in command else []


def _create_indexes(command: Command) -> Iterator[str]:
    specs = [dict(spec) for spec in command["indexes"]]
    if any(spec in specs[:number] for number, spec in enumerate(specs)):
        yield "I2 two equal indexes in one command (68; SERVER-40990)"
