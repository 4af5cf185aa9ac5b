"""The ladder of what people decide under terms: who is told, when, and never twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agents.models import call, say
from bot.errors import DeliveryError, DirectoryError
from bot.layout.action_ids import ActionId
from bot.records.approval import Approval, Status
from bot.records.terms import QuietHours
from bot.slack.cards.card_for import card_for
from tests.support.force import forced
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import Counter, a_click
from tests.unit.bot.office import ADA, BEN, CHANNEL, KilledError, Office

MIA, SAM, LIA = "UMIA", "USAM", "ULIA"
ASK = "<@UBOT> pay Mia"
PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
GROUPS: dict[str, Any] = {
    "sre": {"usergroups": ["S0SRE"]},
    "security": {"users": [MIA, SAM]},
    "leads": {"users": [LIA]},
    "room": {"channels": ["C0ROOM"]},
}
SRE: dict[str, Any] = {"approve": [{"from": ["sre"]}]}
STEPS: dict[str, Any] = {
    **SRE,
    "remind": {"after": "15m", "times": 2},
    "escalate": [{"after": "1h", "add": ["leads"]}],
}
Step = Callable[..., Awaitable[object]]


def an_office(storage: SqliteStores, ask: dict[str, Any], **more: Any) -> Office:
    groups = {**GROUPS, **more.pop("groups", {})}
    policy = forced(default={"ask": ask}, groups=groups, **more.pop("file", {}))
    office = Office(storage, [PAY, say("Paid.")], policy=policy, **more)
    for user_id in (MIA, SAM, LIA):
        office.directory.add(user_id)
    office.directory.groups["S0SRE"] = frozenset({ADA, BEN})
    office.directory.channels["C0ROOM"] = frozenset({LIA})
    office.directory.channels[CHANNEL] |= {MIA, SAM, LIA}
    return office


async def asked(storage: SqliteStores, ask: dict[str, Any], **more: Any) -> Office:
    office = an_office(storage, ask, **more)
    await office.hear(ASK)
    return office


def notified(office: Office) -> list[tuple[str, list[str], str]]:
    return [(kind, list(mentions), user) for kind, mentions, user in office.notifier.sent]


def mentioned(approval: Approval) -> list[str]:
    return list(approval.escalation.mentioned)


async def test_the_next_reminder_takes_the_place_of_the_one_before(storage: SqliteStores) -> None:
    office = await asked(storage, STEPS)
    await office.later(minutes=15)
    await office.later(minutes=30)
    assert [message.kind for message in office.notifier.asking.values()] == ["reminder"]
    kept = (await office.the_approval()).reminders
    assert [reminder.ts for reminder in kept] == [
        message.ts for message in office.notifier.asking.values()
    ]


async def test_people_who_are_not_in_the_channel_get_the_card_themselves(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, {"approve": [{"from": ["security"]}]})
    office.directory.channels[CHANNEL] -= {SAM}
    await office.hear(ASK)
    assert notified(office) == [("card", [SAM], SAM)]
    (copy,) = (await office.the_approval()).copies
    assert (copy.user, copy.channel, bool(copy.ts)) == (SAM, "DSAM", True)
    await office.later(minutes=15)
    assert notified(office)[1:] == [("reminder", [MIA], ""), ("reminder", [SAM], SAM)]
    await office.decide(await office.the_approval(), by=SAM)
    assert [shown.status for _, shown in office.notifier.copies.values()] == [Status.APPROVED]
    assert office.notifier.asking == {}


async def test_a_direct_message_that_slack_never_takes_keeps_no_card_back(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, {"approve": [{"from": ["security"]}]})
    office.directory.channels[CHANNEL] -= {SAM}
    office.notifier.failing.add("copy")
    office.notifier.faults["copy"] = DeliveryError("conversations.open", "missing_scope")
    approval = await office.asked(ASK)
    assert (bool(approval.thread_card.ts), approval.copies, approval.card.error) == (True, (), "")


async def test_a_look_up_that_fails_mentions_all(storage: SqliteStores) -> None:
    office = an_office(storage, {"approve": [{"from": ["sre", "security"]}]})
    office.directory.group_members = _not_found  # type: ignore[method-assign]
    await office.hear(ASK)
    assert mentioned(await office.the_approval()) == ["S0SRE", MIA, SAM]


def drawn(office: Office) -> str:
    """The card as it stands in its thread."""
    (card,) = office.notifier.cards.values()
    return str(card_for(card, approvers_text="").blocks)


async def test_a_claim_shows_on_all_copies_within_two_seconds_and_ends_by_itself(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, {"approve": [{"from": ["security"]}]})
    office.directory.channels[CHANNEL] -= {SAM}
    await office.hear(ASK)
    pending, clicked_ms = await office.the_approval(), office.clock()
    await Counter.on(office).send(a_click(pending, ActionId.CLAIM, SAM))
    assert claimed_on(office) == ["👀 *<@USAM> is on it*"] * 2
    assert office.clock() - clicked_ms <= 2_000  # by the click's own work: no tick was needed
    before = notified(office)
    await office.later(minutes=29)
    assert claimed_on(office) == ["👀 *<@USAM> is on it*"] * 2
    await office.later(minutes=1)
    assert claimed_on(office) == ["⏳ *Needs approval*"] * 2
    assert [kind for kind, *_ in notified(office)[len(before) :]] == ["reminder", "reminder"]
    over = await office.the_approval()
    await office.decide(over, by=MIA)  # and it locked nobody out
    assert len(office.ran) == 1


def claimed_on(office: Office) -> list[str]:
    """The first lines of the card and of its copies."""
    shown = [
        *office.notifier.cards.values(),
        *(approval for _, approval in office.notifier.copies.values()),
    ]
    drawn = [card_for(approval, approvers_text="") for approval in shown]
    return [str(card.blocks[0]["text"]["text"]) for card in drawn]


async def test_a_route_to_people_has_a_card_for_each(storage: SqliteStores) -> None:
    ask = {"approve": [{"from": ["security"]}, {"from": ["sre"]}], "route": "dm"}
    office = await asked(storage, ask)
    assert [user for _, _, user in notified(office)] == [MIA, SAM, ADA, BEN]
    await office.decide(await office.the_approval(), by=ADA)
    votes = {approval.votes for _, approval in office.notifier.copies.values()}
    assert len(votes) == 1
    await office.later(minutes=15)
    assert notified(office)[4:] == [("reminder", [MIA], MIA), ("reminder", [SAM], SAM)]


def dying(step: Step, *, after: bool) -> Step:
    async def die(*args: object, **options: object) -> object:
        if after:
            await step(*args, **options)
        raise KilledError

    return die


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["replace", "nudge", "append", "update_card"])
@pytest.mark.parametrize("minutes", [15, 60])
async def test_i4_a_crash_around_a_step_loses_nothing_and_tells_nobody_twice(
    storage: SqliteStores, step: str, minutes: int, *, after: bool
) -> None:
    first = await asked(storage, STEPS)
    things: dict[str, object] = {"nudge": first.notifier, "update_card": first.notifier}
    thing = things.get(step, storage.audit if step == "append" else storage.approvals)
    setattr(thing, step, dying(getattr(thing, step), after=after))
    if step != "update_card" or minutes == 60:
        with pytest.raises(KilledError):
            await first.later(minutes=minutes)
    else:
        await first.later(minutes=minutes)
    first.queue.drop()
    vars(thing).pop(step)
    second = an_office(storage, STEPS, clock=first.clock, notifier=first.notifier, owner="second")
    second.model = first.model
    await second.later(seconds=16)
    await second.later(seconds=30)
    kind, note = ("reminder", "reminded") if minutes == 15 else ("escalation", "escalated")
    assert [message[0] for message in notified(second)] == [kind]
    assert (await second.acts()).count(note) == 1
    assert (await second.the_approval()).escalation.told == (minutes == 60)


async def test_a_nudge_whose_answer_was_lost_is_found(storage: SqliteStores) -> None:
    office = await asked(storage, STEPS)
    office.notifier.lost.add("nudge")
    await office.later(minutes=15)
    office.notifier.lost.clear()
    await office.later(minutes=5)
    assert notified(office) == [("reminder", ["S0SRE"], "")]
    (kept,) = (await office.the_approval()).reminders
    assert [kept.ts] == [message.ts for message in office.notifier.asking.values()]


async def test_a_decision_in_the_moment_of_a_reminder_has_nobody_told(
    storage: SqliteStores,
) -> None:
    office = await asked(storage, STEPS)
    approval, nudge = await office.the_approval(), office.notifier.nudge

    async def decided_first(*args: Any, **options: Any) -> object:
        await office.decide_meanwhile(approval, by=ADA)
        return await nudge(*args, **options)

    office.notifier.nudge = decided_first  # type: ignore[method-assign, assignment]
    await office.later(minutes=15)
    await office.later(seconds=5)
    assert notified(office) == []
    assert office.notifier.asking == {}
    done = await storage.approvals.get(approval.approval_id)
    assert (done.status, done.reminders) == (Status.APPROVED, ())


async def test_an_unknown_time_zone_leaves_only_the_deadline(storage: SqliteStores) -> None:
    office = await asked(storage, STEPS)
    approval = await office.the_approval()
    quiet = QuietHours(start="20:00", until="08:00", timezone="Mars/Base")
    nowhere = approval.terms.model_copy(update={"quiet": quiet})
    broken = approval.changed(approval_id="apr_b", terms=nowhere)
    planner = office.attendance.planner()
    assert planner.next_ms(broken) == broken.expires_ms
    assert await planner.take_step(broken, office.clock() + 10**7) == (broken, frozenset())


async def _not_found(group_id: str) -> frozenset[str]:
    raise DirectoryError(group_id)


async def go_away(office: Office, *people: str) -> None:
    for who in people:
        await office.lend(who)


async def test_when_all_go_away_later_the_first_step_comes_with_the_next_message(
    storage: SqliteStores,
) -> None:
    ask = {**STEPS, "approve": [{"from": ["security"]}]}
    office = await asked(storage, ask)
    await go_away(office, MIA)
    await office.later(minutes=15)
    assert (await office.the_approval()).escalation.steps == 0  # Sam is there
    await go_away(office, SAM)
    await office.later(minutes=30)
    assert (await office.the_approval()).escalation.steps == 1
    assert notified(office) == [("reminder", [SAM], ""), ("escalation", [LIA], "")]
    await office.later(minutes=30)
    assert (await office.acts()).count("escalated") == 1
    assert len(notified(office)) == 2
