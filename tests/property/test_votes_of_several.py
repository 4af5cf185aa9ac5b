"""3.15 and I2 for votes: whatever happens to one request, nothing runs but what enough people want.

Random histories of votes, people who come and go, edits, changes of the policy, and hours that
pass. The oracle knows the rules as data and the world as it is; it asks no code that counts votes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agents.models import call, say
from bot.approvals.editing import Edits
from bot.errors import UserFacingError
from bot.ports.threads import CheckedCall
from bot.records.approval import Approval, Status
from bot.records.approval_queries import newest_of
from bot.records.terms import Group, Terms
from tests.support.force import Forced, forced
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, GUS, ROSA, RULES, THREAD_ID, Office, an_actor

MIA, CLEO, LIA, TOM = "UMIA", "UCLEO", "ULIA", "UTOM"
PEOPLE = (ADA, BEN, CLEO, MIA, LIA, TOM, ROSA, GUS)
SRE = "S0SRE"
PAY = call("pay", {"to": "Mia", "amount": 50, "how": "card"}, id="c1")
GROUPS: dict[str, Any] = {
    "sre": {"usergroups": [SRE]},
    "security": {"users": [MIA, CLEO]},
    "leads": {"users": [LIA, BEN]},
}
TWO: dict[str, Any] = {
    "approve": [{"from": ["sre"], "count": 2}, {"from": ["security"]}],
    "edit": True,
}
ASKS: tuple[dict[str, Any], ...] = (
    TWO,
    {**TWO, "reject": {"count": 2}, "exclude": ["requesters", "editors"]},
    {"approve": [{"from": ["sre", "security"], "count": 2}], "edit": True, "exclude": []},
    {
        "stages": [
            {"name": "team", "approve": [{"from": ["sre"]}]},
            {"name": "lead", "approve": [{"from": ["leads"]}, {"from": ["security"]}]},
        ],
        "edit": True,
    },
)
SMALL, LARGE = 1, 100
"""Amounts up to which a rule allows, and from which on one denies; in between people are asked."""
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"sre": {"users": [BEN, CLEO, TOM]}},
    {"security": {"users": [LIA]}, "leads": {"users": [TOM, LIA]}},
    {"deny": {"users": []}},
)
ENDS = {
    "approve": {Status.APPROVED, Status.DENIED},
    "editor_approves": {Status.APPROVED, Status.DENIED},
    "reject": {Status.REJECTED, Status.DENIED},
    "edit": {Status.APPROVED},
    "withdraw": {Status.WITHDRAWN},
    "passes": {Status.EXPIRED},
}
"""The transitions from pending (3.15) that an event of this history may cause."""
DECIDERS = (ADA, BEN, CLEO, MIA, LIA)
LIKELY: list[tuple[Any, ...]] = [
    *[("approve", who) for who in DECIDERS] * 12,
    *[("edit", who, amount) for who in DECIDERS for amount in (40, 60)],
    *[("voter_leaves",), ("editor_approves",)] * 8,
    *[("passes", 1), ("passes", 20), ("down", False)] * 2,
]
RARE: list[tuple[Any, ...]] = [
    *[(name, who) for name in ("approve", "back", "leaves", "returns") for who in PEOPLE] * 2,
    *[("reject", who) for who in PEOPLE],
    *[("edit", who, amount) for who in PEOPLE for amount in (SMALL, 50, LARGE)],
    *[("policy", change, ask) for change in range(len(CHANGES)) for ask in ASKS],
    *[("group", frozenset(some)) for some in ((ADA, BEN), (ROSA, CLEO), (MIA, TOM, GUS), ())] * 4,
    *[("passes", 14), ("passes", 500), ("down", True), ("withdraw", ROSA), ("withdraw", ADA)],
]
events = st.one_of(*[st.sampled_from(LIKELY)] * 3, st.sampled_from(RARE))


def a_policy(ask: dict[str, Any], change: dict[str, Any]) -> Forced:
    """A policy that asks like this about amounts that are neither small nor large."""
    groups = {name: members for name, members in {**GROUPS, **change}.items() if name != "deny"}
    bounds = ("le", SMALL, "allow"), ("ge", LARGE, {"deny": "Too much."})
    rules = [
        {"name": op, "when": {"args": [{"path": "amount", "op": op, "value": value}]}, "then": then}
        for op, value, then in bounds
    ]
    default: Any = {"deny": "Not now."} if "deny" in change else {"ask": ask}
    return forced(*rules, default=default, groups=groups)


@dataclass
class History:
    """One request, and all that becomes of it.

    Attributes:
        office: The bot.
        policy: The policy in force.
        denies: Whether it denies whatever is neither small nor large.
        gone: Who has left.
        last: The record after the last event.
    """

    office: Office
    policy: Forced
    denies: bool = False
    gone: set[str] = field(default_factory=set)
    last: Approval | None = None
    _hashes: Iterator[int] = field(default_factory=lambda: iter(range(2, 1_000)))

    async def happens(self, name: str, *what: Any) -> None:
        """Let an event happen, with all that follows."""
        before, ran = await self.record(), len(self.office.ran)
        self.office.clock.forward(seconds=1)
        with suppress(UserFacingError):
            await getattr(self, f"_{name}")(before, *what)
        await self.office.queue.run()
        self.last = after = await self.record()
        self._check_votes(after)
        self._check_transition(name, before, after)
        if len(self.office.ran) > ran:
            assert len(self.office.ran) == 1, "it ran twice"
            self.check_run(after)

    async def record(self) -> Approval:
        """The only approval there is."""
        (approval,) = await newest_of(self.office.storage.approvals, THREAD_ID, limit=9)
        return approval

    # ---- what happens -----------------------------------------------------------------------

    async def _approve(self, card: Approval, who: str) -> None:
        await self.office.decide(card, by=who)

    async def _reject(self, card: Approval, who: str) -> None:
        await self.office.decide(card, Status.REJECTED, by=who, reason="no")

    async def _back(self, card: Approval, who: str) -> None:
        stored = await self.office.approvals.take_back(card.approval_id, an_actor(who))
        await self.office.approvals.follow_up(stored)

    async def _edit(self, card: Approval, who: str, amount: int) -> None:
        office, values = self.office, {"to": "Mia", "amount": amount, "how": "card"}
        seen = await office.approvals.get_pending(
            card.approval_id, an_actor(who), shown=card.digest
        )
        if seen.arguments == values:
            return  # the form does not call that an edit
        judgement = await office.runner.judge(seen.checkpoint_id, seen.interrupt_id, values)
        edits = Edits(office.storage, office.approvals, RULES, office.clock)
        made = CheckedCall(arguments=values)
        edited = await edits.edit(seen, made, judgement, actor=an_actor(who))
        if isinstance(edited, Approval):
            await office.approvals.follow_up(edited)

    async def _withdraw(self, card: Approval, who: str) -> None:
        withdrawals = self.office.approvals.withdrawals
        done = await withdrawals.withdraw(card.approval_id, an_actor(who), reason="")
        await self.office.approvals.follow_up(done)

    async def _leaves(self, _: Approval, who: str) -> None:
        self.gone.add(who)
        self.office.directory.add(who, is_deleted=True)

    async def _voter_leaves(self, card: Approval) -> None:
        for vote in card.votes[:1]:
            await self._leaves(card, vote.by)

    async def _editor_approves(self, card: Approval) -> None:
        await self._approve(card, card.edits.by or ROSA)

    async def _returns(self, _: Approval, who: str) -> None:
        self.gone.discard(who)
        self.office.directory.add(who, is_guest=who == GUS)

    async def _group(self, _: Approval, members: frozenset[str]) -> None:
        self.office.directory.groups[SRE] = members

    async def _policy(self, _: Approval, change: int, ask: dict[str, Any]) -> None:
        self.policy.rulebook = a_policy(ask, CHANGES[change]).rulebook
        self.policy.file_hash = f"f{next(self._hashes)}"
        self.denies = "deny" in CHANGES[change]

    async def _passes(self, _: Approval, minutes: int) -> None:
        self.office.clock.forward(minutes=minutes)
        await self.office.sweep.tick()

    async def _down(self, _: Approval, is_down: bool) -> None:
        self.office.directory.is_down = is_down

    # ---- what must hold ---------------------------------------------------------------------

    def _check_votes(self, card: Approval) -> None:
        votes = card.votes
        assert len({vote.by for vote in votes}) == len(votes), "somebody is counted twice"
        assert {vote.digest for vote in votes} <= {card.digest}, "a vote is for another call"

    def _check_transition(self, name: str, before: Approval, after: Approval) -> None:
        if before.status is not Status.PENDING:
            assert (after.status, after.decision) == (before.status, before.decision)
            assert after.votes == before.votes
        elif after.status is not Status.PENDING:
            assert after.status in ENDS.get(name, set()), f"{name} led to {after.status}"

    def check_run(self, card: Approval) -> None:
        """Of what has run just now: a rule allows it, or enough people have agreed to just that."""
        assert card.status is Status.APPROVED
        ((_, ran),) = self.office.ran
        values: Any = card.arguments
        assert ran == (values["to"], values["amount"], values["how"])
        assert values["amount"] < LARGE
        if values["amount"] <= SMALL:
            return
        assert not self.denies, "it is denied by now"
        assert not self.office.directory.is_down, "nobody could be looked up"
        terms = card.terms
        votes = [vote for vote in card.votes if vote.choice == "approve"]
        barred = self._barred(card, terms)
        for number, stage in enumerate(terms.stages):
            slots = [slot.groups for slot in stage.approve for _ in range(slot.count)]
            voters = [vote.by for vote in votes if vote.stage == number]
            able = [who for who in voters if who not in barred]
            assert any(
                all(
                    any(self._is_in(terms, group, who) for group in groups)
                    for groups, who in zip(slots, some, strict=True)
                )
                for some in permutations(able, len(slots))
            ), f"{voters} do not fill {slots}"

    def _barred(self, card: Approval, terms: Terms) -> set[str]:
        barred = {*self.gone, GUS}
        if "requesters" in terms.exclude:
            barred.add(ROSA)
        if "editors" in terms.exclude:
            barred |= {card.edits.by, *card.edits.earlier}
        return barred

    def _is_in(self, terms: Terms, name: str, who: str) -> bool:
        present = self.policy.rulebook.file.groups.get(name)
        now = {*present.users, *self._of(present.usergroups)} if present else set()
        frozen: Group = terms.groups[name]
        return who in now and who in {*frozen.users, *self._of(frozen.usergroups)}

    def _of(self, usergroups: tuple[str, ...]) -> frozenset[str]:
        return self.office.directory.groups[SRE] if usergroups else frozenset()


async def played(ask: dict[str, Any], history: list[tuple[Any, ...]]) -> History:
    """Play a history from the request on."""
    storage = SqliteStores(None)
    await storage.open()
    try:
        policy = a_policy(ask, {})
        office = Office(storage, [PAY, say("Fine.")], policy=policy, is_gated=False)
        for who in (CLEO, MIA, LIA, TOM):
            office.directory.add(who)
        office.directory.groups[SRE] = frozenset({ADA, BEN, CLEO})
        await office.hear("<@UBOT> pay Mia")
        story = History(office, policy)
        for name, *what in history:
            await story.happens(name, *what)
        return story
    finally:
        await storage.close()


@settings(
    deadline=None,
    max_examples=max(settings().max_examples, 25),
    suppress_health_check=list(HealthCheck),
)
@given(ask=st.sampled_from(ASKS), history=st.lists(events, min_size=4, max_size=16))
async def test_nothing_runs_but_what_enough_people_agreed_to(
    ask: dict[str, Any], history: list[tuple[Any, ...]]
) -> None:
    await played(ask, history)


@pytest.mark.parametrize(
    ("ask", "history"),
    [
        (TWO, [("approve", ADA), ("approve", MIA), ("approve", BEN)]),
        (TWO, [("approve", CLEO), ("edit", ADA, 40), ("approve", BEN), ("approve", MIA)]),
        (TWO, [("approve", ADA), ("edit", BEN, 1)]),
        (ASKS[3], [("approve", ADA), ("approve", MIA), ("approve", LIA)]),
    ],
    ids=["votes", "edited", "allowed", "stages"],
)
async def test_enough_people_do_let_it_run(
    ask: dict[str, Any], history: list[tuple[Any, ...]]
) -> None:
    """The histories above are no histories of refusals alone."""
    assert len((await played(ask, history)).office.ran) == 1


@pytest.mark.parametrize("last", ["approve", "policy"])
async def test_the_oracle_sees_what_must_not_be(last: str) -> None:
    """A run that its record does not carry, or that is denied by now, is found out."""
    story = await played(TWO, [("approve", ADA), ("approve", MIA), ("approve", BEN)])
    assert story.last is not None
    if last == "policy":
        story.denies = True
    else:
        story.gone.add(MIA)
    with pytest.raises(AssertionError):
        story.check_run(story.last)
