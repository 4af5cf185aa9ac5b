"""The loop between a model and its tools."""

from __future__ import annotations

from functools import reduce
from typing import Any, cast

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents import (
    AgentConfigError,
    ChatModelAgent,
    Runner,
    ToolOutcome,
    ToolReturn,
    approval_gate,
    tool,
)
from agents.core.codec import Json
from agents.core.errors import ArgumentError, InvalidArgumentsError, ModelError
from agents.core.messages import repaired
from agents.models import Turn, call, say
from agents.tools import current_why
from tests.unit.agents.support import Plain, World, brief, collect


@pytest.mark.parametrize(("names", "told"), [(["pay", "look"], "look, pay"), ([], "none")])
async def test_an_unknown_tool_is_refused_and_the_model_hears_which_exist(
    names: list[str], told: str
) -> None:
    world = World([call("pya", {"x": 1}, id="c1"), say("done")], [Plain(name) for name in names])

    events = await world.run()

    assert brief(events)[1] == (
        f"tool pya#c1 refused: There is no tool 'pya'; nothing ran. Tools that exist: {told}."
    )
    assert brief(events)[2] == "says done"


DEEP = reduce(lambda inner, _: {"a": inner}, range(300), cast("Json", 1))


@pytest.mark.parametrize(
    "arguments", ["{", "[1]", '{"x": NaN}', "null x", '"text"', "[" * 5000, DEEP]
)
async def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    pay = Plain("pay")
    world = World([call("pay", arguments, id="c1"), say("done")], [approval_gate(pay)])

    events = await world.run()

    assert brief(events)[1] == (
        "tool pay#c1 refused: The call to 'pay' was refused, nothing ran: its arguments are not a "
        "JSON object of at most 100 levels. It takes: x."
    )
    assert pay.calls == []


async def test_nobody_is_asked_about_arguments_that_do_not_fit() -> None:
    @tool(gate="approval")
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    world = World([call("pay", {"amount": "abc"}, id="c1"), say("done")], [pay])

    events = await world.run()

    assert "refused: The call to 'pay' was refused, nothing ran" in brief(events)[1]
    assert "amount" in brief(events)[1]
    assert brief(events)[2] == "says done"


async def test_a_tool_without_arguments_says_so() -> None:
    @tool
    def ping() -> None:
        """Ping."""

    script: list[Turn] = [call("ping", {"x": 1}, id="c1"), call("ping", id="c2"), say("done")]
    world = World(script, [ping])

    events = await world.run()

    assert brief(events)[1].endswith("It takes: no arguments.")
    assert brief(events)[3] == "tool ping#c2 ran: done"


def test_faults_of_arguments_are_told_with_their_path() -> None:
    error = InvalidArgumentsError((ArgumentError(("a", 0), "bad"), ArgumentError((), "worse")))

    assert str(error) == "the arguments do not fit: a.0: bad; arguments: worse"


async def test_outcomes_reach_event_and_model() -> None:
    def body(_: dict[str, Json]) -> ToolReturn:
        return ToolReturn("nobody came", ToolOutcome.EXPIRED)

    world = World([call("t", id="c1"), say("done")], [Plain("t", body)])

    events = await world.run()

    assert brief(events)[1] == "tool t#c1 expired: nobody came"
    part = world.models[0].inputs[1][-1].parts[0]
    assert isinstance(part, ToolReturnPart)
    assert part.outcome == "denied"


async def test_the_model_hears_its_instruction_and_its_tools() -> None:
    heard: list[AgentInfo] = []

    def answer(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        heard.append(info)
        return ModelResponse(parts=[TextPart("one"), ThinkingPart("hm"), TextPart("two")])

    agent = ChatModelAgent(
        name="A",
        model=FunctionModel(answer),
        instruction="Be kind.",
        tools=[Plain("pay")],
        description="pays",
    )

    events = await collect(Runner(agent).query(["hi", "there"]))

    assert agent.description == "pays"
    assert heard[0].instructions == "Be kind."
    assert [t.name for t in heard[0].function_tools] == ["pay"]
    assert brief(events) == ["says one\n\ntwo"]


async def test_what_the_model_says_beside_a_call_reaches_the_tool() -> None:
    seen: list[str] = []
    script: list[Turn] = [[say("because"), call("t", id="c1")], say("done")]
    world = World(script, [Plain("t", lambda _: seen.append(current_why()))])

    await world.run()

    assert seen == ["because"]


async def test_a_failing_model_is_a_model_error_and_a_mistake_is_told_as_it_is() -> None:
    with pytest.raises(ModelError, match="overloaded") as caught:
        await World([RuntimeError("overloaded")]).run()
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(AgentConfigError, match="script"):
        await World([]).run()


def test_a_number_that_cannot_be_told_is_no_argument() -> None:
    part = ToolCallPart("t", {"a": 10**5000}, tool_call_id="c")

    (done,) = repaired(ModelResponse(parts=[part]), ()).parts

    assert isinstance(done, ToolCallPart)
    assert "unreadable" in str(done.args)


@pytest.mark.parametrize(
    ("args", "kept"),
    [
        (None, {}),
        ("", {}),
        ({}, {}),
        ({"a": [1]}, {"a": [1]}),
        ('{"a": 1}', {"a": 1}),
        ({"a": float("nan")}, {"INVALID_JSON": "{'a': nan}"}),
        ({"a": {1}}, {"INVALID_JSON": "{'a': {1}}"}),
        ('{"a": ' + "1" * 4301 + "}", {"INVALID_JSON": '{"a": ' + "1" * 4301 + "}"}),
        ("[" * 102 + "]" * 102, {"INVALID_JSON": "[" * 102 + "]" * 102}),
        ('{"a":' * 101 + "1" + "}" * 101, {"INVALID_JSON": '{"a":' * 101 + "1" + "}" * 101}),
    ],
    ids=lambda value: str(value)[:20],
)
def test_arguments_become_json_data(args: object, kept: dict[str, Json]) -> None:
    part = ToolCallPart("t", args, tool_call_id="c")  # type: ignore[arg-type]

    (done,) = repaired(ModelResponse(parts=[part]), ()).parts

    assert isinstance(done, ToolCallPart)
    assert done.args == kept
