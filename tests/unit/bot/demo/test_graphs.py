"""The graphs of the demo, and the agent whose calls people accept, ignore, answer or edit."""

from __future__ import annotations

from agents import Expired
from tests.unit.bot.demo.pattern_room import NO, YES, Room


async def test_graph_form_that_nobody_fills_in() -> None:
    room = Room("#graph")
    await room.play(Expired(), text="onboard Nora")
    assert room.texts == ["Nobody said what Nora needs, so nothing is ordered."]


async def test_graph_one_no_is_enough() -> None:
    room = Room("#graph")
    await room.play(YES, NO, Expired(), text="release 2.0.0")
    assert room.texts == ["2.0.0 is not released (Legal: no; Quality: yes; Security: no)."]
