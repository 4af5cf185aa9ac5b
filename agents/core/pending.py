"""Pending interrupts: the signal, the stored tree, and its index by address."""

from __future__ import annotations

import operator
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

from agents.core.address import Address, Segment
from agents.core.codec import Json, decode, encode
from agents.core.errors import CheckpointDecodeError, ResumeDataError, ResumeError

__all__ = ["Answerable", "InterruptContext"]

Untargeted = Literal["preserve", "reenter"]
"""The treatment of interrupts without an answer; see `ResumeParams`."""

Path: TypeAlias = tuple[Segment, ...]
"""Segments of an address, as key of the index."""


@runtime_checkable
class Answerable(Protocol):
    """An info that checks its answers. Any other info accepts everything but None."""

    def check_answer(self, answer: object) -> None:
        """Refuse an unsuitable answer, before anything runs.

        Raises:
            ResumeDataError: The answer does not fit.
        """
        ...


def is_answerable(info: object) -> TypeGuard[Answerable]:
    """Whether an info is `Answerable`; ten times faster than `isinstance`."""
    return getattr(info, "check_answer", None) is not None


class Unanswerable:
    """Info of an interrupt that only has children and accepts no answer."""

    __slots__ = ()

    def check_answer(self, answer: object) -> None:
        """Refuse any answer."""
        raise ResumeDataError(
            f"“{self}” asks nothing itself, and got a {type(answer).__name__}; answer what waits "
            "in it, by its own id"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptContext:
    """A pending interrupt, for the people who answer it.

    Attributes:
        id: Key of the answer: a UUID, new for each interrupt.
        address: Address of the component, for display. Two interrupts may have the same.
        info: What people see.
        is_root_cause: Whether this component asked. False for its parents.
        parent: The interrupt of the parent component, if any.
    """

    id: str
    address: Address
    info: object
    is_root_cause: bool
    parent: InterruptContext | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptNode:
    """An interrupt with all its stored data. Stored: version 1, must stay readable.

    Attributes:
        slot: Separates components at the same address; empty for the innermost.
        info: What people see.
        state: What the component needs to resume, encoded; None if it stored no state.
        children: Interrupts of child components; empty for a root cause.
        is_hidden: Whether people never see it, not even as a parent: it only stores a state.
    """

    id: str
    address: Address
    slot: str = ""
    info: object = None
    state: Json = None
    children: tuple[InterruptNode, ...] = ()
    is_hidden: bool = False
    _json: Json = field(default=None, init=False, compare=False, repr=False)
    _info: Json = field(default=None, init=False, compare=False, repr=False)

    @property
    def own(self) -> InterruptNode:
        """Return the question of the component itself, if it asked beside its children."""
        place = self.address, self.slot
        beside = (child for child in self.children if (child.address, child.slot) == place)
        return next(beside, self)

    def walk(self) -> Iterator[InterruptNode]:
        """Yield this interrupt and all below, parents first."""
        left = [self]
        while left:
            point = left.pop()
            yield point
            left += reversed(point.children)

    def contexts(self, parent: InterruptContext | None = None) -> Iterator[InterruptContext]:
        """Yield the root causes in this tree, in order, with their parents."""
        if self.is_hidden:
            # The children appear under the nearest visible parent.
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
        """Return the tree as JSON data. Unchanged parts are returned as they were read."""
        return self._json if self._json is not None else self._written(self.children)

    def with_info(self, written: Json) -> InterruptNode:
        """Set the encoded form of the info, so that it is not encoded again; return self."""
        # Safe although the class is frozen: no other code has this interrupt yet.
        object.__setattr__(self, "_info", written)
        return self

    def stored(self) -> InterruptNode:
        """Return the tree as `from_json` would read it; only new parts are encoded."""
        if self._json is not None:
            return self
        children = tuple([child.stored() for child in self.children])
        return self._read_back(children, self._written(children))

    def renewed(self, ids: Container[str]) -> InterruptNode:
        """Return a copy with fresh infos for some interrupts and all their parents.

        Callers may have changed the info objects of this tree. The component that asked must not
        see such changes.
        """
        # Never stored, or a leaf that needs no fresh info.
        if self._json is None or not (self.children or self.id in ids):
            return self
        children = tuple([child.renewed(ids) for child in self.children])
        is_same = all(map(operator.is_, children, self.children))
        if is_same and self.id not in ids:
            return self
        return self._read_back(children, cast("dict[str, Json]", self._json))

    def anew(self) -> InterruptNode:
        """Return a copy with fresh infos everywhere; see `renewed`."""
        return InterruptNode.from_json(self.to_json())

    @classmethod
    def from_json(cls, data: Json) -> InterruptNode:
        """Read what `to_json` wrote."""
        try:
            fields = cast("dict[str, Json]", data)
            point = cls(
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
        # A large batch is answered in small parts: unchanged interrupts are not encoded again.
        object.__setattr__(point, "_json", data)
        return point

    def _written(self, children: Iterable[InterruptNode]) -> dict[str, Json]:
        return {
            "id": self.id,
            "at": str(self.address),
            "slot": self.slot,
            "info": encode(self.info) if self._info is None else self._info,
            "state": self.state,
            "children": [child.to_json() for child in children],
            **({"hidden": True} if self.is_hidden else {}),
        }

    def _read_back(
        self, children: tuple[InterruptNode, ...], data: dict[str, Json]
    ) -> InterruptNode:
        """Return a copy with other children and an info decoded from the written data."""
        point = InterruptNode(
            id=self.id,
            address=self.address,
            slot=self.slot,
            info=decode(data["info"]),
            state=self.state,
            children=children,
            is_hidden=self.is_hidden,
        )
        object.__setattr__(point, "_json", data)
        return point


class PointIndex:
    """Index of interrupts by address, so that a large batch needs no walk per call.

    Attributes:
        live: Ids of interrupts that are answered or have an answered one below.
    """

    def __init__(self, root: InterruptNode | None, answered: Container[str]) -> None:
        self.live: set[str] = set()
        self._topmost: dict[Path, InterruptNode] = {}
        self._at: dict[tuple[Path, str], list[InterruptNode]] = {}
        self._points: list[InterruptNode] = []
        if root is not None:
            self._add(root)
            self._learn(root, answered)

    def topmost(self, address: Address) -> InterruptNode | None:
        """Return the highest interrupt at or below an address; the first among siblings."""
        return self._topmost.get(address.segments)

    def at(self, address: Address, slot: str) -> list[InterruptNode]:
        """Return the interrupts of one component, in order."""
        return self._at.get((address.segments, slot), [])

    def all_at(self, address: Address) -> Iterator[InterruptNode]:
        """Yield the interrupts of all components at an address."""
        return (point for point in self._points if point.address == address)

    def put(self, address: Address, point: InterruptNode | None, answered: Container[str]) -> None:
        """Replace all interrupts at and below an address."""
        rest = [other for other in self._points if not address.is_prefix_of(other.address)]
        self._topmost, self._at, self._points = {}, {}, []
        for other in rest:
            self._note(other)
        if point is not None:
            self._add(point)
            self._learn(point, answered)

    def recall(self, point: InterruptNode) -> None:
        """Add an answered interrupt that may already be in the index."""
        if point.id not in {known.id for known in self.at(point.address, point.slot)}:
            self._note(point)
        self.live.add(point.id)

    def _add(self, root: InterruptNode) -> None:
        for point in root.walk():
            self._note(point)

    def _note(self, point: InterruptNode) -> None:
        path = point.address.segments
        self._points.append(point)
        self._at.setdefault((path, point.slot), []).append(point)
        # If a path is in the index, so are all its parents.
        while path not in self._topmost:
            self._topmost[path] = point
            path = path[:-1]

    def _learn(self, point: InterruptNode, answered: Container[str]) -> bool:
        below = [self._learn(child, answered) for child in point.children]
        if point.id in answered or any(below):
            # A component that asked beside its children goes on when one of them is answered.
            self.live |= {point.id, point.own.id}
            return True
        return False


class InterruptSignal(BaseException):
    """Signal of an interrupt. It passes through every `except Exception`.

    Raised by `interrupt` and its variants. It never leaves the runner.

    Attributes:
        point: The interrupt, with all below it.
        refusals: Refused answers: their interrupts stay pending.
    """

    def __init__(self, point: InterruptNode, refusals: tuple[ResumeError, ...] = ()) -> None:
        super().__init__()
        self.point = point
        self.refusals = refusals

    def __str__(self) -> str:
        return f"interrupted at {self.point.address}"
