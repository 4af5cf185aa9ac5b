"""Keep answers to an agent's hooks until the agent has passed the hooks.

When a hook of a middleware asks people, earlier hooks at the same point run again after the answer.
Without their stored answers, they would ask again, and the hooks would take turns for ever.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import cast

from agents.core.address import Address
from agents.core.asking.infos import CallInfo
from agents.core.codec import Json
from agents.core.errors import CheckpointDecodeError
from agents.core.pending import InterruptNode
from agents.core.scope import Scope, current_scope, watching_claims

_OTHERS = {"agent", "tool", "runnable"}
"""Segment types of nested components that ask instead of the hook."""


@dataclass(slots=True)
class HookAnswers:
    """Answers to the hooks of one agent at its current point.

    Attributes:
        by_slot: By slot and interrupt id: the interrupt of a hook, with its answer by id. Without
            an answer if only an interrupt below it was answered.
    """

    by_slot: dict[str, dict[str, tuple[InterruptNode, dict[str, object]]]] = field(
        default_factory=dict
    )

    def to_json(self) -> dict[str, list[object]]:
        """Return data to store, including the answers, which may be of registered types."""
        return {
            slot: [[point.to_json(), answers] for point, answers in by_id.values()]
            for slot, by_id in self.by_slot.items()
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Sequence[object]]) -> HookAnswers:
        """Read what `to_json` returned."""
        read = cls()
        try:
            for slot, entries in data.items():
                for entry in entries:
                    stored, answers = cast("tuple[Json, dict[str, object]]", entry)
                    point = InterruptNode.from_json(stored)
                    read.by_slot.setdefault(slot, {})[point.id] = point, dict(answers)
        except (TypeError, ValueError) as error:
            raise CheckpointDecodeError(f"an answer to a hook is damaged: {error!r}") from error
        return read

    def passed(self, *hooks: str) -> None:
        """Forget the answers of hooks that the agent has passed."""
        scope = current_scope("a hook")
        for slot in [slot for slot in self.by_slot if _hook_of(slot) in hooks]:
            # Claimed, so that a later hook does not find them.
            scope.run.claimed.update(self.by_slot.pop(slot))
        # After a crash the journal may already contain the hooks' results. Then they do not run
        # here, and neither their answers nor their starts may apply to a later point.
        for point in scope.run.unclaimed(scope.address):
            if _hook_of(point.slot) in hooks:
                scope.run.claimed.add(point.id)
        for hook in hooks:
            scope.run.journal.forget_starts(f"{scope.address}/{hook}:")

    @contextmanager
    def found_again(self, slot: str) -> Iterator[None]:
        """Run a hook with its earlier answers, and keep the answers that it finds now."""
        scope, kept = current_scope("a hook"), self.by_slot.get(slot, {})
        for point, answers in kept.values():
            scope.run.recall(point, answers)
        with watching_claims(lambda point: self._keep(scope, slot, point)):
            yield

    def keep_early(self, slots: Container[str]) -> None:
        """Keep the answers of later hooks when an earlier hook interrupts first."""
        scope = current_scope("a hook")
        for point in scope.run.unclaimed(scope.address):
            if point.slot in slots and point.id in scope.run.answers:
                self._keep(scope, point.slot, point)
                scope.run.read.add(point.id)

    def _keep(self, scope: Scope, slot: str, point: InterruptNode) -> None:
        run, below = scope.run, point.address.segments[len(scope.address) :]
        # Gates store their answers in their own state.
        if not run.is_live(point) or isinstance(point.info, CallInfo):
            return
        if any(segment.type in _OTHERS for segment in below):
            return
        kept = self.by_slot.setdefault(slot, {})
        for old in [earlier for earlier, _ in kept.values() if _place(earlier) == _place(point)]:
            run.claimed.add(old.id)  # it has asked again since: only the newest counts
            del kept[old.id]
        run.claimed.add(point.id)
        own = {point.id: run.answers[point.id]} if point.id in run.answers else {}
        kept[point.id] = point, own


def _hook_of(slot: str) -> str:
    return slot.split(":", 1)[0]


def _place(point: InterruptNode) -> tuple[Address, str]:
    return point.address, point.slot


_answers: ContextVar[HookAnswers] = ContextVar("agents_hook_answers")


def use_answers(answers: HookAnswers) -> None:
    """Set the hook answers of the current task."""
    _answers.set(answers)


def hook_answers() -> HookAnswers:
    """Return the hook answers of the current agent."""
    return _answers.get()
