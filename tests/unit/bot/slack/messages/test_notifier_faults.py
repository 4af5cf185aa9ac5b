"""What the notifier sends when Slack is slow, limits us, or has lost an answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import DeliveryError
from bot.records.approval import Approval, Decision, Status
from bot.records.messages import Post
from bot.slack.calls import MOST_PATIENCE, retry_after, took_no_effect
from bot.slack.messages.notifier import SlackNotifier
from bot.slack.ratelimit import Pacer
from tests.support.fakes import FakeClock, SleepingClock, slack_error
from tests.unit.bot.slack.messages.test_notifier import (
    REMINDER,
    Scene,
    reading,
    scene,
    yes,
)

__all__ = ["scene"]


@dataclass
class Gate:
    """A time that stands still until the test lets sleepers go."""

    now_ms: int = 0
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)

    async def sleep(self, seconds: float) -> None:
        self.waiting.set()
        await self.opened.wait()
        self.now_ms += round(seconds * 1_000)


def decided(approval: Approval, status: Status) -> Approval:
    decision = Decision(status=status, by="U1", at_ms=2_000)
    return approval.changed(
        status=status, decision=decision, shown_revision=approval.shown_revision + 1
    )


async def updates(scene: Scene) -> list[str]:
    return [str(call.args) for call in scene.sandbox.calls if call.method == "chat.update"]


async def test_only_the_newest_state_is_sent(scene: Scene) -> None:
    ts = await scene.post_card()
    gate, record = Gate(), scene.approval.with_card_ts(ts)
    scene.notifier._pacer = Pacer(lambda: gate.now_ms, gate.sleep)
    scene.notifier._pacer.hold("chat.update", "", timedelta(seconds=5))

    async def newest() -> Approval:
        return record

    drawing = asyncio.create_task(scene.notifier.update_card(record.thread_card, newest=newest))
    await gate.waiting.wait()
    assert await updates(scene) == []
    for status in (Status.APPROVED, Status.CANCELLED):  # while it waits for its slot
        record = decided(record, status)
    gate.opened.set()
    assert await drawing
    (sent,) = await updates(scene)
    assert "Cancelled" in sent
    assert "Approve" not in sent.replace("Approved", "")


async def test_a_card_is_posted_as_it_is_when_its_turn_comes(scene: Scene) -> None:
    newest = reading(decided(scene.approval, Status.REJECTED))
    card = scene.approval.thread_card
    posted = await scene.notifier.post_card(scene.approval, card, look_first=False, newest=newest)
    assert posted == card.changed(ts=scene.sandbox.messages(card.channel)[-1]["ts"])
    assert "Rejected" in scene.texts()[0]


def a_text(scene: Scene, post_id: str, text: str = "Hello.", ts: str = "") -> Post:
    thread_id = scene.thread.thread_id
    return Post(post_id=post_id, thread_id=thread_id, text=text, created_ms=1, ts=ts)


async def test_retry_after_holds_the_method_for_everybody(scene: Scene) -> None:
    ts = await scene.post_card()
    scene.sandbox.fail("chat.update", error="ratelimited", retry_after=30)
    card = scene.approval.with_card_ts(ts)
    for _ in range(3):
        with pytest.raises(DeliveryError) as raised:
            await scene.update_card(card)
        assert raised.value.took_no_effect
        assert raised.value.retry_after is not None
        assert timedelta(seconds=29) < raised.value.retry_after <= timedelta(seconds=30)
    assert len(await updates(scene)) == 1
    await scene.notifier.say(scene.thread, a_text(scene, "p1"), look_first=False)


async def test_a_short_retry_after_is_waited_for(scene: Scene) -> None:
    ts = await scene.post_card()
    scene.sandbox.fail("chat.update", error="ratelimited", retry_after=2)
    assert await scene.update_card(scene.approval.with_card_ts(ts))
    assert len(await updates(scene)) == 2
    assert scene.clock.slept[-1] >= 2


async def test_a_reminder_is_counted_when_its_turn_has_come(scene: Scene) -> None:
    asked: list[int] = []

    async def go() -> bool:
        asked.append(1)
        return False

    await scene.notifier.nudge(scene.approval, REMINDER, look_first=False, may_post=go)
    assert scene.texts() == []
    scene.notifier._pacer.hold("chat.postMessage", scene.thread.channel_id, timedelta(minutes=1))
    with pytest.raises(DeliveryError):
        await scene.notifier.nudge(scene.approval, REMINDER, look_first=False, may_post=go)
    assert len(asked) == 1


async def test_a_reminder_that_slack_limits_is_not_sent_twice(scene: Scene) -> None:
    scene.sandbox.fail("chat.postMessage", error="ratelimited")
    with pytest.raises(DeliveryError):
        await scene.notifier.nudge(scene.approval, REMINDER, look_first=False, may_post=yes)
    assert scene.methods().count("chat.postMessage") == 1


async def test_a_found_card_that_is_gone_is_posted(scene: Scene) -> None:
    await scene.post_card()
    scene.sandbox.fail("chat.update", error="message_not_found")
    await scene.post_card(look_first=True)
    assert scene.methods().count("chat.postMessage") == 2


# ---- streams -------------------------------------------------------------------------------------


async def growing(scene: Scene, text: str = "All is ") -> str:
    """A stream that its process has left in the middle."""
    timestamps: list[str] = []

    async def began(ts: str) -> None:
        timestamps.append(ts)

    await scene.stream("p1", began).append(text)
    return timestamps[0]


async def still_growing(scene: Scene) -> list[str]:
    messages = scene.sandbox.messages(scene.thread.channel_id)
    return [str(message["ts"]) for message in messages if message.get("streaming_state")]


async def test_another_process_finishes_the_very_message(scene: Scene) -> None:
    ts = await growing(scene)
    post = a_text(scene, "p1", "All is well.", ts=ts)
    assert await scene.notifier.say(scene.thread, post, look_first=True) == ts
    assert scene.texts() == ["All is well."]
    assert await still_growing(scene) == []


async def test_a_stream_that_nobody_noted_is_found_by_its_words(scene: Scene) -> None:
    ts = await growing(scene, "All is *very* ")
    post = a_text(scene, "p1", "All is *very* well.")
    assert await scene.notifier.say(scene.thread, post, look_first=True) == ts
    assert len(scene.texts()) == 1
    assert await still_growing(scene) == []


async def test_the_stream_of_another_text_is_left_alone(scene: Scene) -> None:
    ts = await growing(scene, "Something else ")
    post = a_text(scene, "p2", "All is well.")
    assert await scene.notifier.say(scene.thread, post, look_first=True) != ts
    assert await still_growing(scene) == [ts]


async def test_a_start_whose_answer_was_lost_leaves_one_text(scene: Scene) -> None:
    stream = scene.stream("p1")
    scene.sandbox.fail("chat.startStream", drop=True)
    for piece in ("All ", "is "):
        await stream.append(piece)
        scene.clock.forward(seconds=2)
    await stream.finish("All is well.")
    assert scene.texts() == ["All is well."]
    assert scene.methods().count("chat.startStream") == 1
    assert await still_growing(scene) == []


async def test_a_text_whose_message_was_deleted_is_posted_again(scene: Scene) -> None:
    ts = await scene.say("half")
    await scene.sandbox.remove(scene.thread.channel_id, ts)
    assert await scene.say("half and half", ts=ts) != ts
    assert scene.texts()[-1] == "half and half"


async def test_a_text_that_cannot_be_replaced_is_an_error(scene: Scene) -> None:
    ts = await scene.say("half")
    scene.sandbox.fail("chat.update", error="fatal_error", status=503)
    with pytest.raises(DeliveryError):
        await scene.say("half and half", ts=ts)
    assert scene.texts() == ["half"]


async def test_a_finished_stream_is_found_by_its_mark(scene: Scene) -> None:
    stream = scene.stream("p1")
    await stream.append("All is ")
    ts = await stream.finish("All is well.")
    post = a_text(scene, "p1", "All is well.")
    assert await scene.notifier.say(scene.thread, post, look_first=True) == ts


async def test_a_cut_stream_that_was_ended_is_still_known(scene: Scene) -> None:
    """It is found because it grows; it must be found once more when the update then fails."""
    ts = await growing(scene, "All is ")
    scene.sandbox.fail("chat.update", error="streaming_state_conflict")
    scene.sandbox.fail("chat.update", error="fatal_error", status=503)
    post = a_text(scene, "p1", "All is well.")
    with pytest.raises(DeliveryError):
        await scene.notifier.say(scene.thread, post, look_first=True)
    assert await still_growing(scene) == []
    assert await scene.notifier.say(scene.thread, post, look_first=True) == ts
    assert scene.texts() == ["All is well."]


async def test_a_stream_that_was_let_go_is_known(scene: Scene) -> None:
    stream = scene.stream("p1")
    await stream.append("All is ")
    await stream.abandon()
    post = a_text(scene, "p1", "All is well.")
    await scene.notifier.say(scene.thread, post, look_first=True)
    assert scene.texts() == ["All is well."]


async def test_code_in_a_stream_is_drawn_without_escapes(scene: Scene) -> None:
    stream = scene.stream("p1")
    await stream.append("use `a[0]` ")
    assert "\\[" in scene.texts()[0]
    await stream.finish("use `a[0]` here")
    assert scene.texts() == ["use `a[0]` here"]
    assert "\\\\[" not in str(scene.sandbox.messages(scene.thread.channel_id)[1]["blocks"])


async def test_ending_a_stream_never_raises(scene: Scene) -> None:
    ts = await growing(scene)
    await scene.notifier.end_stream(scene.thread, ts, "p1")
    await scene.notifier.end_stream(scene.thread, ts, "p1")
    assert await still_growing(scene) == []


# ---- what an error means -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "30"}, 30),
        ({"retry-after": ["7"]}, 7),
        ({}, 1),
        ({"Retry-After": "soon"}, 60),
        ({"Retry-After": []}, 60),
        ({"Retry-After": "0"}, 1),
        ({"Retry-After": "7200"}, 7_200),
        ({"Retry-After": "999999"}, MOST_PATIENCE.total_seconds()),
        ({"Retry-After": "inf"}, MOST_PATIENCE.total_seconds()),
        ({"Retry-After": "-5"}, 60),
        ({"Retry-After": "nan"}, 60),
    ],
)
def test_how_long_slack_asks_us_to_wait(headers: dict[str, object], seconds: float) -> None:
    error = slack_error("ratelimited", status=429, headers=headers)
    assert retry_after(error) == timedelta(seconds=seconds)
    assert retry_after(slack_error("is_archived", headers=headers)) is None
    assert retry_after(TimeoutError()) is None


@pytest.mark.parametrize(
    ("error", "is_certain"),
    [
        (slack_error("is_archived"), True),
        (slack_error("ratelimited", status=429), True),
        (slack_error("fatal_error"), False),
        (slack_error("is_archived", status=503), False),
        (TimeoutError(), False),
        (aiohttp.ServerDisconnectedError(), False),
        (ConnectionResetError(), False),
    ],
)
def test_when_it_is_certain_that_nothing_was_done(error: Exception, is_certain: bool) -> None:
    assert took_no_effect(error) is is_certain


async def test_nobody_listens_so_nothing_was_done() -> None:
    nobody = AsyncWebClient(base_url="http://127.0.0.1:9/api/", timeout=2, retry_handlers=[])
    notifier = SlackNotifier(nobody, clock=FakeClock(), pacer=Pacer(lambda: 0, asyncio.sleep))
    with pytest.raises(DeliveryError) as raised:
        await notifier.send_ephemeral("C1", "U1", "not shown")
    assert raised.value.took_no_effect


async def test_a_click_is_answered_without_a_token(scene: Scene) -> None:
    sandbox, channel = scene.sandbox, scene.thread.channel_id
    ts = await scene.post_card(look_first=False)
    sandbox.revoke_token()
    ada = sandbox.user_id("Ada")
    address = sandbox.payload_of_click(ada, channel, ts, "countersign:approve")["response_url"]
    await scene.notifier.respond(address, "It counts.", thread_ts=scene.thread.thread_ts)
    (message,) = sandbox.ephemerals(ada)
    assert message["text"] == "It counts."
    assert message["thread_ts"] == scene.thread.thread_ts
    for _ in range(4):
        await scene.notifier.respond(address, "Again.")
    with pytest.raises(DeliveryError, match="response_url"):
        await scene.notifier.respond(address, "One too many.")


async def test_an_answer_without_a_token_waits_for_its_turn(scene: Scene) -> None:
    answers = [
        web.Response(status=429, headers={"Retry-After": "2"}),
        web.Response(status=200),
        web.Response(status=429, headers={"Retry-After": "60"}),
    ]
    got: list[object] = []

    async def answer(request: web.Request) -> web.Response:
        got.append(await request.json())
        return answers.pop(0)

    app = web.Application()
    app.add_routes([web.post("/actions", answer)])
    async with TestServer(app) as server:
        client = AsyncWebClient(base_url=str(server.make_url("/api/")), retry_handlers=[])
        clock = SleepingClock()
        notifier = SlackNotifier(client, clock=clock, pacer=Pacer(clock, clock.sleep))
        address = str(server.make_url("/actions"))
        await notifier.respond(address, "It counts.")
        assert (len(got), clock.slept) == (2, [2])
        with pytest.raises(DeliveryError, match="has to wait its turn"):
            await notifier.respond(address, "Too busy.")


async def test_nothing_is_sent_to_an_address_of_somebody_else(scene: Scene) -> None:
    with pytest.raises(DeliveryError, match="no address of Slack"):
        await scene.notifier.respond("https://hooks.evil.example/actions/1", "x")


@pytest.mark.parametrize("reason", ["missing_scope", "not_allowed_token_type"])
@pytest.mark.parametrize(
    "method",
    [
        "agents.sessions.setStatus",
        "assistant.threads.setStatus",
        "assistant.threads.setSuggestedPrompts",
        "chat.startStream",
        "reactions.add",
        "reactions.remove",
    ],
)
async def test_a_method_that_the_token_may_not_call_is_no_refusal_of_the_app(
    scene: Scene, method: str, reason: str
) -> None:
    scene.sandbox.fail(method, error=reason)
    with pytest.raises(DeliveryError, match=reason):
        await scene.notifier.try_call(method, scene.thread.channel_id, {})
    assert not scene.notifier.is_refused
