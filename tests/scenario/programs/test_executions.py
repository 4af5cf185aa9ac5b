"""Programs run what was approved, once, and say what came of it (checks 31 to 36)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx
import pytest

from countersign_client import (
    AlreadyStarted,
    ApiError,
    AsyncCountersign,
    DecisionLapsed,
    DigestMismatch,
    Frozen,
    NotStarted,
    Request,
    StillPending,
    text_for_model,
)
from tests.support.programs.world import VirtualWorld

CALL: dict[str, Any] = {"env": "production", "replicas": 3}


def approved(world: VirtualWorld, **more: Any) -> Request:
    """An approved request."""
    world.server.policy = "allow"
    options = {"key": "build-7", "tool": "deploy", "arguments": CALL, **more}
    request: Request = world.client().approve("Deploy payments", **options)
    return request


def state(world: VirtualWorld) -> tuple[str, str | None]:
    execution = world.request.shown["execution"]
    return execution["state"], execution.get("summary")


def test_leaving_the_body_reports_that_it_ran(world: VirtualWorld) -> None:
    with world.client().execute(approved(world)) as run:
        assert run.arguments == CALL
        assert state(world)[0] == "started"
        run.summary = "3 pods"
    assert state(world) == ("ran", "3 pods")
    assert (run.generation, run.execution_id[:4], run.token[:4]) == (1, "exe_", "cst_")
    assert run.token not in repr(run)


def test_an_exception_reports_that_it_failed_and_goes_on(world: VirtualWorld) -> None:
    error = OSError("no route \udc80" + "x" * 1000)
    with (
        pytest.raises(OSError, match="no route") as raised,
        world.client().execute(approved(world)),
    ):
        raise error
    assert raised.value is error
    outcome, summary = state(world)
    assert (outcome, (summary or "")[:20], len(summary or "")) == (
        "failed",
        "OSError: no route ?x",
        500,
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_reports_that_the_outcome_is_unknown(
    sync_world: VirtualWorld, error: type[BaseException]
) -> None:
    done = approved(sync_world)
    with pytest.raises(error), sync_world.client().execute(done):
        raise error
    assert state(sync_world)[0] == "unknown"


async def test_cancelling_a_task_reports_that_the_outcome_is_unknown() -> None:
    world = VirtualWorld("async")
    begun = asyncio.Event()

    async def act() -> None:
        client: AsyncCountersign = world.client()._client
        world.server.policy = "allow"
        done = await client.approve("Deploy", key="build-7", tool="deploy", arguments=CALL)
        async with client.execute(done):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(act())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert state(world)[0] == "unknown"
    world.close()


async def test_cancelling_a_wait_leaves_the_request() -> None:
    world = VirtualWorld("async")
    client: AsyncCountersign = world.client()._client
    made = await client.create("Deploy", key="build-7", tool="deploy", arguments=CALL)
    task = asyncio.create_task(client.wait(made))
    world.after(60, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.request.shown["status"] == "pending"
    world.close()


def test_what_was_told_in_the_body_is_not_told_again(world: VirtualWorld) -> None:
    with world.client().execute(approved(world)) as run:
        run.failed("2 of 3 pods")
    assert state(world) == ("failed", "2 of 3 pods")


def test_progress_moves_the_deadline(world: VirtualWorld) -> None:
    with world.client().execute(approved(world, run_timeout=60)) as run:
        deadline = run.deadline
        world.pass_time(50)
        run.progress("step 1")
        run.progress("step 2, within 5 s")
        assert state(world) == ("started", "step 1")
        assert (run.deadline - deadline).total_seconds() >= 50
        world.pass_time(50)
    assert state(world)[0] == "ran"


def test_a_silent_run_becomes_unknown_and_its_late_report_counts(world: VirtualWorld) -> None:
    with world.client().execute(approved(world, run_timeout=60)):
        world.pass_time(70)
        world.server.look()
        assert state(world)[0] == "unknown"
    assert state(world)[0] == "ran"


def test_a_report_that_cannot_be_sent_is_a_warning_and_no_error(
    world: VirtualWorld, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "countersign_client"):
        with world.client().execute(approved(world)) as run:
            run.progress("begun")
            world.outage(0, 10_000)
            world.pass_time(6)
        assert state(world)[0] == "started"
    assert "could not be reported" in caplog.text
    assert run.token not in caplog.text


def test_a_fault_of_the_report_never_replaces_the_exception_of_the_body(
    world: VirtualWorld, caplog: pytest.LogCaptureFixture
) -> None:
    done = approved(world)

    def fail() -> None:
        world.answer = closed  # type: ignore[method-assign]
        raise LookupError("no order")

    with pytest.raises(LookupError, match="no order"), world.client().execute(done):
        fail()
    assert "could not be reported" in caplog.text


def closed(request: httpx.Request) -> httpx.Response:
    raise RuntimeError("the client has been closed")


def test_progress_in_an_outage_costs_no_time(world: VirtualWorld) -> None:
    with world.client().execute(approved(world)) as run:
        world.outage(0, 100)
        world.pass_time(1)
        begun = world.time
        run.progress("step 1")
        assert world.time - begun < 1
        world.pass_time(100)


@pytest.mark.parametrize("losses", [1, 4])
def test_a_start_whose_answer_is_lost_is_one_start(world: VirtualWorld, losses: int) -> None:
    client, done = world.client(), approved(world)
    world.lose_answers = losses
    with client.execute(done) as run:
        assert run.generation == 1
    assert len(world.request.tokens) == 1


def test_a_start_is_tried_over_an_outage_until_the_decision_lapses(world: VirtualWorld) -> None:
    client, done = world.client(), approved(world)
    client.get(done.id)  # has seen the server's clock
    world.outage(0, 300)
    with client.execute(done):
        assert 300 <= world.time < 340


def test_a_second_start_is_refused_with_what_is_known(world: VirtualWorld) -> None:
    done = approved(world)
    with world.client().execute(done) as run:
        run.summary = "3 pods"
    with pytest.raises(AlreadyStarted) as raised, world.client().execute(done):
        pass
    assert raised.value.request.execution.summary == "3 pods"
    assert text_for_model(raised.value).endswith("its outcome is: ran: 3 pods.")


def test_an_idempotent_call_starts_again_with_the_same_execution(world: VirtualWorld) -> None:
    done = approved(world, execution="idempotent")
    first = world.client().start(done, tool="deploy", arguments=CALL)
    with world.client().execute(done) as again:
        assert (first.generation, again.generation) == (1, 2)
        assert again.execution_id == first.execution_id
    with pytest.raises(ApiError, match="result-known"):
        world.client().report(done.id, "failed")


def test_people_let_it_run_again(world: VirtualWorld) -> None:
    done = approved(world)
    world.client().start(done, tool="deploy", arguments=CALL)
    world.client().report(done.id, "unknown", "Restarted in the middle")
    with pytest.raises(AlreadyStarted), world.client().execute(done):
        pass
    world.server.ready_again(world.request)
    with world.client().execute(done) as run:
        assert run.generation == 2


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        (lambda world: world.pass_time(901), DecisionLapsed, "too long ago"),
        (lambda world: setattr(world.server, "is_frozen", True), Frozen, "frozen"),
    ],
)
def test_a_refused_start_runs_nothing(
    world: VirtualWorld, change: Any, error: type[NotStarted], sentence: str
) -> None:
    done = approved(world)
    change(world)
    with pytest.raises(error) as raised, world.client().execute(done):
        pytest.fail("it ran")
    assert sentence in text_for_model(raised.value)


def test_other_arguments_than_the_decided_ones_do_not_start(world: VirtualWorld) -> None:
    done = approved(world)
    for tool, arguments in (("deploy", {**CALL, "replicas": 4}), ("delete", CALL)):
        with pytest.raises(DigestMismatch) as raised:
            world.client().start(done.id, tool=tool, arguments=arguments)
        assert text_for_model(raised.value) == "Not run: it is not what people approved."
        with pytest.raises(DigestMismatch):
            done.check(tool, arguments)
    done.check("deploy", {"replicas": 3.0, "env": "production"})


def test_edited_arguments_are_those_that_run(world: VirtualWorld) -> None:
    world.after(60, lambda: world.server.approve(world.request, {**CALL, "replicas": 1}))
    done = world.client().edit("Deploy", key="b", tool="deploy", arguments=CALL)
    with pytest.raises(DigestMismatch):
        world.client().start(done, tool="deploy", arguments=CALL)
    with world.client().execute(done) as run:
        assert run.arguments == {**CALL, "replicas": 1}


def test_only_an_approved_request_is_executed(world: VirtualWorld) -> None:
    made = world.client().create("Deploy", key="b", tool="deploy", arguments=CALL)
    with pytest.raises(StillPending), world.client().execute(made):
        pytest.fail("it ran")


def test_a_request_without_a_start_is_read_again_and_reports_nothing(world: VirtualWorld) -> None:
    done = approved(world, execution="none")
    with world.client().execute(done) as run:
        assert (run.arguments, run.token) == (CALL, "")
        run.progress("step 1")
    assert state(world) == ("waiting", None)
    world.server.is_frozen = True
    with pytest.raises(DecisionLapsed), world.client().execute(done):
        pytest.fail("it ran")


def test_a_token_is_real_once_for_this_call(world: VirtualWorld) -> None:
    client, done = world.client(), approved(world)
    run = client.start(done, tool="deploy", arguments=CALL)
    call = {"tool": "deploy", "request": done.id, "arguments": CALL}
    other = {**call, "arguments": {**CALL, "replicas": 4}}
    assert not client.introspect(run.token, **other)
    assert not client.introspect("cst_other", **call)
    assert client.introspect(run.token, **call, consume=False)
    assert client.introspect(run.token, **call)
    assert not client.introspect(run.token, **call)
