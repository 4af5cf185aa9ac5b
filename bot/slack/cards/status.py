"""The first line of a call's card: symbol, state, risk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.approvals.execution import run_of
from bot.layout.blocks import Block
from bot.layout.card_layout import state_line
from bot.layout.parts import asked_by, deciders_names
from bot.layout.sentences import spoken_title
from bot.layout.text import clip_mrkdwn
from bot.maintenance.pending import ANEW
from bot.people.named_terms import backups_of
from bot.people.terms_of import is_allowed_by_rule, progress_of
from bot.ports.people import CHANNEL
from bot.questions.form import Form, ask_of
from bot.questions.shown import ShownQuestion
from bot.records.approval import Approval, Kind, RunState, Status
from bot.slack.cards.footer import joined, missing
from bot.words import company, say
from bot.words.mrkdwn import clock, mention, moment

_RISKS = {"low": "{}", "high": "🔺 *{}*", "critical": "🛑 *{}*"}
_COMPANY = 40


@dataclass(frozen=True, slots=True)
class CardStatus:
    """State of a card.

    Attributes:
        symbol: Symbol before the text.
        words: Mrkdwn from the catalog.
        spoken: The text with the title, for notifications; empty for an ended card.
    """

    symbol: str
    words: str
    spoken: str = ""

    def line(self, approval: Approval) -> Block:
        """Render the first line, with the risk if pending."""
        marks = risk_marks(approval) if approval.status is Status.PENDING else []
        return state_line(self.symbol, self.words, marks)


def risk_marks(approval: Approval) -> list[str]:
    """Return the risk and the external destination; empty if normal."""
    risk = approval.terms.risk
    marks = [_RISKS[risk].format(say(f"risk.{risk}"))] if risk in _RISKS else []
    leaves = _leaves(approval)
    return [*marks, *leaves] if risk in {"high", "critical"} else [*leaves, *marks]


def pending_status(question: ShownQuestion) -> CardStatus:
    """Return the state of a pending card: the most important one."""
    return next(_states(question))


def _states(question: ShownQuestion) -> Iterator[CardStatus]:
    """Yield candidates for the state of a pending card, the most important first."""
    approval = question.approval
    about = {"title": spoken_title(approval), "when": clock(approval.expires_ms)}
    if approval.stuck:
        yield CardStatus("⚠️", say("status.nobody"), say("notify.nobody", **about))
    asked = [one for one in approval.dialog if one.is_open]
    for by in [mention(one.by) for one in asked[-1:]]:
        yield CardStatus("💬", say("status.asked", who=by), say("notify.asked", who=by, **about))
    if claim := approval.claim.by:
        who = mention(claim)
        words = say("status.claimed", who=who)
        yield CardStatus("👀", words, say("notify.claimed", who=who, **about))
    if approval.kind is Kind.DOUBT:
        text = say("notify.doubt", title=about["title"])
        yield CardStatus("❓", say("status.doubt"), text)
    yield from _progress(approval, about)
    if approval.escalation.steps:
        words = say("notify.backup", who=backups_words(approval), **about)
        yield CardStatus("📣", say("status.backup"), words)
    yield _needed(question, about)


def backups_words(approval: Approval) -> str:
    """Mention the people who can decide since the escalation."""
    later = joined([mention(one) for one in backups_of(approval) if one != CHANNEL])
    return later or say("line.somebody")


def _needed(question: ShownQuestion, about: Mapping[str, str]) -> CardStatus:
    approval = question.approval
    risk = spoken_risk(approval)
    words, text = question.needs({**about, "who": asked_by(approval), "risk": risk})
    is_yes = question.ask.form not in {Form.CHOICE, Form.FIELDS} and approval.kind is Kind.APPROVAL
    return CardStatus("⏳" if is_yes else "💬", words, text)


def spoken_risk(approval: Approval) -> str:
    """Return the risk for notifications, to be added after the state."""
    risk = approval.terms.risk
    said = [] if risk == "medium" else [say(f"risk.{risk}")]
    said += _leaves(approval)
    return "".join(say("notify.risk", risk=f"{one[:1].lower()}{one[1:]}") for one in said)


def _leaves(approval: Approval) -> list[str]:
    """Return the external destination, by name if known; empty if internal."""
    if not ask_of(approval).leaves:
        return []
    name = clip_mrkdwn(company(), _COMPANY)
    return [say("risk.leaves", company=name) if name else say("risk.external")]


def _progress(approval: Approval, about: Mapping[str, str]) -> Iterator[CardStatus]:
    """Yield the progress of the votes; nothing before the first."""
    found = progress_of(approval)
    have = sum(one.have for one in found.tallies)
    need = sum(one.need for one in found.tallies)
    if have and need > 1:
        words = say("status.votes", have=have, need=need)
        who = missing(approval, found)
        yield CardStatus("⏳", words, say("notify.votes", have=have, need=need, who=who, **about))
    if approval.stage:
        count = len(approval.terms.stages)
        words = say("status.stage", n=approval.stage + 1, of=count)
        yield CardStatus("⏳", words, say("notify.stage", n=approval.stage + 1, of=count, **about))


_ENDS = {
    Status.REJECTED: ("⛔", "status.rejected"),
    Status.EXPIRED: ("⏰", "status.expired"),
    Status.WITHDRAWN: ("↩️", "status.withdrawn"),
    Status.UNDECIDABLE: ("⚠️", "status.undecidable"),
    Status.DENIED: ("⛔", "status.denied"),
    Status.CANCELLED: ("⏹️", "status.cancelled"),
}
_RUNS = {
    None: ("✅", "status.accepted"),
    RunState.RUNNING: ("⚙️", "status.running"),
    RunState.RAN: ("✅", "status.ran"),
    RunState.FAILED: ("⚠️", "status.failed"),
    RunState.STOPPED: ("⚠️", "status.stopped"),
}
_EDITED = {
    "status.accepted": "status.accepted_edited",
    "status.running": "status.running_edited",
    "status.ran": "status.edited",
    "status.failed": "status.failed_edited",
    "status.stopped": "status.stopped_edited",
}
_EDITED_AND = {
    "status.accepted": "status.edited_and_accepted",
    "status.running": "status.edited_and_running",
    "status.ran": "status.edited_and_ran",
}
_OVERRIDDEN = {
    "status.accepted": "status.accepted_override",
    "status.running": "status.running_override",
    "status.ran": "status.override",
    "status.failed": "status.failed_override",
    "status.stopped": "status.stopped_override",
}
_AGAIN = {
    "status.accepted": "status.accepted_again",
    "status.running": "status.running_again",
    "status.ran": "status.again",
    "status.failed": "status.failed_again",
    "status.stopped": "status.stopped_again",
}
"""Text keys for a call in doubt that is to run again."""


def final_status(question: ShownQuestion) -> CardStatus:
    """Return the state of an ended card."""
    approval = question.approval
    if approval.status is Status.SUPERSEDED:
        return _superseded(approval)
    if (run := run_of(approval)) is not None and run.state is RunState.DOUBT:
        return CardStatus("❓", say("status.doubt"))
    if approval.decision is None:
        return CardStatus("⏹️", say("status.over"))
    symbol, words = _own(question)
    if words:
        return CardStatus(symbol, words)
    if approval.status in _ENDS:
        return _ended(question)
    return _let_run(question)


def _superseded(approval: Approval) -> CardStatus:
    if is_replaced(approval):
        return CardStatus("⏩", say("status.replaced"))
    return CardStatus("⏹️", say("status.called_off", time=_time(approval)))


def is_replaced(approval: Approval) -> bool:
    """Whether a new request replaces it; otherwise the agent does not wait any more."""
    decision = approval.decision
    if approval.status is not Status.SUPERSEDED or decision is None:
        return False
    return bool(approval.newer_ts) or decision.reason == ANEW


def _own(question: ShownQuestion) -> tuple[str, str]:
    """Return the outcome in the question's words; of an execution, the newer one."""
    approval, decision = question.approval, question.approval.decision
    if run_of(approval) is not None or (decision is not None and decision.emergency):
        return "", ""
    return question.ended(_who(approval), _time(approval))


