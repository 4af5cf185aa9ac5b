"""One invocation of the command line: its settings, and the findings that it prints."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import threading
import uuid
from collections.abc import Callable, Coroutine, MutableMapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from bot.config import stores
from bot.errors import SettingsError
from bot.redaction.rules import NO_RULES, MaskRules, RuleError, read_rules
from bot.stores import Stores
from storage.chain import Seal

logger = logging.getLogger(__name__)

STOP_S = 9.5
"""Longest time from the signal to stop to the end of the process, in seconds."""
CUT_OFF = 3
"""Exit code after a shutdown that exceeded its time limit."""

RunBot: TypeAlias = Callable[..., Coroutine[None, None, None]]
"""Runs the bot until a stop signal; see `bot.main.run`, which this module must not import."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One invocation of the program.

    Attributes:
        arguments: The parsed command line.
        environ: The environment.
        run_bot: Runs the bot; None for the real bot with its log.
        say: Prints a text to the terminal.
    """

    arguments: argparse.Namespace
    environ: MutableMapping[str, str]
    run_bot: RunBot | None
    say: Callable[[str], object]

    @property
    def data_dir(self) -> Path:
        """The data directory."""
        given = self.arguments.data_dir or self.environ.get("COUNTERSIGN_DATA_DIR", "").strip()
        return Path(given) if given else stores.DATA_DIR

    @property
    def uri(self) -> str:
        """Address of the shared database; empty for the embedded one."""
        return self.environ.get("MONGODB_URI", "").strip()

    @property
    def driver(self) -> str:
        """The MongoDB driver."""
        return self.environ.get("COUNTERSIGN_MONGO_DRIVER", "").strip() or "motor"

    @property
    def redact(self) -> MaskRules:
        """Return the operator's masks.

        Raises:
            SettingsError: A rule cannot be used.
        """
        text = self.environ.get("COUNTERSIGN_REDACT", "").strip()
        try:
            return read_rules(text) if text else NO_RULES
        except RuleError as error:
            raise SettingsError("COUNTERSIGN_REDACT", error.fault, error.remedy) from error

    @property
    def seal(self) -> Seal:
        """Return the seal of the audit.

        Raises:
            SettingsError: Its key cannot be used.
        """
        try:
            return stores.seal_of(self.environ.get("COUNTERSIGN_AUDIT_KEY", ""))
        except ValueError as error:
            fault = f"can't be used: {error}"
            raise SettingsError("COUNTERSIGN_AUDIT_KEY", fault, stores.KEY_REMEDY) from error

    def open_beside(self, *, read_only: bool = False) -> AbstractAsyncContextManager[Stores]:
        """Open the database, even while the bot runs; see `stores.open_beside`."""
        return stores.open_beside(
            self.data_dir, uri=self.uri, driver=self.driver, seal=self.seal, read_only=read_only
        )


def owner() -> str:
    """Return the owner name of this command in leases."""
    return f"command:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def stopped_by_signals(then: Callable[[], object] | None = None) -> asyncio.Event:
    """Return an event that SIGINT and SIGTERM set.

    Args:
        then: Called on the first signal.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def begin() -> None:
        if then is not None and not stop.is_set():
            then()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # some systems do not support signal handlers
            loop.add_signal_handler(number, begin)
    return stop


def end_in_time(
    within_s: float = STOP_S, *, leave: Callable[[int], object] = os._exit
) -> threading.Timer:
    """Exit this process after a time limit, even if something hangs.

    Each step of the shutdown has its own limit. This limit is for what no step can end: a tool in a
    thread, a disk that does not respond, a task that ignores cancellation. The interrupted work is
    stored.

    Args:
        within_s: Time limit in seconds.
        leave: Exits the process with an exit code.
    """

    def end() -> None:
        logger.error("shutdown timed out, exiting anyway", extra={"action": "stopping"})
        leave(CUT_OFF)

    timer = threading.Timer(within_s, end)
    timer.daemon = True
    timer.start()
    return timer


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding about one subject.

    Attributes:
        subject: The checked subject.
        text: The result.
        remedy: The remedy; empty without a fault.
    """

    subject: str
    text: str
    remedy: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether there is no fault."""
        return not self.remedy

    def __str__(self) -> str:
        if self.is_ok:
            return f"ok  {self.subject}: {self.text}"
        return f"!!  {self.subject}: {self.text} → {self.remedy}"
