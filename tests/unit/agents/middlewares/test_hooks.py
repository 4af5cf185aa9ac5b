"""Hooks of middlewares: their order, what they may change, and how they ask people."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)

from agents import (
    AgentConfigError,
    ResumeDataError,
    approval_gate,
    get_interrupt_state,
    get_resume_context,
    session_values,
    stateful_interrupt,
)
from agents.agent import AgentInput
from agents.chat import ChatResumeData
from agents.chat.state import run_local_values
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.errors import (
    AgentChangedError,
    OutsideRunError,
    SwallowedInterruptError,
    UnregisteredTypeError,
)
from agents.core.interrupt import InterruptSignal
from agents.core.messages import user_message
from agents.core.tools import Tool, ToolWrapper
from agents.middlewares.base import CallNext, HistoryProcessor, Middleware, ModelCall
from agents.models import call, say
from tests.support.hooks import HOOKS, InEachHook
from tests.unit.agents.support import Plain, World, brief, collect, contexts, hooked, yes


@dataclass
class Spy(InEachHook):
    """Notes each hook."""

    label: str = ""
    seen: list[str] = field(default_factory=list)

    def at(self, hook: str) -> None:
        self.seen.append(f"{self.label}{hook}")

    def wrap_tool(self, tool: Tool) -> Tool:
        return _Noted(super().wrap_tool(tool), self)

    async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
        self.at("ask")
        answer = await call_next(call)
        self.at("answered")
        return answer

    async def after_agent(self, text: str) -> None:
        self.at(f"after_agent {text}")


@dataclass(frozen=True, slots=True)
class _Noted(ToolWrapper):
    spy: Spy

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        self.spy.at("tool")
        return await self.tool.call(arguments)


class Asking(InEachHook):
    """Asks once in one hook, and keeps what was answered."""

    def __init__(self, hook: str, label: str = "Asking") -> None:
        self.hook = hook
        self.label = label
        self.got: list[tuple[str | None, str | None]] = []

    @property
    def name(self) -> str:
        return self.label

    def at(self, hook: str) -> None:
        if hook != self.hook:
            return
        was, _, state = get_interrupt_state(str)
        _, has_data, data = get_resume_context(str)
        if has_data:
            self.got.append((state, data))
        elif not self.got or was:
            stateful_interrupt(f"{self.label}.{hook}?", f"{self.label} state")


async def test_e062_hooks_on_run_and_on_resume() -> None:
    spy = Spy()
    world = World(
        [call("pay", id="c1"), say("done")],
        [approval_gate(Plain("pay"))],
        options={"middlewares": [spy]},
    )

    context = contexts(await world.run())["c1"]

    first = ["before_agent", "before_model", "ask", "answered", "after_model", "tool"]
    assert spy.seen == first
    spy.seen.clear()
    await world.resume({context.id: yes(context)})
    assert spy.seen == [
        "before_agent",
        "tool",
        "after_tools",
        "before_model",
        "ask",
        "answered",
        "after_model",
        "after_agent done",
    ]


async def test_the_first_middleware_is_the_outermost() -> None:
    seen: list[str] = []
    world = hooked([Spy("1 ", seen), Spy("2 ", seen)])

    await world.run()

    assert seen[:8] == [
        "1 before_agent",
        "2 before_agent",
        "1 before_model",
        "2 before_model",
        "1 ask",
        "2 ask",
        "2 answered",
        "1 answered",
    ]
    assert seen[8:14] == [
        "2 after_model",
        "1 after_model",
        "1 tool",
        "2 tool",
        "2 after_tools",
        "1 after_tools",
    ]
    assert seen[-2:] == ["2 after_agent done", "1 after_agent done"]


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_e064_each_hook_may_ask(hook: str, durability: str) -> None:
    tool = Plain("t")
    asking = Asking(hook)
    world = hooked([Spy(), asking], tool, durability=durability)

    first = await world.run()
    (context,) = contexts(first).values()
    assert (context.info, str(context.address)) == (f"Asking.{hook}?", "agent:A")
    assert context.is_root_cause
    assert context.parent is not None
    assert str(context.parent.address) == "agent:A"
    second = await world.resume({context.id: "go"})

    assert asking.got == [("Asking state", "go")]
    lines = [line for line in brief([*first, *second]) if not line.startswith("INT")]
    assert lines == ["calls t#c1", "tool t#c1 ran: t ok {}", "says done"]
    assert sum(model.calls for model in world.models) == 2
    assert len(tool.calls) == 1


@pytest.mark.parametrize("hook", HOOKS)
async def test_each_middleware_has_its_own_state(hook: str) -> None:
    asking, two = Asking(hook, "same"), Asking(hook, "same")
    world = hooked([asking, two])

    (first,) = contexts(await world.run()).values()
    (second,) = contexts(await world.resume({first.id: "a"})).values()
    events = await world.resume({second.id: "b"})

    assert brief(events)[-1:] == (["says done"] if hook != "after_agent" else [])
    # Whoever was answered first runs again when the other one was, and finds the same.
    seen = [set(asking.got), set(two.got)]
    assert sorted(map(str, seen)) == ["{('same state', 'a')}", "{('same state', 'b')}"]


async def test_a_question_before_the_agent_leaves_its_calls_waiting() -> None:
    """A hook asks on resume: the answer for a call comes too early, and the call waits on."""

    class Late(Asking):
        runs = 0

        async def before_agent(self, input: AgentInput) -> AgentInput:  # noqa: A002
            Late.runs += 1
            if Late.runs > 1:
                self.at("before_agent")
            return input

    pay, late = Plain("pay"), Late("before_agent")
    world = World(
        [[call("pay", id="c1"), call("pay", id="c2")], say("done")],
        [approval_gate(pay)],
        options={"middlewares": [late]},
    )
    first = contexts(await world.run())

    with pytest.raises(ResumeDataError, match="a middleware of its agent asks people first"):
        await world.resume({first["c1"].id: yes(first["c1"])})
    pending = await world.pending()
    assert [(str(context.address), context.info) for context in pending[:1]] == [
        ("agent:A", "Asking.before_agent?")
    ]
    assert [context.id for context in pending[1:]] == [first["c1"].id, first["c2"].id]
    assert pay.calls == []

    await world.resume({pending[0].id: "go"})
    events = await world.resume({c.id: yes(c) for c in pending[1:]})
    assert brief(events)[-1] == "says done"
    assert len(pay.calls) == 2


async def test_a_hook_that_is_gone_is_not_passed_over() -> None:
    world = World([say("done")], options={"middlewares": [Asking("before_model")]})
    (context,) = contexts(await world.run()).values()

    world.options = {}
    with pytest.raises(AgentChangedError, match="the hook 'before_model:Asking'"):
        await world.resume({context.id: "go"})

    world.options = {"middlewares": [Asking("before_model")]}
    assert brief(await world.resume({context.id: "go"})) == ["says done"]


async def test_a_middleware_that_swallows_a_question_is_noticed() -> None:
    class Greedy(Middleware):
        async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
            try:
                return await call_next(call)
            except InterruptSignal:
                return ModelResponse(parts=[TextPart("never mind")])

    world = World([say("done")], options={"middlewares": [Greedy(), Asking("around_model")]})

    with pytest.raises(SwallowedInterruptError):
        await world.run()


async def test_hooks_change_what_they_get() -> None:
    class Changing(Middleware):
        async def before_agent(self, input: AgentInput) -> AgentInput:  # noqa: A002
            return replace(input, messages=(*input.messages, user_message("be quick")))

        async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
            return [*messages, user_message("now")]

        async def after_model(self, response: ModelResponse) -> ModelResponse:
            texts = [p for p in response.parts if isinstance(p, TextPart)]
            return replace(response, parts=[TextPart("secret") for _ in texts] or response.parts)

        async def after_tools(self, message: ModelRequest) -> ModelRequest:
            (part,) = message.parts
            assert isinstance(part, ToolReturnPart)
            return ModelRequest(
                parts=[ToolReturnPart(part.tool_name, "shorter", part.tool_call_id)]
            )

        async def after_agent(self, text: str) -> None:
            session_values()["told"] = text

    world = hooked([Changing()])

    events = await world.run(log=("l", 1))

    assert brief(events)[-1] == "says secret"
    assert world.last_input == [
        "user-prompt:hi",
        "user-prompt:be quick",
        "tool-call:",
        "tool-return:shorter",
        "user-prompt:now",
    ]
    (entry,) = await world.log.load("l", before_turn=2)
    assert "secret" in entry
    assert "shorter" in entry
    assert "now" not in entry


async def test_what_a_model_answered_may_be_changed_into_a_call() -> None:
    class Calls(Middleware):
        async def after_model(self, response: ModelResponse) -> ModelResponse:
            return replace(response, parts=[call("t", id="c1")])

    tool = Plain("t")
    world = World([say("x"), say("y")], [tool], options={"middlewares": [Calls()]})
    world.options["max_iterations"] = 2

    with pytest.raises(Exception, match="used all 2 rounds"):
        await world.run()
    assert len(tool.calls) == 2


async def test_a_cached_answer_asks_no_model() -> None:
    class Cached(Middleware):
        async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
            return ModelResponse(parts=[TextPart("from the cache")])

    world = World([], options={"middlewares": [Cached()]})

    assert brief(await world.run()) == ["says from the cache"]
    assert brief(await collect(world.runner(streaming=True).query("hi"))) == ["says from the cache"]


@pytest.mark.parametrize("hook", ["before_agent", "before_model", "after_model", "after_tools"])
async def test_a_hook_that_forgets_to_return_is_a_mistake(hook: str) -> None:
    async def forgetful(*_: object) -> None:
        return None

    kind = type("Forgetful", (Middleware,), {hook: forgetful})
    world = hooked([kind()])

    with pytest.raises(AgentConfigError, match=f"{hook} of middleware 'Forgetful' gave back None"):
        await world.run()


async def test_e073_history_modifier_places_what_people_said() -> None:
    def last_first(messages: list[ModelMessage]) -> list[ModelMessage]:
        return [user_message("user:extra"), *messages]

    pay = Plain("pay")
    world = World(
        [call("pay", id="c1"), say("done")],
        [approval_gate(pay)],
        options={"history_modifier": last_first},
    )
    context = contexts(await world.run())["c1"]
    assert context.parent is not None

    await world.resume(
        {context.id: yes(context), context.parent.id: ChatResumeData(messages=("and hurry",))}
    )

    assert world.last_input == [
        "user-prompt:user:extra",
        "user-prompt:hi",
        "tool-call:",
        "tool-return:pay ok {}",
        "user-prompt:and hurry",
    ]
    assert len(pay.calls) == 1


async def test_history_modifiers_may_be_coroutines_and_see_results() -> None:
    async def trim(messages: list[ModelMessage]) -> list[ModelMessage]:
        return messages[-1:]

    async def note(message: ModelRequest) -> ModelRequest:
        return replace(message, parts=[*message.parts, UserPromptPart("noted")])

    world = hooked([HistoryProcessor(trim, after_tools=note), HistoryProcessor()])

    await world.run()

    assert world.last_input == ["tool-return:t ok {}", "user-prompt:noted"]


class Counting(Middleware):
    """Counts model calls in the run's local values."""

    async def after_model(self, response: ModelResponse) -> ModelResponse:
        values = run_local_values()
        values["asked"] = int(str(values.get("asked", 0))) + 1
        return response


