"""What is written can be read: values that would not come back are refused before they are kept."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from dataclasses import InitVar, dataclass, field, replace
from datetime import UTC, datetime
from enum import Flag
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, computed_field, field_serializer
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolReturnPart,
)

from agents import Agent, AgentEvent, AgentInput, ToolReturn, approval_gate, make_message
from agents.agent import function_agent
from agents.conversation import Conversation, Inbox
from agents.core.codec import Json, TypeRegistry, from_text, read_back, to_text, types
from agents.core.component.context import publish
from agents.core.errors import (
    AgentConfigError,
    CheckpointDecodeError,
    ToolError,
    UnstorableValueError,
)
from agents.middlewares import Middleware
from agents.models import call, say
from agents.runner import Runner
from agents.runs.document import Claim
from agents.workflows import SequentialAgent
from tests.unit.agents.support import Asker, Plain, World, brief, collect, contexts

registry = TypeRegistry()


@registry.register("alias/1")
class Alias(BaseModel):
    user_id: int = Field(alias="userId")
    at: datetime = Field(validation_alias="when", serialization_alias="then")


@registry.register("strict/1")
class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    at: datetime
    parts: tuple[int, ...] = ()
    share: float = 0.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def year(self) -> int:
        return self.at.year


@registry.register("nested/1")
class Nested(BaseModel):
    aliases: list[Alias]


@registry.register("flags/1")
class Flags(Flag):
    A = 1
    B = 2


@registry.register("box/1")
@dataclass(frozen=True)
class Box:
    held: object
    cache: object = field(default=None, init=False, compare=False)


NOW = datetime(2026, 1, 2, tzinfo=UTC)
ALIAS = Alias.model_validate({"userId": 7, "when": NOW})


@pytest.mark.parametrize(
    "value",
    [
        ALIAS,
        Nested(aliases=[ALIAS]),
        Strict(at=NOW, parts=(1, 2)),
        Strict(at=NOW, share=math.inf),
        Flags.A | Flags.B,
        Box(Box(Box([ALIAS]))),
        Box({"n": 10**4299, "m": -(10**4300) + 1}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_come_back_as_they_were(value: object) -> None:
    text = to_text({"v": registry.encode(value)})

    assert registry.decode(from_text(text)["v"]) == value


def test_not_a_number_comes_back_in_a_value() -> None:
    box = registry.decode(registry.encode(Box([math.nan])))

    assert isinstance(box, Box)
    assert isinstance(box.held, list)
    assert math.isnan(box.held[0])


def test_what_was_written_by_its_alias_is_read() -> None:
    data: Json = {"$type": "alias/1", "value": {"userId": 7, "when": "2026-01-02T00:00:00Z"}}

    assert registry.decode(data) == ALIAS


class Lossy(BaseModel):
    left_out: int = Field(default=0, exclude=True)
    either: datetime | str = ""
    secret: SecretStr | None = None
    rounded: float = 0

    @field_serializer("rounded")
    def _round(self, value: float) -> int:
        return round(value)


@dataclass
class Made:
    number: int
    twice: int = field(init=False, default=0)


@dataclass
class Tidy:
    words: list[str]

    def __post_init__(self) -> None:
        self.words = sorted(self.words)


@dataclass
class Checked:
    number: int

    def __post_init__(self) -> None:
        assert self.number >= 0


class Opaque:
    def __init__(self, text: str) -> None:
        self.text = text


def changed(value: object, **attributes: object) -> object:
    for name, attribute in attributes.items():
        object.__setattr__(value, name, attribute)
    return value


for _name, _kind in (("lossy", Lossy), ("made", Made), ("tidy", Tidy), ("checked", Checked)):
    registry.register(f"{_name}/1")(_kind)
registry.add("opaque/1", Opaque, lambda value: value.text, lambda text: Opaque(text.strip()))


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (Lossy(left_out=1), "come back changed"),
        (Lossy(either=NOW), "come back changed"),
        (Lossy(secret=SecretStr("x")), "come back changed"),
        (Lossy(rounded=1.5), "come back changed"),
        (changed(Made(1), twice=5), "come back changed"),
        (changed(Tidy([]), words=["b", "a"]), "come back changed"),
        (changed(Checked(1), number=-1), "could not be read again"),
        (Opaque(" x "), "come back changed"),
        (Opaque(5), "could not be read again"),  # type: ignore[arg-type]
        (changed(Opaque(""), text=object()), "a value of type 'builtins.object'"),
        (Alias.model_construct(user_id="no number"), "writing it failed|could not be read again"),
        (10**4300, "more than 4300 digits"),
        (-(10**4300), "more than 4300 digits"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("around", [lambda v: v, lambda v: {"k": [v]}, Box], ids=["", "in", "box"])
def test_values_that_would_not_come_back_are_refused(
    value: object, fault: str, around: Callable[[object], object]
) -> None:
    with pytest.raises(UnstorableValueError, match=fault):
        registry.encode(around(value))


def test_a_value_that_cannot_be_written_is_refused() -> None:
    value = Opaque("")
    del value.text

    with pytest.raises(UnstorableValueError, match="writing it failed"):
        registry.encode([value])


def test_a_value_that_is_nested_too_deeply_to_be_read_is_a_typed_error() -> None:
    deep: Json = []
    for _ in range(5000):
        deep = [deep]

    with pytest.raises(CheckpointDecodeError, match="nested too deeply"):
        registry.decode(deep)


class Hidden(BaseModel):
    secret: str = Field(exclude=True)


@dataclass
class Seeded:
    number: int
    seed: InitVar[int]


@dataclass
class Usable:
    number: int
    seed: InitVar[int] = 0


@pytest.mark.parametrize(("kind", "name"), [(Hidden, "secret"), (Seeded, "seed")])
def test_a_type_that_could_never_be_read_is_refused_when_it_is_registered(
    kind: type, name: str
) -> None:
    with pytest.raises(AgentConfigError, match=f"could not be read.*'{name}'"):
        registry.register("never/1")(kind)


def test_a_type_that_is_made_with_more_than_its_fields_is_fine_if_it_need_not_be() -> None:
    registry.register("usable/1")(Usable)

    assert registry.decode(registry.encode(Usable(1, seed=2))) == Usable(1)


def test_json_that_is_none_is_a_typed_error() -> None:
    for data in ({"v": {1, 2}}, {"v": math.nan}, {"v": 10**5000}):
        with pytest.raises(UnstorableValueError, match="JSON data"):
            to_text(data)


def test_a_text_that_cannot_be_read_is_not_stored() -> None:
    good = Claim(answers={"a": 1}).to_text()

    assert read_back(good, Claim.from_text) == Claim.from_text(good)
    with pytest.raises(UnstorableValueError, match="could not be read again"):
        read_back("{}", Claim.from_text)


# --- in runs ---


@types.register("test.roundtrip/1")
@dataclass
class Twice:
    number: int
    twice: int = field(init=False, default=0)


BAD: Any = changed(Twice(1), twice=2)
"""Registered, and yet it would not come back."""


@pytest.mark.parametrize("answer", [BAD, 10**5000], ids=["changed", "huge"])
async def test_an_answer_that_would_not_come_back_leaves_all_answerable(answer: object) -> None:
    world = World([])
    runner = world.runner(Asker("a"))
    (context,) = contexts(await collect(runner.query("hi", checkpoint_id="1"))).values()
    before = await runner.checkpoint_store.load("1")  # type: ignore[union-attr]

    with pytest.raises(UnstorableValueError):
        await collect(runner.resume("1", {context.id: answer}))

    assert await runner.checkpoint_store.load("1") == before  # type: ignore[union-attr]
    events = await collect(runner.resume("1", {context.id: "fine"}))
    assert [event.text for event in events if hasattr(event, "text")] == ["a got fine"]


async def test_a_conversation_keeps_no_answer_and_no_message_that_would_not_come_back() -> None:
    runner = Runner(Asker("a"), checkpoint_store=World([]).store, message_log=World([]).log)  # type: ignore[arg-type]
    talk = Conversation(runner, "t")
    await talk.push("hi")
    (context,) = contexts([event async for event in talk.events(follow=False)]).values()

    with pytest.raises(UnstorableValueError):
        await talk.resume({context.id: BAD})
    with pytest.raises(UnstorableValueError):
        await talk.push("and", None)  # type: ignore[arg-type]

    assert await talk.inbox() == Inbox(turn=1, taken=("hi",))
    await talk.resume({context.id: "fine"})
    events = [event async for event in talk.events(follow=False)]
    assert [event.text for event in events if hasattr(event, "text")] == ["a got fine"]


UNWRITABLE = ModelResponse(parts=[TextPart("x", provider_details={"v": object()})])
ODD = SystemPromptPart(content=5)  # type: ignore[arg-type]
"""A part of a message that is written without an error, and cannot be read."""


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
async def test_a_run_does_not_begin_with_messages_that_could_not_be_read_again() -> None:
    world = World([])
    runner = world.runner(Asker("a"))

    for part in (ODD, ToolReturnPart("t", "x", "c1", metadata=object())):
        with pytest.raises(UnstorableValueError, match="could not be read again"):
            await collect(runner.run([ModelRequest(parts=[part])], checkpoint_id="1"))

    assert await world.store.load("1") is None  # type: ignore[attr-defined]


def saying(message: ModelMessage) -> Agent:
    """An agent that leaves a message in the turn."""

    async def said(_: AgentInput) -> AsyncIterator[AgentEvent]:
        publish(message)
        yield make_message("said")

    return function_agent("A", said)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
async def test_a_turn_that_could_not_be_read_again_does_not_enter_the_log() -> None:
    world = World([])
    fine = ModelResponse(parts=[TextPart("x")])
    unreadable: list[ModelMessage] = [ModelRequest(parts=[ODD]), UNWRITABLE]

    for number, message in enumerate(unreadable):
        runner = world.runner(saying(message))
        with pytest.raises(UnstorableValueError):
            await collect(runner.query("hi", checkpoint_id=str(number), log=("t", 1)))

    assert await world.log.load("t", before_turn=2) == ()
    assert brief(await collect(world.runner(saying(fine)).query("hi", log=("t", 1)))) == [
        "says said"
    ]
    assert len(await world.log.load("t", before_turn=2)) == 1


async def test_nobody_is_asked_after_words_that_could_not_be_read_again() -> None:
    world = World([])
    both = SequentialAgent("S", [saying(UNWRITABLE), Asker("a")])
    runner = world.runner(both)

    with pytest.raises(UnstorableValueError):
        await collect(runner.query("hi", checkpoint_id="1"))

    assert await runner.pending("1") == ()


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("part", [*UNWRITABLE.parts, ThinkingPart("x", id=5)])  # type: ignore[arg-type]
async def test_what_a_hook_makes_of_an_answer_must_be_readable(
    durability: str, part: ModelResponsePart
) -> None:
    class Odd(Middleware):
        async def after_model(self, response: ModelResponse) -> ModelResponse:
            return replace(response, parts=[part, *response.parts])

    options: dict[str, object] = {"middlewares": [Odd()]}
    tools = [approval_gate(Plain("t"))]
    world = World([call("t", id="c1")], tools, durability=durability, options=options)

    with pytest.raises(UnstorableValueError):
        await world.run()

    assert await world.pending() == ()


async def test_a_result_that_could_not_be_read_again_is_not_kept() -> None:
    picture: Any = BinaryContent(data=b"x", media_type="image/png")
    picture.vendor_metadata = {"v": object()}
    world = World(
        [call("t", id="c1"), say("done")],
        [Plain("t", lambda _: ToolReturn("", files=(picture,)))],
        durability="step",
    )

    with pytest.raises(UnstorableValueError, match="File"):
        await world.run()


def test_the_text_of_a_result_is_a_text() -> None:
    with pytest.raises(ToolError, match="not a int"):
        ToolReturn(5)  # type: ignore[arg-type]
