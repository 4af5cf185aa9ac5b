"""One list a day of what waits: when it comes, to whom, once, and true afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bot.approvals.overview import HomeData, HomeDataReader
from bot.errors import DeliveryError
from bot.notifications.digest_worker import MOST_LINES
from bot.records.approval import Decision, Status
from bot.records.people import PersonRecord, PostedDigest
from bot.records.terms import QuietHours
from tests.contract.builders import an_approval
from tests.contract.spoiling import spoil
from tests.support.decided import decide
from tests.support.stores import SqliteStores
from tests.unit.bot.notifications.lists_stage import (
    MIA,
    ask,
    keep,
    lists_office,
    pass_time,
    person,
    sent,
    terms,
)
from tests.unit.bot.office import ADA, BEN, ROSA, Office, an_actor

MONDAY = "2026-11-23"


@pytest.fixture
async def storage() -> SqliteStores:
    storage = SqliteStores(None)
    await storage.open()
    return storage


def titles(office: Office, key: str) -> list[str]:
    return [one.approval.title for one in office.board.lists[f"T1:{key}"].items]


async def test_it_comes_at_the_beginning_of_a_day_with_what_waits(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 06:00")
    await ask(office, 2)
    await ask(office, 1)
    await pass_time(office, hours=2, minutes=55)
    assert sent(office) == []
    await pass_time(office, minutes=10)
    assert sent(office) == [f"{ADA}:2026-11-23"]
    assert titles(office, sent(office)[0]) == ["Pay 1", "Pay 2"]


async def test_there_is_none_where_nothing_waits_any_more(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 06:00")
    approval = await ask(office, 1)
    await pass_time(office, minutes=5)
    assert (await person(office)).next_ms is not None
    await approve(office, approval.approval_id)
    await pass_time(office, hours=8)
    assert sent(office) == []
    assert ((await person(office)).next_ms, (await person(office)).due_ms) == (None, None)


async def approve(office: Office, approval_id: str, *, by: str = BEN) -> None:
    approval = await office.storage.approvals.get(approval_id)
    decision = Decision(
        status=Status.APPROVED,
        by=by,
        at_ms=office.clock(),
        arguments=approval.arguments,
        digest=approval.digest,
    )
    await decide(office.storage.approvals, approval_id, decision, digest=approval.digest)


async def test_i14_who_is_named_behind_much_else_has_a_list_too(storage: SqliteStores) -> None:
    """Behind 600 that others decide, some of which cannot be read."""
    office = lists_office(storage, f"{MONDAY} 06:00")
    first = await ask(office, 1, terms(BEN, expires_s=10 * 3_600))
    others = [
        first.changed(approval_id=f"apr_{number:032x}", interrupt_id=f"{number:016x}")
        for number in range(600)
    ]
    await storage.approvals.insert(*others)
    for one in others[3:90:29]:
        await spoil(storage, "approvals", one.approval_id, v=2)
    await ask(office, 2, terms(MIA, expires_s=20 * 3_600))
    await pass_time(office, hours=3, minutes=5, every=60)
    assert f"{MIA}:2026-11-23" in sent(office)


async def test_everybody_has_a_morning_of_their_own(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 00:30")
    office.directory.add(ADA, timezone="Asia/Tokyo")
    office.directory.add(BEN, timezone="America/New_York")
    await ask(office, 1, terms(ADA, BEN, MIA))
    posted: dict[str, int] = {}
    for hour in range(1, 32):
        await pass_time(office, hours=1, every=30)
        posted.update({one: hour for one in sent(office) if one not in posted})
    assert posted == {
        f"{MIA}:2026-11-23": 9,
        f"{BEN}:2026-11-23": 14,
        f"{ADA}:2026-11-24": 24,
        # 09:00 in Tokyo is midnight here: the first morning of the list had begun before.
    }


async def test_a_week_has_one_list_a_working_day(storage: SqliteStores) -> None:
    house = QuietHours(start="18:00", until="08:00", days=("sat", "sun"), timezone="Etc/UTC")
    office = lists_office(storage, f"{MONDAY} 07:00")
    await ask(office, 1, terms(ADA, quiet=house, expires_s=14 * 86_400))
    await pass_time(office, hours=24 * 8, every=30)
    days = ["23", "24", "25", "26", "27", "30"]
    assert sent(office) == [f"{ADA}:2026-11-{day}" for day in days]
    newest, *older = [office.board.lists[f"T1:{one}"] for one in reversed(sent(office))]
    assert not newest.is_replaced
    assert all(one.is_replaced for one in older)


async def test_it_comes_at_once_when_five_wait(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 14:00")
    for number in range(4):
        await ask(office, number)
    await pass_time(office, minutes=10)
    assert sent(office) == []
    await ask(office, 4)
    await pass_time(office, minutes=2, every=1)
    assert sent(office) == [f"{ADA}:2026-11-23"]
    for number in range(5, 15):
        await ask(office, number)
    await pass_time(office, hours=9, every=30)
    assert sent(office) == [f"{ADA}:2026-11-23"]
    await pass_time(office, hours=11, every=30)
    assert sent(office)[1:] == [f"{ADA}:2026-11-24"]


async def test_who_asked_for_it_gets_none(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 14:00")
    for number in range(6):
        await ask(office, number, terms(ADA, ROSA))
    await pass_time(office, minutes=3, every=1)
    assert sent(office) == [f"{ADA}:2026-11-23"]
    assert await storage.people.of("T1", [ROSA]) == {}


async def test_five_that_they_cannot_decide_are_no_five(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 14:00")
    for number in range(6):
        await ask(office, number, counted=(ADA,))
    await pass_time(office, minutes=30)
    assert sent(office) == []
    assert (await person(office)).digest_day == ""


async def test_of_many_the_first_are_lines_and_the_rest_is_counted(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 14:00")
    for number in range(MOST_LINES + 3):
        await ask(office, number)
    await pass_time(office, minutes=1)
    shown = office.board.lists[f"T1:{ADA}:2026-11-23"]
    assert (len(shown.items), shown.total) == (MOST_LINES, MOST_LINES + 3)
    assert shown.last_ms > shown.items[-1].approval.expires_ms


async def test_members_of_a_user_group_are_named_by_it_those_of_a_channel_are_not(
    storage: SqliteStores,
) -> None:
    office = lists_office(storage, f"{MONDAY} 08:00")
    await ask(office, 1, terms())
    room = terms(ADA).groups["sre"].model_copy(update={"users": (), "channels": ("C1",)})
    await ask(office, 2, terms(ADA, groups={"sre": room}))
    await pass_time(office, hours=2)
    assert sorted(sent(office)) == [f"{ADA}:2026-11-23", f"{BEN}:2026-11-23"]


async def test_who_is_away_gets_none_and_whom_they_asked_to_decide_gets_it(
    storage: SqliteStores,
) -> None:
    office = lists_office(storage, f"{MONDAY} 08:00")
    await office.lend(ADA)
    await office.lend(ADA, MIA)
    await ask(office, 1)
    await pass_time(office, hours=2)
    assert sent(office) == [f"{MIA}:2026-11-23"]


async def test_who_wants_none_gets_none(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:00")
    await keep(office, has_digest=False)
    for number in range(6):
        await ask(office, number)
    await pass_time(office, hours=30)
    assert sent(office) == []


@pytest.mark.parametrize("changes", [{"is_deleted": True}, {"is_guest": True}])
async def test_who_has_no_say_any_more_gets_none(
    storage: SqliteStores, changes: dict[str, bool]
) -> None:
    office = lists_office(storage, f"{MONDAY} 08:00")
    await ask(office, 1)
    await pass_time(office, minutes=5)
    office.directory.add(ADA, timezone="Etc/UTC", **changes)
    await pass_time(office, hours=3)
    assert sent(office) == []


async def test_quiet_hours_keep_even_five_back(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 23:00")
    await keep(office, quiet_from="22:00", quiet_until="07:00", timezone="Etc/UTC")
    for number in range(6):
        await ask(office, number)
    await pass_time(office, hours=7, minutes=55)
    assert sent(office) == []
    await pass_time(office, minutes=10)
    assert sent(office) == [f"{ADA}:2026-11-24"]


async def test_it_waits_an_hour_after_a_reminder(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:00")
    approval = await ask(office, 1, terms(ADA, risk="high"))
    await pass_time(office, minutes=40)
    assert await office.plans.covered(approval, [ADA]) == {}
    await pass_time(office, minutes=55)
    assert sent(office) == []
    await pass_time(office, minutes=10)
    assert sent(office) == [f"{ADA}:2026-11-23"]


async def test_two_processes_send_one(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:00")
    other = lists_office(storage, f"{MONDAY} 08:00", clock=office.clock, board=office.board)
    await ask(office, 1)
    for _ in range(30):
        await asyncio.gather(office.digests.step(), other.digests.step())
        office.clock.forward(minutes=5)
    assert sent(office) == [f"{ADA}:2026-11-23"]


async def test_a_process_that_dies_with_the_post_leaves_it_to_the_next(
    storage: SqliteStores,
) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    await ask(office, 1)
    await pass_time(office, minutes=4, every=1)

    async def die(*_: object, **__: object) -> None:
        raise KilledError

    office.board.show = die  # type: ignore[assignment,method-assign]
    office.clock.forward(minutes=1)
    with pytest.raises(KilledError):
        await office.digests.step()
    assert (await person(office)).digest_day == "2026-11-23"
    after = lists_office(storage, f"{MONDAY} 09:02")
    await pass_time(after, minutes=2, every=1)
    assert sent(after) == [f"{ADA}:2026-11-23"]
    await pass_time(after, hours=10)
    assert sent(after) == [f"{ADA}:2026-11-23"]


class KilledError(BaseException):
    """The process ends here."""


async def test_a_post_whose_answer_was_lost_is_found_not_repeated(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    await ask(office, 1)
    office.board.lost = True
    await pass_time(office, minutes=10)
    office.board.lost = False
    await pass_time(office, minutes=40)
    assert sent(office) == [f"{ADA}:2026-11-23"]
    assert (await person(office)).posted


async def test_a_process_that_was_down_in_the_morning_sends_it_when_it_is_back(
    storage: SqliteStores,
) -> None:
    office = lists_office(storage, f"{MONDAY} 06:00")
    await ask(office, 1)
    await pass_time(office, minutes=5)
    later = lists_office(storage, f"{MONDAY} 11:20")
    await pass_time(later)
    assert sent(later) == [f"{ADA}:2026-11-23"]


async def test_who_cannot_be_messaged_is_not_tried_for_ever(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    await ask(office, 1)
    office.board.fault = DeliveryError("conversations.open", "user_not_found")
    await pass_time(office, minutes=10)
    found = await person(office)
    assert (found.posted, found.digest_ms, found.attempts) == (None, 0, 0)
    approval = await storage.approvals.get(f"apr_{1:016x}")
    assert await office.plans.covered(approval, [ADA]) == {}  # so they are reminded


async def test_while_slack_is_down_reminders_do_not_count_on_it(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    approval = await ask(office, 1)
    office.board.fault = DeliveryError("chat.postMessage", "fatal_error")
    await pass_time(office, minutes=10)
    assert (await person(office)).attempts > 0
    office.board.fault = None
    assert approval.approval_id
    await pass_time(office, minutes=30)
    assert sent(office) == [f"{ADA}:2026-11-23"]


async def test_people_who_cannot_be_looked_up_wait_for_theirs(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    await ask(office, 1)
    await pass_time(office, minutes=2, every=1)
    office.directory.is_down = True
    await pass_time(office, minutes=10)
    assert sent(office) == []
    office.directory.is_down = False
    await pass_time(office, minutes=30)
    assert sent(office) == [f"{ADA}:2026-11-23"]


async def test_a_list_says_what_became_of_its_lines(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    first, second = await ask(office, 1), await ask(office, 2)
    await pass_time(office, minutes=10)
    key = f"T1:{ADA}:2026-11-23"
    await approve(office, first.approval_id)
    await pass_time(office, minutes=2)
    shown = office.board.lists[key]
    assert [(one.approval.status, one.waits) for one in shown.items] == [
        (Status.APPROVED, False),
        (Status.PENDING, True),
    ]
    assert not shown.is_over
    await approve(office, second.approval_id)
    await pass_time(office, minutes=2)
    assert office.board.lists[key].is_over
    found = await person(office)
    assert found.posted is None
    assert found.due_ms == found.next_ms  # tomorrow's alone


async def test_a_list_that_cannot_be_corrected_now_is_corrected_later(
    storage: SqliteStores,
) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    approval = await ask(office, 1)
    await pass_time(office, minutes=10)
    await approve(office, approval.approval_id)
    office.board.fault = DeliveryError("chat.update", "fatal_error")
    await pass_time(office, minutes=3)
    assert (await person(office)).posted
    office.board.fault = None
    await pass_time(office, minutes=3)
    assert office.board.lists[f"T1:{ADA}:2026-11-23"].is_over
    assert not (await person(office)).posted


async def test_a_line_whose_record_was_deleted_is_left_out(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    await ask(office, 1)
    await pass_time(office, minutes=10)
    found = await person(office)
    assert found.posted is not None
    assert found.posted.ids == (f"apr_{1:016x}",)
    await keep(office, posted=found.posted.model_copy(update={"ids": ("apr_gone",)}))
    await pass_time(office, minutes=3)
    assert office.board.lists[f"T1:{ADA}:2026-11-23"].items == []


async def test_who_went_to_another_zone_gets_it_in_their_morning_there(
    storage: SqliteStores,
) -> None:
    office = lists_office(storage, f"{MONDAY} 08:00")
    await ask(office, 1)
    await pass_time(office, minutes=5)
    office.directory.add(ADA, timezone="America/New_York")
    await pass_time(office, hours=5, minutes=50)
    assert sent(office) == []
    await pass_time(office, minutes=15)
    assert sent(office) == [f"{ADA}:2026-11-23"]


async def test_others_who_are_at_work_for_the_same_person_are_left_alone(
    storage: SqliteStores,
) -> None:
    office = lists_office(storage, f"{MONDAY} 08:00")
    await ask(office, 1)
    await pass_time(office, minutes=5)
    before = await person(office)
    await keep(office, has_digest=False)
    await office.digests.attend(before)
    assert (await person(office)).revision == before.revision + 1


async def test_who_lost_its_lease_leaves_the_list_to_who_has_it(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    await ask(office, 1)
    await pass_time(office, minutes=4, every=1)
    office.clock.forward(minutes=1)
    overviews, lease_ms = office.digests.overviews, office.clock() + 15_000

    async def overtake(*args: Any, **kwargs: Any) -> HomeData:
        """Another process has claimed the day meanwhile, and is about to post."""
        found = await HomeDataReader.of(overviews, *args, **kwargs)
        await keep(
            office, digest_day="2026-11-23", digest_ms=1, posted=PostedDigest(), due_ms=lease_ms
        )
        return found

    office.digests.overviews = SlowOverviews(overviews, overtake)  # type: ignore[assignment]
    await office.digests.attend(await person(office))
    kept = await person(office)
    assert (sent(office), kept.due_ms, kept.digest_ms) == ([], lease_ms, 1)


class SlowOverviews:
    """Overviews that take long: something happens meanwhile."""

    def __init__(self, overviews: HomeDataReader, of: Callable[..., Awaitable[HomeData]]) -> None:
        self.directory, self.policy, self.of = overviews.directory, overviews.policy, of


async def test_a_reminder_between_the_look_and_the_claim_goes_first(
    storage: SqliteStores,
) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    await ask(office, 1)
    await pass_time(office, minutes=4, every=1)
    office.clock.forward(minutes=1)
    overviews = office.digests.overviews

    async def remind(*args: Any, **kwargs: Any) -> HomeData:
        found = await HomeDataReader.of(overviews, *args, **kwargs)
        await keep(office, reminded_ms=office.clock())
        return found

    office.digests.overviews = SlowOverviews(overviews, remind)  # type: ignore[assignment]
    await office.digests.attend(await person(office))
    assert sent(office) == []
    office.digests.overviews = overviews
    await pass_time(office, minutes=55)
    assert sent(office) == []
    await pass_time(office, minutes=10)
    assert sent(office) == [f"{ADA}:2026-11-23"]


async def test_after_many_tries_another_one_comes_tomorrow(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    await ask(office, 1)
    office.board.fault = DeliveryError("chat.postMessage", "fatal_error")
    await pass_time(office, hours=14)
    found = await person(office)
    assert (found.attempts, found.posted, found.digest_ms) == (0, None, 0)
    office.board.fault = None
    await pass_time(office, hours=12)
    assert sent(office) == [f"{ADA}:2026-11-24"]


async def test_a_list_that_is_gone_is_corrected_no_more(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    approval = await ask(office, 1)
    await ask(office, 2)
    await pass_time(office, minutes=10)
    await approve(office, approval.approval_id)
    office.board.fault = DeliveryError("chat.update", "channel_not_found")
    await pass_time(office, minutes=3)
    assert (await person(office)).posted is None


async def test_a_step_at_a_time_is_enough(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    await ask(office, 1)
    await asyncio.gather(*(office.digests.step() for _ in range(5)))
    assert (await person(office)).revision == 0


async def test_people_of_another_workspace_are_not_ours(storage: SqliteStores) -> None:
    office = lists_office(storage, f"{MONDAY} 08:55")
    stranger = PersonRecord(person_id="T9:UX", team_id="T9", user_id="UX", due_ms=1)
    await storage.people.add(stranger)
    await office.digests.attend(stranger)
    assert (await storage.people.of("T9", ["UX"]))["UX"] == stranger


async def test_what_one_turn_asks_for_stands_as_on_its_card(storage: SqliteStores) -> None:
    """Their deadline is the same, and their ids are of chance."""
    office = lists_office(storage, f"{MONDAY} 08:00")
    for number in range(4):
        approval = an_approval(
            approval_id=f"apr_{9 - number:032x}",
            interrupt_id=f"{number:032x}",
            position=number,
            requester_id=ROSA,
            terms=terms(ADA),
            created_ms=office.clock(),
            expires_ms=office.clock() + 3_600_000,
        )
        await storage.approvals.insert(approval)
    found = await office.digests.overviews.of(an_actor(ADA), team_id="T1")
    assert [one.position for one in found.waiting] == [0, 1, 2, 3]
