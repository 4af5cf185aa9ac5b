"""Agents ask people by tools of MCP, with the official client in both eras."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import httpx
import httpx2
import pytest
from mcp.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, Request, Result
from pydantic import BaseModel, Field

from countersign_client import AsyncCountersign
from countersign_client.mcp.server import build_server
from tests.scenario.programs.test_mcp_proxy import ERAS, Bench, listening, texts
from tests.support.ports import free_port
from tests.support.programs.loopback import Loopback
from tests.support.programs.server import KEY, Record

CALL = {"title": "Deploy payments", "tool": "deploy", "arguments": {"env": "production"}}


@pytest.fixture
def bench(door: Loopback, tmp_path: Path) -> Bench:
    return Bench(door, tmp_path)


class Agent:
    """A client of the server, in the process of the test."""

    def __init__(self, bench: Bench, era: str = "auto", **options: Any) -> None:
        self.people = AsyncCountersign(bench.door.url, KEY, patience=0)
        server = build_server(lambda _: self.people, "s", "claude-code")
        self.client = Client(server, mode=era, **options)

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.__aexit__(None, None, None)
        await self.people.close()

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool; the text block says the same as the structured content."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, texts(result)
        reply: dict[str, Any] = result.structured_content or {}
        assert json.loads(texts(result)) == reply
        return reply


@pytest.mark.parametrize("era", ERAS)
async def test_an_approval_is_handed_over_with_its_start_and_reported(
    bench: Bench, era: str
) -> None:
    """Check 67, of the server."""
    async with Agent(bench, era) as agent:
        people = bench.approve({"env": "staging"})
        reply = await agent.call("request_approval", **CALL, edit=True)
        await people
        assert reply["status"] == "approved"
        assert reply["decision"]["arguments"] == {"env": "staging"}
        record = bench.door.request()
        assert record.shown["execution"]["state"] == "started"
        assert reply["execution_id"] == record.shown["execution"]["execution_id"]
        again = await agent.call("get_request", id=reply["id"])
        assert again == reply
        await agent.call("report_result", id=reply["id"], outcome="ran", summary="3 pods")
        assert record.shown["execution"]["state"] == "ran"
        assert record.is_delivered
        late = await agent.call("get_request", id=reply["id"])
        assert "execution_id" not in late or late["execution_id"] is None
        assert "Not run again" in late["next"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_request_that_pends_is_a_success_that_says_how_to_go_on(
    bench: Bench, era: str
) -> None:
    """Check 68, of the server."""
    async with Agent(bench, era) as agent:
        reply = await agent.call("request_approval", **CALL, wait_seconds=0)
        assert reply["status"] == "pending"
        assert "get_request" in reply["next"]
        with pytest.raises(Exception, match=r"(?i)timed out|timeout"):
            await agent.client.call_tool("request_approval", CALL, read_timeout_seconds=2)
        people = bench.approve()
        done = await agent.call("get_request", id=reply["id"])
        await people
        assert (done["id"], done["status"]) == (reply["id"], "approved")
        assert len(bench.door.server.records) == 1


async def test_each_other_end_is_told_as_what_it_is(bench: Bench) -> None:
    """Check 12, of the server."""
    server = bench.door.server
    async with Agent(bench) as agent:
        people = bench.later(lambda record: server.reject(record, "too late"))
        reply = await agent.call("request_approval", **CALL)
        await people
        assert (reply["status"], reply["next"]) == ("rejected", "Rejected by Ada: too late")
        assert reply["execution_id"] is None
        server.policy = "nobody"
        reply = await agent.call("request_approval", **CALL, key="2")
        assert "people could not be asked (nobody-can-decide)" in reply["next"]
        server.policy = "ask"
        reply = await agent.call("request_approval", **CALL, key="3", wait_seconds=0)
        gone = await agent.call("cancel_request", id=reply["id"])
        assert gone["status"] == "cancelled"
        server.policy, server.is_frozen = "allow", True
        reply = await agent.call("request_approval", **CALL, key="4")
        assert (reply["execution_id"], reply["next"]) == (
            None,
            "Not run: an admin has frozen all starts.",
        )
        assert "arguments" not in reply["decision"]


class Tasks(ClientExtension):
    """Polls a task to its end, and cancels it first if that is wanted."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.meanwhile = meanwhile
        self.states: list[dict[str, Any]] = []
        self.cancels = False

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Task, resolve=self._resolve)]

    async def _resolve(self, task: Task, context: ClaimContext) -> CallToolResult:
        self.states.append(task.model_dump(by_alias=True))
        for _ in range(3):
            method = "tasks/cancel" if self.cancels and len(self.states) == 2 else "tasks/get"
            asked = MethodCall(method=method, params={"taskId": task.task_id})
            reply = await context.session.send_request(asked, Answer)
            answer = reply.model_dump()
            self.states.append(answer)
            if "result" in answer:
                return CallToolResult.model_validate(answer["result"])
            self.meanwhile()
        return CallToolResult(content=[], is_error=True)


