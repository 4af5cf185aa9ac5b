"""The agent is asked about its call: the answer stands on the card, and decides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart

from agents import ChatModelAgent, ScriptedModel
from agents.core.errors import CheckpointError
from agents.core.messages import log_text
from agents.models import call, say
from bot.approvals.ask_agent import Explanations
from bot.approvals.comments import AGENT, LONGEST_ASKED, with_exchange
from bot.approvals.due.agent_answers import EXPLAIN_AGAIN, AgentAnswers
from bot.approvals.secondary_actions import SecondaryActions
from bot.audit.report import story
from bot.layout.action_ids import ActionId
from bot.records.approval import Approval, Comment, Status
from bot.records.switch import FreezeScope, ScopeKind
from bot.slack.cards.details import history_blocks
from bot.threads.agents import nobody
from tests.contract.builders import an_approval
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_votes import MIA, TWO, an_office, asked
from tests.unit.bot.counter_stage import (
    ASK,
    PAY,
    Counter,
    a_click,
    a_submission,
    an_event,
    picked,
    typed,
)
from tests.unit.bot.office import ADA, BEN, ROOT, ROSA, THREAD_ID, Office, an_actor

SECRET = "xoxb-" + "1234567890-1234567890-abcdefghijklmnopqrstuvwx"
SILENT = "The agent couldn't answer."


async def a_counter(storage: SqliteStores, *turns: Any, **changes: Any) -> Counter:
    """A card that waits; the agent's next words are its answer."""
    office = await asked(storage, TWO, turns_of_model=[PAY, *turns], **changes)
    return Counter.on(office)


async def ask(counter: Counter, text: str = "what is it for?", *, runs: bool = True) -> str:
    """Ask the agent by the form, and give what that says against it; or leave the work undone."""
    counter.office.clock.forward(seconds=1)
    approval = await counter.office.the_approval()
    values = {**typed("question", text), **picked("whom", AGENT)}
    sent = a_submission(approval, ActionId.ASK_BACK_MODAL, values, ADA)
    if runs:
        return str((await counter.send(sent)).body)
    name, actor = approval.approval_id, an_actor(ADA)
    office = counter.office
    asking = SecondaryActions(
        office.storage, office.approvals, office.clock, office.explanations.offered
    )
    await asking.ask(name, actor, shown=approval.digest, text=text, to=AGENT)
    await counter.office.attendance.attend(name)
    return ""


async def question_of(counter: Counter) -> Comment:
    (question,) = (await counter.office.the_approval()).dialog
    return question


class Talker(ChatModelAgent):
    """An agent whose answers a test makes."""

    answer: Callable[[str, str], Awaitable[str]]

    async def explain(self, about: str, question: str) -> str:
        return await self.answer(about, question)


def talking(answer: Callable[[str, str], Awaitable[str]]) -> Callable[[ScriptedModel], Talker]:
    def make(model: ScriptedModel) -> Talker:
        maker = Office.__new__(Office)
        maker.is_gated = True
        agent = Talker(name="A", model=model, tools=maker._tools())
        agent.answer = answer
        return agent

    return make


async def test_the_agent_answers_on_the_card_and_decides_nothing(storage: SqliteStores) -> None:
    counter = await a_counter(storage, say("It pays Mia for lunch."))
    office = counter.office
    before = await office.the_approval()
    assert await ask(counter) == ""

    question = await question_of(counter)
    assert (question.to, question.by) == (AGENT, ADA)
    assert (question.answer, question.answered_by) == ("It pays Mia for lunch.", AGENT)
    ((ts, by, text, mentions),) = office.notifier.questions.values()
    assert (ts, by, text, mentions) == (question.ts, ADA, "what is it for?", ())
    assert office.notifier.closed_questions == [(ts, "what is it for?", "answered")]
    after = await office.the_approval()
    assert "for lunch" in str(office.notifier.cards[after.approval_id].dialog)
    assert (after.votes, after.expires_ms, after.digest, after.requesters) == (
        before.votes,
        before.expires_ms,
        before.digest,
        before.requesters,
    )
    entries = [
        entry for entry in await story(storage, thread_id=THREAD_ID) if entry.action == "asked_back"
    ]
    assert [entry.actor_id for entry in entries] == [ADA, AGENT]
    assert entries[1].detail["reply"] == "It pays Mia for lunch."
    assert "The agent answered: “It pays Mia for lunch.”" in str(history_blocks(entries, after))
    assert office.model.tools[-1] == ()
    assert office.ran == []


async def test_the_form_offers_the_agent_only_where_it_answers(storage: SqliteStores) -> None:
    counter = await a_counter(storage)
    await counter.send(a_click(await counter.office.the_approval(), ActionId.ASK_BACK, ADA))
    assert "The agent" in str(counter.views.opened[-1])

    async def no_agent(_: Approval) -> None:
        return None

    counter.office.__dict__["explanations"] = Explanations(no_agent, storage.log)
    mute = Counter.on(counter.office)
    await mute.send(a_click(await counter.office.the_approval(), ActionId.ASK_BACK, ADA))
    assert "The agent" not in str(mute.views.opened[-1])
    assert await ask(mute) != ""
    assert (await counter.office.the_approval()).dialog == ()


