"""The proxy as a process, between the official client and a server of the official SDK, on both
transports."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult

from tests.support.ports import free_port
from tests.support.programs.loopback import Loopback
from tests.support.programs.server import KEY, Record

ROOT = Path(__file__).parents[3]
ERAS = ("legacy", "auto")
"""How the client begins: with the handshake of 2025-11-25, or without a session, of 2026-07-28."""


TRANSPORTS = ("stdio", "http")
WAYS = pytest.mark.parametrize(
    ("transport", "era"), [(transport, era) for transport in TRANSPORTS for era in ERAS]
)


class Bench:
    """A server of Countersign, and how to start clients of a proxy."""

    def __init__(self, door: Loopback, folder: Path) -> None:
        self.door = door
        self.log = folder / "log"
        self.log.touch()
        self.folder = folder

    @property
    def runs(self) -> list[str]:
        """What the server of tools ran."""
        return self.log.read_text("utf-8").splitlines()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "COUNTERSIGN_URL": self.door.url,
            "COUNTERSIGN_KEY": KEY,
            "XDG_STATE_HOME": str(self.folder),
        }

    @property
    def command(self) -> list[str]:
        own = [sys.executable, "-m", "countersign_client.cli", "mcp-proxy", "--name", "toy", "--"]
        return [*own, sys.executable, "-m", "tests.support.programs.toy_server", str(self.log)]

    @asynccontextmanager
    async def tools(self, port: int | None = None) -> AsyncIterator[Listening]:
        """Start the server of tools on HTTP."""
        port = port or free_port()
        command = ["-m", "tests.support.programs.toy_server", str(self.log), str(port)]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        async with listening(command, environment, port) as server:
            yield server

    @asynccontextmanager
    async def proxy(
        self, url: str, *options: str, countersign: str | None = None
    ) -> AsyncIterator[Listening]:
        """Start a proxy before a server on HTTP."""
        port = free_port()
        command = ["-m", "countersign_client.cli", "mcp-proxy", "--name", "toy", "--url", url]
        command += ["--listen", f"127.0.0.1:{port}", *options]
        environment = self.environment | ({"COUNTERSIGN_URL": countersign} if countersign else {})
        async with listening(command, environment, port) as proxy:
            yield proxy

    @asynccontextmanager
    async def client(
        self, era: str = "auto", transport: str = "stdio", **options: Any
    ) -> AsyncIterator[Client]:
        """Start a proxy, with a client that has listed the tools."""
        if transport == "http":
            async with (
                self.tools() as server,
                self.proxy(server.url) as proxy,
                Client(streamable_http_client(proxy.url), mode=era, **options) as client,
            ):
                await client.list_tools()
                yield client
            return
        program, *args = self.command
        parameters = StdioServerParameters(command=program, args=args, env=self.environment)
        async with Client(parameters, mode=era, **options) as client:
            await client.list_tools()
            yield client

    def later(self, deed: Callable[[Record], object]) -> asyncio.Task[None]:
        """Let people do something when they are asked."""

        def act() -> None:
            record = self.door.request(lambda record: not record.is_over)
            self.door.do(lambda: deed(record))

        return asyncio.create_task(asyncio.to_thread(act))

    def approve(self, arguments: dict[str, Any] | None = None) -> asyncio.Task[None]:
        return self.later(lambda record: self.door.server.approve(record, arguments))


class Listening:
    """A process that listens."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}/mcp"

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def listening(
    command: list[str], environment: Mapping[str, str], port: int
) -> AsyncIterator[Listening]:
    """Start a process of Python, and wait until it listens."""
    process = await asyncio.create_subprocess_exec(sys.executable, *command, env=environment)
    try:
        await until(lambda: process.returncode is not None or is_open(port))
        assert process.returncode is None
        yield Listening(process, port)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def bench(door: Loopback, tmp_path: Path) -> Bench:
    return Bench(door, tmp_path)


def texts(result: Any) -> str:
    return " ".join(block.text for block in result.content)


