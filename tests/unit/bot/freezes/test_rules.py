"""Who is named, what is kept, and what is refused when people freeze and lift."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from bot.audit.acts import Act
from bot.errors import AlreadyConfirmedError, UnknownFreezeError
from bot.freezes.rules import MOST, frozen, lifted
from bot.records.switch import (
    Confirmation,
    Freeze,
    FreezeAct,
    FreezeAlert,
    FreezeScope,
    ScopeKind,
    SwitchRecord,
)

ADA, BEN = "U0ADA", "U0BEN"
SQL = FreezeScope(kind=ScopeKind.TOOL, name="sql")


def a_freeze(scope: FreezeScope = FreezeScope(), *, by: str = ADA, turns: bool = False) -> Freeze:  # noqa: B008 - a constant
    return Freeze(id="", scope=scope, by=by, why="an agent runs wild", since_ms=1, turns=turns)


def confirmed(by: str = ADA) -> Confirmation:
    return Confirmation(by=by, why="mended", at_ms=2)


def test_a_second_freeze_of_one_scope_names_the_first() -> None:
    once = frozen(SwitchRecord(), a_freeze(SQL))
    twice = frozen(once, a_freeze(SQL, by=BEN))
    assert twice.freezes == once.freezes
    assert [freeze.by for freeze in twice.freezes] == [ADA]


def test_turns_are_added_to_the_freeze_of_this_scope() -> None:
    switch = frozen(frozen(SwitchRecord(), a_freeze(SQL)), a_freeze(SQL, by=BEN, turns=True))
    assert [(freeze.by, freeze.turns) for freeze in switch.freezes] == [(ADA, True)]


def test_the_21st_freeze_covers_all() -> None:
    switch = SwitchRecord()
    for number in range(MOST + 3):
        scope = FreezeScope(kind=ScopeKind.TOOL, name=f"tool{number}")
        switch = frozen(switch, a_freeze(scope))
    assert [str(freeze.scope) for freeze in switch.freezes][MOST - 1 :] == ["tool tool19", "all"]


def test_an_id_is_never_used_again() -> None:
    switch = lifted(frozen(SwitchRecord(), a_freeze(SQL)), "f1", confirmed(), count=1)
    assert [freeze.id for freeze in frozen(switch, a_freeze(SQL)).freezes] == ["f2"]


def test_two_people_lift_where_two_must() -> None:
    switch = lifted(frozen(SwitchRecord(), a_freeze()), "f1", confirmed(), count=2)
    with pytest.raises(AlreadyConfirmedError, match="1 more person"):
        lifted(switch, "f1", confirmed(), count=2)
    assert lifted(switch, "f1", confirmed(BEN), count=2).freezes == ()


@pytest.mark.parametrize("scope", [SQL, FreezeScope()])
def test_a_freeze_that_is_set_again_or_widened_needs_all_confirmations_anew(
    scope: FreezeScope,
) -> None:
    switch = lifted(frozen(SwitchRecord(), a_freeze(SQL)), "f1", confirmed(), count=2)
    again = frozen(switch, a_freeze(scope, by=BEN))
    assert again.freezes[0].confirmations == ()
    assert lifted(again, "f1", confirmed(BEN), count=2).freeze("f1") is not None


def test_a_lower_count_lifts_with_the_confirmations_that_are_there() -> None:
    switch = lifted(frozen(SwitchRecord(), a_freeze()), "f1", confirmed(), count=3)
    assert lifted(switch, "f1", confirmed(), count=1).freezes == ()


def test_without_an_id_the_only_freeze_is_lifted() -> None:
    assert lifted(frozen(SwitchRecord(), a_freeze()), "", confirmed(), count=1).freezes == ()


def test_a_freeze_that_is_not_there_is_not_lifted() -> None:
    with pytest.raises(UnknownFreezeError, match="Nothing is frozen"):
        lifted(SwitchRecord(), "", confirmed(), count=1)
    second = frozen(frozen(SwitchRecord(), a_freeze(SQL)), a_freeze())
    with pytest.raises(UnknownFreezeError, match="f1, f2"):
        lifted(second, "", confirmed(), count=1)
    with pytest.raises(UnknownFreezeError, match="no freeze f9"):
        lifted(second, "f9", confirmed(), count=1)


@pytest.mark.parametrize(("kind", "name"), [("all", "x"), ("tool", "")])
def test_a_scope_has_a_name_unless_it_is_all(kind: str, name: str) -> None:
    with pytest.raises(ValidationError):
        FreezeScope(kind=ScopeKind(kind), name=name)


@pytest.mark.parametrize("why", ["", "x" * 301])
def test_a_reason_is_required_and_short(why: str) -> None:
    with pytest.raises(ValidationError):
        Freeze(id="f1", scope=SQL, by=ADA, why=why, since_ms=1)


def test_each_action_is_kept_for_the_audit_with_the_revision_that_it_makes() -> None:
    before = SwitchRecord().changed(revision=4)
    switch = frozen(before, a_freeze(SQL))
    (first,) = switch.freezes
    froze = FreezeAct(
        act=Act.FROZEN, freeze=first, by=ADA, why="an agent runs wild", at_ms=1, revision=5
    )
    assert switch.acts == (froze,)
    again = frozen(switch, a_freeze(SQL, by=BEN))
    assert again.acts[-1] == froze.changed(by=BEN)
    some = lifted(switch, "f1", confirmed(), count=2)
    lifts = FreezeAct(
        act=Act.UNFROZEN, freeze=first, by=ADA, why="mended", at_ms=2, revision=5, missing=1
    )
    assert some.acts == (froze, lifts)
    assert lifted(some, "f1", confirmed(BEN), count=2).acts[-1] == lifts.changed(by=BEN, missing=0)


def test_another_scope_keeps_its_confirmations() -> None:
    switch = lifted(frozen(SwitchRecord(), a_freeze(SQL)), "f1", confirmed(), count=2)
    other = FreezeScope(kind=ScopeKind.TOOL, name="pay")
    both = frozen(switch, a_freeze(other).changed(confirmations=(confirmed(),)))
    assert [freeze.confirmations for freeze in both.freezes] == [(confirmed(),), ()]
    lifted_other = lifted(both, "f2", confirmed(BEN), count=1)
    assert [freeze.id for freeze in lifted_other.freezes] == ["f1"]
    assert lifted(both, "f2", confirmed(BEN), count=2).freezes[0] == both.freezes[0]


def test_a_full_switch_takes_the_same_scope_again() -> None:
    switch = SwitchRecord()
    for number in range(MOST):
        scope = FreezeScope(kind=ScopeKind.TOOL, name=f"tool{number}")
        switch = frozen(switch, a_freeze(scope))
    again = frozen(switch, a_freeze(FreezeScope(kind=ScopeKind.TOOL, name="tool3"), turns=True))
    assert [freeze.id for freeze in again.freezes] == [freeze.id for freeze in switch.freezes]
    assert [freeze.id for freeze in again.freezes if freeze.turns] == ["f4"]


@pytest.mark.parametrize("channel", ["C0ALERT", ""])
def test_the_lifting_of_a_freeze_is_told_where_its_alert_is(channel: str) -> None:
    switch = frozen(SwitchRecord(), a_freeze(SQL))
    alert = FreezeAlert(freeze=switch.freezes[0], channel=channel)
    switch = switch.with_alert("f1", alert)
    assert lifted(switch, "f1", confirmed(), count=2).alerts == (alert,)
    alerts = (alert.changed(lifted=confirmed()),) if channel else ()
    assert lifted(switch, "f1", confirmed(), count=1).alerts == alerts
