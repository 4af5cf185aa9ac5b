"""Details of an approval: everything in full, in pages, and the history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bot.approvals.comments import AGENT
from bot.approvals.execution import execution_of
from bot.approvals.outcome import RequestOutcome, is_replaced, outcome_of
from bot.audit.acts import Act
from bot.layout.action_ids import ActionId, encode, encode_page
from bot.layout.argument_fields import Naming
from bot.layout.arguments import as_text, is_ambiguous, text_width
from bot.layout.blocks import (
    Block,
    brief,
    context,
    line,
    literal,
    mrkdwn,
    plain,
    preformatted,
    quote,
    rich,
    section,
)
from bot.layout.modals import named
from bot.layout.parts import asked_by
from bot.layout.sentences import from_mrkdwn, title_of
from bot.layout.text import chunks, show, width
from bot.questions.form import Form, in_order
from bot.questions.shown import ShownQuestion, shown_question, what_runs
from bot.questions.yes import Proof, yes
from bot.records.approval import Approval, ExecutionState, Kind, Status
from bot.redaction.call import INLINE, mask_call, mask_value, written
from bot.redaction.mask import mask_text
from bot.redaction.masks import Words, masked_once, once
from bot.slack.cards.break_glass import emergency_reasons
from bot.slack.cards.footer import source_words, stage_line
from bot.words import say
from bot.words.mrkdwn import date, is_person
from bot.words.times import utc
from storage.audit import AuditEntry

CHUNK = 2_800
"""Characters of a page. It is rich text, which needs no escaping."""
MOST_PAGES = 90
_MOST_ESCAPED = MOST_PAGES * CHUNK
"""Maximum size of a review with all signs escaped, in characters."""
MOST_BYTES = 150_000
"""Maximum size of a review, in bytes. A larger call cannot be approved."""
_ROWS = 40
_LINE = 600
TITLE = 300
"""Maximum length of a title above its form, in characters."""
_WHOLE = 2
"""Number of pages shown at once."""
_SMALL, _FEW = 2_000, 20
_PLAIN = frozenset({Form.CALL, Form.HUMAN, Form.LIMIT, Form.STEP})


@masked_once()
def details_modal(approval: Approval, *, agrees: Sequence[Block] = ()) -> Block:
    """Render everything except declared secrets, for one person in private.

    Args:
        approval: The approval.
        agrees: Inputs with which the person can approve there; empty for reading only.
    """
    approval = what_runs(approval)
    pages, left_out = _fitting(approval, is_open=True)
    blocks = [named(approval), small_facts(approval), *pages]
    if left_out:
        blocks.append(section(say("line.too_long")))
    view = {
        "type": "modal",
        "callback_id": str(ActionId.DETAILS_MODAL),
        "private_metadata": encode(approval.approval_id, approval.digest),
        "title": brief(say("form.revealed")),
        "close": brief(say("form.close")),
        "blocks": blocks,
    }
    if not agrees:
        return view
    made = {
        **view,
        "blocks": [*blocks, *agrees],
        "private_metadata": encode_page("technical", approval.approval_id, approval.digest),
        "submit": plain(say("form.approve_submit")),
    }
    return yes(ActionId.REVIEW_MODAL, made, Proof(is_whole=not left_out), view)


@masked_once()
def fits_details(question: ShownQuestion) -> bool:
    """Whether the details can show everything; fast for short calls.

    If they cannot, the call cannot be approved.
    """
    approval, arguments = question.approval, in_order(question.approval.arguments)
    texts = (approval.title, approval.why, approval.preview, question.ask.reason)
    is_plain = not question.ask.options and not question.ask.program and question.ask.form in _PLAIN
    size = len(arguments) + sum(map(len, texts))
    if is_plain and size <= _SMALL and arguments.count("[") + arguments.count("{") <= _FEW:
        return True
    return not (_is_huge(question, arguments) or _leaves_out(approval))


def _is_huge(question: ShownQuestion, text: str) -> bool:
    """Whether a value is larger than a modal, in any notation."""
    if len(text) <= MOST_BYTES:
        return False
    names = {*question.ask.secret, *question.laid_out()}
    arguments = question.approval.arguments
    values = [_in_full(value) for name, value in arguments.items() if name not in names]
    return any(len(value) - sum(map(value.count, " \n\t")) > MOST_BYTES for value in values)


def _in_full(value: object) -> str:
    """Return a value like a form: a text as it is, structured data as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _leaves_out(approval: Approval) -> bool:
    return _fitting(approval)[1] or _fitting(approval, is_open=True)[1]


