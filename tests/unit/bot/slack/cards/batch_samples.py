"""Sample cards of several approvals, and their forms; see `samples`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bot.layout.blocks import Card
from bot.ports.threads import BatchWords
from bot.questions.form import AnswerForm, Form
from bot.records.approval import Approval, Decision, Execution, ExecutionState, Status, StoredBatch
from bot.records.terms import Group, Requirement, Stage, Terms
from bot.slack.cards.batch import (
    ask_one_modal,
    batch_modal,
    list_modal,
    reject_all_modal,
    withdraw_all_modal,
)
from bot.slack.cards.batch_card import batch_card
from tests.support.named import escalated, with_backups

AMOUNTS = ("20.00", "12.50", "120.50", "9.90", "31.00")
TITLE, REST = "5 refunds, 193.90 EUR in total", "3 refunds, 63.50 EUR in total"
TERMS = Terms(
    rules=("refunds",),
    stages=(Stage(approve=(Requirement(name="here", groups=("here",)),)),),
    groups={"here": Group(here=True)},
)
ASK = AnswerForm(
    form=Form.CALL, named=("order", "amount", "currency"), shown=("order",), labels={"order": "No."}
)
LATER = 1_764_000_120_000


def an_item(base: Approval, number: int, amount: str, **changes: Any) -> Approval:
    """One refund of several."""
    order = str(1234 + number * 7)
    first = f"apr_{0:032x}"
    arguments = {"order": order, "amount": amount, "currency": "EUR"}
    item = base.changed(
        approval_id=f"apr_{number:032x}",
        position=number,
        tool="refund",
        title=f"Refund {amount} EUR, order {order}",
        why="",
        preview="",
        arguments=arguments,
        form=ASK.to_data(),
        terms=TERMS,
        batch=StoredBatch(owner_id=first),
        digest=f"{number:02x}" * 32,
    )
    return item.changed(**changes)


def refunds(base: Approval, count: int = 5) -> list[Approval]:
    """Several refunds that wait."""
    amounts = AMOUNTS if count == len(AMOUNTS) else [f"{10 + index}.00" for index in range(count)]
    return [an_item(base, number, amount) for number, amount in enumerate(amounts)]


def ended(item: Approval, status: Status, *, reason: str = "", by: str = "U0ADA") -> Approval:
    """The same when it is decided."""
    decision = Decision(status=status, by=by, at_ms=LATER, reason=reason, digest=item.digest)
    return item.changed(status=status, decision=decision)


def ran(
    item: Approval, state: ExecutionState = ExecutionState.ENDED, text: str = "refunded"
) -> Approval:
    """The same when its call has run."""
    run = Execution(state=state, text=text, at_ms=LATER)
    return ended(item, Status.APPROVED).changed(execution=run)


def partly(base: Approval) -> list[Approval]:
    """Some of them decided."""
    first, two, three, four, five = refunds(base)
    return [first, two, ran(three), ended(four, Status.REJECTED, reason="by hand"), five]


def done(base: Approval) -> list[Approval]:
    """All of them decided."""
    first, two, three, four, five = refunds(base)
    reason = "already refunded by hand"
    return [
        ran(first),
        ran(two),
        ran(three),
        ended(four, Status.REJECTED, reason=reason),
        ran(five),
    ]


def drawn(items: Sequence[Approval], **changes: Any) -> Card:
    """Their card."""
    words = {"title": TITLE if len(items) == len(AMOUNTS) else "", **changes}
    return batch_card(items, BatchWords(**words), approvers_text="the members of this channel")


def a_hundred(base: Approval) -> Card:
    """A card of many, with the largest that its tool names."""
    items = refunds(base, 100)
    largest = tuple(approval.approval_id for approval in reversed(items))
    return drawn(items, title="100 refunds, 5950.00 EUR in total", largest=largest)


BATCH_CARDS: dict[str, Callable[[Approval], Card]] = {
    "batch_pending": lambda base: drawn(refunds(base)),
    "batch_pending_partly": lambda base: drawn(partly(base), rest=REST),
    "batch_done": lambda base: drawn(done(base)),
    "batch_failed": lambda base: drawn(
        [*map(ran, refunds(base)[:4]), ran(refunds(base)[4], ExecutionState.FAILED, "no answer")]
    ),
    "batch_expired": lambda base: drawn(
        [ended(approval, Status.EXPIRED, by="") for approval in refunds(base)]
    ),
    "batch_pending_stuck": lambda base: drawn(
        [approval.changed(stuck="Nobody.") for approval in refunds(base)]
    ),
    "batch_pending_escalated": lambda base: drawn(
        [escalated(with_backups(approval, "S0OPS"), LATER) for approval in refunds(base)]
    ),
    "batch_running": lambda base: drawn(
        [*map(ran, refunds(base)[:4]), ran(refunds(base)[4], ExecutionState.STARTED, "")]
    ),
    "batch_withdrawn": lambda base: drawn(
        [
            ended(approval, Status.WITHDRAWN, by="U0ROSA", reason="Done by hand")
            for approval in refunds(base)
        ]
    ),
    "batch_pending_100": a_hundred,
    "batch_pending_no_words": lambda base: drawn(refunds(base), title=""),
    "batch_empty": lambda _: drawn([]),
}
BATCH_FORMS: dict[str, Callable[[Approval], dict[str, Any]]] = {
    "modal_batch": lambda base: batch_modal(refunds(base)[0], refunds(base), TITLE),
    "modal_batch_reject": lambda base: reject_all_modal(refunds(base), TITLE),
    "modal_batch_withdraw": lambda base: withdraw_all_modal(refunds(base), TITLE),
    "modal_batch_ask": lambda base: ask_one_modal(refunds(base), TITLE),
    "modal_batch_details": lambda base: list_modal(partly(base), TITLE),
}
