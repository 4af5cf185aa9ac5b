"""Results with files: what a model is shown that is no text (enhanced tools of Eino, part 1.2)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ToolReturnPart,
    UploadedFile,
)

from agents.agent import ToolEvent
from agents.core.calls import MAX_FILE_BYTES, File, ToolReturn, dump_files, load_files
from agents.core.errors import CheckpointDecodeError, ToolError
from agents.core.observers import ToolOutcome
from agents.core.tools import Tool
from agents.gates.approval import approval_gate
from agents.gates.decorator import tool
from agents.models import call, say
from tests.unit.agents.support import Died, Plain, World, die, yes

PICTURE = BinaryContent(data=b"\x89PNG\xff\x00", media_type="image/png")
LINK = ImageUrl(url="https://example.com/a.png")


def plain(content: Any) -> Any:
    """Files as what they hold: pydantic-ai reads them as other classes than they were."""
    if isinstance(content, list | tuple):
        return [plain(item) for item in content]
    if isinstance(content, BinaryContent):
        return (content.data, content.media_type)
    return content.url if isinstance(content, ImageUrl) else content


ALL = ["two views", (PICTURE.data, "image/png"), LINK.url]


def shown(messages: list[ModelMessage]) -> list[Any]:
    """What the model was told by tools, in order."""
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    parts = [part for request in requests for part in request.parts]
    return [part.content for part in parts if isinstance(part, ToolReturnPart)]


def contents(world: World) -> list[Any]:
    """What the last model was told."""
    return shown(list(world.models[-1].inputs[-1]))


async def finish(made: Tool) -> tuple[World, list[Any]]:
    world = World([call(made.definition.name, id="c1"), say("I see.")], [made])
    events = await world.run()
    return world, [event for event in events if isinstance(event, ToolEvent)]


@tool
def both() -> ToolReturn:
    """Take a picture."""
    return ToolReturn("two views", files=(PICTURE, LINK))


@tool
def only_file() -> BinaryContent:
    """Take a picture."""
    return PICTURE


@tool
def mixed() -> list[object]:
    """Take a picture, and say something."""
    return ["a view", PICTURE, {"n": 1}]


@tool
def large() -> ToolReturn:
    """Take a picture."""
    big = BinaryContent(data=b"x" * (MAX_FILE_BYTES // 2 + 1), media_type="image/png")
    return ToolReturn("large", files=(big, big))


@tool
def wrong() -> ToolReturn:
    """Take a picture."""
    return ToolReturn("wrong", files=("no file",))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("made", "content"),
    [
        (both, ["two views", PICTURE, LINK]),
        (only_file, ["1 attached.", PICTURE]),
        (mixed, ['a view\n{"n":1}', PICTURE]),
    ],
)
async def test_the_model_is_shown_the_files(made: Tool, content: list[object]) -> None:
    world, [done] = await finish(made)
    assert contents(world) == [content]
    assert (done.result, list(done.files)) == (content[0], content[1:])


@pytest.mark.parametrize(
    ("made", "words"), [(large, "1,000,002 bytes, and may have 1,000,000"), (wrong, "not a str")]
)
async def test_files_that_cannot_be_kept_are_an_error_of_the_tool(made: Tool, words: str) -> None:
    _, [done] = await finish(made)
    assert (done.outcome, done.files) == (ToolOutcome.FAILED, ())
    assert words in done.result


async def test_they_are_kept_while_a_call_beside_them_waits() -> None:
    gated = approval_gate(Plain("pay"))
    calls = [call("both", id="c1"), call("pay", id="p1")]
    world = World([calls, say("I see.")], [both, gated])
    [waiting] = (await world.run())[-1].contexts  # type: ignore[union-attr]
    await world.resume({waiting.id: yes(waiting)})
    assert plain(contents(world)[0]) == ALL


async def test_behind_a_gate_and_after_a_crash() -> None:
    rest: list[Tool] = [approval_gate(both), Plain("late", die)]
    world = World([[call("both", id="c1")], call("late"), say("I see.")], rest, durability="step")
    [waiting] = (await world.run())[-1].contexts  # type: ignore[union-attr]
    with pytest.raises(Died):
        await world.resume({waiting.id: yes(waiting)})
    world.tools = [approval_gate(both), Plain("late")]
    await world.recover()
    assert plain(contents(world)[0]) == ALL


def test_damaged_files() -> None:
    assert plain(load_files(dump_files((PICTURE, LINK)))) == ALL[1:]
    with pytest.raises(CheckpointDecodeError):
        load_files([{"kind": "binary"}])


@pytest.mark.parametrize(
    "file",
    [
        ImageUrl(url="data:image/png;base64," + "A" * MAX_FILE_BYTES),
        UploadedFile(file_id="f" * (MAX_FILE_BYTES + 1), provider_name="openai"),
    ],
)
def test_what_a_url_holds_counts_as_well(file: File) -> None:
    with pytest.raises(ToolError, match="and may have 1,000,000 together"):
        ToolReturn("", files=(file,))


def test_the_error_says_what_to_do() -> None:
    big = BinaryContent(data=b"x" * (MAX_FILE_BYTES + 1), media_type="image/png")
    with pytest.raises(ToolError, match="make them smaller, or give a URL"):
        ToolReturn("", files=(big,))
