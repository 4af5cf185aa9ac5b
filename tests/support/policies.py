"""The conformance cases of the policies: one world, named policies, and cases by their id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

CASES_FILE = Path(__file__).parents[1] / "data" / "cases.yaml"
_DATA: dict[str, Any] = yaml.load(CASES_FILE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
WORLD: dict[str, Any] = _DATA["world"]
"""People, user groups, channels, tools and agents of the cases."""
POLICIES: dict[str, dict[str, Any]] = _DATA["policies"]
"""The named policies, as plain data."""
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in _DATA["cases"]}
"""All cases, by id."""


def cases_of(kind: str) -> list[str]:
    """Ids of the cases of a kind, in order."""
    return [name for name, case in CASES.items() if case["kind"] == kind]
