"""Break-glass: who may, what they have to say, and who hears of it (6.4)."""

from __future__ import annotations

import json

import pytest

from agents.models import Turn, call, say
from bot.audit.report import story
from bot.errors import DirectoryError, RefusalError
from bot.layout.action_ids import ActionId
from bot.people.break_glass import Reasons
from bot.records.approval import Approval, Status
from bot.records.approval_queries import newest_of
from bot.records.switch import FreezeScope, ScopeKind
from bot.stores import Stores
from storage.documents import update
from tests.support.force import Forced, forced
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_votes import Failing
from tests.unit.bot.counter_stage import Counter, a_click, a_submission, typed
from tests.unit.bot.office import ADA, BEN, CHANNEL, ROSA, THREAD_ID, Office, an_actor

MIA, TOM = "UMIA", "UTOM"
LOOK: list[Turn] = [call("look", {"what": "a"}, id="c1"), say("done")]
WHAT, WHY_NOW = "the database is down", "nobody else is awake"


def glass(**more: object) -> Forced:
    ask = {
        "approve": [{"from": ["sre"], "count": 2}],
        "break_glass": {"by": ["oncall"], "alert": "C0ALERT"},
        **more,
    }
    groups = {"sre": {"users": [ADA, BEN]}, "oncall": {"users": [MIA, ROSA, ADA]}}
    return forced(default={"ask": ask}, groups=groups)


async def asked(storage: Stores, force: Forced | None = None, **more: object) -> Counter:
    office = Office(storage, LOOK, policy=force or glass(), **more)  # type: ignore[arg-type]
    for name in (MIA, TOM):
        office.directory.add(name)
        office.directory.channels[CHANNEL] |= {name}
    await office.hear("<@UBOT> look")
    return Counter.on(office)


def a_form(what: str = WHAT, why_now: str = WHY_NOW, *, sure: bool = True) -> dict[str, object]:
    chosen = [{"value": "yes"}] if sure else []
    box = {"sure": {"countersign:value": {"type": "checkboxes", "selected_options": chosen}}}
    return {**typed("what", what), **typed("why_now", why_now), **box}


async def submitted(counter: Counter, by: str, form: dict[str, object]) -> dict[str, object]:
    approval = (await newest_of(counter.office.storage.approvals, THREAD_ID, limit=1))[0]
    sent = a_submission(approval, ActionId.OVERRIDE_MODAL, form, by)
    body = (await counter.send(sent)).body
    return dict(json.loads(body)) if body else {}


async def acts(storage: Stores) -> list[str]:
    wanted = {"broke_glass", "decided", "voted", "started", "refused", "denied"}
    return [
        entry.action
        for entry in await story(storage, thread_id=THREAD_ID)
        if entry.action in wanted
    ]


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        (a_form("down", "down"), {"what", "why_now"}),
        (a_form("d o w n n o w", "x" * 10), set()),
        (a_form("\u200b" * 30, WHY_NOW), {"what"}),
        (a_form(" " * 30, WHY_NOW), {"what"}),
        (a_form(WHAT, WHAT), {"why_now"}),
        (a_form(WHAT, f"  {WHAT.upper()} "), {"why_now"}),
        (a_form(sure=False), {"sure"}),
        ({}, {"what", "why_now", "sure"}),
    ],
)
async def test_two_reasons_and_a_tick_are_needed(
    storage: SqliteStores, form: dict[str, object], fields: set[str]
) -> None:
    counter = await asked(storage)
    answer = await submitted(counter, MIA, form)
    assert set(answer.get("errors") or {}) == fields  # type: ignore[call-overload]
    assert (counter.office.ran == []) is bool(fields)
    assert ("refused" in await acts(storage)) is bool(fields)


def without_contractors() -> Forced:
    """A policy that leaves out a group, of which somebody is on call."""
    ask = {
        "approve": [{"from": ["sre"]}],
        "exclude": ["requesters", "contractors"],
        "break_glass": {"by": ["oncall"], "alert": "C0ALERT"},
    }
    groups = {
        "sre": {"users": [ADA, BEN]},
        "oncall": {"users": [MIA, ROSA]},
        "contractors": {"usergroups": ["S0CONTRACT"]},
    }
    return forced(default={"ask": ask}, groups=groups)


async def test_who_is_left_out_by_the_rule_has_no_emergencies(storage: SqliteStores) -> None:
    counter = await asked(storage, without_contractors())
    people = counter.office.directory
    people.groups["S0CONTRACT"] = frozenset({MIA})
    await counter.send(a_click(await counter.office.the_approval(), ActionId.OVERRIDE, MIA))
    await submitted(counter, MIA, a_form())
    assert (counter.views.opened, counter.office.ran) == ([], [])
    assert "policy doesn't let you approve" in counter.private_text(MIA)
    people.groups["S0CONTRACT"] = frozenset()
    await submitted(counter, MIA, a_form())
    assert counter.office.ran == [("look", "a")]


