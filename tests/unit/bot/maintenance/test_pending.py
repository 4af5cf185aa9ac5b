"""Asking anew: the card is called off, and another asks under the rules of now (3.15, 8.5)."""

from __future__ import annotations

from agents.models import Turn, call, say
from bot.maintenance.pending import PendingQuery, PendingRequests
from bot.records.approval import Approval, Status
from tests.support.force import forced
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, Office

GROUPS = {"sre": {"users": [ADA]}, "security": {"users": [BEN]}}


async def test_people_are_asked_anew_by_the_bot_that_runs(storage: SqliteStores) -> None:
    force = forced(default={"ask": {"approve": [{"from": ["sre"]}]}}, groups=GROUPS)
    turns: list[Turn] = [call("look", {"what": "a"}, id="c1"), say("done")]
    office = Office(storage, turns, policy=force)
    first = await office.asked("<@UBOT> look")
    asks = {"ask": {"approve": [{"from": ["sre"]}, {"from": ["security"]}]}}
    force.rulebook, force.file_hash = forced(default=asks, groups=GROUPS).rulebook, "f2"
    requests = PendingRequests(storage, office.clock)
    (outdated,) = await requests.find_pending(PendingQuery(outdated_by="f2"))
    await requests.reask(outdated.approval_id)
    await office.later()
    second = await office.the_approval()
    assert second.approval_id != first.approval_id
    assert "security" in second.terms.groups
    assert second.asked_again
    old = await storage.approvals.get(first.approval_id)
    assert (old.status, old.open) == (Status.SUPERSEDED, False)
    assert card(office, first).status is Status.SUPERSEDED
    newer = await storage.approvals.get(second.approval_id)
    assert card(office, first).newer_ts == newer.thread_card.ts != ""
    assert await requests.find_pending(PendingQuery(outdated_by="f2")) == []
    for who in (ADA, BEN):
        await office.decide(await storage.approvals.get(second.approval_id), by=who)
    assert office.ran == [("look", "a")]


def card(office: Office, approval: Approval) -> Approval:
    return office.notifier.cards[approval.approval_id]
