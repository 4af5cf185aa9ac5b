"""A record for each state that a card of a call can have, with people of the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bot.approvals.comments import with_answer
from bot.questions.form import AnswerForm, Form
from bot.records.approval import (
    Approval,
    CardClaim,
    CastVote,
    Comment,
    Decision,
    Emergency,
    Execution,
    ExecutionState,
    Kind,
    RequesterMessage,
    Status,
)
from bot.records.terms import Group, Requirement, Stage, Terms
from slack_sandbox import ADA, BEN, FINANCE_GROUP, MIA, ONCALL, OPS, ROSA, TEAM
from tests.support.named import people, with_backups
from tests.unit.bot.slack.cards.samples import DECIDED, an_approval

DIGEST = an_approval().digest
ON_CALL = Requirement(name="On call", groups=("oncall",))
FINANCE = Requirement(name="Finance", groups=("finance",))
GROUPS = {"oncall": Group(users=(ADA, BEN)), "finance": Group(users=(MIA,))}
DEPLOY = {"service": "payments", "version": "1.4.2", "environment": "production", "replicas": 3}
ORDER = {
    "order_id": "A-1017",
    "amount": "49.90",
    "reason": "damaged",
    "notify": True,
    "ship_back": False,
    "channel": "mail",
}
NOTE = "Dear all, the shop is closed on Monday. " * 20 + "Bye."
DIFF = " replicas:\n-  count: 3\n+  count: 5\n   zone: eu-1"
TABLE = "Order\tCustomer\tSum\nA-1017\tRosa\t49.90\nA-1018\tBen\t12.00"


def call(
    risk: str = "medium",
    *stages: Stage,
    approvers: Sequence[str] = (ADA, BEN),
    backups: Sequence[str] = (),
    **changes: Any,
) -> Approval:
    """A pending deployment with four arguments, of which the title shows three."""
    terms = Terms(
        rules=("r",),
        stages=stages or (Stage(approve=(ON_CALL,)),),
        groups={**GROUPS, "oncall": people(*approvers)},
        risk=risk,  # type: ignore[arg-type]
        confirm=risk in {"high", "critical"},
    )
    ask = AnswerForm(form=Form.CALL, named=("service", "version", "environment"))
    fields = {
        "thread_id": f"{TEAM}:{OPS}:1700000000.000100",
        "requester_id": ROSA,
        "arguments": DEPLOY,
        "preview": "Replaces 1.4.1, one replica after another.",
        "why": "",
        "form": replace(ask, schema=SCHEMA).to_data(),
        "terms": terms,
        **changes,
    }
    approval = an_approval(**fields)
    return with_backups(approval, *backups) if backups else approval


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("service", "version", "environment")},
}


def plain_call(title: str, preview: str, **arguments: Any) -> Approval:
    """A pending call with other arguments."""
    return call(title=title, preview=preview, arguments=arguments)


def vote(by: str, *groups: str, choice: str = "approve") -> CastVote:
    return CastVote(by=by, choice=choice, at_ms=DECIDED, digest=DIGEST, note="", groups=groups)


def ended(status: Status, by: str = ADA, **changes: Any) -> Approval:
    decision = Decision(status=status, by=by, at_ms=DECIDED, digest=DIGEST, **changes)
    return call("high").changed(status=status, decision=decision)


def after(state: ExecutionState, text: str = "", **changes: Any) -> Approval:
    run = Execution(state=state, at_ms=DECIDED + 60_000, text=text)
    return ended(Status.APPROVED, **changes).changed(execution=run)


def asked(answer: str = "") -> Approval:
    comment = Comment(by=ADA, text="Is the migration done?", at_ms=DECIDED, ts="1.1")
    entry = with_answer(comment, by=ROSA, text=answer, ts="1.2") if answer else comment
    return call("high", dialog=(entry,))


BOTH = Stage(approve=(ON_CALL, FINANCE))
TWO = (Stage(name="On call", approve=(ON_CALL,)), Stage(name="Finance", approve=(FINANCE,)))
_WROTE = (RequesterMessage(by=ROSA, text="Please wait for the backup.", at_ms=DECIDED),)
_NAMED = (ADA, BEN)
_EDITED = {**DEPLOY, "version": "1.4.3", "replicas": 5}

PENDING: dict[str, Approval] = {
    "low": call("low"),
    "normal": call(),
    "high": call("high"),
    "critical": call("critical", BOTH),
    "text": plain_call("Send a mail to 312 customers", "", subject="Closed on Monday", body=NOTE),
    "diff": plain_call("Change the replicas of shop", DIFF, file="shop.yaml"),
    "table": plain_call("Refund 2 orders", TABLE),
    "facts": plain_call("Refund an order", "", **ORDER),
    "why": call("high", why="1.4.1 loses orders since this morning."),
    "claimed": call("high", claim=CardClaim().taken(ADA, DECIDED)),
    "votes": call("high", BOTH, votes=(vote(ADA, "oncall"),)),
    "stage 1": call("high", *TWO),
    "stage 2": call("high", *TWO, votes=(vote(ADA, "oncall"),), stage=1),
    "escalated": call(approvers=(ADA,), backups=(BEN,), begun_ms=DECIDED),
    "snoozed": call(approvers=_NAMED, snoozes={ADA: DECIDED}),
    "requester wrote": call("high", said=_WROTE),
    "asked": asked(),
    "answered": asked("Yes, since 9 o'clock."),
    "stuck": call("high", stuck=f"The only approver is <@{ROSA}>, who requested it."),
    "group": call(approvers=(FINANCE_GROUP, ONCALL)),
    "doubt": call("high", approvers=_NAMED).changed(kind=Kind.DOUBT),
}
"""What waits."""

ENDED: dict[str, Approval] = {
    "running": after(ExecutionState.STARTED),
    "ran": after(ExecutionState.ENDED, "payments 1.4.2 is live in production with 3 replicas."),
    "note": after(ExecutionState.ENDED, "It is live.", reason="Fine, but watch the error rate."),
    "failed": after(
        ExecutionState.FAILED, "Image payments:1.4.2 not found (503). Nothing was changed."
    ),
    "in doubt": after(ExecutionState.DOUBT),
    "rejected": ended(Status.REJECTED, reason="Wait until the sale is over on Monday."),
    "edited": after(
        ExecutionState.ENDED,
        "It is live.",
        arguments=_EDITED,
        title="Deploy payments 1.4.3 to production",
    ),
    "expired": ended(Status.EXPIRED, by=""),
    "withdrawn": ended(Status.WITHDRAWN, by=ROSA),
    "replaced": ended(Status.SUPERSEDED, by="").changed(newer_ts="1.1"),
    "called off": ended(Status.SUPERSEDED, by="", reason="The agent no longer needs this."),
    "cancelled": ended(Status.CANCELLED, by=""),
    "override": after(
        ExecutionState.ENDED,
        "It is live.",
        by=ROSA,
        emergency=Emergency(what="Checkout is down.", why_now="Nobody on call answers."),
    ),
}
"""What is over."""
STATES = PENDING | ENDED
