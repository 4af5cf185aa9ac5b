"""Calls in threads under a policy: what it allows, denies and asks, on record (2.1, 3.15)."""

from __future__ import annotations

import pytest

from agents.models import Turn, call, say
from storage.records import Kind, Status
from storage.sqlite import SqliteStorage
from tests.support.force import forced
from tests.unit.bot.office import THREAD_ID, KilledError, Office

GROUPS = {"sre": {"users": ["UADA", "UBEN"]}}
LOOK: list[Turn] = [call("look", {"what": "x"}, id="c1"), say("done")]


async def acts(office: Office) -> set[str]:
    wanted = {"allowed", "denied", "requested", "decided", "started", "executed", "doubted"}
    found = await office.storage.audit.of_thread(THREAD_ID, limit=100)
    return {one.action for one in found} & wanted


async def test_an_ungated_call_that_a_rule_allows_runs_on_record(storage: SqliteStorage) -> None:
    office = Office(storage, LOOK, policy=forced())
    await office.hear("<@UBOT> look")
    assert office.ran == [("look", "x")]
    assert await acts(office) == {"allowed", "started", "executed"}


async def test_a_call_that_a_rule_denies_never_runs(storage: SqliteStorage) -> None:
    office = Office(storage, LOOK, policy=forced(default={"deny": "Not here."}))
    await office.hear("<@UBOT> look")
    assert (office.ran, await office.open_approvals()) == ([], [])
    assert await acts(office) == {"denied"}
    assert "Not here." in str(office.model.inputs[-1])


async def test_an_ungated_call_that_a_rule_asks_about_waits_for_people(
    storage: SqliteStorage,
) -> None:
    force = forced(default={"ask": {"approve": [{"from": ["sre"]}]}}, groups=GROUPS)
    office = Office(storage, LOOK, policy=force)
    await office.hear("<@UBOT> look")
    approval = await office.the_approval()
    assert (approval.tool, approval.kind, office.ran) == ("look", Kind.APPROVAL, [])
    assert approval.rule == "default"


async def test_under_the_policy_of_the_settings_ungated_calls_are_as_they_were(
    storage: SqliteStorage,
) -> None:
    force = forced(default={"deny": "must not be asked"})
    force.is_settings = True
    office = Office(storage, LOOK, policy=force)
    await office.hear("<@UBOT> look")
    assert office.ran == [("look", "x")]
    assert await acts(office) == {"executed"}


async def test_an_allowed_call_whose_process_died_is_a_doubt(storage: SqliteStorage) -> None:
    pay: list[Turn] = [call("pay", {"to": "Ben", "amount": 5}, id="c1"), say("done")]
    force = forced(groups=GROUPS, defaults={"approve": [{"from": ["sre"]}]})
    office = Office(storage, pay, policy=force, is_gated=False, dies_in_tools=True)
    with pytest.raises(KilledError):
        await office.hear("<@UBOT> pay")
    office.queue.drop()
    after = Office(storage, [say("done")], policy=force, is_gated=False, clock=office.clock)
    after.clock.forward(minutes=1)
    await after.sweep.tick()
    await after.queue.run()
    doubt = await after.the_approval()
    assert (doubt.kind, doubt.status, after.ran) == (Kind.DOUBT, Status.PENDING, [])
    assert {"allowed", "started"} <= await acts(after)
