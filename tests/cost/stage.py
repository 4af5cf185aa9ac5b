"""The bot in its own form against a Slack that answers at once, in this process and without HTTP.

All is as the product joins it: Bolt's app and our listeners, the use cases, the audited
checkpoints, Slack's client. Only Slack's limits and our pauses are off. What
is played here can be counted (`tests.cost.counting`) and timed, turn by turn: message, card, click,
tool, text.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponsePart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from agents import ChatModelAgent, tool
from agents.models import AnsweringModel, call, say
from bot.clock import system_clock
from bot.ports.process import Clock
from bot.questions.record import Rules
from bot.slack.app import build
from bot.slack.bot import Countersign
from bot.slack.connect import Identity, Slack
from bot.slack.messages.texts import TEXT_EVENT
from bot.slack.process import Process
from bot.slack.ratelimit import Pacer
from bot.stores import Stores
from bot.threads.named_agents import Roster
from tests.cost.counting import told_by, watching
from tests.support.force import of_settings
from tests.support.mongo import MongoServer
from tests.support.stores import MongoStores, SqliteStores

Kind = Literal["sqlite", "memory", "motor", "pymongo"]
"""The databases: a file, the same in memory, and MongoDB's protocol with either driver."""

ROSA, ADA = "U0ROSA00001", "U0ADA000001"
CHANNEL = "C0OPS000001"
APPROVE, APPROVE_ALL, CHOOSE = (
    f"countersign:{name}" for name in ("approve", "approve_all", "batch")
)

Body = dict[str, Any]


@tool(gate="approval", title="Pay {amount}")
def pay(amount: int) -> str:
    """Pay.

    Args:
        amount: How much.
    """
    PAID.append(amount)
    return f"paid {amount}"


@tool(gate="approval", title="Pay {amount}", risk="high")
def pay_out(amount: int) -> str:
    """Pay, on a card of its own: calls of high risk share none.

    Args:
        amount: How much.
    """
    PAID.append(amount)
    return f"paid {amount}"


_ROUNDS = 50
"""How often people click in vain before the stage gives up."""
PAID: list[int] = []
"""What the tool has done in this process."""


def payer() -> Model:
    """A model that costs nothing: asked for N payments it makes N gated calls, then says so.

    Asked for more than one, it uses the tool whose calls have a card each, unless they are to be
    `together`.
    """

    def answer(messages: list[ModelMessage]) -> list[ModelResponsePart]:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        if any(isinstance(part, ToolReturnPart) for part in last.parts):
            return [say("Done: all is paid.")]
        said = [str(p.content) for p in last.parts if isinstance(p, UserPromptPart)]
        words = " ".join(said).split()
        count = next((int(word) for word in words if word.isdecimal()), 1)
        name = "pay" if count == 1 or "together" in words else "pay_out"
        return [call(name, {"amount": n}, id=f"c{n}") for n in range(1, count + 1)]

    return AnsweringModel(answer, name="payer")


class PromptSlack(Slack):
    """A Slack that takes everything at once.

    Attributes:
        cards: The newest blocks of each card, by its `ts`.
        texts: How many texts of the agent have ended.
        forms: The forms that were opened.
    """

    __slots__ = ("cards", "forms", "numbers", "texts")

    def __init__(self) -> None:
        identity = Identity(team_id="T1", bot_user_id="UBOT", bot_id="BBOT")
        super().__init__(
            token="xoxb-1", signing_secret="", api_url="https://slack.test/api/", identity=identity
        )
        made = {"cards": {}, "texts": [], "forms": [], "numbers": itertools.count(1)}
        for name, value in made.items():
            object.__setattr__(self, name, value)

    cards: dict[str, str]
    texts: list[str]
    forms: list[Body]
    numbers: Iterator[int]

    def client(self, **_: Any) -> AsyncWebClient:
        return _Client(self)

    def answer(self, method: str, arguments: Mapping[str, Any]) -> Body:
        """Do what a method of the Web API does, as far as the bot can tell."""
        match method:
            case "users.info":
                user = str(arguments["user"])
                return {"user": {"id": user, "team_id": "T1", "name": user, "profile": {}}}
            case "conversations.members":
                return {"members": [ROSA, ADA, "UBOT"]}
            case "conversations.info":
                return {"channel": {"id": CHANNEL, "name": "ops"}}
            case "views.open":
                self.forms.append(dict(arguments["view"]))
                return {"view": {"id": "V1", "hash": "1"}}
            case _:
                return self._changed(method, arguments)

    def _changed(self, method: str, arguments: Mapping[str, Any]) -> Body:
        """Post or change a message."""
        is_new = method not in {"chat.stopStream", "chat.update"}
        ts = f"1900000000.{next(self.numbers):06d}" if is_new else str(arguments["ts"])
        if method == "chat.stopStream" or _is_text(method, arguments):
            self.texts.append(str(arguments.get("markdown_text") or arguments.get("text", "")))
            return {"ts": ts, "channel": CHANNEL}
        blocks = json.dumps(arguments.get("blocks") or [])
        if APPROVE in blocks or f'"{CHOOSE}"' in blocks:
            self.cards[ts] = blocks
        elif ts in self.cards:
            del self.cards[ts]
        return {"ts": ts, "channel": CHANNEL}


