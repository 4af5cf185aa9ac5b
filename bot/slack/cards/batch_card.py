"""The batch card: a list while pending, three lines at the end.

Every approval on it fits in one line. If the card cannot list all, or approval needs a reason, the
card has no approve button; a modal shows all of them first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.approvals.execution import execution_of
from bot.approvals.outcome import RequestOutcome, outcome_of
from bot.layout.action_ids import MOST_TARGETS, ActionId, encode, encode_all, encode_option
from bot.layout.blocks import (
    Block,
    Card,
    actions,
    button,
    context,
    line,
    menu,
    mrkdwn,
    numbered,
    plain,
    rich,
)
from bot.layout.card_layout import closed_card, open_card, quoted, small_lines, state_line
from bot.layout.parts import asked_by, deciders_names, frozen_words, spoken, stuck_words
from bot.layout.sentences import title_of
from bot.layout.text import clip, clip_mrkdwn, show
from bot.policy.demands import wants_reason
from bot.ports.threads import BatchWords
from bot.questions.shown import shown_question, what_runs
from bot.questions.yes import Proof, yes
from bot.records.approval import Approval, Status
from bot.redaction.mask import mask_text
from bot.redaction.masks import masked_once
from bot.slack.cards.approval import why_of
from bot.slack.cards.batch_items import (
    batch_title,
    common_line,
    common_to,
    counts,
    item_line,
    item_parts,
    number_of,
)
from bot.slack.cards.change_note import frozen, wrote_since, wrote_words
from bot.slack.cards.decided import next_words, third_words
from bot.slack.cards.footer import note_quotes, small_print
from bot.slack.cards.listed import takes_line
from bot.slack.cards.status import (
    SYMBOLS,
    backups_words,
    outcome_word,
    risk_marks,
    spoken_risk,
)
from bot.words import say
from bot.words.mrkdwn import clock

MOST_LISTED = MOST_TARGETS
"""Maximum number of items that a batch card lists in full."""
FEW = 5
_THIRDS = 3
_WORDS, _REASON = 300, 120
_MOST_DECIDERS = 5
_ABOUT = 240


@masked_once()
def batch_card(
    items: Sequence[Approval],
    batch_words: BatchWords,
    *,
    approvers_text: str,
    lead: Sequence[str] = (),
) -> Card:
    """Render the card.

    Args:
        items: All approvals on it, in order.
        batch_words: The tool's text.
        approvers_text: Who may decide, in our own words.
        lead: Replaces requester and approvers in a direct message.
    """
    if not items:
        return Card(text=say("batch.empty"), blocks=small_lines([say("batch.empty")]))
    title = batch_title(items, batch_words.title)
    if not number_of(items):
        return _done(items, title)
    return _open(items, title, batch_words, approvers_text, lead)


def _open(
    items: Sequence[Approval],
    title: str,
    batch_words: BatchWords,
    approvers_text: str,
    lead: Sequence[str],
) -> Card:
    waiting = [approval for approval in items if approval.status is Status.PENDING]
    first, stuck = waiting[0], [approval for approval in waiting if approval.stuck]
    state, text = _waiting_state(items, waiting, title)
    held = next((approval for approval in waiting if approval.frozen), first)
    text = spoken(text, frozen_words(held))
    blocks = [
        *frozen(held),
        *_listed(items, waiting, batch_words),
        *_why(waiting),
        *wrote_since(first),
    ]
    blocks += note_quotes([*dict.fromkeys(_notes_of_yes(items))])
    small = small_print(first, approvers_text, shown_question(first).who_can, lead)
    blocks += small_lines([*(stuck_words(approval) for approval in stuck[:1]), *small])
    blocks.append(actions(*_buttons(items, waiting, title, batch_words)))
    return Card(text=text, blocks=open_card(state, title, blocks))


def _waiting_state(
    items: Sequence[Approval], waiting: Sequence[Approval], title: str
) -> tuple[Block, str]:
    """Return the first line of a pending card, and its notification text."""
    first, count = waiting[0], len(waiting)
    about = {"title": clip_mrkdwn(title, _WORDS), "when": clock(first.expires_ms)}
    needed, marks = say("status.needs_many", n=count), [*counts(items), *risk_marks(first)]
    wrote = wrote_words(first)
    if stuck := [approval for approval in waiting if approval.stuck]:
        text = spoken(say("notify.nobody", **about), stuck_words(stuck[0]), wrote)
        return state_line("⚠️", say("status.nobody"), marks), text
    if first.escalation.steps:
        text = say("notify.backup", who=backups_words(first), **about)
        state = state_line("📣", say("status.backup"), [needed, *marks])
        return state, spoken(text, wrote)
    if count == len(items):
        risk = spoken_risk(first)
        text = say("notify.batch", n=count, who=asked_by(first), risk=risk, **about)
    else:
        text = say("notify.batch_rest", n=count, all=len(items), **about)
    return state_line("⏳", needed, marks), spoken(text, wrote)


def _listed(
    items: Sequence[Approval], waiting: Sequence[Approval], batch_words: BatchWords
) -> Iterator[Block]:
    """Yield a line per item; of many, the largest pending ones."""
    shared = common_to(items)
    each = [common_line(shared)] if shared else []
    if len(items) <= MOST_LISTED:
        if len(waiting) == len(items):
            yield rich(numbered([line(*item_parts(approval, shared)) for approval in items]), *each)
        else:
            yield rich(*(item_line(approval, shared) for approval in items), *each)
        return
    shown = largest_of(waiting, batch_words)[:FEW]
    yield rich(numbered([line(*item_parts(approval, shared)) for approval in shown]), *each)
    if len(waiting) > len(shown):
        key = "line.largest" if batch_words.largest else "line.first_few"
        yield context(mrkdwn(say(key, n=len(shown), all=len(waiting))))


def largest_of(waiting: Sequence[Approval], batch_words: BatchWords) -> list[Approval]:
    """Return pending items, the largest first; in order if the tool gives no size."""
    places = {name: place for place, name in enumerate(batch_words.largest)}
    return sorted(waiting, key=lambda approval: places.get(approval.approval_id, len(places)))


def _why(waiting: Sequence[Approval]) -> tuple[Block, ...]:
    """Render the reasons of agent and rule, if they are equal for all items."""
    reasons = [why_of(approval) for approval in waiting]
    return tuple(reasons[0]) if all(reason == reasons[0] for reason in reasons) else ()


def _buttons(
    items: Sequence[Approval], waiting: Sequence[Approval], title: str, batch_words: BatchWords
) -> Iterator[Block]:
    first, count = waiting[0], len(waiting)
    value = encode(first.approval_id, first.digest)
    is_stuck = any(approval.stuck for approval in waiting)
    if not is_stuck:
        label = say("button.review_all", n=count)
        review = button(label, ActionId.BATCH, value, of=title, style="primary")
        is_short = len(items) <= MOST_LISTED and not wants_reason(first, rejects=False)
        proof = Proof(is_whole=is_short and all(map(takes_line, waiting)))
        made = _approve_all(items, waiting, title, batch_words) if is_short else review
        yield yes(ActionId.APPROVE_ALL, made, proof, review)
        if proof.is_whole:
            yield button(say("button.choose"), ActionId.BATCH, value, of=title)
    # The address stays when the first item is decided.
    address = (first.batch.owner_id, first.digest)
    options = (
        (say("button.reject_all"), ActionId.BATCH_REJECT),
        (say("button.details"), ActionId.BATCH_DETAILS),
        (say("button.one_each"), ActionId.BATCH_SPLIT),
        (say("button.ask"), ActionId.BATCH_ASK),
        (say("button.withdraw"), ActionId.BATCH_WITHDRAW),
    )
    yield menu(
        ActionId.MORE, [(label, encode_option(action, *address)) for label, action in options]
    )


def _approve_all(
    items: Sequence[Approval], waiting: Sequence[Approval], title: str, batch_words: BatchWords
) -> Block:
    """Return the button that approves exactly the listed items, with their digests."""
    count = len(waiting)
    is_all = count == len(items)
    label = say("button.approve_all" if is_all else "button.approve_left", n=count)
    asked = say("confirm.all_title" if is_all else "confirm.rest_title", n=count)
    what = title if is_all else batch_title(waiting, batch_words.rest)
    value = encode_all((approval.approval_id, approval.digest) for approval in waiting)
    made = button(label, ActionId.BATCH, value, of=title, style="primary")
    return {
        **made,
        "confirm": {
            "title": plain(asked),
            "text": plain(clip(what, _ABOUT)),
            "confirm": plain(label),
            "deny": plain(say("confirm.no")),
        },
    }


def _done(items: Sequence[Approval], title: str) -> Card:
    """Render the ended card: counts by outcome, people, and exceptions."""
    ends, outcomes = ", ".join(counts(items)), {outcome_of(approval) for approval in items}
    symbol = SYMBOLS[next(outcome for outcome in _FIRST if outcome in outcomes)]
    by = list(dict.fromkeys(filter(None, (deciders_names(approval) for approval in items))))
    who = ", ".join(by[:_MOST_DECIDERS])
    marks = [say("batch.by", who=who)] if who else []
    first = items[0]
    value = encode(first.batch.owner_id or first.approval_id, first.digest)
    details = button(say("button.details"), ActionId.BATCH_DETAILS, value, of=title)
    third = _third(items)
    blocks = closed_card(state_line(symbol, ends, marks), title, third, details)
    status, name = ", ".join([ends, *marks]), clip_mrkdwn(title, _WORDS)
    if RequestOutcome.RAN in outcomes and outcomes <= _AS_DECIDED:
        text = say("notify.batch_done", title=name, counts=status)
    else:
        text = say("notify.ended", status=status, title=name, rest=third_words(third))
    return Card(text=text, blocks=blocks)


_FIRST = (
    *(
        RequestOutcome.DOUBT,
        RequestOutcome.FAILED,
        RequestOutcome.STOPPED,
        RequestOutcome.NOBODY,
        RequestOutcome.RUNNING,
    ),
    *(RequestOutcome.APPROVED, RequestOutcome.RAN, *RequestOutcome),
)
"""Outcomes by importance."""
_YES = frozenset({Status.APPROVED, Status.ANSWERED})
_AS_DECIDED = frozenset({RequestOutcome.RAN, RequestOutcome.REJECTED})
"""Outcomes that follow the decision."""


def _third(items: Sequence[Approval]) -> Block:
    """Render the most important third line."""
    notes = [quoted(mask_text(note))["text"] for note in _notes(items)]
    if odd := [*_odd(items)]:
        has_yes = any(approval.status in _YES for approval in items)
        return plain("\n".join([*odd, *(notes if has_yes else ())]))
    if notes:
        return plain("\n".join(notes))
    follows = {next_words(approval) for approval in items}
    if "" not in follows:
        return plain(follows.pop() if len(follows) == 1 else say("line.nothing_ran"))
    return mrkdwn(say("line.requested", who=asked_by(items[0])))


def _notes(items: Sequence[Approval]) -> list[str]:
    """Return the notes of approvals once each; the reason of the others if equal."""
    if notes := _notes_of_yes(items):
        return [*dict.fromkeys(notes)][:_THIRDS]
    decisions = [
        approval.decision
        for approval in items
        if approval.decision is not None and approval.decision.by
    ]
    shared = {decision.reason.strip() for decision in decisions}
    return (
        [*shared] if len(shared) == 1 and len(decisions) == len(items) and "" not in shared else []
    )


def _notes_of_yes(items: Sequence[Approval]) -> list[str]:
    decisions = [
        approval.decision
        for approval in items
        if approval.decision is not None and approval.decision.by
    ]
    return [
        decision.reason
        for decision in decisions
        if decision.status in _YES and decision.reason.strip()
    ]


def _odd(items: Sequence[Approval]) -> Iterator[str]:
    """Yield lines about items with an unexpected outcome."""
    odd = [candidate for candidate in items if _is_odd(candidate)]
    for approval in odd[:_THIRDS]:
        state, text = (
            outcome_word(outcome_of(approval)),
            clip(title_of(what_runs(approval)), _REASON),
        )
        words = _outcome_text(approval)
        yield f"{state[:1].upper()}{state[1:]}: {text}{f', {words}' if words else ''}"
    if len(odd) > _THIRDS:
        yield say("batch.more", n=len(odd) - _THIRDS)


def _is_odd(approval: Approval) -> bool:
    """Whether an item failed or was rejected; False if all ended alike."""
    return outcome_of(approval) in _ODD


_ODD = frozenset(
    {RequestOutcome.FAILED, RequestOutcome.DOUBT, RequestOutcome.STOPPED, RequestOutcome.REJECTED}
)


def _outcome_text(approval: Approval) -> str:
    """Return the tool's text, or the reason of the rejection."""
    run, decision = execution_of(approval), approval.decision
    if approval.status is Status.REJECTED and decision is not None and decision.reason.strip():
        return f"“{_brief(decision.reason)}”"
    return _brief(run.text) if run is not None else ""


def _brief(text: str) -> str:
    view = show(mask_text(text.strip()), _REASON, one_line=True)
    return f"{view.text}…" if view.hidden else view.text
