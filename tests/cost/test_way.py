"""The way of a click through our code: its length, and the diagram of docs/ that shows it.

The length has upper bars with some room. `make trace` prints the way in order.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.cost.way import Visit, Way, watching_calls
from tests.pages.site import DOCS, fences
from tests.support.stage import Stage, a_stage

APPROVE = "countersign:approve"
ANSWERED, RUNS = "to the answer", "to the tool's first line"
ENDS = {ANSWERED: ("aiohttp/web_response.py", "prepare"), RUNS: ("demo/agent.py", "deploy")}
TRIES = 3
"""Work of a tick may come in between; the shortest way counts."""

FILES = {ANSWERED: 60, RUNS: 150}
FUNCTIONS = {ANSWERED: 300, RUNS: 800}


def done(stage: Stage) -> int:
    """How often the agent said that it is done."""
    return sum(text.startswith("Done. ") for text in stage.texts())


async def ways_of_clicks(directory: Path) -> list[Way]:
    ways = []
    with watching_calls() as watch:
        async with a_stage(directory, "http") as stage:
            for number in range(1, TRIES + 1):
                await stage.say("Rosa", f"@countersign deploy payments 1.4.{number} to production")
                card = await stage.card(number=number, word=APPROVE)
                assert stage.bot is not None
                await stage.bot.tasks.idle()
                way = Way(ENDS)
                watch.way = way
                await stage.click("Ada", card, APPROVE)
                await stage.sandbox.until(lambda: done(stage) == number)  # noqa: B023 - waited for
                watch.way = None
                assert way.is_done
                ways.append(way)
                await stage.bot.tasks.idle()
                stage.clock.forward(seconds=60)
    return ways


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> list[Way]:
    """The ways of some clicks, one after the other."""
    return asyncio.run(ways_of_clicks(tmp_path_factory.mktemp("way")))


def test_a_click_passes_few_files_and_functions(ways: list[Way]) -> None:
    way = min(ways, key=lambda walk: len(walk.until(RUNS)))
    sys.stdout.write("\n".join(["", *(walk.table() for walk in ways), way.listing(RUNS), ""]))
    for part in ENDS:
        assert 0 < len(way.files(part)) <= FILES[part], way.listing(part)
        assert 0 < len(way.until(part)) <= FUNCTIONS[part], way.listing(part)
    assert way.parts[RUNS][0] > 0  # in work that was spawned
    assert set(way.until(ANSWERED)) < set(way.until(RUNS))


def drawn() -> list[Visit | None]:
    """The functions on the arrows of the diagram, by their modules; None at the answer."""
    page = fences(DOCS / "explanation" / "architecture.md")
    diagram = next(fence.text for fence in page if fence.kind == "mermaid")
    columns = re.findall(r"participant (\w+) as [^<]+<br/>(\S+)", diagram)
    modules = {name: path.replace("<br/>", "") for name, path in columns}
    arrows = re.findall(r"-?->>(\w+): (\w+)", diagram)
    return [(modules[to], function) if to in modules else None for to, function in arrows]


def walked(way: Way, visits: list[Visit | None]) -> list[Visit | None]:
    """The same functions in the order of their first calls; None at the answer."""
    calls = {
        part: [(file, name.rpartition(".")[2]) for file, name in way.until(part)] for part in ENDS
    }
    firsts = [visit for visit in dict.fromkeys(calls[RUNS]) if visit in visits]
    answered = sum(visit in calls[ANSWERED] for visit in firsts)
    return [*firsts[:answered], None, *firsts[answered:]]


def test_the_diagram_shows_the_way(ways: list[Way]) -> None:
    """A tick may take up the thread before the click's own work does; not of all clicks."""
    visits = drawn()
    assert visits in [walked(way, visits) for way in ways]
