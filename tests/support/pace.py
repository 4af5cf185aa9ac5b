"""Slack's pace, ten times as fast: what scenarios and the browser do not wait for.

Calls still wait for their turn, in their order, and read what they say only then; and what comes
soon after something else still comes later. How long Slack's own minute is, and what it allows in
one, is held by tests/unit/bot/slack/test_ratelimit.py. What is shorter than a second stays as it
is: work that is over soon still shows no status.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bot.main import Outside
from bot.slack.ratelimit import SLACK_LIMITS

_TIMES = 10


async def _briefly(seconds: float) -> None:
    await asyncio.sleep(seconds / _TIMES if seconds >= 1 else seconds)


BRISK = Outside(
    limits={
        method: tuple(replace(one, within=one.within / _TIMES) for one in limits)
        for method, limits in SLACK_LIMITS.items()
    },
    sleep=_briefly,
)
"""The database and Slack that the settings name, at that pace."""
