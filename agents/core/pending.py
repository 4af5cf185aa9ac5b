"""Interrupts: the signal, and as records what waits, where, and what it needs to go on."""

from __future__ import annotations

import operator
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

from agents.core.address import Address, Segment
from agents.core.codec import Json, decode, encode
from agents.core.errors import CheckpointDecodeError, ResumeDataError, ResumeError

__all__ = ["Answerable", "InterruptContext"]

Path: TypeAlias = tuple[Segment, ...]
"""The segments of an address: what an index looks up."""


@runtime_checkable
class Answerable(Protocol):
    """An info that knows which answers it takes. Other infos take anything but None."""

    def check_answer(self, answer: object) -> None:
        """Refuse an answer of the wrong kind, before anything runs.

        Raises:
            ResumeDataError: The answer does not fit.
        """
        ...


def is_answerable(info: object) -> TypeGuard[Answerable]:
    """Whether an info is `Answerable`, in a tenth of the time that `isinstance` takes for it."""
    return getattr(info, "check_answer", None) is not None


class Unanswerable:
    """An info of what only stands around questions: it takes no answer of its own."""

    __slots__ = ()

    def check_answer(self, answer: object) -> None:
        """Refuse any answer.

        Raises:
            ResumeDataError: Always.
        """
        raise ResumeDataError(
            f"“{self}” asks nothing itself, and got a {type(answer).__name__}; answer what waits "
            "in it, by its own id"
        )


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
class InterruptNode:
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
    children: tuple[InterruptNode, ...] = ()
    is_hidden: bool = False
    _json: Json = field(default=None, init=False, compare=False, repr=False)
    _info: Json = field(default=None, init=False, compare=False, repr=False)

    def walk(self) -> Iterator[InterruptNode]:
        """This point and all below, parents first."""
        left = [self]
        while left:
            point = left.pop()
            yield point
            left += reversed(point.children)

    def contexts(self, parent: InterruptContext | None = None) -> Iterator[InterruptContext]:
        """Yield the root causes that wait in this tree, in order, with their parents."""
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
        """Write it, with all below, as JSON data; what was read is written as it was."""
        return self._json if self._json is not None else self._written(self.children)

    def with_info(self, written: Json) -> InterruptNode:
        """The same; its info was written already, and is stored as it was then.

        Args:
            written: What `encode` gave of the info, for a point that nobody else has yet.
        """
        object.__setattr__(self, "_info", written)
        return self

    def stored(self) -> InterruptNode:
        """Return it as `from_json` would read it, at the cost of what is new alone."""
        if self._json is not None:
            return self
        children = tuple([child.stored() for child in self.children])
        return self._read_back(children, self._written(children))

    def renewed(self, ids: Container[str]) -> InterruptNode:
        """The same, with the infos of some points, and of all around them, read anew.

        Whoever got the infos of this tree may have changed them: what asked must not see that.
        """
        if self._json is None or not (self.children or self.id in ids):
            return self
        children = tuple([child.renewed(ids) for child in self.children])
        is_same = all(map(operator.is_, children, self.children))
        if is_same and self.id not in ids:
            return self
        return self._read_back(children, cast("dict[str, Json]", self._json))

    def anew(self) -> InterruptNode:
        """The same, all read anew; see `renewed`."""
        return InterruptNode.from_json(self.to_json())

    @classmethod
    def from_json(cls, data: Json) -> InterruptNode:
        """Read what `to_json` wrote.

        Raises:
            CheckpointDecodeError: It is damaged.
        """
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
        # A batch of many calls is answered bit by bit: what is untouched costs no new encoding.
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
        """The same, with other children, and an info taken from what is written of the point."""
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
    """Finds points by their address, without a walk through the tree for each call of a batch.

    Args:
        root: Everything that waits; None when nothing does.
        answered: Ids of answered interrupts.

    Attributes:
        live: Ids of points that are answered, or that have an answered one below.
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
        """The highest point at or below an address; the first, when several stand side by side."""
        return self._topmost.get(address.segments)

    def at(self, address: Address, slot: str) -> list[InterruptNode]:
        """The points of one component, in order."""
        return self._at.get((address.segments, slot), [])

    def all_at(self, address: Address) -> Iterator[InterruptNode]:
        """All points at an address, whichever component they belong to."""
        return (point for point in self._points if point.address == address)

    def put(self, address: Address, point: InterruptNode | None, answered: Container[str]) -> None:
        """Replace everything at and below an address."""
        rest = [other for other in self._points if not address.is_prefix_of(other.address)]
        self._topmost, self._at, self._points = {}, {}, []
        for other in rest:
            self._note(other)
        if point is not None:
            self._add(point)
            self._learn(point, answered)

    def recall(self, point: InterruptNode) -> None:
        """Add an answered point that may be known already."""
        if point.id not in {found.id for found in self.at(point.address, point.slot)}:
            self._note(point)
        self.live.add(point.id)

    def _add(self, root: InterruptNode) -> None:
        for point in root.walk():
            self._note(point)

    def _note(self, point: InterruptNode) -> None:
        path = point.address.segments
        self._points.append(point)
        self._at.setdefault((path, point.slot), []).append(point)
        # Whoever noted a path has noted all above it.
        while path not in self._topmost:
            self._topmost[path] = point
            path = path[:-1]

    def _learn(self, point: InterruptNode, answered: Container[str]) -> bool:
        below = [self._learn(child, answered) for child in point.children]
        if point.id in answered or any(below):
            self.live.add(point.id)
            return True
        return False


class InterruptSignal(BaseException):
    """The signal that people are needed. It passes through every `except Exception`.

    Raised by `interrupt` and its kind; it never leaves the runner.

    Attributes:
        point: What waits, with all below it.
        refusals: Answers that were refused: their interrupts wait on.
    """

    def __init__(self, point: InterruptNode, refusals: tuple[ResumeError, ...] = ()) -> None:
        super().__init__()
        self.point = point
        self.refusals = refusals

    def __str__(self) -> str:
        return f"interrupted at {self.point.address}"
