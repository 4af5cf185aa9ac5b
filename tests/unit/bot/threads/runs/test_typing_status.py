"""The status of an agent that works, and when it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from agents import ChatModelAgent, report_progress, tool
from agents.core.tools import Tool
from agents.models import call, say
from bot.ports.threads import Words
from bot.records.thread import Thread
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ROOT, Office

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
LOOK = call("look", {"what": "payments"}, id="c0")


@dataclass
class FakePresence:
    """Notes what would be shown, in order."""

    done: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)

    def show(self, thread: Thread, words: Words, *, message_ts: str = "", title: str = "") -> None:
        self.done.append(words())
        self.titles.append(title)
        self.messages.append(message_ts)

    def refresh(self, thread_id: str) -> None:
        self.done.append("refreshed")

    async def clear(self, thread: Thread, *, message_ts: str = "", is_left: bool = False) -> None:
        self.done.append("left" if is_left else "cleared")
        self.messages.append(message_ts)


def watched(office: Office) -> FakePresence:
    presence = FakePresence()
    object.__setattr__(office.turns, "presence", presence)
    return presence


async def test_each_step_is_shown_and_nothing_while_people_decide(storage: SqliteStores) -> None:
    office = Office(storage, [LOOK, PAY, say("Paid.")])
    presence = watched(office)
    await office.hear("<@UBOT> pay Mia")
    assert presence.done == ["is thinking…", "is checking look…", "is checking pay…", "cleared"]
    assert presence.messages[0] == ROOT
    assert presence.titles[0] == "pay Mia"
    presence.done.clear()
    await office.decide(await office.the_approval())
    assert presence.done == ["is running Pay 5 to Mia…", "cleared"]


async def test_it_is_gone_when_the_run_fails(storage: SqliteStores) -> None:
    office = Office(storage, [LOOK])  # the script ends: an error
    presence = watched(office)
    await office.hear("<@UBOT> pay Mia")
    assert presence.done[-1] == "cleared"


async def test_secrets_and_lines_do_not_reach_the_status(storage: SqliteStores) -> None:
    long = call("pay", {"to": "M\nia " + "x" * 200, "amount": 5}, id="c1")
    office = Office(storage, [long, say("Paid.")])
    presence = watched(office)
    await office.hear("<@UBOT> pay Mia")
    await office.decide(await office.the_approval())
    (running,) = [status for status in presence.done if status.startswith("is running")]
    assert "\n" not in running
    assert len(running) <= 100


@tool(gate="approval", title="Migrate {table}")
def migrate(table: str) -> str:
    """Migrate a table, in a thread."""
    report_progress("412 of 1,000 rows, password=hunter2secret", fraction=0.412)
    return "migrated"


@tool(gate="approval", title="Export {table}")
def export(table: str) -> Iterator[str]:
    """Export a table, in parts."""
    yield "first half\n"
    yield "second half\n"


@tool
def read_mail(box: str) -> Iterator[str]:
    """Read what only the agent may see."""
    yield "Dear Rosa"


@pytest.mark.parametrize(
    ("made", "progress"),
    [
        (migrate, ["is running Migrate orders: 412 of 1,000 rows, password=•••• redacted (41%)"]),
        (export, [f"is running Export orders: {part} half" for part in ("first", "second")]),
    ],
)
async def test_the_progress_of_an_approved_call_is_shown(
    storage: SqliteStores, made: Tool, progress: list[str]
) -> None:
    office = Office(storage, [call(made.definition.name, {"table": "orders"}), say("Done.")])
    office.make_agent = lambda model: ChatModelAgent(name="A", model=model, tools=[made])
    presence = watched(office)
    await office.hear("<@UBOT> go")
    presence.done.clear()
    await office.decide(await office.the_approval())
    assert presence.done[1:] == [*progress, "is thinking…", "cleared"]


async def test_the_parts_of_a_result_that_no_card_shows_are_not_shown(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [call("read_mail", {"box": "in"}), say("Read.")])
    office.make_agent = lambda model: ChatModelAgent(name="A", model=model, tools=[read_mail])
    presence = watched(office)
    await office.hear("<@UBOT> go")
    assert "Dear" not in str(presence.done)
