"""The whole bot against the stand-in for Slack, in one process: what scenarios play on."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar

from bot.config.manifest import manifest_text, read_manifest
from bot.config.settings import Settings
from bot.demo import POLICY
from bot.layout.action_ids import ActionId
from bot.main import start
from bot.slack.bot import Countersign
from bot.slack.calls import BATCH_EVENT
from bot.stores import Stores
from slack_sandbox.server import Sandbox
from slack_sandbox.workspace.surfaces import surfaces_of
from storage.errors import StorageError
from tests.support.fakes import FakeClock
from tests.support.pace import brisk, brisk_seconds
from tests.support.ports import free_port

Transport = Literal["socket", "http"]

BOT_TOKEN = "xoxb-stage-bot-token"
APP_TOKEN = "xapp-stage-app-token"
SECRET = "stage-signing-secret"
UNREACHABLE = {
    "COUNTERSIGN_MODEL": "demo",
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_SIGNING_SECRET": "s" * 32,
    "SLACK_API_URL": "http://127.0.0.1:9/",
}
"""Settings of a bot whose Slack is nowhere."""
APPROVE, REJECT, EDIT = "countersign:approve", "countersign:reject", "countersign:edit"
SURFACES = surfaces_of(read_manifest(manifest_text()))
"""Read once, because that takes a sixth of what a stage does until its bot has started."""


def stage_clock() -> FakeClock:
    """A clock that starts now: cards, messages and signatures must agree about the time."""
    return FakeClock(now_ms=time.time_ns() // 1_000_000)


PATIENCE_S = 60.0
"""So long something may take where the machine has other things to do, too."""
STEP_S = 5.0
"""Seconds by which the bot's clock goes on where the awaited change does not come."""
PAUSE_S = 1.0
"""Seconds that a change has before the bot's clock goes on."""
T = TypeVar("T")


