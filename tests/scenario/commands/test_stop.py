"""The stop: whatever hangs, a bot ends within the time that its supervisor is promised."""

from __future__ import annotations

import asyncio
import inspect
import selectors
import subprocess
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest

from bot.commands.call import CUT_OFF, STOP_S
from bot.http.server import INTAKE_S
from bot.main import start
from bot.slack.app import STOP_PATIENCE
from bot.tasks import CANCEL_S, CLOSE_S
from tests.support.pace import brisk
from tests.support.ports import free_port
from tests.support.stage import Stage, Transport, a_sandbox
from tests.support.stores import SqliteStores

PROMISED_S = 10.0
STEPS_S = INTAKE_S + STOP_PATIENCE.total_seconds() + CANCEL_S + CLOSE_S + CLOSE_S
"""What comes in, what runs, what is cut off, the audit, and all that is closed last."""
SHORTLY_S = 0.005
"""After this, nothing comes any more by itself from a neighbour in the same process."""


class Skipping(selectors.DefaultSelector):
    """Takes all waiting for time as over, from a moment on."""

    def __init__(self) -> None:
        super().__init__()
        self.is_skipping = False
        self.skipped_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """See `selectors.BaseSelector`."""
        if not self.is_skipping or timeout == 0:
            return super().select(timeout)
        events = super().select(SHORTLY_S)
        if not events and timeout:
            self.skipped_s += timeout
        return events


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop in which time may pass at once.

    Attributes:
        selector: Has the time that was skipped.
        is_over: Set after the stop.
    """

    def __init__(self) -> None:
        self.selector = Skipping()
        super().__init__(self.selector)
        self.is_over = asyncio.Event()

    def time(self) -> float:
        """Seconds, as the timers see them."""
        return super().time() + self.selector.skipped_s


@dataclass
class Asked:
    """The calls of a database that it does not answer."""

    is_silent: bool = False
    names: set[str] = field(default_factory=set)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, name: str) -> None:
        """It is asked something."""
        self.names.add(name)
        self.news.set()

    async def until(self, *names: str) -> None:
        """Wait until it was asked all that."""
        async with asyncio.timeout(60):
            while not self.names.issuperset(names):
                await self.news.wait()
                self.news.clear()


class Silent:
    """A database, or a store of it, that from a moment on never answers.

    Args:
        target: What answers before.
        asked: Has the moment, and what it was asked since.
    """

    def __init__(self, target: Any, asked: Asked) -> None:
        self._target, self._asked = target, asked

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if not inspect.iscoroutinefunction(attribute):
            return attribute if callable(attribute) else Silent(attribute, self._asked)

        async def answer(*args: Any, **options: Any) -> Any:
            if self._asked.is_silent:
                self._asked.hear(name)
                await asyncio.Event().wait()
            return await attribute(*args, **options)

        return answer


async def cannot_be_cut_off(until: asyncio.Event) -> None:
    """Work, as a tool may do it, that takes no notice of its end."""
    while not until.is_set():
        with suppress(asyncio.CancelledError):
            await until.wait()


async def ask(session: aiohttp.ClientSession, port: str, path: str) -> None:
    """Ask what is not answered before the end."""
    with suppress(aiohttp.ClientError):
        await session.get(f"http://127.0.0.1:{port}/{path}")


async def stop_while_all_hangs(loop: SkippingLoop, transport: Transport) -> float:
    """Start a bot, let everything hang, and stop it; return how many seconds the stop waited."""
    ports = {"COUNTERSIGN_PORT": str(free_port()), "COUNTERSIGN_METRICS_PORT": str(free_port())}
    sandbox = a_sandbox()
    settings = Stage(sandbox=sandbox, transport=transport, environ=ports).settings
    asked, stack = Asked(), AsyncExitStack()
    storage: Any = Silent(SqliteStores(None), asked)
    async with aiohttp.ClientSession() as session, AsyncExitStack() as around:
        await around.enter_async_context(sandbox)
        bot = await start(settings(), stack, outside=replace(brisk(), storage=storage))
        await bot.tasks.idle()
        asked.is_silent = True
        sandbox.faults.add("hang", delay=3_600)
        bot.tasks.spawn(cannot_be_cut_off(loop.is_over))
        around.callback(loop.is_over.set)
        bot.tasks.spawn(bot.approvals.attendance.catch_up())
        asking = [
            asyncio.create_task(ask(session, port, path))
            for port, path in zip(ports.values(), ("readyz", "metrics"), strict=True)
        ]
        await asked.until("ping", "find", "count")
        loop.selector.is_skipping = True
        await stack.aclose()
        took_s = loop.selector.skipped_s
        assert "close" in asked.names
        for task in asking:
            task.cancel()
    return took_s


@pytest.mark.parametrize("transport", ["socket", "http"])
def test_a_bot_stops_in_time_whatever_hangs(transport: Transport) -> None:
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, SkippingLoop)
        took_s = runner.run(stop_while_all_hangs(loop, transport))
    assert STOP_PATIENCE.total_seconds() < took_s <= STEPS_S


def test_all_steps_of_the_stop_together_take_less_than_is_promised() -> None:
    assert STEPS_S < STOP_S < PROMISED_S


def test_a_process_ends_though_a_thread_in_it_never_does() -> None:
    program = (
        "import threading; from bot.commands.call import end_in_time; end_in_time(0.01); "
        "threading.Thread(target=threading.Event().wait).start()"
    )
    ended = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program], capture_output=True, timeout=60, check=False
    )
    assert ended.returncode == CUT_OFF
    assert b"shutdown timed out" in ended.stderr
