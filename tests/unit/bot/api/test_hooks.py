"""The HTTP hook of Claude Code: each answer is a whole decision, and each fault a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.api.shapes import ApiDecision, ApiFailure, ApiPerson
from bot.errors import DirectoryError
from bot.records.origin import RequestDoor
from storage.errors import StoreUnavailableError
from tests.support.pace import pass_over
from tests.unit.bot.api.program_office import (
    a_caller,
    a_request,
    approved,
    programs_of,
)
from tests.unit.bot.api.programs import Answer, Doorstep, doorstep
from tests.unit.bot.office import Office

HOOK = "/v1/hooks/claude-code"
CALL: dict[str, Any] = {
    "session_id": "s1",
    "transcript_path": "/home/rosa/.claude/t.jsonl",
    "cwd": "/home/rosa/shop",
    "prompt_id": "p1",
    "permission_mode": "default",
    "effort": {"level": "high"},
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "git push --force", "description": "Publish"},
    "tool_use_id": "toolu_01",
}
PROMPT = {**CALL, "hook_event_name": "PermissionRequest", "permission_suggestions": []}
"""Recorded of Claude Code 2.1.332."""


@pytest.fixture
async def step() -> AsyncIterator[Doorstep]:
    async with doorstep() as opened:
        await opened.key()
        yield opened


def decided(step: Doorstep, **changes: Any) -> dict[str, Any]:
    decision = ApiDecision(
        outcome="approved",
        source="people",
        by=(ApiPerson(id="U0ADA", name="Ada"),),
        at=step.clock(),
        arguments=CALL["tool_input"],
        usable_until=step.clock() + 900_000,
        usable=True,
    )
    return {"status": "approved", "decision": decision.model_copy(update=changes)}


async def asked(step: Doorstep, body: dict[str, Any] = CALL, **changes: Any) -> Answer:
    """Let the hook ask, and people decide."""
    waiting = asyncio.create_task(step.call("POST", HOOK, json=body))
    await step.use.until_waiting(1)
    request_id = list(step.use.requests)[-1]
    await step.use.change(request_id, **changes)
    return await waiting


async def asked_in_vain(step: Doorstep, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Let the hook ask, and its deadline pass while it waits."""
    waiting = asyncio.create_task(step.call("POST", f"{HOOK}?deadline=5", json=CALL))
    await step.use.until_waiting(1)
    pass_over(5, monkeypatch)
    return await waiting


def decision_of(answer: Answer) -> tuple[str, str]:
    """The decision as Claude Code reads it, with its reason."""
    assert answer.status == 200
    output = answer.body["hookSpecificOutput"]
    if output["hookEventName"] == "PermissionRequest":
        assert output.keys() == {"hookEventName", "decision"}
        return output["decision"]["behavior"], output["decision"].get("message", "")
    assert output["permissionDecisionReason"]
    return output["permissionDecision"], output["permissionDecisionReason"]


@pytest.mark.parametrize("body", [CALL, PROMPT])
async def test_73_a_call_that_people_approve_is_allowed(
    step: Doorstep, body: dict[str, Any]
) -> None:
    answer = await asked(step, body, **decided(step))
    assert decision_of(answer)[0] == "allow"
    assert "updatedInput" not in str(answer.body)


@pytest.mark.parametrize("body", [CALL, PROMPT])
async def test_73_an_edit_replaces_all_arguments(step: Doorstep, body: dict[str, Any]) -> None:
    answer = await asked(step, body, **decided(step, arguments={"command": "ls"}, edited=True))
    assert decision_of(answer)[0] == "allow"
    output = answer.body["hookSpecificOutput"]
    assert output.get("decision", output)["updatedInput"] == {"command": "ls"}