class Task(Result):
    """The answer to a call that became a task."""

    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")
    status: str
    ttl_ms: int | None = Field(alias="ttlMs")
    poll_interval_ms: int = Field(alias="pollIntervalMs")
    created_at: str = Field(alias="createdAt")
    last_updated_at: str = Field(alias="lastUpdatedAt")


class Answer(BaseModel, extra="allow"):
    """The answer to such a call."""


class MethodCall(Request[dict[str, Any], str]):
    """A call of a method of the extension."""


SERVER = ["-m", "countersign_client.cli", "mcp"]


@asynccontextmanager
async def on_http(bench: Bench) -> AsyncIterator[str]:
    """Start a server on HTTP, as a process without a key of its own; its address."""
    port = free_port()
    environment = {k: v for k, v in bench.environment.items() if k != "COUNTERSIGN_KEY"}
    async with listening([*SERVER, "--http", f"127.0.0.1:{port}"], environment, port) as server:
        yield server.url


@pytest.fixture
async def address(bench: Bench) -> AsyncIterator[str]:
    async with on_http(bench) as url:
        yield url


@pytest.fixture(params=["stdio", "http"])
async def connect(
    bench: Bench, request: pytest.FixtureRequest
) -> AsyncIterator[Callable[..., Client]]:
    """Make a client of a server in a process of its own, over a real transport."""
    if request.param == "stdio":
        server = StdioServerParameters(command=sys.executable, args=SERVER, env=bench.environment)
        yield partial(Client, server)
        return
    headers = {"Authorization": f"Bearer {KEY}"}
    async with on_http(bench) as url, httpx2.AsyncClient(headers=headers) as http:
        yield partial(Client, streamable_http_client(url, http_client=http))


async def test_69_a_task_is_polled_to_its_end(bench: Bench, connect: Callable[..., Client]) -> None:
    server = bench.door.server

    def approve() -> None:
        bench.door.do(lambda: server.approve(bench.door.request()))

    tasks = Tasks(approve)
    async with connect(extensions=[tasks]) as client:
        result = await client.call_tool("request_approval", CALL)
        assert (result.structured_content or {})["status"] == "approved"
        assert (result.structured_content or {})["execution_id"]
        assert json.loads(texts(result)) == result.structured_content
    record = bench.door.request()
    assert [state["status"] for state in tasks.states] == ["working", "working", "completed"]
    assert {state["taskId"] for state in tasks.states} == {record.shown["id"]}
    assert {state["pollIntervalMs"] for state in tasks.states} == {5_000}
    assert record.shown["execution"]["state"] == "started"


async def test_69_a_cancelled_task_withdraws_the_card(
    bench: Bench, connect: Callable[..., Client]
) -> None:
    tasks = Tasks(lambda: None)
    tasks.cancels = True
    async with connect(extensions=[tasks]) as client:
        await client.call_tool("ask_people", {"question": "Which region?"})
    assert [state.get("status") for state in tasks.states] == [
        "working",
        "working",
        None,
        "cancelled",
    ]
    assert bench.door.request().shown["status"] == "cancelled"


async def test_69_a_client_without_tasks_gets_none(
    bench: Bench, connect: Callable[..., Client]
) -> None:
    async with connect() as client:
        result = await client.call_tool("request_approval", {**CALL, "wait_seconds": 0})
        assert (result.structured_content or {})["status"] == "pending"
        asked = MethodCall(method="tasks/get", params={"taskId": "apr_" + "f" * 32})
        with pytest.raises(MCPError, match="not-found"):
            await client.session.send_request(asked, Answer)


