"""The page of the log: every action, with its levels, its meaning and what to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from bot.observability.actions import ACTIONS
from reference_pages import sources, text

PURPOSE = (
    "Every `action` of a log record, for operators: its levels, its meaning, and what to do. "
    "`COUNTERSIGN_LOG=info,json` writes the action, the ids and the text as one JSON object per "
    "line."
)
_CONTENT = (
    "The log goes to standard error. It has no bodies of requests and no words of people or "
    "models; secrets are masked."
)
_METHODS = ("debug", "info", "warning", "error", "exception", "critical", "log")
_AGENTS = "agents"
"""Action of records of the runtime, which knows no actions."""


def build() -> str:
    """Make the page."""
    levels = levels_of()
    parts = [text.wrap(_CONTENT)]
    for name, action in sorted(ACTIONS.items()):
        parts += [
            text.section(2, text.code(name), text.anchor("log", name)),
            text.properties(
                [("Level", ", ".join(map(text.code, levels[name]))), ("Do", action.remedy)]
            ),
            text.wrap(action.meaning),
        ]
    return text.page("Log actions", PURPOSE, parts)


@cache
def calls() -> Sequence[tuple[str, ast.Call, str]]:
    """Give every call that writes to the log: place, call, and level."""
    return tuple(_calls())


def _calls() -> Iterator[tuple[str, ast.Call, str]]:
    for path, tree in sources.trees(*sources.PACKAGES):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in _METHODS
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "logger"
            ):
                place = f"{path.relative_to(sources.ROOT).as_posix()}:{node.lineno}"
                yield place, node, {"exception": "error"}.get(node.func.attr, node.func.attr)


def action_of(call: ast.Call) -> str:
    """Give the action that a call passes as a literal; empty without one."""
    for keyword in call.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "action":
                    return str(value.value) if isinstance(value, ast.Constant) else ""
    return ""


def levels_of() -> Mapping[str, list[str]]:
    """Give the levels of each action, in order of severity."""
    levels_by_name: dict[str, set[str]] = {}
    for place, call, level in calls():
        name = action_of(call) or (_AGENTS if place.startswith("agents/") else "")
        levels_by_name.setdefault(name, set()).add(level)
    return {name: sorted(levels, key=_METHODS.index) for name, levels in levels_by_name.items()}
