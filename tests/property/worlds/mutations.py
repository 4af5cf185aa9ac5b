"""Payloads that are nearly right: something in them is missing, another thing, or far too much."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from slack_sandbox.workspace.people import BOT_USER, GUS, OPS, ROSA, TEAM


def _deep(levels: int) -> object:
    made: object = "x"
    for number in range(levels):
        made = [made] if number % 2 else {"id": made}
    return made


# None of this is the id of somebody who may decide.
SCALARS: Sequence[object] = (
    None,
    True,
    False,
    0,
    -1,
    10**30,
    1e308,
    "",
    " ",
    "x",
    "null",
    "\x00",
    "\ud800",
    "\u202e<!channel> <@U0ADALINDQ",
    "../../etc/passwd",
    "{{7*7}}${7*7}%s%n{0.__class__}",
    "' OR 1=1; --",
    "1800000000.000001",
    ROSA,
    GUS,
    BOT_USER,
    OPS,
    TEAM,
    "T9OTHERCOR",
    "E9GRID",
    "D0ROSAORTI",
    "countersign:approve",
    "block_actions",
    "view_submission",
    "event_callback",
    "message",
    "modal",
)
BIG: Sequence[object] = (
    "x" * 100_000,
    "\u4e16" * 20_000,
    [0] * 5_000,
    {str(number): number for number in range(3_000)},
    _deep(60),
)
CONTAINERS: Sequence[object] = (
    [],
    {},
    [None],
    [[]],
    {"id": None},
    {"id": {}},
    {"id": ROSA},
    [ROSA],
)

junk = st.sampled_from([*SCALARS, *CONTAINERS, *SCALARS, *CONTAINERS, *BIG])


def paths(value: object, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to everything inside a value."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    return [
        path for key, inner in inside for path in ((*prefix, key), *paths(inner, (*prefix, key)))
    ]


@st.composite
def spoiled(draw: st.DrawFn, payload: Mapping[str, Any], *, most: int = 3) -> dict[str, Any]:
    """A payload in which some things are missing, or something else."""
    made: dict[str, Any] = copy.deepcopy(dict(payload))
    for _ in range(draw(st.integers(1, most))):
        ways = paths(made)
        if not ways:
            break
        *way, last = ways[draw(st.integers(0, 1_000)) % len(ways)]
        inside: Any = made
        for key in way:
            inside = inside[key]
        what = draw(st.sampled_from(["remove", "replace", "replace", "wrap", "rename"]))
        _spoil(inside, last, what, draw(junk))
    return made


def _spoil(inside: Any, last: Any, what: str, other: object) -> None:
    """Change one thing in a table or a list."""
    match what:
        case "remove":
            del inside[last]
        case "wrap":
            inside[last] = [inside[last]]
        case "rename" if isinstance(inside, dict):
            inside[f"{last}_"] = inside.pop(last)
        case _:
            inside[last] = copy.deepcopy(other)


@st.composite
def spoiled_at(draw: st.DrawFn, payload: Mapping[str, Any], *ways: Sequence[Any]) -> dict[str, Any]:
    """A payload in which one of a few things is missing, or something else."""
    made: dict[str, Any] = copy.deepcopy(dict(payload))
    *way, last = draw(st.sampled_from(ways))
    inside: Any = made
    for key in way:
        inside = inside[key]
    before = inside[last]
    if draw(st.integers(0, 5)) == 0:
        del inside[last]
    else:
        inside[last] = draw(junk.filter(lambda other: other != before))
    return made
