"""A small world of processes that start one approved call, and of people who freeze and lift.

Two processes take the thread one after the other. The first may be suspended while the second goes
on: its lease has ended, and it does not know. A start is three writes and the call: the approval,
the switch, the journal, the tool. A process may die before each of them, and after the last.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from agents.core.errors import CheckpointConflictError
from bot.approvals import changes, execution
from bot.freezes import rules
from bot.records.approval import (
    Approval,
    Decision,
    Execution,
    ExecutionState,
    ParkedCall,
    Status,
)
from bot.records.switch import Confirmation, Freeze, FreezeScope, SwitchRecord
from bot.threads import parked
from tests.model.voting import ADA, START_MS, asked, the_terms

CALL = rules.CallScope(agents=frozenset({"clerk"}), tool="pay")
STARTS, NUMBERS, JOURNALS, RUNS, ENDS = "starts", "numbers", "journals", "runs", "ends"
PEOPLE = ("UBEN", "UCLEO")
NEW, NOT_BEGUN = SwitchRecord(), Execution()


@dataclass(frozen=True, kw_only=True)
class Runner:
    """What one process knows of the call.

    Attributes:
        name: Name of the process.
        fence: Fencing token of its lease.
        switch: The switch as it was read; None before.
        step: What it does next.
        begun: Its start, as it stored that.
    """

    name: str
    fence: int
    switch: SwitchRecord | None = None
    step: str = STARTS
    begun: Execution = NOT_BEGUN


@dataclass(frozen=True, kw_only=True)
class StartingWorld:
    """The stored records, and the moves that are left.

    Attributes:
        approval: As it is stored.
        switch: As it is stored.
        runners: The processes that work on the call, or believe that they do.
        fence: Fencing token of the newest lease.
        claims: How often the thread may still be claimed.
        deaths: How often a process may still die.
        freezes: How often people may still freeze.
        lifts: How often they may still lift.
        is_due: Whether the thread has work.
        parked_by: The freezes that the thread waits for.
        is_begun: Whether the start is in the journal.
        ran: How often the call ran.
        late: Whether a start got its number while a confirmed freeze held.
        ages: Whether the decision may still become too old to let the call start.
        is_old: Whether it has become too old.
    """

    approval: Approval
    switch: SwitchRecord = NEW
    runners: tuple[Runner, ...] = ()
    fence: int = 0
    claims: int = 3
    deaths: int = 1
    freezes: int = 2
    lifts: int = 2
    is_due: bool = True
    parked_by: str = ""
    is_begun: bool = False
    ran: int = 0
    late: bool = False
    ages: bool = True
    is_old: bool = False

    def key(self) -> Hashable:
        """Return what tells this world from others."""
        runners = tuple(
            (runner.fence, runner.switch and _switch(runner.switch), runner.step)
            for runner in self.runners
        )
        state = self.approval.execution
        rest = tuple(vars(self).values())[3:]
        return state.state, state.fence, state.parked, _switch(self.switch), runners, rest

    def wrong(self) -> str:
        """Return which invariant does not hold; empty when all hold."""
        state = self.approval.execution.state
        is_over = state in execution.ENDED or state is ExecutionState.DOUBT
        is_at_work = self.is_due or bool(self.runners)
        in_force = [freeze.id for freeze in self.switch.freezes]
        is_woken = bool(self.parked_by) and parked.may_go_on(self.parked_by, in_force)
        waits = bool(self.parked_by) and rules.covering(self.switch, CALL) is not None
        faults = {
            "a call got its number under a confirmed freeze": self.late,
            "a call ran twice": self.ran > 1,
            "a call ran that was not journaled": bool(self.ran) and not self.is_begun,
            "a call that began can be taken back": (
                self.is_begun and execution.can_take_back(self.approval)
            ),
            "a call that began has lapsed": self.is_begun and state is ExecutionState.LAPSED,
            "a call was lost": not (is_over or is_at_work or waits or is_woken),
        }
        return next((what for what, is_so in faults.items() if is_so), "")


def _approved() -> Approval:
    approval = asked(the_terms(1))
    decision = Decision(status=Status.APPROVED, by=ADA, at_ms=START_MS, digest=approval.digest)
    decided = changes.decided(approval, decision, digest=approval.digest)
    assert decided is not None
    return decided


APPROVED = _approved()


def _switch(switch: SwitchRecord) -> Hashable:
    freezes = tuple((freeze.id, str(freeze.scope)) for freeze in switch.freezes)
    return freezes, switch.starts, switch.revision


def moves(world: StartingWorld) -> Iterator[tuple[str, StartingWorld]]:
    """Return all that can happen next."""
    yield from _people(world)
    if world.ages:
        yield "the decision becomes too old", replace(world, ages=False, is_old=True)
    in_force = [freeze.id for freeze in world.switch.freezes]
    if world.parked_by and parked.may_go_on(world.parked_by, in_force):
        yield "the thread is woken", replace(world, parked_by="", is_due=True)
    state = world.approval.execution.state
    is_over = state in execution.ENDED or state is ExecutionState.DOUBT
    if world.is_due and world.claims and len(world.runners) < 2 and not is_over:
        yield from _claim(world)
    for place, runner in enumerate(world.runners):
        others = world.runners[:place] + world.runners[place + 1 :]
        if world.deaths:
            yield (
                f"{runner.name} dies",
                replace(world, runners=others, deaths=world.deaths - 1),
            )
        step = {STARTS: _start, NUMBERS: _number, JOURNALS: _journal, RUNS: _run, ENDS: _end}
        for name, new in step[runner.step](replace(world, runners=others), runner):
            yield f"{runner.name} {name}", new


def _people(world: StartingWorld) -> Iterator[tuple[str, StartingWorld]]:
    if world.freezes:
        number = 2 - world.freezes
        scope = (
            FreezeScope()
            if number
            else FreezeScope.model_validate({"kind": "tool", "name": "pay"}, strict=False)
        )
        new = Freeze(id="", scope=scope, by=PEOPLE[0], why="because", since_ms=START_MS)
        frozen = rules.frozen(world.switch, new)
        yield (
            f"people freeze {scope}",
            replace(world, switch=_written(world.switch, frozen), freezes=world.freezes - 1),
        )
    if world.lifts and world.switch.freezes:
        wish = Confirmation(by=PEOPLE[1], why="over", at_ms=START_MS)
        freeze_id = world.switch.freezes[0].id
        lifted = rules.lifted(world.switch, freeze_id, wish, count=1)
        yield (
            f"people lift {freeze_id}",
            replace(world, switch=_written(world.switch, lifted), lifts=world.lifts - 1),
        )


def _claim(world: StartingWorld) -> Iterator[tuple[str, StartingWorld]]:
    """A process takes the thread. A start that is in the journal is in doubt."""
    fence, claims = world.fence + 1, world.claims - 1
    new = replace(world, fence=fence, claims=claims)
    if world.is_begun:
        after = _outcome(new, fence, ExecutionState.DOUBT)
        yield "a process finds the start in the journal", replace(after, is_due=False)
        return
    runner = Runner(name=f"process {fence}", fence=fence)
    yield f"{runner.name} takes the thread", replace(new, runners=(*world.runners, runner))


def _start(world: StartingWorld, runner: Runner) -> Iterator[tuple[str, StartingWorld]]:
    age_ms = world.approval.terms.max_age_s * 1_000 + 1 if world.is_old else 0
    facts = execution.StartFacts(now_ms=START_MS + age_ms, runner=runner.name, fence=runner.fence)
    try:
        begun = execution.started(world.approval, facts)
    except CheckpointConflictError:
        yield "is told that it has lost the thread", world
        return
    if begun is None:
        yield "may not start it", _outcome(world, runner.fence, ExecutionState.LAPSED)
        return
    after = _stored(world, begun)
    runner = replace(runner, begun=begun.execution)
    yield "says on the approval that it starts", _with(after, runner, step=NUMBERS)


def _number(world: StartingWorld, runner: Runner) -> Iterator[tuple[str, StartingWorld]]:
    """Read the switch, and write it if nobody else did."""
    known = runner.switch
    if known is None:
        yield "reads the switch", _with(world, runner, switch=world.switch)
        return
    freeze = rules.covering(known, CALL)
    if freeze is not None:
        yield "meets a freeze", _park(world, runner, freeze)
    elif known.revision != world.switch.revision:
        yield "lost the write", _with(world, runner, switch=None)
    else:
        numbered = world.switch.changed(starts=world.switch.starts + 1)
        is_late = any(rules.covers(freeze.scope, CALL) for freeze in world.switch.freezes)
        after = replace(world, switch=_written(world.switch, numbered), late=world.late or is_late)
        yield "takes a number", _with(after, runner, step=JOURNALS)


def _park(world: StartingWorld, runner: Runner, freeze: Freeze) -> StartingWorld:
    """Store that the call waits; the thread is released by the newest lease alone."""
    waits = ParkedCall(freeze=freeze.id, by=freeze.by, why=freeze.why, since_ms=START_MS)
    new = execution.parked(world.approval, waits, begun=runner.begun, now_ms=START_MS)
    after = _stored(world, new)
    if runner.fence != world.fence:
        return after
    return replace(after, parked_by=freeze.id, is_due=False)


def _journal(world: StartingWorld, runner: Runner) -> Iterator[tuple[str, StartingWorld]]:
    """Append the start; the store takes it from the newest lease alone."""
    if runner.fence != world.fence:
        yield "has lost the thread", world
        return
    yield "journals the start", _with(replace(world, is_begun=True), runner, step=RUNS)


def _run(world: StartingWorld, runner: Runner) -> Iterator[tuple[str, StartingWorld]]:
    yield "runs the call", _with(replace(world, ran=world.ran + 1), runner, step=ENDS)


def _end(world: StartingWorld, runner: Runner) -> Iterator[tuple[str, StartingWorld]]:
    if runner.fence != world.fence:
        yield "has lost the thread", world
        return
    yield (
        "stores the end",
        replace(_outcome(world, runner.fence, ExecutionState.ENDED), is_due=False),
    )


def _outcome(world: StartingWorld, fence: int, state: ExecutionState) -> StartingWorld:
    with suppress(CheckpointConflictError):
        new = execution.with_outcome(world.approval, state, fence=fence, now_ms=START_MS)
        return _stored(world, new)
    return world


def _with(world: StartingWorld, runner: Runner, **changed: object) -> StartingWorld:
    return replace(world, runners=(*world.runners, replace(runner, **changed)))  # type: ignore[arg-type]


def _stored(world: StartingWorld, approval: Approval | None) -> StartingWorld:
    if approval is None:
        return world
    return replace(world, approval=approval)


def _written(before: SwitchRecord, after: SwitchRecord) -> SwitchRecord:
    return after.changed(revision=before.revision + 1, acts=())