def pages_of(approval: Approval) -> tuple[list[Block], bool]:
    """Return everything in pages, masked like the card; and whether some is omitted."""
    return once(_pages, approval)


def _pages(approval: Approval) -> tuple[list[Block], bool]:
    return _fitting(what_runs(approval))


def is_short(pages: Sequence[Block]) -> bool:
    """Whether everything is shown at once, without pages."""
    return len(pages) <= _WHOLE


def _fitting(approval: Approval, *, is_open: bool = False) -> tuple[list[Block], bool]:
    blocks: list[Block] = []
    size = escaped = 0
    for block in _packed(_everything(approval, is_open=is_open)):
        size += len(json.dumps(block).encode())
        escaped += text_width(block["elements"])
        if len(blocks) >= MOST_PAGES or size > MOST_BYTES or escaped > _MOST_ESCAPED:
            return blocks, True
        blocks.append(block)
    return blocks, False


def small_facts(approval: Approval) -> Block:
    """Render the requester, the stages and the expiry."""
    when = date(approval.created_ms)
    asked = say("line.requested_on", who=asked_by(approval), when=when)
    lines = filter(None, (asked, stage_line(approval), expiry(approval)))
    return context(*map(mrkdwn, lines))


def expiry(approval: Approval) -> str:
    """Describe the expiry and its effect, or its past time."""
    when = date(approval.expires_ms)
    is_question = approval.kind is Kind.QUESTION
    return say("line.expires_answer" if is_question else "line.expires_run", when=when)


_RESULTS = {RequestOutcome.FAILED: "form.part_error", RequestOutcome.STOPPED: "form.part_stopped"}


def _everything(approval: Approval, *, is_open: bool) -> Iterator[Block]:
    """Yield rich text elements of about `CHUNK` characters."""
    if show(title_of(approval), TITLE, one_line=True).hidden:  # otherwise it is above
        yield from _whole(say("form.part_title"), written(mask_call(approval.title)))
    yield from _text_blocks("", written(mask_call(approval.preview)))
    yield from _text_blocks(say("line.why_label"), mask_text(approval.why))
    source = mask_text(source_words(approval, "call"))
    yield from _text_blocks(say("line.source_label"), source)
    question = shown_question(approval)
    ask, laid_out = question.ask, question.laid_out()
    naming = Naming(labels=ask.labels, masks=replace(ask.masks, is_open=is_open))
    yield from _text_blocks(say("line.why_asked"), mask_text(ask.reason))
    for name, value in approval.arguments.items():
        if name not in laid_out:
            note = as_text() if is_ambiguous(value) else ""
            label, shown = _written_out(name, value, naming)
            yield from _argument(label, shown, note=note)
    yield from _whole(say("form.part_choice"), written(mask_call(ask.question, is_open=is_open)))
    for number, option in enumerate(ask.options, 1):
        words = mask_call(option.words, is_open=is_open)
        yield from _argument((say("form.part_option", n=number),), words)
    for name, words in question.more_details():
        yield from _argument((name,), words)
    yield from _whole(say("line.only_program"), mask_text(ask.program))
    yield from _whole(say("form.part_answer"), question.answered())
    if (run := execution_of(approval)) is not None:
        key = _RESULTS.get(outcome_of(approval), "form.part_result")
        yield from _text_blocks(say(key), mask_text(run.text))
    yield from _reasons(approval)


