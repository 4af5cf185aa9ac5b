"""The message log: what is read of it, and what is remembered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelRequest, UserPromptPart

from agents.core import messages as module
from agents.core.errors import CheckpointDecodeError, CheckpointVersionError
from agents.core.messages import log_text, read_log, user_message


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    module._logs.clear()
    yield
    module._logs.clear()


def turn(text: str) -> str:
    return log_text([user_message(text)])


def texts(messages: list[ModelMessage]) -> list[object]:
    return [
        part.content
        for message in messages
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]


def test_a_log_is_read_in_order_and_remembered_by_its_id() -> None:
    entries = [turn("a"), turn("b")]
    first = read_log(entries, log_id="x")
    assert texts(first) == ["a", "b"]

    later = read_log([*entries, turn("c")], log_id="x")
    assert texts(later) == ["a", "b", "c"]
    assert all(message is other for message, other in zip(first, later, strict=False))
    assert texts(read_log(entries[:1], log_id="x")) == ["a"]
    assert texts(read_log([], log_id="x")) == []
    assert len(module._logs["x"].entries) == 3


def test_what_is_remembered_of_another_log_of_that_name_does_not_count() -> None:
    read_log([turn("a"), turn("b")], log_id="x")

    assert texts(read_log([turn("a"), turn("z")], log_id="x")) == ["a", "z"]
    assert texts(read_log([turn("q")], log_id="x")) == ["q"]


def test_busy_threads_do_not_make_each_others_entries_go() -> None:
    for name in "abcdefgh":
        read_log([turn(f"{name}{number}") for number in range(250)], log_id=name)

    assert sorted(module._logs) == list("abcdefgh")
    read_log([turn("x" * 5_000_000)], log_id="large")
    assert list(module._logs) == ["large"]


def test_files_in_a_log_come_back_as_they_were() -> None:
    file = BinaryContent(data=b"\x00\xffabc", media_type="image/png")
    (message,) = read_log([log_text([ModelRequest(parts=[UserPromptPart(["see", file])])])])

    (part,) = message.parts
    assert isinstance(part, UserPromptPart)
    assert part.content[0] == "see"
    assert isinstance(part.content[1], BinaryContent)
    assert (part.content[1].data, part.content[1].media_type) == (file.data, file.media_type)


@pytest.mark.parametrize(
    ("odd", "error"),
    [
        ('{"schema":1,"messages":[{"kind":"nothing"}]}', CheckpointDecodeError),
        ('{"schema":1,"messages":[],[]}', CheckpointDecodeError),
        ('{"schema":1,"messages":[]', CheckpointDecodeError),
        ('{"schema":2,"messages":[]}', CheckpointVersionError),
        ("{}", CheckpointVersionError),
    ],
)
def test_one_odd_entry_among_others_is_a_typed_error(odd: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_log([turn("a"), odd, turn("b")], log_id="x")
    assert texts(read_log([turn("a"), turn("b")], log_id="x")) == ["a", "b"]


def test_an_entry_that_somebody_else_wrote_is_read_all_the_same() -> None:
    spaced = turn("b").replace('{"schema":1,', '{ "schema" : 1, ')

    assert texts(read_log([turn("a"), spaced])) == ["a", "b"]