@pytest.mark.parametrize("body", [CALL, PROMPT])
@pytest.mark.parametrize(
    ("status", "changes", "words"),
    [
        ("rejected", {"outcome": "rejected", "reason": "not on Friday"}, "by Ada: not on Friday"),
        ("rejected", {"source": "policy", "rule": "no-force"}, "by the rule no-force"),
        ("expired", None, "nobody answered in time. This is no rejection."),
        ("cancelled", None, "was withdrawn. This is no rejection."),
        ("failed", None, "could not be asked (nobody-can-decide). This is no rejection."),
        ("approved", {"usable": False}, "may not run now"),
    ],
)
async def test_12_each_other_end_is_a_refusal_that_says_which(
    step: Doorstep, body: dict[str, Any], status: str, changes: dict[str, Any] | None, words: str
) -> None:
    end = decided(step, **changes) if changes is not None else {}
    if status == "failed":
        end = {"failure": ApiFailure(code="nobody-can-decide", detail="")}
    answer = await asked(step, body, **{**end, "status": status})
    verdict, reason = decision_of(answer)
    assert verdict == "deny"
    assert words in reason


async def test_73_the_deadline_is_a_refusal_and_the_same_call_again_gets_the_decision(
    step: Doorstep,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = await asked_in_vain(step, monkeypatch)
    assert decision_of(late)[0] == "deny"
    assert "people have not decided" in decision_of(late)[1]
    (request_id,) = step.use.requests
    assert request_id in decision_of(late)[1]
    await step.use.change(request_id, **decided(step))
    again = await step.call("POST", HOOK, json={**CALL, "tool_use_id": "toolu_02"})
    assert decision_of(again)[0] == "allow"
    assert len(step.use.requests) == 1


async def test_an_approval_serves_one_call(step: Doorstep, monkeypatch: pytest.MonkeyPatch) -> None:
    assert decision_of(await asked(step, **decided(step)))[0] == "allow"
    assert decision_of(await asked_in_vain(step, monkeypatch))[0] == "deny"
    assert len(step.use.requests) == 2


async def test_two_calls_alike_at_once_do_not_share_an_approval(
    step: Doorstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [
        asyncio.create_task(
            step.call("POST", f"{HOOK}?deadline=5", json={**CALL, "tool_use_id": i})
        )
        for i in ("toolu_1", "toolu_2")
    ]
    await step.use.until_waiting(2)
    await step.use.change(next(iter(step.use.requests)), **decided(step))
    await step.use.until_waiting(1)
    pass_over(5, monkeypatch)
    verdicts = sorted([decision_of(await call)[0] for call in calls])
    assert verdicts == ["allow", "deny"]
    assert len(step.use.requests) == 2


async def test_an_approval_that_is_too_old_is_asked_anew(
    step: Doorstep, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = asyncio.create_task(step.call("POST", f"{HOOK}?deadline=5", json=CALL))
    await step.use.until_waiting(1)
    old = decided(step, usable=False, usable_until=step.clock() - 1)
    await step.use.change(next(iter(step.use.requests)), **old)
    await step.use.until_waiting(1)  # for the request that takes the place of the old one
    pass_over(5, monkeypatch)
    assert decision_of(await answer)[0] == "deny"
    assert len(step.use.requests) == 2


@pytest.mark.parametrize("body", [CALL, PROMPT])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DirectoryError("users.info"), "Slack does not answer"),
        (StoreUnavailableError("gone"), "The database does not answer"),
        (RuntimeError("a fault of ours"), "The server failed"),
    ],
)
async def test_73_each_fault_of_the_server_is_a_refusal(
    step: Doorstep, body: dict[str, Any], error: Exception, words: str
) -> None:
    step.use.error = error
    verdict, reason = decision_of(await step.call("POST", HOOK, json=body))
    assert verdict == "deny"
    assert words in reason
    assert "This is no rejection." in reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"key": ""}, "No key"),
        ({"key": "csk_nobody"}, "Unknown key"),
        ({"data": b"{", "headers": {"Content-Type": "application/json"}}, "not JSON"),
        ({"data": b"{}", "headers": {"Content-Type": "text/plain"}}, "not plain JSON"),
        ({"data": b'{"a": "' + b"x" * 300_000 + b'"}'}, "too large"),
        ({"json": {**CALL, "hook_event_name": "PostToolUse"}}, "/hook_event_name"),
        ({"json": {**CALL, "tool_input": "ls"}}, "/tool_input"),
        ({"json": {**CALL, "tool_input": {"n": 2**60}}}, "too large for JSON"),
        ({"json": {**CALL, "tool_name": "two words"}}, "/tool"),
        ({"json": {**CALL, "session_id": ""}}, "/session_id"),
        ({"json": {**CALL, "tool_input": {"command": "x" * 70_000}}}, "/arguments"),
        ({"json": CALL, "headers": {"Origin": "https://evil.example"}}, "web pages"),
    ],
)
async def test_72_a_call_that_cannot_be_asked_about_is_refused_with_its_reason(
    step: Doorstep, changes: dict[str, Any], words: str
) -> None:
    """Status 401 or 422 would let the call run where onFailure is not set."""
    if "data" in changes:
        changes = {"headers": {"Content-Type": "application/json"}, **changes}
    changes = {"json": CALL, **changes} if "data" not in changes else changes
    verdict, reason = decision_of(await step.call("POST", HOOK, **changes))
    assert verdict == "deny"
    assert words in reason
    assert step.use.requests == {}


