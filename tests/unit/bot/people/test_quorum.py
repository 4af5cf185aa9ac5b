"""I13: what nobody can decide is said at once, and asks nobody; and it is said when it happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agents import Agent, ChatModelAgent, ScriptedModel, tool
from agents.gates import policy_gate
from agents.models import call, say
from agents.policy import Ask, Rule, RulePolicy
from bot.approvals.editing import Edits
from bot.errors import ApprovalClosedError, NotApproverError
from bot.people.quorum import QuorumCheck
from bot.ports.people import MOST_MEMBERS
from bot.ports.threads import CheckedCall
from bot.questions.record import Rules
from bot.records.approval import Approval, Kind, Status
from bot.slack.cards.card_for import card_for
from tests.contract.builders import an_approval
from tests.support.fakes import FakeDirectory
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, CHANNEL, GUS, ROSA, RULES, Office, an_actor

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"
DIRECT = "D1"


def drawn(approval: Approval) -> str:
    return json.dumps(card_for(approval, approvers_text="").blocks, ensure_ascii=False)


def an_office(storage: SqliteStores, *, rules: Rules = RULES, **changes: Any) -> Office:
    office = Office(storage, [PAY, say("I see.")], rules=rules, **changes)
    office.directory.groups["SEMPTY"] = frozenset()
    office.directory.groups["SROSA"] = frozenset({ROSA})
    office.directory.add("UGONE", is_deleted=True)
    return office


def asking(*names: str) -> Callable[[ScriptedModel], Agent]:
    """An agent with a policy that names these as approvers."""

    @tool
    def pay(to: str, amount: int) -> str:
        """Pay."""
        raise AssertionError("nobody agreed")

    policy = RulePolicy(rules=(Rule(then=Ask(approvers=names)),), default=Ask(rule="other"))
    return lambda model: ChatModelAgent(name="A", model=model, tools=[policy_gate(pay, policy)])


NAMED: list[tuple[tuple[str, ...], str]] = [
    ((ROSA,), "This needs 1 of <@UROSA>, and none of them can approve it"),
    (("SROSA",), "This needs 1 of <!subteam^SROSA>, and none of them can approve it"),
    (("SEMPTY",), "This needs 1 of <!subteam^SEMPTY>, and none of them can approve it"),
    ((GUS, "UGONE"), "This needs 1 of <@UGUS> or <@UGONE>, and none of them can approve it"),
    (("U-OPS",), "“U-OPS” isn't a known person or group"),
    (("<!channel>", "<@UADA>"), "“channel” isn't a known person or group. “@UADA” isn't"),
]


@pytest.mark.parametrize(("names", "words"), NAMED, ids=[str(case[0]) for case in NAMED])
async def test_i13_nobody_is_asked_what_nobody_can_decide(
    storage: SqliteStores, names: tuple[str, ...], words: str
) -> None:
    office = an_office(storage, make_agent=asking(*names))
    await office.hear(ASK)

    (card,) = office.notifier.cards.values()
    assert card.status is Status.UNDECIDABLE
    assert "*No one can decide this*" in drawn(card)
    assert words.split(". “@", maxsplit=1)[0] in drawn(card)
    assert "countersign:approve" not in drawn(card)
    assert "countersign:reject" not in drawn(card)
    prompt = str(office.model.inputs[-1])
    assert "Nobody can decide this request, so nobody was asked" in prompt
    assert "This is not a rejection." in prompt
    assert words in prompt
    assert office.shown()[-1] == "I see."
    assert (await office.acts())[:2] == ["undecidable", "resumed"]
    with pytest.raises(ApprovalClosedError, match="No one can decide this"):
        await office.approvals.get_decidable(card.approval_id, an_actor(ADA), shown=card.digest)


async def test_the_settings_are_looked_at_in_the_same_way(storage: SqliteStores) -> None:
    office = an_office(storage, rules=replace(RULES, approvers=(ROSA,)))
    await office.hear(ASK)
    (card,) = office.notifier.cards.values()
    assert card.status is Status.UNDECIDABLE
    assert card.decision is not None
    assert "Ask a colleague to request it in a new thread" in card.decision.reason


async def test_i13_where_approval_is_not_asked_for_nothing_runs(storage: SqliteStores) -> None:
    office = an_office(storage, rules=replace(RULES, approvers=(ADA,), channels=("C2", "C3")))
    await office.hear(ASK)
    (card,) = office.notifier.cards.values()
    assert card.status is Status.UNDECIDABLE
    assert "Ask in <#C2>, <#C3>." in drawn(card)
    assert office.ran == []


# ---- who a channel is -------------------------------------------------------------------------


async def look(directory: FakeDirectory, **changes: Any) -> Approval:
    given = {"requester_id": ROSA, "requesters": (ROSA,), **changes}
    return await QuorumCheck(directory).prepare(an_approval(**given))


@pytest.fixture
def directory() -> FakeDirectory:
    made = FakeDirectory()
    for user_id in (ROSA, ADA, BEN):
        made.add(user_id)
    made.add(GUS, is_guest=True)
    made.channels[CHANNEL] = frozenset({ROSA, ADA})
    return made


async def test_i13_who_was_a_member_is_on_record(directory: FakeDirectory) -> None:
    approval = await look(directory)
    assert approval.status is Status.PENDING
    assert approval.members == {CHANNEL: (ADA, ROSA)}


async def test_i13_who_joined_since_or_has_left_does_not_decide(storage: SqliteStores) -> None:
    office = an_office(storage)
    office.directory.channels[CHANNEL] = frozenset({ROSA, ADA})
    approval = await office.asked(ASK)
    office.directory.channels[CHANNEL] = frozenset({ROSA, BEN})
    for who in (ADA, BEN):
        with pytest.raises(NotApproverError, match="not an approver"):
            await office.decide(approval, by=who)
    office.directory.channels[CHANNEL] = frozenset({ROSA, ADA})
    await office.decide(approval, by=ADA)
    assert len(office.ran) == 1


@pytest.mark.parametrize("size", [MOST_MEMBERS, MOST_MEMBERS + 1])
async def test_i13_of_a_large_channel_nobody_decides(directory: FakeDirectory, size: int) -> None:
    directory.channels[CHANNEL] = frozenset(f"U{number}" for number in range(size))
    for index in range(size):
        directory.add(f"U{index}")
    approval = await look(directory)
    assert (approval.status is Status.PENDING) == (size == MOST_MEMBERS)


async def test_in_a_direct_message_the_channel_is_nobody(directory: FakeDirectory) -> None:
    directory.channels[DIRECT] = frozenset({ROSA, ADA})
    asked = an_approval(thread_id=f"T1:{DIRECT}:1.1", requester_id=ROSA)
    approval = await QuorumCheck(directory).prepare(asked)
    assert approval.decision is not None
    assert "Ask in a channel where someone else can approve." in approval.decision.reason
    named = an_approval(thread_id=f"T1:{DIRECT}:1.1", requester_id=ROSA, approvers=(ADA,))
    assert (await QuorumCheck(directory).prepare(named)).status is Status.PENDING


async def test_without_any_name_nobody_decides(directory: FakeDirectory) -> None:
    approval = await look(directory, approvers=())
    assert approval.decision is not None
    assert approval.decision.reason.startswith("No approvers are set. ")


async def test_a_question_is_for_whoever_asked_and_is_not_looked_at(
    directory: FakeDirectory,
) -> None:
    directory.is_down = True
    question = an_approval(kind=Kind.QUESTION)
    assert await QuorumCheck(directory).prepare(question) == question


async def test_a_look_up_that_fails_counts_as_somebody(directory: FakeDirectory) -> None:
    approval = await look(directory, approvers=("UUNKNOWN",))
    assert approval.status is Status.PENDING


async def test_of_many_guests_not_all_are_looked_up(directory: FakeDirectory) -> None:
    for index in range(30):
        directory.add(f"U{index}", is_guest=True)
    directory.groups["SMANY"] = frozenset(f"U{number}" for number in range(30))
    assert (await look(directory, approvers=("SMANY",))).status is Status.PENDING
    directory.groups["SFEW"] = frozenset(f"U{number}" for number in range(10))
    few = await look(directory, approvers=("SFEW",))
    assert few.decision is not None
    assert "<!subteam^SFEW>, and none of them can approve it" in few.decision.reason


# ---- later ------------------------------------------------------------------------------------


async def test_backup_people_count_from_their_time_on(storage: SqliteStores) -> None:
    rules = replace(
        RULES, approvers=(ROSA,), escalate_after=timedelta(minutes=5), escalate_to=(BEN,)
    )
    office = an_office(storage, rules=rules)
    approval = await office.asked(ASK)
    shown = drawn(approval)
    assert "⚠️ *No one can decide this*" in shown
    assert "This needs 1 of <@UROSA>, and none of them can approve it" in shown
    assert f"UTC>, <@{BEN}> can decide." in shown
    assert "countersign:approve" not in shown
    assert "countersign:reject" in shown
    assert "countersign:withdraw" in shown

    await office.later(minutes=6)
    approval = await office.the_approval()
    assert approval.stuck == ""
    assert "countersign:approve" in drawn(office.notifier.cards[approval.approval_id])
    await office.decide(approval, by=BEN)
    assert len(office.ran) == 1


async def test_no_backup_people_help_without_a_time(storage: SqliteStores) -> None:
    rules = replace(RULES, approvers=(ROSA,), escalate_to=(BEN,))
    office = an_office(storage, rules=rules)
    await office.hear(ASK)
    (card,) = office.notifier.cards.values()
    assert card.status is Status.UNDECIDABLE


async def test_i8_when_people_leave_the_card_says_so_until_they_come_back(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, rules=replace(RULES, approvers=(ADA,)))
    await office.hear(ASK)
    name = (await office.the_approval()).approval_id
    office.directory.add(ADA, is_deleted=True)
    await passes(office, minutes=16)
    card = office.notifier.cards[name]
    assert "This needs 1 of <@UADA>, and none of them can approve it" in drawn(card)
    assert "countersign:approve" not in drawn(card)

    office.directory.is_down = True  # not known: nothing changes, but a failed look-up can
    await passes(office, minutes=1)
    office.directory.is_down = False
    office.directory.add(ADA)
    await passes(office, minutes=1)
    card = office.notifier.cards[name]
    assert card.stuck == ""
    assert "countersign:approve" in drawn(card)
    stored = await storage.approvals.get(name)
    assert stored.card.revision == stored.shown_revision


async def passes(office: Office, *, minutes: int) -> None:
    await office.later(minutes=minutes)


async def test_a_doubt_that_nobody_can_settle_can_be_given_up(directory: FakeDirectory) -> None:
    doubt = an_approval(kind=Kind.DOUBT, stuck="nobody", approval_id=f"apr_{'d' * 32}")
    assert "countersign:give_up" in drawn(doubt)
    assert "countersign:again" not in drawn(doubt)
    doubted = {"kind": Kind.DOUBT, "approval_id": f"apr_{'e' * 32}"}
    gone = await look(directory, approvers=(ROSA,), **doubted)
    assert "*No one can decide this*" in drawn(gone)


# ---- after an edit, and in other gates ----------------------------------------------------------


async def test_i13_who_was_counted_in_another_gate_is_nobody_here(directory: FakeDirectory) -> None:
    given = {"approvers": (ADA,), "counted": (ADA,)}
    approval = await look(directory, **given)
    assert approval.decision is not None
    assert "none of them can approve it" in approval.decision.reason


async def test_i13_an_edit_that_nobody_could_decide_is_refused_at_the_form(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, rules=replace(RULES, exclude_editors=True))
    office.directory.channels[CHANNEL] = frozenset({ROSA, ADA})
    approval = await office.asked(ASK)
    edits = Edits(storage, office.approvals, office.rules, office.clock)
    call_ = CheckedCall(arguments={"to": "Mia", "amount": 4, "how": "card"})

    refused = await edits.edit(approval, call_, None, actor=an_actor(ADA))

    assert isinstance(refused, str)
    assert refused.startswith(
        "no one could decide this: This needs 1 of the members of this channel, and none of them"
    )
    assert (await office.the_approval()).shown_revision == 1