@WAYS
async def test_each_end_of_a_call(bench: Bench, transport: str, era: str) -> None:
    """Check 67, of the proxy."""
    async with bench.client(era, transport) as client:
        people = bench.approve()
        done = await client.call_tool("deploy", {"env": "production", "replicas": 2})
        await people
        assert done.structured_content is not None
        assert done.structured_content["replicas"] == 2
        people = bench.approve({"env": "staging", "replicas": 1})
        edited = await client.call_tool("deploy", {"env": "production", "replicas": 5})
        await people
        assert "People approved this with changes" in texts(edited)
        assert "staging" in texts(edited)
        assert edited.structured_content is None
        people = bench.later(lambda record: bench.door.server.reject(record, "not on Friday"))
        rejected = await client.call_tool("deploy", {"env": "production", "replicas": 9})
        await people
        assert (rejected.is_error, texts(rejected)) == (True, "Rejected by Ada: not on Friday")
        people = bench.later(bench.door.server.expire)
        expired = await client.call_tool("deploy", {"env": "production", "replicas": 8})
        await people
        assert expired.is_error
        assert "nobody answered" in texts(expired)
        assert "This is no rejection." in texts(expired)
        bench.door.server.policy = "allow"
        failed = await client.call_tool("fail", {"text": "no disk"})
        assert failed.is_error
        assert texts(failed).startswith("Error executing tool fail")
        assert texts(await client.call_tool("keys")) == "none"
        bench.door.server.policy = "deny"
        denied = await client.call_tool("slow", {"seconds": 0})
        assert "Rejected by the rule" in texts(denied)
    assert bench.runs == ["deploy production 2", "deploy staging 1", "fail"]


@WAYS
async def test_what_is_no_call_passes(bench: Bench, transport: str, era: str) -> None:
    """Check 67: resources and prompts."""
    async with bench.client(era, transport) as client:
        assert client.protocol_version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[era]
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "People may be asked first" in (tools["deploy"].description or "")
        assert tools["deploy"].output_schema is None
        resource: Any = await client.read_resource("toy://text")
        assert resource.contents[0].text == "the text"
        prompt: Any = await client.get_prompt("greet", {"name": "Ada"})
        assert prompt.messages[0].content.text == "Greet Ada"
    assert bench.door.server.records == {}


@WAYS
async def test_progress_of_people_and_of_the_server_rises(
    bench: Bench, transport: str, era: str
) -> None:
    numbers: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        numbers.append(progress)

    async with bench.client(era, transport) as client:
        people = bench.approve()
        done = await client.call_tool("slow", {"seconds": 0.1}, progress_callback=hear)
        await people
        assert texts(done) == "done"
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (-1, 1)


@WAYS
async def test_a_server_may_ask_the_user_of_the_client_during_an_approved_call(
    bench: Bench, transport: str, era: str
) -> None:
    """The proxy itself asks people alone; a client that takes no questions is no rejection."""
    bench.door.server.policy = "allow"
    asked: list[str] = []

    async def answer(_: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"name": "eu"})

    async with bench.client(era, transport, elicitation_callback=answer) as client:
        assert texts(await client.call_tool("move")) == "moved to eu"
        (record,) = bench.door.server.records.values()
        await until(lambda: record.is_delivered)  # or the next client gets this result
    async with bench.client(era, transport) as client:
        with suppress(MCPError):
            failed = await client.call_tool("move")
            assert failed.is_error
            assert "Rejected" not in texts(failed)
    assert asked == ["Which region?"]
    assert bench.runs == ["move eu"]


@WAYS
async def test_a_client_with_a_limit_of_its_own_gets_the_decision_with_the_same_call(
    bench: Bench, transport: str, era: str
) -> None:
    """Check 68, of the proxy: one request, one run.

    A decision that comes before the proxy hears that the first call was given up runs that one;
    the second gets its result, with a line that says so.
    """
    async with bench.client(era, transport) as client:
        with pytest.raises(Exception, match=r"(?i)timed out|timeout"):
            await client.call_tool("deploy", {"env": "eu"}, read_timeout_seconds=2)
        await bench.approve()
        done = await client.call_tool("deploy", {"env": "eu"})
        assert not done.is_error
        assert '"replicas": 1' in texts(done)
    assert bench.runs == ["deploy eu 1"]
    assert len(bench.door.server.records) == 1


async def test_a_client_that_gives_up_during_the_run_gets_the_result_with_the_same_call(
    bench: Bench,
) -> None:
    bench.door.server.policy = "allow"
    async with bench.client() as client:
        with pytest.raises(Exception, match=r"(?i)timed out|timeout"):
            await client.call_tool("slow", {"seconds": 1.5}, read_timeout_seconds=0.7)
        again = await client.call_tool("slow", {"seconds": 1.5})
        assert "it ran once, and not again" in texts(again)
        assert texts(again).endswith("done")
    assert bench.runs == ["slow begins", "slow ends"]


