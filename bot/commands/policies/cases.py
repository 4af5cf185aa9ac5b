"""`countersign policy test`: run cases against a policy file."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from bot.commands.call import Call
from bot.commands.policy import check_file
from bot.commands.simulation.cases import read_case_file
from bot.commands.simulation.known import BOT, WorldLookups, policy_world
from bot.commands.simulation.models import CaseError, Data
from bot.commands.simulation.runner import examine
from bot.errors import BotError, FaultyPolicyError
from bot.policy.parser.lookups import SlackFacts


class CasesDifferError(BotError):
    """Some cases differ from their expectations."""


async def execute(call: Call) -> None:
    """Run the command."""
    try:
        file = read_case_file(Path(call.arguments.cases))
        # Report faults of the cases first: the policy is checked against their world.
        file.cases({})
    except CaseError as error:
        raise FaultyPolicyError(str(error)) from error
    slack = SlackFacts(lookups=WorldLookups(world=file.world), bot_user_id=BOT)
    policy = await check_file(Path(call.arguments.file), policy_world(file.world), slack, call.say)
    cases = file.cases(cast(Data, policy.root.plain()))
    differing = 0
    with _silent():
        for case in cases:
            differences = await examine(case)
            differing += bool(differences)
            for difference in differences:
                call.say(str(difference))
    if differing:
        raise CasesDifferError(f"{differing} of {len(cases)} cases failed")
    call.say(f"{len(cases)} {'case' if len(cases) == 1 else 'cases'} passed")


@contextmanager
def _silent() -> Iterator[None]:
    """Suppress the log of the simulated bot: cases cause many errors on purpose."""
    handler, log = logging.NullHandler(), logging.getLogger()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
