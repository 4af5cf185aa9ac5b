"""The card of a pending record: a call, a step of an agent, or a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from bot.approvals.comments import AGENT
from bot.approvals.disclosure import guesses
from bot.config.durations import format_duration
from bot.layout.argument_fields import Naming, facts
from bot.layout.blocks import HEADER, Block, Card, joined, literal, quote, rich
from bot.layout.card_layout import bold_title, notes, open_card, small_lines
from bot.layout.parts import Body, agreed, asked_by, body, frozen_words, spoken, stuck_words
from bot.layout.preview import preview
from bot.layout.sentences import title_hidden, title_of
from bot.layout.text import show
from bot.questions.shown import ShownQuestion, shown_question
from bot.records.approval import Approval, Kind
from bot.redaction.call import mask_call, written
from bot.redaction.mask import REDACTED, mask_text
from bot.slack.cards.buttons import choices
from bot.slack.cards.change_note import anew, claimed, frozen, void_words, wrote_since, wrote_words
from bot.slack.cards.details import fits_details
from bot.slack.cards.footer import note_quotes, notes_given, small_print, source_line, stage_line
from bot.slack.cards.status import pending_status
from bot.words import say
from bot.words.mrkdwn import mention

WHY = 160
_TEXT = 400
"""Characters of a step's own text."""


def pending_card(question: ShownQuestion, *, approvers_text: str, lead: Sequence[str] = ()) -> Card:
    """Render the card of a pending record, with buttons."""
    approval = question.approval
    about = describe(approval)
    guessed = guesses(approval)
    about = replace(about, guessed=bool(guessed))
    blocks: list[Block] = [
        *frozen(approval),
        *anew(approval),
        *joined([*about.blocks, *_why(approval)]),
    ]
    blocks += [*dialog(approval), *wrote_since(approval), *note_quotes(notes_given(approval))]
    needs_all = question.can_agree() and approval.kind is not Kind.DOUBT
    is_too_long = needs_all and not fits_details(question)
    row = choices(question, about, is_too_long=is_too_long)
    blocks += notes(about, row, has_lead=approval.kind is Kind.DOUBT)
    stuck = [stuck_words(approval)] if approval.stuck else []
    small = small_print(approval, approvers_text, question.who_can, lead)
    blocks += small_lines([*stuck, *small, *claimed(approval)])
    blocks += source_line(approval)
    blocks += row.blocks
    status, title = pending_status(question), title_of(approval)
    state, text = status.line(approval), _text(question, status.spoken)
    if approval.kind is Kind.DOUBT:
        asks = small_lines([_did_it_run(question)])
        return Card(text=text, blocks=[state, bold_title(title), *asks, *blocks])
    return Card(text=text, blocks=open_card(state, title, blocks))


def _did_it_run(question: ShownQuestion) -> str:
    if not question.ask.limit:
        return say("line.doubt_checked")
    time = format_duration(timedelta(seconds=question.ask.limit))
    return say("line.doubt_limit", time=time)


def describe(approval: Approval) -> Body:
    """Render what will happen, arguments that the title lacks, and what is asked for."""
    question = shown_question(approval)
    if is_question(approval):
        return _asked(question)
    title = title_of(approval)
    hidden = title_hidden(approval)
    head = Body(blocks=(), hidden=hidden, masked=REDACTED in title, altered=False)
    shown = "" if hidden else title
    parts = (
        head,
        preview(approval.preview),
        _arguments(question, shown),
        body([question.of_call()]),
        _reason(question),
    )
    return Body(
        blocks=tuple(block for part in parts for block in part.blocks),
        hidden=sum(part.hidden for part in parts),
        masked=any(part.masked for part in parts),
        altered=any(part.altered for part in parts) or show(title, HEADER, one_line=True).altered,
        guessed=any(part.guessed for part in parts),
        turned=any(part.turned for part in parts),
    )


