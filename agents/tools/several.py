"""Descriptions of several calls of one tool: a common title, and their sizes."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Protocol, runtime_checkable

from agents.core.codec import Json
from agents.core.errors import AgentConfigError
from agents.core.tools import ToolSpec

COUNT, SUM = "n", "sum"
"""In a template: the field for the number of calls, and the format of a sum."""

BatchTitle = str | Callable[[list[dict[str, object]]], str]
"""Title of several calls: a template, or a function of all their arguments."""
BatchKey = str | Callable[..., float | int | Decimal]
"""Size of a call: the name of an argument, or a function of the tool's arguments."""


@dataclass(frozen=True, slots=True)
class SeveralText:
    """Description of several calls for people.

    Attributes:
        title: Title of all calls; empty if the author gives none that fits.
        sizes: Size of each call, in order; empty if the author gives none.
    """

    title: str = ""
    sizes: tuple[Decimal, ...] = ()


@runtime_checkable
class DescribesSeveral(Protocol):
    """A tool that can describe several of its calls together."""

    def describe_several(self, calls: Sequence[Mapping[str, Json]]) -> SeveralText:
        """Describe calls with validated arguments together. Runs nothing.

        Faults in the author's code leave out the description and raise no error.
        """
        ...

    @property
    def definition(self) -> ToolSpec:
        """See `Tool`."""
        ...


def describer_in(tool: object) -> DescribesSeveral | None:
    """Return the tool that can describe several calls, inside its gates and wrappers."""
    while tool is not None:
        if isinstance(tool, DescribesSeveral):
            return tool
        tool = getattr(tool, "tool", None)
    return None


@dataclass(frozen=True, slots=True)
class BatchWording:
    """The author's description of several calls of a tool."""

    title: BatchTitle = ""
    key: BatchKey = ""

    def check(self, tool_name: str, names: Sequence[str]) -> None:
        """Refuse a template or key that names an unknown argument."""
        known = ", ".join(names) or "it has none"
        if isinstance(self.key, str) and self.key and self.key not in names:
            raise AgentConfigError(
                f"batch_key of tool {tool_name!r} is {self.key!r}; give one of its arguments: "
                f"{known}"
            )
        if not isinstance(self.title, str):
            return
        try:
            pieces = list(string.Formatter().parse(self.title))
        except ValueError as error:
            raise AgentConfigError(
                f"batch_title of tool {tool_name!r} is malformed: {error}"
            ) from error
        for _, field, form, conversion in pieces:
            is_count = field == COUNT and not form
            is_named = field in names and form in {"", SUM}
            if field is not None and (conversion or not (is_count or is_named)):
                raise AgentConfigError(
                    f"batch_title of tool {tool_name!r} names {field!r}; it may name {{n}}, and "
                    f"its arguments, or their sum as in {{amount:sum}}: {known}"
                )

    def describe(
        self,
        calls: Sequence[Mapping[str, Json]],
        values: Callable[[Mapping[str, Json]], dict[str, object]],
    ) -> SeveralText:
        """Describe several calls together; see `DescribesSeveral`.

        `values` converts validated arguments to the arguments of the tool's function.
        """
        return SeveralText(self._title(calls, values), self._sizes(calls, values))

    def _title(
        self,
        calls: Sequence[Mapping[str, Json]],
        values: Callable[[Mapping[str, Json]], dict[str, object]],
    ) -> str:
        try:
            if isinstance(self.title, str):
                return _filled(self.title, calls)
            return " ".join(self.title([values(call) for call in calls]).split())
        except Exception:  # noqa: BLE001 - code of a tool's author may raise anything
            return ""

    def _sizes(
        self,
        calls: Sequence[Mapping[str, Json]],
        values: Callable[[Mapping[str, Json]], dict[str, object]],
    ) -> tuple[Decimal, ...]:
        try:
            if isinstance(self.key, str):
                return tuple(_number(call[self.key]) for call in calls) if self.key else ()
            return tuple(_number(self.key(**values(call))) for call in calls)
        except Exception:  # noqa: BLE001 - code of a tool's author
            return ()


NO_WORDING = BatchWording()


def _filled(template: str, calls: Sequence[Mapping[str, Json]]) -> str:
    """Fill in a template."""
    parts: list[str] = []
    for words, field, form, _ in string.Formatter().parse(template):
        parts.append(words)
        if field == COUNT:
            parts.append(str(len(calls)))
        elif field is not None and form == SUM:
            parts.append(f"{sum((_number(call[field]) for call in calls), Decimal()):,f}")
        elif field is not None:
            parts.append(_common([call[field] for call in calls]))
    return " ".join("".join(parts).split())


def _common(values: Sequence[Json]) -> str:
    first = values[0]
    is_simple = isinstance(first, str | int | float) and not isinstance(first, bool)
    if not is_simple or any(value != first for value in values):
        raise ValueError("it is not the same in all calls")
    return str(first)


def _number(value: object) -> Decimal:
    """Return a number, including one that is written as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise ValueError("it is no number")  # noqa: TRY004 - the value comes from a model
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation as error:
        raise ValueError("it is no number") from error
    if not isfinite(number):
        raise ValueError("it is not finite")
    return number
