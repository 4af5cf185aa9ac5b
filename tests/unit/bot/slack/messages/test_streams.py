"""Texts that grow: what is shown when, and what is never shown."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings, strategies as st

from bot.ports.notifier import Stream
from bot.slack.messages.streams import safe_markdown, settled
from tests.unit.bot.slack.messages.test_notifier import Scene, scene

__all__ = ["scene"]


async def feed(scene: Scene, stream: Stream, *pieces: str) -> None:
    for piece in pieces:
        await stream.append(piece)
        scene.clock.forward(seconds=2)


def pieces_of(scene: Scene) -> list[str]:
    """All that people could read of a text, in order."""
    calls = [call.args for call in scene.sandbox.calls]
    shown = [args.get("markdown_text", args.get("text")) for args in calls]
    return [str(text) for text in shown if text]


async def test_nothing_is_sent_before_a_whole_word(scene: Scene) -> None:
    stream = scene.stream("p1")
    await feed(scene, stream, "Dep", "loy", "ing")
    assert scene.methods() == []
    await stream.finish("Deploying")
    assert scene.texts() == ["Deploying"]


async def test_a_stream_that_breaks_is_finished_by_update(scene: Scene) -> None:
    stream = scene.stream("p1")
    await feed(scene, stream, "one ")
    scene.sandbox.fail("chat.appendStream", error="fatal_error", status=503)
    await feed(scene, stream, "two ", "three ")
    assert scene.methods() == ["chat.startStream", "chat.appendStream"]
    await stream.finish("one two three four")
    stop = scene.sandbox.calls[2]
    assert (stop.method, "markdown_text" in stop.args) == ("chat.stopStream", False)
    assert scene.texts() == ["one two three four"]


async def test_a_text_that_changes_its_beginning_is_finished_by_update(scene: Scene) -> None:
    stream = scene.stream("p1")
    await feed(scene, stream, "one ")
    await stream.finish("two")
    assert scene.texts() == ["two"]


async def test_abandon_ends_the_stream_and_never_raises(scene: Scene) -> None:
    stream = scene.stream("p1")
    await feed(scene, stream, "one ")
    scene.sandbox.fail("chat.stopStream", error="fatal_error", status=503)
    await stream.abandon()
    assert scene.methods()[-1] == "chat.stopStream"


async def test_updates_are_paced_and_failures_forgotten(scene: Scene) -> None:
    scene.sandbox.features.streaming = False
    scene.sandbox.fail("chat.postMessage", error="invalid_blocks")
    stream = scene.stream("p1")
    await stream.append("one ")
    await stream.append("two ")
    assert scene.methods() == ["chat.startStream", "chat.postMessage"]
    scene.clock.forward(seconds=2)
    await stream.append("three ")
    await stream.abandon()
    assert pieces_of(scene)[-1].split() == ["one", "two", "three"]
    await stream.finish("one two three four")
    assert scene.texts() == ["one two three four"]
    assert "conversations.replies" not in scene.methods()  # what was refused is not looked for


SECRETS = [
    "xoxb-1234567890-abcdefghij",
    "password: hunter2secret",
    'password: "correct horse battery"',
    "token = 'one two three'",
    "Bearer abcdefghijklmnop",
    "the card 4111 1111 1111 1111",
    "4111 1111 1111 1111 (my Visa)",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIabc def\nMIIghi\n-----END RSA PRIVATE KEY-----",
]
TELLING = [
    "xoxb-1234567890",
    "hunter2",
    "horse",
    "two",
    "ijklmnop",
    "1111 1111",
    "1111 1111",
    "MII",
]


@pytest.mark.parametrize(("secret", "telling"), [*zip(SECRETS, TELLING, strict=True)])
@pytest.mark.parametrize("is_native", [True, False])
async def test_a_secret_is_never_shown(
    scene: Scene, secret: str, telling: str, is_native: bool
) -> None:
    scene.sandbox.features.streaming = is_native
    stream = scene.stream("p1")
    text = f"I use {secret} for that, as you said. "
    await feed(scene, stream, *text)
    await stream.finish(text)
    assert telling not in "".join(pieces_of(scene))


@given(st.text(alphabet="[]()!<>&\\@#ahtp:/. ", max_size=40))
@settings(deadline=None)
def test_safe_markdown_escapes_character_by_character(text: str) -> None:
    safe = safe_markdown(text)
    assert safe == "".join(safe_markdown(character) for character in text)
    assert not {"<", ">"} & set(safe)
    rest = safe.replace("\\\\", "")
    for control in "[]!":
        assert rest.count(control) == rest.count(f"\\{control}")


@pytest.mark.parametrize(
    "text",
    ["<!channel>", "<@U1>", "<https://evil|bank>", "[bank](https://evil)", "![x](https://e)"],
)
def test_safe_markdown_neither_mentions_nor_links(text: str) -> None:
    safe = safe_markdown(text)
    assert "<" not in safe
    assert "](" not in safe.replace("\\](", "")


@given(st.text(alphabet="ab \n", max_size=30))
def test_settled_keeps_the_last_word_back(text: str) -> None:
    shown = settled(text)
    assert text.startswith(shown)
    assert not text[len(shown) :].strip(" \n") or " " not in text[len(shown) :]


# ---- what a fault or a restart must find again ---------------------------------------------------


async def test_after_a_lost_answer_the_message_is_looked_for_and_not_posted_again(
    scene: Scene,
) -> None:
    scene.sandbox.features.streaming = False
    scene.sandbox.fail("chat.postMessage", drop=True)
    stream = scene.stream("p1")
    await feed(scene, stream, "one ", "two ", "three ")
    await stream.finish("one two three ")
    assert scene.methods().count("chat.postMessage") == 1
    assert len(scene.texts()) == 1
    assert scene.texts()[0].split() == ["one", "two", "three"]


async def test_a_piece_that_would_have_to_wait_comes_with_the_next(scene: Scene) -> None:
    stream, wait = scene.stream("p1"), timedelta(seconds=5)
    channel = scene.thread.channel_id
    scene.notifier._pacer.hold("chat.startStream", channel, wait)
    await feed(scene, stream, "one ", "two ", "three ")  # two seconds each
    assert scene.methods() == []
    await feed(scene, stream, "four ")
    scene.notifier._pacer.hold("chat.appendStream", channel, wait)
    await feed(scene, stream, "five ")
    scene.clock.forward(seconds=5)
    await feed(scene, stream, "six ")
    await stream.finish("one two three four five six ")
    assert pieces_of(scene) == ["one two three four ", "five six "]
    assert "chat.update" not in scene.methods()


@pytest.mark.parametrize(
    ("text", "is_drawn_again"),
    [
        ("use `a[0]` here ", True),
        ("```\nx = a[0] & b\n``` ", True),
        ("use `a` here ", False),
        ("a[0] & b ", False),
    ],
)
async def test_escapes_inside_code_are_drawn_again(
    scene: Scene, text: str, is_drawn_again: bool
) -> None:
    stream = scene.stream("p1")
    await feed(scene, stream, text)
    await stream.finish(text)
    methods = scene.methods()
    assert (methods[-1] == "chat.update") is is_drawn_again
    assert "chat.stopStream" in methods


async def test_a_text_that_cannot_be_tidied_is_left_as_it_is(scene: Scene) -> None:
    scene.sandbox.fail("chat.update", error="edit_window_closed")
    stream = scene.stream("p1")
    await feed(scene, stream, "use `a[0]` here ")
    await stream.finish("use `a[0]` here ")
    assert scene.methods()[-1] == "chat.update"
    assert len(scene.texts()) == 1
