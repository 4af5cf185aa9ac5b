"""Each mistake has its own error, which says what to do, and changes nothing that is stored."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import pytest

from agents.agent import (
    AgentEvent,
    AgentInput,
    check_unique_names,
    function_agent,
    make_message,
    run_agent,
)
from agents.chat.agent import ChatModelAgent
from agents.conversation import Conversation
from agents.core.address import Address, Segment
from agents.core.cancel import CancelToken
from agents.core.checkpoint import CheckpointStatus
from agents.core.codec import TypeRegistry
from agents.core.component.context import session_values
from agents.core.component.legacy import resume_info
from agents.core.component.state import address_segment, get_interrupt_state, get_resume_context
from agents.core.errors import (
    AgentChangedError,
    AgentConfigError,
    AgentError,
    AmbiguousTargetError,
    CheckpointBusyError,
    CheckpointClosedError,
    CheckpointConflictError,
    CheckpointDecodeError,
    CheckpointNotFoundError,
    CheckpointVersionError,
    DuplicateNameError,
    NoCheckpointStoreError,
    NothingPendingError,
    OutsideRunError,
    ResumeDataError,
    UnknownInterruptError,
    UnregisteredTypeError,
    UnstorableValueError,
)
from agents.core.interrupt import composite_interrupt, interrupt, keep_waiting, stateful_interrupt
from agents.core.pending import InterruptContext
from agents.core.scope import current_address
from agents.gates import ApprovalInfo, approval_gate
from agents.memory import MemoryCheckpointStore, MemoryMessageLog
from agents.middlewares import Middleware
from agents.models import ScriptedModel, call, say
from agents.runner import Runner
from agents.runs.answers import ResumeParams
from agents.runs.document import RunDocument
from agents.workflows import LoopAgent, ParallelAgent, SequentialAgent
from agents.workflows.agenttool import AgentTool
from agents.workflows.transfer import with_sub_agents
from tests.unit.agents.support import Asker, Plain, brief, collect


@dataclass
class Mess:
    """A store with one run in each state, and a runner that works on it."""

    store: MemoryCheckpointStore = field(default_factory=MemoryCheckpointStore)
    ids: list[str] = field(default_factory=list)

    def runner(self, *gated: str, name: str = "A", **options: object) -> Runner:
        pay = Plain("pay")
        agent = ChatModelAgent(
            name=name,
            model=ScriptedModel([[call("pay", id="c1"), call("pay", id="c2")], say("done")]),
            tools=[approval_gate(pay) if "pay" in (gated or ("pay",)) else pay],
        )
        options = {"checkpoint_store": self.store, "message_log": MemoryMessageLog(), **options}
        return Runner(agent, **options)  # type: ignore[arg-type]

    async def prepare(self) -> None:
        await collect(self.runner().query("hi", checkpoint_id="pending"))
        self.ids = [context.id for context in await self.runner().pending("pending")]
        status = CheckpointStatus
        empty = RunDocument(agent="A", messages=()).to_text()
        for name, text, kept in (
            ("running", empty, status.RUNNING),
            ("nothing", empty, status.PENDING),
            ("newer", '{"schema":99}', status.PENDING),
            ("damaged", "{", status.PENDING),
            ("closed", empty, status.PENDING),
        ):
            await self.store.save(name, text, status=kept, expected_version=0)
        await self.store.close("closed", expected_version=1)

    def answer(self, checkpoint_id: str, targets: dict[str, object]) -> Awaitable[object]:
        params = ResumeParams(targets=targets)
        return collect(self.runner().resume_with_params(checkpoint_id, params))

    def run(self, checkpoint_id: str, **options: object) -> Awaitable[object]:
        events = self.runner().query("hi", checkpoint_id=checkpoint_id, **options)  # type: ignore[arg-type]
        return collect(events)


RUNS: dict[str, tuple[Callable[[Mess], Awaitable[object]], type[AgentError], str]] = {
    "resume of no checkpoint": (
        lambda m: m.answer("nope", {}),
        CheckpointNotFoundError,
        "check the id and the store",
    ),
    "resume of what runs": (lambda m: m.answer("running", {}), CheckpointBusyError, "`recover`"),
    "resume of what ended": (lambda m: m.answer("closed", {}), CheckpointClosedError, "a new id"),
    "resume of nothing": (lambda m: m.answer("nothing", {}), NothingPendingError, "is pending"),
    "resume of a newer version": (
        lambda m: m.answer("newer", {}),
        CheckpointVersionError,
        "run the version that wrote it",
    ),
    "resume of a damaged one": (lambda m: m.answer("damaged", {}), CheckpointDecodeError, "JSON"),
    "recovery of no checkpoint": (
        lambda m: collect(m.runner().recover("nope")),
        CheckpointNotFoundError,
        "check the id",
    ),
    "recovery of what ended": (
        lambda m: collect(m.runner().recover("closed")),
        CheckpointClosedError,
        "a new id",
    ),
    "unknown interrupt": (
        lambda m: m.answer("pending", {"nope": True}),
        UnknownInterruptError,
        "pending are: ",
    ),
    "one known, one unknown": (
        lambda m: m.answer("pending", {"nope": True, m.ids[0]: True}),
        UnknownInterruptError,
        "no interrupt 'nope'",
    ),
    "no answer": (lambda m: m.answer("pending", {m.ids[0]: None}), ResumeDataError, "got NoneType"),
    "wrong type": (lambda m: m.answer("pending", {m.ids[0]: "yes"}), ResumeDataError, "pay"),
    "nothing in place of params": (
        lambda m: collect(m.runner().resume_with_params("pending", None)),  # type: ignore[arg-type]
        AgentConfigError,
        "takes ResumeParams, not NoneType",
    ),
    "a dict in place of params": (
        lambda m: collect(m.runner().resume_with_params("pending", {"x": 1})),  # type: ignore[arg-type]
        AgentConfigError,
        r"`resume\(checkpoint_id, \{id: answer\}\)`",
    ),
    "params without targets": (
        lambda m: m.answer("pending", None),  # type: ignore[arg-type]
        AgentConfigError,
        "or a list of ids, not a NoneType",
    ),
    "unknown ids in a list": (
        lambda m: collect(m.runner().resume("pending", ["x"])),
        UnknownInterruptError,
        "no interrupt 'x'",
    ),
    "an empty id": (
        lambda m: collect(m.runner().query("hi", checkpoint_id="")),
        AgentConfigError,
        "checkpoint_id is a text that is not empty",
    ),
    "answer for a number": (
        lambda m: m.answer("pending", {1: True}),  # type: ignore[dict-item]
        AgentConfigError,
        "`context.id`",
    ),
    "answer for no address of a conversation": (
        lambda m: Conversation(m.runner(), "c").resume(None),  # type: ignore[arg-type]
        AgentConfigError,
        "a dict by interrupt id",
    ),
    "untargeted misspelled": (
        lambda m: _made(lambda: ResumeParams(untargeted="re-enter")),  # type: ignore[arg-type]
        AgentConfigError,
        "'preserve', 'reenter'",
    ),
    "durability misspelled": (
        lambda m: _made(lambda: m.runner(durability="steps")),
        AgentConfigError,
        "'interrupt', 'step'",
    ),
    "answer that cannot be stored": (
        lambda m: collect(
            m.runner().resume_with_params("pending", ResumeParams(), session_values={"a": object()})
        ),
        UnregisteredTypeError,
        "@register",
    ),
    "another root agent": (
        lambda m: collect(m.runner(name="B").resume("pending")),
        AgentChangedError,
        "start the version that asked",
    ),
    "a gate was taken away": (
        lambda m: collect(m.runner("other").resume("pending")),
        AgentChangedError,
        "start the version that asked",
    ),
    "no store": (
        lambda m: collect(m.runner(checkpoint_store=None).resume("pending")),
        NoCheckpointStoreError,
        "checkpoint_store=",
    ),
    "run with the id of what waits": (
        lambda m: m.run("pending"),
        CheckpointConflictError,
        "waits for answers; resume it, or begin a run with another id$",
    ),
    "run with the id of what runs": (lambda m: m.run("running"), CheckpointBusyError, "`recover`"),
    "run with the id of what ended": (lambda m: m.run("closed"), CheckpointClosedError, "new id"),
    "run in steps with an id in use": (
        lambda m: collect(m.runner(durability="step").query("hi", checkpoint_id="pending")),
        CheckpointConflictError,
        "waits for answers; resume it, or begin a run with another id$",
    ),
    "run in steps with an id that ended": (
        lambda m: collect(m.runner(durability="step").query("hi", checkpoint_id="closed")),
        CheckpointClosedError,
        "new id",
    ),
    "session value that cannot be stored": (
        lambda m: m.run("new", session_values={"a": object()}),
        UnregisteredTypeError,
        "@register",
    ),
    "log without a log": (
        lambda m: collect(
            m.runner(message_log=None).query("hi", checkpoint_id="new", log=("t", 1))
        ),
        AgentConfigError,
        "message_log=",
    ),
    "steps without a store": (
        lambda m: collect(m.runner(checkpoint_store=None, durability="step").query("hi")),
        AgentConfigError,
        "checkpoint_store=",
    ),
    "info that cannot be stored": (
        lambda m: collect(
            Runner(_asks(lambda: interrupt(object())), checkpoint_store=m.store).query(
                "hi", checkpoint_id="new"
            )
        ),
        UnregisteredTypeError,
        "@register",
    ),
    "state that cannot be stored": (
        lambda m: collect(
            Runner(
                _asks(lambda: stateful_interrupt("q", {1: "x"})), checkpoint_store=m.store
            ).query("hi", checkpoint_id="new")
        ),
        UnstorableValueError,
        "it has a key of type 'int'; use texts as keys",
    ),
    "a combined interrupt that is none": (
        lambda m: collect(
            Runner(
                _asks(lambda: composite_interrupt("q", None, ValueError("x"))),  # type: ignore[arg-type]
                checkpoint_store=m.store,
            ).query("hi", checkpoint_id="new")
        ),
        AgentConfigError,
        r"ValueError\('x'\) is none; raise an error as it is",
    ),
    "a text in place of messages": (
        lambda m: collect(m.runner().run("hi", checkpoint_id="new")),  # type: ignore[arg-type]
        AgentConfigError,
        r"`query\(text\)`",
    ),
    "a text in place of an event": (
        lambda m: _functions(m, _says_text),
        AgentConfigError,
        r"agent 'f' yielded a str, which is no event; use `make_message\(…\)`",
    ),
    "a value in place of events": (
        lambda m: _functions(m, lambda _: 1),
        AgentConfigError,
        "agent 'f' returned a int instead of its events; write an async generator",
    ),
    "conversation without a log": (
        lambda m: _made(lambda: Conversation(m.runner(message_log=None), "c")),
        AgentConfigError,
        "message_log=",
    ),
    "answer in a conversation that asks nothing": (
        lambda m: Conversation(m.runner(), "c").resume({"x": "y"}),
        NothingPendingError,
        "nothing is pending.*; begin with a new message or input",
    ),
}


def _asks(ask: Callable[[], object]) -> Asker:
    class Bad(Asker):
        async def run(self, input: object) -> object:  # type: ignore[override] # noqa: A002
            ask()
            yield

    return Bad("a")


async def _says_text(_: AgentInput) -> AsyncIterator[object]:
    yield "hi"


def _functions(mess: Mess, function: Callable[[AgentInput], object]) -> Awaitable[object]:
    agent = function_agent("f", function)  # type: ignore[arg-type]
    return collect(Runner(agent, checkpoint_store=mess.store).query("hi", checkpoint_id="new"))


async def _made(make: Callable[[], object]) -> object:
    return make()


@pytest.mark.parametrize("mistake", RUNS)
async def test_a_mistake_has_its_error_and_changes_nothing(mistake: str) -> None:
    attempt, error, pattern = RUNS[mistake]
    mess = Mess()
    await mess.prepare()
    before = copy.deepcopy(mess.store._stored)

    with pytest.raises(error, match=pattern) as raised:
        await attempt(mess)

    assert mess.store._stored == before
    assert type(raised.value) is error
    assert len(str(raised.value)) > 20
    contexts = await mess.runner().pending("pending")
    assert [context.id for context in contexts] == mess.ids


async def test_one_answer_for_two_is_ambiguous_and_changes_nothing() -> None:
    mess = Mess()
    await mess.prepare()
    before = copy.deepcopy(mess.store._stored)
    (first, _) = await mess.runner().pending("pending")
    assert isinstance(first.info, ApprovalInfo)
    good = first.info.approve()

    with pytest.raises(AmbiguousTargetError, match="by its id"):
        await mess.answer("pending", {first.id: good, str(first.address): good})
    assert mess.store._stored == before


@pytest.mark.parametrize(
    "outside",
    [
        lambda: interrupt("q"),
        lambda: stateful_interrupt("q", 1),
        lambda: composite_interrupt("q", 1),
        keep_waiting,
        lambda: get_interrupt_state(str),
        lambda: get_resume_context(str),
        current_address,
        session_values,
        resume_info,
        lambda: address_segment("tool", "x").__enter__(),
    ],
)
def test_outside_a_run_there_is_nobody_to_ask(outside: Callable[[], object]) -> None:
    with pytest.raises(OutsideRunError, match="call it in a tool or an agent of a runner"):
        outside()


def test_mistakes_that_are_there_before_any_run() -> None:
    with pytest.raises(DuplicateNameError, match="rename one") as raised:
        check_unique_names("team", [Asker("a"), Asker("a")])
    assert (raised.value.owner, raised.value.kind, raised.value.name) == ("team", "agent", "a")
    assert isinstance(raised.value, AgentConfigError)

    types = TypeRegistry()
    with pytest.raises(UnregisteredTypeError, match=r"@register.*, or .* with `types.add`"):
        types.encode(object())
    with pytest.raises(AgentConfigError, match="no dataclass"):
        types.register("app.X/1")(type("X", (), {}))


def _agent(**options: object) -> object:
    return ChatModelAgent(**{"name": "A", "model": ScriptedModel([]), **options})  # type: ignore[arg-type]


def _function(amount: int) -> str:
    return f"paid {amount}"


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: _agent(model="openai:gpt-5"), r"'openai:gpt-5', which is no model; make one with"),
        (lambda: _agent(max_iterations=0), "`max_iterations` is at least 1"),
        (lambda: _agent(tools=[_function]), "is no tool; make one of a function with `@tool`"),
        (lambda: _agent().with_tools(_function), "is no tool"),  # type: ignore[attr-defined]
        (lambda: approval_gate(_function), "is no tool"),  # type: ignore[arg-type]
        (lambda: _agent(middlewares=[Middleware]), "is no middleware; give an instance"),
        (lambda: function_agent("f", _generator), "begin it with `async def`"),  # type: ignore[arg-type]
    ],
)
def test_a_part_of_the_wrong_type_is_noticed_when_it_is_put_to_use(
    make: Callable[[], object], fault: str
) -> None:
    with pytest.raises(AgentConfigError, match=fault):
        make()


def _generator(_: AgentInput) -> Iterator[AgentEvent]:
    yield make_message("hi")


@dataclass
class Once:
    """It runs, and can never be resumed."""

    name: str = "once"
    description: str = ""

    async def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
        yield make_message("hi")


@dataclass
class Nameless(Asker):
    name: str = ""


@pytest.mark.parametrize(
    "use",
    [
        Runner,
        AgentTool,
        lambda agent: SequentialAgent("S", [agent]),
        lambda agent: ParallelAgent("S", [Asker("a"), agent]),
        lambda agent: LoopAgent("S", [agent]),
        lambda agent: with_sub_agents(Asker("a"), [agent]),
    ],
    ids=["runner", "tool", "sequence", "parallel", "loop", "transfer"],
)
def test_an_agent_that_cannot_be_resumed_is_noticed_when_it_is_put_to_use(
    use: Callable[[object], object],
) -> None:
    with pytest.raises(AgentConfigError, match="'once' has no method `resume`; `function_agent`"):
        use(Once())
    with pytest.raises(AgentConfigError, match="no `name`"):
        use(Nameless())


async def test_an_agent_that_cannot_be_resumed_does_not_run_inside_of_another() -> None:
    said: list[AgentEvent] = []

    async def outer(given: AgentInput) -> AsyncIterator[AgentEvent]:
        async for event in run_agent(Once(), given):  # type: ignore[arg-type]
            said.append(event)
            yield event

    with pytest.raises(AgentConfigError, match="no method `resume`"):
        await collect(Runner(function_agent("outer", outer)).query("hi"))
    assert said == []


@pytest.mark.parametrize("make", [lambda c: c.address, lambda c: str(c.address), lambda c: c.id])
async def test_an_answer_is_given_by_id_by_address_or_by_its_text(
    make: Callable[[InterruptContext], str | Address],
) -> None:
    runner = Runner(Asker("a"), checkpoint_store=MemoryCheckpointStore())
    await collect(runner.query("hi", checkpoint_id="1"))
    (context,) = await runner.pending("1")

    events = await collect(runner.resume("1", {make(context): "x"}))

    assert brief(events) == ["says a got x"]


async def test_an_address_where_nothing_waits_is_told_as_its_text() -> None:
    mess = Mess()
    await mess.prepare()

    with pytest.raises(UnknownInterruptError, match="no interrupt 'agent:B' is pending"):
        await collect(mess.runner().resume("pending", {Address((Segment("agent", "B"),)): 1}))


async def test_a_token_may_be_given_to_a_run_that_is_refused() -> None:
    mess = Mess()
    await mess.prepare()
    token = CancelToken()
    token.cancel()
    before = copy.deepcopy(mess.store._stored)

    with pytest.raises(CheckpointConflictError):
        await mess.run("pending", cancel=token)
    assert mess.store._stored == before
