"""When people are not to be messaged."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.models import call, say
from bot.approvals.due.escalation_state import held_of
from bot.audit.report import story
from bot.errors import InvalidInputError, NotApproverError
from bot.ports.people import Actor
from bot.records.approval import Approval, Kind
from bot.records.people import PersonRecord
from bot.slack.destinations import approvers_text
from storage.errors import StoreUnavailableError
from tests.contract.builders import a_person
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.due.test_escalation import (
    ASK,
    LIA,
    MIA,
    SAM,
    an_office,
    mentioned,
    notified,
)
from tests.unit.bot.notifications.people import keep
from tests.unit.bot.office import ADA, CHANNEL, GUS, ROSA, Office

NIGHT = {"quiet_from": "22:00", "quiet_until": "07:00", "timezone": "Etc/UTC"}
SECURITY: dict[str, Any] = {
    "approve": [{"from": ["security"]}],
    "remind": {"after": "15m", "times": 6},
    "expires": "24h",
}


async def at_night(
    storage: SqliteStores, ask_of: dict[str, Any], *asleep: str, **more: Any
) -> Office:
    """It is a quarter to midnight, and some people have quiet hours."""
    office = an_office(storage, ask_of, **more)
    office.clock.forward(hours=15.75)  # from 08:00
    for user_id in asleep:
        await keep(office, user_id, **NIGHT)
    await office.hear(ASK)
    return office


async def until_seven(office: Office) -> None:
    """From a quarter to midnight to a minute after seven, by quarters of an hour."""
    for _ in range(29):
        await office.later(minutes=15)
    await office.later(minutes=1)


def snoozed(approval: Approval) -> list[str]:
    return sorted(approval.snoozes)


async def test_who_sleeps_is_not_mentioned_and_hears_of_it_in_the_morning(
    storage: SqliteStores,
) -> None:
    office = await at_night(storage, SECURITY, MIA)
    approval = await office.the_approval()
    assert (mentioned(approval), snoozed(approval)) == ([SAM], [MIA])
    for _ in range(3):
        await office.later(minutes=60)
    assert {user_id for _, names, _ in notified(office) for user_id in names} == {SAM}
    office.notifier.sent.clear()
    await office.later(hours=4, minutes=14)
    assert MIA not in {user_id for _, names, _ in notified(office) for user_id in names}
    await office.later(minutes=2)
    assert ("snooze_over", [MIA], MIA) in notified(office)
    assert snoozed(await office.the_approval()) == []


async def test_a_card_names_who_sleeps_and_is_not_for_them(storage: SqliteStores) -> None:
    """A new message has the plain names of people whom it is not for: nothing disturbs them."""
    office = await at_night(storage, SECURITY, MIA)
    approval = await office.the_approval()
    assert held_of(approval) == {MIA}
    assert approvers_text(approval) == f"<@{SAM}>, <@{MIA}>"
    assert mentioned(approval) == [SAM]


@pytest.mark.parametrize("loud", [{"urgent": True}, {"risk": "high"}, {"risk": "critical"}])
async def test_what_is_urgent_or_of_high_risk_comes_through(
    storage: SqliteStores, loud: dict[str, Any]
) -> None:
    office = await at_night(storage, {**SECURITY, **loud}, MIA)
    assert mentioned(await office.the_approval()) == [MIA, SAM]


async def test_where_all_sleep_until_it_has_expired_the_thread_hears_so(
    storage: SqliteStores,
) -> None:
    office = await at_night(storage, {**SECURITY, "expires": "3h"}, MIA, SAM)
    approval = await office.the_approval()
    assert mentioned(approval) == []
    assert [reminder.kind for reminder in approval.reminders] == ["quiet"]
    await office.later(hours=3, minutes=1)
    assert [kind for kind, _, _ in notified(office)] == ["quiet"]


async def test_where_all_sleep_and_it_waits_until_the_morning_nothing_is_said(
    storage: SqliteStores,
) -> None:
    office = await at_night(storage, SECURITY, MIA, SAM)
    assert (await office.the_approval()).reminders == ()


async def test_a_step_of_the_ladder_lets_backups_sleep_too(storage: SqliteStores) -> None:
    steps = {**SECURITY, "remind": None, "escalate": [{"after": "1h", "add": ["leads"]}]}
    del steps["remind"]
    office = await at_night(storage, steps, LIA)
    await office.later(hours=1, minutes=1)
    approval = await office.the_approval()
    assert (approval.escalation.steps, snoozed(approval)) == (1, [LIA])
    assert LIA not in {user_id for _, names, _ in notified(office) for user_id in names}
    await until_seven(office)
    assert ("snooze_over", [LIA], LIA) in notified(office)


async def test_a_user_group_is_mentioned_as_long_as_one_of_it_is_awake(
    storage: SqliteStores,
) -> None:
    sre = {**SECURITY, "approve": [{"from": ["sre"]}]}
    office = await at_night(storage, sre, ADA)
    assert mentioned(await office.the_approval()) == ["S0SRE"]


async def test_who_sleeps_and_is_not_in_the_channel_gets_the_card_in_the_morning(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, SECURITY)
    office.clock.forward(hours=15.75)
    office.directory.channels[CHANNEL] -= {SAM}
    await keep(office, SAM, **NIGHT)
    await office.hear(ASK)
    assert (await office.the_approval()).copies == ()
    await office.later(hours=7, minutes=16)
    (copy,) = (await office.the_approval()).copies
    assert (copy.user, bool(copy.ts)) == (SAM, True)


async def test_a_database_that_does_not_say_who_sleeps_lets_all_be_told(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, SECURITY)
    await keep(office, MIA, has_copies=True)

    async def fail(team_id: str) -> list[PersonRecord]:
        raise StoreUnavailableError(team_id)

    office.preferences.storage.people.wishing = fail  # type: ignore[method-assign]
    approval = await office.asked(ASK)
    assert (mentioned(approval), approval.copies) == ([MIA, SAM], ())


async def test_the_zone_of_before_holds_while_people_cannot_be_looked_up(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, SECURITY)
    zone = await office.preferences.zone(a_person("UNOBODY", timezone="Asia/Tokyo"))
    assert zone == "Asia/Tokyo"
    assert await office.preferences.zone(a_person("UNOBODY")) == "Etc/UTC"
    assert await office.preferences.zone(a_person("UNOBODY", timezone="Mars/Olympus")) == "Etc/UTC"


async def test_wishes_are_kept_and_put_on_record(storage: SqliteStores) -> None:
    office = an_office(storage, SECURITY)
    office.directory.add(ADA, timezone="Europe/Berlin")
    actor = Actor(user_id=ADA, team_id="T1")
    await office.preferences.set(actor, team_id="T1", quiet=("22:00", "07:00"))
    await office.preferences.set(actor, team_id="T1", has_copies=True)
    wishes = await office.preferences.of(ADA, team_id="T1")
    kept = (wishes.quiet_from, wishes.quiet_until, wishes.timezone, wishes.has_copies)
    assert kept == ("22:00", "07:00", "Europe/Berlin", True)
    entries = [
        entry for entry in await story(office.storage, thread_id="") if entry.action == "wished"
    ]
    assert [entry.detail.get("copies") for entry in entries] == ["no", "yes"]
    assert entries[0].actor_id == ADA


@pytest.mark.parametrize(
    "hours", [("22:00", "22:00"), ("", "07:00"), ("22", "07:00"), ("25:00", "07:00"), ("x", "y")]
)
async def test_hours_that_are_none_are_refused(
    storage: SqliteStores, hours: tuple[str, str]
) -> None:
    office = an_office(storage, SECURITY)
    with pytest.raises(InvalidInputError):
        await office.preferences.set(Actor(user_id=ADA, team_id="T1"), team_id="T1", quiet=hours)
    assert (await office.preferences.of(ADA, team_id="T1")).revision == 0


async def test_who_has_no_say_has_no_wishes(storage: SqliteStores) -> None:
    office = an_office(storage, SECURITY)
    with pytest.raises(NotApproverError):
        await office.preferences.set(
            Actor(user_id=GUS, team_id="T1"), team_id="T1", has_copies=False
        )


async def test_of_wishes_at_once_none_is_lost(storage: SqliteStores) -> None:
    office = an_office(storage, SECURITY)
    actor = Actor(user_id=ADA, team_id="T1")
    await asyncio.gather(
        office.preferences.set(actor, team_id="T1", quiet=("22:00", "07:00")),
        office.preferences.set(actor, team_id="T1", has_copies=True),
    )
    wishes = await office.preferences.of(ADA, team_id="T1")
    assert (wishes.quiet_from, wishes.has_copies) == ("22:00", True)


CLARIFY = call("ask_people", {"questions": ["Which Mia?"]}, id="c1")


async def a_question(storage: SqliteStores, *, hours: float, **more: Any) -> Office:
    office = Office(storage, [CLARIFY, say("Paid.")], **more)
    office.directory.add(ROSA, timezone="Etc/UTC")
    office.clock.forward(hours=hours)
    await office.hear(ASK)
    assert (await office.the_approval()).kind is Kind.QUESTION
    return office


async def test_who_is_to_answer_is_reminded_of_it_after_their_night(storage: SqliteStores) -> None:
    await storage.people.add(a_person(ROSA, **NIGHT))
    office = await a_question(storage, hours=22)  # it is six in the morning
    await office.later(minutes=15)
    await office.later(minutes=30)
    assert office.notifier.reminders == []
    await office.later(minutes=16)
    assert len(office.notifier.reminders) == 1


async def test_a_delegate_who_sleeps_is_told_in_the_morning(storage: SqliteStores) -> None:
    office = an_office(
        storage, {"approve": [{"from": ["leads"]}], "expires": "24h", "remind": "never"}
    )
    office.clock.forward(hours=15.75)
    await keep(office, SAM, **NIGHT)
    await office.lend(LIA)
    await office.lend(LIA, SAM)
    approval = await office.asked(ASK)
    assert (mentioned(approval), snoozed(approval)) == ([], [SAM])
    await until_seven(office)
    assert ("snooze_over", [SAM], SAM) in notified(office)
