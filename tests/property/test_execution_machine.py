"""The record of an execution, in every order of two workers that may die at each of their steps.

Approved, started, finished; or cut off in between, in doubt, and then ran, again, or given up. The
runtime is the real one: `Runner` and `Journal` over a `MemoryCheckpointStore`. Both workers think
that they own the run, as after a lease that ended while its holder lived; there is no lease here
that could keep them apart. When both have stopped, a third one goes on, alone.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents import (
    ChatModelAgent,
    CheckpointClosedError,
    Expired,
    InDoubtInfo,
    InDoubtResult,
    InterruptContext,
    MemoryCheckpointStore,
    MemoryMessageLog,
    ReviewEditInfo,
    Runner,
    idempotency_key,
    review_edit_gate,
)
from agents.core.checkpoint import CheckpointStatus, Durability, StoredCheckpoint
from agents.core.codec import Json
from agents.core.errors import (
    CheckpointBusyError,
    CheckpointConflictError,
    NothingPendingError,
    UnknownInterruptError,
)
from agents.core.journal import STARTED
from agents.core.messages import read_log
from agents.models import call, say
from tests.property.worlds.interleave import Choice, Order, Worker, explore
from tests.support.halves import first_rows, later
from tests.unit.agents.support import Plain

OVERTAKEN = (
    CheckpointBusyError,
    CheckpointClosedError,
    CheckpointConflictError,
    NothingPendingError,
    UnknownInterruptError,
)
"""Another one has gone on with the run."""
EDITED: dict[str, Json] = {"x": 7}
_TIME = re.compile(r"timestamp.{5,40}?Z")


@dataclass(frozen=True)
class Effect:
    """What the tool did once."""

    arguments: str
    key: str


@dataclass
class Case:
    """Everything that outlives a process.

    Attributes:
        verdicts: What people may say of the call; they are asked once, and it is on record.
        doubts: What they may say of a call that was cut off; each may be said once.
    """

    durability: Durability
    is_idempotent: bool
    verdicts: tuple[str, ...] = ("approve", "reject")
    doubts: tuple[str, ...] = ("ran", "give_up", "again")
    store: MemoryCheckpointStore = field(default_factory=MemoryCheckpointStore)
    log: MemoryMessageLog = field(default_factory=MemoryMessageLog)
    decisions: dict[str, str] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    starts: int = 0
    """How often it is on record that the call starts."""
    faults: list[str] = field(default_factory=list)
    """What must not be; a tool cannot raise it, as the agent would be told."""

    def said(self, what: str) -> int:
        """How many decisions of a kind there are."""
        return list(self.decisions.values()).count(what)

    def check_before_effect(self, effect: Effect) -> None:
        """See whether an effect may happen now."""
        wanted = {"approve": "{'x': 2}", "edit": "{'x': 7}"}
        agreed = [wanted[said] for said in self.decisions.values() if said in wanted]
        if agreed != [effect.arguments]:
            self.faults.append(f"{effect.arguments} runs; people decided {self.decisions}")
        if self.starts <= len(self.effects):
            self.faults.append("it runs, and nobody knows that it has started")
        keys = {earlier.key for earlier in self.effects}
        if self.is_idempotent and not keys <= {effect.key}:
            self.faults.append("it runs again with another key")
        if not self.is_idempotent and len(self.effects) > self.said("again"):
            self.faults.append(f"it runs {len(self.effects) + 1} times, and nobody said so")

    async def check_end(self) -> None:
        """See what came of it all."""
        assert self.faults == []
        stored = await self.store.load("1")
        assert stored is not None
        assert stored.status is CheckpointStatus.CLOSED
        (entry,) = await self.log.load("L", before_turn=2)
        returned = [
            str(part.content)
            for message in read_log([entry])
            for part in message.parts
            if part.part_kind == "tool-return"
        ]
        assert len(returned) == 1
        self._check_told(returned[0])

    def _check_told(self, answer: str) -> None:
        """The agent is told what is true, as far as anybody knows it."""
        if self.said("reject"):
            assert self.effects == []
            assert "Rejected by a person" in answer
        elif self.said("expire"):
            assert self.effects == []
            assert "Nobody answered in time" in answer
        elif "unknown whether" in answer:
            assert self.said("give_up")
        elif "says a person" in answer:
            assert self.said("ran")
        else:
            assert "pay ok" in answer
            assert self.effects


class SteppingStore:
    """A store of which each use is a step of its worker."""

    def __init__(self, case: Case, worker: Worker) -> None:
        self._case = case
        self._inner = case.store
        self._worker = worker

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        stored = await self._inner.load(checkpoint_id)
        self._worker.saw(_short(stored))
        return stored

    async def save(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        await self._worker.step("save")
        with _noted(self._worker):
            return await self._inner.save(
                checkpoint_id, data, status=status, expected_version=expected_version
            )

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        await self._worker.step("claim")
        with _noted(self._worker):
            return await self._inner.claim(checkpoint_id, claim, expected_version=expected_version)

    async def amend(self, checkpoint_id: str, change: str, *, expected_version: int) -> int:
        await self._worker.step("amend")
        with _noted(self._worker):
            return await self._inner.amend(checkpoint_id, change, expected_version=expected_version)

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        await self._worker.step("append")
        with _noted(self._worker):
            await self._inner.append(checkpoint_id, entry, base=base, index=index)
        self._case.starts += f'"{STARTED}"' in entry

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        await self._worker.step("close")
        with _noted(self._worker):
            await self._inner.close(checkpoint_id, expected_version=expected_version)


@dataclass
class _noted:  # noqa: N801 - used like a function
    """Note whether a write was refused."""

    worker: Worker

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.worker.saw(kind.__name__ if kind else "ok")


@dataclass
class Process:
    """A process that works on the run, as the bot does."""

    case: Case
    worker: Worker

    async def work(self) -> None:
        """Go on with the run until it has ended, or another one is faster."""
        store = SteppingStore(self.case, self.worker)
        try:
            while True:
                await self.worker.step("look")
                stored = await store.load("1")
                assert stored is not None
                if stored.status is CheckpointStatus.CLOSED:
                    return
                runner = _runner(self.case, store, self._pay, _new_ids(stored.version))
                if stored.status is CheckpointStatus.RUNNING:
                    events = runner.recover("1")
                else:
                    answers = await self._answers(await runner.pending("1"))
                    events = runner.resume("1", answers)
                async for _ in events:
                    pass
        except OVERTAKEN:
            return

    async def _answers(self, contexts: tuple[InterruptContext, ...]) -> Mapping[str, object]:
        return {context.id: await self._answer(context) for context in contexts}

    async def _answer(self, context: InterruptContext) -> object:
        """What is on record; or else people decide now."""
        case, info = self.case, context.info
        is_doubt = isinstance(info, InDoubtInfo)
        left = [choice for choice in case.doubts if not case.said(choice)] or ["give_up"]
        options = tuple(left) if is_doubt else case.verdicts
        recorded = case.decisions.get(context.id)
        outcome = await self.worker.step("decide", (recorded,) if recorded else options)
        # Somebody else may have been faster: the record counts.
        said = case.decisions.setdefault(context.id, outcome)
        self.worker.saw(said)
        if is_doubt:
            return InDoubtResult(choice=said)  # type: ignore[arg-type]
        assert isinstance(info, ReviewEditInfo)
        match said:
            case "approve":
                return info.accept(by="U1")
            case "edit":
                return info.edit(EDITED, by="U1")
            case "reject":
                return info.reject("no", by="U1")
            case _:
                return Expired(waited="8 hours")

    async def _pay(self, arguments: dict[str, Json]) -> str:
        await self.worker.step("pay")
        effect = Effect(str(arguments), idempotency_key())
        self.case.check_before_effect(effect)
        self.case.effects.append(effect)
        self.worker.saw("paid")
        return f"pay ok {arguments}"


def _runner(case: Case, store: object, body: object, new_id: Callable[[], str]) -> Runner:
    pay = Plain("pay", body=body, idempotent=case.is_idempotent)  # type: ignore[arg-type]
    agent = ChatModelAgent(name="A", model=FunctionModel(_model), tools=[review_edit_gate(pay)])
    return Runner(
        agent,
        checkpoint_store=store,  # type: ignore[arg-type]
        message_log=case.log,
        durability=case.durability,
        new_id=new_id,
    )


def _new_ids(version: int) -> Callable[[], str]:
    """Ids that are the same whoever makes them: of two who save at one version, one wins."""
    ids = itertools.count()
    return lambda: f"{version}-{next(ids)}"


async def _model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Answer from what was said so far: the same in any process."""
    has_result = any(part.part_kind == "tool-return" for part in messages[-1].parts)
    return ModelResponse(parts=[say("done") if has_result else call("pay", {"x": 2}, id="c1")])


