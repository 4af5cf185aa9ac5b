"""Approvals against LangGraph's default, over the same server and in memory, in one run.

PEERS=…/bin/python python benchmarks/bench_peers.py [--quick]

Both have one agent for all approvals, in a process that goes on, and a model that costs nothing;
nothing is counted on the way. (`bench_runtime.py` has the harder case: a runner, an agent and a
model made anew for each half of a round trip, as after a restart.)

PEERS names an interpreter that has LangGraph; see benchmarks/peers/langgraph_rt.py. Without it,
this does nothing: Countersign does not depend on it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from agents import ChatModelAgent, Runner
from agents.models import call, say
from benchmarks.bench_runtime import answer, ask, pay, rates_of, stores
from benchmarks.bench_turn import NAMES, pace_of
from benchmarks.harness import Counted, table
from tests.cost.stage import Kind
from tests.support.mongo import spawn_mongo_server

PROGRAM = Path(__file__).parent / "peers" / "langgraph_rt.py"
TRIPS = 30
Rates = tuple[float, float, float]
"""Approvals per second, one by one and many at once, and the program's processor time for one, in
milliseconds; 0 when it was not measured."""


class Payer(Model):
    """Makes one gated call, then says so; as the peer's."""

    @property
    def model_name(self) -> str:
        return "payer"

    @property
    def system(self) -> str:
        return "payer"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,  # noqa: ARG002 - see Model
        model_request_parameters: ModelRequestParameters,  # noqa: ARG002 - see Model
    ) -> ModelResponse:
        last = messages[-1]
        is_done = isinstance(last, ModelRequest) and isinstance(last.parts[0], ToolReturnPart)
        part = say("Done: all is paid.") if is_done else call("pay", {"amount": 1}, id=_new_id())
        return ModelResponse(parts=[part])


def _new_id() -> str:
    return uuid.uuid4().hex


def runtime(stores: Counted) -> Runner:
    """One runner for all approvals, with the stores themselves: nothing is counted."""
    agent = ChatModelAgent(name="payer", model=Payer(), tools=[pay])
    return Runner(agent, checkpoint_store=stores.store, message_log=stores.log)


async def round_trip(runner: Runner) -> None:
    """One approval: a message, the interrupt, the answer, the tool, the text."""
    thread = _new_id()
    contexts = await ask(runner, f"{thread}#1", (thread, 1))
    await answer(runner, f"{thread}#1", contexts)


def langgraph(python: str, uri: str) -> Rates:
    """The peer's, with a model that costs nothing."""
    done = subprocess.run(
        [python, str(PROGRAM), uri], capture_output=True, check=True, text=True, timeout=600
    )
    result = json.loads(done.stdout.splitlines()[-1])
    return result["alone_per_s"], result["together_per_s"], result["cpu_ms"]


async def ours(stores: Counted) -> Rates:
    """The runtime's."""
    once = partial(round_trip, runtime(stores))
    rates, begin = await rates_of(once), time.process_time()
    for _ in range(TRIPS):
        await once()
    return *rates, (time.process_time() - begin) / TRIPS * 1e3


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
            found[f"bot, {NAMES[kind]}"] = (pace.alone_per_s, pace.together_per_s, 0)
        async with stores() as all_stores:
            for name, counted in all_stores.items():
                if "SQLite" not in name:
                    found[f"runtime, {name}"] = await ours(counted)
        after = {
            name: await asyncio.to_thread(langgraph, python, at) for name, at in places.items()
        }
    bases = {name: _mean(before[name], after[name]) for name in places}
    rows = [(f"LangGraph, {name}", *_shown(base, base)) for name, base in bases.items()]
    for name, rates in found.items():
        base = bases["in memory" if "memory" in name else "wire protocol"]
        rows.append((name, *_shown(rates, base)))
    head = ("", "one by one", "against", "100 at once", "against", "CPU of one", "against")
    title = "Approvals against LangGraph's; CPU is the program's own, one by one"
    table(title, head, rows)


def _mean(one: Rates, other: Rates) -> Rates:
    alone, together, cpu = ((a + b) / 2 for a, b in zip(one, other, strict=True))
    return alone, together, cpu


def _shown(rates: Rates, base: Rates) -> tuple[str, ...]:
    (*speeds, cpu), (*bases, base_cpu) = rates, base
    pairs = zip(speeds, bases, strict=True)
    cells = [cell for rate, of in pairs for cell in (f"{rate:.1f}/s", f"{rate / of:.2f}")]
    return *cells, *((f"{cpu:.1f} ms", f"{cpu / base_cpu:.2f}") if cpu else ("", ""))


if __name__ == "__main__":
    asyncio.run(main())
