"""The conversation loop: messages, turns and answers, across processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart

from agents.agent import AgentEvent, AgentInput, make_message
from agents.conversation import Conversation, Inbox
from agents.core.cancel import CancelInfo
from agents.core.checkpoint import CheckpointStatus, StoredCheckpoint
from agents.core.codec import Json
from agents.core.component.context import publish
from agents.core.component.state import address_segment, get_interrupt_state, get_resume_context
from agents.core.errors import (
    AgentChangedError,
    AgentConfigError,
    CheckpointBusyError,
    CheckpointConflictError,
    CheckpointDecodeError,
    CheckpointVersionError,
    ModelError,
    NoCheckpointStoreError,
    NothingPendingError,
    ResumeDataError,
    UnknownInterruptError,
)
from agents.core.interrupt import (
    InterruptSignal,
    composite_interrupt,
    interrupt,
    keep_waiting,
    stateful_interrupt,
)
from agents.core.pending import InterruptContext
from agents.core.scope import current_scope
from agents.gates import approval_gate
from agents.memory import MemoryCheckpointStore, MemoryMessageLog
from agents.models import call, say
from agents.runner import Runner
from tests.unit.agents.support import (
    Asker,
    AwayStore,
    Plain,
    WatchedStore,
    World,
    brief,
    collect,
    contexts,
    no,
    yes,
)


def heard(input: AgentInput) -> list[str]:  # noqa: A002
    """What people said in this turn."""
    return [
        str(getattr(part, "content", ""))
        for message in input.messages
        if isinstance(message, ModelRequest)
        for part in message.parts
    ]


@dataclass
class Clerk:
    """Repeats what it hears; asks about each message that ends with a question mark."""

    name: str = "clerk"
    description: str = ""
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    is_slow: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    seen: list[list[str]] = field(default_factory=list)

    async def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
        self.seen.append([_text(message) for message in input.history])
        self.begun.set()
        if self.is_slow:
            await self.go_on.wait()
        said = ", ".join(heard(input))
        if current_scope("a test").run.cancel.wants("after_model"):
            stateful_interrupt(CancelInfo(mode="after_model"), said)
        if said.endswith("?"):
            stateful_interrupt(said, said)
        yield self._say(f"heard {said}")

    async def resume(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
        _, _, said = get_interrupt_state(str)
        _, has_data, answer = get_resume_context(object)
        if answer == "wrong":
            keep_waiting(ResumeDataError("that is wrong"))
        yield self._say(f"heard {said} and {answer}" if has_data else f"went on with {said}")

    def _say(self, text: str) -> AgentEvent:
        publish(ModelResponse(parts=[TextPart(text)]))
        return make_message(text)


def _text(message: ModelMessage) -> str:
    return " ".join(str(getattr(part, "content", "")) for part in message.parts)


@dataclass
class Office:
    """What outlives a process."""

    store: MemoryCheckpointStore | WatchedStore = field(default_factory=MemoryCheckpointStore)
    log: MemoryMessageLog = field(default_factory=MemoryMessageLog)
    clerk: Clerk = field(default_factory=Clerk)

    def open(self, clerk: object = None, **options: object) -> Conversation:
        """A new process."""
        runner = Runner(
            clerk or self.clerk,  # type: ignore[arg-type]
            checkpoint_store=self.store,
            message_log=self.log,
            **options,  # type: ignore[arg-type]
        )
        return Conversation(runner, "c")


async def done(conversation: Conversation) -> list[str]:
    """Everything that can be done without people."""
    return brief(await collect(conversation.events(follow=False)))


async def answer(conversation: Conversation, value: object) -> None:
    (context,) = await conversation.pending()
    await conversation.resume({context.id: value})


async def at_work(**options: object) -> tuple[Office, Conversation, asyncio.Task[list[str]]]:
    """A conversation whose first turn goes on until the test lets it end."""
    office = Office(clerk=Clerk(is_slow=True))
    conversation = office.open(**options)
    await conversation.push("one")
    reading = asyncio.create_task(done(conversation))
    await office.clerk.begun.wait()
    return office, conversation, reading


async def asking(office: Office | None = None) -> tuple[Conversation, InterruptContext]:
    """A conversation whose first message is a question to people."""
    conversation = (office or Office()).open()
    await conversation.push("sure?")
    await done(conversation)
    (context,) = await conversation.pending()
    return conversation, context


async def test_152_an_interrupted_turn_and_what_was_not_taken_up_survive() -> None:
    pay = Plain("pay")
    world = World(
        [call("pay", {"x": 1}, id="c1"), say("first done"), say("second done")],
        [approval_gate(pay)],
    )
    before = Conversation(world.runner(), "c")
    await before.push("q1")
    events = await collect(before.events(follow=False))
    assert brief(events) == ["calls pay#c1", "INT agent:A;tool:pay:c1"]
    await before.push("q2")

    after = Conversation(world.runner(), "c")
    await after.push("x")
    assert await done(after) == ["INT agent:A;tool:pay:c1"]
    (context,) = await after.pending()
    assert context.id == contexts(events)["c1"].id
    await after.resume({context.id: yes(context)})

    assert await done(after) == [
        'tool pay#c1 ran: pay ok {"x": 1}',
        "says first done",
        "says second done",
    ]
    assert world.last_input[-2:] == ["user-prompt:q2", "user-prompt:x"]
    assert pay.calls == [{"x": 1}]
    assert await after.inbox() == Inbox(turn=2)
    assert len(await world.log.load("c", before_turn=3)) == 2


async def test_152_a_message_never_answers_or_cancels_what_waits() -> None:
    pay = Plain("pay")
    world = World([call("pay", id="c1"), say("done"), say("more")], [approval_gate(pay)])
    conversation = Conversation(world.runner(), "c")
    await conversation.push("pay it")
    await done(conversation)
    (before,) = await conversation.pending()

    for text in ("yes", "approve", "cancel", before.id):
        await conversation.push(text)
        assert await done(conversation) == []
    assert (await conversation.pending())[0] == before
    assert pay.calls == []

    await conversation.resume({before.id: no(before, "no")})
    assert (await done(conversation))[-2:] == ["says done", "says more"]
    assert pay.calls == []


async def test_turns_are_numbered_and_hear_what_was_said_before() -> None:
    office = Office()
    conversation = office.open()

    for text in ("one", "two", "three"):
        await conversation.push(text)
        await done(conversation)

    assert (await conversation.inbox()).turn == 3
    assert office.clerk.seen == [
        [],
        ["one", "heard one"],
        ["one", "heard one", "two", "heard two"],
    ]


async def test_messages_during_a_turn_are_the_next_turn_together() -> None:
    office = Office(clerk=Clerk(is_slow=True))
    conversation = office.open()
    await conversation.push("a", "b")
    received: list[AgentEvent] = []

    async def read() -> None:
        async for event in conversation.events():
            received.append(event)
            if len(received) == 2:
                conversation.stop()

    reading = asyncio.create_task(read())
    await office.clerk.begun.wait()
    await asyncio.gather(*(conversation.push(str(number)) for number in range(5)))
    assert (await conversation.inbox()).taken == ("a", "b")
    office.clerk.go_on.set()
    await reading

    assert brief(received) == ["says heard a, b", "says heard 0, 1, 2, 3, 4"]
    assert conversation.conversation_id == "c"


async def test_events_wait_for_messages_and_answers() -> None:
    conversation = Office().open()
    lines: asyncio.Queue[str] = asyncio.Queue()

    async def read() -> None:
        async for event in conversation.events():
            lines.put_nowait(brief([event])[0])

    reading = asyncio.create_task(read())
    await conversation.push("sure?")
    assert await lines.get() == "INT agent:clerk"
    await answer(conversation, "yes")
    assert await lines.get() == "says heard sure? and yes"
    await conversation.push("bye")
    assert await lines.get() == "says heard bye"
    conversation.stop()
    await reading


async def test_an_answer_is_given_once() -> None:
    conversation, context = await asking()
    await conversation.resume({context.id: "yes"})

    with pytest.raises(UnknownInterruptError):
        await conversation.resume({context.id: "no"})
    with pytest.raises(UnknownInterruptError):
        await conversation.resume({"nope": "no"})
    assert await done(conversation) == ["says heard sure? and yes"]
    with pytest.raises(NothingPendingError):
        await conversation.resume({context.id: "no"})


async def test_of_two_answers_at_once_one_counts() -> None:
    office = Office()
    first, context = await asking(office)
    second = office.open()

    outcomes = await asyncio.gather(
        first.resume({context.id: "yes"}), second.resume({context.id: "no"}), return_exceptions=True
    )

    assert [type(each) for each in outcomes] == [type(None), UnknownInterruptError]
    assert await done(first) == ["says heard sure? and yes"]


@dataclass
class TwoQuestions(Asker):
    """Asks twice at once; waits in between for the test."""

    entered: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
        yield make_message("asking")
        self._ask({})

    async def resume(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
        _, _, state = get_interrupt_state(dict)
        self.entered.set()
        await self.go_on.wait()
        self._ask(state or {})
        yield make_message("both")

    def _ask(self, known: dict[str, Json]) -> None:
        signals = []
        for name in ("x", "y"):
            with address_segment("part", name):
                _, has_data, data = get_resume_context(str)
                try:
                    if has_data:
                        known = {**known, name: data}
                    elif name not in known:
                        self._wait(name)
                except InterruptSignal as signal:
                    signals.append(signal)
        if signals:
            composite_interrupt("both", known, *signals)

    def _wait(self, name: str) -> None:
        was, _, _ = get_interrupt_state(object)
        if was:
            keep_waiting()
        interrupt(f"{name}?")


async def test_an_answer_may_come_while_another_is_at_work() -> None:
    office = Office()
    agent = TwoQuestions("t")
    conversation = office.open(agent)
    await conversation.push("go")
    await done(conversation)
    x, y = await conversation.pending()
    await conversation.resume({x.id: "X"})
    reading = asyncio.create_task(done(conversation))
    await agent.entered.wait()

    with pytest.raises(UnknownInterruptError):
        await conversation.resume({x.id: "again"})
    await conversation.resume({y.id: "Y"})
    agent.go_on.set()

    events = await reading
    assert events[-1] == "says both"
    assert (await conversation.inbox()).answers == {}


async def test_what_was_answered_and_worked_in_cannot_be_answered_again() -> None:
    office = Office()
    agent = TwoQuestions("t")
    agent.go_on.set()
    conversation = office.open(agent)
    await conversation.push("go")
    await done(conversation)
    x, y = await conversation.pending()
    await conversation.resume({x.id: "X"})
    await done(conversation)

    for process in (conversation, office.open(agent)):
        assert await process.pending() == (y,)
        with pytest.raises(UnknownInterruptError):
            await process.resume({x.id: "again"})
        assert await done(process) == ([] if process is conversation else ["INT agent:t;part:y"])


async def test_a_refused_answer_is_told_and_may_be_given_again() -> None:
    conversation, _ = await asking()
    await answer(conversation, "wrong")

    with pytest.raises(ResumeDataError, match="wrong"):
        await done(conversation)
    assert await done(conversation) == []
    await answer(conversation, "right")
    assert await done(conversation) == ["says heard sure? and right"]


async def test_answers_wait_for_the_version_that_asked() -> None:
    office = Office()
    first, _ = await asking(office)
    await answer(first, "yes")

    with pytest.raises(AgentChangedError):
        await done(office.open(Asker("other")))
    assert await done(office.open()) == ["says heard sure? and yes"]


async def test_151_a_stopped_conversation_goes_on_where_it_was() -> None:
    office, first, reading = await at_work()
    first.stop("after_model", timeout=timedelta(days=1))
    office.clerk.go_on.set()
    assert await reading == []
    assert await done(first) == []
    await first.push("two")

    assert await done(office.open()) == ["says went on with one", "says heard two"]


async def test_a_stop_lets_the_turn_end() -> None:
    office, conversation, reading = await at_work()
    await conversation.push("two")
    conversation.stop()
    office.clerk.go_on.set()

    assert await reading == ["says heard one"]
    assert (await conversation.inbox()).queue == ("two",)


async def test_a_stop_ends_the_wait() -> None:
    conversation = Office().open()
    reading = asyncio.create_task(collect(conversation.events()))
    await asyncio.sleep(0)
    conversation.stop()

    assert await reading == []


@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_a_turn_that_fails_is_tried_again_or_given_up(durability: str) -> None:
    world = World([RuntimeError("down"), RuntimeError("down"), say("up")], durability=durability)
    conversation = Conversation(world.runner(), "c")
    await conversation.push("one")

    for _ in range(2):
        with pytest.raises(ModelError):
            await done(conversation)
    await conversation.push("two")
    await conversation.abandon()
    await conversation.abandon()

    assert await done(conversation) == ["says up"]
    assert world.last_input == ["user-prompt:two"]
    assert await conversation.inbox() == Inbox(turn=2)


async def test_a_question_that_was_given_up_cannot_be_answered() -> None:
    office = Office()
    conversation, context = await asking(office)
    await conversation.abandon()

    with pytest.raises(NothingPendingError):
        await conversation.resume({context.id: "yes"})
    stored = await office.store.load("c#1")
    assert stored is not None
    assert stored.status is CheckpointStatus.CLOSED


async def test_a_turn_that_is_going_on_is_not_given_up() -> None:
    office, conversation, reading = await at_work()

    with pytest.raises(CheckpointBusyError):
        await conversation.abandon()
    with pytest.raises(AgentConfigError, match="read already"):
        await done(conversation)
    office.clerk.go_on.set()
    assert await reading == ["says heard one"]


@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_i4_a_turn_that_was_cut_is_gone_on_with(durability: str) -> None:
    office = Office()
    first = office.open(durability=durability)
    await first.push("one")
    cut = first.events()
    await anext(cut)
    await cut.aclose()

    again = office.open(durability=durability)
    assert await done(again) == ["says heard one"]
    assert await again.inbox() == Inbox(turn=1)
    assert len(await office.log.load("c", before_turn=9)) == 1


async def test_i4_a_turn_that_ended_unnoticed_is_not_run_again() -> None:
    class Deaf(WatchedStore):
        """Its process dies when a turn is over, before the inbox says so."""

        is_deaf = False

        def at(self, write: str, text: str, *, before: bool) -> None:
            if self.is_deaf and '"taken":[]' in text:
                raise RuntimeError("died")

    store = Deaf()
    office = Office(store=store)
    first = office.open(durability="step")
    await first.push("one")
    store.is_deaf = True
    with pytest.raises(RuntimeError):
        await done(first)
    store.is_deaf = False

    again = office.open(durability="step")
    await again.push("two")
    assert await done(again) == ["says heard two"]


async def test_a_question_before_the_first_answer_has_nothing_pending() -> None:
    conversation = Office().open(durability="step")

    with pytest.raises(NothingPendingError):
        await conversation.resume({"x": "y"})
    assert await conversation.pending() == ()

    office, busy, reading = await at_work(durability="step")
    with pytest.raises(NothingPendingError):
        await busy.resume({"x": "y"})
    office.clerk.go_on.set()
    await reading


async def test_many_processes_push_and_nothing_is_lost() -> None:
    office = Office()
    processes = [office.open() for _ in range(5)]

    await asyncio.gather(*(each.push(str(n)) for n, each in enumerate(processes * 4)))

    queue = (await office.open().inbox()).queue
    assert sorted(map(int, queue)) == list(range(20))


async def test_an_inbox_that_is_never_free_is_an_error() -> None:
    busy = AwayStore("save", error=CheckpointConflictError("c/inbox"))
    with pytest.raises(CheckpointConflictError, match="too many"):
        await Office(store=busy).open().push("x")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", CheckpointDecodeError),
        ('{"schema":2}', CheckpointVersionError),
        ('{"schema":1}', CheckpointDecodeError),
        ('{"schema":1,"turn":1,"answers":{},"taken":[1],"queue":[]}', CheckpointDecodeError),
        ('{"schema":1,"turn":1,"answers":{},"taken":[],"queue":"x"}', CheckpointDecodeError),
    ],
)
async def test_a_damaged_inbox_is_a_typed_error_and_stays(
    text: str, error: type[Exception]
) -> None:
    office = Office()
    status = CheckpointStatus.RUNNING
    await office.store.save("c/inbox", text, status=status, expected_version=0)
    before = await office.store.load("c/inbox")

    with pytest.raises(error):
        await office.open().push("x")
    with pytest.raises(error):
        await done(office.open())
    assert await office.store.load("c/inbox") == before


def test_an_inbox_is_read_back() -> None:
    inbox = Inbox(turn=3, taken=("a",), queue=("b\ud83d", "c"), answers={"1": ("x", 2.5)})

    assert Inbox.from_text(inbox.to_text()) == inbox


def test_a_conversation_needs_a_store_and_a_log() -> None:
    with pytest.raises(NoCheckpointStoreError):
        Conversation(Runner(Asker("a")), "c")
    with pytest.raises(AgentConfigError, match="message log"):
        Conversation(Runner(Asker("a"), checkpoint_store=MemoryCheckpointStore()), "c")


async def test_session_values_begin_each_turn() -> None:
    office = Office()
    seen: list[object] = []

    class Reader(Clerk):
        async def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
            seen.append(dict(current_scope("a test").run.session))
            yield make_message("ok")

    runner = Runner(Reader(), checkpoint_store=office.store, message_log=office.log)
    conversation = Conversation(runner, "c", session_values={"user": "U1"})
    for text in ("one", "two"):
        await conversation.push(text)
        await done(conversation)

    assert seen == [{"user": "U1"}] * 2


async def test_the_inbox_stays_small() -> None:
    office = Office()
    conversation = office.open()
    sizes = []
    for number in range(30):
        await conversation.push(f"message {number:03d}")
        await done(conversation)
        stored = await office.store.load("c/inbox")
        assert stored is not None
        sizes.append(len(stored.data))

    assert max(sizes) - min(sizes) <= 1


class Meddled(MemoryCheckpointStore):
    """Lets somebody else act right before a load."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[int, Callable[[], Awaitable[object]]] = {}
        self.loads = 0

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        self.loads += 1
        meddle = self.before.pop(self.loads, None)
        if meddle is not None:
            await meddle()
        return await super().load(checkpoint_id)


async def test_an_answer_for_a_turn_that_ends_meanwhile_is_refused() -> None:
    store = Meddled()
    office = Office(store=store)
    conversation, context = await asking(office)
    other = office.open()

    async def next_turn() -> None:
        await other.abandon()
        await other.push("again?")
        await done(other)

    # Loads of the inbox, of the turn, and of the inbox once more, to change it.
    store.before = {store.loads + 3: next_turn}
    with pytest.raises(NothingPendingError, match="c#1"):
        await conversation.resume({context.id: "yes"})
    inbox = await conversation.inbox()
    assert (inbox.turn, inbox.answers) == (2, {})


async def test_a_turn_that_somebody_else_has_just_begun_is_gone_on_with() -> None:
    store = Meddled()
    office = Office(store=store)
    conversation, other = office.open(), office.open()
    await conversation.push("sure?")
    # The second load of the inbox is the one that takes the queue.
    store.before = {store.loads + 2: lambda: done(other)}

    assert await done(conversation) == ["INT agent:clerk"]
    assert office.clerk.seen == [[]]
    assert (await conversation.inbox()).turn == 1
