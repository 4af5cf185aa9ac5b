"""I2, I13 under any rules: what runs was agreed to by those whom its final arguments demand.

Random policies, edits, second deciders, ages, doubts, people who come and go, races, and processes
that die; the oracle is `ledger`, which knows the rules as data and what people did.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.property.worlds.bench import GROUP
from tests.property.worlds.ledger import House, Shown
from tests.property.worlds.rulebook import AMOUNTS, NAMES, Payment, any_book
from tests.property.worlds.town import CLICKS, FATES, PEOPLE, Town, amount_by
from tests.support.halves import first
from tests.unit.bot.office import ADA, BEN, ROSA

HOUSES = (
    House(),
    House(),
    House(approvers=(ADA, BEN), escalate_to=()),
    House(approvers=(GROUP, BEN), escalate=10, escalate_to=(ADA,)),
    House(excludes_editors=True, escalate=None),
)
WRITERS = (*[ROSA] * 12, BEN, *PEOPLE)
MINUTES = (0.5, 1, 2, 6, 14, 16, 31)
WAYS = ("likely", "likely", "likely", "", "alone", "alone", "dies", "old", "doubt", "late", "aged")
people = st.sampled_from(PEOPLE)
which = st.integers(0, 3)
ways = st.sampled_from(WAYS)


class FinalRuling(RuleBasedStateMachine):
    """Whatever the rules say, and whatever people do."""

    @initialize(data=st.data())
    def some_rules(self, data: st.DataObject) -> None:
        book = any_book(lambda choices: data.draw(st.sampled_from(choices)))
        self.town = Town(book, data.draw(st.sampled_from(HOUSES)))

    @rule(
        who=st.sampled_from(WRITERS),
        amounts=st.lists(st.sampled_from(AMOUNTS), min_size=1, max_size=2),
        to=st.sampled_from(NAMES),
    )
    def somebody_asks(self, who: str, amounts: list[int], to: str) -> None:
        self.town.ask_for(who, *(Payment(amount, to) for amount in amounts))

    @rule(who=people, which=which, choice=st.sampled_from(CLICKS), way=ways)
    def somebody_clicks(self, who: str, which: int, choice: str, way: str) -> None:
        clicks(self.town, who, which, choice, way)

    @rule(
        who=people, which=which, size=st.sampled_from(AMOUNTS), to=st.sampled_from(NAMES), way=ways
    )
    def somebody_edits(self, who: str, which: int, size: int, to: str, way: str) -> None:
        edits(self.town, who, which, Payment(size, to), way)

    @rule(
        who=people,
        other=people,
        which=which,
        size=st.sampled_from(AMOUNTS),
        choice=st.sampled_from(CLICKS),
    )
    def somebody_edits_too_late(
        self, who: str, other: str, which: int, size: int, choice: str
    ) -> None:
        payment = Payment(size, "ann")
        edits(self.town, who, which, payment, "likely", faster=(other, choice))

    @rule(who=people, what=st.sampled_from(FATES))
    def something_becomes_of_somebody(self, who: str, what: str) -> None:
        self.town.befalls(who, what)

    @rule(minutes=st.sampled_from(MINUTES))
    def time_passes(self, minutes: float) -> None:
        self.town.passes(minutes)

    @rule(writes=st.sampled_from((0, 0, 0, 1, 2, 3, 5, 8, 12, 20)))
    def the_process_will_die(self, writes: int) -> None:
        self.town.will_die(writes)

    @invariant()
    def the_right_people_agreed(self) -> None:
        if hasattr(self, "town"):
            assert self.town.ledger.faults == []

    def teardown(self) -> None:
        if hasattr(self, "town"):
            ends(self.town)


def clicks(town: Town, who: str, which: int, choice: str, way: str) -> None:
    """Somebody does something with one of the cards that wait, or with any old one."""
    cards = old_ones(town) if way == "old" else town.waiting()
    if cards:
        card = cards[which % len(cards)]
        choice = "again" if card.is_doubt and choice == "approve" else choice
        who = likely(town, who, card) if way else who
        if way == "doubt":
            town.will_die(0)
        town.clicks(who, card, choice, dies=way in {"dies", "late", "aged"})
        if way == "late":
            town.befalls(who, "guest")
        if way in {"doubt", "late", "aged"}:
            town.passes(16 if way == "aged" else 2)
        if way == "alone":
            approves_the_rest(town, who, card.job)


def edits(
    town: Town,
    who: str,
    which: int,
    payment: Payment,
    way: str,
    faster: tuple[str, str] | None = None,
) -> None:
    """Somebody changes a call that waits, or wants to by an old card."""
    cards = old_ones(town) if way == "old" else town.waiting()
    if cards:
        card = cards[which % len(cards)]
        who = likely(town, who, card) if way else who
        payment = Payment(amount_by(who, payment.amount), payment.to)
        town.edits(who, card, payment, dies=way == "dies", faster=faster)
        if way == "alone":
            approves_the_rest(town, who, card.job)


def approves_the_rest(town: Town, who: str, job: str) -> None:
    """Somebody tries to do all of it alone."""
    for card in town.waiting():
        if card.job == job and not card.is_doubt:
            town.clicks(who, card, "approve")


def old_ones(town: Town) -> list[Shown]:
    """Cards that show what is no longer asked, if there are any; else all."""
    waiting = town.waiting()
    ids = {card.approval_id for card in waiting}
    stale = [card for card in town.cards if card.approval_id in ids and card not in waiting]
    return stale or town.cards


def likely(town: Town, who: str, card: Shown) -> str:
    """One of those who may agree to a card, if there is anybody; the next one after this."""
    at = PEOPLE.index(who)
    candidates = [
        candidate
        for candidate in (*PEOPLE[at:], *PEOPLE[:at])
        if town.ledger.gates_for(candidate, card)
    ]
    return candidates[0] if candidates else who


def ends(town: Town) -> None:
    """Everything comes to rest; who surely may agree does, and what they agree to runs."""
    try:
        town.befalls(ROSA, "up")
        town.hall.life.left, town.hall.life.ends_in_tool = None, False
        town.passes(1)
        town.passes(1)
        for _ in range(12):
            pairs = [
                (who, card)
                for card in town.waiting()
                for who in PEOPLE
                if town.ledger.surely_may(who, card)
            ]
            if not pairs:
                break
            who, card = pairs[0]
            town.clicks(who, card, "again" if card.is_doubt else "approve")
        assert town.ledger.faults == []
    finally:
        town.close()


FinalRuling.TestCase.settings = settings(
    stateful_step_count=25,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestFinalRuling = FinalRuling.TestCase


@pytest.mark.parametrize("seed", first(1, range(settings().max_examples)))
def test_i2_i13_in_any_long_history(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - not for secrets
    town = Town(any_book(random.choice), random.choice(HOUSES))
    for _ in range(40):
        acts(town, random)
        assert town.ledger.faults == []
    ends(town)


def acts(town: Town, random: Random) -> None:
    """One thing happens."""
    who, number, luck = random.choice(PEOPLE), random.randrange(4), random.random()
    way = random.choice(WAYS)
    payment = Payment(random.choice(AMOUNTS), random.choice(NAMES))
    if luck < 0.1 or (not town.waiting() and town.jobs < 12):
        amounts = random.sample(AMOUNTS, random.choice((1, 1, 2)))
        asked = [Payment(amount, random.choice(NAMES)) for amount in amounts]
        town.ask_for(random.choice(WRITERS), *asked)
    elif luck < 0.45:
        clicks(town, who, number, random.choice(CLICKS), way)
    elif luck < 0.7:
        faster = (random.choice(PEOPLE), random.choice(CLICKS)) if luck < 0.5 else None
        edits(town, who, number, payment, way, faster)
    elif luck < 0.82:
        town.befalls(who, random.choice(FATES))
    elif luck < 0.94:
        town.passes(random.choice(MINUTES))
    else:
        town.will_die(random.choice((0, 0, 0, 1, 3, 5, 8, 12)))
