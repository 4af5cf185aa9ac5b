"""Choosing from options: what people chose is what runs, and nothing else can be chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from agents.core.asking.answers import ApprovalResult, Cancelled, Expired
from agents.core.calls import ToolReturn
from agents.core.codec import Json, decode, encode
from agents.core.errors import AgentConfigError, InvalidArgumentsError, ResumeDataError, ToolError
from agents.core.observers import ToolOutcome
from agents.gates import choose_argument, choose_tool, tool
from agents.gates.questions import CallChoiceInfo, Choice, ChoiceInfo, ChoiceResult
from agents.tools import Tool
from tests.unit.agents.stage import Stage

ZONES = (
    Choice(id="eu", label="Europe", description="near the users"),
    Choice(id="us", label="America"),
)


class Host:
    """Remembers where things were deployed."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, object]] = []

    async def deploy(self, service: str, zone: Literal["eu", "us"], fast: bool = False) -> str:
        self.ran.append((service, zone))
        return f"{service} in {zone}"

    async def copy(self, zones: list[str]) -> str:
        self.ran.append(("copy", tuple(zones)))
        return "copied"

    async def scale(self, size: int) -> str:
        self.ran.append(("scale", size))
        return "scaled"

    def gated(self) -> Tool:
        made = tool(title="Deploy {service} to {zone}")(self.deploy)
        return choose_argument(made, parameter="zone", options=ZONES)


@pytest.fixture
def host() -> Host:
    return Host()


async def chosen(host: Host, **arguments: Json) -> tuple[Stage, CallChoiceInfo]:
    stage = Stage(host.gated(), {"service": "web", **arguments})
    assert await stage.run() is None
    return stage, stage.question(CallChoiceInfo)


async def test_question_shows_the_call_and_the_options(host: Host) -> None:
    stage, info = await chosen(host)
    assert info.arguments == {"service": "web", "fast": False}
    assert (info.question, info.options, info.parameter) == ("Which zone?", ZONES, "zone")
    assert (info.title, info.preview) == ("Deploy", "People are asked for: zone.")
    assert str(info) == "Deploy: Which zone?\n1. Europe: near the users\n2. America"
    assert decode(encode(info)) == info
    assert stage.tool.definition.gates == ("choice",)
    assert host.ran == []


async def test_schema_lets_the_model_leave_it_out(host: Host) -> None:
    schema = host.gated().definition.schema
    assert schema["required"] == ["service"]
    zone = schema["properties"]["zone"]  # type: ignore[index, call-overload]
    assert "People are asked for it" in str(zone)


async def test_value_of_the_model_is_a_suggestion(host: Host) -> None:
    stage, info = await chosen(host, zone="eu")
    assert info.title == "Deploy web to eu"
    await stage.answer(info.choose("us"))
    assert host.ran == [("web", "us")]
    stage, info = await chosen(host, zone="eu")
    assert await stage.answer(info.choose("eu")) == ToolReturn("web in eu")


async def test_declined_choice_runs_nothing(host: Host) -> None:
    stage, info = await chosen(host)
    result = await stage.result(info.reject("not today"))
    assert result.outcome is ToolOutcome.REJECTED
    assert "not today" in result.text
    assert host.ran == []


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "us",
        ApprovalResult(approved=True),
        ChoiceResult(),
        ChoiceResult(selected=("us",)),
        ChoiceResult(selected=("us",), digest="0" * 64),
        ChoiceResult(selected=("mars",), digest="0" * 64),
        ChoiceResult(selected=("eu", "us"), digest="0" * 64),
        ChoiceResult(selected=("us", "us"), digest="0" * 64),
    ],
)
async def test_wrong_choice_never_runs(host: Host, answer: object) -> None:
    stage, info = await chosen(host)
    assert isinstance(await stage.refused(answer), ResumeDataError)
    assert host.ran == []
    assert await stage.answer(info.choose("eu")) is not None


async def test_choice_for_another_option_does_not_count(host: Host) -> None:
    stage, info = await chosen(host)
    forged = ChoiceResult(selected=("us",), digest=info.choose("eu").digest)
    assert "not bound to what was shown" in str(await stage.refused(forged))
    assert host.ran == []


@pytest.mark.parametrize("ids", [(), ("mars",), ("eu", "us")])
async def test_choice_that_cannot_be_made(host: Host, ids: tuple[str, ...]) -> None:
    _, info = await chosen(host)
    with pytest.raises(ResumeDataError):
        info.choose(*ids)


async def test_several_can_be_chosen(host: Host) -> None:
    gate = choose_argument(tool(host.copy), parameter="zones", options=ZONES, multiple=True)
    stage = Stage(gate, {})
    await stage.run()
    info = stage.question(CallChoiceInfo)
    await stage.answer(info.choose("us", "eu"))
    assert host.ran == [("copy", ("eu", "us"))]


