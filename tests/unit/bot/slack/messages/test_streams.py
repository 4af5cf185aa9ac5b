"""Texts that grow: what is shown when, and what is never shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from bot.errors import DeliveryError
from bot.slack.messages.streams import (
    GrowingMessage,
    NativeStream,
    Streaming,
    safe_markdown,
    settled,
)
from tests.support.fakes import FakeClock

TARGET = {"channel": "C1", "thread_ts": "1.1"}


@dataclass
class Slack:
    """Notes calls; fails those that a test names."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    failing: dict[str, str] = field(default_factory=dict)
    finished: list[tuple[str, str]] = field(default_factory=list)
    looked: list[bool] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    waits: dict[str, timedelta] = field(default_factory=dict)

    async def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        self.calls.append((method, arguments))
        if method in self.waits:
            raise DeliveryError(method, "x", retry_after=self.waits[method], took_no_effect=True)
        if method in self.failing:
            reason = self.failing[method]
            unsure = reason in {"fatal_error", "no answer in time"}
            raise DeliveryError(method, reason, took_no_effect=not unsure)
        return {"ok": True, "ts": "9.1"}

    async def post(self, text: str) -> str:
        await self.call("post", text=text)
        return "9.2"

    async def update(self, ts: str, text: str) -> None:
        await self.call("update", ts=ts, text=text)

    async def finish_with(self, ts: str, text: str, *, look_first: bool) -> str:
        self.finished.append((ts, text))
        self.looked.append(look_first)
        return ts or "9.3"

    async def began(self, ts: str) -> None:
        self.begun.append(ts)

    def methods(self) -> list[str]:
        return [method for method, _ in self.calls]

    def shown(self) -> str:
        """All that people could read before the finish."""
        return "".join(
            str(arguments.get("markdown_text", arguments.get("text", "")))
            for _, arguments in self.calls
        )


@dataclass
class Scene:
    slack: Slack = field(default_factory=Slack)
    clock: FakeClock = field(default_factory=FakeClock)
    streaming: Streaming = field(default_factory=lambda: Streaming(is_native=True))

    def growing(self) -> GrowingMessage:
        return GrowingMessage(
            post=self.slack.post,
            update=self.slack.update,
            finish_with=self.slack.finish_with,
            began=self.slack.began,
            clock=self.clock,
        )

    def native(self) -> NativeStream:
        return NativeStream(
            call=self.slack.call,
            target=dict(TARGET),
            metadata={"event_type": "x"},
            fallback=self.growing(),
            streaming=self.streaming,
            began=self.slack.began,
            clock=self.clock,
        )

    async def feed(self, stream: NativeStream | GrowingMessage, *pieces: str) -> None:
        for piece in pieces:
            await stream.append(piece)
            self.clock.forward(seconds=2)


async def test_nothing_is_sent_before_a_whole_word() -> None:
    scene = Scene()
    stream = scene.native()
    await scene.feed(stream, "Dep", "loy", "ing")
    assert scene.slack.calls == []
    await stream.finish("Deploying")
    assert scene.slack.finished == [("", "Deploying")]


async def test_a_stream_that_breaks_is_finished_by_update() -> None:
    scene = Scene()
    stream = scene.native()
    await scene.feed(stream, "one ")
    scene.slack.failing["chat.appendStream"] = "fatal_error"
    await scene.feed(stream, "two ", "three ")
    assert scene.slack.methods() == ["chat.startStream", "chat.appendStream"]
    assert await stream.finish("one two three four") == "9.1"
    assert scene.slack.methods()[-1] == "chat.stopStream"
    assert "markdown_text" not in scene.slack.calls[-1][1]
    assert scene.slack.finished == [("9.1", "one two three four")]


async def test_a_text_that_changes_its_beginning_is_finished_by_update() -> None:
    scene = Scene()
    stream = scene.native()
    await scene.feed(stream, "one ")
    await stream.finish("two")
    assert scene.slack.finished == [("9.1", "two")]