async def test_who_edited_the_call_has_no_emergencies_where_editors_are_excluded(
    storage: SqliteStores,
) -> None:
    counter = await asked(
        storage, glass(approve=[{"from": ["sre"]}], edit="yes", exclude=["editors"])
    )
    await counter.office.decide(await counter.office.the_approval(), edited={"what": "b"}, by=ADA)
    answer = await submitted(counter, ADA, a_form())
    assert counter.office.ran == []
    assert "You edited this" in str(answer)
    await submitted(counter, MIA, a_form())
    assert counter.office.ran == [("look", "b")]


async def test_who_voted_in_a_gate_around_has_no_emergencies(storage: SqliteStores) -> None:
    counter = await asked(storage)
    approval = await counter.office.the_approval()
    await update(
        storage.approvals, approval.approval_id, lambda stored: stored.changed(counted=(MIA,))
    )
    answer = await submitted(counter, MIA, a_form())
    assert counter.office.ran == []
    assert "already voted" in str(answer)
    await submitted(counter, ADA, a_form())
    assert counter.office.ran == [("look", "a")]


async def test_whether_somebody_is_left_out_has_to_be_known(storage: SqliteStores) -> None:
    counter = await asked(storage, without_contractors())
    people = counter.office.directory

    async def is_down(group_id: str) -> frozenset[str]:
        raise DirectoryError(group_id)

    people.group_members = is_down  # type: ignore[method-assign]
    await submitted(counter, MIA, a_form())
    assert counter.office.ran == []
    assert (await counter.office.the_approval()).status is Status.PENDING


async def test_a_policy_that_fails_lets_nothing_run_and_denies_nothing(
    storage: SqliteStores,
) -> None:
    counter = await asked(storage)
    office, force = counter.office, glass()
    broken = Forced(Failing(force.rulebook.file), file_hash="f2")
    office.change_policy(broken)
    await submitted(Counter.on(office), MIA, a_form())
    assert (office.ran, (await office.the_approval()).status) == ([], Status.PENDING)


async def test_it_comes_too_late_where_somebody_has_decided(storage: SqliteStores) -> None:
    counter = await asked(storage)
    approval = await counter.office.the_approval()
    await counter.office.decide(approval, Status.REJECTED)
    await submitted(counter, MIA, a_form())
    stored = await storage.approvals.get(approval.approval_id)
    assert (stored.status, counter.office.ran) == (Status.REJECTED, [])


async def test_votes_that_come_meanwhile_do_not_stop_it(storage: SqliteStores) -> None:
    counter = await asked(storage)
    approval = await counter.office.the_approval()
    seen = await counter.office.approvals.get_pending(
        approval.approval_id, an_actor(MIA), shown=approval.digest
    )
    await counter.office.decide(approval)
    reasons = Reasons(what=WHAT, why_now=WHY_NOW, is_sure=True)
    decided = await counter.office.approvals.break_glass(seen, an_actor(MIA), reasons)
    assert (decided.status, decided.votes) == (Status.APPROVED, ())


async def test_who_may_no_longer_do_so_starts_nothing_a_minute_later(storage: SqliteStores) -> None:
    counter = await asked(storage)
    approval = await counter.office.the_approval()
    reasons = Reasons(what=WHAT, why_now=WHY_NOW, is_sure=True)
    await counter.office.approvals.break_glass(approval, an_actor(MIA), reasons)
    counter.office.clock.forward(minutes=2)
    counter.office.directory.add(MIA, is_deleted=True)
    await counter.office.later()
    assert counter.office.ran == []
    assert (await counter.office.the_approval()).asked_again


async def test_whoever_resumes_the_run_of_who_died_tells_people_first(
    storage: SqliteStores,
) -> None:
    """The thread may be woken by something else, before anybody looks at the card."""
    counter = await asked(storage)
    approval = await counter.office.the_approval()
    reasons = Reasons(what=WHAT, why_now=WHY_NOW, is_sure=True)
    await counter.office.approvals.break_glass(approval, an_actor(MIA), reasons)
    counter.office.queue.drop()  # it dies before anything follows
    after = Office(storage, LOOK[1:], policy=glass(), clock=counter.office.clock, owner="after")
    after.clock.forward(seconds=30)
    await storage.threads.wake(THREAD_ID, now_ms=after.clock())
    await after.threads.work(THREAD_ID)
    assert [to for to, _ in after.notices.alerts] == ["C0ALERT", ADA, BEN]
    assert await acts(storage) == ["broke_glass", "decided", "started"]


async def test_whom_slack_did_not_let_be_told_is_told_later_by_any_process(
    storage: SqliteStores,
) -> None:
    counter = await asked(storage)
    counter.office.notices.is_down = True
    await submitted(counter, MIA, a_form())
    (approval,) = await newest_of(storage.approvals, THREAD_ID, limit=1)
    assert approval.due_ms is not None
    clock = counter.office.clock
    after = Office(storage, [], policy=glass(), clock=clock, owner="after")
    for is_down in (True, False, False):
        after.notices.is_down = is_down
        clock.forward(minutes=5)
        await after.later()
    assert [to for to, _ in after.notices.alerts] == ["C0ALERT", ADA, BEN]
    assert (await storage.approvals.get(approval.approval_id)).due_ms is None
    assert await acts(storage) == ["broke_glass", "decided", "started"]


