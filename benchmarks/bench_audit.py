"""Measures the audit's chain: what it costs who appends, and how long verifying takes.

    python -m benchmarks.bench_audit [--quick] [--entries 100000]

The cost is processor time, the least of several rounds, of 100 approvals at once as the bot writes
them (a request, a decision, a resume, a start, an end for each), on the embedded database: once as
it is, and once with entries that are inserted as before there was a chain.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from storage.audit import AuditEntry
from storage.chain import GENESIS, NO_KEY, Seal, Verdict, Verifier
from storage.ledger import COLUMNS, SEALED, row_of
from tests.contract.builders import an_approval
from tests.support.stores import SqliteStores

APPROVALS, ACTS, ROUNDS = 100, ("requested", "decided", "resumed", "started", "executed"), 5
KEY = b"k" * 32
THREAD_ID = "T1:C1:1800000000.000001"

Form = dict[str, object]


class Unchained(SqliteStores):
    """A database that inserts entries as they are: what remains is the cost of all else."""

    async def append(self, *entries: AuditEntry) -> None:
        """Keep entries as before there was a chain."""
        columns = ", ".join(COLUMNS)
        values = ", ".join(f":{name}" for name in COLUMNS)
        sql = f"INSERT INTO audit ({columns}) VALUES ({values})"
        rows = [{**dict.fromkeys(SEALED), **row_of(entry, NO_KEY)} for entry in entries]
        await self._database.fetch_together([(sql, row) for row in rows])


def chain(count: int, seal: Seal) -> list[Form]:
    """A chain of so many entries."""
    made: list[Form] = []
    prev = GENESIS
    for seq in range(1, count + 1):
        form: Form = {"v": 1, "team": "T1", "id": f"e{seq}", "at_ms": seq, "action": "decided"}
        form |= {"thread": THREAD_ID, "approval": f"apr_{seq:032}", "actor": "U1", "for": ""}
        form["detail"] = {"digest": "d" * 64, "status": "approved", "content_hash": "c" * 71}
        link = seal.sealed(form, seq=seq, prev=prev)
        prev = str(link["hash"])
        made.append(link)
    return made


def verified(links: Iterable[Form], seal: Seal) -> Verdict:
    """The verdict on a chain."""
    verifier = Verifier(seal)
    for link in links:
        verifier.add(link)
    return verifier.end()


def altered(links: Sequence[Form], at: int) -> list[Form]:
    """The chain with one byte altered."""
    changed = {**links[at], "actor": "U2"}
    return [*links[:at], changed, *links[at + 1 :]]


def removed(links: Sequence[Form], at: int) -> list[Form]:
    """The chain with one entry less."""
    return [*links[:at], *links[at + 1 :]]


def moved(links: Sequence[Form], at: int) -> list[Form]:
    """The chain with two neighbours that changed places and numbers."""
    first, second = links[at], links[at + 1]
    swapped = [{**second, "seq": first["seq"]}, {**first, "seq": second["seq"]}]
    return [*links[:at], *swapped, *links[at + 2 :]]


def measure_verify(count: int, say: Callable[[str], object]) -> None:
    """Time what verifying takes, and see that it finds each harm."""
    for name, seal in (("SHA-256", NO_KEY), ("HMAC-SHA-256", Seal(KEY))):
        links = chain(count, seal)
        for harm in (None, altered, removed, moved):
            harmed = links if harm is None else harm(links, count * 9 // 10)
            begin = time.process_time()
            verdict = verified(harmed, seal)
            took = time.process_time() - begin
            outcome = "whole" if verdict.fault is None else str(verdict.fault)
            say(f"verify {count:,} {name:<13} {outcome:<45} {took:.2f} s")


async def turn(storage: SqliteStores, number: int) -> None:
    """All that the store is asked for one approval, with its entries."""
    approval = an_approval(approval_id=f"apr_{number}", position=number)
    entries = [an_entry(number, act) for act in ACTS]
    await storage.approvals.insert(approval)
    append = storage.append if isinstance(storage, Unchained) else storage.audit.append
    for entry in entries:
        await append(entry)


def an_entry(number: int, act: str) -> AuditEntry:
    """An entry as large as those of the bot."""
    detail: dict[str, Any] = {"digest": "d" * 64, "tool": "refund", "status": "approved"}
    detail["arguments"] = {"order_id": "4711", "amount": 250, "note": "as agreed " * 10}
    return AuditEntry(
        entry_id=f"apr_{number}:{act}",
        at_ms=number,
        action=act,
        thread_id=THREAD_ID,
        approval_id=f"apr_{number}",
        actor_id="U1",
        detail=detail,
    )


async def measure_appends(make: Callable[[Path], SqliteStores]) -> float:
    """Processor seconds of 100 approvals at once."""
    least = float("inf")
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as directory:
            storage = make(Path(directory))
            await storage.open()
            begin = time.process_time()
            await asyncio.gather(*(turn(storage, number) for number in range(APPROVALS)))
            least = min(least, time.process_time() - begin)
            await storage.close()
    return least


async def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="verify 1,000 entries")
    arguments = parser.parse_args()

    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")

    plain = await measure_appends(Unchained)
    say(f"100 approvals at once, no chain: {plain * 1e3:.0f} ms of processor time")
    for name, seal in (("SHA-256", NO_KEY), ("HMAC-SHA-256", Seal(KEY))):
        took = await measure_appends(partial(SqliteStores, seal=seal))
        each = (took - plain) / APPROVALS * 1e3
        say(f"100 approvals at once, {name}: {took * 1e3:.0f} ms, {each:.2f} ms more for each")
    measure_verify(1_000 if arguments.quick else arguments.entries, say)


if __name__ == "__main__":
    asyncio.run(main())
