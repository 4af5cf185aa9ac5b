"""The graphs of the demo, and the agent whose calls people accept, ignore, answer or edit."""

from __future__ import annotations

import pytest

from agents import (
    Expired,
)
from agents.graph import StateUpdate
from tests.unit.bot.demo.pattern_room import NO, YES, Answer, Room, accept, edit


@pytest.mark.parametrize(
    ("answer", "words"),
    [(YES, "is deleted"), (NO, "stays, as nobody agreed"), (Expired(), "stays, as nobody agreed")],
)
async def test_graph_approval_node(answer: object, words: str) -> None:
    room = Room("#graph")
    await room.play(answer)
    assert room.texts == [f"The record 42 {words}{'' if 'is' in words else ' to delete it'}."]


async def test_graph_form() -> None:
    room = Room("#graph")
    form = {"laptop": "13 inch", "monitors": 2, "first_day": "2027-01-04"}
    await room.play(form, "Ada", text="onboard Nora")
    assert room.texts[-1].splitlines() == [
        "Ordered for Nora:",
        "- laptop: 13 inch",
        "- monitors: 2",
        "- first_day: 2027-01-04",
        "- mentor: Ada",
    ]


async def test_graph_form_that_nobody_fills_in() -> None:
    room = Room("#graph")
    await room.play(Expired(), text="onboard Nora")
    assert room.texts == ["Nobody said what Nora needs, so nothing is ordered."]


async def test_graph_breakpoint_with_an_edit() -> None:
    room = Room("#graph")
    await room.play(StateUpdate({"recipients": 12}), text="newsletter about our new office")
    assert room.texts == ["Sent “News about our new office” to 12 people."]


async def test_graph_breakpoint_refused() -> None:
    room = Room("#graph")
    await room.say("newsletter about our new office")
    await room.answer(NO)
    assert room.texts == ["Stopped before “send”, as you asked."]


async def test_graph_loop() -> None:
    room = Room("#graph")
    await room.play("with fresh bread", "Good!", text="slogan for a bakery")
    assert room.texts == ["The slogan is: The best bakery, with fresh bread!"]


async def test_graph_approvals_side_by_side_in_any_order() -> None:
    room = Room("#graph")
    await room.say("release 2.0.0")
    assert len(room.waiting) == 3
    first = room.waiting[0].id
    await room.answer(YES, at=2)
    await room.answer(YES, at=1)
    assert [context.id for context in room.waiting] == [first]
    await room.answer(YES)
    assert room.texts == ["2.0.0 is released (Legal: yes; Quality: yes; Security: yes)."]


async def test_graph_one_no_is_enough() -> None:
    room = Room("#graph")
    await room.play(YES, NO, Expired(), text="release 2.0.0")
    assert room.texts == ["2.0.0 is not released (Legal: no; Quality: yes; Security: no)."]


@pytest.mark.parametrize(
    ("answer", "words", "outcome"),
    [
        (accept, "Done.", "ran"),
        (lambda info: info.ignore(), "put aside", "rejected"),
        (
            lambda info: info.respond("call her instead"),
            "I did not send it. I was told: call her instead",
            "answered",
        ),
        (Expired(), "no one answered in time", "expired"),
        (
            edit(text="It is on Tuesday"),
            "Done, as a person changed it: sent to nora@acme.example: It is on Tuesday",
            "ran",
        ),
    ],
)
async def test_react(answer: Answer, words: str, outcome: str) -> None:
    room = Room("#react")
    await room.play(answer)
    assert words in room.texts[-1]
    assert room.outcomes("send_mail") == [outcome]
