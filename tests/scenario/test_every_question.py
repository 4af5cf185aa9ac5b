"""Every way in which an agent asks people, through Slack's own payloads, to its end."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agents import ApprovalResult
from bot.words import say
from tests.scenario import asking
from tests.scenario.asking import RAN
from tests.support.stage import APPROVE, EDIT, REJECT, Stage, a_stage, buttons

Open = Callable[[str], AbstractAsyncContextManager[tuple[Stage, str]]]

ANSWER, CHOOSE, ACCEPT = "countersign:answer", "countersign:choose", "countersign:accept"
RESPOND, IGNORE = "countersign:respond", "countersign:ignore"
MORE = "countersign:more"
PICK_1, PICK_2 = "countersign:pick_1", "countersign:pick_2"


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Starts a bot with one of the agents, and lets Rosa ask; gives the stage and the thread."""

    @asynccontextmanager
    async def open_one(agent: str) -> AsyncIterator[tuple[Stage, str]]:
        RAN.clear()
        path = f"tests.scenario.asking:{agent}"
        async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=path) as stage:
            ts = await stage.say("Rosa", "@countersign go")
            yield stage, ts

    return open_one


async def fill(stage: Stage, user: str, values: dict[str, Any]) -> dict[str, Any]:
    """Submit the newest modal of a person."""
    return await stage.sandbox.submit(stage.user(user), await stage.modal(user), values)


def errors_of(outcome: dict[str, Any]) -> dict[str, str]:
    assert outcome["response_action"] == "errors", outcome
    errors: dict[str, str] = outcome["errors"]
    return errors


async def final(stage: Stage, word: str, *, number: int = 1) -> dict[str, Any]:
    card = await stage.card(number=number, word=word)
    assert buttons(card) == []
    return card


# ---- feedback ------------------------------------------------------------------------------------


async def test_feedback_by_reply_by_form_and_one_click(opened: Open) -> None:
    async with opened("feedback") as (stage, ts):
        card = await stage.card(word="First *draft* <!channel>")
        assert buttons(card) == [ACCEPT, ANSWER, MORE]
        await stage.say("Rosa", "Make it *shorter*, please", thread_ts=ts)
        await stage.said("Second draft")
        assert "shorter" in str(await final(stage, "Changes requested by"))
        second = await stage.card(number=2, word="Second draft")
        await stage.choose("Ada", second, "countersign:compare")
        view = await stage.modal("Ada")
        assert all(draft in str(view["blocks"]) for draft in ("First", "Second"))
        await stage.sandbox.close_view(stage.user("Ada"), view)
        await stage.click("Ada", second, ANSWER)
        assert errors_of(await fill(stage, "Ada", {"answer_0": " "})) == {
            "answer_0": say("error.changes")
        }
        await fill(stage, "Ada", {"answer_0": "And friendlier."})
        await stage.said("Third draft")
        await final(stage, "friendlier", number=2)
        third = await stage.card(number=3, word="Third draft")
        await stage.say("Rosa", "Looks good, approved!", thread_ts=ts)
        await stage.whispered("Rosa", re.escape(say("refuse.reply_here")))
        await stage.click("Ben", third, ACCEPT)
        assert stage.user("Ben") in str(await final(stage, "Approved by", number=3))
        # What people wished stands on their cards; the bot does not say it once more.
        assert not [text for text in stage.texts() if "shorter" in text or "friendlier" in text]


async def test_feedback_loop_ends_with_the_documented_words(opened: Open) -> None:
    async with opened("feedback") as (stage, ts):
        await stage.card(word="First")
        await stage.say("Rosa", "No need to edit", thread_ts=ts)
        await final(stage, "Approved by")
        assert "Second draft" not in stage.texts()


# ---- choices -------------------------------------------------------------------------------------


async def test_choice_by_button(opened: Open) -> None:
    async with opened("choose") as (stage, _):
        card = await stage.card(word="Where to?")
        await stage.click("Rosa", card, PICK_2)
        await stage.said("Good")
        assert "Oslo" in str(await final(stage, "Chosen"))


async def test_choice_by_reply_and_a_reply_that_is_none(opened: Open) -> None:
    async with opened("choose") as (stage, ts):
        await stage.card(word="Where to?")
        await stage.say("Rosa", "somewhere warm", thread_ts=ts)
        assert "one of the options" in await stage.whispered("Rosa", "options")
        await stage.say("Rosa", "3", thread_ts=ts)
        await stage.said("Good")
        assert "Lima" in str(await final(stage, "Chosen"))


