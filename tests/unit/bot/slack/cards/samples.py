"""Sample cards and modals, kept as JSON files beside this one.

Run `python -m tests.unit.bot.slack.cards.samples` to write the files again; read the difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from agents.core.codec import Json
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Card
from bot.questions.form import AnswerForm, Form, Option
from bot.records.approval import Approval, Decision, Execution, ExecutionState, Kind, Status
from bot.records.origin import AgentRun, RequestPlace
from bot.records.people import DelegationRecord
from bot.records.terms import BreakGlass, GrantTerms, Group, Requirement, Stage, Terms
from bot.slack.cards.agent_text import reply_cards
from bot.slack.cards.break_glass import override_modal
from bot.slack.cards.card_for import card_for
from bot.slack.cards.details import details_modal
from bot.slack.cards.grants import grant_modal
from bot.slack.cards.modals import late_modal, withdraw_modal
from bot.slack.cards.review import FormReader, review_modal
from bot.slack.cards.secondary_actions import (
    Here,
    OwnRights,
    hand_over_modal,
    question_modal,
    snooze_modal,
)
from bot.slack.side_messages.reminders import concluded_text, line_card, nudge_text
from tests.support.named import NOBODY, under_lists
from tests.unit.bot.asked import (
    answer_modal,
    choose_modal,
    edit_modal,
    form_of,
    modal_of,
    reject_modal,
)
from tests.unit.bot.slack.cards.batch_samples import BATCH_CARDS, BATCH_FORMS

FOLDER = Path(__file__).parent / "golden"
APPROVERS = "the members of this channel, <@U0BEN>"
LINK = "https://acme.slack.com/archives/C1/p1764000000000100?thread_ts=1764000000.0001&cid=C1"
CREATED = 1_764_000_000_000
DECIDED = CREATED + 120_000
ARGUMENTS: dict[str, Json] = {
    "service": "payments",
    "version": "1.4.2",
    "environment": "production",
    "replicas": 3,
    "amount": "120.50",
    "notify": True,
    "channels": ["ops"],
    "day": "2026-12-01",
    "at": "2026-12-01T09:30:00Z",
    "note": "First line\nSecond line",
    "options": {"drain": True, "wait": [1, 2]},
    "api_key": "sk-abcdefghijklmnopqrstuvwxyz",
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["service", "version", "environment", "replicas"],
    "properties": {
        "service": {"type": "string", "description": "What to deploy.", "minLength": 1},
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
        "environment": {"$ref": "#/$defs/Environment"},
        "replicas": {"type": "integer", "minimum": 1, "maximum": 20},
        "amount": {"type": "string", "format": "decimal", "minimum": 0, "maximum": 500},
        "notify": {"type": "boolean", "default": False},
        "channels": {"type": "array", "items": {"enum": ["ops", "dev", "all"]}},
        "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        "at": {"type": "string", "format": "date-time"},
        "note": {"type": "string", "format": "multiline", "title": "Note"},
        "options": {"type": "object"},
        "api_key": {"type": "string"},
        "limit": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
    },
    "$defs": {"Environment": {"enum": ["staging", "production"], "type": "string"}},
}


def an_approval(**changes: Any) -> Approval:
    """A pending approval of a deployment, to be changed by keyword."""
    approval = Approval(
        approval_id="apr_" + "0123456789abcdef" * 2,
        kind=Kind.APPROVAL,
        thread_id="T1:C1:1700000000.000100",
        turn=1,
        position=0,
        asker=AgentRun(
            interrupt_id="01234567-89ab-cdef-0123-456789abcdef", address="agent:demo;tool:deploy:1"
        ),
        place=RequestPlace(channel_id="C1", thread_ts="1700000000.000100"),
        requester_id="U0ROSA",
        tool="deploy",
        rule="default",
        title="Deploy payments 1.4.2 to production",
        why="You asked me to bring 1.4.2 to production.",
        preview="Replaces payments 1.4.1 on 3 replicas.",
        arguments=ARGUMENTS,
        form=SCHEMA,
        digest="d1" * 32,
        terms=NOBODY,
        created_ms=CREATED,
        expires_ms=CREATED + 8 * 3_600_000,
        due_ms=CREATED,
    )
    return under_lists(approval, **changes)


def decided(approval: Approval, status: Status, **changes: Any) -> Approval:
    """The same approval after a decision."""
    decision = Decision(status=status, by="U0BEN", at_ms=DECIDED, digest=approval.digest)
    return approval.changed(status=status, decision=decision.changed(**changes))


def a_question(**changes: Any) -> Approval:
    """A pending question."""
    fields: dict[str, Any] = {
        "kind": Kind.QUESTION,
        "title": "2 questions about the deploy",
        "tool": "",
        "rule": "",
        "preview": "",
        "form": None,
        "arguments": {"questions": ["Which version?", "Which environment?"]},
    }
    return an_approval(**{**fields, **changes})


def a_doubt(**changes: Any) -> Approval:
    """A pending doubt."""
    fields: dict[str, Any] = {"kind": Kind.DOUBT, "title": "Did deploy run?", "form": None}
    return an_approval(**{**fields, **changes})


def an_escalated(**changes: Any) -> Approval:
    """A pending approval that went to the backup people, too."""
    backups = ("U0BEN", "S0OPS", "channel")
    fields = {"backups": backups, "begun_ms": CREATED + 3_600_000, **changes}
    return an_approval(**fields)


def asking(ask: AnswerForm, **changes: Any) -> Approval:
    """A pending approval that is answered in another way."""
    make = a_question if changes.pop("kind", Kind.APPROVAL) is Kind.QUESTION else an_approval
    return make(form=ask.to_data(), **changes)


OPTIONS = (
    Option(id="a", label="Rome", description="Warm; <@U0EVIL> lives there.", value="rome"),
    Option(id="b", label="Oslo", value="oslo"),
    Option(id="c", label="Lima", description="Far.", value="lima"),
)
CITIES = tuple(
    Option(id=str(number), label=f"City {number}", description="x" * 90 if number == 2 else "")
    for number in range(1, 9)
)
TRIP: dict[str, Any] = {
    "type": "object",
    "required": ["place", "days", "who"],
    "properties": {
        "place": {"type": "string", "description": "Where to."},
        "days": {"type": "integer", "minimum": 1},
        "who": {"type": "array", "items": {"type": "string"}},
        "direct": {"type": "boolean", "default": True},
    },
}
REASON = "Deployments to production need a second pair of eyes."
CHOICE = AnswerForm(form=Form.CHOICE, question="Where to?", options=OPTIONS, can_decline=True)
STATE = {"amount": 5, "place": "Rome", "tags": ["a", "b"]}
STATE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["amount", "place"],
    "properties": {"amount": {"type": "integer"}, "place": {"enum": ["Rome", "Oslo"]}},
}


def a_choice(ask: AnswerForm = CHOICE) -> Approval:
    """A pending question with options."""
    listed = {"question": "Where to?", "options": [], "multiple": False}
    return asking(ask, kind=Kind.QUESTION, title="Where to?", arguments=listed)


def a_feedback(**changes: Any) -> Approval:
    """A pending request for feedback, to be changed by the names of its arguments."""
    content = "# Plan\n*First* <!channel>\n```code```"
    return asking(
        AnswerForm(form=Form.FEEDBACK),
        kind=Kind.QUESTION,
        title="Plan of the day",
        arguments={"content": content, **changes},
        why="",
    )


POEM = """Oh potatoes, plain and good,
you do what others never would:
you wait in silence, calm and round,
and make us happy, pound for pound."""


def a_call_choice() -> Approval:
    """A pending call of which an argument is chosen."""
    ask = replace(CHOICE, parameter="place", reason=REASON)
    return asking(ask, arguments={"seats": 2}, title="Book")


def a_form(**changes: Any) -> Approval:
    """A pending call with missing arguments."""
    fields = {"tool": "book", "title": "Book", "arguments": {"seats": 2}, **changes}
    return asking(AnswerForm(form=Form.FIELDS, schema=TRIP), kind=Kind.QUESTION, **fields)


def a_typed_question() -> Approval:
    """A pending question of a graph, with a typed answer."""
    shown = {"questions": ["Which trip?"], "shown": {"draft": "Rome", "token": "hunter2"}}
    ask = AnswerForm(form=Form.FIELDS, schema=TRIP)
    return asking(ask, kind=Kind.QUESTION, title="Which trip?", arguments=shown)


def a_human(*allowed: str) -> Approval:
    """A pending call with the answers that an agent allows."""
    return asking(
        AnswerForm(form=Form.HUMAN, allowed=allowed, schema=SCHEMA if "edit" in allowed else None)
    )


def a_step(**changes: Any) -> Approval:
    """A graph that stopped before a node."""
    fields: dict[str, Any] = {
        "tool": "",
        "rule": "before pay",
        "title": "Go on with “pay”?",
        "why": "",
        "preview": "",
        "arguments": STATE,
        **changes,
    }
    return asking(AnswerForm(form=Form.STEP, label="State", schema=STATE_SCHEMA), **fields)


def a_program() -> Approval:
    """A question that only a program can answer."""
    ask = AnswerForm(form=Form.PROGRAM, program="Machine: expected a Measurement, got a text")
    return asking(
        ask,
        kind=Kind.QUESTION,
        title="Measure the temperature.",
        arguments={"questions": ["Measure the temperature."]},
    )


def _edited() -> Approval:
    after = {**ARGUMENTS, "version": "1.4.3", "replicas": 5, "note": "One\nTwo\nThree"}
    del after["day"]
    return decided(
        an_approval(),
        Status.APPROVED,
        arguments=after,
        title="Deploy payments 1.4.3 to production",
        preview="Replaces payments 1.4.1 on 5 replicas.",
    )


def _run(state: str, text: str = "") -> Approval:
    run = Execution(state=ExecutionState(state), at_ms=DECIDED + 1_000, text=text)
    return decided(an_approval(), Status.APPROVED).changed(execution=run)


def _card(approval: Approval, **changes: Any) -> Card:
    return card_for(approval, approvers_text=APPROVERS, **changes)


LONG = an_approval(
    form=None,
    arguments={"script": "echo <!channel> & go\n" * 1_000},
    why="Because `*bold*` <@U0EVIL> \u202ereversed",
)
GAVE_UP = {"choice": "give_up", "result": ""}
RAN = {"choice": "ran", "result": "All 3 replicas run 1.4.2."}
REPLY = """# Status
**payments** runs *well*, `1.4.2`, ~~1.4.1~~ <!channel> [click](https://evil.example)
See https://status.example/payments?x=1

- first
- second
  - inner
1. one
2. two
> quoted
```python
print("hi")
```
done"""

CARDS: dict[str, Callable[[], Card]] = {
    "approval_pending": lambda: _card(an_approval()),
    "approval_pending_long": lambda: _card(LONG),
    "approval_pending_self": lambda: card_for(
        an_approval(self_approval=True, arguments={}, form=None, preview="", why=""),
        approvers_text=APPROVERS,
    ),
    "approval_pending_stages": lambda: _card(under(STAGED)),
    "approval_running": lambda: _card(_run("started")),
    "approval_ran": lambda: _card(_run("ended", "search 3.0.1 in *staging* <!here>\n" * 9)),
    "approval_failed": lambda: _card(_run("failed", "OSError: the disk is full")),
    "approval_stopped": lambda: _card(_run("lapsed", "Rejected by a person; it did not run.")),
    "approval_doubt": lambda: _card(_run("doubt")),
    "approval_approved": lambda: _card(decided(an_approval(), Status.APPROVED)),
    "approval_rejected": lambda: _card(
        decided(an_approval(), Status.REJECTED, reason="Not today.\nApproved by <@U0CFO>")
    ),
    "approval_edited": lambda: _card(_edited()),
    "approval_expired": lambda: _card(decided(an_approval(), Status.EXPIRED, by="")),
    "approval_cancelled": lambda: _card(decided(an_approval(), Status.CANCELLED)),
    "question_pending": lambda: _card(a_question()),
    "question_answered": lambda: _card(
        decided(a_question(), Status.ANSWERED, answer=["1.4.2", "production"])
    ),
    "approval_pending_reason": lambda: _card(asking(AnswerForm(form=Form.CALL, reason=REASON))),
    "choice_pending": lambda: _card(a_choice()),
    "choice_chosen": lambda: _card(
        decided(a_choice(), Status.ANSWERED, answer={"selected": ["b"]})
    ),
    "choice_none": lambda: _card(decided(a_choice(), Status.REJECTED, reason="All too far.")),
    "choice_pending_yes": lambda: _card(
        a_choice(
            ask=AnswerForm(
                form=Form.CHOICE,
                question="Shall I?",
                options=(
                    Option(id="1", label="Yes", value=True),
                    Option(id="2", label="No", value=False),
                ),
            )
        )
    ),
    "choice_pending_many": lambda: _card(a_choice(ask=replace(CHOICE, options=CITIES))),
    "call_choice_pending": lambda: _card(a_call_choice()),
    "call_choice_chosen": lambda: _card(
        decided(a_call_choice(), Status.APPROVED, answer={"selected": ["a"]})
    ),
    "feedback_pending": lambda: _card(a_feedback()),
    "feedback_pending_version": lambda: _card(
        a_feedback(
            version=2,
            previous=POEM,
            content="To potatoes\n\n" + POEM.replace("would", "could"),
            wanted="shorter, and it needs a title",
        )
    ),
    "feedback_given": lambda: _card(
        decided(a_feedback(), Status.ANSWERED, answer={"feedback": "Shorter <!here>."})
    ),
    "feedback_accepted": lambda: _card(
        decided(a_feedback(), Status.ANSWERED, answer={"accepted": True})
    ),
    "form_pending": lambda: _card(a_form()),
    "form_filled": lambda: _card(
        decided(
            a_form(),
            Status.ANSWERED,
            answer={"values": {"place": "Rome", "days": 2, "who": ["Mia"]}},
        )
    ),
    "form_cancelled": lambda: _card(decided(a_form(), Status.CANCELLED, reason="I do not know.")),
    "human_pending": lambda: _card(a_human("accept", "ignore", "response", "edit")),
    "human_pending_strict": lambda: _card(a_human("response")),
    "human_responded": lambda: _card(
        decided(a_human("response"), Status.ANSWERED, answer=["Use staging."])
    ),
    "human_ignored": lambda: _card(decided(a_human("ignore"), Status.REJECTED)),
    "step_pending": lambda: _card(a_step()),
    "step_continued": lambda: _card(decided(a_step(), Status.APPROVED)),
    "step_edited": lambda: _card(
        decided(a_step(), Status.APPROVED, arguments={**STATE, "amount": 7})
    ),
    "step_stopped": lambda: _card(decided(a_step(), Status.REJECTED, reason="Too much.")),
    "typed_pending": lambda: _card(a_typed_question()),
    "typed_answered": lambda: _card(
        decided(
            a_typed_question(),
            Status.ANSWERED,
            answer={"values": {"place": "Oslo", "days": 1, "who": []}},
        )
    ),
    "program_pending_nothing": lambda: _card(a_program()),
    "program_expired": lambda: _card(decided(a_program(), Status.EXPIRED, by="")),
    "doubt_pending": lambda: _card(a_doubt()),
    "doubt_pending_limit": lambda: _card(
        a_doubt(form=AnswerForm(form=Form.CALL, limit=90).to_data())
    ),
    "doubt_ran": lambda: _card(decided(a_doubt(), Status.ANSWERED, answer=RAN)),
    "doubt_again": lambda: _card(
        decided(a_doubt(), Status.APPROVED).changed(execution=_run("ended", "done").execution)
    ),
    "doubt_given_up": lambda: _card(decided(a_doubt(), Status.REJECTED, answer=GAVE_UP)),
    "approval_pending_escalated": lambda: _card(an_escalated()),
    "doubt_pending_escalated": lambda: _card(an_escalated().changed(kind=Kind.DOUBT)),
    "escalation": lambda: nudge_text(an_approval(), "escalation", ["U0BEN", "S0OPS", "U0BEN"]),
    "escalation_channel": lambda: nudge_text(an_approval(backups=("channel",)), "escalation", []),
    "reminder": lambda: nudge_text(
        an_approval(), "reminder", ["U0BEN", "S0OPS", "U0BEN", "channel"]
    ),
    "reminder_link": lambda: nudge_text(an_approval(), "reminder", ["U0BEN"], link=LINK),
    "handover": lambda: nudge_text(an_approval(), "handover", ["U0BEN"], link=LINK),
    "quiet": lambda: nudge_text(an_approval(), "quiet", [], link=LINK),
    "line": lambda: line_card(an_approval(), ["U0BEN", "C0OPS"], link=LINK),
    "reminder_rejected": lambda: concluded_text(decided(an_approval(), Status.REJECTED), link=LINK),
    "reminder_done": lambda: concluded_text(decided(an_approval(), Status.APPROVED), link=LINK),
    "reminder_expired": lambda: concluded_text(decided(an_approval(), Status.EXPIRED, by="")),
    "reply": lambda: reply_cards(REPLY)[0],
}
STAGE = Stage(approve=(Requirement(name="oncall", groups=("oncall",)),))
GRANTS = Terms(
    rules=("small",),
    stages=(STAGE,),
    groups={"oncall": Group(usergroups=("S0ONCALL",))},
    grants=GrantTerms(max_time_s=7_200, max_uses=5, vary=("replicas", "note")),
)
CRITICAL = GRANTS.model_copy(update={"risk": "critical", "grants": None})
STAGED: Terms = GRANTS.model_copy(
    update={
        "stages": (
            Stage(name="technical", approve=STAGE.approve),
            Stage(name="business", approve=(Requirement(name="finance", groups=("finance",)),)),
        ),
        "groups": {**GRANTS.groups, "finance": Group(usergroups=("S0FINANCE",))},
        "grants": None,
    }
)
GLASS = BreakGlass(groups=("oncall",), alert="C0ALERT")
HERE = Here(now_ms=CREATED, zone=ZoneInfo("Europe/Berlin"))
RIGHTS = OwnRights(
    groups={"oncall": "On call"},
    waiting=[an_approval(), an_approval(title="Refund order A-1017")],
    handed=[
        DelegationRecord(
            delegation_id="dlg_1",
            team_id="T1",
            owner_id="U0ADA",
            delegate_id="U0BEN",
            group_name="",
            created_ms=CREATED,
            until_ms=CREATED + 86_400_000,
        )
    ],
)
ROSA = FormReader(why="You can't approve your own request.", is_requester=True, can_override=True)
ADA = FormReader(
    can_approve=True, can_reject=True, why="You can decide because you're in <!subteam^S0ONCALL>."
)
UNREAD = replace(ADA, has_read=False, pages=1)


def under(terms: Terms) -> Approval:
    """An approval under some terms."""
    return an_approval(terms=terms)


def a_long_call() -> Approval:
    """A call of which the full text has pages."""
    return an_approval(arguments={**ARGUMENTS, "body": "Pack your desk. " * 500})


MODALS: dict[str, Callable[[], dict[str, Any]]] = {
    "modal_reject": lambda: reject_modal(an_approval()),
    "modal_edit": lambda: edit_modal(an_approval()),
    "modal_answer": lambda: answer_modal(a_question()),
    "modal_feedback": lambda: answer_modal(a_feedback()),
    "modal_compare": lambda: modal_of(
        a_feedback(version=2, previous=POEM, content=POEM.replace("would", "could")),
        ActionId.COMPARE,
    ),
    "modal_fill": lambda: answer_modal(a_form()),
    "modal_typed": lambda: answer_modal(a_typed_question()),
    "modal_choose": lambda: choose_modal(a_choice(ask=replace(CHOICE, options=CITIES))),
    "modal_choose_several": lambda: choose_modal(a_choice(ask=replace(CHOICE, multiple=True))),
    "modal_respond": lambda: modal_of(a_human("response"), ActionId.RESPOND),
    "modal_edit_step": lambda: edit_modal(a_step()),
    "modal_stop": lambda: reject_modal(a_step()),
    "modal_none": lambda: reject_modal(a_choice()),
    "modal_cancel": lambda: reject_modal(a_form()),
    "modal_details_choice": lambda: review_modal(a_call_choice(), FormReader()),
    "modal_details_form": lambda: review_modal(a_form(), FormReader()),
    "modal_details": lambda: review_modal(an_approval(), ROSA),
    "modal_technical": lambda: review_modal(an_approval(), ADA, page="technical"),
    "modal_review": lambda: review_modal(an_approval(), ADA),
    "modal_review_stages": lambda: review_modal(under(STAGED), ADA),
    "modal_review_text": lambda: review_modal(a_long_call(), UNREAD, page="text.2"),
    "modal_review_grant": lambda: review_modal(under(GRANTS), ADA),
    "modal_critical": lambda: review_modal(under(CRITICAL), ADA),
    "modal_revealed": lambda: details_modal(an_approval()),
    "modal_grant": lambda: form_of(
        under(GRANTS), grant_modal(under(GRANTS), GRANTS.grants, covered=12)
    ),
    "modal_override": lambda: form_of(an_approval(), override_modal(an_approval(), GLASS)),
    "modal_withdraw": lambda: withdraw_modal(an_approval()),
    "modal_snooze": lambda: snooze_modal(an_approval(), HERE),
    "modal_ask_back": lambda: question_modal(an_approval()),
    "modal_ask_agent": lambda: question_modal(an_approval(), has_agent=True),
    "modal_hand_over": lambda: hand_over_modal(an_approval(), RIGHTS, HERE),
    "modal_late": lambda: late_modal(decided(an_approval(), Status.APPROVED), ActionId.EDIT_MODAL),
    "modal_ran": lambda: modal_of(a_doubt(), ActionId.RAN),
}


CARDS |= {name: partial(make, an_approval()) for name, make in BATCH_CARDS.items()}
MODALS |= {name: partial(make, an_approval()) for name, make in BATCH_FORMS.items()}


NAMES = sorted({*CARDS, *MODALS})
"""Of all samples."""


def sample(name: str) -> Any:
    """One as JSON data."""
    return asdict(CARDS[name]()) if name in CARDS else MODALS[name]()


def write_all() -> None:
    """Write all files again."""
    for name in NAMES:
        text = json.dumps(sample(name), indent=2, ensure_ascii=False)
        (FOLDER / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    write_all()
