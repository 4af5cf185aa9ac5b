"""Limits of what models use: people are asked in the middle of a turn, and nothing is forgotten."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from slack_sandbox.workspace.people import ADA, BEN
from tests.scenario.storage.test_restarts import (
    Process,
    environ_of,
    stage as stage,  # noqa: PLC0414 - a fixture
)
from tests.support.halves import later
from tests.support.stage import (
    APPROVE,
    REJECT,
    Stage,
    a_stage,
    buttons,
    write_policy,
)

ADMIN = "Mia"
"""The only admin of the workspace."""
GIVE_UP = "countersign:give_up"
FILE = """\
version: 1
agents:
  watcher:
    use: tests.scenario.limit_agents:watcher
    channels: ["*"]
    limits: {{{limits}}}
"""
TOKENS = "tokens: 300 per turn"
COST = "cost: 0.30 USD per thread and day, price: {input: 1000 USD, output: 1000 USD}"  # 300 tokens
POLICY = f"""\
version: 1
timezone: Pacific/Auckland
groups:
  finance: {{users: [{BEN}]}}
  ops: {{users: [{ADA}]}}
rules:
  - name: money
    when: {{limit: cost}}
    then: {{ask: {{approve: [{{from: [finance]}}], exclude: []}}}}
  - name: words
    when: {{limit: tokens}}
    then: {{deny: Write less.}}
