"""An answer is checked once where a run is resumed; by the gate, when it comes from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from agents.core.asking.infos import ApprovalInfo, CallInfo
from agents.core.codec import Json, register
from agents.core.errors import ResumeDataError
from agents.core.observers import ToolOutcome
from agents.gates.base import CallGate
from agents.models import call, say
from tests.unit.agents.support import Died, DyingStore, Plain, World, brief, contexts, yes


@register("test.counting-info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class CountingInfo(ApprovalInfo):
    checks: ClassVar[list[object]] = []

    def check_answer(self, answer: object) -> None:
        self.checks.append(answer)
        ApprovalInfo.check_answer(self, answer)


@dataclass(frozen=True, slots=True)
class CountingGate(CallGate):
    @property
    def gate_name(self) -> str:
        return "counting"

    async def _question(self, arguments: dict[str, Json]) -> CallInfo:
        return CountingInfo(**self._shown(arguments, "always"))


def world() -> tuple[World, Plain]:
    CountingInfo.checks.clear()
    pay = Plain("pay")
    return World([call("pay", {"x": 1}, id="c1"), say("done")], [CountingGate(pay)]), pay


async def test_an_answer_is_checked_once() -> None:
    case, pay = world()
    context = contexts(await case.run())["c1"]

    await case.resume({context.id: yes(context)})

    assert (len(CountingInfo.checks), len(pay.calls)) == (1, 1)


async def test_a_wrong_answer_is_refused_and_runs_nothing() -> None:
    case, pay = world()
    context = contexts(await case.run())["c1"]

    with pytest.raises(ResumeDataError):
        await case.resume({context.id: True})

    assert (CountingInfo.checks, pay.calls) == ([True], [])


async def test_what_a_dead_process_was_resumed_with_is_checked_again() -> None:
    case, pay = world()
    context = contexts(await case.run())["c1"]
    store = case.store
    case.store = DyingStore(store, at=1, before=False)  # type: ignore[arg-type]
    with pytest.raises(Died):
        await case.resume({context.id: yes(context)})
    assert len(CountingInfo.checks) == 1

    case.store = store
    events = await case.recover()

    assert len(CountingInfo.checks) == 2
    assert brief(events)[0].startswith(f"tool pay#c1 {ToolOutcome.RAN}")
    assert len(pay.calls) == 1
