"""The instruction: a text, a template, or a function; settled when a run begins."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents import (
    AgentConfigError,
    ChatModelAgent,
    MemoryCheckpointStore,
    ResumeParams,
    Runner,
    approval_gate,
    session_values,
)
from agents.agent import AgentInput
from agents.chat.instruction import Instruction, render
from agents.core.errors import CheckpointDecodeError
from agents.core.messages import text_of
from agents.middlewares.base import Middleware
from agents.models import call, say
from tests.unit.agents.support import CountingStore, Plain, collect, contexts, yes


class Office:
    """An agent whose model calls once, and remembers what it was told."""

    def __init__(self, instruction: Instruction, *middlewares: Middleware) -> None:
        self.instruction = instruction
        self.middlewares = middlewares
        self.heard: list[str | None] = []
        self.store: MemoryCheckpointStore = MemoryCheckpointStore()

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.heard.append(info.instructions)
        is_first = not any(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse(parts=[call("pay", id="c1") if is_first else say("done")])

    def runner(self) -> Runner:
        agent = ChatModelAgent(
            name="A",
            model=FunctionModel(self.answer),
            instruction=self.instruction,
            tools=[approval_gate(Plain("pay"))],
            middlewares=self.middlewares,
        )
        return Runner(agent, checkpoint_store=self.store)

    async def play(self, first: Mapping[str, object], later: Mapping[str, object]) -> None:
        events = await collect(self.runner().query("hi", checkpoint_id="1", session_values=first))
        context = contexts(events)["c1"]
        params = ResumeParams(targets={context.id: yes(context)})
        await collect(self.runner().resume_with_params("1", params, session_values=later))


async def test_e068_a_template_is_rendered_once() -> None:
    office = Office("user is {u}")

    await office.play({"u": "U1"}, {"u": "U2"})

    assert office.heard == ["user is U1", "user is U1"]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_is_called_once(is_async: bool) -> None:
    asked: list[object] = []

    def make(session: Mapping[str, object]) -> str:
        asked.append(session["u"])
        return f"user is {session['u']} {{u}}"

    async def make_slowly(session: Mapping[str, object]) -> str:
        return make(session)

    office = Office(make_slowly if is_async else make)
    await office.play({"u": "U1"}, {"u": "U2"})

    assert asked == ["U1"]
    assert office.heard == ["user is U1 {u}"] * 2


async def test_values_are_not_templates_and_other_braces_stay() -> None:
    office = Office('Answer {"a": {u}} for {n}, not {{u}} or { u } or {}.')

    await office.play({"u": "{n}", "n": 7}, {})

    assert office.heard[0] == 'Answer {"a": {n}} for 7, not {u} or { u } or {}.'


async def test_a_name_without_value_is_a_mistake() -> None:
    office = Office("user is {user}")

    with pytest.raises(AgentConfigError, match=r"names \{user\}.* write \{\{user\}\}"):
        await collect(office.runner().query("hi"))


async def test_a_hook_may_set_the_value() -> None:
    class Knows(Middleware):
        async def before_agent(self, input: AgentInput) -> AgentInput:  # noqa: A002
            session_values().setdefault("u", "U7")
            return input

    office = Office("user is {u}", Knows())
    await office.play({}, {})

    assert office.heard == ["user is U7"] * 2


async def test_a_long_instruction_is_not_stored() -> None:
    office = Office("x" * 5000 + " {u}")
    office.store = store = CountingStore()

    await office.play({"u": "U1"}, {})

    assert len(store.saved) == 1
    assert "xxx" not in store.saved[0]


async def test_a_new_instruction_that_names_more_is_refused() -> None:
    office = Office("user is {u}")
    events = await collect(
        office.runner().query("hi", checkpoint_id="1", session_values={"u": "U1"})
    )
    context = contexts(events)["c1"]

    office.instruction = "user is {u}, boss is {b}"
    with pytest.raises(CheckpointDecodeError, match="'b' was not kept"):
        await collect(office.runner().resume("1", {context.id: yes(context)}))


def test_a_function_that_became_a_text_is_rendered_as_text() -> None:
    assert render("plain", "from the function") == "plain"
    assert render(lambda _: "new", {"u": "U1"}) == ""
    assert text_of(ModelResponse(parts=[])) == ""