defaults: {{approve: [{{from: [ops]}}]}}
default: allow
"""


def file_of(tmp_path: Path, limits: str) -> dict[str, str]:
    path = tmp_path / "countersign.yaml"
    path.write_text(FILE.format(limits=limits), encoding="utf-8")
    return {"COUNTERSIGN_AGENTS_FILE": str(path)}


def live(stage: Stage) -> list[dict[str, Any]]:
    return [card for card in stage.cards() if APPROVE in buttons(card)]


async def asked(stage: Stage) -> dict[str, Any]:
    await stage.until(lambda: len(live(stage)) == 1)
    return live(stage)[0]


async def go_on_until(stage: Stage, words: str, *, by: str) -> int:
    """Approve each card until the agent has said something; return their number."""
    approved: list[str] = []

    def is_next() -> bool:
        is_said = any(re.search(words, text) for text in stage.texts())
        return is_said or any(card["ts"] not in approved for card in live(stage))

    while True:
        await stage.until(is_next)
        left = [card for card in live(stage) if card["ts"] not in approved]
        if not left:
            return len(approved)
        await stage.click(by, left[0], APPROVE)
        approved.append(left[0]["ts"])


async def test_admins_are_asked_in_the_middle_of_a_turn_and_never_the_requester(
    tmp_path: Path,
) -> None:
    async with a_stage(tmp_path, "socket", **file_of(tmp_path, TOKENS)) as stage:
        await stage.say("Rosa", "@countersign look 9")
        card = await asked(stage)
        assert "Go on with another 300 tokens" in str(card)
        assert re.search(r"This turn has used 3\d\d of 300 tokens\.", str(card))
        for person in ("Ada", "Rosa"):
            await stage.click(person, card, APPROVE)
            await stage.whispered(person, ".")
        assert await go_on_until(stage, "Looked 9 times", by=ADMIN) >= 1
        assert "Looked 9 times." in stage.texts()


async def test_i13_if_only_the_requester_could_decide_the_turn_ends_at_once(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket", **file_of(tmp_path, TOKENS)) as stage:
        await stage.say(ADMIN, "@countersign look 9")
        await stage.said("No one approved more")
        assert live(stage) == []


async def test_i4_a_restart_between_request_and_answer_forgets_nothing(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket", **file_of(tmp_path, TOKENS)) as stage:
        await stage.say("Rosa", "@countersign look 9")
        await asked(stage)
        await stage.restart_bot()
        await asked(stage)
        await go_on_until(stage, "Looked 9 times", by=ADMIN)


@pytest.mark.parametrize("end", ["reject", "expire"])
async def test_without_approval_the_turn_ends_with_a_sentence(tmp_path: Path, end: str) -> None:
    async with a_stage(tmp_path, "socket", **file_of(tmp_path, TOKENS)) as stage:
        await stage.say("Rosa", "@countersign look 9")
        card = await asked(stage)
        if end == "reject":
            await stage.click(ADMIN, card, REJECT)
            await stage.fill(ADMIN, in_your_own_words="Enough.")
        else:
            await stage.later(hours=9)
        words = await stage.said("No one approved more")
        assert re.search(r"This turn has used 3\d\d of 300 tokens\.", words)
        assert live(stage) == []


async def test_a_rule_names_who_decides_and_the_day_is_counted_over_turns(tmp_path: Path) -> None:
    environ = {**file_of(tmp_path, COST), "COUNTERSIGN_POLICY": write_policy(tmp_path, POLICY)}
    async with a_stage(tmp_path, "socket", **environ) as stage:
        root = await stage.say("Rosa", "@countersign look 1")
        await stage.said("Looked 1 times")
        await stage.rest()
        await stage.say("Rosa", "@countersign look 9", thread_ts=root)
        card = await asked(stage)
        assert re.search(r"This thread has used 0\.3\d of 0\.30 USD today\.", str(card))
        for person in ("Ada", ADMIN):
            await stage.click(person, card, APPROVE)
            await stage.whispered(person, ".")
        await go_on_until(stage, "Looked 9 times", by="Ben")
        await stage.rest()
        # Ben's words led to it, whatever the rule says of requesters.
        await stage.say("Ben", "@countersign look 9", thread_ts=root)
        await stage.said("No one approved more")


async def test_a_rule_that_denies_ends_the_turn(tmp_path: Path) -> None:
    environ = {**file_of(tmp_path, TOKENS), "COUNTERSIGN_POLICY": write_policy(tmp_path, POLICY)}
    async with a_stage(tmp_path, "socket", **environ) as stage:
        await stage.say("Rosa", "@countersign look 9")
        words = await stage.said("No one approved more")
        assert "Write less." in words
        assert stage.cards() == []


async def test_a_new_day_begins_at_nothing(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket", **file_of(tmp_path, COST)) as stage:
        root = await stage.say("Rosa", "@countersign look 9")
        await go_on_until(stage, "Looked 9 times", by=ADMIN)
        cards = len(stage.cards())
        assert cards >= 1
        await stage.later(hours=25)
        await stage.say("Rosa", "@countersign look 0", thread_ts=root)
        await stage.said("Looked 0 times")
        assert len(stage.cards()) == cards


@later
async def test_i4_a_killed_process_forgets_neither_use_nor_request(
    stage: Stage, tmp_path: Path
) -> None:
    environ = environ_of(stage.sandbox, tmp_path / "data") | file_of(tmp_path, TOKENS)
    process = Process(environ, tmp_path / "log")
    await process.start()
    await stage.say("Rosa", "@countersign look 9")
    await asked(stage)
    process.kill()
    await process.start()
    await asked(stage)
    await go_on_until(stage, "Looked 9 times", by=ADMIN)
    process.close()


async def test_i5_people_are_asked_about_a_call_at_its_time_limit(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket", **file_of(tmp_path, "tokens: 9M per turn")) as stage:
        await stage.say("Rosa", "@countersign copy orders")
        await stage.click("Ada", await asked(stage), APPROVE)
        await stage.until(lambda: GIVE_UP in buttons(stage.messages()[-1]))
        card = stage.messages()[-1]
        assert "It didn't finish within its limit of 1s. Check, then choose below." in str(card)
        assert "May have run" in str(stage.cards()[0])
        await stage.click("Ada", card, GIVE_UP)
        await stage.said("did not finish within its limit of 0.05 seconds")
