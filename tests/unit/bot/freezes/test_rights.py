"""11.5, 11.6: who may freeze and who may lift."""

from __future__ import annotations

import pytest

from bot.errors import RefusalError
from bot.freezes.rights import FreezeAccess, FreezeRights
from bot.policy.model import PolicyFile
from bot.ports.people import Actor
from tests.support.fakes import FakeClock, FakeDirectory

ADA, MIA, LIA, TOM, BOT = "U0ADA", "U0MIA", "U0LIA", "U0TOM", "U0BOT"
GROUPS = {
    "sre": {"usergroups": ["S0SRE"]},
    "security": {"users": [MIA]},
    "leads": {"channels": ["C0LEADS"], "title": "the leads"},
}


def rights(**freeze: object) -> FreezeRights:
    rest = {"version": 1, "groups": GROUPS, "rules": [], "default": {"deny": "no"}}
    return FreezeRights.of(PolicyFile.model_validate({**rest, "freeze": freeze}))


@pytest.fixture
def directory() -> FakeDirectory:
    directory = FakeDirectory()
    for name in (ADA, MIA, LIA):
        directory.add(name)
    directory.add(TOM, is_admin=True)
    directory.add(BOT, is_bot=True)
    directory.groups["S0SRE"] = frozenset({ADA, BOT})
    directory.channels["C0LEADS"] = frozenset({LIA})
    return directory


async def refusal(directory: FakeDirectory, given: FreezeRights, user: str, *, lifts: bool) -> str:
    access = FreezeAccess(directory=directory, team_id="T1", clock=FakeClock())
    try:
        await access.check(given.lifters if lifts else given.by, Actor(user_id=user, team_id="T1"))
    except RefusalError as error:
        return error.code
    return ""


@pytest.mark.parametrize("lifts", [False, True])
async def test_without_groups_admins_may(directory: FakeDirectory, *, lifts: bool) -> None:
    assert await refusal(directory, rights(), TOM, lifts=lifts) == ""
    assert await refusal(directory, rights(), ADA, lifts=lifts) == "not_freezer"


async def test_members_of_the_groups_may_and_admins_may_not(directory: FakeDirectory) -> None:
    given = rights(by=["sre", "security"])
    people = {name: await refusal(directory, given, name, lifts=False) for name in directory.people}
    refused = "not_freezer"
    assert people == {ADA: "", MIA: "", LIA: refused, TOM: refused, BOT: "bot"}


async def test_who_may_freeze_need_not_be_able_to_lift(directory: FakeDirectory) -> None:
    given = rights(by=["sre"], lift={"from": ["leads"], "count": 2})
    assert given.count == 2
    assert await refusal(directory, given, ADA, lifts=True) == "not_freezer"
    assert await refusal(directory, given, LIA, lifts=True) == ""


async def test_who_may_freeze_may_lift_if_nobody_is_named(directory: FakeDirectory) -> None:
    assert await refusal(directory, rights(by=["sre"]), ADA, lifts=True) == ""


async def test_a_failed_look_up_refuses_all_but_people_listed_by_id(
    directory: FakeDirectory,
) -> None:
    directory.is_down = True
    given = rights(by=["sre", "security"])
    assert await refusal(directory, given, MIA, lifts=False) == ""
    assert await refusal(directory, given, ADA, lifts=False) == "lookup_failed"
    assert await refusal(directory, rights(), TOM, lifts=False) == "lookup_failed"


async def test_the_refusal_names_groups_and_the_command_line(directory: FakeDirectory) -> None:
    access = FreezeAccess(directory=directory, team_id="T1", clock=FakeClock())
    with pytest.raises(RefusalError, match=r"Only sre or the leads can do that\. On the server"):
        await access.check(rights(by=["sre", "leads"]).by, Actor(user_id=TOM, team_id="T1"))
    with pytest.raises(RefusalError, match="Only admins of this workspace"):
        await access.check(rights().by, Actor(user_id=ADA, team_id="T1"))
