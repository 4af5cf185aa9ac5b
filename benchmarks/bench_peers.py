"""Approvals against LangGraph's default, over the same server and in memory, in one run.

PEERS=…/bin/python python benchmarks/bench_peers.py [--quick]

PEERS names an interpreter that has LangGraph; see benchmarks/peers/langgraph_rt.py. Without it,
this does nothing: Countersign does not depend on it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.bench_runtime import rates_of, stores
from benchmarks.bench_turn import NAMES, pace_of
from benchmarks.harness import table
from tests.cost.stage import Kind
from tests.support.mongo import spawn_mongo_server

PROGRAM = Path(__file__).parent / "peers" / "langgraph_rt.py"
Rates = tuple[float, float]
"""Approvals per second: one by one, and many at once."""


def langgraph(python: str, uri: str) -> Rates:
    """The peer's, with a model that costs nothing."""
    done = subprocess.run(
        [python, str(PROGRAM), uri], capture_output=True, check=True, text=True, timeout=600
    )
    result = json.loads(done.stdout.splitlines()[-1])
    return result["alone_per_s"], result["together_per_s"]


async def main() -> None:
    """Measure the peer before and after ours: the mean of both is 1."""
    python = os.environ.get("PEERS", "")
    if not python:
        print("\nPEERS names no interpreter: LangGraph is left out.")
        return
    found: dict[str, Rates] = {}
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        server = spawn_mongo_server(Path(directory))
        stack.callback(server.stop)
        places = {"in memory": "memory", "wire protocol": server.uri}
        before = {
            name: await asyncio.to_thread(langgraph, python, at) for name, at in places.items()
        }
        kinds: Sequence[Kind] = ("pymongo", "motor")
        for kind in kinds:
            pace = await pace_of(kind, server)
            found[f"bot, {NAMES[kind]}"] = (pace.alone_per_s, pace.together_per_s)
        async with stores() as all_stores:
            for name, counted in all_stores.items():
                if "SQLite" not in name:
                    found[f"runtime, {name}"] = await rates_of(counted, "interrupt")
        after = {
            name: await asyncio.to_thread(langgraph, python, at) for name, at in places.items()
        }
    bases = {name: _mean(before[name], after[name]) for name in places}
    rows = [(f"LangGraph, {name}", *_shown(base, base)) for name, base in bases.items()]
    for name, rates in found.items():
        base = bases["in memory" if "memory" in name else "wire protocol"]
        rows.append((name, *_shown(rates, base)))
    head = ("", "one by one", "against LangGraph", "100 at once", "against LangGraph")
    table("Approvals, the runtime with durability interrupt and a log", head, rows)


def _mean(one: Rates, other: Rates) -> Rates:
    return (one[0] + other[0]) / 2, (one[1] + other[1]) / 2


def _shown(rates: Rates, base: Rates) -> tuple[str, ...]:
    return tuple(
        cell
        for rate, of in zip(rates, base, strict=True)
        for cell in (f"{rate:.1f}/s", f"{rate / of:.2f}")
    )


if __name__ == "__main__":
    asyncio.run(main())
