"""Doubles written by hand: a clock, people, a notifier that notes, a queue of work."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

from slack_sdk.errors import SlackApiError

from bot.errors import DeliveryError, DirectoryError
from bot.ports.notifier import NO_OFFER, Began, Begins, Items, Newest, Offer
from bot.ports.people import Person
from bot.records.approval import CARD, Approval, ApprovalMessage
from bot.records.messages import Post
from bot.records.people import Grant
from bot.records.starts import ThreadStart
from bot.records.switch import Freeze, FreezeAlert
from bot.records.thread import Thread

START_MS = 1_800_000_000_000


@dataclass
class FakeClock:
    """Stands still until it is moved, or told to follow the real time."""

    now_ms: int = START_MS
    _is_following: bool = False
    _ahead_ms: int = 0

    def __call__(self) -> int:
        real_ms = time.time_ns() // 1_000_000
        return real_ms + self._ahead_ms if self._is_following else self.now_ms

    def follow(self) -> None:
        """Go with the real time from here on."""
        self._is_following = True

    def forward(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0) -> None:
        step_ms = round((seconds + 60 * minutes + 3600 * hours) * 1000)
        self.now_ms += step_ms
        if self._is_following:
            self._ahead_ms += step_ms


@dataclass
class SleepingClock(FakeClock):
    """Goes on when somebody sleeps."""

    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.forward(seconds=seconds)


def slack_error(
    error: str, *, status: int = 200, headers: Mapping[str, object] | None = None
) -> SlackApiError:
    """A refusal, as Slack's own client raises it."""
    answer = {"error": error}
    response = SimpleNamespace(status_code=status, headers=headers or {}, get=answer.get)
    return SlackApiError("failed", response)  # type: ignore[no-untyped-call] # not typed there


@dataclass
class FakeDirectory:
    """Knows the people that a test puts in."""

    people: dict[str, Person] = field(default_factory=dict)
    channels: dict[str, frozenset[str]] = field(default_factory=dict)
    groups: dict[str, frozenset[str]] = field(default_factory=dict)
    public: set[str] = field(default_factory=set)
    is_down: bool = False
    outside: frozenset[str] = frozenset()
    """Channels that the bot is not in."""

    def add(self, user_id: str, **changes: Any) -> None:
        known = {"user_id": user_id, "team_id": "T1", "name": user_id.lower(), **changes}
        self.people[user_id] = Person(**known)

    def hear(self, _: Mapping[str, Any]) -> bool:
        return False

    async def person(self, user_id: str) -> Person:
        self._check()
        if user_id not in self.people:
            raise DirectoryError(f"users.info: no {user_id}")
        return self.people[user_id]

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        self._check()
        return self.channels.get(channel_id, frozenset())

    async def is_public(self, channel_id: str) -> bool:
        self._check()
        return channel_id in self.public

    async def is_in(self, channel_id: str) -> bool:
        self._check()
        return channel_id not in self.outside

    async def group_members(self, group_id: str) -> frozenset[str]:
        self._check()
        return self.groups.get(group_id, frozenset())

    async def channel_name(self, channel_id: str) -> str:
        self._check()
        return channel_id.lower()

    async def group_name(self, group_id: str) -> str:
        self._check()
        return group_id.lower()

    async def admins(self) -> tuple[Person, ...]:
        self._check()
        return ()

    def _check(self) -> None:
        if self.is_down:
            raise DirectoryError("down")


