"""Whatever acts on an answer acts once, at whichever write its process dies, or people say so."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from agents import Agent, InDoubtInfo, InDoubtResult, MemoryCheckpointStore, Runner
from agents.core.checkpoint import CheckpointStatus
from tests.property.worlds.askers import ASKERS, Office
from tests.support.halves import first_rows
from tests.unit.agents.support import Died, DyingStore, collect

TWICE = {"in_parts", "in_loop", "in_before_model", "in_around_model", "in_after_model"}
"""What asks two times in a run, and acts on both answers."""


async def play(
    runner: Runner, store: MemoryCheckpointStore, choice: str, answered: set[str]
) -> int:
    """Answer "yes" to all questions until the run has ended; return how many doubts there were."""
    doubts = 0
    for _ in range(20):
        stored = await store.load("1")
        if stored is None:
            await collect(runner.query("Go.", checkpoint_id="1"))
        elif stored.status is CheckpointStatus.RUNNING:
            await collect(runner.recover("1"))
        elif stored.status is CheckpointStatus.CLOSED:
            return doubts
        else:
            asked = await runner.pending("1")
            in_doubt = {context.id for context in asked if isinstance(context.info, InDoubtInfo)}
            doubts += len(in_doubt)
            targets: dict[str, object] = dict.fromkeys((context.id for context in asked), "yes")
            answered |= {context.id for context in asked if context.is_root_cause} - in_doubt
            targets |= dict.fromkeys(in_doubt, InDoubtResult(choice=choice))  # type: ignore[arg-type]
            await collect(runner.resume("1", targets))
    pytest.fail("the run did not end")


WAYS = [
    ("step", "ran", True),
    ("step", "again", False),
    ("interrupt", "ran", False),
    ("interrupt", "again", True),
    ("step", "ran", False),
    ("step", "again", True),
    ("interrupt", "ran", True),
    ("interrupt", "again", False),
]
"""The first ones have each pair."""


@pytest.mark.parametrize(("durability", "choice", "before"), first_rows(4, WAYS))
@pytest.mark.parametrize("asker", ASKERS, ids=lambda asker: asker.__name__)
async def test_i5_what_acts_on_an_answer_acts_once_or_people_are_asked(
    asker: Callable[[Office], Agent], durability: str, choice: str, *, before: bool
) -> None:
    questions = 2 if asker.__name__ in TWICE else 1
    for at in itertools.count(1):
        office, store, has_died = Office(str), MemoryCheckpointStore(), False
        answered: set[str] = set()
        dying = DyingStore(store, at=at, before=before)
        try:
            doubts = await play(_runner(asker(office), dying, durability), store, choice, answered)
        except Died:
            has_died = True
            doubts = await play(_runner(asker(office), store, durability), store, choice, answered)
        assert len(answered) >= questions, f"write {at}: one answer was taken for another"
        acts = office.acted.count("deleted")
        if choice == "again":
            assert questions <= acts <= questions * (1 + doubts), f"write {at}"
        else:
            assert acts == questions or (acts < questions and doubts), f"write {at}"
        if not has_died:
            assert at > 2, "no write was tried"
            return


def _runner(agent: Agent, store: object, durability: str) -> Runner:
    return Runner(agent, checkpoint_store=store, durability=durability)  # type: ignore[arg-type]