async def test_people_answer_questions(bench: Bench) -> None:
    server = bench.door.server
    async with Agent(bench) as agent:
        for more, answer in (
            ({}, "in eu"),
            ({"options": ["eu", "us"]}, "eu"),
            ({"schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}, {"n": 1}),
        ):
            people = bench.later(partial(server.reply, answer=answer))
            reply = await agent.call("ask_people", question="Which region?", **more)
            await people
            assert (reply["status"], reply["decision"]["answer"]) == ("answered", answer)


async def test_faults_are_errors_that_the_model_can_read(bench: Bench) -> None:
    bench.door.server.key = KEY.replace("csk_A", "csk_B")
    async with Agent(bench) as agent:
        for tool, arguments in (
            ("request_approval", CALL),
            ("get_request", {"id": "apr_1"}),
            ("report_result", {"id": "apr_" + "0" * 32, "outcome": "ran"}),
        ):
            result = await agent.client.call_tool(tool, arguments)
            assert result.is_error
            assert "Nothing was approved" in texts(result)


async def test_people_are_asked_and_never_the_user_of_the_client(bench: Bench) -> None:
    """Check 27 of the threat model: no elicitation, and no sampling."""
    asked: list[str] = []

    async def answer(*_: Any) -> Any:
        asked.append("the user")
        raise AssertionError

    options = {"elicitation_callback": answer, "sampling_callback": answer}
    async with Agent(bench, "legacy", **options) as agent:
        await agent.call("request_approval", **CALL, wait_seconds=0)
    assert asked == []


@pytest.mark.parametrize("end", ["allow", "edit", "deny", "away"])
async def test_the_permission_prompt_answers_in_one_text_block(bench: Bench, end: str) -> None:
    """Check 71, without the agent: a structured result would be refused."""
    server = bench.door.server
    deeds = {
        "allow": server.approve,
        "edit": lambda record: server.approve(record, {"command": "ls -l"}),
        "deny": lambda record: server.reject(record, "no"),
    }
    asked = {"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "toolu_1"}
    async with Agent(bench) as agent:
        if end == "away":
            server.next_problems = [(401, "key-revoked", None)]
        people = bench.later(deeds[end]) if end in deeds else asyncio.create_task(asyncio.sleep(0))
        result = await agent.client.call_tool("permission_prompt", {**asked, "surplus": 1})
        await people
    assert result.structured_content is None
    (block,) = result.content
    reply = json.loads(getattr(block, "text"))  # noqa: B009 - blocks are of several kinds
    expected: dict[str, Any] = {
        "allow": {"behavior": "allow", "updatedInput": {"command": "ls"}},
        "edit": {"behavior": "allow", "updatedInput": {"command": "ls -l"}},
        "deny": {"behavior": "deny", "message": "Rejected by Ada: no"},
    }
    if end == "away":
        assert reply["behavior"] == "deny"
        assert "people could not be asked" in reply["message"]
    else:
        assert reply == expected[end]
        assert bench.door.request().shown["tool"] == "claude-code.Bash"


async def test_the_tools_say_what_they_take_and_give(bench: Bench) -> None:
    async with Agent(bench) as agent:
        tools = {tool.name: tool for tool in (await agent.client.list_tools()).tools}
    assert sorted(tools) == [
        "ask_people",
        "cancel_request",
        "get_request",
        "permission_prompt",
        "report_result",
        "request_approval",
    ]
    assert all(tool.description for tool in tools.values())
    assert tools["permission_prompt"].output_schema is None
    schema: Any = tools["request_approval"].input_schema
    assert set(schema["required"]) == {"title", "tool", "arguments"}
    assert "context" not in schema["properties"]
    assert schema["properties"]["wait_seconds"]["maximum"] == 3600


@pytest.mark.parametrize("era", ERAS)
async def test_http_asks_with_the_key_of_the_caller(bench: Bench, era: str, address: str) -> None:
    """Check 67, of the server on HTTP."""
    for key, reply in (
        (KEY, "pending"),
        (KEY.replace("csk_A", "csk_B"), "key-invalid"),
        ("", "key"),
    ):
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with httpx2.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(address, http_client=http)
            async with Client(transport, mode=era) as client:
                result = await client.call_tool("request_approval", {**CALL, "wait_seconds": 0})
                assert reply in texts(result)
                assert result.is_error == (key != KEY)
    assert len(bench.door.server.records) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_67_each_end_over_http(bench: Bench, era: str, address: str) -> None:
    server = bench.door.server
    headers = {"Authorization": f"Bearer {KEY}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(address, http_client=http), mode=era) as client,
    ):

        async def asked(deed: Callable[[Record], object], **more: Any) -> tuple[str, Any, str]:
            people = bench.later(deed)
            result = await client.call_tool("request_approval", {**CALL, **more})
            await people
            reply = result.structured_content or {}
            return reply["status"], (reply["decision"] or {}).get("arguments"), reply["next"]

        assert (await asked(server.approve))[:2] == ("approved", CALL["arguments"])
        edited = {"env": "staging"}
        change = partial(server.approve, arguments=edited)
        assert (await asked(change, edit=True, key="2"))[:2] == ("approved", edited)
        rejection = await asked(partial(server.reject, reason="too late"), key="3")
        assert rejection == ("rejected", None, "Rejected by Ada: too late")
        status, _, reply = await asked(server.expire, key="4")
        assert status == "expired"
        assert "This is no rejection." in reply


async def test_http_answers_no_other_host_and_no_page(bench: Bench, address: str) -> None:
    """Check 25 of the threat model."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient() as http:
        for headers, status in (
            ({"Host": "evil.example"}, 421),
            ({"Origin": "https://evil.example"}, 403),
        ):
            answer = await http.post(address, json=message, headers={**accept, **headers})
            assert answer.status_code == status
            assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_client_alone_imports_no_sdk() -> None:
    code = (
        "import sys; from countersign_client.cli import main; "
        "import countersign_client.mcp.proxy; print({'mcp', 'starlette'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)  # noqa: S603
    assert done.stdout == "set()\n"