async def test_an_agent_that_is_not_known_now_is_not_offered(storage: SqliteStores) -> None:
    async def broken(_: Approval) -> None:
        raise CheckpointError("x", "it cannot be read")

    assert not await Explanations(broken, storage.log).offered(an_approval())


@pytest.mark.parametrize(
    ("whom", "person"),
    [
        ("Agent", ""),
        ("agent ", ""),
        ("UADA", ""),
        ("U0AGENT", ""),
        ("everybody", ""),
        ("other", AGENT),  # nobody is the agent
    ],
)
async def test_what_the_form_does_not_have_asks_nobody(
    storage: SqliteStores, whom: str, person: str
) -> None:
    counter = await a_counter(storage)
    approval = await counter.office.the_approval()
    other = {"person": {"countersign:value": {"selected_user": person}}}
    values = {**typed("question", "why?"), **picked("whom", whom), **other}
    await counter.send(a_submission(approval, ActionId.ASK_BACK_MODAL, values, ADA))
    assert (await counter.office.the_approval()).dialog == ()


async def test_no_reply_in_the_thread_is_the_agents_answer(storage: SqliteStores) -> None:
    counter = await a_counter(storage)
    await ask(counter, runs=False)
    office = counter.office
    waiting, office.queue.waiting = office.queue.waiting, []
    for user in (ROSA, AGENT):
        office.clock.forward(seconds=1)
        ts = f"{office.clock() / 1_000:.6f}"
        await counter.send(an_event(text="it is fine", thread_ts=ROOT, ts=ts, user=user))
    assert (await question_of(counter)).is_open
    for coroutine in waiting:
        coroutine.close()


@pytest.mark.parametrize("turn", [RuntimeError("down"), say(""), say(" \n "), call("pay", {})])
async def test_a_model_without_an_answer_ends_the_question(
    storage: SqliteStores, turn: Any, caplog: pytest.LogCaptureFixture
) -> None:
    counter = await a_counter(storage, turn)
    await ask(counter)
    assert (await question_of(counter)).answer == SILENT
    assert counter.office.notifier.closed_questions[0][2] == "answered"
    failed = [
        record
        for record in caplog.records
        if record.__dict__.get("action") == "question_unanswered"
    ]
    assert len(failed) == isinstance(turn, Exception)


async def test_an_answer_that_takes_too_long_is_none(storage: SqliteStores) -> None:
    async def never(_: str, __: str) -> str:
        await asyncio.Event().wait()
        return "late"

    counter = await a_counter(
        storage, make_agent=talking(never), explain_patience=timedelta(milliseconds=1)
    )
    await ask(counter)
    assert (await question_of(counter)).answer == SILENT


async def test_a_question_whose_process_dies_is_put_again_by_another(storage: SqliteStores) -> None:
    counter = await a_counter(storage)
    office = counter.office
    await ask(counter, runs=False)
    assert (await question_of(counter)).ts
    office.queue.drop()

    other = an_office(
        storage,
        TWO,
        turns_of_model=[say("For lunch.")],
        clock=office.clock,
        notifier=office.notifier,
        owner="other",
    )
    await other.later(seconds=1)
    assert (await question_of(counter)).is_open
    other.clock.forward(seconds=EXPLAIN_AGAIN.total_seconds())
    await other.later()
    assert (await question_of(counter)).answer == "For lunch."
    assert len(office.notifier.questions) == 1


async def test_what_is_decided_meanwhile_keeps_no_answer(storage: SqliteStores) -> None:
    async def answer(_: str, __: str) -> str:
        for by in (ADA, BEN, MIA):
            await counter.office.decide_meanwhile(await counter.office.the_approval(), by=by)
        return "For lunch."

    counter = await a_counter(storage, say("Paid."), make_agent=talking(answer))
    approval = await counter.office.the_approval()
    await ask(counter)
    left = await storage.approvals.get(approval.approval_id)
    assert left.status is Status.APPROVED
    assert left.dialog[0].answer == ""
    assert [question[2] for question in counter.office.notifier.closed_questions] == ["over"]


async def test_an_answer_about_what_was_edited_meanwhile_is_not_kept(storage: SqliteStores) -> None:
    counter = await a_counter(storage, say("As it was."), say("As it is."))
    office = counter.office
    await ask(counter, runs=False)
    office.queue.drop()
    answers, approval = answers_of(office), await office.the_approval()

    answers.ask_agent(approval.changed(digest="as it was"))
    await office.queue.run()
    assert (await question_of(counter)).is_open
    answers.ask_agent(approval)
    await office.queue.run()
    assert (await question_of(counter)).answer == "As it is."


