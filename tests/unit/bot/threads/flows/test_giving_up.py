"""Turns that cannot go on: nothing that people wrote is lost, and all are told the truth."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai.exceptions import (
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
)

from agents import AgentEvent, Cancelled, CancelToken, ResumeParams
from agents.core.checkpoint import CheckpointStatus
from agents.core.errors import (
    AgentChangedError,
    CheckpointConflictError,
    ResumeError,
)
from agents.core.messages import read_log
from agents.models import call, say
from agents.runs.document import OpenRun
from bot.approvals.changes import decided, edited
from bot.records.approval import Approval, Decision, Status, StoredEdits
from bot.records.approval_queries import of_turn
from bot.records.messages import MessageStatus, Post
from bot.threads.worker import MAX_ATTEMPTS
from storage.errors import RecordRefusedError
from tests.chaos.points import Fragile
from tests.contract.builders import a_post
from tests.support.decided import decide
from tests.support.halves import first
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, THREAD_ID, KilledError, Office

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
MORE = call("pay", {"to": "Ben", "amount": 7}, id="c2")
ASK = "<@UBOT> pay Mia"
DOWN = RuntimeError("down")


async def pass_time(office: Office, *, times: int = 8) -> None:
    """Let the sweep find what is due, until everything was tried often enough or rests."""
    for _ in range(times):
        await office.later(minutes=10)
        if (await office.storage.threads.get(THREAD_ID)).due_ms is None:
            return


@pytest.mark.parametrize(
    ("quick", "status", "words"),
    [
        ("approve", Status.CANCELLED, "It was approved, but the decision couldn't be used"),
        ("reject", Status.REJECTED, ""),
        ("edit", Status.SUPERSEDED, "no longer needs this"),
    ],
)
async def test_i8_who_is_quicker_than_the_end_of_a_turn_leaves_no_card_that_lies(
    storage: SqliteStores, quick: str, status: Status, words: str
) -> None:
    office = Office(storage, [PAY])
    waits = await office.asked(ASK)
    replace = storage.approvals.replace

    async def somebody_is_quicker(
        document: Approval, *, based_on: Approval, **options: Any
    ) -> Approval:
        if document.decision is None:
            return await replace(document, based_on=based_on, **options)
        storage.approvals.replace = replace  # type: ignore[method-assign]
        now, digest = office.clock(), waits.digest
        if quick == "edit":
            changed = waits.changed(digest="e" * 64, edits=StoredEdits(by=ADA))
            first = edited(based_on, changed, unedited=based_on, now_ms=now)
        else:
            said = Status.APPROVED if quick == "approve" else Status.REJECTED
            yes = Decision(status=said, by=ADA, at_ms=now, digest=digest)
            first = decided(based_on, yes, digest=digest)
        assert first is not None
        await replace(first, based_on=based_on, writes_due=True)
        return await replace(document, based_on=based_on, **options)

    storage.approvals.replace = somebody_is_quicker  # type: ignore[method-assign]
    await office.turns.close_answered(await storage.threads.get(THREAD_ID))
    await office.later()
    ended = await storage.approvals.get(waits.approval_id)
    assert (ended.status, ended.open) == (status, False)
    assert ended.decision is not None
    assert words in ended.decision.reason
    assert office.notifier.cards[waits.approval_id].status is status
    assert office.ran == []


def http_error(status: int, **headers: str) -> ModelHTTPError:
    return ModelHTTPError(status, "m", headers=headers)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConnectionError("refused"), "I can't reach the model. I'll keep trying until {time}."),
        (http_error(503), "I can't reach the model. I'll keep trying until {time}."),
        (http_error(429), "The model is busy. I'll keep trying until {time}."),
        (KeyError("choices"), "The model's answer can't be read. I'll keep trying until {time}."),
    ],
)
async def test_a_thread_is_told_at_once_that_its_model_fails(
    storage: SqliteStores, error: Exception, text: str
) -> None:
    office = Office(storage, [error, error, say("Here I am.")])
    await office.hear(ASK)
    assert office.shown() == [text]
    (post,) = await posts_of(storage)
    assert timedelta(0) < waits_until(post, office) < timedelta(minutes=4)
    await pass_time(office, times=1)
    assert office.shown() == [text]  # the same message, with another time
    await pass_time(office, times=1)
    assert office.shown() == ["I couldn't reach the model until {time}.", "Here I am."]


async def test_a_stop_ends_the_wait_for_a_model(storage: SqliteStores) -> None:
    office = Office(storage, [DOWN])
    await office.hear(ASK)
    await office.hear("stop", ts="1800000000.000002")
    gone, stopped = office.shown()
    assert gone == "I couldn't reach the model, and stopped trying at {time}."
    assert stopped.startswith("Stopped by urosa.")
    assert office.model.calls == 1


async def test_a_provider_is_asked_again_when_it_wishes(storage: SqliteStores) -> None:
    office = Office(storage, [http_error(429, **{"retry-after": "60"}), say("Here I am.")])
    await office.hear(ASK)
    thread = await storage.threads.get(THREAD_ID)
    assert thread.due_ms == office.clock() + 60_000


async def test_a_provider_that_wishes_for_too_long_is_given_up(storage: SqliteStores) -> None:
    office = Office(storage, [http_error(429, **{"retry-after": "3600"})])
    await office.hear(ASK)
    (text,) = office.shown()
    assert "The model is busy for 1h. Please ask again after that." in text


async def posts_of(storage: SqliteStores) -> Sequence[Post]:
    thread = await storage.threads.get(THREAD_ID)
    post = await storage.posts.get(f"{thread.checkpoint_id}/model")
    return [post] if post is not None else []


def waits_until(post: Post, office: Office) -> timedelta:
    return timedelta(milliseconds=post.time_ms - office.clock())


async def test_what_people_wrote_meanwhile_is_read_at_once(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, *[DOWN] * 6, say("I read it.")])
    await office.hear(ASK)
    await office.hear("and tell me how it went", ts="1800000000.000002")
    await office.decide(await office.the_approval())
    await pass_time(office)
    assert "couldn't finish" in office.shown()[-2]
    assert office.shown()[-1] == "I read it."
    assert "how it went" in str(office.model.inputs[-1])
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.turn, thread.turn_open, thread.due_ms) == (2, False, None)


async def test_i4_who_was_overtaken_after_a_long_outage_ends_no_turn(storage: SqliteStores) -> None:
    """Slack was away for many attempts; then another process writes first, once."""
    office = Office(storage, [say("I read it.")])
    office.notifier.failing.add("say")
    await office.hear(ASK)
    await pass_time(office)
    office.notifier.failing.clear()
    assert (await storage.threads.get(THREAD_ID)).attempts >= MAX_ATTEMPTS
    with_conflict = storage.posts.unfinished

    async def overtaken(thread_id: str) -> Sequence[Post]:
        storage.posts.unfinished = with_conflict  # type: ignore[method-assign]
        raise CheckpointConflictError(thread_id)

    storage.posts.unfinished = overtaken  # type: ignore[method-assign]
    await pass_time(office, times=2)
    assert office.shown() == ["I read it."]


async def test_the_next_turn_knows_of_the_one_that_was_given_up(storage: SqliteStores) -> None:
    office = Office(storage, [*[DOWN] * 6, say("Sorry about that.")])
    await office.hear("<@UBOT> pay Mia forty")
    await pass_time(office)
    await office.hear("<@UBOT> what happened?", ts="1800000000.000002")
    prompt = str(office.model.inputs[-1])
    assert "pay Mia forty" in prompt
    assert "This turn could not be finished" in prompt
    assert "may have run" in prompt
    (entry,) = await storage.log.load(THREAD_ID, before_turn=2)
    assert len(read_log([entry])) == 2


class Deadly:
    """Kills the process at one of the points before and after each write, from the last word on."""

    def __init__(self, number: int) -> None:
        self.number, self.reached = number, 0

    def at(self, name: str) -> None:
        self.reached += self.reached > 0 or name == "posts.add <"
        if self.reached == self.number:
            raise KilledError(name)


@pytest.mark.parametrize(
    "is_refused", first(1, [True, False]), ids=["refused answer", "model away"]
)
async def test_a_turn_that_was_given_up_is_ended_whole_whatever_write_was_the_last(
    *, is_refused: bool
) -> None:
    number, died = 0, True
    while died:
        number += 1
        storage = SqliteStores(None)
        await storage.open()
        died = await die_while_giving_up(storage, Deadly(number), is_refused=is_refused)
        stored = await storage.checkpoints.load(f"{THREAD_ID}#1")
        assert stored is not None
        assert (stored.status, stored.data, stored.journal) == (CheckpointStatus.CLOSED, "", ())
        thread = await storage.threads.get(THREAD_ID)
        assert (thread.turn, thread.turn_open, thread.due_ms) == (1, False, None)
        assert await storage.posts.unfinished(THREAD_ID) == []
        assert len(await storage.log.load(THREAD_ID, before_turn=2)) == 1
        (approval,) = await of_turn(storage.approvals, f"{THREAD_ID}#1")
        assert approval.open is False
        assert (approval.status is Status.CANCELLED) == is_refused
        await storage.close()
    assert number > 15


async def die_while_giving_up(storage: SqliteStores, plan: Deadly, *, is_refused: bool) -> bool:
    """Give a turn up, die, and have another process go on; whether there was such a point."""
    fragile: Any = Fragile(storage, plan)  # type: ignore[arg-type]
    offices = [Office(fragile, [PAY, *[DOWN] * 9])]
    offices.append(Office(storage, [DOWN] * 9, clock=offices[0].clock))
    if is_refused:
        for office in offices:
            refusing(office, AgentChangedError("tool:pay", "review", "nothing"))
    first, second = offices
    await first.hear(ASK)
    try:
        await first.decide(await first.the_approval())
        await pass_time(first)
    except KilledError:
        first.queue.drop()
    died = plan.reached == plan.number
    if died:
        await pass_time(second)
    assert len([text for text in first.shown() + second.shown() if "nothing more" in text]) >= 1
    assert len(first.ran + second.ran) == (0 if is_refused else 1)
    return died


async def test_the_last_word_is_repeated_until_slack_takes_it(storage: SqliteStores) -> None:
    office = Office(storage, [DOWN] * 6)
    await office.hear(ASK)
    office.notifier.failing.add("say")
    await pass_time(office)
    assert office.shown() == ["I can't reach the model. I'll keep trying until {time}."]
    thread = await storage.threads.get(THREAD_ID)
    assert not thread.turn_open
    assert thread.due_ms is not None
    office.notifier.failing.clear()
    await pass_time(office, times=1)
    gone, given_up = office.shown()
    assert gone == "I couldn't reach the model, and stopped trying at {time}."
    assert "couldn't finish" in given_up
    assert (await storage.threads.get(THREAD_ID)).due_ms is None


async def test_a_text_that_was_growing_is_ended(storage: SqliteStores) -> None:
    office = Office(storage, [DOWN] * 6)
    await storage.posts.add(a_post(f"{THREAD_ID}#1:m1", thread_id=THREAD_ID, text="", ts="9.9"))
    await storage.posts.add(a_post(f"{THREAD_ID}#1:m2", thread_id=THREAD_ID, text=""))
    await office.hear(ASK)
    await pass_time(office)
    assert office.notifier.ended == ["9.9"]
    assert await storage.posts.unfinished(THREAD_ID) == []


async def test_messages_that_cannot_be_sorted_reach_no_agent(storage: SqliteStores) -> None:
    office = Office(storage, [say("Hello.")])
    check = office.access.check_person

    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    office.inbox = replace(office.inbox, access=Broken(broken))  # type: ignore[arg-type]
    office.threads = replace(office.threads, inbox=office.inbox)
    office.sweep = replace(office.sweep, threads=office.threads)
    await office.hear("<@UBOT> secret words")
    await pass_time(office)
    assert len(office.shown()) == 1
    assert "wrong on my side" in office.shown()[0]
    (message,) = await storage.inbox.of_turn(THREAD_ID, -1)
    assert message.status is MessageStatus.TAKEN
    office.inbox = replace(office.inbox, access=Broken(check))  # type: ignore[arg-type]
    office.threads = replace(office.threads, inbox=office.inbox)
    await office.hear("<@UBOT> hi", ts="1800000000.000002")
    assert office.shown()[-1] == "Hello."
    assert "secret words" not in str(office.model.inputs)


class Broken:
    """Decides nothing about people but what a test says."""

    def __init__(self, check_person: object) -> None:
        self.check_person = check_person
        self.directory = self

    async def is_in(self, _: str) -> bool:
        return True

    async def locale(self, _: str) -> str:
        return ""


async def test_a_turn_that_is_too_large_is_ended_at_once(storage: SqliteStores) -> None:
    office = Office(storage, [say("Hello.")])

    async def too_large(*_: object, **__: object) -> None:
        raise RecordRefusedError("17 MB")

    storage.checkpoints.save = too_large  # type: ignore[method-assign,assignment]
    await office.hear(ASK)
    assert "too large" in office.shown()[-1]
    assert not (await storage.threads.get(THREAD_ID)).turn_open


# ---- answers that the run refuses ----------------------------------------------------------------


async def test_a_refused_answer_cancels_itself_and_nothing_else(storage: SqliteStores) -> None:
    office = Office(storage, [[PAY, MORE], say("One of two.")])
    await office.hear(ASK)
    first, second = await office.open_approvals()
    # As if another release had recorded a decision about something else than was shown.
    other = Decision(status=Status.APPROVED, by=ADA, at_ms=office.clock(), digest="0" * 64)
    decided = await decide(storage.approvals, first.approval_id, other, digest=first.digest)
    office.queue.spawn(office.approvals.follow_up(decided))
    await office.queue.run()

    withdrawn = await storage.approvals.get(first.approval_id)
    assert withdrawn.status is Status.CANCELLED
    assert withdrawn.decision is not None
    assert "couldn't be used" in withdrawn.decision.reason
    assert office.notifier.cards[first.approval_id].status is Status.CANCELLED
    assert office.ran == []
    untouched = await storage.approvals.get(second.approval_id)
    assert (untouched.status, untouched.shown_revision) == (Status.PENDING, 1)

    await office.decide(second, by=BEN)
    assert office.ran == [("pay", ("Ben", 7, "card"))]
    assert "couldn't be used" in str(office.model.inputs[-1])
    assert office.shown()[-1] == "One of two."
    assert (await office.acts()).count("unusable") == 1


def refusing(office: Office, error: ResumeError, *, only: str = "") -> None:
    """From now on the run refuses answers (or those of one tool call) before anything runs."""
    resume = office.runner.resume_with_params

    async def refuse(
        checkpoint_id: str, params: ResumeParams, *, cancel: CancelToken, run: OpenRun
    ) -> AsyncIterator[AgentEvent]:
        answers = [answer for key, answer in params.targets.items() if only in ("", key)]
        if any(not isinstance(answer, Cancelled) for answer in answers) or (answers and not only):
            raise error
        async for event in resume(checkpoint_id, params, cancel=cancel, run=run):
            yield event

    office.runner.resume_with_params = refuse  # type: ignore[method-assign,assignment]


async def test_i12_a_yes_of_which_a_run_was_never_told_is_withdrawn_with_its_turn(
    storage: SqliteStores,
) -> None:
    """Somebody says yes to the second call while the first ends its process, three times."""
    office = Office(storage, [[PAY, MORE]], dies_in_tools=True)
    await office.hear(ASK)
    first, second = await office.open_approvals()
    with pytest.raises(KilledError):
        await office.decide(first)
    office.queue.drop()
    yes = Decision(status=Status.APPROVED, by=BEN, at_ms=office.clock(), digest=second.digest)
    await decide(storage.approvals, second.approval_id, yes, digest=second.digest)
    for _ in range(2):
        office.clock.forward(seconds=15)
        now = office.clock()
        held = await storage.threads.claim(THREAD_ID, owner="x", now_ms=now, until_ms=now + 9_000)
        assert held is not None
        await storage.threads.count_crash(THREAD_ID, fence=held.fence)
    other = Office(storage, [], clock=office.clock)
    await pass_time(other, times=2)
    assert "This stopped my process 3 times" in other.shown()[-1]
    ends = [await storage.approvals.get(approval.approval_id) for approval in (first, second)]
    assert [(approval.status, approval.open) for approval in ends] == [
        (Status.APPROVED, False),
        (Status.CANCELLED, False),
    ]
    audit = await storage.audit.of_thread(THREAD_ID, limit=99)
    actions = {entry.action for entry in audit if entry.approval_id == second.approval_id}
    assert {"decided", "unusable"} <= actions
    assert "resumed" not in actions
    assert other.ran == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModelAuthenticationError("gpt-55", "sk-key"), "rejected my key. Retrying won't help"),
        (ModelNotFoundError("gpt-55", "no"), "The model “gpt-55” isn't available"),
        (ModelQuotaExceededError("gpt-55", "no"), "used up its quota for the model"),
        (ModelContextWindowExceededError("gpt-55", "no"), "can't handle a conversation this long"),
        (ModelRequestRejectedError("gpt-55", "no"), "The model “gpt-55” rejected what I sent"),
    ],
)
async def test_a_model_that_refuses_for_good_is_asked_once_and_named_at_once(
    storage: SqliteStores, error: Exception, words: str
) -> None:
    office = Office(storage, [error, say("never")])
    await office.hear(ASK)
    (text,) = office.shown()
    assert text.startswith("I couldn't finish this, and nothing more will run. ")
    assert words in text
    assert "sk-key" not in text
    assert "try later" not in text
    assert office.model.calls == 1
    await pass_time(office)
    assert office.model.calls == 1
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.turn_open, thread.due_ms) == (False, None)


# ---- turns in which nothing is said --------------------------------------------------------------


async def test_a_turn_without_a_word_says_so(storage: SqliteStores) -> None:
    office = Office(storage, [call("look", {"what": "x"}, id="c1"), say("  ")])
    await office.hear(ASK)
    assert office.shown() == ["The agent finished without a message."]
    assert await storage.posts.unfinished(THREAD_ID) == []


async def test_a_turn_with_a_card_needs_no_more_words(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, say(" ")])
    await office.hear(ASK)
    await office.decide(await office.the_approval())
    assert len(office.ran) == 1
    assert office.shown() == []
