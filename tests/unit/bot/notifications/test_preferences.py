"""When people are not to be messaged, and which messages a list takes the place of."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest

from agents.models import call, say
from bot.approvals.changes import annotated
from bot.approvals.due.escalation_state import held_of
from bot.audit.report import story
from bot.errors import DirectoryError, InvalidInputError, NotApproverError
from bot.notifications.digest_schedule import left_to_list
from bot.ports.people import Actor
from bot.records.approval import Approval, Kind
from bot.records.people import PersonRecord, PostedDigest
from bot.records.terms import Group, Rotation
from bot.slack.destinations import approvers_text
from storage.errors import StoreUnavailableError
from tests.contract.builders import a_person, an_approval
from tests.support.decided import write
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.due.test_escalation import (
    ASK,
    LIA,
    MIA,
    SAM,
    an_office,
    later,
    mentioned,
    told,
)
from tests.unit.bot.notifications.lists_stage import (
    ask,
    keep,
    lists_office,
    pass_time,
    person,
    sent,
    terms,
)
from tests.unit.bot.office import ADA, BEN, CHANNEL, GUS, ROSA, THREAD_ID, Office

NIGHT = {"quiet_from": "22:00", "quiet_until": "07:00", "timezone": "Etc/UTC"}
SECURITY: dict[str, Any] = {
    "approve": [{"from": ["security"]}],
    "remind": {"after": "15m", "times": 6},
    "expires": "24h",
}
HOUR_MS = 3_600_000


@pytest.fixture
async def storage() -> SqliteStores:
    storage = SqliteStores(None)
    await storage.open()
    return storage


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
        await later(office, minutes=15)
    await later(office, minutes=1)


def snoozed(approval: Approval) -> list[str]:
    return sorted(approval.snoozes)


async def test_who_sleeps_is_not_mentioned_and_hears_of_it_in_the_morning(
    storage: SqliteStores,
) -> None:
    office = await at_night(storage, SECURITY, MIA)
    approval = await office.the_approval()
    assert (mentioned(approval), snoozed(approval)) == ([SAM], [MIA])
    for _ in range(3):
        await later(office, minutes=60)
    assert {one for _, names, _ in told(office) for one in names} == {SAM}
    office.notifier.told.clear()
    await later(office, hours=4, minutes=14)
    assert MIA not in {one for _, names, _ in told(office) for one in names}
    await later(office, minutes=2)
    assert ("snooze_over", [MIA], MIA) in told(office)
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
    assert [one.kind for one in approval.reminders] == ["quiet"]
    await later(office, hours=3, minutes=1)
    assert [kind for kind, _, _ in told(office)] == ["quiet"]


async def test_where_all_sleep_and_it_waits_until_the_morning_nothing_is_said(
    storage: SqliteStores,
) -> None:
    office = await at_night(storage, SECURITY, MIA, SAM)
    assert (await office.the_approval()).reminders == ()


async def test_a_step_of_the_ladder_lets_backups_sleep_too(storage: SqliteStores) -> None:
    steps = {**SECURITY, "remind": None, "escalate": [{"after": "1h", "add": ["leads"]}]}
    del steps["remind"]
    office = await at_night(storage, steps, LIA)
    await later(office, hours=1, minutes=1)
    approval = await office.the_approval()
    assert (approval.escalation.steps, snoozed(approval)) == (1, [LIA])
    assert LIA not in {one for _, names, _ in told(office) for one in names}
    await until_seven(office)
    assert ("snooze_over", [LIA], LIA) in told(office)


async def test_a_user_group_is_mentioned_as_long_as_one_of_it_is_awake(
    storage: SqliteStores,
) -> None:
    sre = {**SECURITY, "approve": [{"from": ["sre"]}]}
    office = await at_night(storage, sre, ADA)
    assert mentioned(await office.the_approval()) == ["S0SRE"]


async def test_a_user_group_of_sleepers_hears_of_it_in_the_morning(
    storage: SqliteStores,
) -> None:
    sre = {**SECURITY, "approve": [{"from": ["sre"]}]}
    office = await at_night(storage, sre, ADA, BEN)
    approval = await office.the_approval()
    assert (mentioned(approval), snoozed(approval)) == ([], [ADA, BEN])
    await until_seven(office)
    assert {user for kind, _, user in told(office) if kind == "snooze_over"} == {ADA, BEN}


async def test_who_sleeps_and_is_not_in_the_channel_gets_the_card_in_the_morning(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, SECURITY)
    office.clock.forward(hours=15.75)
    office.directory.channels[CHANNEL] -= {SAM}
    await keep(office, SAM, **NIGHT)
    await office.hear(ASK)
    assert (await office.the_approval()).copies == ()
    await later(office, hours=7, minutes=16)
    (copy,) = (await office.the_approval()).copies
    assert (copy.user, bool(copy.ts)) == (SAM, True)


async def test_a_database_that_does_not_say_who_sleeps_lets_all_be_told(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, SECURITY)

    async def fail(team_id: str) -> list[PersonRecord]:
        raise StoreUnavailableError(team_id)

    office.wishes.storage.people.wishing = fail  # type: ignore[method-assign]
    await office.hear(ASK)
    assert mentioned(await office.the_approval()) == [MIA, SAM]


async def test_the_zone_of_before_holds_while_people_cannot_be_looked_up(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, SECURITY)
    found = await office.wishes.zone(a_person("UNOBODY", timezone="Asia/Tokyo"))
    assert found == "Asia/Tokyo"
    assert await office.wishes.zone(a_person("UNOBODY")) == "Etc/UTC"


async def test_wishes_are_kept_and_put_on_record(storage: SqliteStores) -> None:
    office = an_office(storage, SECURITY)
    office.directory.add(ADA, timezone="Europe/Berlin")
    actor = Actor(user_id=ADA, team_id="T1")
    await office.wishes.set(actor, team_id="T1", quiet=("22:00", "07:00"))
    await office.wishes.set(actor, team_id="T1", has_digest=False)
    found = await office.wishes.of(ADA, team_id="T1")
    kept = (found.quiet_from, found.quiet_until, found.timezone, found.has_digest)
    assert kept == ("22:00", "07:00", "Europe/Berlin", False)
    entries = [one for one in await story(office.storage, thread_id="") if one.action == "wished"]
    assert [one.detail.get("digest") for one in entries] == ["yes", "no"]
    assert entries[0].actor_id == ADA


async def test_wishes_after_the_retention_deleted_the_person_are_put_on_record(
    storage: SqliteStores,
) -> None:
    office, actor = an_office(storage, SECURITY), Actor(user_id=ADA, team_id="T1")
    for has_digest in (False, True):
        await office.wishes.set(actor, team_id="T1", has_digest=has_digest)
    office.clock.forward(hours=24)
    assert await storage.people.erase(before_ms=office.clock(), limit=9) == 1

    for has_digest in (False, True):
        await office.wishes.set(actor, team_id="T1", has_digest=has_digest)

    entries = [one for one in await story(office.storage, thread_id="") if one.action == "wished"]
    assert [one.detail.get("digest") for one in entries] == ["no", "yes", "no", "yes"]


async def test_a_wish_holds_at_once(storage: SqliteStores) -> None:
    office = an_office(storage, SECURITY)
    office.clock.forward(hours=15.75)
    approval = an_approval()
    assert await office.wishes.quiet(approval, [MIA]) == {}
    actor = Actor(user_id=MIA, team_id="T1")
    await office.wishes.set(actor, team_id="T1", quiet=("22:00", "07:00"))
    assert list(await office.wishes.quiet(approval, [MIA])) == [MIA]


@pytest.mark.parametrize(
    "hours", [("22:00", "22:00"), ("", "07:00"), ("22", "07:00"), ("25:00", "07:00"), ("x", "y")]
)
async def test_hours_that_are_none_are_refused(
    storage: SqliteStores, hours: tuple[str, str]
) -> None:
    office = an_office(storage, SECURITY)
    with pytest.raises(InvalidInputError):
        await office.wishes.set(Actor(user_id=ADA, team_id="T1"), team_id="T1", quiet=hours)
    assert (await office.wishes.of(ADA, team_id="T1")).revision == 0


async def test_who_has_no_say_has_no_wishes(storage: SqliteStores) -> None:
    office = an_office(storage, SECURITY)
    with pytest.raises(NotApproverError):
        await office.wishes.set(Actor(user_id=GUS, team_id="T1"), team_id="T1", has_digest=False)


async def test_of_wishes_at_once_none_is_lost(storage: SqliteStores) -> None:
    office = an_office(storage, SECURITY)
    actor = Actor(user_id=ADA, team_id="T1")
    await asyncio.gather(
        office.wishes.set(actor, team_id="T1", quiet=("22:00", "07:00")),
        office.wishes.set(actor, team_id="T1", has_digest=False),
    )
    found = await office.wishes.of(ADA, team_id="T1")
    assert (found.quiet_from, found.has_digest) == ("22:00", False)


def on_a_list(**changes: Any) -> PersonRecord:
    posted = PostedDigest(ts="1.1", ids=("apr_0123456789abcdef",), total=1)
    return a_person(digest_ms=10 * HOUR_MS, posted=posted, **changes)


_LATE = an_approval(approval_id="apr_late", created_ms=10 * HOUR_MS + 1, expires_ms=99 * HOUR_MS)
_LISTED = an_approval(created_ms=HOUR_MS, expires_ms=99 * HOUR_MS)
_SHORT = an_approval(created_ms=HOUR_MS, expires_ms=12 * HOUR_MS)


@pytest.mark.parametrize(
    ("person", "approval", "now", "judged"),
    [
        (a_person(), _LISTED, 10, None),
        (on_a_list(), _LISTED, 10.5, 0),
        (on_a_list(), _LISTED, 11, None),
        (on_a_list(has_digest=False), _LISTED, 10.5, 0),
        # What came after the list is told as soon as that is an hour old.
        (on_a_list(), _LATE, 10.5, 11 * HOUR_MS),
        # A list that comes within the hour has it.
        (a_person(next_ms=11 * HOUR_MS), _LISTED, 10.5, 0),
        (a_person(next_ms=10 * HOUR_MS), _LISTED, 10.5, 0),
        (a_person(next_ms=11 * HOUR_MS), _LISTED, 10, None),
        (a_person(next_ms=11 * HOUR_MS, attempts=1), _LISTED, 10.5, None),
        (a_person(next_ms=11 * HOUR_MS, has_digest=False), _LISTED, 10.5, None),
        # One that comes after the deadline, or just before it, is too late.
        (a_person(next_ms=12 * HOUR_MS), _SHORT, 11.5, None),
        (a_person(next_ms=12 * HOUR_MS - 60_000), _SHORT, 11.5, None),
    ],
)
def test_a_reminder_is_left_to_a_list(
    person: PersonRecord, approval: Approval, now: float, judged: int | None
) -> None:
    assert left_to_list(person, approval, round(now * HOUR_MS)) == judged


def test_what_would_expire_before_the_hour_is_over_is_told_now() -> None:
    late = an_approval(approval_id="apr_late", created_ms=10 * HOUR_MS + 1, expires_ms=11 * HOUR_MS)
    assert left_to_list(on_a_list(), late, round(10.5 * HOUR_MS)) is None


async def test_never_a_list_and_a_reminder_in_one_hour(storage: SqliteStores) -> None:
    """A day of many reminders for one person, in steps of five minutes."""
    office = an_office(storage, SECURITY, has_lists=True)
    office.directory.channels["C1"] = frozenset({MIA, SAM})
    for user_id in (MIA, SAM):
        office.directory.add(user_id, timezone="Etc/UTC")
    office.clock.forward(minutes=5)
    await office.hear(ASK)
    moments: list[tuple[int, str]] = []
    for _ in range(20 * 12):
        seen, lists = len(office.notifier.told), len(office.board.sent)
        office.clock.forward(minutes=5)
        await office.digests.step()
        await office.sweep.tick()
        await office.queue.run()
        for kind, names, _ in told(office)[seen:]:
            if MIA in names and kind == "reminder":
                moments.append((office.clock(), "reminder"))
        if any(one.startswith(f"T1:{MIA}:") for one in office.board.sent[lists:]):
            moments.append((office.clock(), "list"))
    kinds = [kind for _, kind in moments]
    assert {"list", "reminder"} <= {*kinds}
    lists_at = [at for at, kind in moments if kind == "list"]
    reminders = [at for at, kind in moments if kind == "reminder"]
    assert min(abs(a - b) for a in lists_at for b in reminders) >= HOUR_MS


async def test_the_others_of_a_reminder_are_reminded(storage: SqliteStores) -> None:
    office = an_office(storage, SECURITY, has_lists=True)
    await office.hear(ASK)
    approval = await office.the_approval()
    await keep(office, MIA, digest_ms=office.clock() + 60_000, digest_day="2027-01-15")
    await keep(office, SAM, has_digest=False)
    await later(office, minutes=15)
    assert [one for one in told(office) if one[0] == "reminder"] == [("reminder", [SAM], "")]
    assert approval.escalation.mentioned == (MIA, SAM)
    assert await story(office.storage, thread_id=THREAD_ID)


async def test_of_a_morning_after_quiet_hours_one_list_comes_in_place_of_all(
    storage: SqliteStores,
) -> None:
    office = lists_office(storage, "2026-11-23 23:00")
    await keep(office, ADA, **NIGHT)
    for number in range(3):
        await ask(office, number)
    await pass_time(office, hours=8, minutes=30)
    assert sent(office) == [f"{ADA}:2026-11-24"]


CLARIFY = call("ask_people", {"questions": ["Which Mia?"]}, id="c1")


async def a_question(storage: SqliteStores, *, hours: float, **more: Any) -> Office:
    office = Office(storage, [CLARIFY, say("Paid.")], **more)
    office.directory.add(ROSA, timezone="Etc/UTC")
    office.clock.forward(hours=hours)
    await office.hear(ASK)
    assert (await office.the_approval()).kind is Kind.QUESTION
    return office


async def test_who_is_to_answer_is_reminded_of_it_after_their_night(
    storage: SqliteStores,
) -> None:
    await storage.people.add(a_person(ROSA, **NIGHT))
    office = await a_question(storage, hours=22)  # it is six in the morning
    await later(office, minutes=15)
    await later(office, minutes=30)
    assert office.notifier.reminders == []
    await later(office, minutes=16)
    assert len(office.notifier.reminders) == 1


async def test_a_question_is_reminded_of_an_hour_after_a_list(storage: SqliteStores) -> None:
    office = await a_question(storage, hours=1, has_lists=True)
    await keep(office, ROSA, digest_ms=office.clock(), digest_day="2027-01-15")
    await later(office, minutes=45)
    assert office.notifier.reminders == []
    await later(office, minutes=16)
    assert len(office.notifier.reminders) == 1
    assert (await person(office, ROSA)).reminded_ms == office.clock()


async def until_eight(office: Office) -> None:
    """From a quarter to midnight to ten past eight, with all that a tick does."""
    for _ in range(50):
        office.clock.forward(minutes=10)
        await office.digests.step()
        await office.sweep.tick()
        await office.queue.run()


def lists_to(office: Office, user_id: str) -> int:
    return len([one for one in office.board.sent if one.startswith(f"T1:{user_id}:")])


async def test_a_list_takes_the_place_of_mentions_that_a_night_has_delayed(
    storage: SqliteStores,
) -> None:
    night = {"from": "20:00", "until": "08:00", "timezone": "Etc/UTC"}
    quiet = {**SECURITY, "remind": "never"}
    office = await at_night(storage, quiet, file={"quiet": night}, has_lists=True)
    assert mentioned(await office.the_approval()) == []
    await keep(office, SAM, has_digest=False)
    await until_eight(office)
    assert (lists_to(office, MIA), lists_to(office, SAM)) == (1, 0)
    assert told(office) == [("mention", [SAM], "")]


async def test_a_list_takes_the_place_of_what_waited_for_the_end_of_own_hours(
    storage: SqliteStores,
) -> None:
    office = await at_night(storage, {**SECURITY, "remind": "never"}, MIA, has_lists=True)
    assert snoozed(await office.the_approval()) == [MIA]
    await until_eight(office)
    assert lists_to(office, MIA) == 1
    assert told(office) == []


async def test_a_snooze_ends_with_a_message_though_a_list_has_it(storage: SqliteStores) -> None:
    office = an_office(storage, {**SECURITY, "remind": "never"}, has_lists=True)
    await office.hear(ASK)
    approval = await office.the_approval()
    changed = approval.changed(snoozes={MIA: office.clock() + HOUR_MS})
    approvals = office.storage.approvals
    await write(approvals, approval.key, annotated, judged=changed, now_ms=office.clock())
    await office.queue.run()
    await keep(office, MIA, digest_ms=office.clock() + HOUR_MS // 2, digest_day="2027-01-15")
    await later(office, minutes=61)
    assert told(office) == [("snooze_over", [MIA], MIA)]


async def test_a_step_of_the_ladder_is_never_left_to_a_list(storage: SqliteStores) -> None:
    steps = {**SECURITY, "remind": "never", "escalate": [{"after": "1h", "add": ["leads"]}]}
    office = an_office(storage, steps, has_lists=True)
    await office.hear(ASK)
    await keep(office, LIA, digest_ms=office.clock() + HOUR_MS // 2, digest_day="2027-01-15")
    await later(office, minutes=61)
    assert told(office) == [("escalation", [LIA], "")]


async def test_what_is_new_is_told_at_once_whatever_list_comes(storage: SqliteStores) -> None:
    office = an_office(storage, SECURITY, has_lists=True)
    approval = an_approval(created_ms=office.clock(), expires_ms=office.clock() + HOUR_MS)
    await keep(office, MIA, digest_ms=office.clock(), digest_day="2027-01-15")
    assert await office.plans.covered(approval, [MIA], is_first=True) == {}


async def test_while_the_database_does_not_answer_all_are_reminded(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, SECURITY, has_lists=True)
    await office.hear(ASK)
    approval = await office.the_approval()

    async def fail(team_id: str, user_ids: object) -> dict[str, PersonRecord]:
        raise StoreUnavailableError(f"{team_id}{user_ids}")

    office.plans.storage.people.of = fail  # type: ignore[method-assign]
    assert await office.plans.covered(approval, [MIA]) == {}
    assert await office.plans.reminded_later(approval, MIA) == 0
    await office.digests.step()
    assert office.board.sent == []


async def test_a_group_that_cannot_be_looked_up_keeps_nobody_else_from_a_list(
    storage: SqliteStores,
) -> None:
    office = lists_office(storage, "2026-11-23 08:00")
    await ask(office, 1, terms())
    await ask(office, 2)
    known = office.directory.group_members

    async def down(group_id: str) -> frozenset[str]:
        raise DirectoryError(group_id)

    office.directory.group_members = down  # type: ignore[method-assign]
    await pass_time(office, minutes=5)
    assert {*await storage.people.of("T1", [ADA, BEN])} == {ADA}
    office.directory.group_members = known  # type: ignore[method-assign]
    await pass_time(office, minutes=5)
    assert {*await storage.people.of("T1", [ADA, BEN])} == {ADA, BEN}


async def test_an_unknown_time_zone_keeps_nobody_else_from_a_list(
    storage: SqliteStores,
) -> None:
    office = lists_office(storage, "2026-11-23 08:00")
    approval = await ask(office, 1)
    start = datetime(2026, 11, 1)  # noqa: DTZ001 - local
    duty = Rotation(start=start, every="1d", people=(ADA,), timezone="Mars/Base")
    groups = dict.fromkeys(approval.terms.groups, Group(rotation=duty))
    nowhere = approval.terms.model_copy(update={"groups": groups})
    broken = approval.changed(approval_id="apr_broken", terms=nowhere)
    await storage.approvals.insert(broken)
    await pass_time(office, hours=2)
    assert sent(office) == [f"{ADA}:2026-11-23"]


async def test_more_than_a_page_that_waits_is_looked_through(storage: SqliteStores) -> None:
    office = lists_office(storage, "2026-11-23 08:00")
    for number in range(101):
        await ask(office, number, terms(SAM))
    await ask(office, 200, terms(ADA, expires_s=6 * 86_400))
    await pass_time(office, minutes=3)
    assert ADA in await storage.people.of("T1", [ADA])


async def test_what_is_newer_than_the_list_is_told_when_its_hour_is_over(
    storage: SqliteStores,
) -> None:
    office = an_office(
        storage, {**SECURITY, "remind": {"after": "15m", "times": 1}}, has_lists=True
    )
    posted = PostedDigest(ts="1.1", ids=("apr_other",), total=1)
    for name in (MIA, SAM):
        changes = {"digest_ms": office.clock(), "digest_day": "2027-01-15", "posted": posted}
        await keep(office, name, **changes)
    office.clock.forward(minutes=10)
    await office.hear(ASK)
    await later(office, minutes=16)
    assert told(office) == []
    await later(office, minutes=33)
    assert told(office) == []
    await later(office, minutes=2)
    assert {(kind, user) for kind, _, user in told(office)} == {
        ("snooze_over", MIA),
        ("snooze_over", SAM),
    }


async def test_a_delegate_who_sleeps_is_told_in_the_morning(storage: SqliteStores) -> None:
    office = an_office(
        storage, {"approve": [{"from": ["leads"]}], "expires": "24h", "remind": "never"}
    )
    office.clock.forward(hours=15.75)
    await keep(office, SAM, **NIGHT)
    await office.lend(LIA)
    await office.lend(LIA, SAM)
    await office.hear(ASK)
    approval = await office.the_approval()
    assert (mentioned(approval), snoozed(approval)) == ([], [SAM])
    await until_seven(office)
    assert ("snooze_over", [SAM], SAM) in told(office)
