"""The whole bot between a made-up Slack and a database, with a process that dies at a write.

People act on cards by Slack's payloads; when a process has died meanwhile, another one takes over
as soon as its leases have ended, and whoever did something does it again.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

from pydantic_ai.messages import ToolCallPart
from slack_bolt.request.async_request import AsyncBoltRequest

from bot.clock import milliseconds
from bot.policy.current import LoadedPolicy
from bot.policy.evaluation.context import world_of
from bot.records.approval import Approval, Kind, Status
from bot.records.people import PersonRecord
from bot.rehearsal.case_file import Case, CaseFile, offset
from bot.rehearsal.case_schema import CaseError, Data
from bot.rehearsal.events import SimulatedSteps
from bot.rehearsal.run_case import NOBODY, PolicyFileOnStage
from bot.rehearsal.scripted_agents import Script, actors
from bot.rehearsal.simulation import Simulation, StageClock
from bot.rehearsal.world import World
from bot.slack.app import build
from bot.slack.bot import Countersign
from bot.slack.connect import Slack
from bot.stores import Stores
from bot.threads.named_agents import Roster
from slack_sandbox.delivery.http import AppReply, Parcel
from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.records import Payload, SlackMessage
from tests.chaos.play import CARDS
from tests.chaos.points import READS, STORES
from tests.property.worlds.bench import READS as OTHER_READS
from tests.property.worlds.relay import Planned
from tests.support.stage import buttons
from tests.unit.bot.office import KilledError

_LASTING = {"countersign:details", "countersign:seen"}
"""Buttons that stay after the end: they decide nothing."""


def _tool(*names: str) -> Data:
    fields = {name: {"type": "string"} for name in names}
    return {"gate": "none", "schema": {"type": "object", "properties": fields}}


WORLD = World(
    people={f"U0{name}": {} for name in ("ADA", "BEN", "CLEO", "MIA", "LIA", "MAX", "ROSA", "TOM")},
    usergroups={"S0SRE": ["U0ADA", "U0BEN", "U0CLEO"], "S0LEAD": ["U0LIA", "U0MAX"]},
    channels={
        "C0OPS": ["U0ADA", "U0BEN", "U0CLEO", "U0MIA", "U0ROSA", "U0TOM"],
        "C0ALERT": ["U0LIA"],
        "D0ROSA": ["U0ROSA"],
    },
    bot_in=("C0OPS", "C0ALERT"),
    agents=("clerk",),
    tools={
        "sql": _tool("statement"),
        "restart_db": _tool("host"),
        "search": _tool("query"),
        "refund": _tool("order"),
    },
)
DECIDERS = ("U0ADA", "U0BEN", "U0MIA")
"""Who says whether a call in doubt has run; those whom it does not ask are refused."""
LEASES_MS = 60_000
"""All leases have ended after this."""
_ONCE = {"request", "wait"}
"""Slack itself sends a message again."""
_NO_TIMELINE = [{"at": "+0m", "clock": {}}]
"""A case needs one; the steps of a play come from its scene."""
LOOKS = READS | OTHER_READS | {"unsealed", "heads", "epoch", "undelivered", "any_of"}
"""Nobody else notices these."""

Step = tuple[str, str, Any]
"""When it happens, as `+1h30m`; which act of the rehearsal; and what is given to it."""


class Ebbing:
    """A database, or one of its stores, of one process."""

    def __init__(self, life: Planned, target: Any, name: str = "") -> None:
        self._life = life
        self._target = target
        self._name = name

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if not self._name:
            return Ebbing(self._life, attribute, name) if name in STORES else attribute
        if isinstance(attribute, type) or not callable(attribute):
            return attribute

        async def use(*args: Any, **options: Any) -> Any:
            if self._life.is_over:
                raise KilledError
            is_look = name in LOOKS or name.startswith("count")
            self._life.writes(0 if is_look else 1)
            result = await attribute(*args, **options)
            if not is_look:
                self._life.wrote(self._name, name, *args)
            return result

        return use


@dataclass(frozen=True, slots=True)
class Gate:
    """The way of one process to Slack."""

    life: Planned
    stage: Simulation

    def answer(self, method: str, values: Mapping[str, Any]) -> Payload:
        """See `Simulation.answer`."""
        if self.life.is_over:
            raise KilledError
        return self.stage.answer(method, values)


@dataclass(slots=True)
class Wire:
    """The way to the bot: nobody answers there while the process is dead."""

    house: Playhouse

    @property
    def is_open(self) -> bool:
        """See `Transport.is_open`."""
        return True

    async def send(self, parcel: Parcel) -> AppReply:
        """See `Transport.send`."""
        if self.house.life.is_over:
            self.house.revive()  # Slack comes again when there is somebody
        bot, body = self.house.stage.bot, json.loads(json.dumps(parcel.payload))
        try:
            with bot.answering():
                request = AsyncBoltRequest(mode="socket_mode", body=body)
                response = await bot.bolt.async_dispatch(request)
        except KilledError:
            return AppReply(ok=False, reason="http_error")
        text = response.body
        answer = json.loads(text) if text.startswith("{") else text
        return AppReply(ok=response.status == 200, body=answer or None)


class SameCalls(deque[list[ToolCallPart]]):
    """The calls of a turn, however often a model is asked for them: processes die."""

    def popleft(self) -> list[ToolCallPart]:
        """The calls of the present turn."""
        return self[-1]


@dataclass(frozen=True, kw_only=True)
class Ending:
    """All that has come of a play.

    Attributes:
        deaths: How often a process died.
        writes: How many were made.
        ran: Arguments with which tools ran.
        doubts: How many cards asked whether a call has run.
        states: How each request ended.
        audit: How often each action and person is in the audit.
        posted: How often each kind of message was posted.
        faults: What must not be.
    """

    deaths: int
    writes: Sequence[str]
    ran: Sequence[Data]
    doubts: int
    states: Sequence[str]
    audit: Counter[tuple[str, str]]
    posted: Counter[str]
    faults: Sequence[str]


@dataclass
class Playhouse:
    """The stage, of which each play uses a thread of its own.

    Attributes:
        stage: Where.
        script: What agents do.
        life: That of the process.
    """

    stage: Simulation
    script: Script
    case: Case
    life: Planned
    deaths: int = 0
    _asked: int = 0
    _lives: list[Planned] = field(default_factory=list)
    _burials: list[asyncio.Task[None]] = field(default_factory=list)
    _done: list[tuple[str, str, tuple[Any, ...]]] = field(default_factory=list)

    @classmethod
    async def open(cls, storage: Stores, policy: Data) -> Playhouse:
        """Build it.

        Args:
            storage: Open.
            policy: In force.
        """
        entries = [{"id": "K", "kind": "flow", "policy": policy, "timeline": _NO_TIMELINE}]
        (case,) = CaseFile(world=WORLD, policies={}, entries=entries).cases()
        script, clock = Script(calls=SameCalls()), StageClock(case.start_ms)
        houses: list[Playhouse] = []
        agents = actors(script, case.world, [])
        source = PolicyFileOnStage(
            data=json.dumps(policy).encode(),
            world=world_of(agents.values()),
            is_demo=False,
            storage=storage,
            clock=clock,
        )
        force = await LoadedPolicy.load(source.source("T0ACMEWORK"))

        def make(stage: Simulation, owner: str) -> Countersign:
            life = houses[0].life if houses else Planned()
            gate = Gate(life, stage)
            return build(
                slack=with_gate(stage.slack, gate),
                storage=cast("Stores", Ebbing(life, stage.storage)),
                roster=Roster(agents={"*": agents["clerk"]}),
                process=stage.process(owner),
                rules=NOBODY,
                policy=lambda: force.held,
            )

        stage = Simulation(storage=storage, world=case.world, clock=clock, make=make)
        houses.append(cls(stage=stage, script=script, case=case, life=Planned()))
        stage.sandbox.use(Wire(houses[0]))
        return houses[0]

    async def play(self, steps: Sequence[Step], *lives: Planned) -> Ending:
        """Play it from the first step to the end, in a thread of its own.

        Args:
            steps: What happens.
            lives: Those of the first processes; the last one is immortal.
        """
        self._lives, self.deaths, self._asked = list(lives), 0, 0
        self._done = []
        self.script.ran.clear()
        first = len(self.stage.posted)
        self._begin()
        acts = SimulatedSteps(
            case=self.case, stage=self.stage, script=self.script, swap_policy=_no_swap
        )
        begin_ms = self.stage.clock()
        for at, name, value in steps:
            await self._advance(begin_ms + milliseconds(offset(at)))
            if not await self._go(self._act(acts, name, value)) and name not in _ONCE:
                await self._go(self._act(acts, name, value))  # nothing was heard: once more
            await self._resolve(acts)
        await self._end(acts)
        return await self._ending(acts, first)

    # ---- the process ----------------------------------------------------------------------------

    def revive(self) -> None:
        """Let another process take over, when what the dead one held has ended."""
        self.deaths += 1
        self._burials.append(
            asyncio.ensure_future(self.stage.bot.tasks.drain(patience=timedelta()))
        )
        self.stage.clock.now_ms += LEASES_MS
        self._begin()

    def _begin(self) -> None:
        self.life = self._lives.pop(0) if self._lives else Planned()
        self.life.done = self._done
        self.stage.restart()

    async def _go(self, work: Coroutine[Any, Any, Any]) -> bool:
        """Do something; whether nobody died of it."""
        deaths = self.deaths
        with suppress(KilledError, RefusedError, CaseError):
            await work
        while True:
            with suppress(KilledError):
                await self.stage.settle()
            if not self.life.is_over:
                return deaths == self.deaths
            self.revive()
            await asyncio.gather(*self._burials)
            self._burials.clear()
            with suppress(KilledError):
                await self.stage.tick()

    async def _advance(self, to_ms: int) -> None:
        while not await self._go(self.stage.advance(max(to_ms, self.stage.clock()))):
            pass  # the rest of the time is left

    # ---- the people -----------------------------------------------------------------------------

    async def _act(self, acts: SimulatedSteps, name: str, value: Any) -> None:
        match name:
            case "request":
                self._asked += 1
                await acts.request(value if isinstance(value, list) else [value])
            case "seal":
                await self.stage.bot.sweep.seal()
            case "wait":
                pass
            case "wish":
                team_id, people = self.stage.sandbox.workspace.team_id, self.stage.storage.people
                await people.change(team_id, value, _wants_cards)
            case _:
                await acts.play(name, value)

    async def _end(self, acts: SimulatedSteps) -> None:
        """Let all come to rest."""
        for _ in range(4):
            await self._advance(self.stage.clock() + LEASES_MS)
            await self._resolve(acts)
        await self._go(self.stage.bot.sweep.seal())

    async def _resolve(self, acts: SimulatedSteps) -> None:
        """Say of a call in doubt whether it has run."""
        for approval in await acts.newest():
            if approval.kind is Kind.DOUBT and approval.status is Status.PENDING:
                choice = "ran" if len(self.script.ran) >= self._asked else "again"
                for who in DECIDERS:
                    doubt = {"by": who, "choice": choice, "result": "it is there"}
                    await self._go(acts.play("doubt", doubt))

    # ---- what there is --------------------------------------------------------------------------

    async def _ending(self, acts: SimulatedSteps, first: int) -> Ending:
        thread_id = acts.threads[acts.current]
        approvals = await self.stage.approvals(thread_id)
        entries = await self.stage.storage.audit.of_thread(thread_id, limit=500)
        posted = Counter(_kind(post) for post in self.stage.posted[first:])
        return Ending(
            deaths=self.deaths,
            writes=[f"{store}.{method}" for store, method, _ in self._done],
            ran=[*self.script.ran],
            doubts=sum(approval.kind is Kind.DOUBT for approval in approvals),
            states=[
                str(approval.status) for approval in approvals if approval.kind is not Kind.DOUBT
            ],
            # Whoever does it again is refused where it was done before.
            audit=Counter(
                (entry.action, entry.actor_id) for entry in entries if entry.action != "refused"
            ),
            posted=posted,
            faults=[*await self._unrest(thread_id, approvals), *self._cards(approvals)],
        )

    async def _unrest(self, thread_id: str, approvals: Sequence[Approval]) -> list[str]:
        """What is still to be done."""
        problems, storage = [], self.stage.storage
        thread = await storage.threads.get(thread_id)
        if thread.due_ms is not None or thread.turn_open:
            problems.append(f"the thread is not at rest: {thread}")
        for approval in approvals:
            rests = (approval.due_ms, approval.open, approval.card.revision) == (
                None,
                False,
                approval.shown_revision,
            )
            if approval.status is Status.PENDING or not rests:
                problems.append(f"the card is not at rest: {approval}")
        if left := (await storage.trail.unsealed()).count:
            problems.append(f"{left} entries are not sealed")
        return problems

    def _cards(self, approvals: Sequence[Approval]) -> list[str]:
        """What is wrong with what stands in Slack: each card stands once, and is over."""
        problems = []
        for channel in self.stage.sandbox.workspace.channels:
            for approval in approvals:
                about = [
                    message
                    for message in self.stage.sandbox.messages(channel)
                    if _id_of(message) == approval.approval_id
                ]
                cards = [message for message in about if message["metadata"]["event_type"] in CARDS]
                if len(cards) > 1:
                    problems.append(f"{len(cards)} cards in {channel}")
                left = {name for message in about for name in buttons(message)} - _LASTING
                if left:
                    problems.append(f"buttons in {channel}: {left}")
        return problems


def _wants_cards(person: PersonRecord) -> PersonRecord:
    return person.changed(has_copies=True)


async def _no_swap(_: object) -> None:
    """The policy stays."""


def _kind(message: SlackMessage) -> str:
    return str((message.metadata or {}).get("event_type", "text"))


def _id_of(message: Payload) -> str:
    payload = (message.get("metadata") or {}).get("event_payload") or {}
    return str(payload.get("id", ""))


def with_gate(slack: Slack, gate: Gate) -> Slack:
    """The same access to Slack through a gate."""
    made: Any = slack
    result: Slack = replace(made, stage=gate)
    return result
