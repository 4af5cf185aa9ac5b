"""The use cases joined with an in-memory database, fakes, and agents that tests script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Literal

from agents import (
    Agent,
    ChatModelAgent,
    Runner,
    ScriptedModel,
    follow_up_tool,
    idempotency_key,
    tool,
)
from agents.core.codec import Json
from agents.core.tools import Tool
from agents.models import Turn
from bot.approvals.disclosure import Surface
from bot.approvals.due.agent_answers import EXPLAIN_PATIENCE, AgentAnswers
from bot.approvals.due.thread_reactions import ThreadReactions
from bot.approvals.editing import Edits
from bot.audit.report import story
from bot.config.agents import EVERYWHERE
from bot.observability.events import TellEvent, nobody
from bot.people.access import Access
from bot.ports.notifier import BatchCards
from bot.ports.people import Actor
from bot.ports.policy import CurrentPolicy
from bot.ports.threads import CheckedCall, Presence, TaskBoard
from bot.questions.record import Rules
from bot.records.approval import Approval, Decision, GrantRequest, Kind, Status
from bot.records.approval_queries import open_of
from bot.records.people import DelegationRecord
from bot.scheduler import DueWork
from bot.slack.agent_view import SuggestedPrompts
from bot.slack.process import Process
from bot.slack.wiring import Wiring
from bot.stores import Stores
from bot.threads.agents import Catalog
from bot.threads.message_event import Incoming
from bot.threads.named_agents import Roster
from bot.threads.runs.application_policy import InForce
from bot.threads.runs.call_records import CallRecords
from bot.threads.runs.calls import Calls
from bot.threads.runs.following import UNSEEN
from bot.threads.runs.task_board import NO_BOARD
from tests.support.fakes import (
    FakeClock,
    FakeDirectory,
    FakeNotices,
    FakeNotifier,
    FakeRootSigns,
    Queue,
)
from tests.support.webhooks import FakePoster

BOT = "UBOT"
ROSA, ADA, BEN, GUS = "UROSA", "UADA", "UBEN", "UGUS"
CHANNEL = "C1"
ROOT = "1800000000.000001"
THREAD_ID = f"T1:{CHANNEL}:{ROOT}"

RULES = Rules(
    approvers=("channel",),
    channels=(CHANNEL,),
    self_approval=False,
    remind_after=timedelta(minutes=15),
    expire_after=timedelta(hours=8),
)


def an_incoming(text: str, *, user_id: str = ROSA, ts: str = ROOT, **changes: object) -> Incoming:
    fields: dict[str, object] = {
        "team_id": "T1",
        "channel_id": CHANNEL,
        "ts": ts,
        "thread_ts": ROOT,
        "user_id": user_id,
        "text": text,
        "is_direct": False,
        "bot_user_id": BOT,
        **changes,
    }
    return Incoming(**fields)  # type: ignore[arg-type]


def an_actor(user_id: str, team_id: str = "T1") -> Actor:
    return Actor(user_id=user_id, team_id=team_id)


async def _no_call(method: str, channel_id: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Slack shows no suggested prompts."""
    return {}


class KilledError(BaseException):
    """Ends the work as kill -9 does: no handler of errors sees it."""


