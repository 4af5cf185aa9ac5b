"""How much of our code a click passes, from the payload on: upper bars with some room.

`make trace` prints the way in order.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cost.way import Way, watching_calls
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


async def test_a_click_passes_few_files_and_functions(tmp_path: Path) -> None:
    ways = await ways_of_clicks(tmp_path)
    way = min(ways, key=lambda walk: len(walk.until(RUNS)))
    sys.stdout.write("\n".join(["", *(walk.table() for walk in ways), way.listing(RUNS), ""]))
    for part in ENDS:
        assert 0 < len(way.files(part)) <= FILES[part], way.listing(part)
        assert 0 < len(way.until(part)) <= FUNCTIONS[part], way.listing(part)
    assert way.parts[RUNS][0] > 0  # in work that was spawned
    assert set(way.until(ANSWERED)) < set(way.until(RUNS))
