"""Who counts at a click: only who is known, and is in a group then and now."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from bot.people.lookup import PeopleLookup
from bot.policy.eligibility import PeopleSnapshot
from bot.ports.people import MOST_MEMBERS, Actor
from bot.ports.policy import CurrentPolicy, NoPolicy
from bot.records.approval import Approval
from bot.records.terms import CODE, Group, Requirement, Rotation, Stage, Terms
from tests.contract.builders import an_approval
from tests.support.fakes import FakeClock, FakeDirectory

ADA, BEN, MIA = "U0ADA", "U0BEN", "U0MIA"
ROOM, DIRECT = "C0ROOM", "D0ROSA"
DUTY = Rotation.model_validate(
    {"start": "2026-11-02T09:00", "every": "12h", "people": [ADA, BEN], "timezone": "UTC"}
)


@dataclass
class Present(NoPolicy):
    """A policy in force with these groups."""

    now: Mapping[str, Group]

    def groups(self) -> Mapping[str, Group]:  # type: ignore[override]
        return self.now


def a_card(groups: Mapping[str, Group], **changes: object) -> Approval:
    """Asked under terms with these groups."""
    requirement = Requirement(name="all", groups=tuple(groups))
    terms = Terms(rules=("r",), stages=(Stage(approve=(requirement,)),), groups=dict(groups))
    card = an_approval(terms=terms, thread_id=f"T1:{ROOM}:1.1")
    return card.changed(**changes)


async def taken(
    card: Approval,
    directory: FakeDirectory,
    *,
    policy: CurrentPolicy | None = None,
    people: tuple[Actor, ...] = (),
    clock: FakeClock | None = None,
) -> PeopleSnapshot:
    terms = card.terms
    lookup = PeopleLookup(directory, policy or Present(terms.groups), clock or FakeClock())
    return await lookup.snapshot_of(
        card, terms, people=people, groups=terms.groups, patience_s=0.05
    )


async def test_of_a_rotation_only_who_is_on_duty_at_the_click_counts() -> None:
    clock = FakeClock()
    card = a_card({"duty": Group(rotation=DUTY)})
    members = []
    for _ in range(2):
        members.append((await taken(card, FakeDirectory(), clock=clock)).members["duty"])
        clock.forward(hours=12)
    assert sorted(map(sorted, members)) == [[ADA], [BEN]]


async def test_of_a_zone_that_is_not_known_here_nobody_knows_who_is_on_duty() -> None:
    lost = DUTY.model_copy(update={"timezone": "Mars/Olympus"})
    snapshot = await taken(a_card({"duty": Group(rotation=lost)}), FakeDirectory())
    assert not snapshot.knows(groups=["duty"])


async def test_here_is_nobody_in_a_direct_message() -> None:
    directory = FakeDirectory(channels={DIRECT: frozenset({ADA})})
    members = {DIRECT: (ADA,)}
    card = a_card({"all": Group(here=True)}, members=members, thread_id=f"T1:{DIRECT}:1.1")
    assert (await taken(card, directory)).members["all"] == frozenset()


@pytest.mark.parametrize("extra", [0, 1])
async def test_a_channel_counts_up_to_so_many_members(extra: int) -> None:
    crowd = [f"U{number}" for number in range(MOST_MEMBERS + extra - 1)] + [ADA]
    directory = FakeDirectory(channels={ROOM: frozenset(crowd)})
    card = a_card({"all": Group(channels=(ROOM,))}, members={ROOM: tuple(crowd)})
    members = (await taken(card, directory)).members["all"]
    assert len(members) == (0 if extra else MOST_MEMBERS)


@pytest.mark.parametrize("noted", [None, {}])
async def test_members_that_nobody_noted_when_it_was_asked_do_not_count(noted: object) -> None:
    directory = FakeDirectory(channels={ROOM: frozenset({ADA})})
    card = a_card({"all": Group(channels=(ROOM,))}, members=noted)
    assert (await taken(card, directory)).members["all"] == frozenset()


async def test_a_group_that_was_deleted_is_nobody_even_if_slack_does_not_answer() -> None:
    directory = FakeDirectory(is_down=True)
    card = a_card({"all": Group(usergroups=("S0SRE",))})
    assert (await taken(card, directory, policy=Present({}))).members["all"] == frozenset()
    assert "all" not in (await taken(card, directory)).members


async def test_groups_of_code_are_not_looked_for_in_the_file() -> None:
    card = a_card({CODE + "lead": Group(users=(ADA,))})
    snapshot = await taken(card, FakeDirectory(), policy=Present({}))
    assert snapshot.members[CODE + "lead"] == {ADA}


async def test_what_is_late_is_not_known() -> None:
    class Slow(FakeDirectory):
        async def group_members(self, group_id: str) -> frozenset[str]:
            await asyncio.Event().wait()
            raise AssertionError(group_id)

    card = a_card({"all": Group(users=(ADA,), usergroups=("S0SRE",))})
    assert "all" not in (await taken(card, Slow())).members
