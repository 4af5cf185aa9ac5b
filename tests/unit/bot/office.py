"""The use cases joined with an in-memory database, fakes, and agents that tests script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
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
from agents.chat.explaining import Explains
from agents.core.tools import Tool
from agents.gates.rulings import Judgement
from agents.models import Turn
from bot.approvals.ask_agent import Explanations
from bot.approvals.break_glass import BreakGlassAlert
from bot.approvals.disclosure import Surface
from bot.approvals.due.agent_answers import EXPLAIN_PATIENCE, AgentAnswers
from bot.approvals.due.thread_reactions import ThreadReactions
from bot.approvals.due.worker import ApprovalWorker
from bot.approvals.editing import Edits
from bot.approvals.grants import Grants
from bot.approvals.model import Approval, Decision, Kind, Status
from bot.approvals.overview import HomeDataReader
from bot.approvals.queries import open_of
from bot.approvals.service import Approvals
from bot.notifications.digest_schedule import DigestSchedule
from bot.notifications.digest_worker import DigestWorker
from bot.notifications.do_not_disturb import PersonalDoNotDisturb
from bot.notifications.preferences import NotificationPreferences
from bot.observability.events import TellEvent, nobody
from bot.people.access import Access
from bot.people.current_policy import CurrentPolicy
from bot.people.model import DelegationRecord
from bot.ports.batches import BatchCards
from bot.ports.people import Actor
from bot.ports.tools import CheckedCall
from bot.questions.record import Rules
from bot.scheduler import DueWork
from bot.slack.cards.card_for import shows_all
from bot.stores import Stores
from bot.threads.inbox import ThreadInbox
from bot.threads.message_event import Incoming
from bot.threads.model import Thread
from bot.threads.outbox import Outbox
from bot.threads.runs.application_policy import BotPolicy, GroupMembers, InForce
from bot.threads.runs.executions import ExecutionRecorder
from bot.threads.runs.grant_uses import GrantCheck
from bot.threads.runs.history import ThreadHistory
from bot.threads.runs.policy_of_cards import policy_of_cards
from bot.threads.runs.preflight import StartCheck
from bot.threads.summaries import Summaries
from bot.threads.turns import Turns
from bot.threads.worker import Threads
from tests.support.fakes import (
    FakeBoard,
    FakeClock,
    FakeDirectory,
    FakeNotices,
    FakeNotifier,
    FakeRootSigns,
    Queue,
)

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


class KilledError(BaseException):
    """Ends the work as kill -9 does: no handler of errors sees it."""


@dataclass
class Office:
    """One process of the bot; several may share a storage."""

    storage: Stores
    turns_of_model: Sequence[Turn]
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
    rules: Rules = RULES
    make_agent: Callable[[ScriptedModel], Agent] | None = None
    tell: TellEvent = nobody
    policy: Callable[[], InForce] | None = None
    board: FakeBoard = field(default_factory=FakeBoard)
    has_lists: bool = False
    batches: BatchCards | None = None
    paused: list[float] = field(default_factory=list)
    explain_patience: timedelta = EXPLAIN_PATIENCE

    def __post_init__(self) -> None:
        for user_id in (ROSA, ADA, BEN):
            self.directory.add(user_id)
        self.directory.add(GUS, is_guest=True)
        self.directory.channels[CHANNEL] = frozenset({ROSA, ADA, BEN, GUS, BOT})
        self.model = ScriptedModel(list(self.turns_of_model))
        self.access = Access(self.directory)

    @cached_property
    def agent(self) -> Agent:
        if self.make_agent is not None:
            return self.make_agent(self.model)
        return ChatModelAgent(name="A", model=self.model, tools=self._tools())

    @cached_property
    def witness(self) -> ExecutionRecorder:
        storage = self.storage
        return ExecutionRecorder(storage.approvals, storage.audit, self.clock, self._attend)

    @cached_property
    def cards(self) -> CurrentPolicy:
        async def judge(approval: Approval, arguments: dict[str, Any]) -> Judgement | None:
            return await self.runner.judge(approval.checkpoint_id, approval.interrupt_id, arguments)

        return policy_of_cards(self.policy, judge)

    @cached_property
    def runner(self) -> Runner:
        return Runner(
            self.agent,
            checkpoint_store=self.storage.checkpoints,
            message_log=ThreadHistory(self.storage.log),
            durability="step",
            streaming=True,
            before_start=StartCheck(
                storage=self.storage,
                audit=self.storage.audit,
                votes=lambda: self.approvals.votes,
                clock=self.clock,
                max_age=self.rules.max_age,
                known=self.witness.watched,
                attend=self._attend,
                sleep=self._sleep,
            ),
            recorder=self.witness,
            policy=self.policy
            and BotPolicy(
                storage=self.storage,
                audit=self.storage.audit,
                clock=self.clock,
                members=GroupMembers(self.directory, self.clock),
                in_force=self.policy,
                grants=GrantCheck(self.grants, self.queue.spawn),
            ),
            epoch=self.epoch,
        )

    @cached_property
    def outbox(self) -> Outbox:
        return Outbox(
            storage=self.storage,
            notifier=self.notifier,
            clock=self.clock,
            owner=self.owner,
            spawn=self.queue.spawn,
        )

    @cached_property
    def attendance(self) -> ApprovalWorker:
        return ApprovalWorker(
            storage=self.storage,
            directory=self.directory,
            notifier=self.notifier,
            clock=self.clock,
            owner=self.owner,
            wake=lambda thread_id: self.queue.spawn(self.threads.work(thread_id)),
            remind_after=self.rules.remind_after,
            policy=self.cards,
            alarm=BreakGlassAlert(lambda: self.approvals.votes, self.notices, self.queue.spawn),
            signs=ThreadReactions(self.storage.approvals, self.roots, self.clock),
            batches=self.batches,
            pause=self._sleep_not,
            consideration=PersonalDoNotDisturb(
                wishes=self.wishes, plans=self.plans if self.has_lists else None
            ),
            answers=AgentAnswers(
                storage=self.storage,
                clock=self.clock,
                explain=self.explanations.answer,
                spawn=self.queue.spawn,
                attend=self._attend_now,
                patience=self.explain_patience,
            ),
            grant=self.grants.complete,
        )

    @cached_property
    def explanations(self) -> Explanations:
        return Explanations(self._explainer, self.storage.log)

    @cached_property
    def wishes(self) -> NotificationPreferences:
        return NotificationPreferences(
            storage=self.storage, access=self.access, policy=self.cards, clock=self.clock
        )

    @cached_property
    def plans(self) -> DigestSchedule:
        return DigestSchedule(
            storage=self.storage, wishes=self.wishes, team_id="T1", clock=self.clock
        )

    @cached_property
    def digests(self) -> DigestWorker:
        return DigestWorker(
            storage=self.storage,
            overviews=HomeDataReader(
                storage=self.storage,
                directory=self.directory,
                policy=self.cards,
                clock=self.clock,
            ),
            plans=self.plans,
            board=self.board,
            team_id="T1",
            clock=self.clock,
        )

    @cached_property
    def approvals(self) -> Approvals:
        return Approvals(
            storage=self.storage,
            access=self.access,
            clock=self.clock,
            shows=shows_all,
            attendance=self.attendance,
            policy=self.cards,
        )

    @cached_property
    def grants(self) -> Grants:
        return Grants(
            storage=self.storage,
            notices=self.notices,
            clock=self.clock,
            votes=lambda: self.approvals.votes,
        )

    @cached_property
    def inbox(self) -> ThreadInbox:
        return ThreadInbox(
            storage=self.storage,
            access=self.access,
            approvals=self.approvals,
            outbox=self.outbox,
            clock=self.clock,
            stop=self.turns.stopping.stop,
        )

    @cached_property
    def turns(self) -> Turns:
        return Turns(
            storage=self.storage,
            runners=self._runner_of,
            attendance=self.attendance,
            outlook=self.approvals.outlook(self.rules.channels),
            notifier=self.notifier,
            outbox=self.outbox,
            rules=self.rules,
            clock=self.clock,
            spawn=self.queue.spawn,
            witness=self.witness,
            tell=self.tell,
        )

    @cached_property
    def threads(self) -> Threads:
        return Threads(
            storage=self.storage,
            inbox=self.inbox,
            turns=self.turns,
            outbox=self.outbox,
            clock=self.clock,
            owner=self.owner,
            sleep=self._sleep_not,
            summaries=Summaries(self.storage, self.notices, self.clock),
        )

    @cached_property
    def sweep(self) -> DueWork:
        return DueWork(
            storage=self.storage,
            attendance=self.attendance,
            threads=self.threads,
            outbox=self.outbox,
            clock=self.clock,
            spawn=self.queue.spawn,
            grants=self.grants,
            digests=self.digests if self.has_lists else None,
        )

    def _attend(self, approval_id: str) -> None:
        self.queue.spawn(self.attendance.attend(approval_id))

    async def _sleep_not(self, seconds: float) -> None:
        """Note that somebody would have waited; others go on meanwhile."""
        self.paused.append(seconds)
        await asyncio.sleep(0)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.forward(seconds=seconds)

    async def _attend_now(self, approval_id: str) -> None:
        await self.attendance.attend(approval_id)

    async def _explainer(self, _: Approval) -> Explains | None:
        return self.agent if isinstance(self.agent, Explains) else None

    async def _runner_of(self, _: Thread) -> Runner:
        return self.runner

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
        answers: str = "",
    ) -> Approval:
        """What the listeners do for a click or a form, and the work that follows."""
        actor = an_actor(by)
        seen = await self.approvals.find(approval.approval_id, actor, shown=approval.digest)
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
                answer_json=answers,
                digest=seen.digest,
            )
            decided = await self.approvals.decide(seen, decision, actor, surface=Surface.CARD)
        self.queue.spawn(self.approvals.follow_up(decided))
        await self.queue.run()
        return decided

    async def decide_meanwhile(self, approval: Approval, *, by: str) -> None:
        """Approve while a card is attended to: the work that follows waits for the end of that."""
        actor = an_actor(by)
        seen = await self.approvals.find(approval.approval_id, actor, shown=approval.digest)
        decision = Decision(status=Status.APPROVED, by=by, at_ms=self.clock(), digest=seen.digest)
        decided = await self.approvals.decide(seen, decision, actor, surface=Surface.CARD)
        self.queue.spawn(self.approvals.follow_up(decided))

    async def _edited(self, seen: Approval, arguments: dict[str, object], actor: Actor) -> Approval:
        edits = Edits(self.storage, self.approvals, self.rules, self.clock)
        call = CheckedCall(arguments=arguments)
        edited = await edits.edit(seen, call, None, actor=actor)
        assert isinstance(edited, Approval), edited
        return edited

    def shown(self) -> list[str]:
        """The agent's texts in order."""
        return list(self.notifier.texts.values())


def kinds(approvals: Sequence[Approval]) -> list[Kind]:
    return [approval.kind for approval in approvals]
