"""Slots for calls: within Slack's limits, in order, and never waited for too long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count, pairwise

import pytest
from hypothesis import given, settings, strategies as st

from bot.clock import milliseconds
from bot.slack.ratelimit import MARGIN, SLACK_LIMITS, Limit, Pacer, TooSoonError
from tests.support.fakes import START_MS, SleepingClock

HOUR = timedelta(hours=1)


@dataclass
class Pause:
    """A sleep that ends when the test says so."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def sleep(self, _: float) -> None:
        self.begun.set()
        await self.gate.wait()


async def times(pacer: Pacer, calls: Iterable[tuple[str, str]]) -> list[int]:
    """When each call left."""
    left: list[int] = []
    for method, channel in calls:
        await pacer.slot(method, channel, patience=HOUR)
        left.append(pacer.clock())
    return left


async def test_a_burst_then_one_a_second() -> None:
    time = SleepingClock()
    pacer = Pacer(time, time.sleep)
    left = await times(pacer, [("chat.postMessage", "C1")] * 9)
    assert left[0] == left[1] == left[2] == START_MS
    per_window = milliseconds(timedelta(seconds=3) + MARGIN)
    assert all(after - before >= per_window for before, after in zip(left, left[3:], strict=False))
    assert left[8] == START_MS + 2 * per_window


async def test_whether_a_call_could_leave_is_told_and_takes_no_slot() -> None:
    time = SleepingClock()
    pacer = Pacer(time, time.sleep)
    for _ in range(3):
        assert pacer.is_free("chat.postMessage", "C1")
        await pacer.slot("chat.postMessage", "C1", patience=HOUR)
    assert not pacer.is_free("chat.postMessage", "C1")
    assert pacer.is_free("chat.postMessage", "C2")
    assert pacer.is_free("chat.startStream", "C1")
    pacer.hold("chat.postMessage", "C2", timedelta(seconds=5))
    assert not pacer.is_free("chat.postMessage", "C2")


async def test_the_limit_of_a_method_counts_for_all_channels() -> None:
    time = SleepingClock()
    pacer = Pacer(time, time.sleep)
    left = await times(pacer, [("chat.update", f"C{number}") for number in range(51)])
    assert left[49] == left[0]
    assert left[50] - left[0] == milliseconds(timedelta(minutes=1) + MARGIN)


async def test_what_has_no_limit_is_not_paced() -> None:
    time = SleepingClock()
    pacer = Pacer(time, time.sleep)
    await times(pacer, [("views.open", "")] * 500)
    assert time.slept == []


async def test_a_slot_too_far_away_is_not_taken() -> None:
    time = SleepingClock()
    pacer = Pacer(time, time.sleep)
    await times(pacer, [("chat.postMessage", "C1")] * 3)
    with pytest.raises(TooSoonError) as raised:
        await pacer.slot("chat.postMessage", "C1", patience=timedelta(seconds=3))
    assert raised.value.wait == timedelta(seconds=3) + MARGIN
    await pacer.slot("chat.postMessage", "C1", patience=timedelta(seconds=4))
    assert time.slept == [3.1]


async def test_a_hold_stops_the_channel_and_no_other() -> None:
    time = SleepingClock()
    pacer = Pacer(time, time.sleep)
    pacer.hold("chat.postMessage", "C1", timedelta(seconds=30))
    pacer.hold("chat.postMessage", "C1", timedelta(seconds=2))  # a shorter one changes nothing
    await pacer.slot("chat.postMessage", "C2", patience=timedelta(0))
    with pytest.raises(TooSoonError):
        await pacer.slot("chat.postMessage", "C1", patience=timedelta(seconds=29))
    await pacer.slot("chat.postMessage", "C1", patience=timedelta(seconds=30))
    assert time.slept == [30.0]


async def test_a_hold_of_a_method_stops_it_everywhere() -> None:
    time = SleepingClock()
    pacer = Pacer(time, time.sleep)
    pacer.hold("chat.update", "C1", timedelta(seconds=30))
    pacer.hold("users.info", "", timedelta(seconds=30))
    for method in ("chat.update", "users.info"):
        with pytest.raises(TooSoonError):
            await pacer.slot(method, "C2", patience=timedelta(seconds=1))


async def test_a_hold_reaches_those_who_wait_already() -> None:
    time, pause = SleepingClock(), Pause()
    pacer = Pacer(time, pause.sleep)
    await times(pacer, [("chat.postMessage", "C1")] * 3)
    waiting = asyncio.create_task(
        pacer.slot("chat.postMessage", "C1", patience=timedelta(seconds=10))
    )
    await pause.begun.wait()
    pacer.hold("chat.postMessage", "C1", timedelta(seconds=60))
    time.now_ms += 3_100
    pause.gate.set()
    with pytest.raises(TooSoonError):
        await waiting


async def test_who_gives_up_leaves_the_slot_to_the_next() -> None:
    time, pause = SleepingClock(), Pause()
    pacer = Pacer(time, pause.sleep)
    await times(pacer, [("chat.postMessage", "C1")] * 3)
    waiting = asyncio.create_task(pacer.slot("chat.postMessage", "C1", patience=HOUR))
    await pause.begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    pacer.sleep = time.sleep
    await times(pacer, [("chat.postMessage", "C1")] * 3)
    assert time.slept == [3.1]


async def test_channels_that_are_quiet_are_forgotten() -> None:
    time = SleepingClock()
    pacer = Pacer(time, time.sleep, limits={"m": (Limit(most=1, per_channel=True),)})
    for number in range(3_000):
        await pacer.slot("m", f"C{number}", patience=timedelta(0))
        pacer.hold("m", f"C{number}", timedelta(0))
        time.now_ms += 1_000
    assert len(pacer._given) <= 1_002
    assert len(pacer._held) <= 1_002


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["chat.postMessage", "chat.update", "chat.stopStream"]),
            st.sampled_from(["C1", "C2"]),
            st.integers(0, 4_000),
        ),
        max_size=120,
    )
)
@settings(deadline=None)
def test_no_window_ever_has_too_many(calls: list[tuple[str, str, int]]) -> None:
    time = SleepingClock()
    pacer = Pacer(time, time.sleep)
    left: list[tuple[str, str, int]] = []

    async def play() -> None:
        for method, channel, pause in calls:
            time.now_ms += pause
            await pacer.slot(method, channel, patience=HOUR)
            left.append((method, channel, time()))

    asyncio.run(play())
    for method, limits in SLACK_LIMITS.items():
        for limit in limits:
            for channel in ("C1", "C2") if limit.per_channel else ("",):
                made = [at for name, place, at in left if name == method and channel in ("", place)]
                assert all(before <= after for before, after in pairwise(made))
                gaps = zip(made, made[limit.most :], strict=False)
                assert all(after - before >= milliseconds(limit.within) for before, after in gaps)


async def test_a_free_slot_is_given_without_patience_though_the_clock_goes_on() -> None:
    ticks = count(1_000)
    pacer = Pacer(lambda: next(ticks), asyncio.sleep, {})
    await pacer.slot("chat.update", "C1", patience=timedelta())
