"""The review modal: all content in pages, the reader's right, and approval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.layout.action_ids import ActionId, encode_page
from bot.layout.blocks import (
    Block,
    Values,
    actions,
    brief,
    button,
    context,
    line,
    literal,
    mrkdwn,
    plain,
    quote,
    read_state,
    read_text,
    rich,
)
from bot.layout.modals import alert
from bot.layout.parts import asked_by
from bot.layout.sentences import title_of
from bot.layout.short_ids import short_id
from bot.layout.text import clip, show
from bot.policy.demands import is_critical
from bot.policy.progress import progress_of
from bot.questions.call import CallQuestion
from bot.questions.shown import ShownQuestion, shown_question, what_runs
from bot.questions.yes import Proof, yes
from bot.records.approval import Approval, Kind, Status
from bot.redaction.mask import mask_text
from bot.redaction.masks import masked_once
from bot.slack.cards.change_note import frozen, wrote_since
from bot.slack.cards.details import expiry, is_short, pages_of
from bot.slack.cards.footer import stage_line, vote_lines
from bot.slack.cards.grants import next_time
from bot.slack.cards.status import final_status, pending_status
from bot.words import say
from bot.words.mrkdwn import date

REQUEST, HISTORY, TECHNICAL = "request", "history", "technical"
"""Pages other than those of the full text, which are `text.1` and so on."""
_TEXT = "text."
_HEAD = 600
_NOT_HERE = frozenset({ActionId.GRANT, ActionId.BATCH})


@dataclass(frozen=True, slots=True, kw_only=True)
class FormReader:
    """The reader of the review, as known now.

    Attributes:
        can_approve: Whether their approval would count.
        can_reject: Whether their rejection would count.
        why: Why they can or cannot decide: escaped mrkdwn; may be empty.
        pages: Number of consecutive pages of the full text that they have read.
        has_read: Whether they have read everything required.
        is_masked: Whether they must reveal masked values first.
        is_requester: Whether they can withdraw it.
        has_vote: Whether they have voted.
        has_claim: Whether they have claimed it.
        can_override: Whether they may break glass.
    """

    can_approve: bool = False
    can_reject: bool = False
    why: str = ""
    pages: int = 0
    has_read: bool = True
    is_masked: bool = False
    is_requester: bool = False
    has_vote: bool = False
    has_claim: bool = False
    can_override: bool = False


@masked_once()
def review_modal(
    approval: Approval,
    reader: FormReader,
    *,
    page: str = REQUEST,
    values: Values | None = None,
    history: Sequence[Block] = (),
) -> Block:
    """Render a page of the review."""
    return _ReviewPage(approval, reader, page, values or {}).view(history)


@masked_once()
def count_pages(approval: Approval) -> int:
    """Return the number of pages of the full text; 0 if the first page shows all."""
    pages, _ = pages_of(approval)
    return 0 if is_short(pages) else len(pages)


def page_number(page: str) -> int:
    """Return the number of a page of the full text; 0 for other pages."""
    return int(page.removeprefix(_TEXT)) if page.startswith(_TEXT) else 0


def text_page(number: int) -> str:
    """Return the name of a page of the full text."""
    return f"{_TEXT}{number}"


class _ReviewPage:
    """One page of the review."""

    def __init__(self, approval: Approval, reader: FormReader, page: str, values: Values) -> None:
        self._approval, self._reader, self._values = approval, reader, values
        self._question: ShownQuestion = shown_question(approval)
        self._pages, self._is_cut = pages_of(approval)
        self._count = 0 if is_short(self._pages) else len(self._pages)
        number = page_number(page)
        self._page = page if number <= self._count else REQUEST

    def view(self, history: Sequence[Block]) -> Block:
        """Render the page with its frame."""
        can_submit = self._can_agree()
        title = say("form.review" if can_submit else "form.details")
        view: Block = {
            "type": "modal",
            "callback_id": str(ActionId.DETAILS_MODAL),
            "private_metadata": encode_page(
                self._page, self._approval.approval_id, self._approval.digest
            ),
            "title": brief(title),
            "close": brief(say("form.cancel" if can_submit else "form.close")),
            "blocks": [*self._head(), *self._middle(history), *self._foot()],
        }
        if not can_submit:
            return view
        made = {**view, "submit": brief(say("form.approve_submit"))}
        turns = {**view, "submit": brief(say("form.page_next"))}
        return yes(ActionId.REVIEW_MODAL, made, self._proof, turns)

    def _can_agree(self) -> bool:
        """Whether the reader can approve, now or after the last page."""
        is_waiting = self._approval.status is Status.PENDING and not self._is_cut
        return is_waiting and self._reader.can_approve and not self._reader.is_masked

    @property
    def _proof(self) -> Proof:
        """The proof once this page is shown: until all pages were shown, *Next* shows more."""
        is_last = page_number(self._page) == self._count > 0
        is_next = self._reader.pages >= self._count - 1
        is_read = self._reader.has_read or self._count == 0 or (is_last and is_next)
        return Proof(is_whole=is_read, is_checked=True)

    def _head(self) -> list[Block]:
        blocks = _titled(self._approval, self._question)
        if self._approval.status is Status.PENDING:
            blocks += [*frozen(self._approval), *self._alerts()]
        return [*blocks, self._select()]

    def _alerts(self) -> list[Block]:
        """Render warnings: a critical request, or why the reader cannot approve."""
        reader = self._reader
        if self._can_agree():
            is_loud = is_critical(self._approval)
            return [alert(say("form.critical_alert"), "error")] if is_loud else []
        if reader.can_approve:
            words = say("line.too_long" if self._is_cut else "line.reveal_first")
            return [alert(words, "warning")]
        return [alert(reader.why, "info")] if reader.why else []

    def _select(self) -> Block:
        number = page_number(self._page)
        pages = [(REQUEST, say("form.page_request"))]
        if self._count:
            pages.append((text_page(1), say("form.page_text", n=self._count)))
        pages += [(HISTORY, say("form.page_history")), (TECHNICAL, say("form.page_technical"))]
        record = (self._approval.approval_id, self._approval.digest)
        options = {
            page: {"text": plain(words), "value": encode_page(page, *record)}
            for page, words in pages
        }
        select = {
            "type": "static_select",
            "action_id": str(ActionId.PAGE),
            "options": [*options.values()],
            "initial_option": options[text_page(1) if number else self._page],
        }
        return {**actions(select), "block_id": f"page_{self._page}"}

    def _middle(self, history: Sequence[Block]) -> list[Block]:
        match self._page:
            case "history":
                return [*history] or [context(mrkdwn(say("history.none")))]
            case "technical":
                return [_technical(self._approval)]
            case "request":
                return self._request()
            case _:
                return self._text(page_number(self._page))

    def _request(self) -> list[Block]:
        approval, reader = self._approval, self._reader
        blocks = self._pages if not self._count else [*_head_of(approval), *self._pages[:1]]
        if approval.status is Status.PENDING:
            blocks = [*wrote_since(approval), *blocks]
        who, when = asked_by(approval), date(approval.created_ms)
        words = say("line.requested_on", who=who, when=when)
        if self._can_agree() and reader.why:
            words = f"{words} {reader.why}"
        if approval.status is Status.PENDING:
            given, later = vote_lines(approval), stage_line(approval)
            lines = [*given, words, later, expiry(approval), *self._voids()]
            words = "\n".join(filter(None, lines))
        small = context(mrkdwn(words))
        if not self._count:
            return [*blocks, small]
        unread = self._can_agree() and not self._proof.is_whole
        hint = say("form.page_unread" if unread else "form.page_rest")
        return [*blocks, small, context(mrkdwn(hint))]

    def _voids(self) -> list[str]:
        """Describe that an edit voids votes, if both are possible."""
        given = progress_of(self._approval).votes
        offered = self._buttons() if given else []
        can_edit = any(block["action_id"] == ActionId.EDIT for block in offered)
        return [say("line.edit_voids", n=len(given))] if can_edit else []

    def _text(self, number: int) -> list[Block]:
        where = context(mrkdwn(say("form.page_of", n=number, of=self._count)))
        turns = []
        if number > 1:
            turns.append(self._turn(say("form.page_back"), ActionId.PAGE_BACK, number - 1))
        if number < self._count:
            turns.append(self._turn(say("form.page_next"), ActionId.PAGE_NEXT, number + 1))
        return [where, self._pages[number - 1], *([actions(*turns)] if turns else [])]

    def _turn(self, label: str, action: ActionId, number: int) -> Block:
        approval = self._approval
        value = encode_page(text_page(number), approval.approval_id, approval.digest)
        return button(label, action, value, of=title_of(approval))

    def _foot(self) -> list[Block]:
        blocks: list[Block] = []
        if self._can_agree() and isinstance(self._question, CallQuestion):
            inputs = self._question.yes_inputs()
            inputs += next_time(self._approval) if self._proof.is_whole else []
            blocks += [_typed(block, self._values) for block in inputs]
        buttons = self._buttons() if self._approval.status is Status.PENDING else []
        return [*blocks, actions(*buttons)] if buttons else blocks

    def _buttons(self) -> list[Block]:
        """Render all buttons except approval."""
        question, reader = self._question, self._reader
        if self._approval.kind is Kind.QUESTION:
            return []
        buttons: list[Block] = []
        if reader.can_reject:
            every = (*question.yes(), *question.no(), *question.last())
            buttons += [block for block in every if block["action_id"] not in _NOT_HERE]
            buttons = [
                {name: block[name] for name in block if name != "style"} for block in buttons
            ]
        can_take_back = reader.is_requester and question.can_withdraw()
        others = (
            (reader.is_masked and reader.can_reject, say("button.reveal"), ActionId.REVEAL),
            (reader.can_approve, say("button.hand_over"), ActionId.HAND_OVER),
            (reader.has_claim, say("button.unclaim"), ActionId.LET_GO),
            (reader.has_vote, say("button.take_back"), ActionId.TAKE_BACK),
            (can_take_back, say("button.withdraw"), ActionId.WITHDRAW),
            (reader.can_override, say("button.override"), ActionId.OVERRIDE),
        )
        return [
            *buttons,
            *(question.button(label, action) for is_there, label, action in others if is_there),
        ]


def _titled(approval: Approval, question: ShownQuestion) -> list[Block]:
    """Render the title and the state."""
    final = what_runs(approval)
    name = line(literal(clip(title_of(final), 300), "bold"))
    if approval.status is not Status.PENDING:
        return [rich(name), final_status(question).line(approval)]
    return [rich(name), pending_status(question).line(approval)]


def _head_of(approval: Approval) -> list[Block]:
    """Render the beginning of what will happen, if the full text has its own pages."""
    view = show(mask_text(approval.preview), _HEAD, lines=6)
    return [rich(quote(literal(view.text)))] if view.text.strip() else []


def _technical(approval: Approval) -> Block:
    """Render ids and numbers for operators, one per line."""
    rows = (
        ("technical.rule", approval.rule),
        ("technical.tool", approval.tool),
        ("technical.id", short_id(approval.approval_id)),
        ("technical.request", approval.approval_id),
        ("technical.agent", approval.address),
        ("technical.thread", approval.thread_id),
        ("technical.digest", approval.digest),
        ("technical.policy", approval.policy_file),
    )
    none = say("line.none")
    return rich(*(_row(say(key), value.strip() or none) for key, value in rows))


def _row(label: str, value: str) -> Block:
    return line(literal(f"{label}: ", "bold"), literal(clip(value, 300), "code"))


def _typed(block: Block, values: Values) -> Block:
    """Return an input with its previous value."""
    element, block_id = block["element"], block["block_id"]
    if element["type"] == "plain_text_input":
        text = read_text(values, block_id)[: element["max_length"]]
        return {**block, "element": {**element, "initial_value": text}} if text else block
    chosen = read_state(values, block_id).get("selected_option")
    value = chosen.get("value") if isinstance(chosen, Mapping) else None
    known = [option for option in element["options"] if option["value"] == value]
    return {**block, "element": {**element, "initial_option": known[0]}} if known else block
