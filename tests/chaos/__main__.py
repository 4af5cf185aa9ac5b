"""The long form: python -m tests.chaos --seeds 20 --threads 200 [--database sqlite|mongo]

Prints one line for each run, and what was wrong; ends with code 1 when anything was.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pymongo import monitoring

from bot.stores import Stores
from tests.chaos.council import Council
from tests.chaos.play import Play, Report, Setting
from tests.chaos.programs import AskingPrograms
from tests.support.mongo import DRIVERS, MongoServer, spawn_mongo_server
from tests.support.mongo_listener import LISTENER
from tests.support.stores import MongoStores, SqliteStores

COMMON = (
    "approvals.insert <",
    "approvals.insert >",
    "approvals.claim >",
    "approvals.vote <",
    "approvals.vote >",
    "approvals.take_step >",
    "approvals.mark_beside <",
    "approvals.decide >",
    "approvals.mark_card >",
    "approvals.release <",
    "approvals.close <",
    "audit.append <",
    "chat.postMessage <",
    "chat.postMessage >",
    "chat.update <",
    "chat.update >",
    "checkpoints.amend <",
    "checkpoints.amend >",
    "checkpoints.append <",
    "checkpoints.append >",
    "checkpoints.claim >",
    "checkpoints.close >",
    "checkpoints.save <",
    "checkpoints.save >",
    "inbox.add >",
    "inbox.take >",
    "log.append >",
    "posts.add >",
    "posts.finish <",
    "switches.replace <",
    "switches.replace >",
    "threads.claim >",
    "threads.release <",
    "threads.set_turn >",
    "threads.wake <",
    "threads.wake >",
    "tool charge <",
    "tool charge >",
    "tool pay <",
    "tool pay >",
    "tool refund >",
    "tool restart >",
    "tool wire <",
    "tool wire >",
)
"""Where bots die when no list of points is there yet."""
VOTES = (
    "approvals.annotate <",
    "approvals.annotate >",
    "approvals.take_step <",
    "approvals.take_step >",
    "approvals.mark_beside <",
    "approvals.mark_beside >",
    "approvals.vote <",
    "approvals.vote >",
    "audit.append >",
    "chat.postMessage <",
    "chat.postMessage >",
    "chat.update >",
    "checkpoints.append >",
    "delegations.add >",
    "delegations.end >",
    "grants.add <",
    "grants.add >",
    "grants.end <",
    "grants.end >",
    "grants.mark_card <",
    "grants.mark_card >",
    "grants.use <",
    "grants.take >",
    "grants.use >",
    "threads.wake <",
    "tool fetch <",
    "tool fetch >",
    "trail.seal <",
    "trail.seal >",
)
"""Where they die first when people vote under a policy."""
PROGRAMS = (
    "approvals.close <",
    "approvals.close >",
    "approvals.decide >",
    "approvals.insert <",
    "approvals.insert >",
    "approvals.mark_card >",
    "approvals.release <",
    "approvals.replace <",
    "approvals.replace >",
    "approvals.vote >",
    "audit.append <",
    "chat.postMessage <",
    "chat.postMessage >",
    "chat.update >",
    "switches.replace <",
    "switches.replace >",
    "webhooks.keep <",
    "webhooks.keep >",
    "webhooks.put <",
    "webhooks.put >",
)
"""Where they die first when programs ask."""

CRASHING_EACH = 25
"""One job in so many ends its process each time it is tried."""


async def play(arguments: argparse.Namespace, seed: int, points: tuple[str, ...]) -> Report:
    """One run with its own database."""
    kind = AskingPrograms if arguments.programs else Council if arguments.votes else Play
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-")))
        make_storage, database, server = _database(arguments.database, directory, stack)
        setting = Setting(
            directory=directory,
            database=database,
            open_storage=make_storage,
            seed=seed,
            threads=arguments.threads,
            processes=1 if arguments.database == "sqlite" else arguments.processes,
            drivers=() if arguments.database == "sqlite" else arguments.drivers,
            server=server,
            points=points,
            kills=arguments.kills,
            trouble=not arguments.calm,
            freezes=arguments.freezes or arguments.programs,
            crashing=()
            if arguments.votes or arguments.programs
            else range(0, arguments.threads, CRASHING_EACH),
            raising=0.0 if arguments.votes else arguments.raising,
            faults=arguments.faults if arguments.database == "sqlite" else 0.0,
            # People need their time; of programs, hasty requests expire soon.
            expire_s=600 if arguments.programs else 40 + arguments.threads // 4,
            wishes=(60, 15, 20, 0) if arguments.programs else (60, 15, 20, 5),
        )
        playing = kind(setting)
        await playing.run()
        storage = make_storage()
        await storage.open()
        try:
            report = await playing.check(storage)
        finally:
            await storage.close()
        if playing.seen.exists():
            SEEN.update(playing.seen.read_text().splitlines())
        if report.wrong and arguments.keep:
            for log in sorted(directory.glob("*.log")):
                sys.stderr.write(f"--- {log.name}\n{log.read_text()[-3000:]}\n")
        return report


SEEN: Counter[str] = Counter()
"""All points that any bot has reached so far."""


def _database(
    kind: str, directory: Path, stack: ExitStack
) -> tuple[Callable[[], Stores], dict[str, str], MongoServer | None]:
    if kind == "sqlite":
        path = directory / "data"
        return lambda: SqliteStores(path), {"COUNTERSIGN_DATA_DIR": str(path)}, None
    server = spawn_mongo_server(directory / "mongo")
    stack.callback(server.stop)
    uri = server.uri_of("chaos")
    return lambda: MongoStores(uri, driver="pymongo"), {"MONGODB_URI": uri}, server


async def main() -> int:
    """Run all seeds."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--threads", type=int, default=40)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--database", choices=("sqlite", "mongo"), default="mongo")
    parser.add_argument(
        "--drivers", nargs="+", choices=DRIVERS, default=DRIVERS, help="the bots take turns"
    )
    parser.add_argument("--every-point", action="store_true", help="die at each known point once")
    parser.add_argument("--votes", action="store_true", help="people vote under a policy")
    parser.add_argument("--programs", action="store_true", help="programs ask, and die")
    parser.add_argument("--freezes", action="store_true", help="somebody freezes and lifts")
    parser.add_argument("--calm", action="store_true", help="Slack behaves")
    parser.add_argument(
        "--faults", type=float, default=0.002, help="chance of an exception, for each statement"
    )
    parser.add_argument(
        "--raising", type=float, default=0.1, help="chance of an exit, for each call of a tool"
    )
    parser.add_argument("--keep", action="store_true", help="show the logs of a bad run")
    arguments = parser.parse_args()
    wrong = 0
    print(
        "| seed | database | threads | seconds | deaths | approvals | votes | unrecorded | effects "
        "| by grant | overrides | in doubt | given up | wrong |"
    )
    print("|" + "---|" * 14, flush=True)
    monitoring.register(LISTENER)
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        known = PROGRAMS if arguments.programs else VOTES if arguments.votes else COMMON
        points = tuple(sorted(set(SEEN) | set(known)))
        if not arguments.every_point:
            points = points[seed % 4 :: 4]
        report = await play(arguments, seed, points)
        wrong += len(report.wrong)
        counts = ", ".join(f"{count} {name}" for name, count in sorted(report.approvals.items()))
        print(
            f"| {seed} | {arguments.database} | {arguments.threads} | {report.seconds:.0f} "
            f"| {report.deaths.total()} | {counts} | {report.votes} | {report.unrecorded.total()} "
            f"| {report.effects} | {report.by_grant} | {report.emergencies} | {report.doubts} "
            f"| {report.given_up} | {len(report.wrong)} |",
            flush=True,
        )
        if report.freezes:
            print(f"  {report.freezes} freezes were set and lifted", flush=True)
        if arguments.programs:
            print(f"  {dict(report.deaths)}; {report.webhooks} events arrived", flush=True)
        for text, count in report.unrecorded.items():
            print(f"  unrecorded: {count} times: {text}", flush=True)
        for line in report.wrong:
            print(f"  wrong: {line}", flush=True)
        for line in report.evidence:
            print(f"    {line}", flush=True)
        LISTENER.check()
    print(f"\nPoints reached: {len(SEEN)}: {', '.join(sorted(SEEN))}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
