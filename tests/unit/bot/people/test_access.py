"""Who may decide, answer, ask: every refusal says why, and a failed look-up refuses."""

import pytest

from bot.approvals.model import Approval, Kind
from bot.errors import DirectoryError, NotApproverError
from bot.people.access import Access, decider_names
from tests.contract.builders import an_approval
from tests.support.fakes import FakeDirectory
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
        (ROSA, "your own request"),
        (BEN, "not an approver"),
        (GUS, "Guests"),
        ("UAPP", "Apps"),
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
    approval = an_approval(requester_id=ROSA, approvers=("UADA", "SONCALL"))
    await Access(directory).check_decider(approval, an_actor(ADA))
    await Access(directory).check_decider(approval, an_actor(BEN))
    directory.add("UMIA")
    assert "not an approver" in await refusal(directory, approval, an_actor("UMIA"))


@pytest.mark.parametrize("names", [(), ("nonsense",)])
async def test_no_usable_name_means_nobody(
    directory: FakeDirectory, names: tuple[str, ...]
) -> None:
    approval = an_approval(requester_id=ROSA, approvers=names)
    assert "not an approver" in await refusal(directory, approval, an_actor(ADA))


async def test_a_failed_look_up_refuses(directory: FakeDirectory) -> None:
    directory.is_down = True
    with pytest.raises(DirectoryError):
        await Access(directory).check_decider(APPROVAL, an_actor(ADA))


async def test_questions_are_for_the_requester_and_the_channel(directory: FakeDirectory) -> None:
    question = an_approval(kind=Kind.QUESTION, requester_id=ROSA)
    await Access(directory).check_decider(question, an_actor(ROSA))
    await Access(directory).check_decider(question, an_actor(ADA))
    assert "members of this channel" in await refusal(directory, question, an_actor(BEN))
    assert "Guests" in await refusal(directory, question, an_actor(GUS))


# ---- escalation ----------------------------------------------------------------------------------

WAITING = an_approval(
    requester_id=ROSA, approvers=("UADA", "!UROSA"), backups=("SONCALL",), escalate_ms=1
)
ESCALATED = WAITING.changed(escalate_ms=None, escalated_ms=1)


async def test_backup_people_may_decide_after_the_escalation_only(directory: FakeDirectory) -> None:
    assert "You're a backup" in await refusal(directory, WAITING, an_actor(BEN))
    await Access(directory).check_decider(ESCALATED, an_actor(BEN))
    await Access(directory).check_decider(ESCALATED, an_actor(ADA))
    assert decider_names(WAITING) == ("UADA",)
    assert decider_names(ESCALATED) == ("UADA", "SONCALL")


async def test_the_channel_may_be_the_backup(directory: FakeDirectory) -> None:
    wide = WAITING.changed(approvers=("SONCALL",), backups=("channel",))
    assert "You're a backup" in await refusal(directory, wide, an_actor(ADA))
    await Access(directory).check_decider(
        wide.changed(escalate_ms=None, escalated_ms=1), an_actor(ADA)
    )


@pytest.mark.parametrize(
    ("user_id", "word"),
    [
        (ROSA, "your own request"),
        ("UCLEO", "not an approver"),
        (GUS, "Guests"),
        ("UAPP", "Apps"),
        ("UGONE", "deactivated"),
        ("UEXT", "this workspace"),
    ],
)
@pytest.mark.parametrize("approval", [WAITING, ESCALATED], ids=["before", "after"])
async def test_an_escalation_lets_nobody_else_in(
    directory: FakeDirectory, approval: Approval, user_id: str, word: str
) -> None:
    directory.add("UCLEO")
    directory.groups["SONCALL"] = frozenset({BEN, ROSA, GUS, "UAPP", "UGONE", "UEXT"})
    assert word in await refusal(directory, approval, an_actor(user_id))


async def test_without_a_look_up_no_backup_decides(directory: FakeDirectory) -> None:
    directory.is_down = True
    for approval in (WAITING, ESCALATED):
        with pytest.raises(DirectoryError):
            await Access(directory).check_decider(approval, an_actor(BEN))


async def test_an_escalation_opens_no_question_to_strangers(directory: FakeDirectory) -> None:
    question = ESCALATED.changed(kind=Kind.QUESTION)
    assert "members of this channel" in await refusal(directory, question, an_actor(BEN))


# ---- who was a member when asked -----------------------------------------------------------------

ASKED = APPROVAL.changed(members={"C1": ("UADA", "UGONE")})


async def test_who_joined_the_channel_since_may_not_decide(directory: FakeDirectory) -> None:
    directory.channels["C1"] = frozenset({ROSA, ADA, BEN})
    await Access(directory).check_decider(ASKED, an_actor(ADA))
    assert "not an approver" in await refusal(directory, ASKED, an_actor(BEN))


async def test_who_left_the_channel_since_may_not_decide(directory: FakeDirectory) -> None:
    directory.channels["C1"] = frozenset({ROSA})
    assert "not an approver" in await refusal(directory, ASKED, an_actor(ADA))


async def test_who_joined_since_may_decide_where_they_are_named(directory: FakeDirectory) -> None:
    named = ASKED.changed(approvers=("channel", "SONCALL", "UMIA"))
    directory.add("UMIA")
    directory.channels["C1"] = frozenset({ROSA, ADA, BEN, "UMIA"})
    await Access(directory).check_decider(named, an_actor(BEN))
    await Access(directory).check_decider(named, an_actor("UMIA"))


async def test_a_name_that_says_nothing_hides_none_after_it(directory: FakeDirectory) -> None:
    approval = APPROVAL.changed(approvers=("nonsense", "UBEN"))
    await Access(directory).check_decider(approval, an_actor(BEN))


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


async def test_each_refusal_is_a_whole_sentence(directory: FakeDirectory) -> None:
    assert await refusal(directory, WAITING, an_actor(BEN)) == (
        "You're a backup. You'll be asked if no one decides in time."
    )
    directory.add("UCLEO")
    assert await refusal(directory, WAITING, an_actor("UCLEO")) == (
        "You're not an approver for this."
    )