async def test_abandon_ends_the_stream_and_never_raises() -> None:
    scene = Scene()
    stream = scene.native()
    await stream.abandon()
    assert scene.slack.calls == []
    await scene.feed(stream, "one ")
    scene.slack.failing["chat.stopStream"] = "fatal_error"
    await stream.abandon()
    assert scene.slack.methods()[-1] == "chat.stopStream"
    await scene.growing().abandon()


async def test_updates_are_paced_and_failures_forgotten() -> None:
    scene = Scene()
    stream = scene.growing()
    scene.slack.failing["post"] = "ratelimited"
    await stream.append("one ")
    await stream.append("two ")
    assert scene.slack.methods() == ["post"]
    scene.slack.failing.clear()
    await scene.feed(stream)
    scene.clock.forward(seconds=2)
    await stream.append("three ")
    assert scene.slack.calls[-1] == ("post", {"text": "one two three "})


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
async def test_a_secret_is_never_shown(secret: str, telling: str, is_native: bool) -> None:
    scene = Scene()
    stream = scene.native() if is_native else scene.growing()
    text = f"I use {secret} for that, as you said. "
    await scene.feed(stream, *text)
    assert telling not in scene.slack.shown()
    if is_native:
        await stream.finish(text)
        assert telling not in scene.slack.shown()


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


async def test_after_a_lost_answer_the_message_is_looked_for_and_not_posted_again() -> None:
    scene = Scene()
    stream = scene.growing()
    scene.slack.failing["post"] = "no answer in time"
    await scene.feed(stream, "one ", "two ", "three ")
    assert scene.slack.methods() == ["post"]
    await stream.finish("one two three ")
    assert scene.slack.looked == [True]
    native = scene.native()
    scene.slack.failing["chat.startStream"] = "no answer in time"
    await scene.feed(native, "one ")
    await native.finish("one two")
    assert scene.slack.looked == [True, True]


async def test_a_refused_post_is_simply_tried_again() -> None:
    scene = Scene()
    stream = scene.growing()
    scene.slack.failing["post"] = "ratelimited"
    await scene.feed(stream, "one ")
    await stream.finish("one")
    assert scene.slack.looked == [False]


async def test_a_piece_that_would_have_to_wait_comes_with_the_next() -> None:
    scene = Scene()
    stream = scene.native()
    wait = timedelta(seconds=5)
    scene.slack.waits = {"chat.startStream": wait, "chat.appendStream": wait}
    await scene.feed(stream, "one ", "two ", "three ")  # two seconds each
    assert scene.slack.methods() == ["chat.startStream"]
    scene.slack.waits = {"chat.appendStream": wait}
    await scene.feed(stream, "four ", "five ")
    scene.slack.waits = {}
    scene.clock.forward(seconds=5)
    await scene.feed(stream, "six ")
    assert await stream.finish("one two three four five six ") == "9.1"
    assert scene.slack.finished == []
    pieces = [text["markdown_text"] for _, text in scene.slack.calls if "markdown_text" in text]
    assert pieces[-1] == "five six "


@pytest.mark.parametrize(
    ("text", "is_drawn_again"),
    [
        ("use `a[0]` here ", True),
        ("```\nx = a[0] & b\n``` ", True),
        ("use `a` here ", False),
        ("a[0] & b ", False),
    ],
)
async def test_escapes_inside_code_are_drawn_again(text: str, is_drawn_again: bool) -> None:
    scene = Scene()
    stream = scene.native()
    await scene.feed(stream, text)
    await stream.finish(text)
    methods = scene.slack.methods()
    assert (methods[-1] == "update") is is_drawn_again
    assert "chat.stopStream" in methods


async def test_a_text_that_cannot_be_tidied_is_left_as_it_is() -> None:
    scene = Scene()
    scene.slack.failing["update"] = "edit_window_closed"
    stream = scene.native()
    await scene.feed(stream, "use `a[0]` here ")
    assert await stream.finish("use `a[0]` here ") == "9.1"
    assert scene.slack.finished == []