def _ended(question: ShownQuestion) -> CardStatus:
    approval = question.approval
    symbol, key = _ENDS[approval.status]
    who, time = _who(approval), _time(approval)
    if approval.kind is Kind.QUESTION and approval.status is Status.EXPIRED:
        key = "status.unanswered"
    if approval.status is Status.CANCELLED and who:
        key = "status.cancelled_by"
    return CardStatus(symbol, say(key, who=who, time=time))


def _let_run(question: ShownQuestion) -> CardStatus:
    """Return the state of an approved card."""
    approval = question.approval
    decision, run = approval.decision, run_of(approval)
    symbol, key = _RUNS[run.state if run else None]
    who = _who(approval)
    time = moment(run.at_ms, since_ms=approval.created_ms) if run else _time(approval)
    values = {"who": who, "time": time}
    if decision is not None and decision.emergency:
        key = _OVERRIDDEN[key]
        return CardStatus("🚨", say(key, **values))
    if approval.status is Status.ANSWERED and run is None:
        return CardStatus("💬", say("status.answered", **values))
    if approval.kind is Kind.DOUBT:
        return CardStatus(symbol, say(_AGAIN[key], **values))
    is_edited = decision is not None and decision.arguments is not None
    is_edited = is_edited or is_allowed_by_rule(approval)
    if is_edited:
        symbol = "✏️" if symbol == "✅" else symbol
        key = _EDITED[key]
    if approval.edits.by and not is_edited and key in _EDITED_AND:
        symbol, key = "✏️" if symbol == "✅" else symbol, _EDITED_AND[key]
        values["editor"] = mention(approval.edits.by)
    return CardStatus(symbol, say(key, **values))


def _who(approval: Approval) -> str:
    return deciders_names(approval) if approval.decision is not None else ""


def _time(approval: Approval) -> str:
    decision = approval.decision
    return moment(decision.at_ms, since_ms=approval.created_ms) if decision is not None else ""