@dataclass
class Office(Wiring):
    """One process of the bot, wired as the product is, with fakes around it and a scripted model.

    Several may share a storage. What differs from the product is overridden below.
    """

    storage: Stores
    slack: Any = field(init=False)
    roster: Roster = field(init=False)
    process: Process = field(init=False)
    tasks: Any = field(init=False)
    turns_of_model: Sequence[Turn] = ()
    clock: FakeClock = field(default_factory=FakeClock)
    notifier: FakeNotifier = field(default_factory=FakeNotifier)
    notices: FakeNotices = field(default_factory=FakeNotices)
    roots: FakeRootSigns = field(default_factory=FakeRootSigns)
    directory: FakeDirectory = field(default_factory=FakeDirectory)
    queue: Queue = field(default_factory=Queue)
    ran: list[tuple[str, object]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    owner: str = "office"
    epoch: str = ""
    dies_in_tools: bool = False
    slept: list[float] = field(default_factory=list)
    is_gated: bool = True
    rules: Rules = field(default=RULES, kw_only=True)
    make_agent: Callable[[ScriptedModel], Agent] | None = None
    tell: TellEvent = nobody
    policy: Callable[[], InForce] | None = field(default=None, kw_only=True)
    batches: BatchCards | None = None
    paused: list[float] = field(default_factory=list)
    explain_patience: timedelta = EXPLAIN_PATIENCE
    poster: FakePoster = field(default_factory=FakePoster, kw_only=True)

    def __post_init__(self) -> None:
        for user_id in (ROSA, ADA, BEN):
            self.directory.add(user_id)
        self.directory.add(GUS, is_guest=True)
        self.directory.channels[CHANNEL] = frozenset({ROSA, ADA, BEN, GUS, BOT})
        self.model = ScriptedModel(list(self.turns_of_model))
        self.tasks = self.queue
        self.roster = Roster(agents={})
        self.process = Process(
            owner=self.owner,
            clock=self.clock,
            tell=self.tell,
            epoch=self.epoch,
            sleep=self._sleep_not,
        )
        self.slack = SimpleNamespace(
            team_id="T1",
            client=None,
            directory=self.directory,
            notifier=self.notifier,
            notices=self.notices,
            batches=lambda _: self.batches,
        )

    @cached_property
    def agent(self) -> Agent:
        if self.make_agent is not None:
            return self.make_agent(self.model)
        return ChatModelAgent(name="A", model=self.model, tools=self._tools())

    @cached_property
    def runner(self) -> Runner:
        return self._runner_of(self.agent)

    @cached_property
    def catalog(self) -> Catalog:
        return Catalog(
            {EVERYWHERE: self.agent},
            make_runner=lambda _: self.runner,
            checkpoints=self.storage.checkpoints,
            channel_name=self.directory.channel_name,
        )

    @cached_property
    def calls(self) -> Calls:
        """What waits before a start moves the time."""
        return replace(super().calls, sleep=self._sleep)

    @cached_property
    def call_records(self) -> CallRecords:
        """Each start is shown at once."""
        return replace(super().call_records, quick=timedelta(0))

    @cached_property
    def signs(self) -> ThreadReactions:
        return ThreadReactions(self.storage.approvals, self.roots, self.clock)

    @cached_property
    def agent_answers(self) -> AgentAnswers:
        return replace(super().agent_answers, patience=self.explain_patience)

    @cached_property
    def presence(self) -> Presence:
        return UNSEEN

    @cached_property
    def task_board(self) -> TaskBoard:
        return NO_BOARD

    @cached_property
    def prompts(self) -> SuggestedPrompts:
        return SuggestedPrompts(_no_call, ())

    @cached_property
    def sweep(self) -> DueWork:
        """Seals nothing, and watches no clock."""
        return replace(super().sweep, clocks=None, sealer=None, lists=None)

    @property
    def cards(self) -> CurrentPolicy:
        return self.policy_now

    @property
    def access(self) -> Access:
        return self.approvals.access

    def change_policy(
        self, policy: Callable[[], InForce], cards: CurrentPolicy | None = None
    ) -> None:
        """Let another policy be in force from now on; `cards` judges cards and votes by it."""
        self.policy = policy
        for name in [name for name in vars(self) if name != "agent"]:
            if isinstance(getattr(type(self), name, None), cached_property):
                del self.__dict__[name]
        if cards is not None:
            self.__dict__["policy_now"] = cards

    async def _sleep_not(self, seconds: float) -> None:
        """Note that somebody would have waited; others go on meanwhile."""
        self.paused.append(seconds)
        await asyncio.sleep(0)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.forward(seconds=seconds)

    def _tools(self) -> list[Tool]:
        @tool(gate="review" if self.is_gated else None, title="Pay {amount} to {to}")
        def pay(to: str, amount: int, how: Literal["card", "cash"] = "card") -> str:
            """Pay somebody.

            Args:
                to: Who gets it.
                amount: How much.
                how: By which means.
            """
            if self.dies_in_tools:
                raise KilledError  # as a process that is killed: nothing is written any more
            self.ran.append(("pay", (to, amount, how)))
            self.keys.append(idempotency_key())
            return f"paid {amount} to {to}"

        @tool
        def look(what: str) -> str:
            """Look something up.

            Args:
                what: What to look up.
            """
            self.ran.append(("look", what))
            return f"{what} is fine"

        return [pay, look, follow_up_tool()]

    async def hear(self, text: str, *, user_id: str = ROSA, ts: str = ROOT, **more: object) -> None:
        """A message arrives; the work that follows is done."""
        thread_id = await self.inbox.receive(an_incoming(text, user_id=user_id, ts=ts, **more))
        if thread_id is not None:
            self.queue.spawn(self.threads.work(thread_id))
        await self.queue.run()

    async def later(self, **passed: float) -> None:
        """Time passes; what is due then is done, and the work that follows.

        Args:
            passed: How much, as of a `timedelta`; nothing passes when it is left out.
        """
        self.clock.forward(**passed)
        await self.sweep.tick()
        await self.queue.run()

    async def asked(self, text: str, **more: Any) -> Approval:
        """A message arrives, as in `hear`; what people are asked about then."""
        await self.hear(text, **more)
        return await self.the_approval()

    async def lend(self, owner_id: str, delegate_id: str = "", *, name: str = "") -> str:
        """Somebody lends their right for nine days, or is away where it is to nobody.

        Args:
            owner_id: Who.
            delegate_id: To whom.
            name: Id of the record; one is made up when empty. It is returned.
        """
        right = DelegationRecord(
            delegation_id=name or f"dlg_{owner_id}_{delegate_id}",
            team_id="T1",
            owner_id=owner_id,
            delegate_id=delegate_id,
            group_name="",
            created_ms=self.clock(),
            until_ms=self.clock() + 9 * 86_400_000,
        )
        await self.storage.delegations.add(right)
        return right.delegation_id

    async def open_approvals(self) -> list[Approval]:
        return [
            a
            for a in await open_of(self.storage.approvals, THREAD_ID)
            if a.status is Status.PENDING
        ]

    async def acts(self, thread_id: str = THREAD_ID) -> list[str]:
        """What the audit has of a thread, in order."""
        return [entry.action for entry in await story(self.storage, thread_id=thread_id)]

    async def the_approval(self) -> Approval:
        (approval,) = await self.open_approvals()
        return approval

    async def decide(
        self,
        approval: Approval,
        status: Status = Status.APPROVED,
        *,
        by: str = ADA,
        reason: str = "",
        edited: dict[str, object] | None = None,
        answers: Json = None,
        allowance: GrantRequest | None = None,
    ) -> Approval:
        """What the listeners do for a click or a form, and the work that follows."""
        actor = an_actor(by)
        seen = await self.approvals.get_pending(approval.approval_id, actor, shown=approval.digest)
        if edited is not None:
            decided = await self._edited(seen, edited, actor)
        else:
            if seen.kind is Kind.QUESTION:
                await self.approvals.check(seen, actor)
            decision = Decision(
                status=status,
                by=by,
                at_ms=self.clock(),
                reason=reason,
                answer=answers,
                allowance=allowance,
                digest=seen.digest,
            )
            decided = await self.approvals.decide(seen, decision, actor, surface=Surface.CARD)
        self.queue.spawn(self.approvals.follow_up(decided))
        await self.queue.run()
        return decided

    async def decide_meanwhile(self, approval: Approval, *, by: str) -> None:
        """Approve while a card is attended to: the work that follows waits for the end of that."""
        actor = an_actor(by)
        seen = await self.approvals.get_pending(approval.approval_id, actor, shown=approval.digest)
        decided = await self.approve_alone(seen, by=by)
        self.queue.spawn(self.approvals.follow_up(decided))

    async def approve_alone(self, seen: Approval, *, by: str = ADA) -> Approval:
        """Approve a card as somebody has read it; nothing follows, as where the process dies."""
        yes = Decision(status=Status.APPROVED, by=by, at_ms=self.clock(), digest=seen.digest)
        return await self.approvals.decide(seen, yes, an_actor(by), surface=Surface.CARD)

    async def _edited(self, seen: Approval, arguments: dict[str, object], actor: Actor) -> Approval:
        edits = Edits(self.storage, self.approvals, self.rules, self.clock)
        call = CheckedCall(arguments=arguments)
        edited = await edits.edit(seen, call, None, actor=actor)
        assert isinstance(edited, Approval), edited
        return edited

    def shown(self) -> list[str]:
        """The agent's texts in order."""
        return list(self.notifier.texts.values())