def _reasons(approval: Approval) -> Iterator[Block]:
    """Yield the texts of people's decisions."""
    decision = approval.decision
    if decision is None or not decision.by:
        return
    for text in emergency_reasons(decision.emergency):
        yield from _text_blocks(say("form.reason"), text)
    is_yes = decision.status is Status.APPROVED
    yield from _text_blocks(
        say("form.note" if is_yes else "form.reason"), mask_text(decision.reason)
    )


def _written_out(name: str, value: object, naming: Naming) -> tuple[Words, Words]:
    """Return an argument as on the card, and as raw data for revealing."""
    if naming.masks.is_open:
        return mask_call(name, is_open=True), mask_value(name, value, naming.masks)
    return naming.label(name), naming.words(name, value)


def _text_blocks(label: str, text: str) -> Iterator[Block]:
    """Yield a person's text: inline, in a quote with a label, or in a box."""
    view = show(text, _LINE)
    if view.hidden or "\n" in view.text:
        yield from _whole(label or say("form.part_preview"), text)
    elif text.strip():
        words = literal(view.text)
        yield quote(literal(f"{label} ", "bold"), words) if label else line(words)


def _whole(label: str, text: str) -> Iterator[Block]:
    if text.strip():
        yield line(literal(label, "bold"))
        yield from (preformatted(part) for part in chunks(text, CHUNK))


def _argument(name: Words, words: Words, *, note: str = "") -> Iterator[Block]:
    shown = chunks(words, CHUNK)  # lazy: chunks that do not fit are never rendered
    names = list(chunks(name, CHUNK)) or [say("line.no_name")]
    for part in names[:-1]:
        yield line(literal(part, "bold"))
    notes = [literal(note, "italic")] if note else []
    label = literal(f"{names[-1]}: ", "bold" if any(name) else "italic")
    text = written(words)
    if "\n" not in text and width(text) <= INLINE and width(names[-1]) <= INLINE:
        yield line(label, *notes, literal(next(shown, "…"), "code"))
    else:
        yield line(label, *notes)
        yield from (preformatted(part) for part in shown)


def _packed(elements: Iterator[Block]) -> Iterator[Block]:
    rows: list[Block] = []
    used = 0
    for element in elements:
        size = _length(element)
        if rows and (used + size > CHUNK or len(rows) >= _ROWS):
            yield rich(*rows)
            rows, used = [], 0
        rows.append(element)
        used += size
    if rows:
        yield rich(*rows)


def _length(element: Block) -> int:
    """Return the number of characters of all texts, which rich text does not escape."""
    inner = sum(map(_length, element.get("elements", ())))
    return len(str(element.get("text", ""))) + inner


_MOST_LINES = 40
"""Lines of a history: the newest."""
_TEXT = 300
_UNSAID = frozenset(
    {Act.OPENED, Act.RESUMED, Act.UNDELIVERABLE, Act.ANSWERED_TOOL, Act.DECIDED, Act.EXECUTED}
)
"""Acts of the bot that are omitted, or described by another line."""


def history_blocks(entries: Sequence[AuditEntry], approval: Approval) -> list[Block]:
    """Render the newest lines of an approval's history, and what became of its call.

    Args:
        entries: Audit entries of the approval, oldest first.
        approval: The approval as it is now.
    """
    replaced = is_replaced(approval)
    made = [row for entry in entries if (row := _row(entry, replaced=replaced)) is not None]
    run = execution_of(approval)
    if (
        run is not None and run.state is not ExecutionState.STARTED
    ):  # the start has a line of its own
        outcome = f"history.run_{outcome_of(approval)}"
        acts = {entry.action for entry in entries}
        if outcome == "history.run_ran" and Act.ANSWERED_TOOL in acts and Act.EXECUTED not in acts:
            outcome = "history.run_told"
        words = say(outcome)
        made.append(line(_when(run.at_ms), literal(f"   {_noted(words, run.text)}")))
    blocks: list[Block] = []
    if len(made) > _MOST_LINES:
        blocks.append(context(mrkdwn(say("history.more", n=len(made) - _MOST_LINES))))
    return [*blocks, rich(*made[-_MOST_LINES:])] if made else []


