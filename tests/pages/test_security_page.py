"""docs/security.md: what it names exists, and no promise is left out."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def test_what_it_names_exists() -> None:
    named = set(re.findall(r"`((?:agents|bot|storage|tests)/[\w/.]+)`", PAGE))
    named |= set(re.findall(r"(?<=[ `])tests/[\w/]+\.py", PAGE))
    assert len(named) > 40
    assert [one for one in sorted(named) if not (ROOT / one).exists()] == []


def test_each_promise_has_code_and_tests() -> None:
    rows = {
        row[0]: row[1:]
        for row in re.findall(r"^\| (I\d+) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)
    }
    assert set(rows) == {f"I{number}" for number in range(1, 14)} - {"I11"}  # I11 is about cost
    for _, code, tests in rows.values():
        assert "`" in code or "below" in code
        assert "`tests/" in tests
