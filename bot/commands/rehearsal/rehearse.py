"""Rehearses one flow from an empty database on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from bot.commands.rehearsal.acts import Acts
from bot.commands.rehearsal.agents import Script, actors
from bot.commands.rehearsal.cases import Case
from bot.commands.rehearsal.observed import Watcher
from bot.commands.rehearsal.play import Difference, Flow
from bot.commands.rehearsal.stage import StageClock, Theatre, joined
from bot.policy.judging.evaluate import Rulebook
from bot.policy.model import PolicyFile
from bot.questions.record import Rules
from storage.base import Storage

NOBODY = Rules(
    approvers=("U0NOBODY",),
    self_approval=False,
    remind_after=timedelta(minutes=15),
    expire_after=timedelta(hours=8),
)
"""The settings of a rehearsal: whatever is asked without a policy can be decided by nobody."""


@dataclass
class PolicyOnStage:
    """The policy in force, as the case puts it there."""

    rulebook: Rulebook
    file_hash: str = ""
    is_settings: bool = False


async def rehearse(case: Case, storage: Storage) -> list[Difference]:
    """Play a flow; return what was not as it expects.

    Args:
        case: A flow.
        storage: Open and empty.

    Raises:
        CaseError: The case cannot be played as it is written.
    """
    requests = [one["request"] for one in case.data["timeline"] if "request" in one]
    script = Script()
    agents = actors(script, case.world, requests)
    name = next((str(one["agent"]) for one in requests if "agent" in one), case.world.agents[0])
    held = PolicyOnStage(Rulebook(PolicyFile.model_validate(case.policy)))

    async def swap(value: object) -> None:
        if isinstance(value, dict) and value.get("broken"):
            return
        held.rulebook = Rulebook(PolicyFile.model_validate(case.policy_named(value)))

    theatre = Theatre(
        storage=storage,
        world=case.world,
        clock=StageClock(case.start_ms),
        make=lambda one, owner: joined(
            one, owner, agents={"*": agents[name]}, rules=NOBODY, policy=lambda: held
        ),
    )
    acts = Acts(case=case, stage=theatre, script=script, swap_policy=swap)
    flow = Flow(case=case, acts=acts, watcher=Watcher(theatre, case.start_ms), script=script)
    try:
        return await flow.play()
    finally:
        await theatre.settle()
