"""Approvals against LangGraph's default, over the same server and in memory, in one run.

PEERS=…/bin/python python benchmarks/bench_peers.py [--delay 3ms]

Both have one agent for all approvals, in a process of its own that goes on, and a model that costs
nothing; nothing is counted on the way, and the best lap of each counts. (`bench_runtime.py` has the
harder case: a runner, an agent and a model made anew for each half of a round trip, as after a
restart.) `--delay` holds each reply of the server, for both.

PEERS names an interpreter that has LangGraph; see benchmarks/peers/langgraph_rt.py. Without it,
this does nothing: Countersign does not depend on it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from agents import ChatModelAgent, CheckpointStore, MemoryCheckpointStore, MemoryMessageLog, Runner
from agents.core.checkpoint import MessageLog
from agents.models import call, say
from benchmarks.bench_runtime import answer, ask, pay
from benchmarks.bench_turn import NAMES, one_approval, pace_of
from benchmarks.delay import delayed
from benchmarks.harness import Effort, run, table
from tests.cost.stage import Kind
from tests.support.mongo import spawn_mongo_server
from tests.support.stores import MongoStores

PROGRAM = Path(__file__).parent / "peers" / "langgraph_rt.py"
TRIPS, AT_ONCE = 60, 100
LAPS = 10
"""In memory, where a lap takes less than a second; over the server it is one, as the peer's."""
IN_MEMORY = "in memory"
PLACES = {
    IN_MEMORY: IN_MEMORY,
    "motor": "wire protocol, motor",
    "pymongo": "wire protocol, PyMongo",
}
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


def runtime(checkpoints: CheckpointStore, log: MessageLog) -> Runner:
    """One runner for all approvals, with the stores themselves: nothing is counted."""
    agent = ChatModelAgent(name="payer", model=Payer(), tools=[pay])
    return Runner(agent, checkpoint_store=checkpoints, message_log=log)


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


def ours(place: str, uri: str) -> Rates:
    """The runtime's, in a process of its own as the peer is, and measured in the same way."""
    command = [sys.executable, __file__, "--runtime", place, uri]
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=600)
    alone, together, cpu = json.loads(done.stdout.splitlines()[-1])
    return alone, together, cpu


async def measure(place: str, uri: str) -> Rates:
    """Measure the runtime in this process.

    Args:
        place: `in memory`, or the driver that reaches the server.
        uri: Of the server.
    """
    async with AsyncExitStack() as stack:
        runner = runtime(*await _stores(place, uri, stack))
        for _ in range(4):
            await round_trip(runner)
        return best([await _lap(runner) for _ in range(LAPS if place == IN_MEMORY else 1)])


async def _lap(runner: Runner) -> Rates:
    alone = Effort()
    for _ in range(TRIPS):
        await round_trip(runner)
    alone.end()
    together = Effort()
    await asyncio.gather(*(round_trip(runner) for _ in range(AT_ONCE)))
    together.end()
    return TRIPS / alone.wall_s, AT_ONCE / together.wall_s, alone.cpu_s / TRIPS * 1e3


def best(laps: Sequence[Rates]) -> Rates:
    """The best of each: what else the machine did only ever makes it worse."""
    alone, together, cpu = zip(*laps, strict=True)
    return max(alone), max(together), min(cpu)


async def _stores(
    place: str, uri: str, stack: AsyncExitStack
) -> tuple[CheckpointStore, MessageLog]:
    if place == IN_MEMORY:
        return MemoryCheckpointStore(), MemoryMessageLog()
    mongo = MongoStores(
        uri,
        driver="motor" if place == "motor" else "pymongo",
        database=f"bench_{place}",
        timeout=timedelta(seconds=20),
    )
    await mongo.open()
    stack.push_async_callback(mongo.close)
    return mongo.checkpoints, mongo.log


async def main() -> None:
    """Measure the peer before and after ours: the better of both is 1."""
    python = os.environ.get("PEERS", "")
    if not python:
        print("\nPEERS names no interpreter: LangGraph is left out.")
        return
    rates_by_name: dict[str, Rates] = {}
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        server = spawn_mongo_server(Path(directory))
        stack.callback(server.stop)
        stack.enter_context(delayed(server))
        await one_approval(server)
        places = {"in memory": "memory", "wire protocol": server.uri}
        before = {
            name: await asyncio.to_thread(langgraph, python, at) for name, at in places.items()
        }
        kinds: Sequence[Kind] = ("pymongo", "motor")
        for kind in kinds:
            pace = await pace_of(kind, server, laps=1)
            rates_by_name[f"bot, {NAMES[kind]}"] = (pace.alone_per_s, pace.together_per_s, 0)
        for place, name in PLACES.items():
            rates_by_name[f"runtime, {name}"] = await asyncio.to_thread(ours, place, server.uri)
        after = {
            name: await asyncio.to_thread(langgraph, python, at) for name, at in places.items()
        }
    bases = {name: best([before[name], after[name]]) for name in places}
    rows = [(f"LangGraph, {name}", *_shown(base, base)) for name, base in bases.items()]
    for name, rates in rates_by_name.items():
        base = bases["in memory" if "memory" in name else "wire protocol"]
        rows.append((name, *_shown(rates, base)))
    head = ("", "one by one", "against", "100 at once", "against", "CPU of one", "against")
    title = "Approvals against LangGraph's; CPU is the program's own, one by one"
    table(title, head, rows)


def _shown(rates: Rates, base: Rates) -> tuple[str, ...]:
    (*speeds, cpu), (*bases, base_cpu) = rates, base
    pairs = zip(speeds, bases, strict=True)
    cells = [cell for rate, of in pairs for cell in (f"{rate:.1f}/s", f"{rate / of:.2f}")]
    return *cells, *((f"{cpu:.1f} ms", f"{cpu / base_cpu:.2f}") if cpu else ("", ""))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--runtime"]:
        print(json.dumps(asyncio.run(measure(*sys.argv[2:]))))
    else:
        run(main)