async def broken(storage: Stores) -> tuple[Counter, Approval]:
    """A call runs without those who should decide it, and they have been told."""
    counter = await asked(storage)
    counter.office.directory.channels["C0ALERT"] = frozenset({TOM, MIA})
    await submitted(counter, MIA, a_form())
    return counter, (await newest_of(storage.approvals, THREAD_ID, limit=1))[0]


def a_press(approval: Approval, by: str, channel_id: str = "C0ALERT") -> dict[str, object]:
    return {
        **a_click(approval, ActionId.SEEN, by),
        "channel": {"id": channel_id},
        "message": {"ts": "9.1", "text": "x"},
    }


async def marked(storage: Stores) -> list[str]:
    entries = await story(storage, thread_id=THREAD_ID)
    return [entry.actor_id for entry in entries if entry.action == "alert_seen"]


@pytest.mark.parametrize(
    ("who", "lost"),
    [
        (MIA, ""),
        (ROSA, ""),
        ("UNOBODY", ""),
        (TOM, "is_guest"),
        (TOM, "is_deleted"),
        (TOM, "is_external"),
        (TOM, "is_bot"),
    ],
)
async def test_nobody_else_can_say_that_they_have_seen_it(
    storage: SqliteStores, who: str, lost: str
) -> None:
    counter, approval = await broken(storage)
    if lost:
        counter.office.directory.add(who, **{lost: True})
    await counter.send(a_press(approval, who))
    assert (await marked(storage), counter.office.notices.seen) == ([], [])
    assert "refused" in await acts(storage)


async def test_what_was_no_emergency_or_is_another_one_cannot_be_seen(
    storage: SqliteStores,
) -> None:
    counter = await asked(storage)
    counter.office.directory.channels["C0ALERT"] = frozenset({TOM})
    approval = await counter.office.the_approval()
    await counter.send(a_press(approval, TOM))
    await submitted(counter, MIA, a_form())
    await counter.send(a_press(approval.changed(digest="f" * 64), TOM))
    await counter.send(a_press(approval.changed(approval_id="apr_" + "0" * 32), TOM))
    assert (await marked(storage), counter.office.notices.seen) == ([], [])


async def test_who_cannot_be_looked_up_has_seen_nothing(storage: SqliteStores) -> None:
    counter, approval = await broken(storage)
    counter.office.directory.is_down = True
    await counter.send(a_press(approval, TOM))
    assert await marked(storage) == []


async def test_it_is_on_record_though_slack_does_not_show_it(storage: SqliteStores) -> None:
    counter, approval = await broken(storage)
    counter.office.notices.is_down = True
    await counter.send(a_press(approval, TOM))
    await counter.office.queue.run()
    assert await marked(storage) == [TOM]
    assert "went wrong" not in str(counter.office.notifier.whispers)


async def test_break_glass_does_not_open_a_freeze(storage: SqliteStores) -> None:
    counter = await asked(storage)
    freezes = counter.office.freezes
    await freezes.freeze(FreezeScope(kind=ScopeKind.TOOL, name="pay"), by=BEN, why="The bank.")
    await freezes.freeze(FreezeScope(kind=ScopeKind.TOOL, name="look"), by=BEN, why="It lies.")
    approval = await counter.office.the_approval()
    reasons = Reasons(what=WHAT, why_now=WHY_NOW, is_sure=True)
    with pytest.raises(RefusalError) as refused:
        await counter.office.approvals.check_emergency(approval, an_actor(MIA))
    assert str(refused.value) == "Frozen by <@UBEN>. Nothing starts until it's lifted."
    counter.office.clock.forward(seconds=1)
    with pytest.raises(RefusalError):
        await counter.office.approvals.break_glass(approval, an_actor(MIA), reasons)
    assert (await counter.office.the_approval()).status is Status.PENDING
    assert counter.office.ran == []
    entries = await story(storage, thread_id=THREAD_ID)
    codes = [entry.detail["code"] for entry in entries if entry.action == "refused"]
    assert codes == ["frozen", "frozen"]
    await freezes.lift("f2", by=BEN, why="It is fine.", count=1)
    await counter.office.approvals.break_glass(approval, an_actor(MIA), reasons)


async def test_an_emergency_after_an_edit_is_no_rules_leave(storage: SqliteStores) -> None:
    counter = await asked(storage, glass(edit="yes"))
    edited = await counter.office.decide(await counter.office.the_approval(), edited={"what": "b"})
    assert edited.status is Status.PENDING
    await submitted(counter, MIA, a_form())
    assert counter.office.ran == [("look", "b")]
    assert "broke_glass" in await acts(storage)
    assert "decided" in await acts(storage)
