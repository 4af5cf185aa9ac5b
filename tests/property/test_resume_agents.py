"""Random agent trees, answered bit by bit, stopped and killed: nothing lost, nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import HealthCheck, given, settings, strategies as st

from agents.agent import AgentEvent, InterruptEvent, MessageEvent, ToolEvent
from agents.core.address import Address
from agents.core.asking.answers import InDoubtResult
from agents.core.asking.infos import ApprovalInfo, FollowUpInfo, InDoubtInfo, ReviewEditInfo
from agents.core.cancel import CancelInfo
from agents.core.checkpoint import CheckpointStatus, Durability
from agents.core.codec import Json
from agents.core.errors import AgentError, RunCancelledError
from agents.core.events import ToolFinished, ToolStarted
from agents.core.messages import read_log
from agents.core.observers import RunEvent, ToolOutcome
from agents.core.pending import InterruptContext, Untargeted
from agents.memory import MemoryCheckpointStore, MemoryMessageLog
from agents.runner import Runner
from agents.runs.answers import ResumeParams
from agents.tools.texts import edited_text
from tests.property.worlds.trees import Effects, Node, Planned, build, result_of, trees
from tests.unit.agents.support import Died, WatchedStore

QUICK = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class MortalStore(WatchedStore):
    """A store that takes part in the life of a process: each write is a step of it."""

    def __init__(self, inner: MemoryCheckpointStore, effects: Effects) -> None:
        super().__init__(inner)
        self._effects = effects

    def at(self, write: str, text: str, *, before: bool) -> None:
        self._effects.step()


Choose = Callable[[Sequence[InterruptContext]], Sequence[InterruptContext]]
"""Which of those that wait are answered now."""


@dataclass
class Game:
    """One run of a tree, from its start to its end, through as many processes as it takes."""

    tree: Node
    choose: Choose
    durability: Durability = "interrupt"
    untargeted: Untargeted = "preserve"
    effects: Effects = field(default_factory=Effects)
    store: MemoryCheckpointStore = field(default_factory=MemoryCheckpointStore)
    log: MemoryMessageLog = field(default_factory=MemoryMessageLog)
    answers: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    has_doubted_edit: bool = False

    def __post_init__(self) -> None:
        self.tools = {planned.name: planned for planned in self.tree.tools()}

    async def play(self) -> Game:
        for _ in range(300):
            try:
                if await self._is_over():
                    return self
            except (Died, RunCancelledError):
                self.effects.begin_process()
            except AgentError:
                if not self.effects.is_dead:  # the last words of a dying process say nothing
                    raise
                self.effects.begin_process()
        raise AssertionError("the run did not end")

    async def _is_over(self) -> bool:
        stored = await self.store.load("1")
        if stored is None:
            self.ids.clear()  # nothing was kept: it begins anew, and asks anew
            self.finished.clear()
            events = self._runner().query(
                "hi", checkpoint_id="1", log=("L", 1), cancel=self.effects.cancel
            )
        elif stored.status is CheckpointStatus.CLOSED:
            return True
        elif stored.status is CheckpointStatus.RUNNING:
            events = self._runner().recover("1", cancel=self.effects.cancel)
        else:
            params = ResumeParams(targets=await self._answers(), untargeted=self.untargeted)
            events = self._runner().resume_with_params("1", params, cancel=self.effects.cancel)
        last: AgentEvent | None = None
        async for last in events:
            self._hear(last)
        return not isinstance(last, InterruptEvent)

    def _runner(self) -> Runner:
        return Runner(
            build(self.tree, self.effects),
            checkpoint_store=MortalStore(self.store, self.effects),
            message_log=self.log,
            durability=self.durability,
            observers=[self._observe],
        )

    def _hear(self, event: AgentEvent) -> None:
        match event:
            case ToolEvent():
                line = f"{event.outcome}: {event.result}"
            case MessageEvent():
                line = f"{event.text} {[call.id for call in event.tool_calls]}"
            case _:
                return
        known = self.answers.setdefault(event.key, line)
        if known != line:
            self.effects.wrong.append(f"{event.key} was told as {known!r} and as {line!r}")

    def _observe(self, event: RunEvent) -> None:
        if isinstance(event, ToolFinished):
            planned = self.tools.get(event.call.name)  # none for a transfer
            is_gated = planned is not None and planned.is_gated
            is_approved = is_gated and event.outcome is ToolOutcome.RAN
            if is_approved or self.durability == "step" or not self.effects.dies_at:
                self.finished.add(str(event.address))
        elif isinstance(event, ToolStarted) and str(event.address) in self.finished:
            self.effects.wrong.append(f"{event.address} had finished, and began again")

    async def _answers(self) -> dict[str, object]:
        waiting = [
            context
            for context in await self._runner().pending("1")
            if not isinstance(context.info, CancelInfo)
        ]
        for context in waiting:
            if not isinstance(context.info, InDoubtInfo):
                self._check_id(context)
        return {context.id: self._answer(context) for context in self.choose(waiting)}

    def _check_id(self, context: InterruptContext) -> None:
        at = str(context.address)
        if self.untargeted == "preserve" and self.ids.setdefault(at, context.id) != context.id:
            self.effects.wrong.append(f"{at} waits on, with another id")

    def _answer(self, context: InterruptContext) -> object:
        planned = self.tools[context.address.segments[-1].id]
        if planned.runs_with is not None:
            self.effects.allowed[str(context.address)] = planned.runs_with
        match context.info:
            case InDoubtInfo() as doubt:
                return self._truth(planned, context, doubt.arguments)
            case FollowUpInfo(questions=questions):
                return f"answer to {questions[0]}"
            case ReviewEditInfo() as review if planned.verdict == "edit":
                return review.edit({"x": planned.runs_with})
            case ReviewEditInfo() as review:
                return review.accept() if planned.verdict == "approve" else review.reject("no")
            case ApprovalInfo() as approval:
                is_fine = planned.verdict == "approve"
                return approval.approve() if is_fine else approval.reject("no")
            case _:
                raise AssertionError(f"nobody should be asked {context.info}")

    def _truth(
        self, planned: Planned, context: InterruptContext, arguments: dict[str, Json]
    ) -> InDoubtResult:
        """What people find out about a call that was cut off."""
        is_edited = arguments.get("x") != planned.number
        if not self.effects.done[str(context.address)]:
            self.has_doubted_edit |= is_edited
            return InDoubtResult(choice="again")
        result = result_of(planned, arguments)
        return InDoubtResult(
            choice="ran", result=edited_text(arguments, result) if is_edited else result
        )

    @property
    def gated(self) -> dict[str, int]:
        """How often gated calls ran, by address."""
        return {at: count for at, count in self.effects.done.items() if self._is_gated(at)}

    def _is_gated(self, address: str) -> bool:
        return self.tools[Address.parse(address).segments[-1].id].is_gated


async def outcome_of(game: Game) -> tuple[dict[str, str], list[str], set[str]]:
    """What came of a run: what was told, the turn in the log, and which calls took effect."""
    turn = read_log(await game.log.load("L", before_turn=2))
    # Branches that run side by side are added to the log as they end.
    said = sorted(
        repr([(part.part_kind, getattr(part, "content", "")) for part in message.parts])
        for message in turn
    )
    return game.answers, said, set(game.effects.done)


def all_of(waiting: Sequence[InterruptContext]) -> Sequence[InterruptContext]:
    return waiting


def some_of(random: Random) -> Choose:
    def choose(waiting: Sequence[InterruptContext]) -> Sequence[InterruptContext]:
        if not waiting or random.random() < 0.3:
            return waiting
        return random.sample(waiting, random.randint(1, len(waiting)))

    return choose


@QUICK
@given(
    tree=trees(),
    random=st.randoms(use_true_random=False),
    untargeted=st.sampled_from(["preserve", "reenter"]),
)
async def test_i1_i6_answers_in_any_order_come_to_the_same(
    tree: Node, random: Random, untargeted: Untargeted
) -> None:
    at_once = await Game(tree, all_of).play()

    game = await Game(tree, some_of(random), untargeted=untargeted).play()

    assert game.effects.wrong == []
    assert await outcome_of(game) == await outcome_of(at_once)
    assert set(game.effects.done.values()) <= {1}
    assert game.gated == dict.fromkeys(game.effects.allowed.keys() & game.gated.keys(), 1)


@QUICK
@given(
    tree=trees(),
    random=st.randoms(use_true_random=False),
    dies_at=st.integers(0, 10_000),
    durability=st.sampled_from(["step", "interrupt"]),
)
async def test_i4_i5_a_process_may_die_at_any_step(
    tree: Node, random: Random, dies_at: int, durability: Durability
) -> None:
    at_once = await Game(tree, all_of, durability).play()

    effects = Effects(dies_at=1 + dies_at % max(at_once.effects.steps, 1))
    game = Game(tree, some_of(random), durability, effects=effects)
    await game.play()

    assert game.effects.wrong == []
    assert game.gated == at_once.gated
    assert set(game.effects.done) == set(at_once.effects.done)
    if not game.has_doubted_edit:  # a call that is run again is told as it ran, not as an edit
        assert await outcome_of(game) == await outcome_of(at_once)


@QUICK
@given(
    tree=trees(),
    random=st.randoms(use_true_random=False),
    stops_at=st.integers(0, 10_000),
    durability=st.sampled_from(["step", "interrupt"]),
)
async def test_151_i5_a_run_may_be_stopped_while_any_tool_works(
    tree: Node, random: Random, stops_at: int, durability: Durability
) -> None:
    at_once = await Game(tree, all_of).play()

    effects = Effects(stops_at=1 + stops_at % max(at_once.effects.done.total(), 1))
    game = Game(tree, some_of(random), durability, effects=effects)
    await game.play()

    assert game.effects.wrong == []
    assert game.gated == at_once.gated
    assert await outcome_of(game) == await outcome_of(at_once)
    again = [at for at, count in game.effects.done.items() if count > 1]
    assert len(again) <= 1  # what was cut off, if nobody had to agree to it
