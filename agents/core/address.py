"""Addresses: the path from the root agent to a component of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = ["Address", "Segment"]

_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in "\\:;"})


@dataclass(frozen=True, slots=True)
class Segment:
    """One step of an address. Stored: version 1, must stay readable.

    Attributes:
        type: Kind of component, such as "agent", "tool" or "node"; never empty.
        id: Name among components of that kind.
        sub_id: Separates components of the same name, such as a tool's call id; may be empty.
    """

    type: str
    id: str
    sub_id: str = ""

    def __post_init__(self) -> None:
        if not self.type:
            raise ValueError("the type of an address segment is empty; use for example 'tool'")

    def __str__(self) -> str:
        parts = [self.type, self.id, self.sub_id] if self.sub_id else [self.type, self.id]
        return ":".join([part.translate(_ESCAPES) for part in parts])


@dataclass(frozen=True, slots=True)
class Address:
    """Path of segments from the root agent to a component: `agent:A;tool:pay:c1`.

    Colons, semicolons and backslashes in a name are escaped with a backslash. Different addresses
    therefore have different texts.

    Attributes:
        segments: From the root down. The empty address is the parent of the root agent.
    """

    segments: tuple[Segment, ...] = ()
    _text: str = field(default="", init=False, repr=False, compare=False)

    def __str__(self) -> str:
        # Cached: each step of a run needs the text several times.
        if self.segments and not self._text:
            object.__setattr__(self, "_text", ";".join([str(segment) for segment in self.segments]))
        return self._text

    def __len__(self) -> int:
        return len(self.segments)

    @property
    def parent(self) -> Address | None:
        """Return the address one step up, or None for the empty address."""
        return Address(self.segments[:-1]) if self.segments else None

    @property
    def agents(self) -> tuple[str, ...]:
        """Return the names of the agents on the way, outermost first."""
        return tuple(segment.id for segment in self.segments if segment.type == "agent")

    def child(self, segment: Segment) -> Address:
        """Return the address one step down."""
        return Address((*self.segments, segment))

    def is_prefix_of(self, other: Address) -> bool:
        """Whether the other address is this one or below it."""
        return other.segments[: len(self.segments)] == self.segments

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse the text form.

        Raises:
            ValueError: The text is not one that `str(address)` returns.
        """
        return _parsed(text)


@lru_cache(maxsize=4_096)
def _parsed(text: str) -> Address:
    """Parse an address; cached, because each answer in a batch parses all addresses."""
    address = Address(tuple(_segment(part) for part in _split(text, ";")) if text else ())
    if str(address) != text:
        raise ValueError(f"not an address: {text!r}; expected for example 'agent:A;tool:pay:c1'")
    return address


def _segment(text: str) -> Segment:
    parts = [_unescape(part) for part in _split(text, ":")]
    if not 2 <= len(parts) <= 3:
        raise ValueError(f"not an address segment: {text!r}; expected 'type:id[:sub]'")
    return Segment(*parts)


def _split(text: str, mark: str) -> list[str]:
    """Split at every mark that is not escaped with a backslash."""
    if "\\" not in text:
        return text.split(mark)
    parts, escaped = [""], False
    for sign in text:
        if sign == mark and not escaped:
            parts.append("")
        else:
            parts[-1] += sign
        escaped = sign == "\\" and not escaped
    return parts


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL) if "\\" in text else text
