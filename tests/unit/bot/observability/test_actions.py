"""Every record of ours has an action, and docs/operations.md says what each means."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[4]
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
WORDS_OF_PEOPLE = {"text", "texts", "words", "body", "event", "payload", "answer", "arguments"}
"""Names of values that hold what people, models or requests say."""


def calls(*packages: str) -> Iterator[tuple[str, ast.Call]]:
    """All calls that write to the log, each with its place."""
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "logger" not in text:  # to parse takes most of the time
                continue
            for node in ast.walk(ast.parse(text)):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr in LEVELS
                    and isinstance(node.func.value, ast.Name)
                    and node.func.value.id == "logger"
                ):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def action_of(call: ast.Call) -> str:
    """The action that a call passes as a plain text; empty without one."""
    for keyword in call.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "action":
                    return str(value.value) if isinstance(value, ast.Constant) else ""
    return ""


def documented() -> set[str]:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| action \|.*?\n\n", text, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def test_every_record_of_the_bot_has_a_documented_action() -> None:
    found = {place: action_of(call) for place, call in calls("bot")}
    assert len(found) > 15
    assert {place for place, action in found.items() if action not in documented()} == set()


def test_every_documented_action_is_used() -> None:
    used = {action_of(call) for _, call in calls("bot", "storage")}
    assert documented() - used == {"agents"}


def test_no_record_quotes_people_models_or_requests() -> None:
    wrong: list[str] = []
    for place, call in calls("agents", "bot", "storage"):
        assert isinstance(call.args[0], ast.Constant), place  # a fixed text, and values beside it
        names = [node for value in call.args[1:] for node in ast.walk(value)]
        said = {node.id for node in names if isinstance(node, ast.Name)}
        said |= {node.attr for node in names if isinstance(node, ast.Attribute)}
        if said & WORDS_OF_PEOPLE:
            wrong.append(place)
    assert wrong == []


def test_nothing_else_writes_to_the_log() -> None:
    """A logger under another name would escape the walk above."""
    for package in ("agents", "bot", "storage"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            loggers = re.findall(r"^(\w+) = logging\.getLogger\(", text, re.MULTILINE)
            assert loggers in ([], ["logger"]), path
            assert not re.search(r"\blogging\.(debug|info|warning|error|exception)\(", text), path
            assert not re.search(r"\bprint\(", text), path
