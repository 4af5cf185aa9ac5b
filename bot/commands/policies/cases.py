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
from bot.commands.simulation.models import Data
from bot.commands.simulation.runner import examine, is_played
from bot.errors import BotError
from bot.policy.parser.lookups import SlackFacts


class CasesDifferError(BotError):
    """Some cases differ from their expectations."""


async def execute(call: Call) -> None:
    """Run the command."""
    file = read_case_file(Path(call.arguments.cases))
    file.cases({})  # report faults of the cases first: the policy is checked against their world
    slack = SlackFacts(lookups=WorldLookups(world=file.world), bot_user_id=BOT)
    policy = await check_file(Path(call.arguments.file), policy_world(file.world), slack, call.say)
    cases = file.cases(cast(Data, policy.root.plain()))
    played = [case for case in cases if is_played(case)]
    differing = 0
    with _silent():
        for case in played:
            differences = await examine(case)
            differing += bool(differences)
            for one in differences:
                call.say(str(one))
    if left := [case.id for case in cases if not is_played(case)]:
        call.say(f"skipped, unknown kind: {', '.join(left)}")
    if differing:
        raise CasesDifferError(f"{differing} of {len(played)} cases failed")
    call.say(f"{len(played)} {'case' if len(played) == 1 else 'cases'} passed")


@contextmanager
def _silent() -> Iterator[None]:
    """Suppress the log of the simulated bot: cases cause many errors on purpose."""
    handler, log = logging.NullHandler(), logging.getLogger()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
