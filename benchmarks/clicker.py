"""Who clicks, as a process of its own: `python -m benchmarks.clicker`.

Reads one JSON document from the standard input (where to click, how many people, the signed
requests, and whom to ask whether all is quiet), and writes when each click began and ended, in
seconds of the machine's monotonic clock.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import aiohttp


async def click_all(order: dict[str, Any]) -> list[tuple[float, float]]:
    """Send all requests over so many connections; one person waits after each until it is quiet."""
    clicks: list[tuple[float, float]] = []
    waiting = iter(order["requests"])
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def person() -> None:
            for body, headers in waiting:
                begin = time.monotonic()
                async with session.post(order["url"], data=body, headers=headers) as answer:
                    await answer.read()
                    assert answer.status == 200, await answer.text()
                clicks.append((begin, time.monotonic()))
                if order["people"] == 1:
                    await (await session.get(order["quiet_url"])).read()

        await asyncio.gather(*(person() for _ in range(order["people"])))
    return clicks


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(click_all(json.load(sys.stdin)))))
