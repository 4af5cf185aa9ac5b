"""Programs ask, and get what people decided (checks 55 and 12 of the doors)."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from countersign_client import (
    Cancelled,
    DecisionLapsed,
    Expired,
    Failed,
    InvalidRequest,
    KeyRefused,
    NotApproved,
    Rejected,
    StillPending,
    text_for_model,
)
from tests.support.programs.world import VirtualWorld

CALL: dict[str, Any] = {"env": "production", "replicas": 3}


class Deployment(BaseModel):
    env: Literal["staging", "production"]
    replicas: int = Field(ge=1, le=20)
    note: str | None = None


def approve(world: VirtualWorld, **more: Any) -> Any:
    options = {"key": "build-7", "tool": "deploy", "arguments": CALL, **more}
    return world.client().approve("Deploy payments", **options)


def test_an_approval_gives_who_approved_what(world: VirtualWorld) -> None:
    world.after(90, lambda: world.server.approve(world.request, reason="Go."))
    done = approve(world)
    decision = done.approved()
    assert (done.status, decision.arguments, decision.edited) == ("approved", CALL, False)
    assert ([person.name for person in decision.by], decision.reason) == (["Ada"], "Go.")
    assert world.time < 92


@pytest.mark.parametrize(
    ("end", "error", "sentence"),
    [
        (
            lambda world: world.server.reject(world.request, "Friday."),
            Rejected,
            "Rejected by Ada: Friday.",
        ),
        (lambda world: world.server.reject(world.request), Rejected, "Rejected by Ada."),
        (
            lambda world: world.client().cancel(world.request.shown["id"]),
            Cancelled,
            "Not run: the request was withdrawn. This is no rejection.",
        ),
        (lambda _: None, Expired, "Not run: nobody answered within 8 h. This is no rejection."),
    ],
)
def test_each_other_end_is_an_error_of_its_own(
    world: VirtualWorld, end: Any, error: type[NotApproved], sentence: str
) -> None:
    if world.face == "async" and error is Cancelled:
        world.face = "sync"  # the deed runs inside of the loop
        world.after(60, lambda: world.server._cancel(world.request))
    else:
        world.after(60, lambda: end(world))
    with pytest.raises(NotApproved) as raised:
        approve(world)
    assert type(raised.value) is error
    assert text_for_model(raised.value) == sentence


def test_a_rule_that_denies_is_a_rejection_by_policy(world: VirtualWorld) -> None:
    world.server.policy = "deny"
    with pytest.raises(Rejected) as raised:
        approve(world)
    assert text_for_model(raised.value).startswith("Rejected by the rule production of the policy")


def test_a_rule_that_allows_answers_at_once(world: VirtualWorld) -> None:
    world.server.policy = "allow"
    assert approve(world).approved().source == "policy"
    assert world.time < 1


def test_a_request_that_nobody_can_decide_has_failed(world: VirtualWorld) -> None:
    world.server.policy = "nobody"
    with pytest.raises(Failed, match="No approver is left") as raised:
        approve(world)
    assert raised.value.code == "nobody-can-decide"


def test_the_same_key_gives_the_same_request_and_other_arguments_are_refused(
    world: VirtualWorld,
) -> None:
    ask = {"key": "build-7", "tool": "deploy", "arguments": CALL}
    first = world.client().create("Deploy payments", **ask)
    again = world.client().create("Deploy payments", why="Worded anew.", **ask)
    assert again.id == first.id
    with pytest.raises(InvalidRequest) as raised:
        world.client().create("Deploy payments", **{**ask, "arguments": {"env": "staging"}})
    assert raised.value.code == "idempotency-key-reused"


def test_a_wait_may_end_before_the_request_does(world: VirtualWorld) -> None:
    with pytest.raises(StillPending) as raised:
        approve(world, wait=120)
    assert 120 <= world.time < 122
    world.after(100, lambda: world.server.approve(world.request))
    assert world.client().wait(raised.value.request.id).status == "approved"


def test_edited_arguments_are_validated_by_the_model(world: VirtualWorld) -> None:
    world.after(
        60, lambda: world.server.approve(world.request, {**CALL, "note": None, "replicas": 2})
    )
    done = world.client().edit(
        "Deploy payments", key="build-7", tool="deploy", arguments=Deployment(**CALL)
    )
    decision = done.approved()
    assert (decision.edited, decision.arguments["replicas"]) == (True, 2)
    assert [(change.path, change.before, change.after) for change in decision.changes] == [
        ("/replicas", 3, 2)
    ]


@pytest.mark.parametrize("schema", [None, Deployment, Deployment.model_json_schema()])
@pytest.mark.parametrize(
    "wrong", [{"replicas": 0}, {"replicas": 2.5}, {"env": "home"}, {"replicas": "two"}]
)
def test_edited_arguments_that_do_not_fit_never_leave_the_client(
    world: VirtualWorld, schema: Any, wrong: dict[str, Any]
) -> None:
    arguments: Any = Deployment(**CALL) if schema is None else dict(CALL)
    if isinstance(schema, dict):
        schema["properties"]["note"] = {"type": ["string", "null"], "default": None}
    world.after(60, lambda: world.server.approve(world.request, {**CALL, **wrong}))
    with pytest.raises(InvalidRequest) as raised:
        world.client().edit(
            "Deploy payments", key="build-7", tool="deploy", arguments=arguments, schema=schema
        )
    assert raised.value.code == "arguments-do-not-fit"
    assert [pointer for pointer, _ in raised.value.errors] == [f"/{name}" for name in wrong]


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({}, "The one in Kiel."),
        ({"options": ["eu", "us"]}, "eu"),
        ({"options": ["eu", "us"], "multiple": True}, ["us", "eu"]),
        ({"answer": Deployment}, Deployment(**CALL)),
    ],
    ids=["in their words", "an option", "several options", "a form"],
)
def test_people_answer(world: VirtualWorld, options: dict[str, Any], answer: Any) -> None:
    told = CALL if isinstance(answer, Deployment) else answer
    world.after(60, lambda: world.server.reply(world.request, told))
    assert world.client().ask("Which?", key="q1", **options) == answer


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        ("asia", {"options": ["eu", "us"]}),
        (["eu"], {"options": ["eu", "us"]}),
        ("eu", {"options": ["eu", "us"], "multiple": True}),
        (["asia"], {"options": ["eu", "us"], "multiple": True}),
        ({"env": "home"}, {"answer": Deployment}),
        (7, {}),
    ],
)
def test_an_answer_that_does_not_fit_never_leaves_the_client(
    world: VirtualWorld, answer: Any, options: dict[str, Any]
) -> None:
    world.after(60, lambda: world.server.reply(world.request, answer))
    with pytest.raises(InvalidRequest) as raised:
        world.client().ask("Which?", key="q1", **options)
    assert raised.value.code == "answer-does-not-fit"


def test_a_question_that_nobody_answers_expires(world: VirtualWorld) -> None:
    with pytest.raises(Expired):
        world.client().ask("Which customer?", key="q1", expires_in=600)
    assert 600 <= world.time < 602


def test_each_member_of_a_request_is_taken_as_it_is_named(world: VirtualWorld) -> None:
    made = world.client().create(
        "Deploy payments",
        key="build-7",
        kind="edit",
        tool="deploy",
        arguments=CALL,
        why="The fix is in it.",
        preview="3 pods",
        schema=Deployment,
        secret=["note"],
        tags=["production"],
        risk="high",
        execution="idempotent",
        run_timeout=60.4,
        channel="C0OPS",
        group="build-7",
        expires_in=3600,
        repeat="after_use",
        state="mine",
        metadata={"build": "7"},
        source={"framework": "ci"},
    )
    assert (made.state, made.metadata) == ("mine", {"build": "7"})
    assert made.execution.mode == "idempotent"


def test_a_request_is_found_by_its_key_after_a_restart(world: VirtualWorld) -> None:
    made = world.client().create("Which?", key="q1", kind="question")
    world.client().create("Which?", key="q2", kind="question")
    assert world.client().find("q1").id == made.id
    assert world.client().find("q3") is None


def test_requests_are_listed_over_pages_newest_first(world: VirtualWorld) -> None:
    client = world.client()
    made = [
        client.create(
            "Which?", key=f"q{n}", kind="question", metadata={"n": str(n % 2), "k": "1"}
        ).id
        for n in range(45)
    ]
    world.server.reply(world.server.records[made[3]], "yes")
    assert [request.id for request in client.list()] == made[::-1]
    assert [request.id for request in client.list(status=["answered", "expired"])] == [made[3]]
    odd = list(client.list(status=["pending"], metadata={"k": "1", "n": "0"}))
    assert [request.id for request in odd] == made[::-1][::2]


def test_updates_give_each_state_until_the_end(world: VirtualWorld) -> None:
    client = world.client()
    made = client.create("Deploy", key="build-7", tool="deploy", arguments=CALL)
    world.after(70, lambda: world.server.touch(world.request))
    world.after(200, lambda: world.server.reject(world.request))
    states = [(state.revision, state.status) for state in client.updates(made.id)]
    assert states == [(1, "pending"), (2, "pending"), (3, "rejected")]


def test_a_decided_request_cannot_be_cancelled(world: VirtualWorld) -> None:
    world.server.policy = "allow"
    done = approve(world)
    with pytest.raises(Exception, match="not-pending"):
        world.client().cancel(done, "Too late.")


@pytest.mark.parametrize("change", ["lapse", "freeze"])
def test_without_a_start_only_a_usable_decision_counts(world: VirtualWorld, change: str) -> None:
    world.server.policy = "allow"
    done = approve(world, execution="none")
    assert done.approved().usable
    if change == "freeze":
        world.server.is_frozen = True
    else:
        world.pass_time(901)
    with pytest.raises(DecisionLapsed) as raised:
        world.client().get(done.id).approved()
    assert text_for_model(raised.value) == (
        "Not run: it was approved, but too long ago, or a freeze forbids it now. "
        "Make the same call again later. This is no rejection."
    )
    with pytest.raises(DecisionLapsed):
        approve(world, execution="none")


def test_a_status_of_a_later_version_is_an_end_and_no_approval(world: VirtualWorld) -> None:
    world.server.policy = "allow"
    done = approve(world)
    strange = done.model_copy(update={"status": "postponed"})
    assert strange.is_over
    with pytest.raises(NotApproved, match="postponed"):
        strange.approved()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"key": ""}, ValueError),
        ({"key": "with blank"}, ValueError),
        ({"key": '"quoted"'}, ValueError),
        ({"arguments": {"n": float("nan")}}, ValueError),
        ({"arguments": {"n": 2**53 + 1}}, ValueError),
        ({"arguments": {1: 2}}, TypeError),
        ({"colour": "red"}, TypeError),
    ],
)
def test_faults_of_the_program_are_told_before_anything_is_sent(
    world: VirtualWorld, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        approve(world, **options)
    assert world.server.seen == []


def test_a_key_that_is_refused_says_why_and_shows_no_key(world: VirtualWorld) -> None:
    world.server.key = "another"
    with pytest.raises(KeyRefused) as raised:
        approve(world)
    assert (raised.value.status, raised.value.code) == (401, "key-invalid")
    assert "csk_" not in f"{raised.value!r} {raised.value} {world.client()!r}"
