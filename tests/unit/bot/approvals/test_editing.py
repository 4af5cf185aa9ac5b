"""What becomes of a card whose call somebody has changed (F1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agents import Agent, ChatModelAgent, ScriptedModel, tool
from agents.gates import policy_gate
from agents.gates.rulings import Judgement
from agents.models import call, say
from agents.policy import Ask as AskPeople, Condition, Deny, Rule, RulePolicy
from bot.approvals.editing import Edits
from bot.audit.entries import edit_entries, note_decision
from bot.audit.invalidated import last_edit, note_edit
from bot.audit.report import story
from bot.errors import ApprovalClosedError, NotApproverError, OutdatedCardError
from bot.ports.threads import CheckedCall
from bot.questions.form import AnswerForm, Form
from bot.questions.record import Rules
from bot.records.approval import Approval, Decision, Status, StoredEdits
from storage.audit import AuditEntry
from storage.ledger import KEPT
from tests.support.named import excluding
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, ROSA, RULES, KilledError, Office, an_actor
from tests.unit.bot.slack.cards.samples import an_approval

PAY = call("pay", {"amount": 5}, id="c1")
RAN: list[int] = []
LIMITS = RulePolicy(
    rules=(
        Rule(when=(Condition("amount", ">", 1000),), then=Deny("too much")),
        Rule(when=(Condition("amount", ">", 500),), then=AskPeople(rule="lost", approvers=(ROSA,))),
        Rule(when=(Condition("amount", ">", 100),), then=AskPeople(rule="big", approvers=(BEN,))),
        Rule(
            when=(Condition("amount", ">", 50),),
            then=AskPeople(kind="review", rule="two", exclude_editors=True),
        ),
    ),
    default=AskPeople(kind="review", rule="small"),
)


def paying() -> Callable[[ScriptedModel], Agent]:
    RAN.clear()

    @tool(title="Pay {amount}")
    def pay(amount: int) -> str:
        """Pay."""
        RAN.append(amount)
        return "paid"

    return lambda model: ChatModelAgent(name="A", model=model, tools=[policy_gate(pay, LIMITS)])


class Room:
    """A call that waits, and people who edit it."""

    def __init__(self, storage: SqliteStores, rules: Rules = RULES) -> None:
        self.office = Office(storage, [PAY, say("Done.")], rules=rules, make_agent=paying())
        self.edits = Edits(storage, self.office.approvals, rules, self.office.clock)

    async def ask(self) -> Approval:
        await self.office.hear("<@UBOT> pay")
        return await self.office.the_approval()

    async def judged(self, approval: Approval, amount: int) -> Judgement | None:
        return await self.office.runner.judge(
            approval.checkpoint_id, approval.interrupt_id, {"amount": amount}
        )

    async def edit(self, approval: Approval, amount: int, *, by: str = ADA) -> Approval | str:
        checked = CheckedCall(arguments={"amount": amount}, title=f"Pay {amount}")
        edited = await self.edits.edit(
            approval, checked, await self.judged(approval, amount), actor=an_actor(by)
        )
        if isinstance(edited, Approval):
            self.office.queue.spawn(
                self.office.approvals.follow_up(edited)
                if edited.decision
                else self.office.approvals.attendance.attend(edited.approval_id)
            )
            await self.office.queue.run()
        return edited


@pytest.fixture
def room(storage: SqliteStores) -> Room:
    return Room(storage)


async def left_by_an_editor(room: Room) -> Approval:
    """Somebody edits a call, and the process dies before that is in the audit."""
    before = await room.ask()
    audit = room.office.storage.audit
    append = audit.append

    async def die(*entries: AuditEntry) -> None:
        raise KilledError

    audit.append = die  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        await room.edit(before, 200)
    audit.append = append  # type: ignore[method-assign]
    return before


async def test_i12_decision_says_whose_edit_it_covers_when_a_crash_kept_the_edit_from_it(
    room: Room,
) -> None:
    storage, before = room.office.storage, await left_by_an_editor(room)
    await room.office.decide(await room.office.the_approval(), by=BEN)
    assert RAN == [200]
    trail = await story(storage, approval_id=before.approval_id)
    entries = {entry.action: entry for entry in trail}
    assert len(entries) == len(trail)
    detail = entries["edited"].detail
    assert (entries["edited"].actor_id, detail["shown"]) == (ADA, before.digest)
    assert (detail["before"], detail["arguments"]) == ({"amount": 5}, {"amount": 200})
    detail = entries["decided"].detail
    assert (detail["edited_by"], detail["arguments"], detail["rule"]) == (
        ADA,
        {"amount": 200},
        "big",
    )
    assert detail["deciders"] == [BEN]


async def test_i12_an_edit_is_noted_by_who_draws_its_card_when_a_crash_kept_it_from_that(
    room: Room,
) -> None:
    storage, before = room.office.storage, await left_by_an_editor(room)
    room.office.queue.drop()
    await room.office.attendance.attend(before.approval_id)
    trail = await story(storage, approval_id=before.approval_id)
    (detail,) = [entry.detail for entry in trail if entry.action == "edited"]
    assert (detail["before"], detail["arguments"]) == ({"amount": 5}, {"amount": 200})


def test_i12_an_edit_says_what_it_found_and_not_what_was_first_asked_for() -> None:
    first = an_approval(arguments={"amount": 5}, digest="d5")
    second = first.changed(
        arguments={"amount": 200},
        digest="d200",
        edits=StoredEdits(original=first.arguments, by=ADA, last=last_edit(first, 7)),
    )
    third = second.changed(
        arguments={"amount": 9}, edits=StoredEdits(by=BEN, last=last_edit(second, 8))
    )
    entries = [*edit_entries(first), *edit_entries(second), *edit_entries(third)]
    assert [
        (entry.actor_id, entry.detail["before"], entry.detail["shown"]) for entry in entries
    ] == [(ADA, {"amount": 5}, "d5"), (BEN, {"amount": 200}, "d200")]
    assert edit_entries(third.changed(edits=StoredEdits(by=BEN))) == []


async def test_i10_declared_secrets_are_in_no_evidence_of_an_edit(storage: SqliteStores) -> None:
    ask = AnswerForm(form=Form.CALL, schema={}, secret=("pin",)).to_data()
    before = an_approval(form=ask, arguments={"pin": "kitten one", "note": "a"})
    after = before.changed(
        arguments={"pin": "kitten two", "note": "b"},
        edits=StoredEdits(original=before.arguments, by=ADA, last=last_edit(before, 7)),
    )
    decision = Decision(status=Status.APPROVED, by=BEN, at_ms=8)
    await storage.approvals.insert(after)
    await note_edit(storage.audit, before, after)
    await note_decision(storage.audit, after, decision)
    entries = await story(storage, approval_id=before.approval_id)
    assert len(entries) == 2
    assert "kitten" not in str(entries)
    assert "'note': 'a'" in str(entries[0].detail["before"])
    assert not {"before", "arguments"} & KEPT


async def test_a_policy_that_fails_is_no_rule_that_denies(room: Room) -> None:
    before = await room.ask()
    call = CheckedCall(arguments={"amount": 7})
    for failed in (True, False):
        room.office.clock.forward(seconds=1)
        judgement = Judgement(arguments=call.arguments, denied="no", failed=failed)
        assert await room.edits.edit(before, call, judgement, actor=an_actor(ADA)) == "no"
    entries = await story(room.office.storage, approval_id=before.approval_id)
    codes = [entry.detail["code"] for entry in entries if entry.action == "edit_refused"]
    assert codes == ["lookup_failed", "rule_denies"]


@pytest.mark.parametrize("excluded", [False, True])
async def test_edit_that_cannot_be_judged(room: Room, excluded: bool) -> None:
    before = excluding(await room.ask(), *(["editors"] if excluded else []))
    checked = CheckedCall(arguments={"amount": 7}, title="Pay 7")
    edited = await room.edits.edit(before, checked, None, actor=an_actor(ADA))
    assert isinstance(edited, Approval)
    assert edited.status is (Status.PENDING if excluded else Status.APPROVED)
    assert (edited.title if excluded else edited.decision and edited.decision.title) == "Pay 7"


async def test_who_loses_a_race_is_told(room: Room) -> None:
    before = await room.ask()
    await room.edit(before, 200)
    for amount in (300, 7):
        with pytest.raises(OutdatedCardError):
            await room.edit(before, amount, by=BEN)
    await room.office.decide(await room.office.the_approval(), by=BEN)
    judgement = Judgement(arguments={"amount": 7})
    with pytest.raises(ApprovalClosedError):
        await room.edits.edit(
            before, CheckedCall(arguments={"amount": 7}), judgement, actor=an_actor(BEN)
        )


async def test_i13_who_edited_before_the_last_editor_does_not_approve(room: Room) -> None:
    office = room.office
    await room.edit(await room.ask(), 60)
    both = await room.edit(await office.the_approval(), 61, by=BEN)
    assert isinstance(both, Approval)
    assert (both.status, both.edits.by, both.edits.earlier) == (Status.PENDING, BEN, (ADA,))
    for name in (ADA, BEN):
        with pytest.raises(NotApproverError, match="You edited this"):
            await office.decide(both, by=name)
    again = await room.edit(both, 62)
    assert isinstance(again, Approval)
    assert (again.edits.by, again.edits.earlier) == (ADA, (BEN,))
    assert RAN == []


async def test_who_was_counted_does_not_edit(room: Room) -> None:
    before = (await room.ask()).changed(counted=(ADA,))
    for amount in (7, 200):
        with pytest.raises(NotApproverError, match="can't edit"):
            await room.edit(before, amount)
    assert RAN == []
