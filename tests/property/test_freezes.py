"""11.2, 11.3, 11.13: which calls are frozen after any history of freezes and liftings."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bot.errors import AlreadyConfirmedError, UnknownFreezeError
from bot.freezes.rules import MOST, CallScope, covering, covers, frozen, lifted
from bot.records.switch import Confirmation, Freeze, FreezeScope, ScopeKind, SwitchRecord
from storage.documents import readable_body

PEOPLE = ("U0ADA", "U0BEN", "cli:root@db1")
NAMES = tuple("abcdefgh")
SCOPES = st.one_of(
    st.just(FreezeScope()),
    st.builds(
        FreezeScope,
        kind=st.sampled_from([kind for kind in ScopeKind if kind is not ScopeKind.ALL]),
        name=st.sampled_from(NAMES),
    ),
)
CALLS = st.builds(
    CallScope,
    agents=st.frozensets(st.sampled_from(NAMES), min_size=1),
    tool=st.sampled_from(NAMES),
    tags=st.frozensets(st.sampled_from(NAMES)),
    channel=st.sampled_from(("", *NAMES)),
)


def a_freeze(scope: FreezeScope, *, by: str = PEOPLE[0], turns: bool = False) -> Freeze:
    return Freeze(id="", scope=scope, by=by, why="x", since_ms=1, turns=turns)


@dataclass
class Held:
    """What the oracle knows of one freeze."""

    scope: FreezeScope
    by: str
    turns: bool
    confirmed: set[str] = field(default_factory=set)


class Freezing(RuleBasedStateMachine):
    """Any order of freezes and liftings; the oracle is a dictionary by id."""

    @initialize(count=st.integers(1, 3))
    def begin(self, count: int) -> None:
        self.switch, self.held, self.count = SwitchRecord(), dict[str, Held](), count
        self.used: set[str] = set()

    @rule(scope=SCOPES, by=st.sampled_from(PEOPLE), turns=st.booleans())
    def freeze(self, scope: FreezeScope, by: str, *, turns: bool) -> None:
        before = {freeze.id for freeze in self.switch.freezes}
        self.switch = frozen(self.switch, a_freeze(scope, by=by, turns=turns))
        first = next((item for item in self.held.values() if item.scope == scope), None)
        new = [freeze for freeze in self.switch.freezes if freeze.id not in before]
        if first is None and new:
            (made,) = new
            assert made.scope == (FreezeScope() if len(self.held) >= MOST else scope)
            assert made.id not in self.used
            self.used.add(made.id)
            self.held[made.id] = Held(made.scope, by, turns)
            scope = made.scope
        elif first is None:  # no room, and all is frozen
            assert not new
            assert len(self.held) >= MOST
            scope = FreezeScope()
            first = next(item for item in self.held.values() if item.scope == scope)
        if first is not None:
            assert not new
            first.turns |= turns
            first.confirmed.clear()
        if scope == FreezeScope():
            for item in self.held.values():
                item.confirmed.clear()

    @rule(number=st.integers(1, MOST + 4), by=st.sampled_from(PEOPLE))
    def lift(self, number: int, by: str) -> None:
        name, before = f"f{number}", self.switch
        confirmation = Confirmation(by=by, why="mended", at_ms=2)
        with suppress(UnknownFreezeError, AlreadyConfirmedError):
            self.switch = lifted(self.switch, name, confirmation, count=self.count)
        item = self.held.get(name)
        if item is None or by in item.confirmed:
            assert self.switch == before
            return
        item.confirmed.add(by)
        if len(item.confirmed) >= self.count:
            del self.held[name]

    @rule(by=st.sampled_from(PEOPLE))
    def lift_the_only_one(self, by: str) -> None:
        if len(self.held) == 1:
            (name,) = self.held
            self.lift(int(name[1:]), by)

    @rule(call=CALLS)
    def call(self, call: CallScope) -> None:
        for turns in (False, True):
            freeze = covering(self.switch, call, turns=turns)
            frozen_by = [
                name
                for name, item in self.held.items()
                if covers(item.scope, call) and (item.turns or not turns)
            ]
            assert (freeze.id if freeze else None) == (frozen_by[0] if frozen_by else None)

    @invariant()
    def is_as_the_oracle_says(self) -> None:
        readable_body(self.switch)
        assert len(self.switch.freezes) <= MOST + 1
        stored = {
            freeze.id: Held(
                freeze.scope, freeze.by, freeze.turns, {c.by for c in freeze.confirmations}
            )
            for freeze in self.switch.freezes
        }
        assert stored == self.held


TestFreezing = Freezing.TestCase


@given(scope=SCOPES, call=CALLS)
def test_a_scope_covers_what_it_names(scope: FreezeScope, call: CallScope) -> None:
    named = {
        ScopeKind.ALL: {""},
        ScopeKind.AGENT: call.agents,
        ScopeKind.TOOL: {call.tool},
        ScopeKind.TAG: call.tags,
        ScopeKind.CHANNEL: {call.channel},
    }
    assert covers(scope, call) is (scope.name in named[scope.kind])


@given(scopes=st.lists(SCOPES, min_size=1, max_size=40), call=CALLS)
def test_another_freeze_never_thaws_a_call(scopes: list[FreezeScope], call: CallScope) -> None:
    switch, was_frozen = SwitchRecord(), False
    for scope in scopes:
        switch = frozen(switch, a_freeze(scope))
        is_frozen = covering(switch, call) is not None
        assert is_frozen >= was_frozen
        assert is_frozen >= covers(scope, call)
        was_frozen = is_frozen