def _row(entry: AuditEntry, *, replaced: bool) -> Block | None:
    words = _words(entry, replaced=replaced)
    if not words:
        return None
    before, person, after = words.partition(_PERSON)
    parts: list[Block] = [_when(entry.at_ms), literal(f"   {before}")]
    if person:
        is_ours = entry.action == Act.REFUSED  # a person's words stay as they are
        parts += [_who(entry.actor_id), *(from_mrkdwn(after) if is_ours else [literal(after)])]
    return line(*parts)


_PERSON = "\0"
"""Placeholder of a person: Slack renders people as separate elements."""


def _words(entry: AuditEntry, *, replaced: bool) -> str:
    """Describe an act, with a placeholder for its person."""
    action = entry.action
    if action in _UNSAID:
        return ""
    if action == Act.VOTED:
        choice = str(entry.detail.get("choice"))
        known = {"approve": "history.approved", "reject": "history.rejected"}
        words = known.get(choice, "history.said")
        return _noted(say(words, who=_PERSON, choice=_shown(choice)), entry.detail.get("note"))
    if action == Act.REFUSED:
        return say("history.refused", who=_PERSON, why=_shown(entry.detail.get("why")))
    if action == Act.ASKED_BACK:
        reply = entry.detail.get("reply")
        key = "history.answered_back" if reply else "history.asked_back"
        if reply and entry.actor_id == AGENT:
            key = "history.agent_answered"
        return say(key, who=_PERSON, text=_shown(reply or entry.detail.get("question")))
    key = f"history.{action}"
    if action == Act.SUPERSEDED and replaced:
        key = "history.replaced"
    if f"history.{action}" not in _KNOWN:
        return ""
    reasons = entry.detail.get("reasons")
    notes = reasons.values() if isinstance(reasons, dict) else [entry.detail.get("note")]
    return _noted(say(key, who=_PERSON), *notes)


def _noted(words: str, *notes: object) -> str:
    """Describe an act with its person's note."""
    texts = [_shown(note) for note in notes if note]
    return say("history.with_note", act=words, text="; ".join(texts)) if texts else words


_KNOWN = frozenset(
    f"history.{act}"
    for act in (
        Act.REQUESTED,
        Act.REMINDED,
        Act.ESCALATED,
        Act.HANDED_OVER,
        Act.CLAIMED,
        Act.CLAIM_ENDED,
        Act.SNOOZED,
        Act.ADMIN_ASKED,
        Act.REVEALED,
        Act.EDITED,
        Act.EDIT_REFUSED,
        Act.TAKEN_BACK,
        Act.VOTE_DROPPED,
        Act.BROKE_GLASS,
        Act.ALERT_SEEN,
        Act.EXPIRED,
        Act.CANCELLED,
        Act.WITHDRAWN,
        Act.DENIED,
        Act.SUPERSEDED,
        Act.UNDECIDABLE,
        Act.STARTED,
        Act.DOUBTED,
        Act.STOPPED,
        Act.GRANTED,
        Act.GRANT_ENDED,
    )
)


def _shown(text: object) -> str:
    """Return a person's text, masked again with the current rules."""
    words = text if isinstance(text, str) else json.dumps(text)
    return show(mask_text(words), _TEXT, one_line=True).text


def _who(user_id: str) -> Block:
    if is_person(user_id):
        return {"type": "user", "user_id": user_id}
    return literal(say("history.somebody"))


def _when(at_ms: int) -> Block:
    seconds = max(at_ms, 0) // 1_000
    text_format = "{date_short_pretty} {time}"
    return {"type": "date", "timestamp": seconds, "format": text_format, "fallback": utc(at_ms)}