@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_local_values_survive_interrupts(durability: str) -> None:
    seen: list[object] = []

    def look(_: object) -> None:
        seen.append(run_local_values()["asked"])

    world = World(
        [call("pay", id="c1"), call("look", id="c2"), say("done")],
        [approval_gate(Plain("pay")), Plain("look", look)],
        durability=durability,
        options={"middlewares": [Counting()]},
    )
    context = contexts(await world.run())["c1"]

    await world.resume({context.id: yes(context)})

    assert seen == [2]


async def test_local_values_survive_a_crash_between_two_steps() -> None:
    class DiedError(Exception):
        pass

    seen: list[object] = []

    def look(_: object) -> str:
        seen.append((run_local_values()["asked"], session_values()["n"]))
        return "looked"

    class Dying(Middleware):
        ready = False

        async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
            session_values()["n"] = len(messages)
            return messages

        async def after_tools(self, message: ModelRequest) -> ModelRequest:
            if not Dying.ready:
                raise DiedError
            return message

    world = World(
        [call("t", id="c1"), call("look", id="c2"), say("done")],
        [Plain("t"), Plain("look", look)],
        durability="step",
        options={"middlewares": [Counting(), Dying()]},
    )

    with pytest.raises(DiedError):
        await world.run()
    Dying.ready = True
    await world.recover()

    assert seen == [(2, 3)]


async def test_local_values_must_be_storable_and_need_an_agent() -> None:
    def body(_: object) -> None:
        run_local_values()["bad"] = object()

    world = World([call("t", id="c1"), say("done")], [Plain("t", body)])

    with pytest.raises(UnregisteredTypeError):
        await world.run()
    with pytest.raises(OutsideRunError):
        run_local_values()
