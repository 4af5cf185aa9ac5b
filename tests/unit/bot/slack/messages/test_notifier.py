"""What the notifier sends, in a stand-in for Slack, when all goes well and when it does not."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import DeliveryError, DirectoryError
from bot.layout.action_ids import ActionId, encode
from bot.layout.sentences import title_of
from bot.ports.notifier import Began, Begins, Newest, Offer, Stream
from bot.ports.threads import ToolTask
from bot.records.approval import Approval, ApprovalMessage, Status
from bot.records.messages import Post
from bot.records.thread import Thread
from bot.slack.agent_view import SlackTaskBoard
from bot.slack.cards.card_for import card_for
from bot.slack.connect import Identity, Slack
from bot.slack.destinations import approvers_text
from bot.slack.messages.notifier import SlackNotifier
from bot.slack.messages.streams import BRIEF
from bot.slack.ratelimit import Pacer
from slack_sandbox.server import Sandbox
from tests.contract.builders import an_approval
from tests.support.fakes import FakeClock, SleepingClock
from tests.support.named import at_step, under_lists

TOKEN = "xoxb-notifier-test"
APPROVAL_ID = "apr_" + "0" * 32
REMINDER = ApprovalMessage(key="reminder:5", kind="reminder")


def reading(approval: Approval) -> Newest:
    """The record as it is."""

    async def newest() -> Approval:
        return approval

    return newest


async def nothing(_: str) -> None:
    return None


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


@dataclass
class Long:
    """A stream whose first piece comes when it is plain that more follow."""

    stream: Stream
    clock: FakeClock
    is_begun: bool = False

    async def append(self, text: str) -> None:
        if not self.is_begun:
            self.is_begun = True
            await self.stream.append("")
            self.clock.forward(seconds=BRIEF.total_seconds())
        await self.stream.append(text)

    async def finish(self, text: str) -> str:
        return await self.stream.finish(text)

    async def abandon(self) -> None:
        await self.stream.abandon()


@dataclass
class Scene:
    clock: SleepingClock
    sandbox: Sandbox
    notifier: SlackNotifier
    thread: Thread
    approval: Approval

    def texts(self) -> list[str]:
        return [m["text"] for m in self.sandbox.messages(self.thread.channel_id)][1:]

    def methods(self) -> list[str]:
        return [call.method for call in self.sandbox.calls]

    async def post_card(self, approval: Approval | None = None, *, look_first: bool = False) -> str:
        approval = approval or self.approval
        card, newest = approval.thread_card, reading(approval)
        posted = await self.notifier.post_card(approval, card, look_first=look_first, newest=newest)
        return posted.ts

    async def update_card(self, approval: Approval) -> bool:
        return await self.notifier.update_card(approval.thread_card, newest=reading(approval))

    def stream(self, key: str, began: Began | None = None) -> Stream:
        """A text that is not over at once."""
        return Long(self.brief(key, began), self.clock)

    def brief(self, key: str, began: Began | None = None, begins: Begins | None = None) -> Stream:
        begins, began = begins or yes, began or nothing
        return self.notifier.stream(self.thread, key, begins=begins, began=began)

    async def say(self, text: str, *, look_first: bool = False, ts: str = "") -> str:
        post = Post(
            post_id="p1", thread_id=self.thread.thread_id, text=text, created_ms=1_000, ts=ts
        )
        return await self.notifier.say(self.thread, post, look_first=look_first)


@asynccontextmanager
async def a_scene() -> AsyncIterator[Scene]:
    clock = SleepingClock()
    pace = lambda: clock() / 1_000  # noqa: E731
    async with Sandbox(clock=time.time, pace=pace, bot_token=TOKEN) as sandbox:
        rosa, channel = sandbox.user_id("Rosa"), sandbox.channel_id("ops")
        root = await sandbox.say(rosa, channel, "hello")
        team = sandbox.workspace.team_id
        thread = Thread(thread_id=f"{team}:{channel}:{root}", requester_id=rosa, created_ms=1_000)
        approval = an_approval(
            approval_id=APPROVAL_ID, thread_id=thread.thread_id, requester_id=rosa
        )
        slack = Slack(
            token=TOKEN,
            signing_secret="",
            api_url=sandbox.api_url,
            identity=Identity(team_id=team, bot_user_id="U0COUNTERS", bot_id="B0COUNTERS"),
        )
        assert TOKEN not in repr(slack)
        client: AsyncWebClient = slack.client(timeout_s=5)
        notifier = SlackNotifier(client, clock=clock, pacer=Pacer(clock, clock.sleep))
        yield Scene(clock, sandbox, notifier, thread, approval)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with a_scene() as made:
        yield made


async def test_a_card_is_looked_for_on_all_pages(scene: Scene) -> None:
    scene.sandbox.fail("chat.postMessage", drop=True)
    rosa = scene.thread.requester_id
    for number in range(201):
        await scene.sandbox.say(
            rosa, scene.thread.channel_id, f"{number}", thread_ts=scene.thread.thread_ts
        )
    with pytest.raises(DeliveryError):
        await scene.post_card(look_first=False)
    await scene.post_card(look_first=True)
    assert scene.methods().count("conversations.replies") == 2
    assert scene.methods().count("chat.postMessage") == 1


async def test_a_message_of_a_person_is_never_taken_for_a_card(scene: Scene) -> None:
    message = scene.sandbox.workspace.post(
        scene.sandbox.workspace.channels[scene.thread.channel_id],
        scene.thread.requester_id,
        "mine",
        thread_ts=scene.thread.thread_ts,
        metadata={"event_type": "countersign_card", "event_payload": {"id": APPROVAL_ID}},
    )
    assert await scene.post_card(look_first=True) != message.ts


async def test_when_it_cannot_look_it_does_not_post(scene: Scene) -> None:
    scene.sandbox.fail("conversations.replies", error="fatal_error")
    with pytest.raises(DeliveryError):
        await scene.post_card(look_first=True)
    assert scene.texts() == []


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"error": "is_archived"}, "is_archived"),
        ({"error": "ratelimited", "times": 2}, "ratelimited"),
        ({"error": "fatal_error", "status": 503}, "fatal_error"),
        ({"drop": True}, "connection failed (ServerDisconnectedError)"),
    ],
)
async def test_every_failure_is_a_delivery_error(
    scene: Scene, how: dict[str, object], reason: str
) -> None:
    scene.sandbox.fail("chat.update", **how)  # type: ignore[arg-type]
    ts = await scene.post_card(look_first=False)
    with pytest.raises(DeliveryError) as raised:
        await scene.update_card(scene.approval.with_card_ts(ts))
    assert raised.value.reason == reason
    assert TOKEN not in str(raised.value)


async def test_a_whisper_carries_a_button_for_the_review_of_what_still_waits(scene: Scene) -> None:
    ada, waits = scene.sandbox.user_id("Ada"), scene.approval
    channel_id = scene.thread.channel_id
    await scene.notifier.send_ephemeral(channel_id, ada, "This?", offer=Offer(decide=[waits]))
    over = waits.changed(status=Status.REJECTED)
    await scene.notifier.send_ephemeral(channel_id, ada, "This?", offer=Offer(decide=[over]))
    await scene.notifier.send_ephemeral(channel_id, ada, "This?", offer=Offer(decide=[waits] * 5))
    first, second, third = scene.sandbox.ephemerals(ada)
    shown = [block for block in first["blocks"] if block["type"] == "actions"]
    value = encode(waits.approval_id, waits.digest)
    buttons = [(button["action_id"], button.get("value")) for button in shown[0]["elements"]]
    assert buttons == [(ActionId.DETAILS, value)]
    assert first["blocks"][1]["text"]["text"] == title_of(waits)
    assert [block["type"] for block in second["blocks"]] == ["section"]
    assert "2 more are waiting" in str(third["blocks"][-1])


def escalated(scene: Scene, backups: str) -> Approval:
    ada = scene.sandbox.user_id("Ada")
    names = (backups, "channel", backups)
    return under_lists(scene.approval, approvers=(ada,), backups=names, begun_ms=1_200)


async def test_d28_who_was_asked_later_is_named_once(scene: Scene) -> None:
    ada, ben = scene.sandbox.user_id("Ada"), scene.sandbox.user_id("Ben")
    approval = escalated(scene, ben)
    assert approvers_text(approval.changed(escalation=at_step(approval, steps=0))) == f"<@{ada}>"
    assert approvers_text(approval) == f"<@{ada}>"
    card = card_for(approval, approvers_text=approvers_text(approval))
    assert str(card.blocks).count(f"<@{ben}>") == 1


async def test_a_long_text_goes_on_where_it_was_cut(scene: Scene) -> None:
    text = "\n".join(f"line {number} " + "x" * 90 for number in range(120))
    first = await scene.say(text)
    whole = scene.texts()
    assert len(whole) > 2
    assert await scene.say(text, look_first=True) == first
    assert scene.texts() == whole


async def test_a_text_that_takes_longer_grows_from_its_first_word(scene: Scene) -> None:
    stream = scene.brief("p1")
    await stream.append("All is ")
    scene.clock.forward(seconds=BRIEF.total_seconds())
    await stream.append("well, and ")
    (call,) = scene.sandbox.calls
    assert (call.method, call.args["markdown_text"]) == ("chat.startStream", "All is well, and ")


async def test_a_text_begins_to_be_shown_once_and_on_record_first(scene: Scene) -> None:
    seen: list[list[str]] = []

    async def begins() -> bool:
        seen.append(scene.methods())
        return True

    stream = scene.brief("p1", begins=begins)
    await stream.append("All is ")
    assert seen == []
    for piece in ("well, and ", "we go on, and "):
        scene.clock.forward(seconds=1)
        await stream.append(piece)
    assert seen == [[]]
    assert scene.methods() == ["chat.startStream", "chat.appendStream"]


async def test_of_a_text_that_was_shown_before_no_piece_is_shown(scene: Scene) -> None:
    async def begins() -> bool:
        return False

    stream = scene.brief("p1", begins=begins)
    for piece in ("All is ", "well, and ", "we go on, and "):
        await stream.append(piece)
        scene.clock.forward(seconds=1)
    assert scene.methods() == []


async def test_a_text_whose_post_would_have_to_wait_is_streamed(scene: Scene) -> None:
    texts = [f"Step {number} is done." for number in range(5)]
    for number, text in enumerate(texts):
        stream = scene.brief(f"p{number}")
        await stream.append(text)
        await stream.finish(text)
    assert scene.texts() == texts
    streamed = ["chat.startStream", "chat.stopStream"]
    assert scene.methods() == [*["chat.postMessage"] * 3, *streamed, *streamed]


async def test_a_text_that_was_cut_before_it_grew_leaves_nothing(scene: Scene) -> None:
    stream = scene.brief("p1")
    await stream.append("All is ")
    await stream.abandon()
    assert scene.methods() == []


async def test_without_streaming_post_and_update(scene: Scene) -> None:
    scene.sandbox.features.streaming = False
    for number in range(2):
        stream = scene.stream(f"p{number}")
        await stream.append("All is ")
        await stream.finish("All is well.")
    assert scene.texts() == ["All is well.", "All is well."]
    assert scene.methods() == [
        "chat.startStream",
        "chat.postMessage",
        "chat.update",
        "chat.postMessage",
        "chat.update",
    ]


async def test_a_long_stream_ends_in_several_messages(scene: Scene) -> None:
    text = "\n".join(f"line {number} " + "x" * 90 for number in range(60))
    stream = scene.stream("p1")
    await stream.append(text)
    await stream.finish(text)
    assert "line 59" in scene.texts()[-1]
    assert not [
        m for m in scene.sandbox.messages(scene.thread.channel_id) if "streaming_state" in m
    ]


async def test_a_stream_whose_stop_was_lost_shows_the_text_once(scene: Scene) -> None:
    stream = scene.stream("p1")
    await stream.append("All is ")
    scene.sandbox.fail("chat.stopStream", drop=True)
    await stream.finish("All is well.")
    assert scene.texts() == ["All is well."]


async def test_d10_a_reminder_has_a_link_and_is_removed_at_the_end(scene: Scene) -> None:
    ts = await scene.post_card(look_first=False)
    approval = scene.approval.with_card_ts(ts)
    reminder = await scene.notifier.nudge(approval, REMINDER, look_first=False, may_post=yes)
    assert reminder is not None
    channel, digits = approval.channel_id, ts.replace(".", "")
    assert f"/archives/{channel}/p{digits}" in str(scene.sandbox.messages(channel)[-1]["blocks"])

    await scene.notifier.remove(approval, REMINDER)  # found by its key
    await scene.notifier.remove(approval, reminder)
    assert len(scene.texts()) == 1


async def test_an_escalation_is_not_taken_for_a_card_or_a_reminder(scene: Scene) -> None:
    escalation = ApprovalMessage(key="escalation:5", kind="escalation")
    await scene.post_card()  # has metadata, too, and the same id
    await scene.notifier.nudge(scene.approval, REMINDER, look_first=False, may_post=yes)
    scene.sandbox.fail("chat.postMessage", drop=True)
    with pytest.raises(DeliveryError):
        await scene.notifier.nudge(scene.approval, escalation, look_first=False, may_post=yes)
    sent = await scene.notifier.nudge(scene.approval, escalation, look_first=True, may_post=yes)
    assert sent is not None
    assert [message["ts"] for message in scene.sandbox.messages(scene.thread.channel_id)][
        -1
    ] == sent.ts
    assert len(scene.texts()) == 3


async def test_a_message_that_slack_does_not_let_be_removed_is_an_error(scene: Scene) -> None:
    scene.sandbox.fail("chat.delete", error="fatal_error")
    with pytest.raises(DeliveryError):
        await scene.notifier.remove(scene.approval, REMINDER.changed(ts="1.5"))


async def test_without_a_link_a_reminder_still_says_what_waits(scene: Scene) -> None:
    scene.sandbox.fail("chat.getPermalink", error="message_not_found")
    approval = scene.approval.with_card_ts("1.5")
    await scene.notifier.nudge(approval, REMINDER, look_first=False, may_post=yes)
    message = scene.sandbox.messages(scene.approval.channel_id)[-1]
    assert "Still waiting: " in message["text"]
    assert "'link'" not in str(message["blocks"])


async def test_a_stream_names_the_workspace_of_its_reader(scene: Scene) -> None:
    """On Enterprise Grid; Slack takes no other, and nothing is streamed anywhere for an hour."""
    grid = {"enterprise_id": "E1", "teams": ("T0OTHERONE", scene.thread.team_id)}
    zoe = scene.sandbox.add_person("zoe", team_id="T0OTHERONE", **grid)
    scene.sandbox.join(zoe.id, scene.thread.channel_id)
    asked: list[str] = []

    async def team_of(user_id: str) -> str:
        asked.append(user_id)
        return scene.sandbox.workspace.person(user_id).team_id

    scene.notifier.team_of = team_of
    scene.thread = scene.thread.changed(requester_id=zoe.id)
    await scene.stream("p1").append("Deploying payments ")
    board = SlackTaskBoard(scene.notifier.try_call)
    assert await board.begin(scene.thread, [ToolTask(task_id="c1", title="Search")])
    begun = [call for call in scene.sandbox.calls if call.method == "chat.startStream"]
    assert [call.error for call in begun] == [None, None]
    assert asked == [zoe.id, zoe.id]


async def test_a_reader_who_cannot_be_looked_up_has_the_workspace_of_the_app(scene: Scene) -> None:
    async def team_of(_: str) -> str:
        raise DirectoryError("users.info: fatal_error")

    scene.notifier.team_of = team_of
    await scene.stream("p1").append("Deploying payments ")
    assert scene.methods()[-1] == "chat.startStream"
    assert scene.sandbox.calls[-1].error is None
