"""`/countersign freeze`, `unfreeze` and `freezes`: who may, what is a scope, and the answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agents.models import say
from bot.freezes.rights import ADMINS_ONLY
from bot.layout.action_ids import ActionId
from bot.records.switch import FreezeScope, ScopeKind
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import Counter, a_form, a_press, picked, typed
from tests.unit.bot.office import ADA, BEN, CHANNEL, GUS, ROSA, Office
from tests.unit.bot.slack.listeners.test_commands import reply_to, send
from tests.unit.bot.slack.listeners.test_home import home_of


@pytest.fixture
async def counter(storage: SqliteStores) -> Counter:
    office = Office(storage, [say("Hello.")])
    office.directory.add(ADA, is_admin=True)
    office.directory.add(GUS, is_admin=True, is_guest=True)
    return Counter.on(office)


async def in_force(counter: Counter) -> list[str]:
    freezes = await counter.office.freezes.in_force()
    return [f"{freeze.id} {freeze.scope}{' turns' if freeze.turns else ''}" for freeze in freezes]


async def refusals(counter: Counter) -> list[tuple[str, object]]:
    entries = await counter.office.storage.audit.of_thread("", limit=9)
    refused = [entry for entry in entries if entry.action == "refused"]
    return [(entry.actor_id, entry.detail["code"]) for entry in refused]


async def test_an_admin_freezes_all_with_a_reason(counter: Counter) -> None:
    words = await reply_to(counter, "freeze an agent runs *wild*", by=ADA)
    assert words == (
        "❄️ f1: everything is frozen. Nothing starts until it's lifted.\n"
        "No approved call is still running."
    )
    (alert,) = counter.office.notices.freezes  # at once, in the channel of the command
    assert (alert.channel, alert.freeze.id) == (CHANNEL, "f1")
    (freeze,) = await counter.office.freezes.in_force()
    assert (freeze.by, freeze.why, str(freeze.scope)) == (ADA, "an agent runs *wild*", "all")
    listed = await reply_to(counter, "freezes", by=BEN)
    assert listed.startswith(f"*f1*  everything, by <@{ADA}>, <!date^")
    assert "an agent runs *wild*" in (await send(counter, "freezes", by=BEN)).body
    again = await reply_to(counter, "freeze wild, too", by=ADA)
    assert again.startswith(f"❄️ f1: <@{ADA}> froze everything <!date^")


@pytest.mark.parametrize(
    ("typed", "frozen"),
    [
        (f"freeze <#{CHANNEL}|ops> wild", f"f1 channel {CHANNEL}"),
        (f"freeze <#{CHANNEL}> turns wild", f"f1 channel {CHANNEL} turns"),
        ("freeze turns wild", "f1 all turns"),
        ("freeze all agent smith is odd", "f1 all"),
        ("FREEZE all wild", "f1 all"),
        ("freeze the agent smith is odd", "f1 all"),
    ],
)
async def test_words_after_the_scope_are_the_reason(
    counter: Counter, typed: str, frozen: str
) -> None:
    await reply_to(counter, typed, by=ADA)
    assert await in_force(counter) == [frozen]


async def test_24_2_a_reason_is_never_read_as_a_scope(counter: Counter) -> None:
    words = await reply_to(counter, "freeze agent smith is odd", by=ADA)
    assert words == (
        "I know no agent “smith”. Or freeze all.\n"
        "To freeze everything for that reason: `/countersign freeze all agent smith is odd`"
    )
    assert await in_force(counter) == []
    assert await refusals(counter) == [(ADA, "unknown_scope")]


@pytest.mark.parametrize("typed", ["freeze", "freeze all", "freeze tool", "freeze turns"])
async def test_a_reason_is_required(counter: Counter, typed: str) -> None:
    assert await reply_to(counter, typed, by=ADA) == "This needs a reason."
    assert await in_force(counter) == []


async def test_a_long_reason_is_cut_and_freezes(counter: Counter) -> None:
    await reply_to(counter, f"freeze {'wild ' * 90}", by=ADA)
    (freeze,) = await counter.office.freezes.in_force()
    assert len(freeze.why) == 300


async def test_a_freeze_is_lifted_by_its_id(counter: Counter) -> None:
    await reply_to(counter, "freeze wild", by=ADA)
    await reply_to(counter, f"freeze <#{CHANNEL}|ops> wild", by=ADA)
    assert await reply_to(counter, "unfreeze mended", by=ADA) == "Say which freeze to lift: f1, f2."
    assert await reply_to(counter, "unfreeze f9 mended", by=ADA) == (
        "There's no freeze f9. In force: f1, f2."
    )
    assert await reply_to(counter, "unfreeze F1 mended", by=ADA) == (
        "f1: everything is no longer frozen.\nStill in force: f2."
    )
    assert await reply_to(counter, "unfreeze mended", by=ADA) == (
        f"f2: <#{CHANNEL}> is no longer frozen."
    )
    assert await reply_to(counter, "freezes", by=BEN) == "Nothing is frozen."


async def test_i13_a_confirmation_counts_only_while_its_person_may_lift(counter: Counter) -> None:
    office = counter.office
    office.directory.add(BEN, is_admin=True)
    office.freezing = replace(office.freezing, rights=lambda: replace(ADMINS_ONLY, count=2))
    await reply_to(counter, "freeze wild", by=ADA)
    await reply_to(counter, "unfreeze mended", by=ADA)
    office.directory.add(ADA)  # no admin now
    assert "1 more person must confirm" in await reply_to(counter, "unfreeze mended", by=BEN)
    assert await in_force(counter) == ["f1 all"]
    office.directory.add(ROSA, is_admin=True)
    assert "no longer frozen" in await reply_to(counter, "unfreeze mended", by=ROSA)


def pressed(freeze_id: str, by: str) -> dict[str, Any]:
    """A click on *Lift…* in an alert."""
    message = {"ts": "9.1", "text": "x"}
    place = {"container": {"type": "message", "message_ts": "9.1"}, "message": message}
    return {**a_press(ActionId.LIFT, freeze_id, by), **place}


def lifting(values: dict[str, Any], by: str, *, kept: str = "") -> dict[str, Any]:
    return a_form(ActionId.LIFT_MODAL, values, by, kept=kept)


async def test_without_a_reason_a_form_asks_for_it(counter: Counter) -> None:
    await reply_to(counter, "freeze *wild*", by=ADA)
    opened = await send(counter, "unfreeze", by=ADA)
    assert (opened.status, opened.body) == (200, "")
    view = counter.views.opened[-1]
    assert "everything" in str(view["blocks"][0])
    assert "No call waits." in str(view["blocks"][-1])
    assert not [block for block in view["blocks"] if block.get("block_id") == "which"]
    faults = await counter.send(lifting(typed("why", " "), ADA, kept=view["private_metadata"]))
    assert "This needs a reason." in faults.body
    answer = await counter.send(lifting(typed("why", "tame"), ADA, kept=view["private_metadata"]))
    assert "f1: everything is no longer frozen." in answer.body
    assert await in_force(counter) == []


async def test_of_several_freezes_the_form_asks_which(counter: Counter) -> None:
    await reply_to(counter, "freeze wild", by=ADA)
    await reply_to(counter, f"freeze <#{CHANNEL}|ops> wild", by=ADA)
    await send(counter, "unfreeze", by=ADA)
    (which,) = [
        block for block in counter.views.opened[-1]["blocks"] if block.get("block_id") == "which"
    ]
    assert [option["value"] for option in which["element"]["options"]] == ["f1", "f2"]
    assert "initial_option" not in which["element"]
    await send(counter, "unfreeze f2", by=ADA)
    assert "'initial_option': {'text'" in str(counter.views.opened[-1])
    await counter.send(lifting({**picked("which", "f1"), **typed("why", "tame")}, ADA, kept="f2"))
    assert await in_force(counter) == [f"f2 channel {CHANNEL}"]


async def test_lift_of_an_alert_opens_the_form_for_those_who_may_lift(counter: Counter) -> None:
    await reply_to(counter, "freeze wild", by=ADA)
    await counter.send(pressed("f1", BEN))
    assert counter.views.opened == []
    assert counter.private_text(BEN).startswith("Only admins of this workspace can do that.")
    await counter.send(pressed("f1", ADA))
    assert counter.views.opened[-1]["callback_id"] == ActionId.LIFT_MODAL
    counter.office.clock.forward(seconds=1)
    answer = await counter.send(lifting(typed("why", "tame"), BEN, kept="f1"))  # forged
    assert "Only admins" in answer.body
    assert await in_force(counter) == ["f1 all"]
    assert [who for who, _ in await refusals(counter)] == [BEN, BEN]


@pytest.mark.parametrize("kept", ["", "f9", "all", "f1|f2"])
async def test_a_form_about_no_freeze_lifts_nothing(counter: Counter, kept: str) -> None:
    await reply_to(counter, "freeze wild", by=ADA)
    await counter.send(lifting(typed("why", "tame"), ADA, kept=kept))
    await counter.send(pressed(kept, ADA))
    assert counter.views.opened == []
    assert await in_force(counter) == ["f1 all"]


async def test_there_is_no_form_without_a_freeze(counter: Counter) -> None:
    assert await reply_to(counter, "unfreeze", by=ADA) == "Nothing is frozen."
    await reply_to(counter, "freeze wild", by=ADA)
    assert "There's no freeze f9." in await reply_to(counter, "unfreeze f9", by=ADA)
    assert counter.views.opened == []


async def test_the_form_shows_who_has_confirmed_the_lifting(counter: Counter) -> None:
    counter.office.directory.add(BEN, is_admin=True)
    two = counter.office.freezing
    counter.office.freezing = replace(two, rights=lambda: replace(ADMINS_ONLY, count=2))
    again = Counter.on(counter.office)
    await reply_to(again, "freeze wild", by=ADA)
    answer = await again.send(lifting(typed("why", "tame"), ADA, kept="f1"))
    assert "f1: everything stays frozen. 1 more person must confirm." in answer.body
    await send(again, "unfreeze", by=BEN)
    view = str(again.views.opened[-1])
    assert f"<@{ADA}> wants to lift it. 1 more person must confirm." in view
    assert "2 different people must lift it." in view


async def test_home_shows_freezes_above_everything_to_everybody(counter: Counter) -> None:
    for number in range(7):
        await counter.office.freezes.freeze(
            FreezeScope(kind=ScopeKind.TOOL, name=f"sql{number}"), by="cli:root@db1", why="wild"
        )
    home = await home_of(counter, BEN)
    first = home["blocks"][0]["text"]["text"].splitlines()
    assert len(first) == 6
    assert first[0].startswith("❄️ Frozen: tool sql0 since ")
    assert first[0].endswith("by `cli:root@db1`")
    assert first[-1] == "2 more: `/countersign freezes`"


async def test_11_19_an_open_home_hears_of_a_freeze_of_the_command_line(counter: Counter) -> None:
    await home_of(counter, BEN)
    office = counter.office
    await office.later()
    office.clock.forward(seconds=5)
    await office.freezes.freeze(FreezeScope(), by="cli:root@db1", why="wild")
    await office.later()
    user, home = counter.views.published[-1]
    assert (user, "Frozen: everything since" in str(home["blocks"][0])) == (BEN, True)
