"""What an attack on the door costs others: `/healthz` and a click meanwhile.

python benchmarks/bench_door.py [--quick]

The bot (HTTP mode, embedded database) is a process of its own, and so is Slack; whoever attacks and
whoever clicks are here. A click is signed, on a connection of its own, about a request that does
not exist: its signature and the database are looked at, and it is answered.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from statistics import median

import aiohttp

from benchmarks.bench_clicks import SECRET, click, free_port, signed, slack
from benchmarks.harness import table

QUICK = "--quick" in sys.argv
SECONDS = 0.5 if QUICK else 8.0
HALVES = 1_000
MESSAGES = 300 if QUICK else 1_500
HEAD = b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

Attack = Callable[[int], Awaitable[None]]


async def nobody(_: int) -> None:
    """No attack."""


async def half_heads(port: int) -> None:
    """Never finish a request; a second after a connection is closed, open another one."""
    await _halves(port, HEAD)


async def half_bodies(port: int) -> None:
    """The same, with a whole head."""
    await _halves(port, HEAD + b"Content-Length: 1000\r\n\r\n{")


async def _halves(port: int, said: bytes) -> None:
    async def hold_open() -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(said)
                    await reader.read()
                finally:
                    writer.close()
            await asyncio.sleep(0.3)

    await asyncio.gather(*(hold_open() for _ in range(HALVES)))


async def bombs(port: int) -> None:
    """Send small bodies that grow, four at a time."""
    bomb = gzip.compress(b'{"a":"' + b"x" * 940_000_000 + b'"}', 9)

    async def send_bombs(session: aiohttp.ClientSession) -> None:
        headers = {"Content-Encoding": "gzip", "X-Slack-Request-Timestamp": str(int(time.time()))}
        while True:
            with suppress(aiohttp.ClientError, OSError):
                url = f"http://127.0.0.1:{port}/slack/events"
                async with session.post(url, data=bomb, headers=headers) as answer:
                    await answer.read()
            await asyncio.sleep(0.05)

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(send_bombs(session) for _ in range(4)))


async def flood(port: int) -> None:
    """Write many signed messages in one thread, as fast as they are taken."""
    connector = aiohttp.TCPConnector(limit=64)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def send_message(number: int) -> None:
            event = {
                "type": "app_mention",
                "user": "U1",
                "text": "<@UBOT> hello",
                "ts": f"1700000001.{number:06d}",
                "thread_ts": "1700000000.000100",
                "channel": "C1",
            }
            body = {"type": "event_callback", "team_id": "T1", "event_id": f"Ev{number}"}
            raw, headers = _signed_json({**body, "event": event, "event_time": 1})
            url = f"http://127.0.0.1:{port}/slack/events"
            with suppress(aiohttp.ClientError, OSError):
                async with session.post(url, data=raw, headers=headers) as answer:
                    await answer.read()

        await asyncio.gather(*(send_message(number) for number in range(MESSAGES)))
    await asyncio.Event().wait()


def _signed_json(body: dict[str, object]) -> tuple[bytes, dict[str, str]]:
    raw, now = json.dumps(body).encode(), str(int(time.time()))
    base = b"v0:" + now.encode() + b":" + raw
    signature = "v0=" + hmac.new(SECRET.encode(), base, hashlib.sha256).hexdigest()
    return raw, {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": now,
        "X-Slack-Signature": signature,
    }


ATTACKS: Sequence[tuple[str, Attack]] = (
    ("nothing", nobody),
    (f"{HALVES:,} half-sent heads", half_heads),
    (f"{HALVES:,} half-sent bodies", half_bodies),
    ("four gzip bombs of 0.9 MB at a time", bombs),
    (f"{MESSAGES:,} messages of one person", flood),
)


@asynccontextmanager
async def a_bot() -> AsyncIterator[int]:
    """Start the bot as a process; its port."""
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        port = free_port()
        api = await slack(stack)
        environ = {
            **{name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}},
            "SLACK_BOT_TOKEN": "xoxb-1",
            "SLACK_SIGNING_SECRET": SECRET,
            "SLACK_API_URL": f"{api}/api/",
            "COUNTERSIGN_DATA_DIR": directory,
            "COUNTERSIGN_PORT": str(port),
            "COUNTERSIGN_APPROVERS": "U0ADA000001",
            "COUNTERSIGN_LOG": "error,text",
        }
        command = [sys.executable, "-m", "bot", "run"]
        child = await asyncio.to_thread(subprocess.Popen, command, env=environ)
        stack.callback(child.wait)
        stack.callback(child.terminate)
        for _ in range(600):
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            await asyncio.sleep(0.05)
        yield port


async def ask(port: int, *, is_click: bool) -> float:
    """Seconds until an answer, on a connection of its own."""
    begin = time.monotonic()
    async with aiohttp.ClientSession() as session:
        if is_click:
            body, headers = signed(click(f"apr_{'0' * 32}", "0" * 64, 1))
            url = f"http://127.0.0.1:{port}/slack/events"
            async with session.post(url, data=body, headers=headers) as answer:
                await answer.read()
        else:
            async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
                await answer.read()
        assert answer.status == 200
    return time.monotonic() - begin


async def play(name: str, attack: Attack) -> tuple[object, ...]:
    """One row."""
    async with a_bot() as port:
        attacking = asyncio.ensure_future(attack(port))
        await asyncio.sleep(0.3)
        health, clicks = [], []
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            health.append(await ask(port, is_click=False))
            clicks.append(await ask(port, is_click=True))
            await asyncio.sleep(0.02)
        attacking.cancel()
        await asyncio.gather(attacking, return_exceptions=True)
    return (
        name,
        len(clicks),
        *(_ms(x) for x in (median(health), max(health))),
        *(_ms(x) for x in (median(clicks), max(clicks))),
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"


async def main() -> None:
    """All rows."""
    rows = [await play(name, attack) for name, attack in ATTACKS]
    header = ("meanwhile", "asked", "/healthz p50", "slowest", "a click p50", "slowest")
    table("The door under attack", header, rows)


if __name__ == "__main__":
    asyncio.run(main())
