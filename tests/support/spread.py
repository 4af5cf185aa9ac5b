"""The order of tests where several workers run them: who waits begins at once.

It is also where each worker begins to look for tests, see `turned`.

pytest-xdist gives each worker a run of neighbours, and lets who has none left take from the end of
another's. By folder, one worker would have all that waits for a browser and for other processes,
one after the other, while the processors have nothing to do. So some workers begin with these, and
the others with what needs the processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path

import pytest

_WAIT_S = {"browser": 2.0, "chaos": 10.0, "scenario": 0.5}
"""Folders whose tests wait, and for how many seconds each, about."""
_PROCESSORS = 2
"""So many workers do not begin with what waits."""
_HERE = Path(__file__).parents[1]


def spread(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """Order tests so that what waits is at the beginning of some workers' parts.

    Args:
        items: All tests, neighbours being of one file.
        workers: How many run them.

    Returns:
        The same tests; those of one file that wait stay together, and in their order.
    """
    heads: list[list[pytest.Item]] = [[] for _ in range(max(0, workers - _PROCESSORS))]
    if not heads:
        return list(items)
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if _wait_s(item):
            files.setdefault(item.path, []).append(item)
    for file in sorted(files.values(), key=lambda group: -sum(map(_wait_s, group))):
        min(heads, key=lambda head: sum(map(_wait_s, head))).extend(file)
    rest = iter([item for item in items if not _wait_s(item)])
    parts: list[list[pytest.Item]] = []
    left = len(items)
    for number in range(workers):
        head = heads[number] if number < len(heads) else []
        size = left // (workers - number)  # as pytest-xdist shares them out
        part = [*head, *islice(rest, max(0, size - len(head)))]
        left -= len(part)
        parts.append(part)
    return [*chain(*parts), *rest]


def turned(args: Sequence[str], worker: int, workers: int) -> list[str]:
    """Name the files of tests, beginning with another one for each worker.

    All workers read all files, and the first that reads one writes what it has compiled for the
    others. In the same order each would compile all of them, at the same time.

    Args:
        args: Where tests are looked for: files and folders.
        worker: Which worker, from 0 on.
        workers: How many there are.

    Returns:
        The same places, folders of ours by their files.
    """
    ours = [arg for arg in args if Path(arg).is_dir() and Path(arg).resolve().is_relative_to(_HERE)]
    files = sorted({str(file) for arg in ours for file in Path(arg).resolve().rglob("test_*.py")})
    begin = len(files) * worker // workers
    return [*files[begin:], *files[:begin], *(arg for arg in args if arg not in ours)]


def _wait_s(item: pytest.Item) -> float:
    """For how long a test waits, about."""
    if not item.path.is_relative_to(_HERE):
        return 0.0
    return _WAIT_S.get(item.path.relative_to(_HERE).parts[0], 0.0)