async def test_a_proxy_that_is_killed_while_people_think_leaves_the_request(bench: Bench) -> None:
    """Check 70: the next process goes on with the same request."""
    proxy = await speaking(bench)
    await call(proxy, "deploy", {"env": "eu"})
    await asyncio.to_thread(bench.door.request)
    proxy.kill()
    await proxy.wait()
    await bench.approve()
    async with bench.client() as client:
        await client.call_tool("deploy", {"env": "eu"})
    assert bench.runs == ["deploy eu 1"]
    assert len(bench.door.server.records) == 1


async def test_a_proxy_that_is_killed_while_it_runs_never_runs_it_again(bench: Bench) -> None:
    """Check 70: the server dies with it, and people are asked."""
    bench.door.server.policy = "allow"
    proxy = await speaking(bench)
    await call(proxy, "slow", {"seconds": 2})
    await until(lambda: "slow begins" in bench.runs)
    proxy.kill()
    await proxy.wait()
    async with bench.client() as client:
        again = await client.call_tool("slow", {"seconds": 2})
        assert "Not run again: it was started before" in texts(again)
    await asyncio.sleep(0)
    assert bench.runs == ["slow begins"]


async def test_a_server_that_dies_while_it_runs_ends_the_proxy(bench: Bench) -> None:
    """Check 70: the outcome is unknown, and the exit code is the server's."""
    bench.door.server.policy = "allow"
    proxy = await speaking(bench)
    await call(proxy, "die", {})
    assert proxy.stdout is not None
    printed = await proxy.stdout.read()
    assert b"Its outcome is unknown, and people are asked" in printed
    assert await proxy.wait() == 3
    assert bench.door.request().shown["execution"]["state"] == "unknown"


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_dies_is_started_again_if_wanted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    """The client keeps its session: the call that ran is lost, the next one runs."""
    at = bench.command.index("--")
    command = [*bench.command[:at], "--restart", *bench.command[at:]]
    monkeypatch.setattr(Bench, "command", command)
    bench.door.server.policy = "allow"
    async with bench.client(era) as client:
        assert "outcome is unknown" in texts(await client.call_tool("die"))
        assert not (await client.call_tool("deploy", {"env": "eu"})).is_error
    assert bench.runs == ["die", "deploy eu 1"]


async def test_a_client_that_closes_its_end_ends_the_proxy(bench: Bench) -> None:
    proxy = await speaking(bench)
    await call(proxy, "deploy", {"env": "eu"})
    await asyncio.to_thread(bench.door.request)
    assert proxy.stdin is not None
    proxy.stdin.close()
    assert await proxy.wait() == 0
    assert bench.door.request().shown["status"] == "pending"


async def test_a_signal_ends_the_proxy_and_its_server(bench: Bench) -> None:
    bench.door.server.policy = "allow"
    proxy = await speaking(bench)
    await call(proxy, "slow", {"seconds": 60})
    await until(lambda: "slow begins" in bench.runs)
    proxy.send_signal(signal.SIGTERM)
    await proxy.wait()
    assert bench.door.request().shown["execution"]["state"] == "unknown"


async def test_a_server_that_is_not_there_is_an_error(bench: Bench) -> None:
    proxy = await asyncio.create_subprocess_exec(
        *bench.command[:7], "/no/such/server", env=bench.environment, stderr=asyncio.subprocess.PIPE
    )
    assert proxy.stderr is not None
    assert b"/no/such/server cannot be started" in await proxy.stderr.read()
    assert await proxy.wait() == 2


async def speaking(bench: Bench) -> asyncio.subprocess.Process:
    """A proxy as a child of the test, to which it speaks JSON-RPC by itself."""
    pipe = asyncio.subprocess.PIPE
    proxy = await asyncio.create_subprocess_exec(
        *bench.command, env=bench.environment, stdin=pipe, stdout=pipe
    )
    info = b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t",'
    info += b'"version":"1"}}'
    await write(proxy, b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":' + info + b"}")
    await read(proxy)
    await write(proxy, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    await write(proxy, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    await read(proxy)
    return proxy


async def call(proxy: asyncio.subprocess.Process, name: str, arguments: dict[str, Any]) -> None:
    params = {"name": name, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    await write(proxy, json.dumps(message).encode())


async def write(proxy: asyncio.subprocess.Process, line: bytes) -> None:
    assert proxy.stdin is not None
    proxy.stdin.write(line + b"\n")
    await proxy.stdin.drain()


async def read(proxy: asyncio.subprocess.Process) -> bytes:
    assert proxy.stdout is not None
    return await proxy.stdout.readline()


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    for _ in range(2_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError
