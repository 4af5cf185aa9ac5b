"""A click on a card: to its acknowledgement with the decision recorded, and to the redrawn card.

python benchmarks/bench_clicks.py [--quick]

Next to it: aiohttp alone; a plain slack-bolt app whose listener only acknowledges; slack-bolt with
its own option `process_before_response` and the same work in the database (one read, the same
conditional write); and a bare handler that only makes that write. All of them are in this process;
who clicks, and Slack, are processes of their own, and Slack's limits are switched off. Each round
plays all five, one after the other; what is shown are medians of the rounds, of ratios too; of
processor time the least, and ratios of these. Whoever writes has a store of its own: what the
others decide there must not become work of the bot.

What follows a decision (the agent is woken, the card is drawn again) is done as in production: it
begins when the answer has left. One person clicks again when it is done, and processor time of one
person is that from the request to its answer. Many people do not wait: theirs have what follows in
them. The last column shows how long all of it takes.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import hmac
import json
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias
from urllib.parse import urlencode

import aiohttp
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult

from benchmarks.harness import percentile, table
from bot import main as main_module
from bot.config.settings import Settings
from bot.main import Outside, start
from bot.records.approval import Decision, Status, StoredCard
from bot.slack.bot import Countersign
from bot.slack.cards.card_for import card_for
from bot.slack.connect import reach_slack
from bot.slack.intake.http import web_app
from bot.slack.ratelimit import Pacer
from bot.stores import Stores
from bot.tasks import Tasks
from tests.contract.builders import a_thread, an_approval
from tests.support.decided import decide
from tests.support.stores import SqliteStores

SECRET = "0123456789abcdef0123456789abcdef"
QUICK = "--quick" in sys.argv
CLICKS = 30 if QUICK else 1_000
ROUNDS = 1 if QUICK else 3
PEOPLE = (1, 2) if QUICK else (1, 16, 64)
BASE, BOLT, BARE, OURS = "aiohttp alone", "plain Bolt, no write", "bare handler", "Countersign"
SAME = "Bolt process_before_response, same read and write"


Payload: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lap:
    """What one of them did in one round.

    Attributes:
        p50: Seconds to the acknowledgement.
        p99: The same, of the slowest.
        rate: Clicks per second.
        busy: Processor time per click, in seconds.
        drawn: From clicks to redrawn cards.
    """

    p50: float
    p99: float
    rate: float
    busy: float
    drawn: str


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def signed(payload: Payload) -> tuple[bytes, dict[str, str]]:
    """A request as Slack sends it."""
    body = urlencode({"payload": json.dumps(payload)}).encode()
    now = str(int(time.time()))
    base = b"v0:" + now.encode() + b":" + body
    signature = "v0=" + hmac.new(SECRET.encode(), base, hashlib.sha256).hexdigest()
    return body, {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Slack-Request-Timestamp": now,
        "X-Slack-Signature": signature,
    }


def click(approval_id: str, digest: str, number: int, *, card: object = None) -> Payload:
    """A click on Approve.

    Args:
        approval_id: Which approval.
        digest: What was shown.
        number: Who clicks.
        card: The blocks of the message; Slack sends them along.
    """
    user, ts = f"U{number % 16}", approval_id.removeprefix("apr_")  # see `fill`
    message: Payload = {"ts": ts, "text": "card"}
    if card is not None:
        message |= {"blocks": card, "type": "message", "user": "UBOT", "bot_id": "BBOT"}
    return {
        "type": "block_actions",
        "team": {"id": "T1"},
        "user": {"id": user, "team_id": "T1"},
        "api_app_id": "A1",
        "token": "x",
        "trigger_id": "1.2.3",
        "response_url": "https://127.0.0.1/never",
        "container": {"type": "message", "channel_id": "C1", "message_ts": ts},
        "channel": {"id": "C1", "name": "ops"},
        "message": message,
        "actions": [
            {
                "type": "button",
                "action_id": "countersign:approve",
                "block_id": "b",
                "value": f"{approval_id}.{digest[:32]}",
                "action_ts": "1.1",
            }
        ],
    }


async def fill(storage: Stores, count: int) -> list[tuple[str, str]]:
    """Make pending approvals whose cards are posted; ids and digests."""
    made = []
    now = time.time_ns() // 1_000_000
    for _ in range(count):
        name = uuid.uuid4().hex
        thread = a_thread(thread_id=f"T1:C1:{name}", requester_id="UREQ")
        await storage.threads.ensure(thread)
        approval = an_approval(
            approval_id=f"apr_{name}",
            interrupt_id=name,
            thread_id=thread.thread_id,
            digest=hashlib.sha256(name.encode()).hexdigest(),
            requester_id="UREQ",
            approvers=("channel",),
            members={"C1": tuple(f"U{number}" for number in range(16))},
            created_ms=now,
            expires_ms=now + 10_000_000,
            due_ms=now + 9_000_000,
            card=StoredCard(revision=1),
        )
        await storage.approvals.insert(approval.with_card_ts(name))
        made.append((approval.approval_id, approval.digest))
    return made


@dataclass(slots=True)
class Measured:
    """What clicks took.

    Attributes:
        latencies: Seconds to each acknowledgement.
        begun: When each began.
        wall_s: Seconds in all; without the pauses.
        cpu_s: Processor time in all; without the pauses.
    """

    latencies: list[float] = field(default_factory=list)
    begun: list[float] = field(default_factory=list)
    wall_s: float = 0.0
    cpu_s: float = 0.0


BUSY: list[float] = []
"""Processor time of each request, until its answer has left."""


@web.middleware
async def timed(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Note the processor time of a request; nothing else runs meanwhile when one person clicks."""
    begin = time.process_time()
    response = await handler(request)
    await response.prepare(request)
    await response.write_eof()
    BUSY.append(time.process_time() - begin)
    return response


