"""A stage for lists: people, and requests that wait for them by name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from bot.records.approval import Approval
from bot.records.people import PersonRecord
from bot.records.terms import Group, Requirement, Stage, Terms
from bot.stores import Stores
from tests.contract.builders import an_approval
from tests.support.fakes import FakeClock
from tests.unit.bot.office import ADA, BEN, ROSA, Office

MIA, SAM = "UMIA", "USAM"
DAY_MS = 86_400_000
MONDAY = "2026-11-23 "


def ms(text: str) -> int:
    """A moment in UTC."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def terms(*users: str, **changes: Any) -> Terms:
    """Anybody of these can decide; without any, the user group of Ada and Ben."""
    group = Group(users=users) if users else Group(usergroups=("S0SRE",))
    known: dict[str, Any] = {
        "rules": ("pay",),
        "stages": (Stage(approve=(Requirement(name="sre", groups=("sre",)),)),),
        "groups": {"sre": group},
        "expires_s": 3 * 86_400,
    }
    return Terms(**{**known, **changes})


def lists_office(storage: Stores, now: str, **more: Any) -> Office:
    """An office whose people are sent lists; everybody is in UTC."""
    more = {"clock": FakeClock(ms(now)), **more}
    office = Office(storage, [], has_lists=True, **more)
    for user_id in (ROSA, ADA, BEN, MIA, SAM):
        office.directory.add(user_id, timezone="Etc/UTC")
    office.directory.groups["S0SRE"] = frozenset({ADA, BEN})
    office.directory.channels["C1"] = frozenset({ROSA, ADA, BEN, MIA, SAM})
    return office


async def ask(office: Office, number: int, asked: Terms | None = None, **changes: Any) -> Approval:
    """Put a request on record that waits."""
    asked, now = asked or terms(ADA), office.clock()
    approval = an_approval(
        approval_id=f"apr_{number:016x}",
        interrupt_id=f"{number:016x}",
        title=f"Pay {number}",
        position=number,
        requester_id=ROSA,
        terms=asked,
        created_ms=now,
        expires_ms=now + asked.expires_s * 1000 + number,
        **changes,
    )
    await office.storage.approvals.insert(approval)
    return approval


async def pass_time(
    office: Office, *, minutes: float = 0, hours: float = 0, every: float = 5
) -> None:
    """Let time pass in steps, with a tick after each."""
    left = minutes + 60 * hours
    while True:
        await office.digests.step()
        await office.queue.run()
        if left <= 0:
            return
        step = min(every, left)
        office.clock.forward(minutes=step)
        left -= step


async def person(office: Office, user_id: str = ADA) -> PersonRecord:
    """What is kept of somebody."""
    return (await office.storage.people.of("T1", [user_id]))[user_id]


async def keep(office: Office, user_id: str = ADA, **changes: Any) -> None:
    """Change what is kept of somebody."""
    people = office.storage.people
    assert await people.change("T1", user_id, lambda before: before.changed(**changes))


def sent(office: Office) -> list[str]:
    """The lists that were posted, each by its reader and day."""
    return [one.removeprefix("T1:") for one in office.board.sent]
