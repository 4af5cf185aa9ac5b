"""Every info: the record that is made of it, and what a policy says in it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Literal

import pytest

from agents import (
    ApprovalInfo,
    ApprovalResult,
    Cancelled,
    Expired,
    FollowUpInfo,
    InDoubtInfo,
    InDoubtResult,
    ResumeDataError,
    ReviewEditInfo,
)
from agents.core.cancel import CancelInfo
from agents.core.codec import Json
from agents.gates import NoApprovers, Withdrawn
from agents.policy import Ask
from bot.errors import InvalidInputError
from bot.people.approvers import approvers_of, backups_of, next_step_ms
from bot.questions.base import answer_from, asks_people, brief_of, question_of, read_reply
from bot.questions.form import FORM, Form, ask_of, edited_digest, in_order
from bot.records.approval import Approval, Kind, Status
from tests.unit.bot.asked import chosen_digest
from tests.unit.bot.questions.info_samples import (
    ARGUMENTS,
    BREAK,
    BY,
    CALL_CHOICE,
    CHOOSE,
    FEEDBACK,
    HUMAN,
    MISSING,
    NOW,
    OPTIONS,
    RULES,
    STAGE,
    Broken,
    OwnGateInfo,
    Strict,
    approval_of,
    call_fields,
    context_of,
    decided,
    forced,
    is_refused,
    node,
)

AWKWARD: dict[str, Json] = {
    "b": [1 << 70, -0.0, 1e-7, 1.0, True, None],
    "ä": "\u2028\ud800",
    "": {"z": 1, "a": {}},
}
"""Arguments whose stored form must not change the digest."""


def test_a_stored_call_keeps_its_digest() -> None:
    ruling = Ask(rule="large", approvers=("UADA",), reason="Großes Geld").to_text()
    info = ReviewEditInfo(**call_fields(arguments=AWKWARD, ruling=ruling))
    made = approval_of(info)
    stored = Approval.model_validate_json(made.model_dump_json())
    assert stored == made
    for approval in (made, stored):
        digest = edited_digest(approval, approval.arguments)
        assert digest == info.digest_of(AWKWARD)
        assert digest == "29115cc0673abf4e00083ac6aa5fa0fd9c0d6e71d4c3f8d0b3485bf34474f09a"


@pytest.mark.parametrize(
    ("info", "kind", "form", "tool"),
    [
        (ApprovalInfo(**call_fields()), Kind.APPROVAL, Form.CALL, "deploy"),
        (ReviewEditInfo(**call_fields()), Kind.APPROVAL, Form.CALL, "deploy"),
        (HUMAN, Kind.APPROVAL, Form.HUMAN, "deploy"),
        (CALL_CHOICE, Kind.APPROVAL, Form.CHOICE, "deploy"),
        (MISSING, Kind.QUESTION, Form.FIELDS, "deploy"),
        (OwnGateInfo(**call_fields()), Kind.APPROVAL, Form.PROGRAM, "deploy"),
        (FollowUpInfo(questions=("a", "b")), Kind.QUESTION, Form.TEXTS, ""),
        (FEEDBACK, Kind.QUESTION, Form.FEEDBACK, ""),
        (CHOOSE, Kind.QUESTION, Form.CHOICE, ""),
        (STAGE, Kind.APPROVAL, Form.STEP, ""),
        (BREAK, Kind.APPROVAL, Form.STEP, ""),
        (node("What?"), Kind.QUESTION, Form.TEXTS, ""),
        (node("What?", bool), Kind.QUESTION, Form.CHOICE, ""),
        (node("What?", Literal["S", "M"]), Kind.QUESTION, Form.CHOICE, ""),
        (node("What?", int), Kind.QUESTION, Form.FIELDS, ""),
        (node("What?", ApprovalResult), Kind.APPROVAL, Form.CALL, ""),
        ("What?", Kind.QUESTION, Form.TEXTS, ""),
        (None, Kind.QUESTION, Form.TEXTS, ""),
        (Strict(), Kind.QUESTION, Form.PROGRAM, ""),
        (Broken(), Kind.QUESTION, Form.PROGRAM, ""),
    ],
)
def test_what_each_info_asks(info: object, kind: Kind, form: Form, tool: str) -> None:
    approval = approval_of(info)
    assert (approval.kind, ask_of(approval).form, approval.tool) == (kind, form, tool)
    assert approval.title
    assert len(approval.digest) == 64
    assert brief_of(info).ask == ask_of(approval)
    with pytest.raises(ResumeDataError, match="hasn't been decided"):
        answer_from(approval, info)


def test_doubt_is_as_it_was() -> None:
    info = InDoubtInfo(tool_name="deploy", arguments=ARGUMENTS, title="Deploy", call_id="c1")
    approval = approval_of(info)
    assert (approval.kind, approval.form) == (Kind.DOUBT, None)
    answer = {"choice": "ran", "result": "fine"}
    assert answer_from(decided(approval, Status.ANSWERED, answer=answer), info) == InDoubtResult(
        choice="ran", result="fine", by=BY
    )
    with pytest.raises(ResumeDataError, match="can't be read"):
        answer_from(decided(approval, Status.ANSWERED, answer={"choice": "maybe"}), info)


@pytest.mark.parametrize(("limit", "seconds"), [(90, 90), (0.5, 1)])
def test_a_doubt_keeps_the_limit_of_time_in_whole_seconds(limit: float, seconds: int) -> None:
    info = InDoubtInfo(
        tool_name="deploy",
        arguments=ARGUMENTS,
        title="Deploy",
        call_id="c1",
        limit=timedelta(seconds=limit),
    )
    assert ask_of(approval_of(info)).limit == seconds


@pytest.mark.parametrize(
    "info", [ApprovalInfo(**call_fields()), HUMAN, CHOOSE, MISSING, FEEDBACK, STAGE, BREAK, "What?"]
)
def test_nobody_answered(info: object) -> None:
    approval = approval_of(info)
    assert answer_from(decided(approval, Status.EXPIRED, by=""), info) == Expired(waited="8 hours")
    done = decided(approval, Status.CANCELLED, by="", reason="The turn was ended.")
    assert answer_from(done, info) == Cancelled(by="", reason="The turn was ended.")
    done = decided(approval, Status.WITHDRAWN, by="U1", reason="use 6")
    assert answer_from(done, info) == Withdrawn(by="U1", reason="use 6")
    done = decided(approval, Status.UNDECIDABLE, by="", reason="Ada is needed.")
    assert answer_from(done, info) == NoApprovers(by="", reason="Ada is needed.")


def test_stopped_runs_ask_nobody() -> None:
    assert not asks_people(context_of(CancelInfo(mode="now")))
    assert asks_people(context_of("What?"))


def test_info_that_only_a_program_answers() -> None:
    approval = approval_of(Strict())
    assert ask_of(approval).program == "Strict: expected a number"
    assert read_reply(approval, "5") is None
    assert "Only a program" in question_of(approval).reply_hint()
    is_refused(approval, Status.ANSWERED, answer=["5"])
    with pytest.raises(ResumeDataError, match="expected a number"):
        answer_from(forced(approval, Status.ANSWERED, answer=["5"]), Strict())
    assert "KeyError" in ask_of(approval_of(Broken())).program


# ---- policies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "deciders"),
    [
        ((), ["channel"]),
        (("UBEN", "S0OPS"), ["UBEN", "S0OPS"]),
        (("channel",), ["channel"]),
        (("<!here>", "ben", "!UBEN"), []),
    ],
)
def test_policy_names_approvers(named: tuple[str, ...], deciders: list[str]) -> None:
    approval = approval_of(ApprovalInfo(**call_fields(approvers=named)))
    assert [*approvers_of(approval)] == deciders


@pytest.mark.parametrize("named", [(), ("channel",)])
def test_i13_a_channel_that_is_not_named_is_nobody(named: tuple[str, ...]) -> None:
    info = ApprovalInfo(**call_fields(approvers=named))
    assert approvers_of(approval_of(info, replace(RULES, channels=("C9",)))) == ()


def test_self_approval_stays_a_matter_of_the_settings() -> None:
    info = ApprovalInfo(**call_fields(approvers=("UBEN",)))
    approval = approval_of(info, replace(RULES, self_approval=True))
    assert (approvers_of(approval), approval.terms.exclude) == (("UBEN",), ())


@pytest.mark.parametrize(
    ("expires", "reminds", "minutes"),
    [
        (None, None, (480, 15)),
        (timedelta(minutes=30), timedelta(minutes=5), (30, 5)),
        (timedelta(days=9), None, (480, 15)),
        (timedelta(minutes=10), None, (10, None)),
        (timedelta(minutes=-1), timedelta(minutes=-1), (0, None)),
    ],
)
def test_policy_can_only_shorten_the_wait(
    expires: timedelta | None, reminds: timedelta | None, minutes: tuple[int, int | None]
) -> None:
    approval = approval_of(ApprovalInfo(**call_fields(expires_in=expires, remind_in=reminds)))
    until = (approval.expires_ms - NOW) / 60_000
    first = approval.terms.reminders_s[:1]
    assert (until, first[0] / 60 if first else None) == minutes


ESCALATING = replace(
    RULES, escalate_after=timedelta(hours=1), escalate_to=("S0OPS", "UROSA", "S0OPS")
)


def plan_of(approval: Approval) -> tuple[object, float | None]:
    """Who else will be asked, and after how many minutes."""
    after = next_step_ms(approval)
    return [*backups_of(approval)], None if after is None else (after - NOW) / 60_000


@pytest.mark.parametrize(
    ("hints", "plan"),
    [
        ({}, (["S0OPS"], 60)),
        ({"escalate_in": timedelta(minutes=20)}, (["S0OPS"], 20)),
        ({"escalate_in": timedelta(hours=3)}, (["S0OPS"], 60)),
        ({"escalate_in": timedelta(minutes=-1)}, (["S0OPS"], 0)),
        ({"expires_in": timedelta(hours=1)}, ([], None)),
        ({"backups": ("UBEN", "channel")}, (["UBEN", "channel"], 60)),
        ({"backups": ("UROSA",)}, ([], None)),
        ({"backups": ("<!here>", "!UROSA", "ben")}, ([], None)),
        # Those of the settings are strangers to a policy that says who decides.
        ({"approvers": ("UBEN",)}, ([], None)),
        ({"approvers": ("UBEN",), "backups": ("UADA",)}, (["UADA"], 60)),
    ],
)
def test_policy_can_only_hasten_an_escalation(
    hints: dict[str, object], plan: tuple[list[str], int | None]
) -> None:
    assert plan_of(approval_of(ApprovalInfo(**call_fields(**hints)), ESCALATING)) == plan


def test_an_escalation_that_only_a_policy_asks_for() -> None:
    hints = {"escalate_in": timedelta(minutes=20), "backups": ("UBEN",)}
    assert plan_of(approval_of(ApprovalInfo(**call_fields(**hints)))) == (["UBEN"], 20)
    assert plan_of(approval_of(ApprovalInfo(**call_fields(backups=("UBEN",))))) == ([], None)


def test_who_may_decide_alone_may_be_the_backup() -> None:
    rules = replace(ESCALATING, self_approval=True)
    approval = approval_of(ApprovalInfo(**call_fields()), rules)
    assert plan_of(approval) == (["UROSA", "S0OPS"], 60)


@pytest.mark.parametrize("info", [FEEDBACK, "What?", MISSING])
def test_questions_do_not_escalate(info: object) -> None:
    approval = approval_of(info, ESCALATING)
    assert approval.kind is Kind.QUESTION
    assert plan_of(approval) == ([], None)


def test_a_doubt_escalates() -> None:
    info = InDoubtInfo(tool_name="deploy", arguments=ARGUMENTS, title="Deploy", call_id="c1")
    assert plan_of(approval_of(info, ESCALATING)) == (["S0OPS"], 60)


# ---- the record ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f'{{"{FORM}":"telepathy"}}',
        f'{{"{FORM}":5}}',
        f'{{"{FORM}":"choice","options":5}}',
        f'{{"{FORM}":"choice","options":[5]}}',
        f'{{"{FORM}":"choice","options":[{{"id":5}}]}}',
        f'{{"{FORM}":"choice","options":[{{"id":"a"}},{{"id":"a"}}]}}',
        f'{{"{FORM}":"fields","schema":5}}',
        f'{{"{FORM}":"human","allowed":5}}',
    ],
)
@pytest.mark.parametrize("kind", [Kind.APPROVAL, Kind.QUESTION])
def test_what_cannot_be_read_is_answered_by_nobody(text: str, kind: Kind) -> None:
    approval = approval_of("What?").changed(form=json.loads(text), kind=kind)
    assert ask_of(approval).form is Form.PROGRAM
    for status in (Status.APPROVED, Status.REJECTED, Status.ANSWERED):
        is_refused(approval, status, answer=["x"])


def test_arguments_that_are_no_text_can_be_stored() -> None:
    text = in_order({"b": "é", "a": "\ud83d"})
    assert text.isascii()
    assert json.loads(text) == {"b": "é", "a": "\ud83d"}
    assert in_order({"b": "é"}) == '{"b":"é"}'


def test_unknown_option_has_no_digest() -> None:
    with pytest.raises(InvalidInputError):
        chosen_digest(approval_of(CALL_CHOICE), ["x"])


def test_digest_covers_all_that_is_shown() -> None:
    before = approval_of(CHOOSE).digest
    other = replace(CHOOSE, options=(*OPTIONS[:2], replace(OPTIONS[2], label="Elsewhere")))
    assert approval_of(other).digest != before
    assert approval_of(replace(FEEDBACK, original_content="Another.")).digest != before