def _is_text(method: str, arguments: Mapping[str, Any]) -> bool:
    """Whether it is the post of a text of the agent that was over at once."""
    metadata = arguments.get("metadata") or {}
    return method == "chat.postMessage" and metadata.get("event_type") == TEXT_EVENT


class _Client(AsyncWebClient):
    def __init__(self, slack: PromptSlack) -> None:
        super().__init__(token=slack.token, base_url=slack.api_url)
        self._slack = slack

    async def api_call(self, api_method: str, **options: Any) -> AsyncSlackResponse:
        arguments = {**(options.get("json") or {}), **(options.get("params") or {})}
        data = {"ok": True, **self._slack.answer(api_method, arguments)}
        return AsyncSlackResponse(
            client=self,
            http_verb="POST",
            api_url=api_method,
            req_args={},
            data=data,
            headers={},
            status_code=200,
        )


@dataclass
class TurnStage:
    """The bot, and people who write and click.

    Attributes:
        storage: The database; it notes who asks.
        slack: The Slack that answers at once.
        bot: The bot.
    """

    storage: Stores
    slack: PromptSlack
    bot: Countersign
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def settled(self) -> None:
        """Wait until no work of the bot is left."""
        await self.bot.tasks.idle()

    async def ask(self, count: int = 1, *, root: str = "", is_together: bool = False) -> str:
        """Somebody wants payments; the root of the thread is returned when its cards are there."""
        root = await self.write(count, root=root, is_together=is_together)
        await self.settled()
        return root

    async def write(self, count: int = 1, *, root: str = "", is_together: bool = False) -> str:
        """Somebody wants payments; returns as soon as the message is taken."""
        ts = f"{time.time_ns() // 1_000_000_000}.{next(self._numbers):06d}"
        event = {
            "type": "app_mention",
            "user": ROSA,
            "text": f"<@UBOT> pay {count}{' together' if is_together else ''}",
            "ts": ts,
            "channel": CHANNEL,
            "event_ts": ts,
        }
        if root:
            event["thread_ts"] = root
        body = {"type": "event_callback", "team_id": "T1", "event_id": f"E{ts}", "event": event}
        await self._send(body)
        return root or ts

    def buttons(self, action: str = APPROVE) -> list[tuple[str, Body]]:
        """All buttons that approve: the `ts` of their card, and what a click sends of them."""
        return [
            (ts, button)
            for ts, blocks in self.slack.cards.items()
            for button in _buttons(json.loads(blocks), action)
        ]

    async def approve_together(self) -> None:
        """Approve all that is on cards for several: with one click, or with a form of many."""
        for card in self.buttons(APPROVE_ALL):
            await self.click(*card)
        for card in self.buttons(CHOOSE) if not self.buttons(APPROVE_ALL) else []:
            await self.click(*card)
            await self._submit(self.slack.forms.pop())
        await self.settled()

    async def _submit(self, form: Body) -> None:
        """Submit a form with all that it lists ticked."""
        inputs = [block for block in form["blocks"] if block["type"] == "input"]
        values = {
            block["block_id"]: {
                block["element"]["action_id"]: {
                    "type": block["element"]["type"],
                    "selected_options": block["element"].get("options", []),
                    "selected_option": block["element"].get("initial_option"),
                    "value": None,
                }
            }
            for block in inputs
        }
        view = {**form, "id": "V1", "hash": "1", "team_id": "T1", "state": {"values": values}}
        person = {"id": ADA, "team_id": "T1"}
        await self._send(
            {"type": "view_submission", "team": {"id": "T1"}, "user": person, "view": view}
        )

    async def click(self, ts: str, button: Body) -> None:
        """Somebody approves; returns when the click is acknowledged."""
        await self._send(
            {
                "type": "block_actions",
                "team": {"id": "T1"},
                "user": {"id": ADA, "team_id": "T1"},
                "api_app_id": "A1",
                "token": "x",
                "trigger_id": "1.2.3",
                "container": {"type": "message", "channel_id": CHANNEL, "message_ts": ts},
                "channel": {"id": CHANNEL, "name": "ops"},
                "message": {"ts": ts, "text": "card"},
                "actions": [{**button, "action_ts": "1.1"}],
            }
        )

    async def approve_all(self) -> int:
        """Approve all that waits, at once; return the number of clicks.

        A machine that has too much to do takes a click in time or says that it did not; whoever is
        told so looks at the card, and tries again if it still has its buttons. What was written all
        the same is followed up by the next tick, as when a process dies.
        """
        clicks = 0
        for _ in range(_ROUNDS):
            if not (cards := self.buttons()):
                return clicks
            clicks += len(cards)
            await asyncio.gather(*(self.click(*card) for card in cards))
            await self.settled()
            if self.buttons():
                await self.bot.sweep.tick()
                await self.settled()
        raise TimeoutError(f"{len(self.buttons())} cards still have buttons")

    async def turn(self) -> None:
        """A message, its card, a click, the tool, and the text."""
        before = len(PAID), len(self.slack.texts)
        await self.ask()
        ((ts, button),) = self.buttons()
        await self.click(ts, button)
        await self.settled()
        assert (len(PAID), len(self.slack.texts)) == (before[0] + 1, before[1] + 1)

    async def _send(self, body: Body) -> None:
        answer = await self.bot.bolt.async_dispatch(AsyncBoltRequest(body=body, mode="socket_mode"))
        assert answer.status == 200, answer.body


