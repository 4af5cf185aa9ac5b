"""Many people click on the same cards at once, in several bots on one MongoDB, during a restart."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponsePart,
    ToolReturnPart,
    UserPromptPart,
)

from agents import ChatModelAgent, tool
from agents.core.codec import Json
from agents.core.tools import Tool
from agents.models import AnsweringModel, call, say
from bot.approvals.disclosure import Surface
from bot.errors import ApprovalClosedError, NotApproverError, UserFacingError
from bot.records.approval import Approval, Decision, Kind, Status
from bot.records.approval_queries import count_due, open_of
from bot.tasks import Tasks
from storage.errors import StoreUnavailableError
from storage.mongo import Driver
from tests.support.fakes import FakeClock, FakeDirectory, FakeNotifier
from tests.support.mongo import MongoServer
from tests.support.sizes import size
from tests.support.stores import MongoStores
from tests.unit.bot.office import ADA, BEN, BOT, GUS, ROSA, Office, an_actor, an_incoming

CARDS, CLICKS = size(8, 20), size(40, 200)
AT_ONCE = 100
"""Clicks that one bot works on at the same time."""
EVE, MAX = "UEVE", "UMAX"
"""Eve is of another company; Max is not in the channel."""
CROWD = (ADA, ADA, ADA, BEN, BEN, BEN, ROSA, GUS, EVE, MAX)
TOLD = {
    ROSA: "approve your own request",
    GUS: "Guests can't",
    EVE: "Only people in this workspace",
    MAX: "not an approver for this",
}


@dataclass(frozen=True)
class Click:
    """Somebody presses a button."""

    card: int
    who: str
    status: Status


@dataclass
class Answer:
    """What came of a click: the record, or what the person was told."""

    click: Click
    recorded: Approval | None = None
    refused: UserFacingError | None = None


@dataclass
class Town:
    """What the bots share, beside the database."""

    uri: str
    clock: FakeClock = field(default_factory=FakeClock)
    notifier: FakeNotifier = field(default_factory=FakeNotifier)
    directory: FakeDirectory = field(default_factory=FakeDirectory)
    effects: Counter[str] = field(default_factory=Counter)


class Bot:
    """One process, as far as its use cases and its connection go."""

    def __init__(self, town: Town, name: str, driver: Driver) -> None:
        self.town = town
        self.tasks = Tasks()
        self.storage = MongoStores(town.uri, driver=driver, timeout=timedelta(seconds=20))
        self._many = asyncio.Semaphore(AT_ONCE)
        model = AnsweringModel(_next, name="race")
        agent = ChatModelAgent(name="A", model=model, tools=[self._pay()])
        self.office = Office(
            storage=self.storage,
            turns_of_model=(),
            make_agent=lambda _: agent,
            clock=town.clock,
            notifier=town.notifier,
            directory=town.directory,
            queue=self.tasks,  # type: ignore[arg-type]
            owner=name,
        )

    def _pay(self) -> Tool:
        @tool(gate="approval", title="Pay for {card}")
        async def pay(card: str) -> str:
            """Pay.

            Args:
                card: What for.
            """
            self.town.effects[card] += 1
            return f"paid for {card}"

        return pay

    async def ask(self, card: int) -> None:
        incoming = an_incoming(f"<@{BOT}> job {card}", ts=_ts(card), thread_ts=_ts(card))
        thread_id = await self.office.inbox.receive(incoming)
        assert thread_id is not None
        await self.office.threads.work(thread_id)

    async def press(self, approval: Approval, click: Click) -> Answer:
        """What a click on a card does."""
        use = self.office.approvals
        async with self._many:
            try:
                actor = an_actor(click.who, "T9" if click.who == EVE else "T1")
                seen = await use.get_decidable(
                    approval.approval_id, actor, shown=approval.digest[:32]
                )
                decision = Decision(
                    status=click.status, by=click.who, at_ms=self.town.clock(), digest=seen.digest
                )
                decided = await use.decide(seen, decision, surface=Surface.CARD)
            except UserFacingError as error:
                return Answer(click, refused=error)
        self.tasks.spawn(use.follow_up(decided))
        return Answer(click, recorded=decided)

    async def kill(self) -> None:
        """End it in the middle of whatever it does."""
        await self.tasks.drain(patience=timedelta(0))
        await self.storage.close()


def _ts(card: int) -> str:
    return f"1800000000.{card:06d}"


def _next(messages: list[ModelMessage]) -> list[ModelResponsePart]:
    last = messages[-1].parts[0]
    if isinstance(last, ToolReturnPart):
        return [say(last.model_response_str())]
    assert isinstance(last, UserPromptPart)
    (number,) = re.findall(r"job (\d+)", str(last.content))
    return [call("pay", {"card": f"card-{number}"}, id=f"c{number}")]


@dataclass
class Race:
    """The bots, and everybody who clicks."""

    town: Town
    bots: list[Bot]
    cards: list[Approval]
    answers: list[Answer] = field(default_factory=list)
    cut: list[Click] = field(default_factory=list)
    """Clicks that were never answered: their bot died."""

    async def crowd(self, clicks: list[Click], number: int) -> None:
        """All at once, at one bot; what it leaves when it dies is clicked once more elsewhere."""
        bot = self.bots[number]
        works = [bot.press(self.cards[click.card], click) for click in clicks]
        tasks = [asyncio.create_task(work) for work in works]
        restart = asyncio.create_task(self._restart(number, tasks)) if number else None
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        if restart is not None:
            await restart
        left: list[Click] = []
        for click, outcome in zip(clicks, outcomes, strict=True):
            if isinstance(outcome, Answer):
                self.answers.append(outcome)
            else:
                assert isinstance(outcome, asyncio.CancelledError | StoreUnavailableError)
                left.append(click)
        if left:
            self.cut += left
            await self.crowd(left, 0)

    async def _restart(self, number: int, tasks: list[asyncio.Task[Answer]]) -> None:
        """When half of the clicks are answered, the bot dies, and another one begins."""
        half, done = asyncio.Event(), 0

        def count(_: object) -> None:
            nonlocal done
            done += 1
            if done == len(tasks) // 2:
                half.set()

        for task in tasks:
            task.add_done_callback(count)
        await half.wait()
        for task in tasks:
            task.cancel()
        await self.bots[number].kill()
        self.bots[number] = Bot(self.town, "b, again", "motor")
        await self.bots[number].storage.open()

    async def rest(self) -> None:
        """Let the bots do what is due, with the leases of the dead one at their end."""
        for _ in range(20):
            for bot in self.bots:
                await bot.tasks.idle()
                await bot.office.sweep.tick()
                await bot.tasks.idle()
            await self._settle_doubts()
            if await self._is_at_rest():
                return
            self.town.clock.forward(seconds=16)
        raise AssertionError("there is always something due")

    async def _is_at_rest(self) -> bool:
        storage = self.bots[0].storage
        now = self.town.clock() + 3_600_000
        is_due = await count_due(storage.approvals, now_ms=now)
        return not is_due and not await storage.threads.count_due(now_ms=now)

    async def _settle_doubts(self) -> None:
        """A call that was cut off with its bot: somebody looks whether it ran."""
        storage = self.bots[0].storage
        for card in self.cards:
            for approval in await open_of(storage.approvals, card.thread_id):
                if approval.kind is Kind.DOUBT and approval.status is Status.PENDING:
                    has_run = self.town.effects[f"card-{card.thread_ts[-2:].lstrip('0')}"]
                    choice = "ran" if has_run else "again"
                    status = Status.ANSWERED if has_run else Status.APPROVED
                    await self._settle(approval, status, {"choice": choice, "result": "yes"})

    async def _settle(self, doubt: Approval, status: Status, answer: Json) -> None:
        use = self.bots[0].office.approvals
        seen = await use.get_decidable(doubt.approval_id, an_actor(ADA), shown=doubt.digest)
        decision = Decision(
            status=status,
            by=ADA,
            at_ms=self.town.clock(),
            answer=answer,
            digest=seen.digest,
        )
        self.bots[0].tasks.spawn(
            use.follow_up(await use.decide(seen, decision, surface=Surface.CARD))
        )


def clicks_of_everybody(random: Random) -> list[Click]:
    """So many on each card; no card is first."""
    verdicts = (Status.APPROVED, Status.REJECTED)
    clicks = [
        Click(card, random.choice(CROWD), random.choice(verdicts))
        for card in range(CARDS)
        for _ in range(CLICKS)
    ]
    random.shuffle(clicks)
    return clicks


@pytest.mark.mongo
async def test_i3_i5_i7_many_clicks_on_each_of_many_cards_while_a_bot_dies(
    mongo_server: MongoServer,
) -> None:
    town = Town(mongo_server.new_uri())
    town.directory.add(EVE, is_external=True, team_id="T9")
    town.directory.add(MAX)
    bots = [Bot(town, "a", "motor"), Bot(town, "b", "pymongo")]
    for bot in bots:
        await bot.storage.open()
    await asyncio.gather(*(bots[number % 2].ask(number) for number in range(CARDS)))
    await asyncio.gather(*(bot.tasks.idle() for bot in bots))
    cards = [await the_card(bots[0], number) for number in range(CARDS)]
    race = Race(town, bots, cards)
    clicks = clicks_of_everybody(Random(7))  # noqa: S311 - not for secrets
    half = len(clicks) // 2
    await asyncio.gather(race.crowd(clicks[:half], 0), race.crowd(clicks[half:], 1))
    await race.rest()
    assert len(race.answers) == CARDS * CLICKS
    assert race.cut
    for number, card in enumerate(cards):
        await check_card(race, number, await bots[0].storage.approvals.get(card.approval_id))
    for bot in race.bots:
        await bot.storage.close()


async def the_card(bot: Bot, number: int) -> Approval:
    """The one card of a thread."""
    (card,) = await open_of(bot.storage.approvals, f"T1:C1:{_ts(number)}")
    return card


async def check_card(race: Race, number: int, card: Approval) -> None:
    """One decision, one execution, and everybody knows."""
    answers = [reply for reply in race.answers if reply.click.card == number]
    decision = card.decision
    assert decision is not None
    assert decision.by in {ADA, BEN}
    winners = [reply for reply in answers if reply.recorded is not None]
    # The winner may have died before it could say so.
    is_cut = Click(number, decision.by, decision.status) in race.cut
    assert len(winners) == 1 or (not winners and is_cut)
    assert all(winner.recorded and winner.recorded.decision == decision for winner in winners)
    for answer in answers:
        check_told(answer, card)
    assert race.town.effects[f"card-{number}"] == (card.status is Status.APPROVED)
    assert not card.open
    assert card.card.revision == card.shown_revision
    assert race.town.notifier.cards[card.approval_id].decision == decision
    assert race.town.notifier.posts.count(card.approval_id) == 1


def check_told(answer: Answer, card: Approval) -> None:
    """What somebody was told who did not win."""
    error = answer.refused
    if error is None:
        return
    assert card.decision is not None
    if isinstance(error, NotApproverError):
        assert TOLD[answer.click.who] in str(error)
        return
    assert isinstance(error, ApprovalClosedError)
    assert f"was first: {card.status}" in str(error)
    assert f"<@{card.decision.by}>" in str(error)