async def test_option_that_the_tool_refuses_is_not_offered(host: Host) -> None:
    options = [*ZONES, Choice(id="mars", label="Mars")]
    gate = choose_argument(tool(host.deploy), parameter="zone", options=options, question="Where?")
    with pytest.raises(ToolError, match="'mars' of 'zone' does not fit"):
        await Stage(gate, {"service": "web"}).run()


@pytest.mark.parametrize("arguments", [{}, {"service": 5}, {"service": "a", "zone": "mars"}])
def test_wrong_arguments_are_refused(host: Host, arguments: dict[str, Json]) -> None:
    with pytest.raises(InvalidArgumentsError):
        host.gated().validate(arguments)


@pytest.mark.parametrize(
    ("parameter", "options", "fault"),
    [
        ("planet", ZONES, "no argument 'planet'"),
        ("zone", (), "at least one"),
        ("zone", (ZONES[0], ZONES[0]), "ids of their own"),
    ],
)
def test_gate_that_makes_no_sense(
    host: Host, parameter: str, options: tuple[Choice, ...], fault: str
) -> None:
    with pytest.raises(AgentConfigError, match=fault):
        choose_argument(tool(host.deploy), parameter=parameter, options=options)


@pytest.mark.parametrize(
    "fields",
    [{"selected": ["a"]}, {"selected": (5,)}, {"declined": 1}, {"reason": 5}],
)
def test_stored_result_is_checked(fields: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        ChoiceResult(**fields)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="decline"):
        ChoiceResult(selected=("a",), declined=True)


ASKED: dict[str, Json] = {
    "question": "Which colour?",
    "options": [{"label": "Blue"}, {"label": "Red", "description": "like fire"}],
}


async def asked(*, multiple: bool = False) -> tuple[Stage, ChoiceInfo]:
    stage = Stage(choose_tool(), {**ASKED, "multiple": multiple})
    assert await stage.run() is None
    return stage, stage.question(ChoiceInfo)


@pytest.mark.parametrize(("ids", "chosen"), [(("2",), "Red"), (("2", "1"), "Blue; Red")])
async def test_model_asks_people_to_choose(ids: tuple[str, ...], chosen: str) -> None:
    stage, info = await asked(multiple=len(ids) > 1)
    assert str(info) == "Which colour?\n1. Blue\n2. Red: like fire"
    result = ToolReturn(f"People chose: {chosen}", ToolOutcome.ANSWERED)
    assert await stage.answer(info.choose(*ids)) == result


@pytest.mark.parametrize(
    ("answer", "outcome", "text"),
    [
        (ChoiceResult(declined=True), ToolOutcome.ANSWERED, "none of the options. No reason"),
        (ChoiceResult(declined=True, reason="ugly"), ToolOutcome.ANSWERED, "Reason: ugly"),
        (Expired(), ToolOutcome.EXPIRED, "not a rejection"),
        (Cancelled(), ToolOutcome.CANCELLED, "not a rejection"),
    ],
)
async def test_people_choose_nothing(answer: object, outcome: ToolOutcome, text: str) -> None:
    stage, info = await asked()
    info.check_answer(answer)
    result = await stage.result(answer)
    assert result.outcome is outcome
    assert text in result.text


@pytest.mark.parametrize("answer", [None, "Blue", ChoiceResult(selected=("Blue",)), ChoiceResult()])
async def test_wrong_choice_is_asked_again(answer: object) -> None:
    stage, info = await asked()
    assert isinstance(await stage.refused(answer), ResumeDataError)
    assert await stage.run(reenter=True) is None
    assert stage.asked.info == info
    assert info.reject("no").declined


async def test_lost_question_of_the_model_runs_nothing() -> None:
    stage, info = await asked()
    assert stage.point is not None
    stage.point = replace(stage.point, state="what?")
    with pytest.raises(ToolError, match="lost"):
        await stage.answer(info.choose("1"))


@pytest.mark.parametrize(
    "change",
    [
        {"options": [{"label": "Blue"}]},
        {"options": [{"label": "Blue"}] * 11},
        {"options": [{"label": " "}, {"label": "Red"}]},
        {"options": [{"label": "Blue", "id": "x"}, {"label": "Red"}]},
        {"question": ""},
        {"multiple": "yes"},
    ],
)
def test_options_must_be_few_and_short(change: dict[str, Json]) -> None:
    with pytest.raises(InvalidArgumentsError):
        choose_tool().validate({**ASKED, **change})


def test_title_counts_options() -> None:
    assert choose_tool("pick").describe(ASKED).title == "Choose from 2 options"
    assert choose_tool("pick").definition.name == "pick"