def _buttons(block: object, action: str) -> Iterator[Body]:
    if isinstance(block, list):
        for part in block:
            yield from _buttons(part, action)
    elif isinstance(block, dict):
        if block.get("action_id") == action:
            yield block
        for part in block.values():
            yield from _buttons(part, action)


def make_database(kind: Kind, directory: Path, server: MongoServer | None = None) -> Stores:
    """A new database, not open yet.

    Args:
        kind: Which one.
        directory: Where files are kept.
        server: Of MongoDB's protocol, where one is needed.
    """
    if kind in {"sqlite", "memory"}:
        return SqliteStores(directory if kind == "sqlite" else None)
    assert server is not None
    driver: Literal["motor", "pymongo"] = "motor" if kind == "motor" else "pymongo"
    return MongoStores(
        server.uri, driver=driver, database=server.new_database(), timeout=timedelta(seconds=20)
    )


async def _at_once(_: float) -> None:
    """Instead of a pause, such as before the first status: who waits for all work counts none."""
    await asyncio.sleep(0)


@asynccontextmanager
async def a_turn_stage(
    storage: Stores,
    *,
    model: Callable[[], Model] = payer,
    sleep: Callable[[float], Awaitable[None]] = _at_once,
    clock: Clock = system_clock,
    pacer: Pacer | None = None,
) -> AsyncIterator[TurnStage]:
    """A bot on a database, which is opened and closed with the block."""
    async with AsyncExitStack() as stack:
        stack.enter_context(watching())
        stack.push_async_callback(storage.close)
        await storage.open()
        noted = told_by(storage)
        slack = PromptSlack()
        agent = ChatModelAgent(name="payer", model=model(), tools=[pay, pay_out])
        rules = Rules(
            approvers=("channel",),
            channels=(CHANNEL,),
            self_approval=False,
            remind_after=timedelta(minutes=15),
            expire_after=timedelta(hours=8),
        )
        bot = build(
            slack=slack,
            storage=noted,
            roster=Roster(agents={"*": agent}),
            rules=rules,
            process=Process(
                owner="bench", clock=clock, pacer=pacer or Pacer(limits={}), sleep=sleep
            ),
            policy=of_settings(APPROVERS="channel", CHANNELS=CHANNEL),
        )
        stack.push_async_callback(bot.tasks.drain, patience=timedelta(seconds=5))
        yield TurnStage(storage=noted, slack=slack, bot=bot)
