"""Runs that were stored by the first release, and the way to another version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.chat.agent import ChatModelAgent
from agents.core.checkpoint import CLAIM_VERSION, LOG_VERSION, SCHEMA_VERSION, CheckpointStatus
from agents.core.codec import Json, from_text, to_text
from agents.core.errors import (
    CheckpointDecodeError,
    CheckpointVersionError,
)
from agents.gates import InDoubtInfo, InDoubtResult, approval_gate, tool
from agents.memory import MemoryCheckpointStore, MemoryMessageLog
from agents.models import ScriptedModel, say
from agents.runner import Runner
from agents.runs import document
from agents.runs.document import MIGRATIONS, Claim, RunDocument, migrated
from tests.unit.agents.support import brief, collect, contexts, no, yes

DATA = Path(__file__).parents[3] / "data"
PAID: list[str] = []


@tool
def pay(amount: int, to: str) -> str:
    """Pay.

    Args:
        amount: Cents.
        to: Whom.
    """
    PAID.append(f"{amount} to {to}")
    return f"paid {amount} to {to}"


@tool
def look(order: int) -> str:
    """Look.

    Args:
        order: Number.
    """
    raise AssertionError("it has finished before the interrupt")


@dataclass
class Stage:
    """A process of today on a store that an earlier version wrote."""

    store: MemoryCheckpointStore
    log: MemoryMessageLog
    runner: Runner
    model: ScriptedModel


async def stage(name: str) -> Stage:
    """Put a stored checkpoint into a store, with the statements that made it."""
    kept = json.loads((DATA / name).read_text())
    store, log = MemoryCheckpointStore(), MemoryMessageLog()
    key = from_text(kept["data"])["log"]
    assert isinstance(key, list)
    thread, turn = key
    status = CheckpointStatus.RUNNING
    version = 0
    while version < kept["base"]:
        if version == kept["base"] - 1:
            status = CheckpointStatus.PENDING
        version = await store.save(
            f"{thread}#{turn}", kept["data"], status=status, expected_version=version
        )
    if kept["claim"]:
        await store.claim(f"{thread}#{turn}", kept["claim"], expected_version=version)
    for index, entry in enumerate(kept["journal"]):
        await store.append(f"{thread}#{turn}", entry, base=kept["base"], index=index)
    for number, entry in enumerate(kept.get("log", ()), start=1):
        await log.append(str(thread), number, entry)
    stored = await store.load(f"{thread}#{turn}")
    assert stored is not None
    assert (stored.version, str(stored.status)) == (kept["version"], kept["status"])
    model = ScriptedModel([say("All done.")])
    agent = ChatModelAgent(name="clerk", model=model, tools=[look, approval_gate(pay)])
    PAID.clear()
    return Stage(store, log, Runner(agent, checkpoint_store=store, message_log=log), model)


async def test_a_checkpoint_of_version_1_is_resumed_to_its_end() -> None:
    loaded = await stage("checkpoint-v1.json")
    first, second = await loaded.runner.pending("t#1")

    events = await collect(loaded.runner.resume("t#1", {second.id: no(second, "not today")}))
    assert brief(events)[0].startswith("tool pay#c3 rejected: ")
    assert "not today" in brief(events)[0]
    assert brief(events)[1:] == ["INT agent:clerk;tool:pay:c2"]
    assert contexts(events)["c2"].id == first.id
    stored = await loaded.store.load("t#1")
    assert stored is not None
    assert from_text(stored.data)["schema"] == SCHEMA_VERSION == 1

    events = await collect(loaded.runner.resume("t#1", {first.id: yes(first)}))
    assert brief(events) == ["tool pay#c2 ran: paid 5 to ana", "says All done."]
    assert PAID == ["5 to ana"]
    parts = [part for message in loaded.model.inputs[-1] for part in message.parts]
    assert [getattr(part, "tool_call_id", None) for part in parts[-3:]] == ["c1", "c2", "c3"]
    assert len(await loaded.log.load("t", before_turn=2)) == 1


async def test_a_dead_run_of_version_1_is_recovered_with_its_claim_journal_and_log() -> None:
    loaded = await stage("checkpoint-v1-running.json")

    events = await collect(loaded.runner.recover("t#2"))

    assert brief(events) == ["tool pay#c1 ran: paid 5 to ana", "INT agent:clerk;tool:pay:c2"]
    (context,) = await loaded.runner.pending("t#2")
    assert isinstance(context.info, InDoubtInfo)
    assert brief(
        await collect(loaded.runner.resume("t#2", {context.id: InDoubtResult(choice="again")}))
    )[-1] == ("says All done.")
    assert PAID == ["6 to bo"]
    first = loaded.model.inputs[-1][0].parts[0]
    assert getattr(first, "content", "") == "Good morning"


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 1, 99, "1", None, True])
async def test_another_version_is_a_typed_error_and_changes_nothing(version: Json) -> None:
    loaded = await stage("checkpoint-v1.json")
    kept = json.loads((DATA / "checkpoint-v1.json").read_text())
    text = to_text({**from_text(kept["data"]), "schema": version})
    status = CheckpointStatus.PENDING
    await loaded.store.save("x", text, status=status, expected_version=0)
    before = await loaded.store.load("x")

    for work in (loaded.runner.resume("x"), loaded.runner.recover("x")):
        with pytest.raises(CheckpointVersionError, match="run the version that wrote it"):
            await collect(work)
    with pytest.raises(CheckpointVersionError):
        await loaded.runner.pending("x")
    assert await loaded.store.load("x") == before


def test_each_old_version_has_a_migration() -> None:
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA_VERSION))
    assert (CLAIM_VERSION, LOG_VERSION) == (1, 1)


def test_an_old_document_is_migrated_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def renamed(data: dict[str, Json]) -> dict[str, Json]:
        return {**data, "clerk": data["agent"]}

    monkeypatch.setattr(document, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setitem(MIGRATIONS, SCHEMA_VERSION, renamed)
    data = migrated({"schema": SCHEMA_VERSION, "agent": "A"})
    assert data == {"schema": SCHEMA_VERSION + 1, "agent": "A", "clerk": "A"}
    assert migrated(data) == data


def test_a_damaged_topology_is_a_typed_error() -> None:
    data = from_text(RunDocument(agent="A", messages=()).to_text())

    with pytest.raises(CheckpointDecodeError):
        RunDocument.from_text(to_text({**data, "topology": 3}))


def test_a_claim_of_a_newer_version_is_a_typed_error() -> None:
    text = Claim(answers={"1": "x"}).to_text()
    assert from_text(text)["schema"] == CLAIM_VERSION

    with pytest.raises(CheckpointVersionError):
        Claim.from_text(text.replace('"schema":1', '"schema":2'))


@dataclass
class Form:
    """A type whose stored name has changed."""

    name: str
    age: int = 0