@dataclass
class FakeNotices:
    """Notes what people would see that is no card.

    Attributes:
        grants: Standing grants as they are shown, by id.
        shown: Ids of grants, in the order in which they were drawn.
        alerts: Whom an alert went to, and of which approval.
        seen: Of which approval it was shown who has seen its alert, who, and on which message.
        admins: Which admin was asked about which approval, by whom, and with which words.
        sent: Who got a direct message, by its key, and the message.
        askers: Who asked an agent about a message: channel, thread, person, and the question's id.
        summaries: Ends of requests as a summary has them, by thread; each showing adds one.
        freezes: Alerts about freezes, in the order in which they were drawn.
        starts: Threads that no person started, in the order of their first messages.
        holds: Holds of triggers, as they were shown.
        reminded: Who was reminded of which freeze, on which day.
        groups: First messages of groups: thread, title, and whether an earlier one was looked for.
        closed: Channels that take no message.
        is_down: Whether Slack takes nothing.
        fault: Its word for that.
    """

    grants: dict[str, Grant] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    alerts: list[tuple[str, str]] = field(default_factory=list)
    seen: list[tuple[str, tuple[str, ...], str, str]] = field(default_factory=list)
    admins: list[tuple[str, str, str, str]] = field(default_factory=list)
    summaries: dict[str, list[list[str]]] = field(default_factory=dict)
    askers: list[tuple[str, str, str, str]] = field(default_factory=list)
    sent: dict[str, tuple[str, str]] = field(default_factory=dict)
    freezes: list[FreezeAlert] = field(default_factory=list)
    starts: list[ThreadStart] = field(default_factory=list)
    holds: list[ThreadStart] = field(default_factory=list)
    reminded: list[tuple[str, str, int]] = field(default_factory=list)
    groups: list[tuple[str, str, bool]] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    is_down: bool = False
    fault: str = "fatal_error"

    async def show_grant(
        self,
        grant: Grant,
        approval: Approval,
        *,
        now_ms: int,
    ) -> str:
        self._post()
        self.grants[grant.grant_id] = grant
        self.shown.append(grant.grant_id)
        return grant.card_ts or f"1900000000.{len(self.shown):06d}"

    async def alert(self, approval: Approval, *, to: str) -> None:
        self._post()
        self.alerts.append((to, approval.approval_id))

    async def show_freeze(self, alert: FreezeAlert, *, count: int) -> str:
        self._post(alert.channel)
        self.freezes.append(alert)
        return alert.ts or f"1900000002.{len(self.freezes):06d}"

    async def show_start(self, start: ThreadStart) -> str:
        self._post(start.channel_id)
        shown = [known.id for known in self.starts]
        is_looked_for = start.fence > 1 or start.is_restored
        if not is_looked_for or start.id not in shown:
            self.starts.append(start)
            shown.append(start.id)
        return f"1900000003.{shown.index(start.id) + 1:06d}"

    async def show_hold(self, hold: ThreadStart) -> str:
        self._post()
        self.holds.append(hold)
        return hold.message_ts or f"1900000004.{len(self.holds):06d}"

    async def remind_of_freeze(self, freeze: Freeze, *, day: int) -> None:
        self._post()
        self.reminded.append((freeze.by, freeze.id, day))

    async def ask_admin(self, approval: Approval, *, to: str, by: str, text: str) -> None:
        self._post()
        self.admins.append((to, approval.approval_id, by, text))

    async def tell(self, text: str, *, to: str, key: str) -> None:
        self._post()
        self.sent[key] = (to, text)

    async def show_group(self, approval: Approval, title: str, *, looks: bool) -> str:
        self._post()
        self.groups.append((approval.thread_id, title, looks))
        return f"1900000003.{len(self.groups):06d}"

    async def show_asker(self, *, channel_id: str, thread_ts: str, by: str, key: str) -> None:
        self._post()
        self.askers.append((channel_id, thread_ts, by, key))

    async def summarise(self, thread: Thread, over: Sequence[Approval], *, ts: str) -> str:
        self._post()
        shown = self.summaries.setdefault(thread.thread_id, [])
        shown.append([str(approval.status) for approval in over])
        return ts or f"1900000001.{len(self.summaries):06d}"

    async def show_seen(
        self, approval: Approval, seen_by: Sequence[str], *, channel_id: str, ts: str
    ) -> None:
        if self.is_down:
            raise DeliveryError("chat.update", "fatal_error")
        self.seen.append((approval.approval_id, tuple(seen_by), channel_id, ts))

    def _post(self, channel: str = "") -> None:
        """Fail where Slack takes no message."""
        if self.is_down or channel in self.closed:
            fault = "channel_not_found" if channel in self.closed else self.fault
            raise DeliveryError("chat.postMessage", fault)


@dataclass
class FakeRootSigns:
    """Notes the signs at the roots of threads.

    Attributes:
        shown: The signs, by thread.
        done: What was done, in order: `+waits` puts it on, `-waits` takes it off.
        fault: What the next call fails with.
        meanwhile: Runs once, as soon as a sign was taken off.
    """

    shown: dict[str, list[str]] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    fault: DeliveryError | None = None
    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def put(
        self,
        approval: Approval,
        sign: str,
        *,
        was: str = "",
        look_first: bool = False,
        again: bool = False,
        waits: bool = False,
    ) -> None:
        self._fail()
        if waits:
            return
        signs = self.shown.setdefault(approval.thread_id, [])
        if was in signs and was != "waits":
            signs.remove(was)
        self.done.append(f"+{sign}{' again' if again else ''}{' looked' if look_first else ''}")
        if sign not in signs:
            signs.append(sign)

    async def remove(self, approval: Approval, sign: str, *, keep: str = "") -> None:
        self._fail()
        signs = self.shown.setdefault(approval.thread_id, [])
        if sign in signs and sign != keep:
            signs.remove(sign)
            self.done.append(f"-{sign}")
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()

    def _fail(self) -> None:
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault


