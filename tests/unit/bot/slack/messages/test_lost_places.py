"""Channels that were archived, or that the bot was removed from: who asked there reads it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from agents.models import call, say
from bot.errors import DeliveryError
from bot.records.approval import ApprovalMessage, Status
from bot.slack.messages.notices import SlackNotices
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ROSA, THREAD_ID, Office
from tests.unit.bot.slack.messages.test_notifier import Scene, scene, yes

__all__ = ["scene"]

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"


def gone(reason: str = "is_archived") -> DeliveryError:
    return DeliveryError("chat.postMessage", reason, took_no_effect=True)


def direct(scene: Scene) -> list[str]:
    rosa = scene.sandbox.user_id("Rosa")
    channel = scene.sandbox.workspace.direct_message(rosa)
    return [message["text"] for message in scene.sandbox.messages(channel.id)]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("is_archived", "<#{channel}> was archived"),
        ("is_inactive", "<#{channel}> was archived"),
        ("thread_not_found", "was deleted"),
        ("not_in_channel", "/invite @countersign"),
        ("channel_not_found", "/invite @countersign"),
    ],
)
async def test_a_direct_message_says_so_once(scene: Scene, reason: str, words: str) -> None:
    for place in (scene.thread, scene.approval, scene.thread):
        await scene.notifier.lose(place, reason)
    (text,) = direct(scene)
    assert words.format(channel=scene.thread.channel_id) in text


async def test_in_a_direct_message_there_is_nobody_to_tell_elsewhere(scene: Scene) -> None:
    before = len(scene.methods())
    await scene.notifier.lose(scene.thread.changed(thread_id="T1:D1:1.1"), "is_archived")
    assert len(scene.methods()) == before


@pytest.mark.parametrize("reason", ["is_archived", "thread_not_found", "not_in_channel"])
async def test_a_text_that_has_no_place_any_more_ends_its_turn_kindly(
    storage: SqliteStores, reason: str
) -> None:
    office = Office(storage, [say("Hello.")])
    office.notifier.failing, office.notifier.faults = {"say"}, {"say": gone(reason)}
    await office.hear("<@UBOT> hello")
    assert office.notifier.lost_places == [(ROSA, reason)]
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.turn_open, thread.due_ms) == (False, None)


async def test_a_card_that_has_no_place_expires_and_who_asked_knows(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, say("Nobody could answer.")])
    office.notifier.failing, office.notifier.faults = {"card"}, {"card": gone()}
    await office.hear(ASK)
    assert office.notifier.lost_places == [(ROSA, "is_archived")]
    approval = await office.the_approval()
    office.notifier.failing = set()
    office.clock.forward(hours=9)
    await office.attendance.attend(approval.approval_id)
    await office.queue.run()
    assert (await storage.approvals.get(approval.approval_id)).status is Status.EXPIRED
    assert office.ran == []


async def test_that_it_cannot_be_told_either_stops_nothing(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, say("Hello.")])
    office.notifier.failing = {"card", "say", "lose"}
    office.notifier.faults = {"card": gone(), "say": gone()}
    await office.hear(ASK)
    await office.decide(await office.the_approval())
    assert [name for name, _ in office.ran] == ["pay"]
    assert (await storage.threads.get(THREAD_ID)).turn_open is False


async def streamed(scene: Scene) -> str:
    stream = scene.stream("p1")
    await stream.append("Once upon a time there was ")
    return await stream.finish("Once upon a time there was a thread.")


POSTS: dict[str, Callable[[Scene], Awaitable[object]]] = {
    "card": lambda scene: scene.post_card(),
    "text": lambda scene: scene.say("Hello."),
    "question": lambda scene: scene.notifier.ask_back(
        scene.approval, key="q1", by="UADA", text="why?", mentions=[]
    ),
    "reminder": lambda scene: scene.notifier.nudge(
        scene.approval, ApprovalMessage(key="r1", kind="reminder"), look_first=False, may_post=yes
    ),
    "summary": lambda scene: SlackNotices(scene.notifier).summarise(
        scene.thread, [scene.approval], ts=""
    ),
    "stream": streamed,
}


def delete_root(scene: Scene) -> None:
    workspace = scene.sandbox.workspace
    workspace.remove(workspace.message(scene.thread.channel_id, scene.thread.thread_ts))


@pytest.mark.parametrize("kind", POSTS)
async def test_nothing_stands_in_the_channel_when_its_thread_was_deleted(
    scene: Scene, kind: str
) -> None:
    channel = scene.thread.channel_id
    delete_root(scene)
    with pytest.raises(DeliveryError, match="thread_not_found") as raised:
        await POSTS[kind](scene)
    assert raised.value.is_lost_place
    assert scene.sandbox.messages(channel) == []


async def test_a_stream_whose_thread_was_deleted_is_taken_out_of_the_channel(scene: Scene) -> None:
    """Slack may begin a stream in the channel; only its end says where it is."""
    channel = scene.thread.channel_id
    stream = scene.stream("p1")
    await stream.append("Once upon a time there was ")
    (message,) = scene.sandbox.workspace.replies(channel, scene.thread.thread_ts)
    message.thread_ts = None
    delete_root(scene)
    with pytest.raises(DeliveryError, match="thread_not_found"):
        await stream.finish("Once upon a time there was a thread.")
    assert scene.sandbox.messages(channel) == []


async def test_a_message_that_cannot_be_deleted_is_logged(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    delete_root(scene)
    scene.sandbox.fail("chat.delete", error="fatal_error", times=1)
    with pytest.raises(DeliveryError, match="thread_not_found"):
        await scene.post_card()
    assert "could not delete a message that Slack posted outside of its thread" in caplog.text
