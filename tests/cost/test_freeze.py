"""How long cards take to say that a freeze covers their calls, within Slack's rate limits."""

from __future__ import annotations

from pathlib import Path

from bot.records.switch import FreezeScope
from bot.scheduler import BETWEEN_TICKS
from bot.slack.ratelimit import SLACK_LIMITS, Pacer
from tests.cost.stage import ADA, a_turn_stage, make_database
from tests.support.fakes import FakeClock

CARDS = 100
AT_ONCE = SLACK_LIMITS["chat.update"][0].most
"""Number of cards that Slack lets the bot update in a minute."""


async def test_a_freeze_is_on_each_card_as_soon_as_slack_allows(tmp_path: Path) -> None:
    clock = FakeClock()

    async def sleep(seconds: float) -> None:
        clock.forward(seconds=seconds)

    pacer = Pacer(clock=clock, sleep=sleep, limits={})
    storage = make_database("memory", tmp_path)
    async with a_turn_stage(storage, clock=clock, pacer=pacer) as stage:
        await stage.ask(CARDS)
        assert len(stage.buttons()) == CARDS
        clock.forward(minutes=1)
        pacer.limits = SLACK_LIMITS
        frozen = stage.bot.sweep.frozen
        assert frozen is not None
        begin = clock()
        await frozen.freezes.freeze(FreezeScope(), by=ADA, why="The bank is down.")
        times: list[float] = []
        while len(times) < CARDS and clock() - begin < 300_000:
            clock.forward(seconds=BETWEEN_TICKS.total_seconds())
            await stage.bot.sweep.tick()
            await stage.settled()
            shown = sum("Frozen by" in blocks for blocks in stage.slack.cards.values())
            times += [(clock() - begin) / 1_000] * (shown - len(times))
    assert len([at_s for at_s in times if at_s <= 10]) >= AT_ONCE
    assert len(times) == CARDS
    assert max(times) <= 75  # Slack's minute, and a tick on each side
