"""The proxy over standard input and output, with the server as a child process."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from countersign_client.asynchronous import AsyncCountersign
from countersign_client.errors import CountersignError
from countersign_client.mcp.calls import Options
from countersign_client.mcp.files import Definitions, Spool
from countersign_client.mcp.proxy import Proxy
from countersign_client.processes import dying_with_parent

GRACE = 5.0
"""Seconds in which a server ends after its input is closed, and again after SIGTERM."""
_BLOCK = 1 << 16


async def serve(
    command: Sequence[str],
    environ: Mapping[str, str],
    options: Options,
    files: tuple[Definitions, Spool],
    countersign: AsyncCountersign,
    *,
    restarts: bool = False,
) -> int:
    """Stand between the client at our standard streams and a server, until one of them ends.

    Args:
        command: The server's command line.
        environ: Our environment; the server gets it without what is Countersign's.
        options: How to ask.
        files: The server's tools, and the results that no client took.
        countersign: Asks people.
        restarts: Start a server again that ends by itself, if it has said anything before.

    Returns:
        The exit code: the server's if it ended by itself, 128 and the signal's number if a signal
        ended it, and 0 if the client has closed our input.

    Raises:
        CountersignError: The server cannot be started.
    """
    own = {name: value for name, value in environ.items() if not name.startswith("COUNTERSIGN_")}
    child = await _Child.started(command, own)

    async def to_server(line: bytes) -> None:
        child.stdin.write(line)
        await child.stdin.drain()

    proxy = Proxy(countersign, options, files, _writer(), to_server)
    greeted = asyncio.Event()
    greeted.set()

    async def from_client(line: bytes) -> None:
        await greeted.wait()
        await proxy.from_client(line)

    client = asyncio.create_task(_carry(_standard_input(), from_client))
    server = asyncio.create_task(child.carried(proxy.from_server))
    stop = asyncio.create_task(_signalled())
    await asyncio.wait({client, server, stop}, return_when=asyncio.FIRST_COMPLETED)
    while restarts and child.has_spoken and not client.done() and not stop.done():
        greeted.clear()
        await child.end(is_told=False)
        await proxy.server_died()
        child = await _Child.started(command, own)
        server = asyncio.create_task(child.carried(proxy.from_server))
        greeting = asyncio.create_task(proxy.greet_again())
        greeting.add_done_callback(lambda _: greeted.set())
        await asyncio.wait({client, server, stop}, return_when=asyncio.FIRST_COMPLETED)
    if not server.done() and not stop.done():  # the client has gone; what runs may end
        closing = asyncio.create_task(proxy.close())
        await asyncio.wait({closing, server, stop}, return_when=asyncio.FIRST_COMPLETED)
    is_own_end = server.done()
    code = await child.end(is_told=stop.done())
    await server
    proxy.server_gone()
    await proxy.close()
    client.cancel()
    stop.cancel()
    return (128 - code if code < 0 else code) if is_own_end else 0


class _Child:
    """A server that runs; one that has said nothing is not worth another start."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        self._process, self.stdin, self._stdout = process, process.stdin, process.stdout
        self.has_spoken = False

    @classmethod
    async def started(cls, command: Sequence[str], environ: Mapping[str, str]) -> _Child:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=environ,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                preexec_fn=dying_with_parent(),
            )
        except OSError as error:
            raise CountersignError(f"{command[0]} cannot be started: {error.strerror}") from None
        return cls(process)

    async def carried(self, take: Callable[[bytes], Awaitable[None]]) -> None:
        async def take_line(line: bytes) -> None:
            self.has_spoken = True
            await take(line)

        await _carry(self._stdout, take_line)

    async def end(self, *, is_told: bool) -> int:
        """End the server: by closing its input, then by SIGTERM, then by SIGKILL."""
        self.stdin.close()
        steps = [self._process.terminate, self._process.kill]
        if is_told:
            with suppress(ProcessLookupError):
                steps.pop(0)()
        for step in steps:
            with suppress(asyncio.TimeoutError):
                return await asyncio.wait_for(self._process.wait(), GRACE)
            with suppress(ProcessLookupError):
                step()
        return await self._process.wait()


async def _carry(reader: asyncio.StreamReader, take: Callable[[bytes], Awaitable[None]]) -> None:
    with suppress(OSError):  # the other side has gone
        async for line in _lines(reader):
            if line.strip():
                await take(line)


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Give whole lines of any length; what follows the last end of line is no message."""
    rest: list[bytes] = []
    while block := await reader.read(_BLOCK):
        *lines, last = block.split(b"\n")
        for line in lines:
            yield b"".join([*rest, line, b"\n"])
            rest = []
        rest.append(last)


def _standard_input() -> asyncio.StreamReader:
    """Read fd 0 in a thread: it may be a pipe, a file or a terminal."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()

    def read() -> None:
        with suppress(RuntimeError):  # the loop has ended
            with suppress(OSError):
                while block := os.read(0, _BLOCK):
                    loop.call_soon_threadsafe(reader.feed_data, block)
            loop.call_soon_threadsafe(reader.feed_eof)

    threading.Thread(target=read, daemon=True).start()
    return reader


def _writer() -> Callable[[bytes], Awaitable[None]]:
    """Write to fd 1, in order; a client that does not read blocks only its own messages."""
    lock = asyncio.Lock()

    def write(line: bytes) -> None:
        while line:
            line = line[os.write(1, line) :]

    async def to_client(line: bytes) -> None:
        async with lock:
            await asyncio.shield(asyncio.to_thread(write, line))

    return to_client


async def _signalled() -> None:
    """Wait for a signal that ends a program."""
    loop, signalled = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows has no handlers on loops
            loop.add_signal_handler(number, signalled.set)
    await signalled.wait()
