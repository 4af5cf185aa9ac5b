"""Eino's eight patterns and the graphs, to their less usual ends, in a new process each step."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agents import Expired
from bot.demo.patterns.programs import SCRIPTS, Script
from bot.redaction.mask import mask_text
from tests.unit.bot.demo.pattern_room import NO, YES, Answer, Room, accept, approve, edit, tell

ENDS: list[tuple[str, str, Sequence[Answer], str]] = [
    ("#follow-up", "", [tell("food, 90 a day")], "likes food; at most 90 USD"),
    ("#follow-up", "", [tell("nature"), tell("whatever")], "likes nature; budget unknown"),
    ("#follow-up", "", [tell("forget it")], "I have no plan for New York City"),
    ("#follow-up", "", [Expired()], "I have no plan for New York City"),
    ("#supervisor", "what is my balance?", [], "The balance of main is 5000 USD"),
    (
        "#supervisor",
        "what is the balance of my holiday account?",
        [],
        "The balance of holiday is 1000 USD",
    ),
    ("#supervisor", "transfer everything", [], "I need an amount and two accounts"),
    (
        "#plan",
        "",
        [accept, edit(check_out="2027-10-01")],
        "The hotel in Tokyo did not work: ValueError: the last day must be after",
    ),
    (
        "#graph",
        "onboard Nora",
        [Expired()],
        "Nobody said what Nora needs, so nothing is ordered.",
    ),
    (
        "#graph",
        "release 2.0.0",
        [YES, NO, Expired()],
        "2.0.0 is not released (Legal: no; Quality: yes; Security: no).",
    ),
]


@pytest.mark.parametrize(("channel", "text", "answers", "words"), ENDS)
async def test_what_is_said_in_the_end(
    channel: str, text: str, answers: Sequence[Answer], words: str
) -> None:
    room = Room(channel)
    await room.play(*answers, text=text)
    assert words in room.texts[-1]
    assert channel != "#graph" or room.texts == [words]


async def test_a_text_gets_a_title_and_then_no_answer() -> None:
    room = Room("#feedback")
    await room.play(lambda info: info.give("It needs a title"), Expired())
    assert "To potatoes\n\nOh potatoes" in room.texts[-2]
    assert "Nobody has agreed" in room.texts[-1]


@pytest.mark.parametrize("answer", [Expired(), tell("stop")])
async def test_the_deep_agent_does_not_guess(answer: Answer) -> None:
    room = Room("#deep")
    await room.play(answer)
    assert "I do not guess" in room.texts[-1]
    assert room.outcomes("task") == []


async def test_a_budget_that_is_too_large_is_told() -> None:
    room = Room("#project")
    await room.play(approve, text="set up the project Rocket with $900,000 from marketing")
    assert "marketing has 200000 USD, which is not enough" in "\n".join(room.texts)
    assert room.outcomes("allocate_budget") == ["failed"]


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_a_script_is_shown_as_it_is(script: Script) -> None:
    text = SCRIPTS[script].read_text("utf-8")
    assert mask_text(text) == text
