"""What tests have run of the product, by part: `make test COVERAGE=1` ends with it.

Measured by slipcover, which takes its probes out of the code that has been passed: with coverage.py
a test takes twice as long where Python has no `sys.monitoring`, before 3.12.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Covered:
    """How much of some files was run.

    Attributes:
        run: Lines and branches that were.
        all: Lines and branches that there are.
    """

    run: int
    all: int

    def __add__(self, other: Covered) -> Covered:
        return Covered(self.run + other.run, self.all + other.all)

    @property
    def percent(self) -> float:
        """Of all, 0 to 100."""
        return 100 * self.run / self.all if self.all else 100.0


def covered_of(data: Mapping[str, Any]) -> Covered:
    """What slipcover says of a file."""
    lines, branches = data["executed_lines"], data["executed_branches"]
    missed = len(data["missing_lines"]) + len(data["missing_branches"])
    return Covered(len(lines) + len(branches), len(lines) + len(branches) + missed)


def report(files: Mapping[str, Any], parts: Sequence[str], at_least: float) -> list[str]:
    """Say what was not run, file by file, and which part is below its bar.

    Args:
        files: What slipcover says, by path.
        parts: Each one folder, or several with commas between them.
        at_least: The bar of each part, in percent of its lines and branches.

    Returns:
        What is wrong; empty when all is well.
    """
    for path, data in sorted(files.items()):
        if data["missing_lines"] or data["missing_branches"]:
            gaps = [*data["missing_lines"], *(f"{a}->{b}" for a, b in data["missing_branches"])]
            words = ", ".join(map(str, gaps[:12])) + (", …" if len(gaps) > 12 else "")
            sys.stdout.write(f"{covered_of(data).percent:4.0f} %  {path}  {words}\n")
    faults = []
    for part in parts:
        folders = tuple(f"{folder}/" for folder in part.split(","))
        inside = [covered_of(data) for path, data in files.items() if path.startswith(folders)]
        total = sum(inside, Covered(0, 0))
        sys.stdout.write(f"{total.percent:.1f} % of {part}: {len(inside)} files\n")
        if not inside:
            faults.append(f"nothing of {part} was measured")
        elif total.percent < at_least:
            faults.append(f"less than {at_least:g} % of {part} is covered by tests")
    return faults


def main(argv: Sequence[str] | None = None) -> int:
    """Read a report of slipcover; return 1 when a part is below its bar."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.covered", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--at-least", type=float, required=True)
    given = parser.parse_args(argv)
    files = json.loads(given.file.read_text("utf-8"))["files"]
    faults = report(files, given.parts, given.at_least)
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