async def test_none_of_the_options(opened: Open) -> None:
    async with opened("choose") as (stage, _):
        card = await stage.card(word="Where to?")
        await stage.choose("Rosa", card, REJECT)
        await fill(stage, "Rosa", {"reason": "I stay at home."})
        await stage.said("Good")
        assert "stay at home" in str(await final(stage, "None chosen"))


async def test_many_options_have_a_form(opened: Open) -> None:
    async with opened("choose_many") as (stage, _):
        card = await stage.card(word="City 8")
        assert CHOOSE in buttons(card)
        await stage.click("Ada", card, CHOOSE)
        await fill(stage, "Ada", {"choice": "6"})
        await stage.said("Good")
        assert "City 7" in str(await final(stage, "Chosen"))


async def test_several_options(opened: Open) -> None:
    async with opened("choose_several") as (stage, _):
        await stage.click("Ada", await stage.card(word="Which ones?"), CHOOSE)
        view = await stage.modal("Ada")
        (block,) = [candidate for candidate in view["blocks"] if candidate["type"] == "input"]
        wanted = block["element"]["options"][::2]
        picked = {"type": "checkboxes", "selected_options": wanted}
        await stage.sandbox.submit(
            stage.user("Ada"), view, {"choice": {"countersign:value": picked}}
        )
        await stage.said("Good")
        chosen = await final(stage, "Chosen")
        assert "1. Rome\\n3. Lima" in str(chosen)


async def test_choice_that_runs_a_call_is_for_approvers(opened: Open) -> None:
    async with opened("choose_place") as (stage, ts):
        card = await stage.card(word="Which environment?")
        await stage.click("Rosa", card, PICK_2)
        await stage.whispered("Rosa", "Someone else has to")
        await stage.say("Rosa", "2", thread_ts=ts)
        assert RAN == []
        await stage.click("Ada", card, PICK_2)
        await stage.said("Done")
        assert RAN == [("deploy", "production")]
        await final(stage, "Approved by")


# ---- missing arguments ---------------------------------------------------------------------------


async def test_missing_arguments_are_filled_in(opened: Open) -> None:
    async with opened("complete") as (stage, ts):
        card = await stage.card(word="Missing: ")
        await stage.say("Rosa", "four", thread_ts=ts)
        await stage.whispered("Rosa", "buttons")
        await stage.click("Rosa", card, ANSWER)
        wrong = await fill(stage, "Rosa", {"argument_0": "99999999999999999999"})
        assert list(errors_of(wrong)) == ["argument_0"]
        assert RAN == []
        await fill(stage, "Rosa", {"argument_0": "4", "argument_1": "rice\n beans \n"})
        await stage.said("Booked")
        assert RAN == [("book", "Rome", 4, ["rice", "beans"], False)]
        assert "beans" in str(await final(stage, "Approved by"))


async def test_missing_arguments_are_called_off(opened: Open) -> None:
    async with opened("complete") as (stage, _):
        await stage.click("Ada", await stage.card(word="Missing: "), REJECT)
        await fill(stage, "Ada", {"reason": "Nobody knows."})
        await stage.said("Booked")
        assert RAN == []
        assert "Nobody knows" in str(await final(stage, "Skipped by"))


async def test_missing_arguments_of_an_approved_call_are_for_approvers(opened: Open) -> None:
    async with opened("complete_approved") as (stage, _):
        await stage.click("Ada", await stage.card(word=APPROVE), APPROVE)
        card = await stage.card(number=2, word="Missing: ")
        await stage.click("Rosa", card, ANSWER)
        await stage.whispered("Rosa", "Someone else")
        await stage.click("Ben", card, ANSWER)
        await fill(stage, "Ben", {"argument_0": "2"})
        await stage.said("Booked")
        assert RAN == [("book", "Rome", 2, None, False)]


# ---- create_react_agent --------------------------------------------------------------------------


async def test_human_accepts(opened: Open) -> None:
    async with opened("human_all") as (stage, _):
        card = await stage.card(word=APPROVE)
        assert buttons(card) == [APPROVE, EDIT, RESPOND, IGNORE, MORE]
        await stage.click("Ada", card, APPROVE)
        await stage.said("Done")
        assert RAN == [("deploy", "staging")]


