"""Interrupts as records: what waits, where, what it shows, and what it needs to go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from agents.address import Address
from agents.codec import Json, decode, encode
from agents.errors import CheckpointDecodeError


@runtime_checkable
class Answerable(Protocol):
    """An info that knows which answers it takes. Other infos take anything but None."""

    def check_answer(self, answer: object) -> None:
        """Refuse an answer of the wrong kind, before anything runs.

        Raises:
            ResumeDataError: The answer does not fit.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptContext:
    """A pending interrupt, for the people who answer it.

    Attributes:
        id: Key of the answer; a UUID, new for each occurrence.
        address: Where it waits; for display: two interrupts may show the same.
        info: What people see.
        is_root_cause: True for the component that asked; False for those around it.
        parent: The interrupt of the component around it.
    """

    id: str
    address: Address
    info: object
    is_root_cause: bool
    parent: InterruptContext | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """An interrupt with all that is stored. Stored: version 1, must stay readable.

    Attributes:
        id: See `InterruptContext`.
        address: Where it waits.
        slot: Which of several components at one address; empty for the innermost.
        info: What people see.
        state: What the component needs to go on, encoded; None when it kept none.
        children: The interrupts that it stands for; empty for a root cause.
        is_hidden: Whether people never see it, not even as a parent: it only keeps a state.
    """

    id: str
    address: Address
    slot: str = ""
    info: object = None
    state: Json = None
    children: tuple[Point, ...] = ()
    is_hidden: bool = False

    def walk(self) -> Iterator[Point]:
        """This point and all below, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def topmost(self, address: Address) -> Point | None:
        """The highest point at or below an address, in this tree."""
        if address.is_prefix_of(self.address):
            return self
        found = (child.topmost(address) for child in self.children)
        return next((point for point in found if point is not None), None)

    def contexts(self, parent: InterruptContext | None = None) -> Iterator[InterruptContext]:
        """What waits in this tree: its root causes, in order, with their parents."""
        if self.is_hidden:
            for child in self.children:
                yield from child.contexts(parent)
            return
        context = InterruptContext(
            id=self.id,
            address=self.address,
            info=self.info,
            is_root_cause=not self.children,
            parent=parent,
        )
        if not self.children:
            yield context
        for child in self.children:
            yield from child.contexts(context)

    def to_json(self) -> Json:
        """Write it, with all below, as JSON data."""
        return {
            "id": self.id,
            "at": str(self.address),
            "slot": self.slot,
            "info": encode(self.info),
            "state": self.state,
            "children": [child.to_json() for child in self.children],
            **({"hidden": True} if self.is_hidden else {}),
        }

    @classmethod
    def from_json(cls, data: Json) -> Point:
        """Read what `to_json` wrote.

        Raises:
            CheckpointDecodeError: It is damaged.
        """
        try:
            fields = cast("dict[str, Json]", data)
            return cls(
                id=cast("str", fields["id"]),
                address=Address.parse(cast("str", fields["at"])),
                slot=cast("str", fields["slot"]),
                info=decode(fields["info"]),
                state=fields["state"],
                children=tuple(map(cls.from_json, cast("list[Json]", fields["children"]))),
                is_hidden=fields.get("hidden") is True,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointDecodeError(f"an interrupt is damaged: {error!r}") from error