@dataclass
class FakeStream:
    """A growing text that notes its pieces."""

    notifier: FakeNotifier
    key: str
    begins: Begins
    began: Began
    pieces: list[str] = field(default_factory=list)
    is_abandoned: bool = False
    ts: str = ""
    _may_grow: bool | None = None

    async def append(self, text: str) -> None:
        if self.notifier.is_brief:
            return
        if self._may_grow is None:
            self._may_grow = await self.begins()
        if not self._may_grow:
            return
        if not self.pieces:
            self.ts = self.notifier.appears(self.key)
            await self.began(self.ts)
        self.pieces.append(text)

    async def finish(self, text: str) -> str:
        self.notifier.check("say")
        self.notifier.texts[self.key] = text
        return self.ts or self.notifier.appears(self.key)

    async def abandon(self) -> None:
        self.is_abandoned = True


_NUDGES = {"reminder": "remind", "escalation": "escalate"}


@dataclass
class FakeNotifier:
    """Notes what people would see.

    Attributes:
        cards: The cards as they stand, by approval id.
        posts: Approval ids in the order in which cards were posted.
        texts: The agent's texts, by post id.
        messages: The `ts` of each message of a text, by post id: there is to be one.
        is_brief: Whether no text takes so long that it begins to grow.
        whispers: (user id, text).
        whispered_to: (channel, thread) of each of them.
        whispered_blocks: Blocks of each of them.
        offered: Approval ids that each of them can be withdrawn with.
        choices: Approval ids whose buttons each of them has.
        responses: (address, text).
        is_refused: Whether Slack refuses the app.
        reminders: Approval ids.
        escalations: Approval ids.
        questions: Questions asked back, by their names: `ts`, who asks, the text, who is mentioned.
        closed_questions: Those that stopped asking: `ts`, the text, and why.
        failing: Names of the methods that fail now: card, update, say, remind, escalate, whisper.
        faults: What those fail with; `fatal_error` unless it is named here.
        lost: Like failing, but the message appears: only its answer is lost.
    """

    cards: dict[str, Approval] = field(default_factory=dict)
    posts: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    messages: dict[str, list[str]] = field(default_factory=dict)
    is_brief: bool = False
    whispers: list[tuple[str, str]] = field(default_factory=list)
    whispered_to: list[tuple[str, str]] = field(default_factory=list)
    whispered_blocks: list[list[Mapping[str, object]]] = field(default_factory=list)
    offered: list[list[str]] = field(default_factory=list)
    choices: list[list[str]] = field(default_factory=list)
    reminders: list[str] = field(default_factory=list)
    escalations: list[str] = field(default_factory=list)
    streams: list[FakeStream] = field(default_factory=list)
    questions: dict[str, tuple[str, str, str, tuple[str, ...]]] = field(default_factory=dict)
    closed_questions: list[tuple[str, str, str]] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    faults: dict[str, DeliveryError] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    looked: list[str] = field(default_factory=list)
    responses: list[tuple[str, str]] = field(default_factory=list)
    is_refused: bool = False
    copies: dict[tuple[str, str], tuple[ApprovalMessage, Approval]] = field(default_factory=dict)
    asking: dict[tuple[str, str], ApprovalMessage] = field(default_factory=dict)
    closed: list[ApprovalMessage] = field(default_factory=list)
    sent: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    lost_places: list[tuple[str, str]] = field(default_factory=list)
    _count: int = 0

    @property
    def nudges(self) -> dict[str, tuple[str, str]]:
        """Kind and approval id of the messages beside cards, by `ts`."""
        asking = self.asking.items()
        return {message.ts: (message.kind, approval_id) for (approval_id, _), message in asking}

    def next_ts(self) -> str:
        self._count += 1
        return f"1800000000.{self._count:06d}"

    def check(self, what: str) -> None:
        if what in self.failing:
            raise self.faults.get(what) or DeliveryError(what, "fatal_error")

    async def thread_link(self, place: Approval | ThreadStart) -> str:
        return f"https://slack.test/{place.channel_id}/{place.thread_ts}"

    async def post_card(
        self, approval: Approval, message: ApprovalMessage, *, look_first: bool, newest: Newest
    ) -> ApprovalMessage:
        if message.key != CARD:
            return await self._post_copy(approval, message, look_first=look_first, newest=newest)
        self.check("card")
        drawn = await newest()
        if look_first and approval.approval_id in self.cards:
            ts = self.cards[approval.approval_id].thread_card.ts or "found"
            self.cards[approval.approval_id] = drawn.with_card_ts(ts)
            return message.changed(ts=ts)
        self.posts.append(approval.approval_id)
        self.cards[approval.approval_id] = drawn
        self.deleted.discard(approval.approval_id)
        if "card" in self.lost:
            raise DeliveryError("card", "no answer in time")
        return message.changed(ts=self.next_ts())

    async def update_card(self, message: ApprovalMessage, *, newest: Newest) -> bool:
        if message.key != CARD:
            return await self._update_copy(message, newest=newest)
        self.check("update")
        drawn = await newest()
        if drawn.approval_id in self.deleted:
            return False
        self.cards[drawn.approval_id] = drawn
        return True

    async def ask_back(
        self, approval: Approval, *, key: str, by: str, text: str, mentions: Sequence[str]
    ) -> str:
        if key in self.questions:
            return self.questions[key][0]
        self.check("ask back")
        ts = self.next_ts()
        self.questions[key] = (ts, by, text, tuple(mentions))
        if "ask back" in self.lost:
            raise DeliveryError("ask back", "no answer in time")
        return ts

    async def close_question(
        self,
        approval: Approval,
        *,
        ts: str,
        by: str,
        text: str,
        is_answered: bool,
    ) -> None:
        self.check("close question")
        self.closed_questions.append((ts, text, "answered" if is_answered else "over"))

    async def _post_copy(
        self, approval: Approval, copy: ApprovalMessage, *, look_first: bool, newest: Newest
    ) -> ApprovalMessage:
        self.check("copy")
        key = (approval.approval_id, copy.key)
        if look_first and key in self.copies:
            await newest()
            return self.copies[key][0]
        if copy.kind in self.lost:
            raise DeliveryError("copy", "no answer in time")
        posted = copy.changed(channel=copy.channel or f"D{copy.user[1:]}", ts=self.next_ts())
        self.copies[key] = posted, await newest()
        self.sent.append((copy.kind, (copy.user,) if copy.user else copy.mentions, copy.user))
        return posted

    async def _update_copy(self, copy: ApprovalMessage, *, newest: Newest) -> bool:
        self.check("update copy")
        drawn = await newest()
        key = (drawn.approval_id, copy.key)
        if key not in self.copies:
            return False
        self.copies[key] = copy, drawn
        return True

    async def nudge(
        self,
        approval: Approval,
        message: ApprovalMessage,
        *,
        look_first: bool,
        may_post: Callable[[], Awaitable[bool]],
    ) -> ApprovalMessage | None:
        what = _NUDGES.get(message.kind, "nudge")
        self.check("wait to nudge")
        self.check(f"wait to {what}")
        key = (approval.approval_id, message.key)
        if look_first and key in self.asking:
            return self.asking[key]
        if not await may_post():
            return None
        self.check("nudge")
        self.check(what)
        channel = f"D{message.user[1:]}" if message.user else approval.channel_id
        posted = message.changed(channel=channel, ts=self.next_ts())
        self.asking[key] = posted
        self.sent.append((message.kind, message.mentions, message.user))
        if message.kind in _NUDGES:
            posts = self.reminders if message.kind == "reminder" else self.escalations
            posts.append(approval.approval_id)
        if {"nudge", what} & self.lost:
            raise DeliveryError("nudge", "no answer in time")
        return posted

    async def remove(self, approval: Approval, message: ApprovalMessage) -> None:
        self.check("remove")
        self.asking.pop((approval.approval_id, message.key), None)

    async def lose(self, place: Approval | Thread, reason: str) -> None:
        self.check("lose")
        self.lost_places.append((place.requester_id, reason))

    async def close(self, approval: Approval, message: ApprovalMessage) -> None:
        self.check("close")
        removed = self.asking.pop((approval.approval_id, message.key), None)
        if removed is not None:
            self.closed.append(removed)

    async def say(self, thread: Thread, post: Post, *, look_first: bool) -> str:
        self.check("say")
        if look_first:
            self.looked.append(post.post_id)
        posted_ts = post.ts or (self.messages.get(post.post_id, [""])[0] if look_first else "")
        self.texts[post.post_id] = post.text
        ts = posted_ts or self.appears(post.post_id)
        if "say" in self.lost:
            raise DeliveryError("say", "no answer in time")
        return ts

    def appears(self, key: str) -> str:
        """Another message of a text stands in its thread."""
        self.messages.setdefault(key, []).append(self.next_ts())
        return self.messages[key][-1]

    def stream(self, thread: Thread, key: str, *, begins: Begins, began: Began) -> FakeStream:
        stream = FakeStream(self, key, begins, began)
        self.streams.append(stream)
        return stream

    async def end_stream(self, thread: Thread, ts: str, record_id: str) -> None:
        self.ended.append(ts)

    async def respond(
        self,
        address: str,
        text: str,
        *,
        thread_ts: str = "",
        instead: Sequence[Mapping[str, object]] | None = None,
    ) -> None:
        self.check("respond")
        self.responses.append((address, text))

    async def send_ephemeral(
        self,
        channel_id: str,
        user_id: str,
        text: str,
        *,
        thread_ts: str = "",
        offer: Offer = NO_OFFER,
        blocks: Sequence[Mapping[str, object]] = (),
    ) -> None:
        self.check("send_ephemeral")
        self.whispers.append((user_id, text))
        self.whispered_to.append((channel_id, thread_ts))
        self.whispered_blocks.append([*blocks])
        self.offered.append([approval.approval_id for approval in offer.withdraw])
        self.choices.append([approval.approval_id for approval in offer.decide])