def timed_web_app(*given: Any, **options: Any) -> web.Application:
    """The bot's server, timed like the others."""
    app = web_app(*given, **options)
    app.middlewares.append(timed)
    return app


async def measure(
    url: str, requests: Sequence[tuple[bytes, dict[str, str]]], people: int, quiet_url: str
) -> Measured:
    """Let all requests be sent over so many connections; one person waits until it is quiet."""
    BUSY.clear()
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.clicker"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    sent = [(body.decode(), headers) for body, headers in requests]
    order = {"url": url, "quiet_url": quiet_url, "people": people, "requests": sent}
    text = json.dumps(order).encode()
    busy = time.process_time()
    output, _ = await child.communicate(text)
    busy = time.process_time() - busy
    assert child.returncode == 0
    clicks = json.loads(output)
    latencies = [end - begin for begin, end in clicks]
    wall_s = max(end for _, end in clicks) - min(begin for begin, _ in clicks)
    return Measured(
        latencies=latencies,
        begun=[begin for begin, _ in clicks],
        wall_s=wall_s if people > 1 else sum(latencies),
        cpu_s=busy if people > 1 else sum(BUSY),
    )


async def quiet(tasks: Tasks, stack: AsyncExitStack) -> str:
    """Serve what answers when nothing runs any more; its address."""

    async def handle(_: web.Request) -> web.Response:
        await tasks.idle()
        return web.Response()

    return await listen(handle, stack)


async def alone(stack: AsyncExitStack) -> str:
    """What aiohttp itself takes."""

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        return web.Response()

    return await listen(handle, stack)


async def plain_bolt(stack: AsyncExitStack) -> str:
    """Bolt as its documentation shows it: a listener that only acknowledges."""

    async def authorize(**_: object) -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=None, team_id="T1", bot_token="xoxb-1")

    app = AsyncApp(signing_secret=SECRET, authorize=authorize)

    @app.action("countersign:approve")
    async def on_click(ack: Callable[[], Awaitable[None]]) -> None:
        await ack()

    async def handle(request: web.Request) -> web.Response:
        answer = await app.async_dispatch(await to_bolt_request(request))
        return await to_aiohttp_response(answer)

    return await listen(handle, stack)


async def same_work(storage: Stores, stack: AsyncExitStack) -> str:
    """Bolt with its own option for a fast answer, with the read and the write that we make, too."""

    async def authorize(**_: object) -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=None, team_id="T1", bot_token="xoxb-1")

    app = AsyncApp(signing_secret=SECRET, authorize=authorize, process_before_response=True)

    @app.action("countersign:approve")
    async def on_click(ack: Callable[[], Awaitable[None]], body: dict[str, Any]) -> None:
        approval_id, _, _ = body["actions"][0]["value"].partition(".")
        approval = await storage.approvals.get(approval_id)
        now = time.time_ns() // 1_000_000
        decision = Decision(status=Status.APPROVED, by=body["user"]["id"], at_ms=now)
        await decide(storage.approvals, approval_id, decision, digest=approval.digest)
        await ack()

    async def handle(request: web.Request) -> web.Response:
        answer = await app.async_dispatch(await to_bolt_request(request))
        return await to_aiohttp_response(answer)

    return await listen(handle, stack)


