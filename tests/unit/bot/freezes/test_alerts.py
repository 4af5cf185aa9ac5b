"""The messages about freezes: one alert each, kept true, and reminders (11.23)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.freezes.requests import Liftable
from bot.freezes.rights import ADMINS_ONLY
from bot.records.approval import Execution, ExecutionState, Kind, Status
from bot.records.switch import (
    MAX_ALERTS,
    Confirmation,
    Freeze,
    FreezeAlert,
    FreezeScope,
    ScopeKind,
    SwitchRecord,
)
from bot.slack.cards.change_note import frozen
from bot.slack.side_messages.freezes import (
    freeze_card,
    lift_form,
    running_lines,
    still_frozen_card,
)
from tests.contract.builders import an_approval
from tests.support.fakes import FakeNotices
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, THREAD_ID, KilledError, Office
from tests.unit.bot.slack.cards.samples import an_approval as approval_of_cards
from tests.unit.bot.slack.cards.test_properties import walk
from tests.unit.bot.slack.cards.test_words import shown

ALL = FreezeScope()
CLI = "cli:root@db1"


def an_office(
    storage: SqliteStores, *, alert: str = "C9", count: int = 1, **more: object
) -> Office:
    office = Office(storage, [], **more)  # type: ignore[arg-type]
    rights = replace(ADMINS_ONLY, alert=alert, count=count)
    alerts = office.freeze_alerts
    office.freeze_alerts = replace(alerts, rights=lambda: rights)
    office.__dict__.pop("sweep", None)
    return office


async def look(office: Office) -> None:
    await office.later()


async def freeze(office: Office, *, by: str = ADA, place: str = "C1") -> None:
    await office.freezes.freeze(ALL, by=by, why="The *bank* is down.", place=place)


async def lift(office: Office, *, by: str = BEN, count: int = 1) -> None:
    await office.freezes.lift("f1", by=by, why="It is up.", count=count)


def texts(office: Office, count: int = 1) -> list[str]:
    cards = [freeze_card(alert, count=count) for alert in office.notices.freezes]
    return [shown(card.blocks) for card in cards]


@pytest.mark.parametrize(
    ("by", "alert", "channels"),
    [
        (ADA, "C9", ["C9"]),
        (ADA, "", ["C1"]),
        (CLI, "C9", ["C9"]),
        (CLI, "", []),
    ],
)
async def test_the_alert_goes_to_the_policys_channel_or_the_place_of_the_command(
    storage: SqliteStores, by: str, alert: str, channels: list[str]
) -> None:
    office = an_office(storage, alert=alert)
    await freeze(office, by=by, place="C1" if by == ADA else "")
    for _ in range(3):
        await look(office)
    assert [posted.channel for posted in office.notices.freezes] == channels


async def test_the_alert_is_kept_true_until_it_shows_the_lifting(storage: SqliteStores) -> None:
    office = an_office(storage, count=2)
    await freeze(office)
    await look(office)
    await lift(office, by=ADA, count=2)
    await look(office)
    await office.freezes.freeze(ALL, by=BEN, why="Still down.", turns=True)
    await look(office)
    await lift(office, by=ADA, count=2)
    await lift(office, by=BEN, count=2)
    await look(office)
    await look(office)
    first, confirmed, wider, over = texts(office, count=2)
    assert f"<@{ADA}> froze everything <!date^" in first
    assert "The *bank* is down." in first
    assert "Lift…" in first
    assert f"<@{ADA}> wants to lift it. 1 more person must confirm." in confirmed
    assert "Agents stop, too." in wider
    assert "wants to lift it" not in wider
    assert f"<@{BEN}> lifted the freeze of everything." in over
    assert "It is up." in over
    assert "Lift…" not in over
    assert len({alert.ts for alert in office.notices.freezes[1:]}) == 1
    assert (await office.freezes.read()).alerts == ()


async def test_a_freeze_that_is_lifted_before_anybody_was_told_needs_no_alert(
    storage: SqliteStores,
) -> None:
    office = an_office(storage)
    await freeze(office)
    await lift(office)
    await look(office)
    assert office.notices.freezes == []


class DyingNotices(FakeNotices):
    """Posts, and dies before anybody knows."""

    async def show_freeze(self, alert: FreezeAlert, *, count: int) -> str:
        await super().show_freeze(alert, count=count)
        raise KilledError


async def test_after_a_death_another_process_takes_over_later(storage: SqliteStores) -> None:
    first = an_office(storage)
    first.freeze_alerts = replace(first.freeze_alerts, notices=DyingNotices())
    await freeze(first)
    with pytest.raises(KilledError):
        await look(first)
    second = an_office(storage, clock=first.clock, owner="second")
    await look(second)
    assert second.notices.freezes == []
    second.clock.forward(minutes=2)
    await look(second)  # which finds the message in Slack
    assert len(second.notices.freezes) == 1


async def test_a_slack_that_is_away_gets_the_alert_later(storage: SqliteStores) -> None:
    office = an_office(storage)
    office.notices.is_down = True
    await freeze(office)
    await look(office)
    office.notices.is_down = False
    office.clock.forward(seconds=15)
    await look(office)
    assert len(office.notices.freezes) == 1
    office.notices.is_down = True
    await lift(office)
    await look(office)
    office.notices.is_down = False
    office.clock.forward(seconds=15)
    await look(office)
    assert "lifted the freeze" in texts(office)[-1]
    assert (await office.freezes.read()).alerts == ()


async def test_a_channel_without_the_bot_leaves_the_alert_to_whoever_froze(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, alert="")
    office.notices.closed = {"C1", ADA}
    await freeze(office)
    for _ in range(3):
        await look(office)
    assert office.notices.freezes == []
    office.notices.closed = {"C1"}
    await lift(office)
    await look(office)
    assert (await office.freezes.read()).alerts == ()
    await freeze(office)
    await look(office)
    await look(office)
    assert [alert.channel for alert in office.notices.freezes] == [ADA]


@pytest.mark.parametrize("by", [ADA, CLI])
async def test_a_person_who_froze_is_reminded_each_day(storage: SqliteStores, by: str) -> None:
    office = an_office(storage)
    await freeze(office, by=by)
    await look(office)
    for hours in (23, 2, 2, 23, 48):
        office.clock.forward(hours=hours)
        await look(office)
        await look(office)
    expected = [(ADA, "f1", 1), (ADA, "f1", 2), (ADA, "f1", 4)]
    assert office.notices.reminded == (expected if by == ADA else [])
    await lift(office)
    await look(office)
    office.clock.forward(hours=48)
    await look(office)
    assert len(office.notices.reminded) == len(expected if by == ADA else [])
    assert len(office.notices.freezes) == 2


async def test_a_reminder_that_slack_does_not_take_comes_later(storage: SqliteStores) -> None:
    office = an_office(storage)
    await freeze(office)
    await look(office)
    office.clock.forward(hours=25)
    office.notices.is_down = True
    await look(office)
    office.notices.is_down = False
    office.clock.forward(seconds=15)
    await look(office)
    assert office.notices.reminded == [(ADA, "f1", 1)]


async def test_the_reminder_names_the_scope_and_lifts(storage: SqliteStores) -> None:
    office = an_office(storage)
    scope = FreezeScope(kind=ScopeKind.TOOL, name="pay")
    await office.freezes.freeze(scope, by=ADA, why="sk-abcdefghijklmnopqrstuvwxyz")
    (frozen,) = await office.freezes.in_force()
    card = still_frozen_card(frozen)
    assert card.text.startswith("Your freeze of tool pay still holds, since ")
    assert "Lift…" in shown(card.blocks)
    assert "sk-abc" not in shown(card.blocks)


async def test_11_17_a_freeze_names_what_runs_and_what_is_in_doubt(storage: SqliteStores) -> None:
    base = an_approval(tool="pay", thread_id=THREAD_ID)
    runs = base.changed(
        status=Status.APPROVED, execution=Execution(state=ExecutionState.STARTED, number=1)
    )
    doubt = base.changed(approval_id=f"apr_{'1' * 32}", kind=Kind.DOUBT)
    waits = base.changed(approval_id=f"apr_{'2' * 32}")
    for approval in (runs, doubt, waits):
        await storage.approvals.insert(approval)
    office = Office(storage, [])
    running = await office.freezing.running(ALL)
    assert {approval.approval_id for approval in running} == {runs.approval_id, doubt.approval_id}
    first, second = running_lines(running)
    assert first.startswith("Still running: `pay` in <#C1> (")
    assert second.startswith("Nobody knows whether these ran: `pay` in <#C1> (")
    other = FreezeScope(kind=ScopeKind.TOOL, name="refund")
    assert running_lines(await office.freezing.running(other)) == [
        "No approved call is still running."
    ]
    assert running_lines([runs] * 7)[0].endswith(", 2 others.")


async def test_i10_a_reason_changes_no_formatting(storage: SqliteStores) -> None:
    office = an_office(storage)
    why = "*bold* <!channel> `code`"
    await office.freezes.freeze(ALL, by=ADA, why=why)
    (freeze_,) = await office.freezes.in_force()
    alert = FreezeAlert(freeze=freeze_, lifted=Confirmation(by=BEN, why=why, at_ms=1))
    for blocks in (
        freeze_card(alert.changed(lifted=None), count=1).blocks,
        freeze_card(alert, count=1).blocks,
        still_frozen_card(freeze_).blocks,
        lift_form(Liftable(freezes=(freeze_,), count=1, waiting=0))["blocks"],
        frozen(approval_of_cards().changed(frozen=freeze_)),
    ):
        plain = [part for part in walk(blocks) if "*bold*" in str(part.get("text"))]
        assert plain
        assert {part["type"] for part in plain} <= {"text", "plain_text"}


def test_alerts_that_nobody_can_post_do_not_fill_the_switch() -> None:
    switch, held = SwitchRecord(), Freeze(id="f1", scope=ALL, by=ADA, why="x", since_ms=1)
    over = Confirmation(by=BEN, why="y", at_ms=2)
    switch = switch.with_alert("f1", FreezeAlert(freeze=held, channel="C1"))
    for number in range(2, 99):
        name = f"f{number}"
        alert = FreezeAlert(freeze=held.changed(id=name), channel="C1", lifted=over)
        switch = switch.with_alert(name, alert)
    assert len(switch.alerts) == MAX_ALERTS
    assert switch.alert("f1") is not None
    assert switch.alert("f98") is not None
