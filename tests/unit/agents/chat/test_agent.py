"""The loop between a model and its tools."""

from __future__ import annotations

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
    MessageEvent,
    ResumeDataError,
    Runner,
    ScriptedModel,
    TextDelta,
    ToolOutcome,
    ToolReturn,
    approval_gate,
    tool,
)
from agents.chat import ChatResumeData
from agents.core.codec import Json
from agents.core.errors import ArgumentError, InvalidArgumentsError, ModelError
from agents.core.messages import repaired
from agents.models import Turn, call, say
from agents.tools import current_why
from tests.unit.agents.support import Plain, World, brief, collect, contexts, no, yes


async def test_an_unknown_tool_is_refused_and_the_model_hears_which_exist() -> None:
    world = World([call("pya", {"x": 1}, id="c1"), say("done")], [Plain("pay"), Plain("look")])

    events = await world.run()

    assert brief(events)[1] == (
        "tool pya#c1 refused: There is no tool 'pya'; nothing ran. Tools that exist: look, pay."
    )
    assert brief(events)[2] == "says done"


async def test_without_tools_none_exists() -> None:
    world = World([call("pay", id="c1"), say("done")])

    assert "Tools that exist: none." in brief(await world.run())[1]


@pytest.mark.parametrize("text", ["{", "[1]", '{"x": NaN}', "null x", '"text"', "[" * 5000])
async def test_arguments_that_are_no_object_are_refused(text: str) -> None:
    pay = Plain("pay")
    world = World([call("pay", text, id="c1"), say("done")], [approval_gate(pay)])

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


async def test_messages_reach_an_agent_whose_calls_wait() -> None:
    world = World([call("pay", id="c1"), say("done")], [approval_gate(Plain("pay"))])
    context = contexts(await world.run())["c1"]
    assert context.parent is not None

    first = contexts(await world.resume({context.parent.id: ChatResumeData(messages=("wait",))}))
    again = first["c1"]
    assert again.id == context.id
    assert again.parent is not None
    assert again.parent.id != context.parent.id
    data = ChatResumeData(messages=("now",))
    await world.resume({again.id: no(again, "not today"), again.parent.id: data})

    assert world.last_input[-2:] == ["user-prompt:wait", "user-prompt:now"]
    assert "not today" in world.last_input[-3]


async def test_an_agent_takes_no_other_answer() -> None:
    world = World([call("pay", id="c1"), say("done")], [approval_gate(Plain("pay"))])
    context = contexts(await world.run())["c1"]
    assert context.parent is not None

    with pytest.raises(ResumeDataError, match="ChatResumeData"):
        await world.resume({context.parent.id: yes(context)})


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


async def test_deltas_together_are_the_text() -> None:
    parts: Turn = [say("one two"), call("look", id="c1"), say("three")]
    agent = ChatModelAgent(
        name="A", model=ScriptedModel([parts, say("end")]), tools=[Plain("look")]
    )

    events = await collect(Runner(agent, streaming=True).query("hi"))

    deltas: dict[str, str] = {}
    for event in events:
        if isinstance(event, TextDelta):
            deltas[event.key] = deltas.get(event.key, "") + event.text
    texts = {event.key: event.text for event in events if isinstance(event, MessageEvent)}
    assert deltas == texts


async def test_what_the_model_says_beside_a_call_reaches_the_tool() -> None:
    seen: list[str] = []
    script: list[Turn] = [[say("because"), call("t", id="c1")], say("done")]
    world = World(script, [Plain("t", lambda _: seen.append(current_why()))])

    await world.run()

    assert seen == ["because"]


def test_two_tools_of_one_name_are_a_mistake() -> None:
    with pytest.raises(AgentConfigError, match="two tools 'pay'"):
        ChatModelAgent(name="A", model=ScriptedModel([]), tools=[Plain("pay"), Plain("pay")])


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


async def test_a_call_with_too_many_levels_is_told_to_the_model_and_asks_nobody() -> None:
    deep: Json = 1
    for _ in range(300):
        deep = {"a": deep}
    world = World([call("pay", deep, id="c1"), say("done")], [approval_gate(Plain("pay"))])  # type: ignore[arg-type]

    events = await world.run()

    assert "at most 100 levels" in brief(events)[1]
    assert brief(events)[-1] == "says done"


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
