"""Who may decide, answer, ask: every refusal says why, and a failed look-up refuses."""

import pytest

from bot.access import Access
from bot.errors import DirectoryError, NotApproverError
from storage.records import Kind
from tests.contract.builders import an_approval
from tests.fakes import FakeDirectory
from tests.unit.bot.office import ADA, BEN, GUS, ROSA, an_actor

APPROVAL = an_approval(requester_id=ROSA)


@pytest.fixture
def directory() -> FakeDirectory:
    directory = FakeDirectory()
    for user_id in (ROSA, ADA, BEN):
        directory.add(user_id)
    directory.add(GUS, is_guest=True)
    directory.add("UAPP", is_bot=True)
    directory.add("UGONE", is_deleted=True)
    directory.add("UEXT", is_external=True, team_id="T2")
    directory.channels["C1"] = frozenset({ROSA, ADA, GUS, "UAPP", "UGONE", "UEXT"})
    directory.groups["SONCALL"] = frozenset({BEN})
    return directory


async def refusal(directory: FakeDirectory, approval: object, actor: object) -> str:
    with pytest.raises(NotApproverError) as caught:
        await Access(directory).check_decider(approval, actor)  # type: ignore[arg-type]
    return caught.value.reason


async def test_a_member_of_the_channel_may_decide(directory: FakeDirectory) -> None:
    await Access(directory).check_decider(APPROVAL, an_actor(ADA))


@pytest.mark.parametrize(
    ("user_id", "word"),
    [
        (ROSA, "you asked"),
        (BEN, "not among"),
        (GUS, "guests"),
        ("UAPP", "apps"),
        ("UGONE", "deactivated"),
        ("UEXT", "this workspace"),
    ],
)
async def test_others_are_told_why_not(directory: FakeDirectory, user_id: str, word: str) -> None:
    assert word in await refusal(directory, APPROVAL, an_actor(user_id))


async def test_somebody_from_another_workspace_may_not(directory: FakeDirectory) -> None:
    assert "this workspace" in await refusal(directory, APPROVAL, an_actor(ADA, "T2"))


async def test_without_a_team_in_the_payload_the_look_up_counts(directory: FakeDirectory) -> None:
    await Access(directory).check_decider(APPROVAL, an_actor(ADA, ""))
    directory.add("UADA", team_id="T9")
    assert "this workspace" in await refusal(directory, APPROVAL, an_actor(ADA, ""))


async def test_the_requester_may_where_the_settings_say_so(directory: FakeDirectory) -> None:
    approval = an_approval(requester_id=ROSA, self_approval=True)
    await Access(directory).check_decider(approval, an_actor(ROSA))


async def test_named_people_and_groups(directory: FakeDirectory) -> None:
    approval = an_approval(requester_id=ROSA, approvers_json='["UADA","SONCALL"]')
    await Access(directory).check_decider(approval, an_actor(ADA))
    await Access(directory).check_decider(approval, an_actor(BEN))
    directory.add("UMIA")
    assert "not among" in await refusal(directory, approval, an_actor("UMIA"))


@pytest.mark.parametrize("names", ["[]", '["nonsense"]', "[1, null]"])
async def test_no_usable_name_means_nobody(directory: FakeDirectory, names: str) -> None:
    approval = an_approval(requester_id=ROSA, approvers_json=names)
    assert "not among" in await refusal(directory, approval, an_actor(ADA))


async def test_a_failed_look_up_refuses(directory: FakeDirectory) -> None:
    directory.is_down = True
    with pytest.raises(DirectoryError):
        await Access(directory).check_decider(APPROVAL, an_actor(ADA))


async def test_questions_are_for_the_requester_and_the_channel(directory: FakeDirectory) -> None:
    question = an_approval(kind=Kind.QUESTION, requester_id=ROSA)
    await Access(directory).check_decider(question, an_actor(ROSA))
    await Access(directory).check_decider(question, an_actor(ADA))
    assert "members of this channel" in await refusal(directory, question, an_actor(BEN))
    assert "guests" in await refusal(directory, question, an_actor(GUS))
