"""Who may answer and ask: every refusal says why, and a failed look-up refuses."""

import pytest

from bot.errors import DirectoryError, NotApproverError
from bot.people.access import Access
from bot.ports.people import Actor
from bot.records.approval import Approval, Kind
from tests.contract.builders import an_approval
from tests.support.fakes import FakeDirectory
from tests.unit.bot.office import ADA, BEN, GUS, ROSA, an_actor

QUESTION = an_approval(kind=Kind.QUESTION, requester_id=ROSA)


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


async def refusal(directory: FakeDirectory, approval: Approval, actor: Actor) -> str:
    with pytest.raises(NotApproverError) as caught:
        await Access(directory).check_answerer(approval, actor)
    return caught.value.reason


@pytest.mark.parametrize(
    ("user_id", "word"),
    [
        (BEN, "members of this channel"),
        (GUS, "Guests"),
        ("UAPP", "Apps"),
        ("UGONE", "deactivated"),
        ("UEXT", "this workspace"),
    ],
)
async def test_others_are_told_why_not(directory: FakeDirectory, user_id: str, word: str) -> None:
    assert word in await refusal(directory, QUESTION, an_actor(user_id))


async def test_somebody_from_another_workspace_may_not(directory: FakeDirectory) -> None:
    assert "this workspace" in await refusal(directory, QUESTION, an_actor(ADA, "T2"))


async def test_without_a_team_in_the_payload_the_look_up_counts(directory: FakeDirectory) -> None:
    await Access(directory).check_answerer(QUESTION, an_actor(ADA, ""))
    directory.add("UADA", team_id="T9")
    assert "this workspace" in await refusal(directory, QUESTION, an_actor(ADA, ""))


async def test_a_failed_look_up_refuses(directory: FakeDirectory) -> None:
    directory.is_down = True
    with pytest.raises(DirectoryError):
        await Access(directory).check_answerer(QUESTION, an_actor(ADA))


async def test_questions_are_for_the_requester_and_the_channel(directory: FakeDirectory) -> None:
    for user_id in (ROSA, ADA):
        await Access(directory).check_answerer(QUESTION, an_actor(user_id))


@pytest.mark.parametrize("is_public", [False, True])
async def test_a_requester_answers_while_they_can_read_the_channel(
    directory: FakeDirectory, *, is_public: bool
) -> None:
    directory.channels["C1"] = frozenset({ADA})
    directory.public = {"C1"} if is_public else set()
    if is_public:
        await Access(directory).check_answerer(QUESTION, an_actor(ROSA))
    else:
        assert "members of this channel" in await refusal(directory, QUESTION, an_actor(ROSA))


async def test_a_requester_answers_nothing_where_the_bot_reads_nothing(
    directory: FakeDirectory,
) -> None:
    async def gone(_: str) -> frozenset[str]:
        raise DirectoryError("conversations.members: channel_not_found")

    directory.channel_members = gone  # type: ignore[assignment]
    assert "members of this channel" in await refusal(directory, QUESTION, an_actor(ROSA))


# ---- who may write -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user_id", "team_id", "word"),
    [
        (GUS, "T1", "Guests"),
        ("UAPP", "T1", "Apps"),
        ("UGONE", "T1", "deactivated"),
        ("UEXT", "", "this workspace"),
        (ADA, "T2", "this workspace"),
    ],
)
async def test_messages_of_others_are_refused(
    directory: FakeDirectory, user_id: str, team_id: str, word: str
) -> None:
    with pytest.raises(NotApproverError, match=word):
        await Access(directory).check_person(an_actor(user_id, team_id), team_id="T1")


async def test_people_of_the_workspace_may_write(directory: FakeDirectory) -> None:
    for team_id in ("T1", ""):
        person = await Access(directory).check_person(an_actor(ADA, team_id), team_id="T1")
        assert person.user_id == ADA
