"""Keys of calls after the store went back to a copy: none is that of another call (epochs)."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

import pytest

from agents import MemoryCheckpointStore, approval_gate, idempotency_key
from agents.core.codec import Json
from agents.models import Turn, call, say
from agents.runs.document import Claim, RunDocument
from tests.unit.agents.support import Died, Plain, World, yes

SCRIPT: list[Turn] = [
    call("pay", {"x": 1}, id="c1"),
    call("pay", {"x": 2}, id="c2"),
    say("done"),
]
"""Each life of a run gives its calls the same ids."""


@dataclass
class Till:
    """A tool that keeps the keys of its calls.

    Attributes:
        keys: By the number that was paid.
    """

    keys: dict[object, list[str]] = field(default_factory=dict)
    dies: bool = False

    def __call__(self, arguments: dict[str, Json]) -> str:
        self.keys.setdefault(arguments["x"], []).append(idempotency_key())
        if self.dies:
            self.dies = False
            raise Died
        return "paid"

    def world(self, store: MemoryCheckpointStore, epoch: str = "", *, asked: int = 0) -> World:
        pay = Plain("pay", self, idempotent=True)
        return World(
            SCRIPT[asked:], [approval_gate(pay)], store=store, durability="step", epoch=epoch
        )


async def agree(world: World, *, times: int = 1) -> None:
    for _ in range(times):
        (waiting,) = await world.pending()
        await world.resume({waiting.id: yes(waiting)})


async def first_life(till: Till) -> MemoryCheckpointStore:
    """Run to the end; return what was stored while the first call waited."""
    world = till.world(MemoryCheckpointStore())
    await world.run()
    kept = copy.deepcopy(world.store)
    await agree(world, times=2)
    assert isinstance(kept, MemoryCheckpointStore)
    return kept


async def test_a_run_that_is_begun_again_has_other_keys_in_a_new_epoch() -> None:
    till = Till()
    for epoch in ("", "2", "3"):
        world = till.world(MemoryCheckpointStore(), epoch)
        await world.run()
        await agree(world, times=2)
    assert len({*till.keys[1], *till.keys[2]}) == 6


async def test_what_waited_keeps_its_key_and_what_is_asked_later_has_another() -> None:
    till = Till()
    kept = await first_life(till)

    world = till.world(kept, "2", asked=1)
    await agree(world, times=2)

    assert len(till.keys[1]) == 2
    assert len({*till.keys[1]}) == 1  # the same call: an outside system knows it again
    assert len({*till.keys[1], *till.keys[2]}) == 3


async def test_each_era_has_keys_of_its_own_also_within_one_run() -> None:
    till = Till()
    kept = await first_life(till)
    second = till.world(kept, "2", asked=1)
    await agree(second)
    kept = copy.deepcopy(kept)  # the second call waits, which was asked in the second epoch
    await agree(second)

    third = till.world(kept, "3", asked=2)
    await agree(third)

    assert len(till.keys[2]) == 3
    assert till.keys[2][1] == till.keys[2][2] != till.keys[2][0]


@pytest.mark.parametrize("epoch", ["2", ""])
async def test_a_call_that_runs_again_after_a_crash_has_the_same_key(epoch: str) -> None:
    till = Till()
    kept = await first_life(till)
    world = till.world(kept, "2", asked=1)
    await agree(world)
    till.dies = True
    with pytest.raises(Died):
        await agree(world)

    await till.world(kept, epoch, asked=2).recover()

    assert len(till.keys[2]) == 3
    assert till.keys[2][1] == till.keys[2][2] != till.keys[2][0]


def test_the_first_era_leaves_no_trace_in_what_is_stored() -> None:
    document = RunDocument(agent="A", messages=())
    assert "epoch" not in document.to_text()
    assert "epoch" not in Claim().to_text()
    later = document.in_epoch("2")
    assert RunDocument.from_text(later.to_text()) == later
    assert later.in_epoch("2") is later
    assert Claim.from_text(replace(Claim(), epoch="2").to_text()).epoch == "2"