class Scripted(Order):
    """One order that is told by the names of the workers; afterwards, whoever is first."""

    def __init__(self, names: str) -> None:
        super().__init__((), set(), [])
        self._names = list(names)

    def choose(self, state: Hashable, choices: Sequence[Choice]) -> Choice:
        """See `Order`."""
        name = self._names.pop(0) if self._names else choices[0][0]
        self.choices.append(next(choice for choice in choices if choice[0] == name))
        return self.choices[-1]


def _short(value: object) -> str:
    """A value in a few letters; without the time, which no step depends on."""
    return hashlib.sha256(_TIME.sub("", str(value)).encode()).hexdigest()[:16]


async def begun(case: Case) -> MemoryCheckpointStore:
    """The run as it waits for people the first time."""
    runner = _runner(case, case.store, None, _new_ids(0))
    async for _ in runner.query("hi", checkpoint_id="1", log=("L", 1)):
        pass
    return case.store


async def play(case: Case, order: Order, *groups: str) -> None:
    """Workers at once, group by group; the one of the last group lives."""

    async def state() -> Hashable:
        stored, log = await case.store.load("1"), await case.log.load("L", before_turn=2)
        known = (tuple(case.effects), tuple(case.decisions.items()), case.starts, bool(log))
        return _short(stored), known

    for names in groups:
        workers = [Worker(name, is_mortal=names != groups[-1]) for name in names]
        for worker in workers:
            worker.begin(Process(case, worker).work())
        await order.follow(workers, state)
    await case.check_end()


