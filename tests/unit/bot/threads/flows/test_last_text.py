"""The last text of a run: known whole at once, it stands once, whichever process dies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, ToolReturnPart

from agents import AgentEvent, AgentInput, ChatModelAgent, make_message
from agents.agent import function_agent
from agents.core.errors import StepLimitError
from agents.core.messages import read_log, text_of
from agents.middlewares.base import Middleware
from agents.models import AnsweringModel, call, say
from bot.audit.acts import Act
from bot.errors import DeliveryError, TurnCrashedError
from bot.records.messages import Post
from bot.records.thread import Thread
from bot.stores import Stores
from tests.property.worlds.hall import Mortal
from tests.property.worlds.relay import Planned, dies
from tests.support.fakes import FakeClock, FakeNotifier
from tests.support.halves import first
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ROOT, THREAD_ID, KilledError, Office

ASK = "<@UBOT> pay Mia"
PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
KEY = f"{THREAD_ID}#1:agent:A/m2"
HELLO_KEY = f"{THREAD_ID}#1:agent:A/m1"
APPEND, SAID = ("checkpoints", "append"), ("slack", "say")
DEADLY = "the process stopped again and again, maybe while posting this; it may stand in Slack"
NEVER = DeliveryError("chat.postMessage", "is_archived")


class MortalSlack:
    """A Slack in which a process may die before it says something, or right after."""

    def __init__(self, life: Planned, target: FakeNotifier) -> None:
        self._life, self._target = life, target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    async def say(self, *args: Any, **options: Any) -> str:
        self._life.writes(1)
        ts = await self._target.say(*args, **options)
        self._life.wrote("slack", "say", ts)
        return ts


class DeadlySlack(FakeNotifier):
    """A Slack in which a text ends each process that says it."""

    async def say(self, thread: Thread, post: Post, *, look_first: bool) -> str:
        if post.post_id == KEY:
            raise KilledError
        return await super().say(thread, post, look_first=look_first)


class Deadly(Middleware):
    """Ends the process when the agent has said its last text."""

    async def after_agent(self, text: str) -> None:
        raise KilledError


@dataclass
class Payment:
    """A payment that is asked for, approved and told of, by one bot after the other.

    Attributes:
        storage: What outlives a bot.
        clock: The time.
        notifier: What stands in Slack.
        answers: How often the model was asked for the last text; it never says the same again.
        ran: What the tool has done.
        middlewares: Of the agent.
    """

    storage: Stores
    clock: FakeClock = field(default_factory=FakeClock)
    notifier: FakeNotifier = field(default_factory=lambda: FakeNotifier(is_brief=True))
    answers: int = 0
    ran: list[tuple[str, object]] = field(default_factory=list)
    middlewares: tuple[Middleware, ...] = ()

    def office(self, life: Planned, owner: str) -> Office:
        """A bot."""
        office = Office(
            storage=cast(SqliteStores, Mortal(life, self.storage)),
            turns_of_model=(),
            make_agent=lambda _: ChatModelAgent(
                name="A",
                model=AnsweringModel(self._answer, name="payer"),
                tools=office._tools(),
                middlewares=self.middlewares,
            ),
            clock=self.clock,
            notifier=cast(FakeNotifier, MortalSlack(life, self.notifier)),
            ran=self.ran,
            owner=owner,
        )
        return office

    async def asked(self, life: Planned) -> Office:
        """Somebody has asked for it, and it waits for its approval."""
        office = self.office(life, "first")
        await office.hear(ASK)
        return office

    async def dies(self, step: int, *, is_after: bool) -> None:
        """It is approved; the bot dies at a write, or when it says something."""
        life = Planned()
        office = await self.asked(life)
        ends = dies(step, is_after=is_after)
        life.left, life.is_after = ends.left, ends.is_after
        with pytest.raises(KilledError):
            await office.decide(await office.the_approval())
        office.queue.drop()

    async def ends_its_bot(self) -> Office:
        """It is approved, and something of it ends the bot."""
        office = await self.asked(Planned())
        with pytest.raises(KilledError):
            await office.decide(await office.the_approval())
        office.queue.drop()
        return office

    async def goes_on(self, *lives: Planned) -> None:
        """Others follow, the last of which lives until all is at rest."""
        for number, life in enumerate([*lives, Planned()]):
            other = self.office(life, f"other-{number}")
            with suppress(KilledError):
                for _ in range(3):
                    self.clock.forward(minutes=5)
                    await other.later()
                    if (await self.storage.threads.get(THREAD_ID)).due_ms is None:
                        break
            other.queue.drop()

    async def expect_one_text(self) -> None:
        """The agent's text stands once, as the next turn reads it, and nothing else is said."""
        assert {key: len(messages) for key, messages in self.notifier.messages.items()} == {KEY: 1}
        last = read_log(await self.storage.log.load(THREAD_ID, before_turn=2))[-1]
        assert isinstance(last, ModelResponse)
        assert self.notifier.texts == {KEY: text_of(last)}
        thread = await self.storage.threads.get(THREAD_ID)
        assert (thread.turn_open, thread.due_ms) == (False, None)
        assert self.ran == [("pay", ("Mia", 5, "card"))]

    def _answer(self, messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
        if "hello" in str(messages):
            return [say("Hello.")]
        if not any(
            isinstance(part, ToolReturnPart) for message in messages for part in message.parts
        ):
            return [PAY]
        self.answers += 1
        return [say(f"It is paid. I was asked {self.answers} times.")]


@pytest.fixture
def payment(storage: SqliteStores) -> Payment:
    return Payment(storage)


@asynccontextmanager
async def a_payment(*, is_brief: bool = True) -> AsyncIterator[Payment]:
    storage = SqliteStores(None)
    await storage.open()
    yield Payment(storage, notifier=FakeNotifier(is_brief=is_brief))
    await storage.close()


async def the_steps(payment: Payment) -> list[tuple[str, str]]:
    """What is written from the approval to the end, and where the text is said."""
    life = Planned()
    office = await payment.asked(life)
    life.done.clear()
    await office.decide(await office.the_approval())
    return [(store, method) for store, method, _ in life.done]


@pytest.mark.parametrize("is_brief", [True, False], ids=["brief", "grows"])
@pytest.mark.parametrize("is_after", first(1, [False, True]), ids=["before", "after"])
async def test_a_last_text_stands_once_wherever_its_bot_dies(
    is_brief: bool, is_after: bool
) -> None:
    async with a_payment(is_brief=is_brief) as payment:
        steps = await the_steps(payment)
    ended, answered = [at for at, store_call in enumerate(steps, start=1) if store_call == APPEND][
        1:
    ]
    for step in range(ended + 1, steps.index(("threads", "release")) + 2):
        async with a_payment(is_brief=is_brief) as payment:
            await payment.dies(step, is_after=is_after)
            await payment.goes_on()
            await payment.expect_one_text()
            assert payment.answers == 1 or step <= answered - is_after


@pytest.mark.parametrize("is_after", first(1, [False, True]), ids=["before", "after"])
async def test_i9_a_turn_whose_answer_stands_is_not_told_as_failed_after_three_deaths(
    is_after: bool,
) -> None:
    """All that is left of it is to be ended: no agent, model or tool works in it any more."""
    async with a_payment() as payment:
        said = (await the_steps(payment)).index(SAID) + 1
    for step in range(1, 12):
        async with a_payment() as payment:
            await payment.dies(said, is_after=True)
            await payment.goes_on(*[dies(step, is_after=is_after) for _ in range(2)])
            await payment.expect_one_text()
            assert payment.answers == 1


async def test_i4_a_turn_that_ends_its_bot_each_time_it_is_ended_is_given_up_in_words(
    payment: Payment,
) -> None:
    """Its answer stands, and something of the agent follows that no process survives."""
    payment.middlewares = (Deadly(),)
    await payment.ends_its_bot()
    await payment.goes_on(*[Planned() for _ in range(4)])
    assert list(payment.notifier.texts) == [KEY, f"{THREAD_ID}#1:failed"]
    assert "This stopped my process 5 times" in payment.notifier.texts[f"{THREAD_ID}#1:failed"]
    thread = await payment.storage.threads.get(THREAD_ID)
    assert (thread.turn_open, thread.due_ms) == (False, None)


async def test_i4_a_turn_whose_last_text_ends_each_bot_that_says_it_is_given_up_in_words(
    payment: Payment,
) -> None:
    payment.notifier = DeadlySlack(is_brief=True)
    office = await payment.ends_its_bot()
    await payment.goes_on(*[Planned() for _ in range(5)])
    assert list(payment.notifier.texts) == [f"{THREAD_ID}#1:failed"]
    assert "This stopped my process 5 times" in payment.notifier.texts[f"{THREAD_ID}#1:failed"]
    left = await payment.storage.posts.get(KEY)
    assert left is not None
    assert (left.posted, left.failure) == (False, DEADLY)
    assert Act.UNDELIVERABLE in await office.acts()
    last = payment.office(Planned(), "last")  # the thread goes on
    await last.hear("<@UBOT> hello", ts="1800000009.000001", thread_ts=ROOT)
    assert payment.notifier.texts[f"{THREAD_ID}#2:agent:A/m1"] == "Hello."


@pytest.mark.parametrize("error", [TurnCrashedError(3), StepLimitError("A", 9)])
async def test_a_process_that_lost_a_thread_gives_up_nothing_in_it(
    payment: Payment, error: Exception
) -> None:
    """It was suspended; the next owner says a text, and its turn goes on."""
    office = await payment.asked(Planned())
    storage, clock = payment.storage, payment.clock
    await storage.threads.wake(THREAD_ID, now_ms=clock())
    old = await storage.threads.claim(
        THREAD_ID, owner="p1", now_ms=clock(), until_ms=clock() + 60_000
    )
    clock.forward(minutes=5)
    new = await storage.threads.claim(
        THREAD_ID, owner="p2", now_ms=clock(), until_ms=clock() + 60_000
    )
    assert old is not None
    assert new is not None
    key = f"{THREAD_ID}#1:good"
    await storage.posts.add(
        Post(post_id=key, thread_id=THREAD_ID, text="Good.", created_ms=clock())
    )
    await office.threads._give_up(old, error)
    (left,) = await storage.posts.unfinished(THREAD_ID)
    assert (left.post_id, payment.notifier.texts) == (key, {})
    assert not set(await office.acts()) & {Act.UNDELIVERABLE, Act.TURN_FAILED}
    assert (await storage.threads.get(THREAD_ID)).turn_open


@pytest.mark.parametrize("step", first(13, [*range(1, 40, 3), *range(2, 40, 3), *range(3, 40, 3)]))
async def test_a_turn_that_is_given_up_is_told_though_its_bot_dies_meanwhile(step: int) -> None:
    async with a_payment() as payment:
        payment.middlewares = (Deadly(),)
        await payment.ends_its_bot()
        await payment.goes_on(*[Planned() for _ in range(4)], dies(step, is_after=True))
        assert list(payment.notifier.texts) == [KEY, f"{THREAD_ID}#1:failed"]


async def test_what_slack_never_takes_is_marked_and_ends_its_run(payment: Payment) -> None:
    office = await payment.asked(Planned())
    payment.notifier.failing.add("say")
    payment.notifier.faults["say"] = NEVER
    await office.decide(await office.the_approval())
    payment.notifier.failing.clear()
    await payment.goes_on()
    left = await payment.storage.posts.get(KEY)
    assert left is not None
    assert (left.posted, left.failure) == (False, "is_archived")
    assert (payment.answers, payment.notifier.texts) == (1, {})
    thread = await payment.storage.threads.get(THREAD_ID)
    assert (thread.turn_open, thread.due_ms) == (False, None)


async def test_a_text_whose_answer_was_lost_is_found_by_the_next_try(payment: Payment) -> None:
    office = await payment.asked(Planned())
    payment.notifier.lost.add("say")
    await office.decide(await office.the_approval())
    payment.notifier.lost.clear()
    await payment.goes_on()
    await payment.expect_one_text()
    assert (payment.answers, payment.notifier.looked) == (1, [KEY])


async def test_who_died_right_after_the_end_of_a_run_has_said_its_text(payment: Payment) -> None:
    """No card stands in this thread, and no record of a text: the history says what was said."""
    life = Planned()
    office = payment.office(life, "first")
    await office.hear("<@UBOT> hello")
    steps = [(store, method) for store, method, _ in life.done]
    async with a_payment() as other:
        bot = other.office(dies(steps.index(("threads", "release")), is_after=True), "first")
        with pytest.raises(KilledError):
            await bot.hear("<@UBOT> hello")
        bot.queue.drop()
        await other.goes_on()
        assert other.notifier.texts == payment.notifier.texts == {HELLO_KEY: "Hello."}
        assert len(other.notifier.messages[HELLO_KEY]) == 1


async def test_a_text_that_no_history_has_is_on_record(storage: SqliteStores) -> None:
    """An agent of one function says what it likes, and keeps nothing."""

    def office(storage: Stores, life: Planned, notifier: FakeNotifier, owner: str) -> Office:
        return Office(
            storage=cast(SqliteStores, Mortal(life, storage)),
            turns_of_model=(),
            make_agent=lambda _: function_agent("A", greeting),
            clock=clock,
            notifier=cast(FakeNotifier, MortalSlack(life, notifier)),
            owner=owner,
        )

    clock, life = FakeClock(), Planned()
    await office(storage, life, FakeNotifier(is_brief=True), "first").hear("<@UBOT> hello")
    for step in range(len(life.done) - 3, len(life.done) + 1):
        async with a_payment() as other:
            first = office(other.storage, dies(step, is_after=False), other.notifier, "first")
            with pytest.raises(KilledError):
                await first.hear("<@UBOT> hello")
            first.queue.drop()
            second = office(other.storage, Planned(), other.notifier, "second")
            for _ in range(3):
                clock.forward(minutes=5)
                await second.later()
            assert list(other.notifier.texts.values()) == ["Hello."]


async def greeting(_: AgentInput) -> AsyncIterator[AgentEvent]:
    yield make_message("Hello.")
