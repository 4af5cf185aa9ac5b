"""Parses a policy file to nodes that know their positions.

Plain scalars are converted only if they are unambiguous: `20:00`, `0123`, `1e3` and dates stay
texts. Anchors, aliases, tags and repeated keys are faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import yaml

from bot.policy.parser.problems import Code, PolicyError, PolicyProblem

MAX_BYTES = 256 * 1024
"""Maximum size of a policy file, in bytes."""
MAX_DEPTH = 20
"""Maximum number of nested levels of a policy file."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,29})")
_BROKEN = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,29})(?:\.[0-9]{1,30})?(?:[eE][-+][0-9]{1,3})?")
"""A number with a point, or with an exponent as programs write it: `1.0e-05`, `1e+16`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNode:
    """A value of the file and its position.

    Attributes:
        key: Its path, such as `rules[0].when`; empty for the whole file.
        line: Line of its key or item, from 1.
        column: From 0.
        scalar: A text, number, boolean or None; None also for lists and maps.
        items: Items of a list; None for other values.
        entries: Values of a map, by key; None for other values.
    """

    key: str
    line: int
    column: int
    scalar: str | int | float | bool | None = None
    items: tuple[SourceNode, ...] | None = None
    entries: Mapping[str, SourceNode] | None = None

    def plain(self) -> object:
        """Return the value as plain data."""
        if self.items is not None:
            return [item.plain() for item in self.items]
        if self.entries is not None:
            return {name: entry.plain() for name, entry in self.entries.items()}
        return self.scalar

    def get(self, *names: str) -> SourceNode | None:
        """Return the value under nested keys; None unless all keys exist."""
        node: SourceNode | None = self
        for name in names:
            node = (node.entries or {}).get(name) if node is not None else None
        return node

    def each(self, *names: str) -> tuple[SourceNode, ...]:
        """Return the items of the list under nested keys; empty if there is no list."""
        node = self.get(*names)
        return node.items or () if node is not None else ()

    def texts(self, *names: str) -> Iterator[tuple[SourceNode, str]]:
        """Yield the texts of the list, or the single text, under nested keys."""
        node = self.get(*names)
        if node is not None:
            for item in (node,) if node.items is None else node.items:
                if isinstance(item.scalar, str):
                    yield item, item.scalar

    def at(self, place: Sequence[str | int]) -> tuple[SourceNode, Sequence[str | int]]:
        """Return the innermost existing node of a path, and the rest of the path."""
        node = self
        for done, step in enumerate(place):
            below = (
                (node.entries or {}).get(step)
                if isinstance(step, str)
                else dict(enumerate(node.items or ())).get(step)
            )
            if below is None:
                return node, place[done:]
            node = below
        return node, ()

    def problem(self, code: Code, fault: str, remedy: str) -> PolicyProblem:
        """Return a fault of this value."""
        return PolicyProblem(
            code=code,
            key=self.key,
            line=self.line,
            column=self.column,
            fault=fault,
            remedy=remedy,
        )

    def below(self, name: str) -> str:
        """Return the path of a key of this map."""
        return f"{self.key}.{name}" if self.key else name


def read_source(data: bytes) -> tuple[SourceNode, list[PolicyProblem]]:
    """Parse the bytes of a file.

    Returns:
        The whole file, and faults that do not hide others: repeated keys.

    Raises:
        PolicyError: The file is too large, is not YAML, or has anchors.
    """
    if len(data) > MAX_BYTES:
        raise _failed("too_big", 1, f"longer than {MAX_BYTES // 1024} KiB", "make it shorter")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _failed("not_yaml", line, "not UTF-8", "save it as UTF-8") from error
    events = _events(text)
    anchors = [_anchor(event) for event in events if getattr(event, "anchor", None)]
    if anchors:
        raise PolicyError(anchors)
    return _SourceReader(events).read()


def _whole(code: Code, line: int, fault: str, remedy: str) -> PolicyProblem:
    return PolicyProblem(code=code, key="", line=line, fault=fault, remedy=remedy)


def _failed(code: Code, line: int, fault: str, remedy: str) -> PolicyError:
    return PolicyError([_whole(code, line, fault, remedy)])


def _anchor(event: Any) -> PolicyProblem:
    sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
    return _whole(
        "anchor",
        event.start_mark.line + 1,
        f"{sign}{event.anchor} is a YAML anchor",
        "write the value out at each place where it is meant",
    )


def _events(text: str) -> list[Any]:
    remedy = "write it as YAML"
    try:
        return list(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise _failed("not_yaml", line, f"not YAML: {error.problem}", remedy) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _failed("not_yaml", line, f"not YAML: {error.reason}", remedy) from error


@dataclass(slots=True)
class _SourceReader:
    """Builds nodes from the parser's events. `MAX_DEPTH` limits the recursion."""

    events: list[Any]
    position: int = 0
    problems: list[PolicyProblem] = field(default_factory=list)

    def read(self) -> tuple[SourceNode, list[PolicyProblem]]:
        documents: list[Any] = [
            event for event in self.events if isinstance(event, yaml.DocumentStartEvent)
        ]
        if len(documents) != 1:
            line = documents[1].start_mark.line + 1 if documents else 1
            fault = "a second document begins" if documents else "empty"
            raise _failed("not_yaml", line, fault, "write one map")
        self.position = self.events.index(documents[0]) + 1
        root = self._node("", self._next(), 1, 0, 0)
        return root, self.problems

    def _next(self) -> Any:
        self.position += 1
        return self.events[self.position - 1]

    def _node(self, key: str, event: Any, line: int, column: int, depth: int) -> SourceNode:
        if depth > MAX_DEPTH:
            raise _failed("bad_value", line, "nested too deeply", "write it flatter")
        is_map = isinstance(event, yaml.MappingStartEvent)
        is_list = isinstance(event, yaml.SequenceStartEvent)
        node = SourceNode(
            key=key,
            line=line,
            column=column,
            scalar=None if is_map or is_list else self._scalar(event),
            items=self._items(key, depth) if is_list else None,
            entries=self._entries(key, depth) if is_map else None,
        )
        if event.tag is not None:
            fault = f"has the tag {event.tag}"
            self.problems.append(node.problem("wrong_type", fault, "remove the tag"))
        return node

    def _items(self, key: str, depth: int) -> tuple[SourceNode, ...]:
        items: list[SourceNode] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            mark = event.start_mark
            path = f"{key}[{len(items)}]"
            items.append(self._node(path, event, mark.line + 1, mark.column, depth + 1))
        return tuple(items)

    def _entries(self, key: str, depth: int) -> dict[str, SourceNode]:
        entries: dict[str, SourceNode] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            line, column = event.start_mark.line + 1, event.start_mark.column
            if not isinstance(event, yaml.ScalarEvent):
                raise _failed("wrong_type", line, "a key is no text", "write a text")
            path = f"{key}.{event.value}" if key else event.value
            node = self._node(path, self._next(), line, column, depth + 1)
            if event.value in entries:
                first = entries[event.value].line
                fault = f"duplicate key, first on line {first}"
                self.problems.append(node.problem("duplicate_key", fault, "remove one of them"))
            else:
                entries[event.value] = node
        return entries

    def _scalar(self, event: Any) -> str | int | float | bool | None:
        text: str = event.value
        if not event.implicit[0]:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _WHOLE.fullmatch(text):
            return int(text)
        # A number with more digits than a float can hold stays a text.
        if _BROKEN.fullmatch(text) and Decimal(repr(float(text))) == Decimal(text):
            return float(text)
        return text
