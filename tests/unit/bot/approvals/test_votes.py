"""Votes of several people on one call: each counts once, and the last that is needed decides."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Any

import pytest

from agents.models import call, say
from bot.approvals import votes
from bot.approvals.disclosure import Surface
from bot.approvals.editing import Edits
from bot.audit.report import story
from bot.errors import InvalidInputError, StrangerError, UserFacingError
from bot.people.break_glass import Reasons
from bot.policy.evaluation.evaluate import Judged, PolicyEvaluator
from bot.ports.threads import CheckedCall
from bot.records.approval import Approval, Decision, Status, StoredEdits
from bot.slack.cards.card_for import card_for
from bot.threads.runs.application_policy import PolicyOfCards
from storage.errors import RecordFormatError
from tests.contract.spoiling import spoil
from tests.support.force import Forced, forced
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, GUS, ROSA, RULES, THREAD_ID, Office, an_actor

MIA, CLEO, LIA, TOM, GRETA = "UMIA", "UCLEO", "ULIA", "UTOM", "UGRETA"
ASK = "<@UBOT> pay Mia"
PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
GROUPS = {
    "sre": {"usergroups": ["S0SRE"]},
    "security": {"users": [MIA]},
    "leads": {"users": [LIA]},
    "room": {"channels": ["C0ROOM"]},
    "few": {"users": [ROSA, ADA]},
}
TWO: dict[str, Any] = {"approve": [{"from": ["sre"], "count": 2}, {"from": ["security"]}]}
STAGES: dict[str, Any] = {
    "stages": [
        {"name": "team", "approve": [{"from": ["sre"]}]},
        {"name": "lead", "approve": [{"from": ["leads"]}]},
    ]
}


def an_office(storage: SqliteStores, ask: dict[str, Any], **changes: Any) -> Office:
    """A process whose policy asks like this about each call."""
    policy = forced(default={"ask": ask}, groups=GROUPS)
    changes = {"turns_of_model": [PAY, say("Paid.")], **changes}
    office = Office(storage, policy=policy, **changes)
    for user_id in (MIA, CLEO, LIA, TOM, GRETA):
        office.directory.add(user_id)
    office.directory.groups["S0SRE"] = frozenset({ADA, BEN, CLEO})
    office.directory.channels["C0ROOM"] = frozenset({TOM})
    return office


async def asked(storage: SqliteStores, ask: dict[str, Any], **changes: Any) -> Office:
    office = an_office(storage, ask, **changes)
    await office.hear(ASK)
    return office


async def refused(office: Office, by: str, status: Status = Status.APPROVED, **more: Any) -> str:
    """The code of a refusal."""
    office.clock.forward(seconds=1)
    with pytest.raises(UserFacingError) as error:
        await office.decide(await office.the_approval(), status, by=by, **more)
    return error.value.code


async def vote(office: Office, by: str, status: Status = Status.APPROVED, **more: Any) -> Approval:
    office.clock.forward(seconds=1)
    return await office.decide(await office.the_approval(), status, by=by, **more)


def voters(approval: Approval) -> list[str]:
    return [cast_vote.by for cast_vote in approval.votes]


@pytest.mark.parametrize("removes", ["edit", "other vote", "emergency", "taken back"])
async def test_a_vote_that_nobody_noted_outlives_who_dies_right_after_its_removal(
    storage: SqliteStores, removes: str
) -> None:
    """Both die before they come to the audit: who took the vote, and who removed it."""
    glass = {"by": ["leads"], "alert": "C0ALERT"}
    office = await asked(storage, {**TWO, "reject": {"count": 2}, "break_glass": glass})
    approval = await office.the_approval()
    voted = await office.approve_alone(approval)
    office.clock.forward(seconds=1)
    match removes:
        case "edit":
            changed = voted.changed(votes=(), digest="0" * 64, edits=StoredEdits(by=CLEO))
            await office.approvals.rebind(voted, changed, actor=an_actor(CLEO))
        case "other vote":
            no = Decision(status=Status.REJECTED, by=ADA, at_ms=office.clock(), digest=voted.digest)
            await office.approvals.decide(voted, no, an_actor(ADA), surface=Surface.CARD)
        case "emergency":
            reasons = Reasons(what="it is all down", why_now="nobody is awake", is_sure=True)
            await office.approvals.break_glass(voted, an_actor(LIA), reasons)
        case _:
            await office.approvals.votes.take_back(voted, an_actor(ADA))
    noted = [(entry.action, entry.actor_id) for entry in await story(storage, thread_id=THREAD_ID)]
    assert ("voted", ADA) in noted


async def test_a_vote_that_comes_while_somebody_edits_is_on_record(storage: SqliteStores) -> None:
    """The editor has read the card before the vote, and whoever took the vote dies at once."""
    office = await asked(storage, {**TWO, "edit": "yes"})
    read = await office.the_approval()
    await office.approve_alone(read)
    office.clock.forward(seconds=1)
    edits = Edits(storage, office.approvals, RULES, office.clock)
    call = CheckedCall(arguments={"to": "Mia", "amount": 7, "how": "card"})
    edited = await edits.edit(read, call, None, actor=an_actor(BEN))
    assert isinstance(edited, Approval)
    assert (edited.edits.by, ADA in edited.edits.voided) == (BEN, True)
    assert {cast_vote.by for cast_vote in edited.votes} <= {BEN}
    noted = [(entry.action, entry.actor_id) for entry in await story(storage, thread_id=THREAD_ID)]
    assert ("voted", ADA) in noted


async def test_nobody_is_counted_twice_or_for_nothing(storage: SqliteStores) -> None:
    office = await asked(storage, TWO)
    await vote(office, ADA)
    assert await refused(office, ADA) == "already_voted"
    await vote(office, BEN)
    assert await refused(office, CLEO) == "not_needed"
    assert await refused(office, TOM) == "not_approver"
    assert await refused(office, ROSA) == "own_request"
    assert await refused(office, GUS) == "guest"
    assert office.ran == []


async def test_an_edit_is_no_vote_by_itself(storage: SqliteStores) -> None:
    office = await asked(storage, TWO)
    approval = await office.the_approval()
    decision = Decision(
        status=Status.APPROVED, by=ADA, at_ms=1, arguments={}, digest=approval.digest
    )
    with pytest.raises(InvalidInputError):
        await office.approvals.decide(approval, decision, an_actor(ADA), surface=Surface.CARD)


@pytest.mark.parametrize("spoilt", [{"terms": "{}"}, {"terms": ""}, {"terms": None}, {"stage": 7}])
async def test_terms_that_cannot_be_read_let_nobody_decide(
    storage: SqliteStores, spoilt: dict[str, object]
) -> None:
    office = await asked(storage, TWO)
    approval = await office.the_approval()
    await spoil(storage, "approvals", approval.approval_id, **spoilt)
    for name in (ADA, BEN, ROSA):
        with pytest.raises(RecordFormatError):
            await office.approvals.get_pending(
                approval.approval_id, an_actor(name), shown=approval.digest
            )
        with pytest.raises(RecordFormatError):
            await office.decide(approval, by=name)
    assert office.ran == []


@pytest.mark.parametrize(
    ("ask", "who"),
    [
        (TWO, f"<!subteam^S0SRE> or <@{MIA}> can decide."),
        ({**TWO, "mention": "no"}, f"<!subteam^S0SRE> or <@{MIA}> can decide."),
        (STAGES, "<!subteam^S0SRE> can decide."),
        ({"approve": [{"from": ["room"]}]}, "Anyone in <#C0ROOM> can decide."),
        ({"approve": [{"from": ["few"]}]}, f"<@{ADA}> can decide."),
        ({"approve": [{"from": ["few"]}], "exclude": []}, f"<@{ROSA}> or <@{ADA}> can decide."),
    ],
    ids=["people", "not pinged", "first stage", "channel", "not who asked", "also who asked"],
)
async def test_who_has_no_say_hears_who_has(
    storage: SqliteStores, ask: dict[str, Any], who: str
) -> None:
    office = await asked(storage, ask)
    with pytest.raises(StrangerError) as error:
        await office.decide(await office.the_approval(), by=GRETA)
    assert str(error.value) == f"You're not an approver for this. {who}"
    assert not {BEN, CLEO, TOM} & set(re.findall(r"U[A-Z]+", str(error.value)))


class Failing(PolicyEvaluator):
    """Rules that cannot be asked now."""

    async def judge(self, *_: Any, **__: Any) -> Judged:
        raise RuntimeError("no memory")


@dataclass(frozen=True)
class Hanging(PolicyOfCards):
    """A policy in force that does not answer."""

    async def denied(self, approval: Approval) -> str:
        await asyncio.Event().wait()
        raise AssertionError


def under(office: Office, policy: Forced) -> None:
    """Let another policy be in force from now on."""
    policy.file_hash = "f2"
    office.change_policy(policy)


async def test_a_policy_that_fails_lets_a_card_wait_on(storage: SqliteStores) -> None:
    office = await asked(storage, TWO)
    await vote(office, ADA)
    good = forced(default={"ask": TWO}, groups=GROUPS)
    under(office, Forced(Failing(good.rulebook.file)))
    assert await refused(office, BEN) == "lookup_failed"
    await office.queue.run()
    waiting = await office.the_approval()
    assert (waiting.status, voters(waiting)) == (Status.PENDING, [ADA])
    under(office, good)
    await vote(office, BEN)
    assert (await vote(office, MIA)).status is Status.APPROVED
    assert len(office.ran) == 1


async def test_a_policy_that_does_not_answer_keeps_nobody_from_stopping(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(votes, "PATIENCE_S", 0.01)
    office = await asked(storage, TWO)
    cards = office.cards
    assert isinstance(cards, PolicyOfCards)
    hanging = Hanging(in_force=cards.in_force, judge=cards.judge)
    office.change_policy(cards.in_force, hanging)
    assert await refused(office, ADA) == "lookup_failed"
    assert (await vote(office, BEN, Status.REJECTED)).status is Status.REJECTED


async def may_edit(office: Office, by: str) -> str:
    """The code of the refusal; `yes` when there is none."""
    try:
        await office.approvals.check_editor(await office.the_approval(), an_actor(by))
    except UserFacingError as error:
        return error.code
    return "yes"


@pytest.mark.parametrize(
    ("edit", "allowed"),
    [
        (True, {ADA, BEN, MIA}),
        (False, set()),
        ({"by": ["approvers"]}, {ADA, BEN, MIA}),
        ({"by": ["requesters"]}, {ROSA}),
        ({"by": ["leads"]}, {LIA}),
        ({"by": ["requesters", "leads"]}, {ROSA, LIA}),
        ({"by": ["approvers", "leads"]}, {ADA, BEN, MIA, LIA}),
    ],
)
async def test_who_may_edit_is_as_the_rule_says(
    storage: SqliteStores, edit: object, allowed: set[str]
) -> None:
    office = await asked(storage, {**TWO, "edit": edit})
    answers = {by: await may_edit(office, by) for by in (ADA, BEN, MIA, LIA, ROSA, TOM, GUS)}
    assert {by for by, answer in answers.items() if answer == "yes"} == allowed
    assert answers[GUS] in {"guest", "not_editor"}
    assert answers[TOM] == "not_editor"


async def test_an_editor_is_a_person_of_this_workspace(storage: SqliteStores) -> None:
    office = await asked(storage, {**TWO, "edit": {"by": ["leads"]}})
    office.directory.add(LIA, is_guest=True)
    assert await may_edit(office, LIA) == "guest"
    office.directory.is_down = True
    assert await may_edit(office, LIA) == "lookup_failed"
    office.directory.is_down = False
    office.directory.add(LIA)
    assert await may_edit(office, LIA) == "yes"


async def test_an_edit_voids_the_votes_and_the_card_says_so(storage: SqliteStores) -> None:
    office = await asked(storage, {**TWO, "edit": True})
    await vote(office, ADA)
    await vote(office, MIA)
    office.clock.forward(seconds=1)
    changed = {"to": "Mia", "amount": 7, "how": "card"}
    await office.decide(await office.the_approval(), by=CLEO, edited=changed)
    edited = await office.the_approval()
    assert (edited.status, voters(edited)) == (Status.PENDING, [CLEO])
    card = office.notifier.cards[edited.approval_id]
    words = str(card_for(card, approvers_text="").blocks)
    void = f"Earlier votes from <@{ADA}> and <@{MIA}> no longer count."
    assert f"Edited by <@{CLEO}>. You're approving the edited version. {void}" in words
    assert void in card_for(card, approvers_text="").text
    assert "*1 of 3 approvals*" in words
    assert office.ran == []
    await vote(office, ADA)  # who had approved the other call is asked anew
    words = str(card_for(office.notifier.cards[edited.approval_id], approvers_text="").blocks)
    assert f"The earlier vote from <@{MIA}> no longer counts." in words
    await vote(office, MIA)
    assert office.ran == [("pay", ("Mia", 7, "card"))]


async def test_i4_a_decision_of_a_process_that_dies_is_told_by_whoever_voted_before(
    storage: SqliteStores,
) -> None:
    """One process tells of its vote; the deciding vote comes; only then the first one attends."""
    office = await asked(storage, {"approve": [{"from": ["sre"], "count": 2}]})
    card = await office.the_approval()
    first = await office.approve_alone(card)
    await office.approvals.tell([first])
    assert (
        await office.approve_alone(card, by=BEN)
    ).status is Status.APPROVED  # and its process dies
    await office.attendance.attend_decided(first)
    await office.queue.run()
    assert len(office.ran) == 1
    noted = [(entry.action, entry.actor_id) for entry in await story(storage, thread_id=THREAD_ID)]
    assert {("voted", ADA), ("voted", BEN), ("decided", BEN)} <= {*noted}


async def test_i12_a_vote_of_a_process_that_dies_is_noted_by_whoever_voted_before(
    storage: SqliteStores,
) -> None:
    office = await asked(storage, {"approve": [{"from": ["sre"], "count": 3}]})
    office.directory.groups["S0SRE"] |= {LIA}
    card = await office.the_approval()
    first = await office.approve_alone(card)
    await office.approvals.tell([first])
    await office.approve_alone(card, by=BEN)
    await office.attendance.attend_decided(first)
    noted = [(entry.action, entry.actor_id) for entry in await story(storage, thread_id=THREAD_ID)]
    assert ("voted", BEN) in noted


async def test_look_ups_that_take_too_long_refuse(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = await asked(storage, TWO)

    async def never(_: str) -> frozenset[str]:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("bot.people.lookup.PATIENCE_S", 0.01)
    monkeypatch.setattr("bot.approvals.votes.PATIENCE_S", 0.01)
    monkeypatch.setattr(office.directory, "group_members", never)
    assert await refused(office, ADA) == "lookup_failed"


async def test_a_vote_that_nobody_noted_is_on_record_before_it_is_gone(
    storage: SqliteStores,
) -> None:
    """A process may die between the vote and its entry; what voids it makes up for that."""
    office = await asked(storage, TWO)

    async def unnoted(by: str) -> Approval:
        office.clock.forward(seconds=1)
        approval = await office.the_approval()
        given = Decision(
            status=Status.APPROVED, by=by, at_ms=office.clock(), digest=approval.digest
        )
        return await office.approvals.decide(approval, given, an_actor(by), surface=Surface.CARD)

    counted = await unnoted(ADA)
    await office.approvals.take_back(counted.approval_id, an_actor(ADA))
    await unnoted(BEN)
    office.directory.add(BEN, is_deleted=True)
    await unnoted(MIA)
    office.clock.forward(seconds=1)
    await office.decide(await office.the_approval(), by=CLEO, edited={"amount": 7})
    noted = [(entry.action, entry.actor_id) for entry in await story(storage, thread_id=THREAD_ID)]
    assert [act for act in noted if act[0] == "voted"] == [
        ("voted", by) for by in (ADA, BEN, MIA, CLEO)
    ]
    assert {("taken_back", ADA), ("vote_dropped", BEN), ("edited", CLEO)} <= {*noted}
