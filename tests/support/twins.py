"""Tests that differ in the driver alone: for each change one of them runs.

Both drivers of MongoDB do the same behind one door, and so do SQLite's file and SQLite's memory;
what is worth a test with both is found by a half with each. All run in the thorough profile and in
`make test-mongo`.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable

_TWINS = (re.compile(r"\b(motor|pymongo)\b"), re.compile(r"\bsqlite-(file|memory)\b"))


def left_out(names: Iterable[str]) -> set[str]:
    """The names of tests that need not run, as a twin of theirs does.

    Args:
        names: Ids of tests, as pytest writes them.

    Returns:
        Of all that differ in the name of a driver alone, all but one; always the same one.
    """
    families: dict[str, set[str]] = defaultdict(set)
    for name in names:
        family = name
        for number, twins in enumerate(_TWINS):
            test, bracket, case = family.partition("[")
            family = f"{test}{bracket}{twins.sub(f'<{number}>', case)}"
        families[family].add(name)
    left: set[str] = set()
    for family, members in families.items():
        ordered = sorted(members)
        left |= members - {ordered[zlib.crc32(family.encode()) % len(ordered)]}
    return left