def is_question(approval: Approval) -> bool:
    """Whether the record is about no call. Missing arguments have the call's card."""
    return approval.kind is Kind.QUESTION and not approval.tool.strip()


def _asked(question: ShownQuestion) -> Body:
    """Render the questions; a question longer than the title is repeated in full."""
    approval = question.approval
    title = title_of(approval)
    is_begin = any(text.strip().startswith(approval.title.strip()) for text in question.asked())
    about = body(question.content())
    view = show(title, HEADER, one_line=True)
    return replace(
        about,
        blocks=(*about.blocks, *question.small()),
        hidden=about.hidden + (0 if is_begin else view.hidden),
        masked=about.masked or REDACTED in title,
        altered=about.altered or view.altered,
        turned=about.turned or view.turned,
    )


def _arguments(question: ShownQuestion, title: str) -> Body:
    ask = question.ask
    if text := question.only_text():
        is_title = title == written(mask_call(text)).strip()
        return body([] if is_title else [agreed(ask.label, text, _TEXT)])
    naming = Naming(title=title, named=ask.named, labels=ask.labels, masks=ask.masks)
    return facts([*question.approval.arguments.items()], naming)


def _reason(question: ShownQuestion) -> Body:
    """Render the rule's reason; the details show it in full."""
    return _quoted(say("line.why_asked"), question.ask.reason)


def why_of(approval: Approval) -> list[Block]:
    """Render the rule's reason and the agent's reason, like the card."""
    return [*_reason(shown_question(approval)).blocks, *_why(approval)]


def _why(approval: Approval) -> tuple[Block, ...]:
    """Render the agent's reason, unless its message is directly above the card."""
    return _quoted(say("line.why_label"), "" if approval.why_said else approval.why).blocks


def _quoted(label: str, text: str) -> Body:
    clean = mask_text(text).strip()
    if not clean:
        return Body(blocks=(), hidden=0, masked=False, altered=False)
    view = show(clean, WHY, lines=2)
    words = f"{view.text}…" if view.hidden else view.text
    block = rich(quote(literal(f"{label} ", "bold"), literal(words or "…")))
    masked = REDACTED in clean
    return Body(blocks=(block,), hidden=0, masked=masked, altered=view.altered, turned=view.turned)


def _text(question: ShownQuestion, state: str) -> str:
    """Return the notification text: state, title, people, expiry."""
    approval = question.approval
    edited = say("notify.edited", who=mention(approval.edits.by)) if approval.edits.by else ""
    why = spoken(stuck_words(approval) if approval.stuck else "", frozen_words(approval))
    return spoken(
        state, why, edited, void_words(approval), wrote_words(approval), stage_line(approval)
    )


MOST_SHOWN = 3
"""Maximum number of questions on a card. The thread has all."""


def dialog(approval: Approval) -> list[Block]:
    """Render the newest questions, each with its answer."""
    questions = approval.dialog
    quotes: list[Block] = []
    for question in questions[-MOST_SHOWN:]:
        parts = [literal(f"{say('line.question')} ", "bold"), literal(_short(question.text))]
        if not question.is_open:
            answer = _short(question.answer)
            by = say("line.agent_answer") if question.answered_by == AGENT else say("line.answer")
            parts += [literal(f"\n{by} ", "bold"), literal(answer)]
        quotes.append(quote(*parts))
    blocks = [rich(*quotes)] if quotes else []
    lines = []
    if len(questions) > MOST_SHOWN:
        lines.append(say("line.earlier", n=len(questions) - MOST_SHOWN))
    if questions and questions[-1].is_open and questions[-1].to == AGENT:
        lines.append(say("line.agent_answers"))
    elif questions and questions[-1].is_open:
        lines.append(say("line.reply_to_answer", who=asked_by(approval)))
    return [*blocks, *small_lines(lines)]


def _short(text: str) -> str:
    view = show(mask_text(text), _TEXT, lines=6)
    return f"{view.text}…" if view.hidden else view.text or "…"