async def test_human_edits(opened: Open) -> None:
    async with opened("human_all") as (stage, _):
        await stage.click("Ada", await stage.card(word=EDIT), EDIT)
        await fill(stage, "Ada", {"argument_0": "1"})
        await stage.said("Done")
        assert RAN == [("deploy", "production")]
        await final(stage, "Edited by")


async def test_human_responds(opened: Open) -> None:
    async with opened("human_all") as (stage, _):
        await stage.click("Ada", await stage.card(word=RESPOND), RESPOND)
        await fill(stage, "Ada", {"response": "It is deployed already."})
        await stage.said("Done")
        assert RAN == []
        assert "deployed already" in str(await final(stage, "didn't run"))


async def test_human_ignores(opened: Open) -> None:
    async with opened("human_all") as (stage, _):
        await stage.click("Ada", await stage.card(word=IGNORE), IGNORE)
        await stage.said("Done")
        assert RAN == []
        await final(stage, "Skipped by")


async def test_human_answers_that_are_not_allowed_are_refused(opened: Open) -> None:
    async with opened("human_strict") as (stage, _):
        card = await stage.card(word=RESPOND)
        assert buttons(card) == [RESPOND, MORE]
        user, sandbox = stage.user("Ada"), stage.sandbox
        payload = sandbox.payload_of_click(user, stage.channel, card["ts"], RESPOND)
        for action_id in (APPROVE, IGNORE, PICK_1, CHOOSE, ACCEPT, ANSWER):
            payload["actions"][0]["action_id"] = action_id
            await sandbox.send_interaction(payload)
        await stage.whispered("Ada", "isn't one I made")
        assert RAN == []
        assert buttons(await stage.card(word=RESPOND)) == [RESPOND, MORE]


async def test_stage_goes_on(opened: Open) -> None:
    async with opened("staged") as (stage, _):
        card = await stage.card(word="Needs approval")
        assert buttons(card) == [APPROVE, REJECT, MORE]
        await stage.click("Ada", card, APPROVE)
        await stage.said("Done")
        assert RAN == [("deploy", "staging")]
        await final(stage, "Approved by")


async def test_stage_stops(opened: Open) -> None:
    async with opened("staged") as (stage, _):
        await stage.click("Ada", await stage.card(word="Needs approval"), REJECT)
        await fill(stage, "Ada", {"canned": "other", "reason": "Not today."})
        await stage.said("Not today")
        assert RAN == []
        await final(stage, "Rejected by")


@pytest.mark.parametrize(
    ("agent", "asked", "words", "said", "end"),
    [
        ("graph_text", "How shall it be called?", "Fox", "You said 'Fox'", "Answered"),
        ("graph_few", "Which size?", "m", "You said 'M'", "Chosen"),
        ("free", "What colour?", "Blue", "Got Blue", "Answered"),
        ("plain", "What is your name?", "Blue", "Got Blue", "Answered"),
    ],
)
async def test_a_reply_answers(
    opened: Open, agent: str, asked: str, words: str, said: str, end: str
) -> None:
    async with opened(agent) as (stage, ts):
        card = await stage.card(word=asked)
        assert ("Untitled" in str(card)) == (agent == "graph_text")
        assert "xyz" not in str(card)
        await stage.say("Rosa", words, thread_ts=ts)
        await stage.said(said)
        await final(stage, end)
        assert len(RAN) == 1


# ---- graphs --------------------------------------------------------------------------------------


async def test_graph_asks_yes_or_no(opened: Open) -> None:
    async with opened("graph_yes") as (stage, ts):
        card = await stage.card(word="Shall it be **bold**?")
        await stage.say("Rosa", "yes", thread_ts=ts)
        await stage.whispered("Rosa", "buttons")
        await stage.click("Rosa", card, PICK_2)
        await stage.said("You said False")
        assert RAN == [False]


async def test_graph_asks_for_a_number(opened: Open) -> None:
    async with opened("graph_number") as (stage, ts):
        await stage.card(word="How many?")
        await stage.say("Rosa", "lots", thread_ts=ts)
        await stage.whispered("Rosa", "buttons")
        await stage.say("Rosa", "12", thread_ts=ts)
        await stage.said("You said 12")
        assert RAN == [12]


async def test_graph_asks_for_a_list(opened: Open) -> None:
    async with opened("graph_list") as (stage, _):
        await stage.click("Ada", await stage.card(word="Who comes?"), ANSWER)
        await fill(stage, "Ada", {"argument_0": "Mia\n\n Tom "})
        await stage.said("You said")
        assert RAN == [["Mia", "Tom"]]


