"""Eino's eight patterns, each to its end, in a new process after each question."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agents import (
    Cancelled,
    Expired,
)
from tests.unit.bot.demo.pattern_room import Answer, Room, accept, approve, edit, reject, tell

# ---- 1 and 2: approval, review and edit ----------------------------------------------------------


async def test_p1_the_words_of_the_original() -> None:
    room = Room("#approval")
    await room.say(
        "book a ticket for Martin, to Beijing, on 2025-12-01, the phone number is 1234567. "
        "directly call tool."
    )
    assert room.info.arguments == {
        "location": "Beijing",
        "passenger_name": "Martin",
        "passenger_phone_number": "1234567",
    }


async def test_p1_a_second_request_in_the_same_thread() -> None:
    room = Room("#approval")
    await room.play(approve)
    await room.play(approve, text="book a ticket for Nora to Rome, phone 555-1234")
    assert room.texts[-1] == "Done."
    assert room.outcomes("book_ticket") == ["ran", "ran"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (accept, "Done."),
        (edit(location="Rome"), "Done, as a person changed it: Martin has a ticket to Rome"),
        (reject, "was rejected"),
        (Expired(waited="8 hours"), "no one answered in time"),
        (Cancelled(), "was cancelled"),
    ],
)
async def test_p2_review_and_edit(answer: Answer, words: str) -> None:
    room = Room("#review-edit")
    await room.play(answer)
    assert words in room.texts[-1]


# ---- 3: the feedback loop ------------------------------------------------------------------------


async def test_p3_feedback_until_it_is_good() -> None:
    room = Room("#feedback")
    await room.play(
        lambda info: info.give("shorter"), lambda info: info.give("mention butter"), accept
    )
    drafts = [text for text in room.texts if text.startswith("Oh potatoes")]
    assert [len(draft.splitlines()) for draft in drafts] == [4, 2, 3]
    assert "mention butter" in drafts[-1]


async def test_p3_a_title_and_no_answer() -> None:
    room = Room("#feedback")
    await room.play(lambda info: info.give("It needs a title"), Expired())
    assert "To potatoes\n\nOh potatoes" in room.texts[-2]
    assert "Nobody has agreed" in room.texts[-1]


# ---- 4: follow-up questions of an agent in a tool ------------------------------------------------


async def test_p4_asks_until_it_knows_enough() -> None:
    room = Room("#follow-up")
    await room.say()
    assert len(room.info.questions) == 3
    await room.answer(tell("museums and some music, please"))
    assert "write a number" in room.info.questions[0]
    await room.answer(tell("200"))
    assert room.texts[-1].startswith(
        "New York City, 3 days. Facts: likes museums, music; at most 200"
    )
    assert len(room.texts[-1].splitlines()) == 4
    assert room.ran == [("FollowUpAgent", "ran")]


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


async def test_p5_supervisor() -> None:
    room = Room("#supervisor")
    await room.say()
    assert str(room.waiting[0].address) == (
        "agent:financial_supervisor;agent:financial_supervisor;agent:account_agent;"
        "agent:financial_supervisor;agent:transaction_agent;tool:transfer_funds:demo-1"
    )
    await room.answer(approve)
    assert room.texts[-1] == (
        "All in all:\n- The balance of checking is 5000 USD.\n"
        "- Successfully transferred 500.00 USD from checking to savings."
    )
    assert room.outcomes("check_balance") == room.outcomes("transfer_funds") == ["ran"]


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


async def test_p6_plan_execute_replan() -> None:
    room = Room("#plan")
    await room.play(accept, edit(check_out="2027-10-20"))
    assert room.texts[-1].splitlines() == [
        "This is what came of your trip:",
        "- Sunny in Tokyo on 2027-10-15, 22 degrees.",
        "- To see in Tokyo: the old town, the national museum, the botanical garden.",
        "- Done: flight from Berlin to Tokyo on 2027-10-15 is booked, 1 seat.",
        (
            "- Done, as a person changed it (check_out 2027-10-20 instead of 2027-10-18): "
            "hotel in Tokyo is booked from 2027-10-15 to 2027-10-20."
        ),
    ]
    for tool in ("get_weather", "search_attractions", "book_flight", "book_hotel"):
        assert room.outcomes(tool) == ["ran"]


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


async def test_p8_supervisor_is_called_again_after_the_approval() -> None:
    room = Room("#project")
    await room.say()
    assert str(room.waiting[0].address).endswith(
        "agent:project_execution_agent;agent:plan_execute_replan;agent:execute_replan;"
        "agent:executor:3;tool:allocate_budget:demo-1"
    )
    await room.answer(approve)
    assert room.texts[-1] == "All in all, for Customer Portal: The project is set up."
    for tool in ("search_info", "analyze_requirements", "allocate_budget", "assign_team", "exit"):
        assert room.outcomes(tool) == ["ran"]


async def test_p8_a_budget_that_is_too_large() -> None:
    room = Room("#project")
    await room.play(approve, text="set up the project Rocket with $900,000 from marketing")
    assert "marketing has 200000 USD, which is not enough" in "\n".join(room.texts)
    assert room.outcomes("allocate_budget") == ["failed"]
