"""That an agent works, as Slack is told: paced, learnt, and taken down."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from bot.errors import DeliveryError
from bot.records.thread import Thread
from bot.slack.agent_view import SESSION, AgentSessions
from bot.slack.typing_status import STATUS, SlackPresence, Way
from tests.support.fakes import FakeClock
from tests.unit.bot.office import ROSA

THREAD = Thread(thread_id="T1:C1:1.1", requester_id=ROSA, created_ms=1)


@dataclass
class StatusScene:
    """A presence whose calls are noted, and whose sleep lets the others go first."""

    faults: dict[str, DeliveryError] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    clock: FakeClock = field(default_factory=FakeClock)
    gate: asyncio.Event | None = None
    called: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.presence = SlackPresence(self.call, self.clock, self.spawn, self.sleep)

    async def call(
        self, method: str, channel_id: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        assert channel_id == "C1"
        texts = (arguments.get(name, "") for name in ("timestamp", "status", "title"))
        shown = " ".join(texts).strip()
        self.calls.append((method, shown))
        self.called.set()
        if self.gate is not None:
            await self.gate.wait()
        if method in self.faults:
            raise self.faults[method]
        return {"ok": True}

    def spawn(self, work: Any) -> None:
        self.tasks.append(asyncio.create_task(work))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    async def rest(self) -> None:
        await asyncio.gather(*self.tasks)


@dataclass
class PatientScene(StatusScene):
    """One whose sleep ends when the test says so."""

    asleep: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.asleep.set()
        await self.over.wait()


def refusal(reason: str) -> DeliveryError:
    return DeliveryError("x", reason, took_no_effect=True)


async def test_a_stop_is_offered_while_it_works_and_never_keeps_a_card_back() -> None:
    scene = StatusScene()
    scene.presence.sessions = AgentSessions(scene.call)
    scene.presence.show(THREAD, lambda: "is thinking…", title="Deploy payments")
    await scene.rest()
    scene.presence.show(THREAD, lambda: "is running Pay Mia…")
    await scene.rest()
    await scene.presence.clear(THREAD)
    await scene.rest()
    assert scene.calls == [
        (STATUS, "is thinking…"),
        (SESSION, "processing Deploy payments"),
        (STATUS, "is running Pay Mia…"),
        (STATUS, ""),
        (SESSION, "active"),
    ]


async def test_an_offer_that_comes_down_too_early_is_taken_down_later() -> None:
    wait = DeliveryError(SESSION, "ratelimited", retry_after=timedelta(seconds=99))
    scene = StatusScene(faults={SESSION: wait})
    scene.presence.sessions = AgentSessions(scene.call)
    await scene.presence.clear(THREAD, is_left=True)
    await scene.rest()
    assert [method for method, _ in scene.calls].count(SESSION) == 3
    assert max(scene.slept) == 10


async def test_work_that_is_over_leaves_nobody_to_wait() -> None:
    scene = PatientScene()
    scene.presence.show(THREAD, lambda: "is thinking…")
    await scene.asleep.wait()
    await scene.presence.clear(THREAD)
    await scene.rest()
    assert scene.calls == []


async def test_work_that_begins_meanwhile_is_not_shown_at_once_either() -> None:
    scene = PatientScene()
    scene.presence.show(THREAD, lambda: "is thinking…")
    await scene.asleep.wait()
    await scene.presence.clear(THREAD)
    scene.asleep.clear()
    scene.presence.show(THREAD, lambda: "is thinking again…")
    await scene.asleep.wait()
    assert scene.slept == [0.4, 0.4]
    assert scene.calls == []
    scene.over.set()
    await scene.called.wait()
    assert scene.calls == [(STATUS, "is thinking again…")]
    await scene.presence.clear(THREAD)
    await scene.rest()


async def test_what_is_sent_last_is_what_was_wanted_last() -> None:
    scene = StatusScene(gate=asyncio.Event())
    scene.presence.show(THREAD, lambda: "is thinking…")
    await scene.called.wait()
    clearing = asyncio.create_task(scene.presence.clear(THREAD))
    await asyncio.sleep(0)
    assert scene.gate is not None
    scene.gate.set()
    await clearing
    await scene.rest()
    assert [shown for _, shown in scene.calls] == ["is thinking…", ""]


async def test_a_status_that_hangs_keeps_no_card_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.slack.typing_status.CLEAR_PATIENCE", timedelta(0))
    scene = StatusScene(gate=asyncio.Event())
    scene.presence.show(THREAD, lambda: "is thinking…")
    await scene.called.wait()
    await scene.presence.clear(THREAD)
    assert scene.gate is not None
    scene.gate.set()
    await scene.rest()
    assert scene.calls[-1] == (STATUS, "")


async def test_without_statuses_a_reaction_shows_it() -> None:
    scene = StatusScene({STATUS: refusal("unknown_method")})
    scene.presence.show(THREAD, lambda: "is thinking…", message_ts="1.5")
    await scene.rest()
    scene.presence.show(THREAD, lambda: "is running…")
    await scene.rest()
    await scene.presence.clear(THREAD)
    await scene.rest()
    assert scene.calls == [
        (STATUS, "is thinking…"),
        ("reactions.add", "1.5"),
        ("reactions.remove", "1.5"),
    ]


async def test_without_reactions_nothing_shows_it_and_it_is_not_asked_again() -> None:
    scene = StatusScene(
        {STATUS: refusal("missing_scope"), "reactions.add": refusal("missing_scope")}
    )
    for _ in range(2):
        scene.presence.show(THREAD, lambda: "is thinking…")
        await scene.rest()
        await scene.presence.clear(THREAD)
    assert [method for method, _ in scene.calls] == [STATUS, "reactions.add"]
    assert scene.presence.way(THREAD.channel_id) is Way.NONE


async def test_what_slack_does_not_take_now_is_left_but_the_end() -> None:
    slow = DeliveryError("x", "ratelimited", retry_after=timedelta(seconds=2))
    scene = StatusScene({STATUS: slow})
    scene.presence.show(THREAD, lambda: "is thinking…")
    await scene.rest()
    assert len(scene.calls) == 1
    await scene.presence.clear(THREAD)
    await scene.rest()
    assert [shown for _, shown in scene.calls] == ["is thinking…", "", "", ""]
    assert scene.slept[-3:] == [2, 2, 2]


async def test_a_long_run_says_again_that_it_works() -> None:
    scene = StatusScene()
    scene.presence.show(THREAD, lambda: "is thinking…")
    await scene.rest()
    scene.presence.refresh(THREAD.thread_id)
    await scene.rest()
    assert len(scene.calls) == 1
    scene.clock.forward(seconds=61)
    scene.presence.refresh(THREAD.thread_id)
    scene.presence.refresh("another")
    await scene.rest()
    assert scene.calls == [(STATUS, "is thinking…")] * 2


@pytest.mark.parametrize(
    ("fault", "method"), [(None, STATUS), (refusal("unknown_method"), "reactions.remove")]
)
async def test_what_a_dead_process_left_is_taken_down(
    fault: DeliveryError | None, method: str
) -> None:
    scene = StatusScene({STATUS: fault} if fault else {})
    await scene.presence.clear(THREAD, message_ts="1.5", is_left=True)
    await scene.rest()
    assert scene.calls[-1][0] == method
    assert scene.presence._lines == {}