async def own_store(stack: AsyncExitStack) -> Stores:
    """A file of its own for somebody who is compared with the bot."""
    directory = stack.enter_context(tempfile.TemporaryDirectory())
    storage = SqliteStores(Path(directory))
    await storage.open()
    stack.push_async_callback(storage.close)
    return storage


async def bare(storage: Stores, stack: AsyncExitStack) -> str:
    """A handler that checks the signature and makes the one conditional write."""

    async def handle(request: web.Request) -> web.Response:
        body = await request.read()
        base = b"v0:" + request.headers["X-Slack-Request-Timestamp"].encode() + b":" + body
        expected = "v0=" + hmac.new(SECRET.encode(), base, hashlib.sha256).hexdigest()
        assert hmac.compare_digest(expected, request.headers["X-Slack-Signature"])
        payload = json.loads((await request.post())["payload"])  # type: ignore[arg-type]
        approval_id, _, _ = payload["actions"][0]["value"].partition(".")
        now = time.time_ns() // 1_000_000
        decision = Decision(status=Status.APPROVED, by=payload["user"]["id"], at_ms=now)
        digest = hashlib.sha256(approval_id.removeprefix("apr_").encode()).hexdigest()
        await decide(storage.approvals, approval_id, decision, digest=digest)
        return web.Response()

    return await listen(handle, stack)