@dataclass
class Stage:
    """A sandbox and a bot that can be stopped and started again.

    Attributes:
        sandbox: The stand-in for Slack.
        transport: How Slack's payloads reach the bot.
        environ: What the bot is started with, beside the tokens.
        clock: The bot's time.
        room: Name of the channel where people write.
        patience: Longest time that the bot takes for a click. The product's 2.5 seconds are too
            short for a hundred clicks at once on a busy machine.
    """

    sandbox: Sandbox
    transport: Transport
    environ: Mapping[str, str]
    clock: FakeClock = field(default_factory=stage_clock)
    bot: Countersign | None = None
    room: str = "ops"
    patience: timedelta = timedelta(seconds=PATIENCE_S)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    def settings(self) -> Settings:
        transport = (
            {"SLACK_APP_TOKEN": APP_TOKEN}
            if self.transport == "socket"
            else {"SLACK_SIGNING_SECRET": SECRET}
        )
        deciders = {
            "COUNTERSIGN_APPROVERS": "channel",
            "COUNTERSIGN_CHANNELS": ",".join(self.sandbox.channel_ids),
        }
        return Settings.load(
            {
                "SLACK_BOT_TOKEN": BOT_TOKEN,
                "SLACK_API_URL": self.sandbox.api_url,
                **transport,
                **({} if "COUNTERSIGN_POLICY" in self.environ else deciders),
                **self.environ,
            }
        )

    async def start_bot(self, **changes: str) -> Countersign:
        self.environ = {**self.environ, **changes}
        self._stack = AsyncExitStack()
        try:
            self.bot = await start(
                self.settings(),
                self._stack,
                clock=self.clock,
                outside=replace(brisk(), patience=self.patience),
                is_demo=self.environ.get("COUNTERSIGN_POLICY") == str(POLICY),
            )
        except BaseException:
            await self._stack.aclose()
            raise
        return self.bot

    async def stop_bot(self) -> None:
        await self._stack.aclose()
        self.bot = None

    async def restart_bot(self, **changes: str) -> None:
        await self.stop_bot()
        await self.start_bot(**changes)

    @property
    def storage(self) -> Stores:
        """What the bot stores; it runs."""
        assert self.bot is not None
        return self.bot.storage

    def thread_id(self, root: str = "") -> str:
        """The id of a thread by the `ts` of its root, by default of the first one."""
        ts = root or self.messages()[0]["ts"]
        return f"{self.sandbox.workspace.team_id}:{self.channel}:{ts}"

    async def say(self, user: str, text: str, *, thread_ts: str | None = None) -> str:
        channel = self.channel
        return await self.sandbox.say(self.user(user), channel, text, thread_ts=thread_ts)

    async def asked(self, text: str, **card: Any) -> dict[str, Any]:
        """Let Rosa say something, and wait for a card, as `card` does."""
        await self.say("Rosa", text)
        return await self.card(**card)

    @property
    def channel(self) -> str:
        return self.sandbox.channel_id(self.room)

    def user(self, name: str) -> str:
        """The id of a person, by name or by id."""
        is_id = name in self.sandbox.workspace.people
        return name if is_id else self.sandbox.user_id(name)

    def messages(self) -> list[dict[str, Any]]:
        return self.sandbox.messages(self.channel)

    def cards(self) -> list[dict[str, Any]]:
        """Messages that are, or were, cards: they carry our metadata."""
        return [
            m
            for m in self.messages()
            if (m.get("metadata") or {}).get("event_type") in {"countersign_card", BATCH_EVENT}
        ]

    def texts(self) -> list[str]:
        """What the bot said, beside cards."""
        cards = {card["ts"] for card in self.cards()}
        return [m["text"] for m in self.messages() if m.get("bot_id") and m["ts"] not in cards]

    async def until(self, predicate: Callable[[], T], *, within: float = PATIENCE_S) -> T:
        """Wait until something is true, and return it. The bot's clock stands still.

        Raises:
            TimeoutError: It did not become true.
        """
        return await self.sandbox.until(predicate, timeout=within)

    async def until_retried(self, predicate: Callable[[], T], *, within: float = PATIENCE_S) -> T:
        """Wait until something is true, where the bot may have to try again, and return it.

        On a busy machine the bot may miss a limit of its own, for example for a call of Slack, and
        tries again some seconds later by its clock. So that clock goes on where nothing else
        happens.

        Raises:
            TimeoutError: It did not become true.
        """
        for _ in range(int(within // PAUSE_S)):
            with suppress(TimeoutError):
                return await self.sandbox.until(predicate, timeout=PAUSE_S)
            if self.bot is not None:
                self.clock.forward(seconds=STEP_S)
                with suppress(StorageError):
                    await self.tick()
        return await self.sandbox.until(predicate, timeout=within % PAUSE_S)

    async def card(
        self, *, number: int = 1, word: str = "", within: float = PATIENCE_S
    ) -> dict[str, Any]:
        """Wait, for some seconds, for the n-th card (with a word in it)."""
        await self.until(
            lambda: len(self.cards()) >= number and word in str(self.cards()[number - 1]),
            within=within,
        )
        return self.cards()[number - 1]

    async def said(self, pattern: str, *, within: float = PATIENCE_S) -> str:
        """Wait for a text of the bot, for some seconds."""

        def matching() -> list[str]:
            return [text for text in self.texts() if re.search(pattern, text)]

        await self.until(lambda: bool(matching()), within=within)
        return matching()[-1]

    async def whispered(self, user: str, pattern: str) -> str:
        """Wait for a private answer."""

        def matching() -> list[str]:
            texts = [m["text"] for m in self.sandbox.ephemerals(self.user(user))]
            return [text for text in texts if re.search(pattern, text)]

        await self.until(lambda: bool(matching()))
        return matching()[-1]

    async def answered(self, user: str, doing: Awaitable[object]) -> dict[str, Any]:
        """Do something, wait for the private answer of a person, and return it."""
        shown, user_id = self.sandbox.ephemerals, self.user(user)
        before = len(shown(user_id))
        await doing
        await self.until(lambda: len(shown(user_id)) > before)
        answer: dict[str, Any] = shown(user_id)[-1]
        return answer

    async def command(self, user: str, text: str) -> None:
        """Type a command of the bot in the channel."""
        await self.sandbox.command(self.user(user), self.channel, "/countersign", text)

    async def choose(self, user: str, card: dict[str, Any], action_id: str) -> None:
        """Choose what a card's menu has."""
        place = self.user(user), card.get("channel", self.channel), card["ts"]
        menu, value = option_of(card, action_id)
        await self.sandbox.click(*place, menu, selected_option=value)

    async def click(self, user: str, card: dict[str, Any], action_id: str) -> None:
        place = self.user(user), card.get("channel", self.channel), card["ts"]
        await self.sandbox.click(*place, action_id)

    async def home(self, user: str, word: str = "") -> dict[str, Any]:
        """Open the Home of a person, and wait until it is there, with a word in it."""
        user_id = self.user(user)

        def shown() -> dict[str, Any] | None:
            view = self.sandbox.home(user_id)
            return view if view is not None and word in str(view) else None

        self.sandbox.open_home(user_id)
        view = await self.until(shown)
        assert view is not None
        return view

    async def modal(self, user: str) -> dict[str, Any]:
        """Wait for the newest open modal of a person."""
        user_id = self.user(user)
        await self.until(lambda: bool(self.sandbox.open_views(user_id)))
        return self.sandbox.open_views(user_id)[-1]

    async def fill(self, user: str, **given: str) -> dict[str, Any]:
        """Submit the newest open modal of a person, see `values_of`; return the answer."""
        view = await self.modal(user)
        return await self.sandbox.submit(self.user(user), view, values_of(view, **given))

    async def tick(self) -> None:
        assert self.bot is not None
        await self.bot.sweep.tick()

    async def later(self, **forward: float) -> None:
        """Time passes, and the bot, which holds no lease any more, looks for due work."""
        await self.rest()
        self.clock.forward(**forward)
        await self.tick()

    async def rest(self) -> None:
        """Wait until the bot is at nothing, and so holds no lease."""
        assert self.bot is not None
        await self.bot.tasks.idle()


def buttons(message: dict[str, Any]) -> list[str]:
    """Action ids of everything in a message that can be pressed, but for what shows its details."""
    action_ids = re.findall(r"'action_id': '([^']+)'", str(message.get("blocks")))
    return [
        action_id
        for action_id in action_ids
        if action_id not in {ActionId.DETAILS, ActionId.BATCH_DETAILS}
    ]


def option_of(card: dict[str, Any], action_id: str) -> tuple[str, str]:
    """The action id of a card's menu, and the value of one of its options."""
    rows = [row.get("elements", ()) for row in card["blocks"] if row["type"] == "actions"]
    (menu,) = [element for row in rows for element in row if element["type"] == "overflow"]
    values = [str(option["value"]) for option in menu["options"]]
    (value,) = [value for value in values if value.startswith(f"{action_id}=")]
    return str(menu["action_id"]), value


def _as_opened(element: dict[str, Any]) -> dict[str, Any]:
    """The state of an input that nobody changed; of a choice without one, the last."""
    if element["type"] == "radio_buttons":
        return {"selected_option": element.get("initial_option", element["options"][-1])}
    for name, key in _INITIAL.items():
        if name in element:
            return {key: element[name]}
    return {"value": element.get("initial_value")}


_INITIAL = {
    "initial_option": "selected_option",
    "initial_options": "selected_options",
    "initial_date": "selected_date",
}


def values_of(view: dict[str, Any], **given: str) -> dict[str, Any]:
    """What a modal sends: what is filled in, with some inputs changed.

    Args:
        view: The modal.
        given: Texts by the beginning of a label, with `_` for blanks.
    """
    values: dict[str, Any] = {}
    for block in view["blocks"]:
        if block["type"] != "input":
            continue
        element = block["element"]
        label = block["label"]["text"]
        state = {"type": element["type"], **_as_opened(element)}
        for name, text in given.items():
            if label.lower().startswith(name.replace("_", " ")):
                state["value"] = text
        values[block["block_id"]] = {element["action_id"]: state}
    return values


def write_policy(folder: Path, text: str) -> str:
    """Write a policy file, and give its path."""
    path = folder / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def a_sandbox(**options: Any) -> Sandbox:
    """The stand-in for Slack, at our pace, which knows the bot; `options` change that."""
    known = {
        "clock": time.time,
        "pace": brisk_seconds,
        "signing_secret": SECRET,
        "bot_token": BOT_TOKEN,
        "app_token": APP_TOKEN,
    }
    return Sandbox(**{**known, **options})


@asynccontextmanager
async def a_bot(
    sandbox: Sandbox,
    data: Path,
    transport: Transport,
    patience: timedelta = timedelta(seconds=PATIENCE_S),
    /,
    **environ: str,
) -> AsyncIterator[Stage]:
    """A bot that was started against a sandbox, and ends with the block."""
    settings = {
        "COUNTERSIGN_DATA_DIR": str(data),
        "COUNTERSIGN_PORT": str(free_port()),
        **environ,
    }
    stage = Stage(sandbox=sandbox, transport=transport, environ=settings, patience=patience)
    if transport == "http":
        sandbox.events_url = f"http://127.0.0.1:{settings['COUNTERSIGN_PORT']}/slack/events"
    try:
        await stage.start_bot()
        yield stage
    finally:
        await stage.stop_bot()


@asynccontextmanager
async def a_stage(
    tmp_path: Path,
    transport: Transport,
    patience: timedelta = timedelta(seconds=PATIENCE_S),
    /,
    **environ: str,
) -> AsyncIterator[Stage]:
    """A started sandbox with a started bot; both end with the block."""
    async with (
        a_sandbox(ack_timeout=2 * PATIENCE_S, surfaces=SURFACES) as sandbox,
        a_bot(sandbox, tmp_path / "data", transport, patience, **environ) as stage,
    ):
        yield stage
