"""The answers of a resume: which interrupt each answer is for, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, get_args

from agents.core.address import Address
from agents.core.asking.infos import CallInfo
from agents.core.cancel import CancelInfo
from agents.core.errors import (
    AgentConfigError,
    AmbiguousTargetError,
    ResumeDataError,
    UnknownInterruptError,
)
from agents.core.pending import InterruptNode, Untargeted, is_answerable

__all__ = ["ResumeParams"]

Targets: TypeAlias = (
    Mapping[str, object] | Mapping[Address, object] | Mapping[str | Address, object]
)
"""Answers by interrupt id or by address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeParams:
    """Answers for the pending interrupts of a run.

    Attributes:
        targets: Answers by interrupt id, or by an address (or its text) that only one pending
            interrupt has. None resumes the component without an answer; a component that needs a
            decision, such as a gate, refuses that.
        untargeted: What happens to interrupts without an answer. "preserve" keeps them pending and
            runs no code of theirs. "reenter" resumes each without an answer, and it must interrupt
            again under a new id.

    Raises:
        AgentConfigError: An attribute has the wrong type or an unknown value.
    """

    targets: Targets = field(default_factory=dict)
    untargeted: Untargeted = "preserve"

    def __post_init__(self) -> None:
        check_targets(self.targets)
        if self.untargeted not in get_args(Untargeted):
            known = ", ".join(map(repr, get_args(Untargeted)))
            raise AgentConfigError(f"there is no untargeted={self.untargeted!r}; use {known}")


def check_targets(targets: object) -> None:
    """Check that targets are answers by id or address."""
    if not isinstance(targets, Mapping):
        raise AgentConfigError(
            "the answers of a resume are a dict by interrupt id, or a list of ids, not a "
            f"{type(targets).__name__}; for none give {{}}"
        )
    for target in targets:
        if not isinstance(target, str | Address):
            raise AgentConfigError(
                f"an answer belongs to an interrupt id or an address, not to {target!r}; "
                "use `context.id`"
            )


def find_answers(waiting: InterruptNode, targets: Targets) -> dict[str, object]:
    """Match answers to interrupts and check that they fit."""
    return take_answers(waiting, targets)[1]


def take_answers(
    waiting: InterruptNode, targets: Targets
) -> tuple[InterruptNode, dict[str, object]]:
    """Match answers as `find_answers` does, and return the tree to resume from.

    Returns:
        The tree, with a fresh info for each answered interrupt, against which the answers were
        checked; and the answers by interrupt id.
    """
    check_targets(targets)
    points = {point.id: point for point in waiting.walk() if not point.is_hidden}
    answers: dict[str, object] = {}
    named: dict[str, str] = {}
    for key, answer in targets.items():
        target = str(key)
        point = points.get(target) or _at(points, target)
        if point.id in answers:
            raise AmbiguousTargetError(target, [point.id])
        named[point.id], answers[point.id] = target, answer
    # Check against the stored infos: callers may have modified the objects that they got.
    waiting = waiting.renewed(answers)
    renewed = {point.id: point for point in waiting.walk()} if answers else {}
    for name, answer in answers.items():
        check_answer(renewed[name], answer, named[name])
    return waiting, answers


def find_stopped(waiting: InterruptNode) -> dict[str, object]:
    """Return the interrupts of a cancellation, as answers: None by interrupt id."""
    return {point.id: None for point in waiting.walk() if isinstance(point.info, CancelInfo)}


def _at(points: Mapping[str, InterruptNode], target: str) -> InterruptNode:
    """Return the only root cause at an address."""
    questions = [point for point in points.values() if not point.children]
    matches = [point for point in questions if str(point.address) == target]
    if not target or not matches:
        raise UnknownInterruptError(target, [point.id for point in questions])
    if len(matches) > 1:
        raise AmbiguousTargetError(target, [point.id for point in matches])
    return matches[0]


def check_answer(point: InterruptNode, answer: object, target: str) -> None:
    """Refuse an answer that does not fit its interrupt."""
    if point.children and isinstance(point.info, CallInfo):
        inside = ", ".join(context.id for context in point.contexts())
        raise ResumeDataError(
            f"the call at {point.address} was agreed to already, and has started; now it waits for "
            f"what is asked in it: answer {inside}",
            target=target,
        )
    if is_answerable(point.info):
        point.info.check_answer(answer)
