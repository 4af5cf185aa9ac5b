"""I8: no surface tells of a success what did not succeed, whatever was decided and came of it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from itertools import product
from logging.handlers import BufferingHandler
from typing import Any

import pytest

from bot.approvals.due.thread_reactions import sign_of
from bot.approvals.execution import execution_of
from bot.approvals.outcome import outcome_of
from bot.approvals.overview import HomeData
from bot.audit.acts import Act
from bot.audit.report import line
from bot.commands.audit import short_line
from bot.errors import ApprovalClosedError
from bot.layout.blocks import Card
from bot.observability.events import EntriesWritten
from bot.observability.logs import StepLog
from bot.ports.people import Person
from bot.ports.threads import BatchWords
from bot.records.approval import (
    Approval,
    CastVote,
    Emergency,
    Execution,
    ExecutionState,
    Kind,
    Status,
    StoredBatch,
    StoredEdits,
)
from bot.slack.cards.batch import list_modal
from bot.slack.cards.batch_card import batch_card
from bot.slack.cards.card_for import card_for
from bot.slack.cards.details import history_blocks
from bot.slack.cards.modals import late_modal
from bot.slack.cards.review import HISTORY, FormReader, review_modal
from bot.slack.home.state import HomeState, Shown
from bot.slack.home.view import HomePage, home_view
from bot.slack.messages.reactions import REACTIONS
from bot.slack.side_messages.notices import root_card, summary_card
from bot.slack.side_messages.reminders import concluded_text
from storage.audit import AuditEntry
from tests.unit.bot.slack.cards.samples import (
    DECIDED,
    a_feedback,
    a_human,
    a_question,
    a_step,
    an_approval,
    decided,
)
from tests.unit.bot.slack.cards.test_every_builder import NAMES, READER

BASES = (
    an_approval(),
    an_approval(kind=Kind.DOUBT),
    a_step(),
    a_question(),
    a_feedback(),
    a_human("accept", "edit", "response", "ignore"),
)
YES = {Status.APPROVED, Status.ANSWERED}
ERROR = "no answer from the bank"
TEXTS = {
    ExecutionState.STARTED: "",
    ExecutionState.ENDED: "paid",
    ExecutionState.FAILED: ERROR,
    ExecutionState.LAPSED: "its approver has left",
    ExecutionState.DOUBT: "",
}
SUCCESS = re.compile(r"✅|white_check_mark|\bran\b|\bdone\b", re.IGNORECASE)
"""What says that something succeeded."""
DENIED = re.compile(r"(?:nothing|may have|have|didn't|whether this|what) ran?\b", re.IGNORECASE)
"""Sentences that say the contrary."""


def all_ended() -> Iterator[Approval]:
    """Every way to decide, with every execution that can follow."""
    runs = [
        Execution(),
        *(
            Execution(state=state, at_ms=DECIDED + 60_000, text=text)
            for state, text in TEXTS.items()
        ),
    ]
    for base, status in product(BASES, set(Status) - {Status.PENDING}):
        for approval in decided_as(base, status):
            if status in YES and not (base.kind is Kind.DOUBT and status is Status.ANSWERED):
                yield from (approval.changed(execution=run) for run in runs)
            else:
                yield approval


def decided_as(base: Approval, status: Status) -> Iterator[Approval]:
    """The same request decided by one, by two, by nobody, with an edit, by an override."""
    if base.kind is Kind.DOUBT and status in YES:
        choice = "again" if status is Status.APPROVED else "ran"
        yield decided(base, status, answer={"choice": choice, "result": ""})
        return
    yield decided(base, status)
    if status not in YES:
        yield decided(base, status, by="", reason="as agreed")
    if status is not Status.APPROVED or base.kind is not Kind.APPROVAL:
        return
    yield decided(base, status).changed(votes=(a_vote("U0ADA"), a_vote("U0BEN")))
    yield decided(base, status, arguments={"version": "9.9.9"}, reason="as agreed")
    yield decided(base, status).changed(edits=StoredEdits(by="U0ADA"), votes=(a_vote("U0BEN"),))
    glass = Emergency(what="The site is down.", why_now="It gets worse.")
    yield decided(base, status, emergency=glass)


def a_vote(by: str) -> CastVote:
    return CastVote(by=by, choice="approve", at_ms=DECIDED, digest="d1" * 32)


def succeeded(approval: Approval) -> bool:
    """Whether the call ran; of what runs nothing, whether people gave what was asked for."""
    if (execution := execution_of(approval)) is not None:
        return execution.state is ExecutionState.ENDED
    if approval.kind is Kind.DOUBT:
        return approval.status is Status.ANSWERED
    return approval.status is Status.ANSWERED and approval.kind is Kind.QUESTION


def surfaces_of(approval: Approval) -> Iterator[tuple[str, str]]:
    """What each surface says of an approval: its name and all its texts and emoji."""
    yield "card", words(card_for(approval, approvers_text=""))
    yield "details", words(review_modal(approval, FormReader()))
    history = history_blocks(entries_of(approval), approval)
    yield "history", words(review_modal(approval, FormReader(), page=HISTORY, history=history))
    ben = Person(user_id="U0BEN", team_id="T1", name="Ben")
    data = HomeData(person=ben, at_ms=DECIDED, ended=(approval,))
    for show in (Shown.WAITING, Shown.DECIDED):
        home = HomePage(overview=data, state=HomeState(show=show), names=NAMES, reader=READER)
        yield f"home {show}", words(home_view(home))
    batch = [approval.changed(batch=StoredBatch(owner_id=approval.approval_id))]
    yield "batch", words(batch_card(batch, BatchWords(), approvers_text=""))
    yield "batch details", words(list_modal(batch, ""))
    yield "root", words(root_card(approval, who="", link=""))
    yield "sign", REACTIONS[sign_of(approval)]
    yield "summary", words(summary_card([approval]))
    yield "reminder", words(concluded_text(approval))
    yield "late form", words(late_modal(approval))
    yield "late click", str(ApprovalClosedError(approval))
    yield "audit show", "\n".join(map(line, entries_of(approval)))
    yield "audit list", "\n".join(map(short_line, entries_of(approval)))
    yield "log", logged(entries_of(approval))


def logged(entries: list[AuditEntry]) -> str:
    """What the log has of these entries, as text."""
    handler, logger = BufferingHandler(capacity=99), logging.getLogger(StepLog.__module__)
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        StepLog()(EntriesWritten(entries))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    return "\n".join(
        f"{record.getMessage()} {vars(record).get('outcome', '')}" for record in handler.buffer
    )


def entries_of(approval: Approval) -> list[AuditEntry]:
    """What the audit has of its end and its execution."""
    run = execution_of(approval)
    acts: list[tuple[Act, dict[str, object]]] = [
        (
            Act.DECIDED,
            {"status": str(approval.status), "kind": str(approval.kind), "tool": approval.tool},
        )
    ]
    if run is not None and run.state is not ExecutionState.LAPSED:
        acts.append((Act.STARTED, {}))
    if run is not None and run.state in {ExecutionState.ENDED, ExecutionState.FAILED}:
        evidence = {"outcome": str(outcome_of(approval)), "tool": approval.tool}
        acts.append((Act.EXECUTED, {**evidence, "error": run.text}))
    return [
        AuditEntry(
            entry_id=str(n),
            at_ms=DECIDED + n,
            action=str(act),
            thread_id=approval.thread_id,
            approval_id=approval.approval_id,
            actor_id="U0BEN",
            detail=evidence,
        )
        for n, (act, evidence) in enumerate(acts)
    ]


def words(shown: Card | dict[str, Any]) -> str:
    """The texts and the names of emoji of a surface."""
    blocks, text = (shown.blocks, shown.text) if isinstance(shown, Card) else (shown, "")
    return "\n".join([text, *_texts(blocks)])


def _texts(part: object) -> Iterator[str]:
    if isinstance(part, list | tuple):
        for inner in part:
            yield from _texts(inner)
    elif isinstance(part, dict):
        if part.get("type") == "emoji":
            yield str(part["name"])
        for name, inner in part.items():
            if name == "text" and isinstance(inner, str):
                yield inner
            elif name not in {"accessibility_label", "options", "initial_option"}:
                yield from _texts(inner)


def test_no_surface_tells_of_a_success_what_did_not_succeed() -> None:
    claims = [
        (name, str(approval.execution.state), approval.status, text)
        for approval in all_ended()
        if not succeeded(approval)
        for name, text in surfaces_of(approval)
        if SUCCESS.search(DENIED.sub("", text))
    ]
    assert claims == [], "\n\n".join(map(str, claims[:20]))


@pytest.mark.parametrize("surface", ["audit show", "audit list", "log"])
def test_the_audit_and_the_log_tell_what_came_of_a_call(surface: str) -> None:
    for approval in all_ended():
        execution = execution_of(approval)
        if execution and execution.state in {ExecutionState.ENDED, ExecutionState.FAILED}:
            last = dict(surfaces_of(approval))[surface].splitlines()[-1]
            assert re.search(rf"executed.*\b{outcome_of(approval)}\b", last), last


TELLS = {
    ExecutionState.FAILED: re.compile("failed|warning", re.IGNORECASE),
    ExecutionState.LAPSED: re.compile("didn't run|warning", re.IGNORECASE),
    ExecutionState.DOUBT: re.compile("may have run|question", re.IGNORECASE),
}
SILENT = {"reminder", "late click", "audit show", "audit list", "log"}
"""Surfaces that tell of the decision alone, or of one entry each."""


def test_every_surface_tells_of_a_failure_and_the_details_of_its_error() -> None:
    for approval in all_ended():
        if execution_of(approval) is None or approval.execution.state not in TELLS:
            continue
        surfaces = dict(surfaces_of(approval))
        pattern = TELLS[approval.execution.state]
        dumb = {n: text for n, text in surfaces.items() if not pattern.search(text)}
        assert dumb.keys() <= SILENT, dumb
        assert approval.execution.text in surfaces["details"]
        assert approval.execution.text in surfaces["history"]
