"""The bot's own turn: message, card, click, tool, text; and what of it reaches the database.

python benchmarks/bench_turn.py [--quick] [--count-only] [--list]

`--count-only` counts and times nothing. `--list` prints one approval's commands in order, each with
the method of the store that sent it, and who called that; beside a name of SQLite stand all calls
that ran then and may have sent it.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.harness import table
from tests.counting import Count, counting
from tests.mongo import MongoServer, spawn_mongo_server
from tests.turnstage import Kind, TurnStage, a_turn_stage, make_database

QUICK = "--quick" in sys.argv
COUNT_ONLY = "--count-only" in sys.argv
LIST = "--list" in sys.argv
NAMES: dict[Kind, str] = {
    "sqlite": "SQLite file",
    "memory": "SQLite in memory",
    "pymongo": "wire protocol, PyMongo",
    "motor": "wire protocol, motor",
}
OVER: Sequence[Kind] = ("sqlite", "pymongo", "motor")


@asynccontextmanager
async def a_bot(kind: Kind, server: MongoServer) -> AsyncIterator[TurnStage]:
    """A bot on a new database of some kind."""
    with tempfile.TemporaryDirectory() as directory:
        storage = make_database(kind, Path(directory), server)
        async with a_turn_stage(storage) as stage:
            yield stage


async def counted_turn(stage: TurnStage) -> Count:
    """The commands of one approval, in a bot that has had one before."""
    await stage.turn()
    with counting() as count:
        await stage.turn()
    return count


async def counts(server: MongoServer) -> None:
    """What one approval brings to the database."""
    rows = []
    for kind in OVER:
        async with a_bot(kind, server) as stage:
            count = await counted_turn(stage)
        rows.append((NAMES[kind], count.total, count.writes, f"{count.written:,} B"))
        if LIST:
            print(f"\n# {NAMES[kind]}: {count.total} commands, {count.writes} writes")
            print(*count.lines(), sep="\n")
            print(*(f"{number:4} {name}" for name, number in count.by_call().items()), sep="\n")
    head = ("database", "commands", "writes", "written")
    table("One approval in the bot: message, card, click, tool, text", head, rows)


async def main() -> None:
    """Run all of them."""
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        server = spawn_mongo_server(Path(directory))
        stack.callback(server.stop)
        await counts(server)


if __name__ == "__main__":
    asyncio.run(main())
