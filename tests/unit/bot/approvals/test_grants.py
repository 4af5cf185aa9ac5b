"""Standing grants: given with an approval, used before people are asked, ended at any time."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest

from agents.models import Turn, call, say
from bot.approvals.grants import agents_at, grant_id_of
from bot.audit.report import story
from bot.layout.action_ids import ActionId
from bot.maintenance.restoring import Restoring
from bot.records.approval import Approval, Status
from bot.records.approval_queries import newest_of
from bot.records.people import Grant
from bot.records.switch import FreezeScope
from bot.slack.cards.card_for import card_for
from bot.slack.side_messages.grant import grant_card
from bot.stores import Stores
from tests.support.force import Forced, forced
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import Counter, Proxy, a_click, a_submission, typed
from tests.unit.bot.office import (
    ADA,
    BEN,
    CHANNEL,
    ROSA,
    THREAD_ID,
    KilledError,
    Office,
    an_incoming,
)

TOM = "UTOM"
LIMITS = {"max_time": "2h", "max_uses": 5, "vary": ["what"]}


def by_sre(**more: object) -> Forced:
    ask = {"approve": [{"from": ["sre"]}], "grants": LIMITS, **more}
    return forced(default={"ask": ask}, groups={"sre": {"usergroups": ["S0SRE"]}})


def looks(*names: str) -> list[Turn]:
    return [
        turn
        for name in names
        for turn in (call("look", {"what": name}, id=f"c-{name}"), say("done"))
    ]


def an_office(
    storage: Stores, turns: Sequence[Turn], force: Forced | None = None, **more: object
) -> Office:
    office = Office(storage, turns, policy=force or by_sre(), **more)  # type: ignore[arg-type]
    office.directory.groups["S0SRE"] = frozenset({ADA, BEN})
    office.directory.add(TOM)
    office.directory.channels[CHANNEL] |= {TOM}
    return office


def a_form(time: str, times: str, reason: str = "", *, only: str = "") -> dict[str, object]:
    """Nothing is ticked of what the rule lets vary, or the box of that number."""
    ticked = [{"value": only}] if only else []
    boxes = {"type": "checkboxes", "selected_options": ticked}
    scope = {"only": {"countersign:value": boxes}}
    return {**typed("for", time), **typed("times", times), **typed("reason", reason), **scope}


async def granted(
    office: Office, *, time: str = "1h", times: str = "2", by: str = ADA, only: str = ""
) -> tuple[Counter, Approval]:
    """Somebody approves the first call, and allows others."""
    counter = Counter.on(office)
    approval = await office.asked("<@UBOT> look")
    form = a_form(time, times, "as usual", only=only)
    await counter.send(a_click(approval, ActionId.GRANT, by))
    assert counter.views.opened[-1]["callback_id"] == ActionId.GRANT_MODAL
    await counter.send(a_submission(approval, ActionId.GRANT_MODAL, form, by))
    return counter, approval


async def again(office: Office, number: int = 2, *, by: str = ROSA) -> None:
    office.clock.forward(seconds=1)
    await office.hear("again", user_id=by, ts=f"1800000000.{number:06d}")


async def the_grant(office: Office) -> Grant:
    (grant,) = await office.storage.grants.current(THREAD_ID, now_ms=office.clock())
    return grant


async def test_the_form_says_how_many_requests_it_would_have_covered(storage: SqliteStores) -> None:
    office = an_office(storage, looks("a", "a", "b", "a", "a"))
    counter = Counter.on(office)
    shown: list[str] = []
    for number in range(5):
        if number:
            await again(office, number + 1)
        else:
            await office.hear("<@UBOT> look")
        (approval,) = await office.open_approvals()
        await counter.send(a_click(approval, ActionId.GRANT, ADA))
        shown += re.findall("In the last 30 days, this would[^.]*", str(counter.views.opened[-1]))
        await office.decide(approval, by=ADA, status=Status.REJECTED)
        if number == 3:
            office.clock.forward(hours=24 * 31)

    assert shown == [
        "In the last 30 days, this wouldn't have covered any other request",
        "In the last 30 days, this would have covered 1 other request",
        "In the last 30 days, this wouldn't have covered any other request",
        "In the last 30 days, this would have covered 2 other requests",
        "In the last 30 days, this wouldn't have covered any other request",
    ]


async def test_it_lets_nothing_run_before_it_can_be_seen(storage: SqliteStores) -> None:
    office = an_office(storage, looks("a", "b", "c"))
    office.notices.is_down = True
    await granted(office)
    await again(office)
    assert office.ran == [("look", "a")]
    office.notices.is_down = False
    await office.decide(await office.the_approval())
    await again(office, 3)
    assert office.ran == [("look", "a"), ("look", "b"), ("look", "c")]
    assert (await the_grant(office)).card_ts


@pytest.mark.parametrize(
    ("time", "times", "field"), [("soon", "2", "for"), ("1h", "many", "times")]
)
async def test_a_form_that_cannot_be_read_approves_nothing(
    storage: SqliteStores, time: str, times: str, field: str
) -> None:
    office = an_office(storage, looks("a"))
    counter = Counter.on(office)
    await office.hear("<@UBOT> look")
    form = a_form(time, times)
    sent = a_submission(await office.the_approval(), ActionId.GRANT_MODAL, form, ADA)
    answer = await counter.send(sent)
    assert set(json.loads(answer.body)["errors"]) == {field}
    assert office.ran == []


@pytest.mark.parametrize("more", [{"grants": "never"}, {"grants": "never", "always_ask": "yes"}])
async def test_where_the_rule_allows_none_the_form_approves_this_call_alone(
    storage: SqliteStores, more: dict[str, object]
) -> None:
    office = an_office(storage, looks("a", "b"), by_sre(**more))
    counter = Counter.on(office)
    approval = await office.asked("<@UBOT> look")
    assert ActionId.GRANT not in json.dumps(card_for(approval, approvers_text="").blocks)
    await counter.send(a_click(approval, ActionId.GRANT, ADA))
    inputs = [
        block["block_id"] for block in counter.views.opened[-1]["blocks"] if "block_id" in block
    ]
    assert inputs == ["reason"]
    forged = a_form("1h", "2")
    await counter.send(a_submission(approval, ActionId.GRANT_MODAL, forged, ADA))
    await again(office)
    assert office.ran == [("look", "a")]


@pytest.mark.parametrize("risk", ["high", "critical"])
async def test_what_has_a_high_risk_is_never_allowed_in_advance(
    storage: SqliteStores, risk: str
) -> None:
    office = an_office(storage, looks("a", "b"), by_sre(risk=risk))
    counter = Counter.on(office)
    approval = await office.asked("<@UBOT> look")
    assert ActionId.GRANT not in json.dumps(card_for(approval, approvers_text="").blocks)
    await counter.send(a_click(approval, ActionId.GRANT, ADA))
    assert counter.views.opened == []
    forged = a_form("1h", "2")
    await counter.send(a_submission(approval, ActionId.GRANT_MODAL, forged, ADA))
    await again(office)
    assert office.ran == []


async def test_who_may_not_approve_gives_no_grant(storage: SqliteStores) -> None:
    office = an_office(storage, looks("a"))
    counter = Counter.on(office)
    approval = await office.asked("<@UBOT> look")
    form = a_form("1h", "2")
    for who in (TOM, ROSA):
        await counter.send(a_click(approval, ActionId.GRANT, who))
        await counter.send(a_submission(approval, ActionId.GRANT_MODAL, form, who))
    assert counter.views.opened == []
    assert await storage.grants.current(THREAD_ID, now_ms=0) == []
    assert (await office.the_approval()).status is Status.PENDING


async def test_who_lent_their_right_for_it_is_not_covered(storage: SqliteStores) -> None:
    """BEN has no right of his own; he gives the grant in the place of ADA, who is asked for it."""
    policy = forced(
        default={"ask": {"approve": [{"from": ["few"]}], "exclude": [], "grants": LIMITS}},
        groups={"few": {"users": [ADA]}},
    )
    office = an_office(storage, looks("a", "b"), policy)
    await office.lend(ADA, BEN)
    counter = Counter.on(office)
    approval = await office.asked("<@UBOT> look", user_id=ADA)
    await counter.send(a_submission(approval, ActionId.GRANT_MODAL, a_form("1h", "2"), BEN))
    assert (await the_grant(office)).granter_id == BEN
    await again(office, by=ADA)
    assert office.ran == [("look", "a")]
    assert (await office.the_approval()).arguments == {"what": "b"}


@pytest.mark.parametrize("what", ["removed", "deactivated", "lookup fails"])
async def test_who_gave_it_must_still_be_able_to(storage: SqliteStores, what: str) -> None:
    office = an_office(storage, looks("a", "b"))
    await granted(office)
    if what == "removed":
        office.directory.groups["S0SRE"] = frozenset({BEN})
    elif what == "deactivated":
        office.directory.add(ADA, is_deleted=True)
    thread_id = await office.inbox.receive(an_incoming("again", ts="1800000000.000002"))
    assert thread_id is not None
    office.directory.is_down = what == "lookup fails"
    office.queue.spawn(office.threads.work(thread_id))
    await office.queue.run()
    assert office.ran == [("look", "a")]
    assert (await the_grant(office)).uses == ()


async def test_the_menu_of_the_message_asks_once_more_and_ends_it(storage: SqliteStores) -> None:
    office = an_office(storage, looks("a", "b"))
    counter, approval = await granted(office)
    name = (await the_grant(office)).grant_id
    card = grant_card(await the_grant(office), approval, now_ms=office.clock())
    (stop,) = [option for option in card.blocks[2]["accessory"]["options"] if "Stop" in str(option)]
    click = a_click(approval, ActionId.MORE, ADA)
    click["actions"] = [
        {"type": "overflow", "action_id": "countersign:more", "selected_option": stop}
    ]
    await counter.send(click)
    assert counter.views.opened[-1]["callback_id"] == ActionId.STOP_GRANT_MODAL
    assert (await storage.grants.get(name)).ended_by == ""

    await counter.send(a_submission(approval, ActionId.STOP_GRANT_MODAL, {}, TOM))
    assert (await storage.grants.get(name)).ended_by == ""
    await counter.send(a_submission(approval, ActionId.STOP_GRANT_MODAL, {}, ADA))
    assert (await storage.grants.get(name)).ended_by == ADA


@pytest.mark.parametrize("who", [ADA, BEN, ROSA])
async def test_granter_approvers_and_requesters_end_it(storage: SqliteStores, who: str) -> None:
    office = an_office(storage, looks("a", "b"))
    counter, approval = await granted(office)
    await counter.send(a_click(approval, ActionId.REVOKE, who))
    await again(office)
    assert office.ran == [("look", "a")]
    ended = await storage.grants.get(grant_id_of(approval))
    assert (ended.ended_by, office.notices.grants[ended.grant_id].ended_by) == (who, who)
    assert "grant_ended" in await office.acts()
    await counter.send(a_click(approval, ActionId.REVOKE, who))
    assert (await office.acts()).count("grant_ended") == 1


async def test_there_is_nothing_to_end_without_a_grant(storage: SqliteStores) -> None:
    office = an_office(storage, looks("a"))
    counter = Counter.on(office)
    await office.hear("<@UBOT> look")
    await counter.send(a_click(await office.the_approval(), ActionId.REVOKE, ADA))
    assert "can't find this request" in counter.private_text(ADA)


async def left_by_a_death(storage: SqliteStores) -> Office:
    """Somebody approves and allows; the process dies after the vote, before the grant."""

    async def dies(_: Grant) -> bool:
        raise KilledError

    dead = Proxy(storage, {"grants": Proxy(storage.grants, {"add": dies})})  # type: ignore[arg-type]
    dying = an_office(dead, looks("a"), owner="dying")  # type: ignore[arg-type]
    with pytest.raises(KilledError):
        await granted(dying)
    dying.queue.drop()
    assert await storage.grants.current(THREAD_ID, now_ms=dying.clock()) == []
    turns = [say("done"), *looks("b")]
    return an_office(storage, turns, clock=dying.clock, owner="after")


async def take_up(office: Office, **passed: float) -> None:
    office.clock.forward(**(passed or {"minutes": 2}))
    for _ in range(2):  # a grant that this tick makes is drawn by the next
        await office.later()


async def test_a_grant_that_a_death_kept_back_is_not_given_by_who_has_lost_the_right(
    storage: SqliteStores,
) -> None:
    after = await left_by_a_death(storage)
    after.directory.groups["S0SRE"] = frozenset({BEN})
    await take_up(after)
    assert await storage.grants.current(THREAD_ID, now_ms=after.clock()) == []
    entries = await story(storage, thread_id=THREAD_ID)
    (refused,) = [entry for entry in entries if entry.action == "refused"]
    assert (refused.actor_id, refused.detail["why"]) == (ADA, "they can no longer allow this")
    assert "granted" not in await after.acts()
    ((name, grant),) = after.notices.grants.items()
    approval = await storage.approvals.get(grant.approval_id)
    card = grant_card(grant, approval, now_ms=after.clock())
    assert "Standing permission not given" in card.text
    assert f"<@{ADA}> can no longer allow this, so people are asked again." in card.text
    assert ActionId.STOP_GRANT not in json.dumps(card.blocks)

    after.directory.groups["S0SRE"] = frozenset({ADA, BEN})  # what was refused stays refused
    await take_up(after)
    assert (await storage.grants.get(name)).due_ms is None
    assert await storage.grants.current(THREAD_ID, now_ms=after.clock()) == []


async def test_while_nobody_can_be_looked_up_a_grant_waits_that_a_death_kept_back(
    storage: SqliteStores,
) -> None:
    after = await left_by_a_death(storage)
    after.directory.is_down = True
    await take_up(after)
    assert await storage.grants.current(THREAD_ID, now_ms=after.clock()) == []
    after.directory.is_down = False
    await take_up(after)
    assert (await the_grant(after)).granter_id == ADA


async def test_a_grant_that_a_death_kept_back_for_too_long_is_shown_as_over(
    storage: SqliteStores,
) -> None:
    after = await left_by_a_death(storage)
    after.directory.is_down = True
    await take_up(after, minutes=61)
    ((_, grant),) = after.notices.grants.items()
    approval = await storage.approvals.get(grant.approval_id)
    assert "Its time is up" in grant_card(grant, approval, now_ms=after.clock()).text


async def test_a_grant_that_a_copy_of_the_database_lacks_is_over(storage: SqliteStores) -> None:
    """Who has it, or ended it, after the copy was made is not known any more."""
    after = await left_by_a_death(storage)
    after.clock.forward(minutes=2)
    await storage.restoring.begin_epoch()
    (approval,) = await newest_of(storage.approvals, THREAD_ID, limit=9)
    assert await after.grants.complete(approval) is None
    grant = await storage.grants.get(grant_id_of(approval))
    assert grant.ended_ms == after.clock()
    assert "It has ended" in grant_card(grant, approval, now_ms=after.clock()).text


async def test_a_message_that_nobody_drew_is_drawn_by_another_process(
    storage: SqliteStores,
) -> None:
    """Whoever gave it, used it up, or ended it may have died right after that."""
    office = an_office(storage, looks("a", "b"))
    _, approval = await granted(office, times="1")
    office.notices.is_down = True
    await again(office)
    office.queue.drop()
    after = an_office(storage, looks("c"), clock=office.clock, owner="after")
    await after.later(minutes=2)
    kept = await storage.grants.get(grant_id_of(approval))
    assert (len(kept.uses), kept.due_ms) == (1, None)
    assert after.notices.grants[kept.grant_id].uses == kept.uses


async def test_slack_is_not_asked_for_ever_to_show_what_is_over(storage: SqliteStores) -> None:
    office = an_office(storage, looks("a"))
    _, approval = await granted(office)
    office.notices.is_down = True
    tries = 0
    for _ in range(3):
        await office.later(hours=2)
        tries += (await storage.grants.get(grant_id_of(approval))).due_ms is not None
    assert tries == 3
    await office.later(hours=24)
    assert (await storage.grants.get(grant_id_of(approval))).due_ms is None


def test_of_two_agents_with_one_name_each_is_told_from_the_other() -> None:
    places = ("agent:A", "agent:A;tool:ask:c1;agent:A", "agent:B;agent:A:2", "agent:A;agent:B")
    calls = [f"{place};tool:look:c1" for place in places]
    assert [agents_at(address) for address in calls] == ["A", "A/A", "B/A", "A/B"]


async def parked(storage: SqliteStores, **limits: str) -> Office:
    """A freeze keeps a call from starting that a grant would let run."""
    office = an_office(storage, looks("a", "b", "c"))
    await granted(office, **limits)
    await office.freezes.freeze(FreezeScope(), by=ADA, why="wild")
    await again(office)
    assert office.ran == [("look", "a")]
    assert await office.open_approvals() == []
    assert (await the_grant(office)).uses == ()
    assert not [text for text in office.shown() if "standing permission" in text]
    assert "grant_used" not in await office.acts()
    return office


async def lift(office: Office, name: str = "f1") -> None:
    await office.freezes.lift(name, by=ADA, why="tame", count=1)
    await office.later()


async def test_11_10_a_parked_call_uses_its_grant_when_it_starts(storage: SqliteStores) -> None:
    office = await parked(storage)
    await lift(office)
    assert office.ran == [("look", "a"), ("look", "b")]
    assert len((await the_grant(office)).uses) == 1
    assert (await office.acts()).count("grant_used") == 1
    assert await office.open_approvals() == []


@pytest.mark.parametrize("what", ["ended", "lost"])
async def test_11_10_a_parked_call_without_its_grant_is_asked_of_people(
    storage: SqliteStores, what: str
) -> None:
    office = await parked(storage)
    if what == "ended":
        name = (await the_grant(office)).grant_id
        await storage.grants.end(name, by=ADA, now_ms=office.clock())
    else:
        office.directory.groups["S0SRE"] = frozenset({BEN})
    await lift(office)
    assert office.ran == [("look", "a")]
    assert (await office.the_approval()).arguments == {"what": "b"}


async def test_11_10_a_grant_that_expires_in_the_freeze_lets_nothing_start(
    storage: SqliteStores,
) -> None:
    office = await parked(storage, time="10m")
    office.clock.forward(minutes=12)
    await lift(office)
    assert office.ran == [("look", "a")]
    assert (await office.the_approval()).arguments == {"what": "b"}


async def test_11_10_of_two_parked_calls_one_uses_the_last_use(storage: SqliteStores) -> None:
    calls: list[Turn] = [
        *looks("a"),
        [call("look", {"what": name}, id=f"c-{name}") for name in ("b", "c")],
        say("done"),
    ]
    office = an_office(storage, calls)
    await granted(office, times="1")
    await office.freezes.freeze(FreezeScope(), by=ADA, why="wild")
    await again(office)
    assert (office.ran, (await the_grant(office)).uses) == ([("look", "a")], ())
    await lift(office)
    assert len(office.ran) == 2
    left = {"b", "c"} - {str(what) for _, what in office.ran}
    assert (await office.the_approval()).arguments == {"what": left.pop()}
    assert len((await the_grant(office)).uses) == 1


async def test_11_14_a_parked_call_that_a_rule_allowed_is_judged_by_the_file_in_force(
    storage: SqliteStores,
) -> None:
    force = forced()
    office = an_office(storage, looks("a"), force)
    await office.freezes.freeze(FreezeScope(), by=ADA, why="wild")
    await office.hear("<@UBOT> look")
    assert office.ran == []
    force.rulebook = by_sre().rulebook
    await lift(office)
    assert office.ran == []
    await office.decide(await office.the_approval(), by=ADA)
    assert office.ran == [("look", "a")]


async def test_after_a_restore_of_the_database_nothing_is_granted(storage: SqliteStores) -> None:
    office = an_office(storage, looks("a", "b"))
    await granted(office)
    await Restoring(storage=storage, clock=office.clock).mark()
    assert await storage.grants.current(THREAD_ID, now_ms=0) == []


async def test_after_a_death_between_the_vote_and_the_grant_the_grant_is_given(
    storage: SqliteStores,
) -> None:
    after = await left_by_a_death(storage)
    await take_up(after)
    grant = await the_grant(after)
    assert (grant.granter_id, grant.max_uses, grant.until_ms) == (
        ADA,
        2,
        grant.created_ms + 3_600_000,
    )
    assert after.notices.shown == [grant.grant_id]
    await again(after)
    assert after.ran == [("look", "a"), ("look", "b")]
    assert (await after.acts()).count("granted") == 1


async def test_beyond_the_rules_limits_the_approval_counts_alone(storage: SqliteStores) -> None:
    office = an_office(storage, looks("a", "b"))
    counter, approval = await granted(office, time="3h")
    assert office.ran == [("look", "a")]
    stored = await storage.approvals.get(approval.approval_id)
    assert stored.decision is not None
    assert stored.status is Status.APPROVED
    assert await storage.grants.current(THREAD_ID, now_ms=0) == []
    form = a_form("3h", "2")
    await again(office)
    answer = await counter.send(
        a_submission(await office.the_approval(), ActionId.GRANT_MODAL, form, ADA)
    )
    assert "over the policy's limits" in answer.body


async def test_another_ruling_voids_it(storage: SqliteStores) -> None:
    force = by_sre()
    office = an_office(storage, looks("a", "b"), force)
    await granted(office)
    force.rulebook = by_sre(max_age="5m").rulebook
    await again(office)
    assert office.ran == [("look", "a")]