async def test_a_query_that_is_not_known_is_refused(step: Doorstep) -> None:
    for query in ("defer=1", "deadline=4", "deadline=x"):
        assert decision_of(await step.call("POST", f"{HOOK}?{query}", json=CALL))[0] == "deny"


async def test_a_server_that_stops_refuses_what_it_holds(step: Doorstep) -> None:
    waiting = asyncio.create_task(step.call("POST", HOOK, json=CALL))
    await step.use.until_waiting(1)
    await step.stop()
    assert decision_of(await waiting)[0] == "deny"


@pytest.mark.parametrize(
    ("tool", "arguments", "title", "preview"),
    [
        ("Bash", {"command": "ls\n-l"}, "Run ls -l", "In /home/rosa/shop"),
        ("Write", {"file_path": "/a", "content": "x"}, "Write /a", "not known here"),
        ("Edit", {"file_path": "/a", "old_string": "x", "new_string": "y"}, "Edit /a", "-x\n+y"),
        ("mcp__github__create", {"title": "x"}, "Call mcp__github__create", "In /home/rosa/shop"),
    ],
)
async def test_people_see_the_call_and_where_it_runs(
    step: Doorstep, tool: str, arguments: dict[str, Any], title: str, preview: str
) -> None:
    body = {**CALL, "tool_name": tool, "tool_input": arguments}
    await asked(step, body, **decided(step))
    (request,) = step.use.bodies
    assert step.use.doors == [RequestDoor.HOOK]
    assert (request.title, request.tool) == (title, f"claude.{tool}")
    assert (request.arguments, request.execution, request.kind) == (arguments, "none", "edit")
    assert request.preview is not None
    assert preview in (request.preview.text or "")
    assert request.where.group == "claude/s1"


async def test_a_replacement_is_shown_whole_between_the_lines_that_stay(step: Doorstep) -> None:
    """To look for lines that moved would hold up all programs for minutes."""
    edit = {"file_path": "/a\n+b", "old_string": "one\na\nb\nend", "new_string": "one\nb\na\nend"}
    await asked(step, {**CALL, "tool_name": "Edit", "tool_input": edit}, **decided(step))
    preview = step.use.bodies[0].preview
    assert preview is not None
    shown = ["--- /a +b", "+++ /a +b", " one", "-a", "-b", "+b", "+a", " end"]
    assert (preview.text or "").splitlines() == shown


async def test_a_request_is_used_up_once(office: Office) -> None:
    """Of two calls alike in two processes, one gets the approval."""
    request = await approved(office, execution="none", repeat="after_use")
    programs = programs_of(office)
    assert await programs.executions.use_up(a_caller(), request.id)
    assert not await programs.executions.use_up(a_caller(), request.id)
    again = await a_request(office, execution="none", repeat="after_use")
    assert again.id != request.id
