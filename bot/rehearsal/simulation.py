"""One bot between a simulated Slack and a database, in one process, on a clock that a case moves.

Acts of people reach the bot as Slack's payloads, through Bolt and the listeners. The bot's calls of
Slack's API go to the simulated workspace, which checks cards as strictly as the sandbox.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from slack_bolt.request.async_request import AsyncBoltRequest

from bot.audit.report import MOST
from bot.layout.action_ids import ActionId, encode
from bot.observability.events import BotEvent, EntriesWritten
from bot.observability.instrument import metered
from bot.policy.current import LoadedPolicy
from bot.policy.eligibility import PeopleSnapshot
from bot.policy.tally import Ballot
from bot.records.approval import Approval, Status
from bot.records.approval_queries import newest_of
from bot.records.thread import Thread
from bot.rehearsal.fake_slack import MadeUpSlack, settle_in
from bot.rehearsal.world import World
from bot.slack.bot import Countersign
from bot.slack.calls import BATCH_EVENT
from bot.slack.connect import Identity, Slack
from bot.slack.process import Process
from bot.slack.ratelimit import Pacer
from bot.stores import Stores
from slack_sandbox.delivery.http import AppReply, Parcel
from slack_sandbox.server import Sandbox
from slack_sandbox.workspace.payloads import actor_payload
from slack_sandbox.workspace.records import Payload, SlackMessage
from storage.audit import AuditEntry

_TOKEN = "xoxb-rehearsal"  # noqa: S105 - of a made-up workspace
_PATIENCE = timedelta(minutes=5)
"""Timeout that only a deadlock exceeds, even on a slow machine."""
_FOREVER_S = 100 * 365 * 86_400
_FAILS = frozenset({"users.info", "users.list", "usergroups.list", "conversations.members"})
"""The methods that look up people and groups."""


@dataclass(slots=True)
class StageClock:
    """A clock in milliseconds since the epoch, which the case moves."""

    now_ms: int

    def __call__(self) -> int:
        """Return the time."""
        return self.now_ms

    def seconds(self) -> float:
        """Return the time in seconds."""
        return self.now_ms / 1_000


@dataclass(slots=True)
class BoltWire:
    """Sends each payload to Bolt, like a Socket Mode connection.

    Attributes:
        bot: Returns the current bot.
    """

    bot: Callable[[], Countersign]

    @property
    def is_open(self) -> bool:
        """See `Transport.is_open`."""
        return True

    async def send(self, parcel: Parcel) -> AppReply:
        """See `Transport.send`."""
        bot = self.bot()
        # A copy as JSON data, because Bolt modifies the payload.
        body = json.loads(json.dumps(parcel.payload))
        with bot.answering():
            response = await bot.bolt.async_dispatch(
                AsyncBoltRequest(mode="socket_mode", body=body)
            )
        text = response.body
        answer = json.loads(text) if text.startswith("{") else text
        return AppReply(ok=response.status == 200, body=answer or None)


@dataclass(slots=True, kw_only=True)
class Simulation:
    """One bot in a simulated workspace.

    Attributes:
        storage: An open database.
        world: The people, groups, channels and tools.
        make: Creates a bot for a new process name.
        policy: The current policy; None if the settings apply.
        freeze_file: The freeze file of the process, in a directory of its own; None for no file.
        lookups_fail: Whether Slack refuses look-ups of people.
        writers: User ids of the writers, who are looked up even then. They cannot decide.
        noted: Ids of the audit entries, in the order of their creation.
        posted: All messages of the bot as they were posted, including later changed and deleted
            ones.
    """

    storage: Stores
    world: World
    clock: StageClock
    make: Callable[[Simulation, str], Countersign]
    sandbox: Sandbox = field(init=False)
    bot: Countersign = field(init=False)
    policy: LoadedPolicy | None = None
    freeze_file: Path | None = None
    lookups_fail: bool = False
    writers: set[str] = field(default_factory=set)
    noted: dict[str, None] = field(default_factory=dict)
    posted: list[SlackMessage] = field(default_factory=list)
    _sleepers: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)
    _beats: dict[asyncio.Task[Any], tuple[int, asyncio.Future[None]]] = field(default_factory=dict)
    _beating: set[asyncio.Task[Any]] = field(default_factory=set)
    _slept: asyncio.Event = field(default_factory=asyncio.Event)
    _processes: int = 0
    _granted: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.storage = metered(self.storage, self._note, self.clock)
        self.sandbox = Sandbox(clock=self.clock.seconds, bot_token=_TOKEN)
        self.sandbox.use(BoltWire(lambda: self.bot))
        settle_in(self.sandbox.workspace, self.world)
        self.restart()

    def _note(self, event: BotEvent) -> None:
        if isinstance(event, EntriesWritten):
            for entry in event.entries:
                self.noted.setdefault(entry.entry_id)

    @property
    def slack(self) -> Slack:
        """The bot's access to the simulated Slack."""
        workspace = self.sandbox.workspace
        return MadeUpSlack(
            token=_TOKEN,
            signing_secret="",
            api_url="https://slack.invalid/api/",
            identity=Identity(
                team_id=workspace.team_id,
                bot_user_id=workspace.bot_user,
                bot_id=workspace.bot_id,
                team=workspace.team_name,
            ),
            stage=self,
        )

    def process(self, owner: str) -> Process:
        """Return the dependencies of a process with the simulated time.

        Args:
            owner: Name of the process in leases.
        """
        return Process(
            owner=owner,
            clock=self.clock,
            pacer=Pacer(limits={}),
            lookup_age=timedelta(0),  # changes by the case take effect at once
            sleep=self.sleep,
            beat=self.beat,
            patience=_PATIENCE,
            policy=self.policy,
            freeze_file=self.freeze_file,
        )

    def set_freeze_file(self, state: str) -> None:
        """Create or remove the freeze file of the process, or make its place unreadable.

        Args:
            state: `present`, `absent` or `unreadable`.

        Raises:
            ValueError: The process has no freeze file.
        """
        file = self.freeze_file
        if file is None:
            raise ValueError("there is no freeze file")
        file.parent.mkdir(exist_ok=True)
        if state == "present":
            file.touch()
            return
        file.unlink(missing_ok=True)
        if state == "unreadable":  # as of a disk that is not mounted
            file.parent.rmdir()

    def restart(self) -> None:
        """Start a new process, and cancel the waits of the previous one."""
        for _, woken in [*self._sleepers, *self._beats.values()]:
            woken.cancel()
        self._sleepers.clear()
        self._beats.clear()
        self._processes += 1
        made = self.make(self, f"process-{self._processes}")
        # The clock of the simulation is not the server's, and must not be compared with it.
        self.bot = replace(made, sweep=replace(made.sweep, clocks=None))

    async def bury(self, thread_id: str) -> None:
        """Start a new process after a crash, and release the crashed process's lease."""
        self.restart()
        thread = await self.storage.threads.get(thread_id)
        await self.storage.threads.release(
            thread_id, fence=thread.fence, wakes=thread.wakes - 1, now_ms=self.clock()
        )
        await self.tick()

    def answer(self, method: str, values: Mapping[str, Any]) -> Payload:
        """Return the response to a call of Slack's API."""
        is_writer = values.get("user") in self.writers
        if self.lookups_fail and method in _FAILS and not is_writer:
            return {"ok": False, "error": "missing_scope"}
        body = self.sandbox.answer(method, values)
        if method == "chat.postMessage" and body.get("ok"):
            workspace = self.sandbox.workspace
            message = workspace.message(str(body["channel"]), str(body["ts"]))
            self.posted.append(copy.deepcopy(message))
        return dict(json.loads(json.dumps(body)))

    # ---- time -------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Wait until Slack and the bot are idle, except for tasks that sleep."""
        while True:
            await self.sandbox.idle()
            if self.sandbox.is_busy:
                continue
            if len(self.bot.tasks) <= len(self._sleepers) and not self._beating:
                return
            self._slept.clear()  # no `await` since the check of the sleepers, so no wake-up is lost
            idle = asyncio.ensure_future(self.bot.tasks.one_ended())
            asleep = asyncio.create_task(self._slept.wait())
            await asyncio.wait({idle, asleep}, return_when=asyncio.FIRST_COMPLETED)
            for task in (idle, asleep):
                task.cancel()

    async def sleep(self, seconds: float) -> None:
        """Sleep for a time of the simulated clock; a time of zero only yields."""
        if round(seconds * 1_000) <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = self.clock() + round(seconds * 1_000), woken
        self._sleepers.append(sleeper)
        self._slept.set()
        try:
            await woken
        finally:  # a cancelled task no longer sleeps
            self._sleepers = [other for other in self._sleepers if other is not sleeper]

    async def stall(self) -> None:
        """Sleep until `end_stalls`, however late it is on the simulated clock."""
        await self.sleep(_FOREVER_S)

    def end_stalls(self) -> None:
        """Wake all tasks that stall."""
        late = self.clock() + _FOREVER_S * 500
        stalled = [sleeper for sleeper in self._sleepers if sleeper[0] > late]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper not in stalled]
        for _, woken in stalled:
            woken.set_result(None)

    async def beat(self, seconds: float) -> None:
        """Sleep between renewals of a lease, while the task that holds it works.

        Raises:
            RuntimeError: Called outside of a task.
        """
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("no task waits")
        self._beats[task] = self.clock() + round(seconds * 1_000), woken
        task.add_done_callback(self._has_beaten)
        self._has_beaten(task)
        try:
            await woken
        finally:
            self._beats.pop(task, None)

    def _has_beaten(self, task: asyncio.Task[Any]) -> None:
        """Note that a task which renews a lease sleeps again, or has ended."""
        self._beating.discard(task)
        self._slept.set()

    def _wake(self) -> None:
        now = self.clock()
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= now]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper not in due]
        beats = {task: beat for task, beat in self._beats.items() if beat[0] <= now}
        self._beating |= beats.keys()
        for _, woken in [*due, *beats.values()]:
            if not woken.done():
                woken.set_result(None)

    async def advance(self, to_ms: int) -> None:
        """Advance the clock step by step, so that due work runs at its time."""
        await self.settle()
        while (due := await self._next_due(to_ms)) is not None:
            self.clock.now_ms = max(self.clock.now_ms, due)
            await self.tick()
            self.clock.now_ms += 1
        self.clock.now_ms = max(self.clock.now_ms, to_ms)
        await self.tick()

    async def tick(self) -> None:
        """Run all work that is due now."""
        self._wake()
        await self.settle()
        for _ in range(20):
            started = await self.bot.sweep.tick()
            await self.settle()
            if not started:
                return

    async def _next_due(self, to_ms: int) -> int | None:
        approvals = await self.storage.approvals.due(now_ms=to_ms, limit=100)
        threads = await self.storage.threads.due(now_ms=to_ms, limit=100)
        work: list[Approval | Thread] = [*approvals, *threads]
        # A renewed lease expires after the due time of its record.
        times = [
            max(record.due_ms, record.leased_until_ms)
            for record in work
            if record.due_ms is not None
        ]
        waits = [*self._sleepers, *self._beats.values()]
        times += [at_ms for at_ms, _ in waits if at_ms <= to_ms]
        return min(times, default=None)

    # ---- what people do ---------------------------------------------------------------------

    def card_of(self, approval: Approval, user: str) -> tuple[str, str]:
        """Return channel and `ts` of the card that a person sees."""
        cards = [card for card in approval.copies if card.ts]
        own = next((card for card in cards if card.user == user), None)
        if own is None:
            own = next((card for card in cards if card.channel == approval.elsewhere), None)
        if own is None and approval.is_batched:
            return approval.channel_id, self._batch_ts(approval.batch.owner_id)
        return (own.channel, own.ts) if own else (approval.channel_id, approval.thread_card.ts)

    def _batch_ts(self, batch_id: str) -> str:
        """Return the `ts` of a batch card."""
        timestamps = (
            str(message.ts)
            for message in self.posted
            if message.metadata
            and message.metadata["event_type"] == BATCH_EVENT
            and message.metadata["event_payload"]["id"] == batch_id
        )
        return next(timestamps, "")

    async def press(
        self, user: str, approval: Approval, action: ActionId, *, shown: str = ""
    ) -> list[Payload]:
        """Press a button of a card, even if the card no longer has the button.

        Args:
            user: Slack user id of the person.
            approval: The approval of the card.
            action: The button.
            shown: Digest that the person saw; empty for the current one.

        Returns:
            The modals that are open for the person afterwards.
        """
        channel, ts = self.card_of(approval, user)
        value = encode(approval.approval_id, shown or approval.digest)
        payload = self._payload(user, channel, ts)
        payload["actions"] = [
            {
                "type": "button",
                "action_id": str(action),
                "block_id": "b",
                "value": value,
                "action_ts": self.sandbox.workspace.ids.ts(),
                "text": {"type": "plain_text", "text": str(action)},
            }
        ]
        await self.sandbox.send_interaction(payload)
        await self.settle()
        return self.sandbox.open_views(user)

    def _payload(self, user: str, channel_id: str, ts: str) -> Payload:
        """Return the payload of a click on a message, without the action.

        The person need not be a member of the channel.
        """
        workspace = self.sandbox.workspace
        channel, message = workspace.channels[channel_id], workspace.message(channel_id, ts)
        before, is_member = message.blocks, user in channel.members
        if not is_member:  # everyone can read a public channel
            channel.members.append(user)
        # A person's screen can still show buttons that the message no longer has.
        message.blocks = _ANY_BUTTON
        try:
            return self.sandbox.payload_of_click(user, channel_id, ts, "any")
        finally:
            message.blocks = before
            if not is_member:
                channel.members.remove(user)

    async def fill(self, user: str, values: Mapping[str, object]) -> Payload:
        """Fill in the topmost modal of a person, by block id, else by label, and submit it.

        Returns:
            The outcome: `ok`, and `errors` if the bot gave them.
        """
        view = self.sandbox.open_views(user)[-1]
        by_name = {name.lower(): value for name, value in values.items()}
        filled = {}
        for block in view["blocks"]:
            if block["type"] != "input":
                continue
            names = (block["block_id"].lower(), block["label"]["text"].lower())
            for name in [candidate for candidate in names if candidate in by_name][:1]:
                filled[block["block_id"]] = by_name[name]
        outcome = await self.sandbox.submit(user, view, filled)
        await self.settle()
        return outcome

    async def force(self, user: str, view: Payload, callback_id: str) -> object:
        """Submit a modal without a submit button under another callback id; return the response."""
        workspace = self.sandbox.workspace
        payload = {
            "type": "view_submission",
            **actor_payload(workspace, user),
            "trigger_id": workspace.triggers.issue(user, str(view["id"])),
            "view": {**view, "callback_id": str(callback_id), "state": {"values": {}}},
            "response_urls": [],
        }
        answer = await self.sandbox.send_interaction(payload)
        await self.settle()
        return answer

    async def close_views(self, user: str) -> None:
        """Close all open modals of a person."""
        for view in reversed(self.sandbox.open_views(user)):
            await self.sandbox.close_view(user, view)
        await self.settle()

    # ---- what there is to see ---------------------------------------------------------------

    async def approvals(self, thread_id: str) -> list[Approval]:
        """Return all approvals of a thread, the oldest first."""
        approvals = await newest_of(self.storage.approvals, thread_id, limit=100)
        return sorted(approvals, key=lambda approval: (approval.created_ms, approval.position))

    async def entries(self, thread_ids: Iterable[str]) -> list[AuditEntry]:
        """Return the audit entries of some threads, and of no thread, in the order of creation.

        Their times do not give the order, because the simulated clock stands still.
        """
        entries: list[AuditEntry] = []
        for thread_id in ("", *thread_ids):
            entries += await self.storage.audit.of_thread(thread_id, limit=MOST)
        places = {name: place for place, name in enumerate(self.noted)}
        return sorted(entries, key=lambda entry: places.get(entry.entry_id, len(places)))

    async def snapshot_of(self, approval: Approval, ballot: Ballot) -> PeopleSnapshot:
        """Look up the groups of an approval's terms."""
        lookup = self.bot.approvals.votes.lookup
        return await lookup.snapshot_of(
            approval, ballot.terms, people=(), groups=ballot.terms.groups
        )

    async def is_stuck(self, approval: Approval) -> bool:
        """Whether no one can complete a ballot now."""
        return await self.bot.approvals.quorum_check().missing(approval) is not None

    async def pending(self, thread_id: str) -> list[Approval]:
        """Return the pending approvals of a thread."""
        return [
            approval
            for approval in await self.approvals(thread_id)
            if approval.status is Status.PENDING
        ]


_ANY_BUTTON: list[Payload] = [
    {
        "type": "actions",
        "block_id": "any",
        "elements": [
            {
                "type": "button",
                "action_id": "any",
                "text": {"type": "plain_text", "text": "Any"},
                "value": "any",
            }
        ],
    }
]