@dataclass
class FakeBatchCards:
    """Cards of several, as people would see them.

    Attributes:
        notifier: Has the messages, and what fails: `batch` for a post, `batch update`.
        cards: What was drawn last, by the id of who keeps the card.
        posts: Ids of card owners, in the order of posts.
        updates: The same of updates.
        deleted: Keepers whose card is gone.
        shown: Whose cards are there, by key and `ts`.
        copies: What direct messages show, by key and keeper.
        copied: People who were sent one.
        refused: Whether no approval takes a line.
    """

    notifier: FakeNotifier
    cards: dict[str, list[Approval]] = field(default_factory=dict)
    posts: list[str] = field(default_factory=list)
    updates: list[str] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    shown: dict[tuple[str, str], str] = field(default_factory=dict)
    copies: dict[tuple[str, str], list[Approval]] = field(default_factory=dict)
    copied: list[str] = field(default_factory=list)
    refused: bool = False
    meanwhile: Callable[[], Awaitable[None]] | None = None

    def takes(self, _: Approval) -> bool:
        return not self.refused

    async def title_of(self, items: Sequence[Approval]) -> str:
        return f"{len(items)} together"

    async def post_batch(
        self, keeper: Approval, message: ApprovalMessage, *, look_first: bool, items: Items
    ) -> ApprovalMessage:
        if message.user:
            return await self._post_copy(keeper, message, look_first=look_first, items=items)
        self.notifier.check("batch")
        name = keeper.approval_id
        if look_first and name in self.cards and name not in self.deleted:
            self.cards[name] = [*await items()]
            return message.changed(ts=f"found-{name}")
        self.posts.append(name)
        self.cards[name] = [*await items()]
        self.deleted.discard(name)
        self.shown[message.key, ts := self.notifier.next_ts()] = name
        if self.meanwhile is not None:
            await self.meanwhile()
        if "batch" in self.notifier.lost:
            raise DeliveryError("chat.postMessage", "no answer in time")
        return message.changed(ts=ts)

    async def update_batch(self, message: ApprovalMessage, *, items: Items) -> bool:
        if message.user:
            self.notifier.check("copy update")
            listed = [*await items()]
            self.copies[message.key, self.shown[message.key, message.ts]] = listed
            return True
        self.notifier.check("batch update")
        name = self.shown.get((message.key, message.ts)) or message.ts.removeprefix("found-")
        if name in self.deleted:
            return False
        self.updates.append(name)
        self.cards[name] = [*await items()]
        return True

    async def _post_copy(
        self, keeper: Approval, copy: ApprovalMessage, *, look_first: bool, items: Items
    ) -> ApprovalMessage:
        self.notifier.check("copy")
        name = copy.key, keeper.approval_id
        if not (look_first and name in self.copies):
            self.copied.append(copy.user)
        self.copies[name] = [*await items()]
        self.shown[copy.key, ts := self.notifier.next_ts()] = keeper.approval_id
        return copy.changed(channel=f"D{copy.user[1:]}", ts=ts)


@dataclass
class Queue:
    """Work that was started, run when the test says so."""

    waiting: list[Coroutine[Any, Any, None]] = field(default_factory=list)
    made: ClassVar[list[Queue]] = []

    def __post_init__(self) -> None:
        self.made.append(self)

    @classmethod
    def drop_all(cls) -> None:
        """Forget what a test left; called after each of them."""
        while cls.made:
            cls.made.pop().drop()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.waiting.append(work)

    async def run(self) -> None:
        """Run all of it, and what it starts in turn."""
        while self.waiting:
            await self.waiting.pop(0)

    def drop(self) -> None:
        """Forget it, as a crash does."""
        while self.waiting:
            self.waiting.pop(0).close()
