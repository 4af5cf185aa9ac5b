"""The card of a decided call: outcome, title, and the most important third line.

Candidates for that line in order: a failure, changes, a reason or note, the result.
"""

from __future__ import annotations

from collections.abc import Iterator

from bot.approvals.execution import can_take_back, execution_of, must_finish, was_taken_back
from bot.approvals.outcome import is_replaced
from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Block, Card, actions, button, mrkdwn, plain
from bot.layout.card_layout import closed_card, quoted, small_lines, state_line, third_line
from bot.layout.parts import asked_by
from bot.layout.sentences import is_address, spoken_title, title_of
from bot.layout.text import clip_mrkdwn, own_words
from bot.questions.shown import ShownQuestion, what_runs
from bot.records.approval import Approval, ExecutionState, Kind, Status
from bot.redaction.mask import REDACTED, mask_text
from bot.slack.cards.break_glass import reasons_of
from bot.slack.cards.change_note import changes_text
from bot.slack.cards.status import final_status
from bot.words import say
from bot.words.mrkdwn import clock, mention

OUTCOME = 120
"""Maximum length of a result or an error on a card, in characters."""
_REASON = 300
_OWN = 500
_ANSWERS = 6
_SPOKEN = 200
_NEXT = {
    Status.REJECTED: "line.nothing_ran",
    Status.EXPIRED: "line.expired_next",
    Status.WITHDRAWN: "line.nothing_ran",
    Status.SUPERSEDED: "line.replaced_next",
    Status.CANCELLED: "line.cancelled_next",
    Status.DENIED: "line.nothing_ran",
    Status.UNDECIDABLE: "line.nothing_ran",
}

_NEXT_OF_QUESTION = {
    Status.EXPIRED: "line.unanswered_next",
    Status.SUPERSEDED: "line.replaced_next",
}


def decided_card(question: ShownQuestion, *, newer: str = "") -> Card:
    """Render the collapsed card; the details have the rest.

    Args:
        question: Question of an ended record.
        newer: URL of the card that replaces this one; empty without one.
    """
    approval = question.approval
    final = what_runs(approval)
    state, title = final_status(question), title_of(final)
    marks = [f"<{newer}|{say('line.open_newer')}>"] if is_address(newer) else []
    third = _with_words(question, next(_thirds(question)))
    value = encode(approval.approval_id, approval.digest)
    details = button(say("button.details"), ActionId.DETAILS, value, of=title)
    blocks = closed_card(state_line(state.symbol, state.words, marks), title, third, details)
    if approval.status is Status.UNDECIDABLE:
        blocks.append(actions(button(say("button.ask_admin"), ActionId.ASK_ADMIN, value, of=title)))
    if can_take_back(approval):
        blocks.append(actions(*_take_back(question)))
    if REDACTED in str(third["text"]):
        blocks += small_lines([say("line.masked")])
    ended = state.words.replace(" · ", ", ")
    text = say("notify.ended", status=ended, title=spoken_title(final), rest=third_words(third))
    return Card(text=text.strip(), blocks=blocks)


def _take_back(question: ShownQuestion) -> Iterator[Block]:
    """Yield the buttons of an approved call that a freeze keeps from starting."""
    if question.approval.kind is Kind.APPROVAL:
        yield from question.no()
    yield question.button(say("button.withdraw"), ActionId.WITHDRAW)


def _with_words(question: ShownQuestion, third: Block) -> Block:
    """Add people's changes and approvers' notes to a third line about another subject."""
    changes = changes_text(question.approval)
    for words in (*([plain(changes)] if changes else ()), *_note(question)):
        if words["text"] not in third["text"] and words["type"] == third["type"]:
            third = plain(f"{third['text']}\n{words['text']}")
    return third


def third_words(third: Block) -> str:
    """Return the third line as a sentence."""
    words = str(third["text"])
    return words if third["type"] == "mrkdwn" else clip_mrkdwn(words.replace("\n", "; "), _SPOKEN)


def _thirds(question: ShownQuestion) -> Iterator[Block]:
    """Yield candidates for the third line, the most important first."""
    approval, run = question.approval, execution_of(question.approval)
    outcome = mask_text(run.text.strip()) if run else ""
    result = [third_line(outcome, OUTCOME)] if outcome else []
    if run and run.state in {ExecutionState.FAILED, ExecutionState.LAPSED}:
        yield from result
    if must_finish(approval) and approval.stopped_by:
        yield mrkdwn(say("line.stopping", who=mention(approval.stopped_by)))
    if run and run.state is ExecutionState.DOUBT:
        yield plain(say("line.doubt_next"))
    if run is None and approval.execution.parked is not None and not was_taken_back(approval):
        yield plain(say("line.frozen_why", why=mask_text(approval.execution.parked.why)))
    yield from _words_of_people(question)
    yield from result
    if run and run.state is ExecutionState.STARTED:
        yield mrkdwn(say("line.since", time=clock(run.at_ms)))
    if words := next_words(approval):
        yield plain(words)
    yield mrkdwn(say("line.requested", who=asked_by(approval)))


def next_words(approval: Approval) -> str:
    """Return our text if nothing ran; empty if a call was approved."""
    if approval.status not in _NEXT:
        return ""
    if approval.kind is Kind.DOUBT:
        return say("line.doubt_open")
    if approval.kind is Kind.QUESTION and not approval.tool.strip():
        return say(_NEXT_OF_QUESTION.get(approval.status, "line.told_agent"))
    is_by_person = approval.decision is not None and bool(approval.decision.by)
    if approval.status is Status.CANCELLED and is_by_person:
        return say("line.nothing_ran")
    return say(_NEXT[approval.status])


def _words_of_people(question: ShownQuestion) -> Iterator[Block]:
    """Yield people's changes, answers and texts."""
    approval, decision = question.approval, question.approval.decision
    if decision is not None and decision.emergency:
        yield from reasons_of(decision.emergency)
    if text := changes_text(approval):
        yield plain(text)
    if answer := question.answered():
        yield third_line(answer, _REASON, lines=_ANSWERS)
    yield from _note(question)


def _note(question: ShownQuestion) -> Iterator[Block]:
    """Yield the reason of a decision, or the note of an approval."""
    approval, decision = question.approval, question.approval.decision
    if decision is not None and decision.reason.strip() and not is_replaced(approval):
        yield _reason(approval, decision.reason)


_OURS = frozenset({Status.UNDECIDABLE, Status.SUPERSEDED, Status.DENIED, Status.CANCELLED})
"""Statuses with a reason from the bot."""


def _reason(approval: Approval, reason: str) -> Block:
    """Render a person's reason verbatim, or the bot's own reason."""
    is_ours = approval.decision is not None and not approval.decision.by
    if is_ours and approval.status in _OURS:
        return mrkdwn(own_words(mask_text(reason), _OWN))
    return quoted(mask_text(reason), _REASON)