async def listen(
    handle: Callable[[web.Request], Awaitable[web.Response]], stack: AsyncExitStack
) -> str:
    """Serve a handler; its address."""
    app = web.Application(middlewares=[timed])
    app.router.add_route("*", "/slack/events", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    return f"http://127.0.0.1:{port}/slack/events"


async def slack(stack: AsyncExitStack) -> str:
    """Start the Slack that only says ok."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.stub_slack", str(port)]
    child = await asyncio.to_thread(subprocess.Popen, command)
    stack.callback(child.wait)
    stack.callback(child.terminate)
    async with aiohttp.ClientSession() as session:
        for _ in range(200):
            try:
                await (await session.get(f"http://127.0.0.1:{port}/updates")).read()
                break
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)
    return f"http://127.0.0.1:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """All that answer clicks.

    Attributes:
        bot: Ours.
        stores: The store of each that writes, by name.
        urls: Where each listens, by name.
        api: The address of Slack.
        quiet_url: Answers when nothing runs any more.
    """

    bot: Countersign
    stores: Mapping[str, Stores]
    urls: Mapping[str, str]
    api: str
    quiet_url: str

    async def play(self, people: int, card: object) -> list[tuple[object, ...]]:
        """One row for each of them."""
        laps: dict[str, list[Lap]] = {name: [] for name in self.urls}
        for _ in range(ROUNDS):
            for name in self.urls:
                laps[name].append(await self._lap(name, people, card))
        rows: list[tuple[object, ...]] = []
        for name, own_laps in laps.items():
            of_bolt = median(a.p50 / b.p50 for a, b in zip(own_laps, laps[BOLT], strict=True))
            of_same = median(a.rate / b.rate for a, b in zip(own_laps, laps[SAME], strict=True))
            busy = min(lap.busy for lap in own_laps)
            busy_of_same = busy / min(lap.busy for lap in laps[SAME])
            of_bare = median(a.rate / b.rate for a, b in zip(own_laps, laps[BARE], strict=True))
            rows.append(
                (
                    people,
                    name,
                    f"{median(lap.p50 for lap in own_laps) * 1e3:.2f} ms",
                    f"{median(lap.p99 for lap in own_laps) * 1e3:.2f} ms",
                    f"{median(lap.rate for lap in own_laps):.0f}/s",
                    f"{busy * 1e3:.2f} ms",
                    f"{of_bolt:.2f}",
                    f"{of_same:.2f}",
                    f"{busy_of_same:.2f}",
                    f"{of_bare:.2f}",
                    own_laps[-1].drawn,
                )
            )
        return rows

    async def _lap(self, name: str, people: int, card: object) -> Lap:
        clicks = CLICKS if people > 1 else CLICKS // 3
        cards = [(f"apr_{'0' * 32}", "0" * 64)] * clicks
        if name in self.stores:
            cards = await fill(self.stores[name], clicks)
        requests = [
            signed(click(*approval, number, card=card)) for number, approval in enumerate(cards)
        ]
        gc.collect()
        measured = await measure(self.urls[name], requests, people, self.quiet_url)
        drawn = await self._redrawn(cards, measured.begun) if name == OURS else ""
        return Lap(
            p50=percentile(measured.latencies, 0.5),
            p99=percentile(measured.latencies, 0.99),
            rate=clicks / measured.wall_s,
            busy=measured.cpu_s / clicks,
            drawn=drawn,
        )

    async def _redrawn(self, cards: Sequence[tuple[str, str]], begun: Sequence[float]) -> str:
        """From clicks to redrawn cards; the n-th redraw is set against the n-th click."""
        await self.bot.tasks.idle()
        for approval_id, _ in cards:
            assert (await self.stores[OURS].approvals.get(approval_id)).status is Status.APPROVED
        async with aiohttp.ClientSession() as session:
            times = json.loads(await (await session.get(f"{self.api}/updates")).text())
        drawn = sorted(times[card[0].removeprefix("apr_")] for card in cards)
        took = [end - begin for begin, end in zip(sorted(begun), drawn, strict=True)]
        return f"{percentile(took, 0.5):.1f} / {percentile(took, 0.99):.1f} s"


async def compare(name: str, environ: dict[str, str], stack: AsyncExitStack, api: str) -> None:
    """Measure all of them, each with a store of this kind."""
    port = free_port()
    settings = Settings.load(
        {
            "SLACK_BOT_TOKEN": "xoxb-1",
            "SLACK_SIGNING_SECRET": SECRET,
            "SLACK_API_URL": f"{api}/api/",
            "COUNTERSIGN_APPROVERS": "channel",
            "COUNTERSIGN_CHANNELS": "C0BENCHMARK",
            "COUNTERSIGN_PORT": str(port),
            "COUNTERSIGN_LOG": "error",
            **environ,
        }
    )
    storage = settings.make_storage()
    outside = Outside(storage=storage, slack=await reach_slack(settings), pacer=Pacer(limits={}))
    stores = {BARE: await own_store(stack), SAME: await own_store(stack), OURS: storage}
    setattr(main_module, "web_app", timed_web_app)  # noqa: B010 - its own name for it
    bot = await start(settings, stack, outside=outside)
    contest = Contest(
        bot=bot,
        stores=stores,
        urls={
            BASE: await alone(stack),
            BOLT: await plain_bolt(stack),
            SAME: await same_work(stores[SAME], stack),
            BARE: await bare(stores[BARE], stack),
            OURS: f"http://127.0.0.1:{port}/slack/events",
        },
        api=api,
        quiet_url=await quiet(bot.tasks, stack),
    )
    shown = an_approval().changed(approval_id=f"apr_{'0' * 32}", digest="0" * 64)
    blocks = card_for(shown, approvers_text="Members of this channel may decide.").blocks
    await contest.play(
        PEOPLE[0] if QUICK else 8, blocks
    )  # who the people are is looked up once a minute
    for what, card, crowds in (("with its card", blocks, PEOPLE), ("bare", None, PEOPLE[::2])):
        size = len(signed(click(shown.approval_id, shown.digest, 1, card=card))[0])
        rows = [row for people in crowds for row in await contest.play(people, card)]
        head = ("people", "", "ack p50", "p99", "clicks", "CPU", "p50 : plain Bolt")
        against = ("rate : Bolt with same work", "CPU : the same", "rate : bare")
        title = f"A click of {size:,} bytes ({what}), its decision recorded in {name}"
        table(f"{title}; redrawn: p50 / p99", (*head, *against, "redrawn"), rows)


async def main() -> None:
    """Measure on SQLite. The stand-in for MongoDB is itself slower than all that is compared."""
    with tempfile.TemporaryDirectory() as directory:
        async with AsyncExitStack() as stack:
            api = await slack(stack)
            async with AsyncExitStack() as inner:
                environ = {"COUNTERSIGN_DATA_DIR": str(Path(directory) / "data")}
                await compare("a SQLite file", environ, inner, api)


if __name__ == "__main__":
    asyncio.run(main())
