"""Calls of tools wait for people and run once; all else passes (checks 67, 68 and 70)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from countersign_client import CountersignError
from countersign_client.mcp.files import Definitions
from tests.support.programs.stage import CALL, DEPLOY, Stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with Stage(tmp_path) as made:
        yield made


async def state_of(stage: Stage, wanted: str) -> None:
    """Wait until the execution of the newest request stands so."""
    await stage.until(
        lambda: list(stage.countersign.records.values())[-1].shown["execution"]["state"] == wanted
    )


async def test_an_approved_call_runs_once_and_its_result_passes_whole(stage: Stage) -> None:
    await stage.call(progress := 7)
    record = await stage.asked()
    assert (record.shown["kind"], record.shown["tool"]) == ("edit", "ops.deploy")
    assert (record.shown["arguments"], record.group) == (CALL, "s")
    assert record.group_title == "Calls of the MCP server ops"
    assert stage.calls == []
    await stage.do(lambda: stage.countersign.approve(record))
    call = await stage.running()
    assert call["params"] == {"name": "deploy", "arguments": CALL}
    assert call["id"] != progress
    result = {"content": [{"type": "text", "text": "ok"}], "structuredContent": {"n": 1}}
    await stage.finish(call, result=result)
    answer = await stage.answer(7)
    meta = {"countersign/request": record.shown["id"]}
    assert answer == {"jsonrpc": "2.0", "id": 7, "result": {**result, "_meta": meta}}
    assert record.shown["execution"]["state"] == "ran"
    await stage.until(lambda: record.is_delivered)
    assert list(stage.folder.glob("*.result")) == []


async def test_edited_arguments_that_do_not_fit_the_tool_never_run(stage: Stage) -> None:
    await stage.call()
    record = await stage.asked()
    await stage.do(lambda: stage.countersign.approve(record, {"env": "staging", "replicas": 0}))
    assert "/replicas does not fit minimum" in await stage.text()
    assert stage.calls == []


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("reject", "Rejected by Ada: too late"),
        ("expire", "Not run: nobody answered within 8 h. This is no rejection."),
        ("withdraw", "Not run: the request was withdrawn. This is no rejection."),
        ("nobody", "Not run: people could not be asked (nobody-can-decide). This is no rejection."),
        ("deny", "Rejected by the rule production of the policy"),
        ("freeze", "Not run: an admin has frozen all starts."),
        ("lapse", "too long ago"),
    ],
)
async def test_each_end_without_a_run_is_told_as_what_it_is(
    stage: Stage, end: str, words: str
) -> None:
    """Check 12, of the proxy."""
    countersign = stage.countersign
    countersign.policy = {"nobody": "nobody", "deny": "deny"}.get(end, "ask")  # type: ignore[assignment]
    await stage.call()
    record = await stage.asked()

    def happen() -> None:
        if end == "reject":
            countersign.reject(record, "too late")
        elif end == "expire":
            stage.time += 28_801
            countersign.look()
        elif end == "withdraw":
            countersign._cancel(record)
        elif end == "freeze":
            countersign.approve(record)
            countersign.is_frozen = True
        elif end == "lapse":
            countersign.approve(record)
            stage.time += 901
            countersign.look()

    await stage.do(happen)
    assert words in await stage.text()
    answer = await stage.answer()
    assert answer["result"]["isError"] is True
    assert answer["result"]["_meta"] == {"countersign/request": record.shown["id"]}
    assert stage.calls == []


async def test_while_countersign_is_away_nothing_passes(stage: Stage) -> None:
    stage.is_away = True
    await stage.call()
    assert "people could not be asked" in await stage.text()
    assert stage.calls == []


@pytest.mark.parametrize("state", ["ran", "failed"])
async def test_errors_of_the_tool_are_failures_and_pass(stage: Stage, state: str) -> None:
    stage.countersign.policy = "allow"
    await stage.call()
    call = await stage.running()
    error: dict[str, Any] = {"error": {"code": -32602, "message": "no such cluster"}}
    result: dict[str, Any] = {"result": {"content": [], "isError": True}}
    await stage.finish(call, **(error if state == "ran" else result))
    answer = await stage.answer()
    assert answer.get("error") == error["error"] or answer["result"]["isError"] is True
    await state_of(stage, "failed")


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"deploy"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"deploy"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"deploy"}}',
        b'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy"}}]',
        b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"deploy","arguments":{}}}',
        b'{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"deploy"}}',
        b'{"jsonrpc":"2.0","id":true,"method":"tools/call","params":{"name":"deploy"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":1e400}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":["tools/call"],"params":{"name":"deploy"}}',
        b'"tools/call"',
        b"[" * 100_000,
    ],
)
async def test_what_parsers_may_read_differently_is_never_passed(stage: Stage, line: bytes) -> None:
    """Check 26 of the threat model."""
    before = len(stage.server)
    await stage.send(line)
    assert stage.client[-1]["error"]["code"] in (-32700, -32600)
    assert len(stage.server) == before
    assert stage.countersign.records == {}


async def test_a_line_break_within_a_message_hides_no_second_one(stage: Stage) -> None:
    inner = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deploy"}}'
    sent: list[bytes] = []

    async def to_server(line: bytes) -> None:
        sent.append(line)

    stage.proxy._to_server = to_server
    await stage.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":\r' + inner + b"\r}}")
    (line,) = sent
    assert line.splitlines() == [line.removesuffix(b"\n")]
    assert line.decode().splitlines() == [line.decode().removesuffix("\n")]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"name": "destroy", "arguments": {}}, "no such tool"),
        ({"name": "deploy", "arguments": CALL, "Name": "x"}, "nobody could judge"),
        ({"name": "deploy", "arguments": CALL, "requestState": "x"}, "from the beginning"),
        ({"name": "deploy", "arguments": CALL, "inputResponses": {}}, "from the beginning"),
        ({"name": "deploy", "arguments": [1]}, "an object of arguments"),
        ({"name": 1, "arguments": {}}, "a name"),
        ({"name": "deploy", "arguments": {"env": 2**60 + 1}}, "give it as text"),
        ({"name": "deploy", "arguments": {"env": "\ud800"}}, "Not run"),
        ({"name": "deploy", "arguments": {"env": 5}}, "arguments-do-not-fit"),
    ],
)
async def test_a_call_that_nobody_can_judge_is_told_so(
    stage: Stage, params: dict[str, Any], words: str
) -> None:
    await stage.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    assert words in await stage.text()
    assert (stage.calls, stage.countersign.records) == ([], {})


async def test_an_id_that_is_in_use_is_refused(stage: Stage) -> None:
    await stage.call("a")
    await stage.asked()
    await stage.call("a", {"env": "staging"})
    assert (await stage.answer("a"))["error"]["code"] == -32600
    assert len(stage.countersign.records) == 1


async def test_a_call_whose_server_asks_the_client_goes_on_under_its_approval(
    stage: Stage,
) -> None:
    await stage.call(1)
    record = await stage.asked()
    edited = {"env": "staging", "replicas": 2}
    await stage.do(lambda: stage.countersign.approve(record, edited))
    first = await stage.running()
    asks = {"resultType": "input_required", "requestState": "s1", "inputRequests": {}}
    await stage.finish(first, result=asks)
    assert (await stage.answer(1))["result"]["requestState"] == "s1"
    assert record.shown["execution"]["state"] == "started"
    given: dict[str, Any] = {"requestState": "s1", "inputResponses": {"a": {"action": "accept"}}}
    await stage.call(2, **given)
    second = await stage.running(2)
    assert second["params"] == {"name": "deploy", "arguments": edited, **given}
    await stage.finish(second)
    assert "People approved this with changes" in await stage.text(2)
    await state_of(stage, "ran")
    await stage.call(3, **given)
    assert "from the beginning" in await stage.text(3)
    assert (len(stage.calls), len(stage.countersign.records)) == (2, 1)


async def test_a_server_cannot_answer_before_people(stage: Stage) -> None:
    await stage.call()
    await stage.asked()
    await stage.finish({"id": 1})
    await stage.finish({"id": "other"})
    assert [message["id"] for message in stage.client] == ["l", "other"]


async def test_a_list_says_that_people_may_be_asked(stage: Stage) -> None:
    listed = await stage.list_tools(DEPLOY)
    (tool,) = listed["result"]["tools"]
    assert tool["description"] == "Deploys. [People may be asked first; this can take long.]"
    assert "outputSchema" not in tool
    assert {name: tool[name] for name in ("name", "inputSchema", "annotations")} == {
        name: DEPLOY[name] for name in ("name", "inputSchema", "annotations")
    }


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ('"result": {"content": [], "structuredContent": {"load": NaN, "top": 1e400}}', None),
        ('"nothing": true', "the server's answer has no result"),
    ],
)
async def test_an_answer_that_breaks_the_rules_reaches_the_client_as_one_that_does_not(
    stage: Stage, answer: str, shown: str | None
) -> None:
    await stage.call()
    record = await stage.asked()
    await stage.do(lambda: stage.countersign.approve(record))
    call = await stage.running()
    await stage.proxy.from_server(f'{{"jsonrpc": "2.0", "id": "{call["id"]}", {answer}}}'.encode())
    reply = await stage.answer()
    if shown is None:
        assert reply["result"]["structuredContent"] == {"load": None, "top": None}
    else:
        assert shown in reply["error"]["message"]


async def test_a_list_with_numbers_that_are_none_is_a_list(stage: Stage) -> None:
    await stage.send({"jsonrpc": "2.0", "id": "m", "method": "tools/list"})
    tool = '{"name": "t", "inputSchema": {"properties": {"n": {"default": Infinity}}}}'
    line = f'{{"jsonrpc": "2.0", "id": "m", "result": {{"tools": [{tool}]}}}}'
    await stage.proxy.from_server(line.encode())
    (shown,) = (await stage.answer("m"))["result"]["tools"]
    assert shown["inputSchema"] == {"properties": {"n": {"default": None}}}


async def test_pages_of_a_list_belong_together(stage: Stage) -> None:
    await stage.list_tools({**DEPLOY, "name": "restart"}, cursor="2")
    stage.countersign.policy = "deny"
    await stage.call(1)
    await stage.call(2, name="restart")
    assert "Rejected by the rule" in await stage.text(1)
    assert "Rejected by the rule" in await stage.text(2)
    await stage.list_tools({**DEPLOY, "name": "restart"})
    await stage.call(3)
    assert "no such tool" in await stage.text(3)


async def test_claims_of_the_server_are_tags_and_schemas_that_no_form_keeps_allow_no_edit(
    stage: Stage,
) -> None:
    schema = {"type": "object", "patternProperties": {"^x": {}}}
    hints = {"readOnlyHint": True}
    await stage.list_tools({"name": "odd", "inputSchema": schema, "annotations": hints})
    await stage.call(name="odd", arguments={"x": 1.0})
    assert (await stage.asked()).shown["kind"] == "approval"
    assert await stage.ran() == "deployed"
    assert stage.calls[-1]["params"]["arguments"] == {"x": 1.0}


async def test_other_messages_pass_in_both_directions(stage: Stage) -> None:
    ask = {"jsonrpc": "2.0", "id": 5, "method": "resources/read", "params": {"uri": "a"}}
    notify = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    reply = {"jsonrpc": "2.0", "id": 9, "result": {"roots": []}}
    for message in (ask, notify, reply):
        await stage.send(message)
    assert stage.server[-3:] == [ask, notify, reply]
    roots = b'{ "jsonrpc": "2.0", "id": 9, "method": "roots/list" }\n'
    for line in (roots, b"no JSON\n"):
        passed: list[bytes] = []

        async def to_client(text: bytes, passed: list[bytes] = passed) -> None:
            passed.append(text)

        stage.proxy._to_client = to_client
        await stage.proxy.from_server(line)
        assert passed == [line]


async def test_another_method_can_be_held_too(tmp_path: Path) -> None:
    async with Stage(tmp_path, gates=frozenset({"resources/read"})) as stage:
        message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "a"}}
        await stage.send(message)
        record = await stage.asked()
        assert record.shown["tool"] == "ops.resources/read"
        assert record.shown["arguments"] == {"uri": "a"}
        await stage.do(lambda: stage.countersign.reject(record))
        assert "Rejected by Ada" in (await stage.answer())["error"]["message"]
        stage.countersign.policy = "allow"
        await stage.send({**message, "id": 2, "params": {"uri": "b", "_meta": {"x": 1}}})
        await stage.until(lambda: stage.server[-1]["method"] == "resources/read")
        assert stage.server[-1]["params"] == {"uri": "b", "_meta": {"x": 1}}
        await stage.finish(stage.server[-1], result={"contents": []})
        assert (await stage.answer(2))["result"]["contents"] == []


async def test_progress_rises_below_zero_while_people_think(stage: Stage) -> None:
    await stage.call(_meta={"progressToken": "t"})
    record = await stage.asked()
    for _ in range(3):
        await stage.tick()
    await stage.until(lambda: len(stage.client) >= 5)
    notices = [message["params"] for message in stage.client if "params" in message]
    numbers = [each["progress"] for each in notices]
    assert numbers == sorted(set(numbers))
    assert all(-1 <= number < 0 for number in numbers)
    assert {each["progressToken"] for each in notices} == {"t"}
    assert record.shown["id"] in notices[-1]["message"]
    await stage.do(lambda: stage.countersign.approve(record))
    assert (await stage.running())["params"]["_meta"] == {"progressToken": "t"}


async def test_a_call_that_was_given_up_leaves_the_request_for_the_same_call(stage: Stage) -> None:
    """Check 68, of the proxy."""
    await stage.call(1)
    record = await stage.asked()
    await stage.cancel(1)
    await stage.until(lambda: not stage.proxy._open_calls)  # or the second call joins the first
    await stage.do(lambda: stage.countersign.approve(record))
    await stage.call(2)
    await stage.finish(await stage.running())
    assert await stage.text(2) == "deployed"
    assert (len(stage.calls), len(stage.countersign.records)) == (1, 1)
    assert [message for message in stage.client if message.get("id") == 1] == []


async def test_a_call_that_was_cancelled_withdraws_its_request_if_that_is_wanted(
    tmp_path: Path,
) -> None:
    async with Stage(tmp_path, withdraws=True) as stage:
        await stage.call()
        record = await stage.asked()
        await stage.cancel()
        await stage.until(lambda: record.shown["status"] == "cancelled")


async def test_the_result_of_a_call_that_was_given_up_is_kept_for_the_same_call(
    stage: Stage,
) -> None:
    stage.countersign.policy = "allow"
    await stage.call(1)
    call = await stage.running()
    await stage.cancel(1)
    assert [each for each in stage.server if each["method"] == "notifications/cancelled"] == []
    await stage.finish(call)
    await state_of(stage, "ran")
    await stage.until(lambda: not stage.proxy._open_calls)
    (kept,) = stage.folder.glob("*.result")
    assert kept.stat().st_mode & 0o777 == 0o600
    stage.restarted()
    await stage.list_tools(DEPLOY)
    await stage.call(2)
    assert "it ran once" in await stage.text(2)
    assert "deployed" in await stage.text(2)
    assert len(stage.calls) == 1
    await stage.until(lambda: list(stage.countersign.records.values())[-1].is_delivered)
    await stage.call(3)
    await stage.finish(await stage.running(2))
    assert await stage.text(3) == "deployed"


async def test_a_result_that_the_client_never_read_is_kept(stage: Stage) -> None:
    stage.countersign.policy = "allow"
    await stage.call(1)
    call = await stage.running()
    stage.client_is_gone = True
    await stage.finish(call)
    await state_of(stage, "ran")
    await stage.until(lambda: not stage.proxy._open_calls)
    assert len(list(stage.folder.glob("*.result"))) == 1
    stage.client_is_gone = False
    stage.time += 3601
    stage.restarted()
    assert list(stage.folder.glob("*.result")) == []


async def test_a_client_that_reads_its_result_and_goes_at_once_has_it(stage: Stage) -> None:
    stage.countersign.policy = "allow"
    await stage.call(1)
    call = await stage.running()
    stage.may_write.clear()
    await stage.finish(call)
    assert await stage.text(1) == "deployed"
    ending = asyncio.create_task(stage.proxy.close())
    await asyncio.sleep(0)
    stage.may_write.set()
    await ending
    (record,) = stage.countersign.records.values()
    assert record.is_delivered
    assert list(stage.folder.glob("*.result")) == []


async def test_a_client_that_gives_up_while_its_result_is_written_gets_it_with_the_same_call(
    stage: Stage,
) -> None:
    """It ignores the answer that comes after its cancellation."""
    stage.countersign.policy = "allow"
    await stage.call(1)
    call = await stage.running()
    stage.may_write.clear()
    await stage.finish(call)
    assert await stage.text(1) == "deployed"
    await stage.cancel(1)
    await stage.until(lambda: not stage.proxy._waiting)
    stage.may_write.set()
    stage.restarted()
    await stage.list_tools(DEPLOY)
    await stage.call(2)
    assert "it ran once" in await stage.text(2)
    assert len(stage.calls) == 1


async def test_the_same_call_at_once_runs_once_and_both_are_told(stage: Stage) -> None:
    await stage.call(1)
    record = await stage.asked()
    await stage.call(2)
    await stage.cancel(1)
    await stage.call(3)
    await stage.do(lambda: stage.countersign.approve(record))
    await stage.finish(await stage.running())
    assert "it ran once" in await stage.text(2)
    assert "it ran once" in await stage.text(3)
    assert len(stage.calls) == 1


async def test_what_people_say_of_a_lost_outcome_is_handed_over_once(stage: Stage) -> None:
    stage.countersign.policy = "allow"
    await stage.call(1)
    await stage.running()
    stage.proxy.server_gone()
    assert "outcome is unknown" in await stage.text(1)
    await state_of(stage, "unknown")
    await stage.proxy.close()
    record = await stage.asked()
    record.shown["execution"]["state"] = "ran"
    stage.restarted()
    await stage.list_tools(DEPLOY)
    await stage.call(2)
    assert "its outcome is: ran" in await stage.text(2)
    await stage.until(lambda: record.is_delivered)
    await stage.call(3)
    await stage.finish(await stage.running(2))
    assert await stage.text(3) == "deployed"


async def test_calls_that_wait_are_told_that_the_server_ended(stage: Stage) -> None:
    await stage.call(1)
    record = await stage.asked()
    stage.proxy.server_gone()
    await stage.proxy.close()
    assert "the server has ended" in await stage.text(1)
    assert record.shown["status"] == "pending"


async def test_a_server_that_ended_before_the_start_ran_nothing(stage: Stage) -> None:
    stage.proxy.server_gone()
    stage.countersign.policy = "allow"
    await stage.call(1)
    assert "the server has ended" in await stage.text(1)
    await state_of(stage, "not_run")


async def test_a_changed_definition_is_shown_until_people_have_approved_it(stage: Stage) -> None:
    stage.time += 86_400
    stage.restarted()
    await stage.list_tools({**DEPLOY, "description": "Deploys, and tells everybody."})
    stage.countersign.policy = "allow"
    await stage.call(1)
    assert "a rule or a grant is not enough" in await stage.text(1)
    assert stage.calls == []
    stage.countersign.policy = "ask"
    await stage.call(2, {"env": "staging"})
    record = await stage.asked(2)
    assert record.shown["why"] == "The definition of this tool has changed since 2025-11-13."
    await stage.do(lambda: stage.countersign.approve(record))
    await stage.finish(await stage.running())
    assert await stage.text(2) == "deployed"
    stage.countersign.policy = "allow"
    await stage.call(3, {"env": "test"})
    await stage.finish(await stage.running(2))
    assert await stage.text(3) == "deployed"


async def test_a_decision_about_another_definition_does_not_count(stage: Stage) -> None:
    await stage.call(1)
    first = await stage.asked()
    await stage.cancel(1)
    await stage.until(lambda: not stage.proxy._open_calls)
    await stage.do(lambda: stage.countersign.approve(first))
    await stage.list_tools({**DEPLOY, "description": "Deploys, and tells everybody."})
    await stage.call(2)
    second = await stage.asked(2)
    assert second.shown["status"] == "pending"
    assert stage.calls == []


async def test_the_summary_of_a_result_is_told_only_if_that_is_wanted(tmp_path: Path) -> None:
    async with Stage(tmp_path, tells_summary=True) as stage:
        stage.countersign.policy = "allow"
        await stage.call()
        text = {"type": "text", "text": "deployed " * 100}
        await stage.finish(await stage.running(), result={"content": [text]})
        await state_of(stage, "ran")
        record = await stage.asked()
        assert record.shown["execution"]["summary"] == ("deployed " * 100)[:300]


async def test_a_damaged_state_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps({"deploy": {"since": 1}}))
    with pytest.raises(CountersignError, match=r"tools\.json is damaged"):
        Definitions(tmp_path / "tools.json")