async def test_graph_asks_for_an_object(opened: Open) -> None:
    async with opened("graph_trip") as (stage, _):
        await stage.click("Ada", await stage.card(word="Which trip?"), ANSWER)
        values = {"argument_0": "Rome", "argument_1": "1000000000000000000000"}
        assert "argument_1" in errors_of(await fill(stage, "Ada", values))
        assert RAN == []
        await fill(stage, "Ada", {**values, "argument_1": "3", "argument_2": "sun\nsea"})
        await stage.said("You said")
        assert [asking.Trip(place="Rome", days=3, tags=["sun", "sea"])] == RAN


async def test_graph_asks_for_a_verdict(opened: Open) -> None:
    async with opened("graph_verdict") as (stage, ts):
        card = await stage.card(word="May the money leave?")
        await stage.say("Rosa", "yes", thread_ts=ts)
        await stage.say("Ada", "yes", thread_ts=ts)
        await stage.whispered("Ada", "buttons")
        await stage.click("Rosa", card, APPROVE)
        await stage.whispered("Rosa", "Someone else")
        await stage.click("Ada", card, APPROVE)
        await stage.said("You said")
        [answer] = RAN
        assert isinstance(answer, ApprovalResult)
        assert (answer.approved, answer.by) == (True, stage.user("Ada"))


async def test_graph_goes_on_from_a_breakpoint(opened: Open) -> None:
    async with opened("graph_break") as (stage, _):
        card = await stage.card(word="Continue with “pay”?")
        assert buttons(card) == [APPROVE, REJECT, EDIT, MORE]
        await stage.click("Ada", card, APPROVE)
        await stage.said("Paid 5 in Rome")
        assert RAN == [("pay", 5, "Rome", ["a", "b"])]
        await final(stage, "Approved by")


async def test_graph_goes_on_with_an_edited_state(opened: Open) -> None:
    async with opened("graph_break") as (stage, _):
        await stage.click("Ada", await stage.card(word="Needs approval"), EDIT)
        await fill(stage, "Ada", {"argument_1": "7", "argument_2": "1", "argument_3": "a\nb\nc"})
        await stage.said("Paid 7 in Oslo")
        assert RAN == [("pay", 7, "Oslo", ["a", "b", "c"])]
        assert "→" in str(await final(stage, "Edited by"))


async def test_graph_shows_what_its_nodes_are_sent_and_people_edit_the_rest(opened: Open) -> None:
    async with opened("graph_sends") as (stage, _):
        card = await stage.card(word="Needs approval")
        assert [f"({number} of 2)" in str(card) for number in (1, 2)] == [True, True]
        await stage.click("Ada", card, EDIT)
        labels = [
            block["label"]["text"]
            for block in (await stage.modal("Ada"))["blocks"]
            if "label" in block
        ]
        assert labels == ["Input", "Note", "Parts"]
        await fill(stage, "Ada", {"argument_1": "wages"})
        await stage.said("Paid for wages")
        assert set(RAN) == {"Mia", "Rosa"}


async def test_graph_is_stopped_at_a_breakpoint(opened: Open) -> None:
    async with opened("graph_break") as (stage, _):
        await stage.click("Ada", await stage.card(word="Needs approval"), REJECT)
        await fill(stage, "Ada", {"canned": "other", "reason": "Too much."})
        await stage.said("Too much")
        assert RAN == []
        await final(stage, "Rejected by")


# ---- infos of their own --------------------------------------------------------------------------


async def test_program_has_to_answer_and_nothing_breaks(opened: Open) -> None:
    async with opened("machine") as (stage, ts):
        card = await stage.card(word="Only a program can answer this")
        assert buttons(card) == [MORE]
        assert "expected a Measurement" in str(card)
        await stage.say("Rosa", "20 degrees", thread_ts=ts)
        await stage.whispered("Rosa", "Only a program")
        await stage.later(hours=9)
        await stage.said("has no answer: nobody answered in time")
        assert RAN == []  # the agent does not go on
        await final(stage, "Expired")


async def test_policy_says_who_and_why(opened: Open) -> None:
    async with opened("policy") as (stage, _):
        card = await stage.card(word="Why you're being asked")
        assert "changes what customers see" in str(card)
        await stage.click("Ada", card, APPROVE)
        await stage.whispered("Ada", "not an approver")
        await stage.later(minutes=31)
        await stage.said("Done")
        assert RAN == []
        await final(stage, "Expired")
