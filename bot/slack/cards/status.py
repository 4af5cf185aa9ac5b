"""The first line of a call's card: symbol, state, risk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from bot.approvals.execution import execution_of
from bot.approvals.outcome import RequestOutcome, ended_ms, outcome_of
from bot.layout.blocks import Block
from bot.layout.card_layout import state_line
from bot.layout.parts import asked_by, deciders_names
from bot.layout.sentences import spoken_title
from bot.layout.text import clip_mrkdwn
from bot.people.approvers import backups_of
from bot.policy.progress import is_allowed_by_rule, progress_of
from bot.ports.people import CHANNEL
from bot.questions.form import Form, ask_of
from bot.questions.shown import ShownQuestion
from bot.records.approval import Approval, Kind, Status
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
    asked = [open_question for open_question in approval.dialog if open_question.is_open]
    for by in [mention(open_question.by) for open_question in asked[-1:]]:
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
    later = joined([mention(name) for name in backups_of(approval) if name != CHANNEL])
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
    texts = [] if risk == "medium" else [say(f"risk.{risk}")]
    texts += _leaves(approval)
    return "".join(say("notify.risk", risk=f"{text[:1].lower()}{text[1:]}") for text in texts)


def _leaves(approval: Approval) -> list[str]:
    """Return the external destination, by name if known; empty if internal."""
    if not ask_of(approval).leaves:
        return []
    name = clip_mrkdwn(company(), _COMPANY)
    return [say("risk.leaves", company=name) if name else say("risk.external")]


def _progress(approval: Approval, about: Mapping[str, str]) -> Iterator[CardStatus]:
    """Yield the progress of the votes; nothing before the first."""
    progress = progress_of(approval)
    have = sum(tally.have for tally in progress.tallies)
    need = sum(tally.need for tally in progress.tallies)
    if have and need > 1:
        words = say("status.votes", have=have, need=need)
        who = missing(approval, progress)
        yield CardStatus("⏳", words, say("notify.votes", have=have, need=need, who=who, **about))
    if approval.stage:
        count = len(approval.terms.stages)
        words = say("status.stage", n=approval.stage + 1, of=count)
        yield CardStatus("⏳", words, say("notify.stage", n=approval.stage + 1, of=count, **about))


_SIGNS: Mapping[RequestOutcome, tuple[str, str]] = {
    RequestOutcome.WAITS: ("⏳", "hourglass_flowing_sand"),
    RequestOutcome.APPROVED: ("👍", "+1"),
    RequestOutcome.RUNNING: ("⚙️", "gear"),
    RequestOutcome.RAN: ("✅", "white_check_mark"),
    RequestOutcome.FAILED: ("⚠️", "warning"),
    RequestOutcome.STOPPED: ("⚠️", "warning"),
    RequestOutcome.DOUBT: ("❓", "question"),
    RequestOutcome.ANSWERED: ("💬", "speech_balloon"),
    RequestOutcome.LEFT: ("⏹️", "black_square_for_stop"),
    RequestOutcome.REJECTED: ("⛔", "no_entry"),
    RequestOutcome.DENIED: ("⛔", "no_entry"),
    RequestOutcome.EXPIRED: ("⏰", "alarm_clock"),
    RequestOutcome.WITHDRAWN: ("↩️", "leftwards_arrow_with_hook"),
    RequestOutcome.REPLACED: ("⏩", "fast_forward"),
    RequestOutcome.CANCELLED: ("⏹️", "black_square_for_stop"),
    RequestOutcome.NOBODY: ("⚠️", "warning"),
}
SYMBOLS = {outcome: symbol for outcome, (symbol, _) in _SIGNS.items()}
"""Symbol of each outcome, in texts."""
EMOJI = {outcome: name for outcome, (_, name) in _SIGNS.items()}
"""Name of the same symbol, in rich text and as a reaction."""
PARKED = "❄️"
"""Symbol of an approved call that waits for the end of a freeze."""
PENCIL, PENCIL_EMOJI = "✏️", "pencil2"
"""Symbol of a call that ran, or may run, as people edited it."""
_BY_WEIGHT = (
    *(
        RequestOutcome.RUNNING,
        RequestOutcome.RAN,
        RequestOutcome.FAILED,
        RequestOutcome.STOPPED,
        RequestOutcome.DOUBT,
    ),
    *RequestOutcome,
)
EDITABLE = frozenset({RequestOutcome.APPROVED, RequestOutcome.RAN})
_BY_EDITOR = frozenset({RequestOutcome.APPROVED, RequestOutcome.RUNNING, RequestOutcome.RAN})


def outcome_word(outcome: RequestOutcome) -> str:
    """Return the outcome as a word in a list."""
    return say(f"outcome.{outcome}")


def counted(outcomes: Iterable[RequestOutcome]) -> list[str]:
    """Describe how many there are of each outcome; executions first."""
    counts = Counter(outcomes)
    order = dict.fromkeys(_BY_WEIGHT)
    return [say(f"outcome.n_{outcome}", n=counts[outcome]) for outcome in order if counts[outcome]]


def final_status(
    question: ShownQuestion,
    *,
    person: Callable[[str], str] = mention,
    when: Callable[[int], str] | None = None,
) -> CardStatus:
    """Return the state of an ended request, for all surfaces that say how it ended.

    Args:
        question: Question of an ended record.
        person: Names a person by their Slack user id.
        when: Formats a time; None for the time of day that Slack shows.
    """
    approval, outcome = question.approval, outcome_of(question.approval)
    if outcome is RequestOutcome.DOUBT:
        return CardStatus(SYMBOLS[outcome], say("status.doubt"))
    if approval.decision is None:
        return CardStatus("⏹️", say("status.over"))
    at_ms = ended_ms(approval)
    time = when(at_ms) if when else moment(at_ms, since_ms=approval.created_ms)
    who = deciders_names(approval, person)
    if execution_of(approval) is None and not approval.decision.emergency:
        symbol, words = question.ended(who, time)
        if words:
            return CardStatus(symbol, words)
    symbol, key, editor = _let_run(approval, outcome)
    if outcome is RequestOutcome.EXPIRED and approval.kind is Kind.QUESTION:
        key = "unanswered"
    if outcome is RequestOutcome.NOBODY:
        key = "undecidable"
    if outcome is RequestOutcome.CANCELLED and approval.status is Status.CANCELLED and who:
        key = "cancelled_by"
    return CardStatus(symbol, say(f"status.{key}", who=who, time=time, editor=person(editor)))


def _let_run(approval: Approval, outcome: RequestOutcome) -> tuple[str, str, str]:
    """Return symbol, name of the text, and the editor, if any, of an outcome."""
    symbol, key, decision = SYMBOLS[outcome], str(outcome), approval.decision
    is_yes = approval.status in {Status.APPROVED, Status.ANSWERED}
    is_parked = outcome is RequestOutcome.APPROVED and approval.execution.parked is not None
    if is_parked:
        symbol, key = PARKED, "parked_freeze"
    if decision is None or not is_yes or is_parked or outcome is RequestOutcome.ANSWERED:
        return symbol, key, ""
    if decision.emergency:
        return "🚨", f"{key}_override", ""
    if approval.kind is Kind.DOUBT:
        return symbol, f"{key}_again", ""
    edited = PENCIL if outcome in EDITABLE else symbol
    if decision.arguments is not None or is_allowed_by_rule(approval):
        return edited, f"{key}_edited", ""
    if approval.edits.by and outcome in _BY_EDITOR:
        return edited, f"edited_and_{key}", approval.edits.by
    return symbol, key, ""
