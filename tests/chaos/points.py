"""Fault points: before and after each write to the database, each call of Slack, each effect.

Nothing in the product knows of them: they are in proxies around what the bot reaches outside.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NoReturn

from aiohttp import ClientSession
from slack_sdk.web.async_client import AsyncWebClient

from bot.observability.events import TellEvent, nobody
from bot.slack.connect import Slack
from tests.support.decided import change_of

READS = frozenset(
    {
        "due",
        "find",
        "get",
        "load",
        "new",
        "of_thread",
        "places",
    }
    | {"current", "named", "resting", "left", "heads", "open_links", "page", "unsealed"}
    | {"any_of", "epoch", "is_copy", "on_record", "parked", "unfinished"}
    | {"endpoint", "endpoints_of", "all_endpoints"}
)
"""A process that dies there has done nothing since the point before."""
STORES = (
    "threads",
    "inbox",
    "log",
    "checkpoints",
    "approvals",
    "posts",
    "ephemeral_messages",
    "delegations",
    "people",
    "grants",
    "audit",
    "trail",
    "retention",
    "restoring",
    "switches",
    "webhooks",
)


FAULT = "sqlite raises"
"""The point at which a statement of the embedded database ends with an exception."""


DEADLY = (signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, None)
"""Ways in which code ends a process without an exception; None is `os._exit`."""
RAISED: tuple[type[BaseException], ...] = (
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    MemoryError,
)
"""Exceptions of tools that would end a process, or may."""


@dataclass
class Plan:
    """When this process dies.

    Attributes:
        point: At which point; empty for none.
        number: The how-many-th time that the point is reached.
        chance: How likely it dies at any other point.
        seed: Makes the chance fall the same way each time.
        seen: A file to which each point is written when it is reached the first time.
        said: A file to which each private answer is written before it is sent.
        faults: How likely each statement of the embedded database ends with an exception.
        raising: How likely the tool of a call raises what would end a process.
        raising_seed: Of that, the same for all processes.
        failed: A file to which each call that does is written.
        died: A file to which the point is written at which the process dies, with its number.
        look_s: Seconds between looks for due work, beside those of the scheduler; 0 for none.
    """

    point: str = ""
    number: int = 1
    chance: float = 0.0
    seed: int = 0
    seen: Path | None = None
    said: Path | None = None
    faults: float = 0.0
    raising: float = 0.0
    raising_seed: int = 0
    failed: Path | None = None
    died: Path | None = None
    look_s: float = 0.0
    reached: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)  # noqa: S311 - not for secrets

    def says(self, call: Mapping[str, Any]) -> None:
        """Note what a person is told privately, whatever becomes of it in Slack, and of us."""
        if self.said is not None:
            about = {name: str(call.get(name)) for name in ("user", "channel", "text")}
            with self.said.open("a") as file:
                file.write(json.dumps({**about, "at_ms": time.time_ns() // 1_000_000}) + "\n")

    def at(self, name: str) -> None:
        """Reach a point; does not return when the process dies there."""
        self.reached[name] += 1
        if self.reached[name] == 1 and self.seen is not None:
            with self.seen.open("a") as file:
                file.write(f"{name}\n")
        is_planned = name == self.point and self.reached[name] == self.number
        if is_planned or (self.chance and self._random.random() < self.chance):
            self.die(name)

    def die(self, name: str) -> NoReturn:
        """End this process at once, in one of the ways in which code does that."""
        if self.died is not None:
            with self.died.open("a") as file:
                file.write(f"{os.getpid()} {name}\n")
        way = self._random.choice(DEADLY)
        if way is not None:
            os.kill(os.getpid(), way)
        os._exit(7)

    def may_fail(self, ref: str, when: str) -> None:
        """Let a tool raise what would end a process, the same each time for one reference.

        Args:
            ref: Of the call.
            when: Before or after its effect.
        """
        random = Random(f"{self.raising_seed} {ref}")  # noqa: S311 - not for secrets
        if random.random() >= self.raising or random.choice(["<", ">"]) != when:
            return
        if self.failed is not None:
            with self.failed.open("a") as file:
                file.write(f"{ref} {when}\n")
        way = random.choice(RAISED)
        if way is MemoryError:
            bytearray(1 << 62)  # more than any machine has
        raise way


class Fragile:
    """A store, or a database with its stores, with a point before and after each write."""

    def __init__(self, target: Any, plan: Plan, name: str = "") -> None:
        self._target = target
        self._plan = plan
        self._name = name

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if not self._name:
            return Fragile(attribute, self._plan, name) if name in STORES else attribute
        if name in READS or name.startswith("count") or not inspect.iscoroutinefunction(attribute):
            return attribute
        plan = self._plan

        async def write(*args: Any, **kwargs: Any) -> Any:
            point = f"{self._name}.{change_of(*args, **kwargs) if name == 'replace' else name}"
            plan.at(f"{point} <")
            result = await attribute(*args, **kwargs)
            plan.at(f"{point} >")
            return result

        return write


class FragileClient(AsyncWebClient):
    """A client of Slack with a point before and after each call that changes something."""

    plan: Plan

    async def api_call(self, api_method: str, **options: Any) -> Any:
        """Call Slack; see `AsyncWebClient`."""
        if ".info" in api_method or ".members" in api_method or "list" in api_method:
            return await super().api_call(api_method, **options)
        if api_method == "chat.postEphemeral":
            self.plan.says(options.get("json") or options.get("params") or {})
        self.plan.at(f"{api_method} <")
        answer = await super().api_call(api_method, **options)
        self.plan.at(f"{api_method} >")
        return answer


class FragileSlack(Slack):
    """Makes such clients."""

    __slots__ = ("plan",)

    @classmethod
    def around(cls, slack: Slack, plan: Plan) -> FragileSlack:
        """Break what was whole."""
        made = cls(
            token=slack.token,
            signing_secret=slack.signing_secret,
            api_url=slack.api_url,
            identity=slack.identity,
        )
        object.__setattr__(made, "plan", plan)
        return made

    def client(
        self,
        *,
        timeout_s: int,
        tell: TellEvent = nobody,
        session: ClientSession | None = None,
    ) -> AsyncWebClient:
        """See `Slack.client`."""
        whole = Slack.client(self, timeout_s=timeout_s, session=session)
        made = FragileClient(
            token=self.token,
            base_url=self.api_url,
            timeout=timeout_s,
            retry_handlers=whole.retry_handlers,
        )
        made.plan = self.plan  # type: ignore[attr-defined]
        return made
