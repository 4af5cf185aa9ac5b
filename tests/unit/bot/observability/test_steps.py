"""The steps of a call in the log, and the traceback of a tool that raises."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from agents import ChatModelAgent, tool
from agents.models import call, say
from bot.observability.instrument import metered
from bot.observability.logs import StepLog
from tests.support.fakes import FakeClock
from tests.support.logs import logged
from tests.support.stores import SqliteStores
from tests.unit.bot.office import Office


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    with logged() as stream:
        yield stream


@tool(gate="approval", title="Migrate {table}", secret=["code"])
def migrate(table: str, code: str) -> str:
    """Migrate a table."""
    raise RuntimeError(f"no such table; tried with {code}")


async def test_each_step_of_a_call_is_a_line_and_a_failure_has_its_traceback(
    storage: SqliteStores, lines: io.StringIO
) -> None:
    clock = FakeClock()
    office = Office(metered(storage, StepLog(), clock), clock=clock)
    office.make_agent = lambda _: ChatModelAgent(name="A", model=office.model, tools=[migrate])
    arguments = {"table": "orders", "code": "swordfish-77"}
    office.model._turns = [[call("migrate", arguments, id="c1")], [say("It failed.")]]
    await office.hear("<@UBOT> migrate")
    await office.decide(await office.the_approval())
    log = lines.getvalue()
    steps = [line for line in log.splitlines() if "[step]" in line]
    actions = [line.split("[step] ")[1].split()[0] for line in steps]
    assert actions == ["requested", "decided", "started", "executed"]
    assert all("thread_id=T1:C1:1800000000.000001" in line for line in steps)
    assert "outcome=failed" in steps[-1]
    assert "the tool 'migrate' raised RuntimeError in the call" in log
    assert "raise RuntimeError" in log
    assert "RuntimeError: no such table; tried with" in log
    assert "swordfish" not in log
    assert "orders" not in "".join(steps)
