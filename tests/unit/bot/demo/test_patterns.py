"""Eino's eight patterns, each to its end, in a new process after each question."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agents import Expired
from tests.unit.bot.demo.pattern_room import Answer, Room, accept, approve, edit, tell

# ---- 1 and 2: approval, review and edit ----------------------------------------------------------


# ---- 3: the feedback loop ------------------------------------------------------------------------


async def test_p3_a_title_and_no_answer() -> None:
    room = Room("#feedback")
    await room.play(lambda info: info.give("It needs a title"), Expired())
    assert "To potatoes\n\nOh potatoes" in room.texts[-2]
    assert "Nobody has agreed" in room.texts[-1]


# ---- 4: follow-up questions of an agent in a tool ------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([tell("food, 90 a day")], "likes food; at most 90 USD"),
        ([tell("nature"), tell("whatever")], "likes nature; budget unknown"),
        ([tell("forget it")], "I have no plan for New York City"),
        ([Expired()], "I have no plan for New York City"),
    ],
)
async def test_p4_whatever_people_say(answers: Sequence[Answer], words: str) -> None:
    room = Room("#follow-up")
    await room.play(*answers)
    assert words in room.texts[-1]


# ---- 5: supervisor -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("what is my balance?", "The balance of main is 5000 USD"),
        ("what is the balance of my holiday account?", "The balance of holiday is 1000 USD"),
        ("transfer everything", "I need an amount and two accounts"),
    ],
)
async def test_p5_parts_of_the_work(text: str, words: str) -> None:
    room = Room("#supervisor")
    await room.play(text=text)
    assert words in room.texts[-1]


# ---- 6: plan, execute, replan --------------------------------------------------------------------


async def test_p6_a_booking_that_cannot_be() -> None:
    room = Room("#plan")
    await room.play(accept, edit(check_out="2027-10-01"))
    assert (
        "The hotel in Tokyo did not work: ValueError: the last day must be after" in room.texts[-1]
    )


# ---- 7: deep agent -------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [Expired(), tell("stop")])
async def test_p7_does_not_guess(answer: Answer) -> None:
    room = Room("#deep")
    await room.play(answer)
    assert "I do not guess" in room.texts[-1]
    assert room.outcomes("task") == []


# ---- 8: supervisor over plan-execute -------------------------------------------------------------


async def test_p8_a_budget_that_is_too_large() -> None:
    room = Room("#project")
    await room.play(approve, text="set up the project Rocket with $900,000 from marketing")
    assert "marketing has 200000 USD, which is not enough" in "\n".join(room.texts)
    assert room.outcomes("allocate_budget") == ["failed"]