def answers_of(office: Office, *, seen: list[str] | None = None) -> AgentAnswers:
    """The same as in a process of its own; it draws no cards."""

    async def attend(approval_id: str) -> None:
        if seen is not None:
            seen.append(approval_id)

    return AgentAnswers(
        storage=office.storage,
        clock=office.clock,
        explain=office.explanations.answer,
        spawn=office.queue.spawn,
        attend=attend,
    )


async def test_what_is_deleted_or_over_is_left(storage: SqliteStores) -> None:
    counter, seen = await a_counter(storage, say("For lunch.")), list[str]()
    answers = answers_of(counter.office, seen=seen)
    question = Comment(by=ADA, text="why?", at_ms=1, ts="1.1", to=AGENT)
    gone = with_exchange(an_approval(approval_id="apr_gone"), None, question)
    answers.ask_agent(gone.changed(status=Status.CANCELLED))
    assert counter.office.queue.waiting == []
    answers.ask_agent(gone)
    await counter.office.queue.run()
    assert seen == ["apr_gone"]


async def test_the_agent_gets_what_people_may_see_and_no_secret(storage: SqliteStores) -> None:
    history: list[ModelMessage] = [
        ModelRequest(
            parts=[
                UserPromptPart(f"please pay with {SECRET} {'x' * 2_000}"),
                UserPromptPart(["several", "pieces"]),
                ToolReturnPart("look", "the vault code is 7391", tool_call_id="c0"),
            ]
        ),
        *[ModelRequest(parts=[UserPromptPart(f"words {n}")]) for n in range(9)],
    ]
    paying = call("pay", {"to": SECRET, "amount": 5}, id="c1")
    office = an_office(storage, TWO, turns_of_model=[say("Hello."), paying, say(f"With {SECRET}.")])
    await office.hear(ASK)
    counter = Counter.on(office)
    approval = await office.asked("<@UBOT> go on", ts="1800000001.000001", thread_ts=ROOT)
    assert approval.checkpoint_id.endswith("#2")
    await ask(counter, f"is it {SECRET}? {'y' * 2_000}")

    prompt = str(office.model.inputs[-1])
    assert SECRET not in prompt
    assert "Tool: pay" in prompt
    assert '"amount": 5' in prompt
    assert "- agent: Hello." in prompt
    question = await question_of(counter)
    assert question.answer.startswith("With ")
    assert SECRET not in str(await story(storage, thread_id=THREAD_ID)) + question.answer
    assert len(question.text) <= LONGEST_ASKED

    log_id = "T1:C1:other"
    await storage.log.append(log_id, 1, log_text(history))
    abouts: list[str] = []

    async def note(about: str, _: str) -> str:
        abouts.append(about)
        return ""

    agent = talking(note)(ScriptedModel([]))

    async def find(_: Approval) -> Talker:
        return agent

    about = an_approval(thread_id=log_id, turn=2)
    assert await Explanations(find, storage.log).answer(about, "why?") == ""
    said = abouts[0].partition("Said before, oldest first:\n")[2].splitlines()
    assert len(said) == 10
    assert len(said[0]) < 600
    assert SECRET not in abouts[0]
    assert "7391" not in abouts[0]


async def test_an_agent_without_answers_gives_none(storage: SqliteStores) -> None:
    office = Office(storage, [], make_agent=lambda _: nobody())
    assert not await office.explanations.offered(an_approval())
    assert await office.explanations.answer(an_approval(), "why?") is None


async def look(office: Office) -> None:
    await office.later(seconds=31)


async def test_11_19_a_question_waits_for_the_end_of_a_freeze_of_turns(
    storage: SqliteStores,
) -> None:
    counter = await a_counter(storage, say("For lunch."))
    office = counter.office
    await office.freezes.freeze(FreezeScope(), by="cli:root@db1", why="wild", turns=True)
    assert await ask(counter) == ""
    await look(office)
    question = await question_of(counter)
    assert (question.is_open, bool(question.ts)) == (True, True)
    await office.freezes.lift("f1", by=ADA, why="tame")
    await look(office)
    assert (await question_of(counter)).answer == "For lunch."


async def test_11_19_an_answer_that_comes_after_a_freeze_of_turns_is_dropped(
    storage: SqliteStores,
) -> None:
    offices: list[Office] = []

    async def answer(_: str, __: str) -> str:
        await offices[0].freezes.freeze(FreezeScope(), by=ADA, why="wild", turns=True)
        return "For lunch."

    counter = await a_counter(storage, make_agent=talking(answer))
    offices.append(counter.office)
    assert await ask(counter) == ""
    assert (await question_of(counter)).is_open


@pytest.mark.parametrize("turns", [False, True])
async def test_11_19_a_freeze_of_calls_alone_stops_no_answer(
    storage: SqliteStores, *, turns: bool
) -> None:
    counter = await a_counter(storage, say("For lunch."))
    kind = ScopeKind.TOOL if turns else ScopeKind.AGENT
    scope = FreezeScope(kind=kind, name="pay" if turns else "A")
    await counter.office.freezes.freeze(scope, by=ADA, why="wild", turns=turns)
    await ask(counter)
    assert (await question_of(counter)).answer == "For lunch."