KINDS: list[tuple[Durability, bool]] = [
    ("step", False),
    ("interrupt", True),
    ("step", True),
    ("interrupt", False),
]
kinds = pytest.mark.parametrize(("durability", "is_idempotent"), first_rows(2, KINDS))


@kinds
async def test_i1_i5_every_order_of_two_workers_that_may_die(
    durability: Durability, is_idempotent: bool
) -> None:
    store = await begun(Case(durability, is_idempotent))

    async def run_case(order: Order) -> None:
        case = Case(durability, is_idempotent, store=copy.deepcopy(store))
        await play(case, order, "ab", "c")

    explored = await explore(run_case)
    assert explored.states > 200
    assert explored.runs > 200


@later
@kinds
async def test_i4_every_death_of_three_workers_in_turn(
    durability: Durability, is_idempotent: bool
) -> None:
    verdicts = ("approve", "edit", "reject", "expire")
    store = await begun(Case(durability, is_idempotent))
    ends: set[str] = set()

    async def run_case(order: Order) -> None:
        case = Case(durability, is_idempotent, verdicts, store=copy.deepcopy(store))
        await play(case, order, "a", "b", "c")
        assert len(case.effects) <= 1 or is_idempotent or case.said("again")
        ends.add(f"{len(case.effects)} after {' and '.join(case.decisions.values())}")

    await explore(run_case)
    assert {"0 after reject", "0 after expire", "1 after approve", "1 after edit"} <= ends
    if is_idempotent:
        assert "3 after approve" in ends
    else:
        assert {f"{n} after edit and {said}" for n in (0, 1) for said in ("ran", "give_up")} <= ends
        assert "2 after approve and again" in ends


async def test_i5_a_worker_that_was_overtaken_takes_nothing_back() -> None:
    case = Case("step", is_idempotent=False)
    await begun(case)
    # a: look, decide, claim. b: look, recover, start. a: refused, and writes no more. b: pay.
    await play(case, Scripted("aaa" + "bbb" + "a" + "b"), "ab", "c")
    assert len(case.effects) == 1
