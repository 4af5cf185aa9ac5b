"""The terms of requests whose people the settings or code name."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.people.lookup import PeopleLookup
from bot.policy.named_terms import NamedPeople, named_terms
from bot.records.approval import Approval
from bot.records.terms import Group
from tests.contract.builders import an_approval
from tests.support.fakes import FakeClock, FakeDirectory
from tests.unit.bot.office import ADA, BEN

NAMED = NamedPeople(
    approvers=(ADA,),
    backups=(BEN,),
    exclude=("requesters",),
    expires=timedelta(hours=8),
    remind=timedelta(minutes=15),
    escalate=timedelta(hours=1),
    max_age=timedelta(minutes=15),
)


@pytest.mark.parametrize(
    ("remind", "expires", "minutes"),
    [
        (15, 480, (15, 45, 105, 225, 465)),
        (15, 45, (15,)),  # a reminder at the deadline would come too late
        (15, 46, (15, 45)),
        (480, 480, ()),
    ],
)
def test_reminders_come_until_the_expiry_and_each_wait_is_twice_as_long(
    remind: int, expires: int, minutes: tuple[int, ...]
) -> None:
    named = replace(NAMED, remind=timedelta(minutes=remind), expires=timedelta(minutes=expires))
    terms = named_terms(named)
    before = [after_s // 60 for after_s in terms.reminders_s if after_s < terms.expires_s]
    assert tuple(before) == minutes


def under_named_terms() -> Approval:
    return an_approval(terms=named_terms(NAMED, rule="code"))


class OtherPolicy:
    """A policy file with a group of the same name, for other people."""

    file_hash, timezone = "f" * 64, ""

    def groups(self) -> dict[str, Group]:
        return {"approvers": Group(users=(BEN,))}

    def defaults(self, _: str) -> None:
        return

    async def denied(self, _: Approval) -> str:
        return ""


async def test_i13_a_policy_that_changes_changes_nothing_about_who_is_named() -> None:
    terms = named_terms(NAMED)
    lookup = PeopleLookup(FakeDirectory(), OtherPolicy(), FakeClock())
    snapshot = await lookup.snapshot_of(under_named_terms(), terms, people=(), groups=terms.groups)
    assert snapshot.members == {"code:approvers": {ADA}, "code:backups": {BEN}}
