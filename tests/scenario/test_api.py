"""The whole bot, Slack's stand-in, and a program with a key (checks 1, 3, 6, 10, 13, 15, 35)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.commands.cli import main
from bot.layout.action_ids import ActionId
from countersign_client import AsyncCountersign, DigestMismatch, NotStarted, Rejected
from slack_sandbox import ADA, OPS, ROSA
from tests.support.ports import free_port
from tests.support.stage import Stage, a_stage

POLICY = f"""\
version: 1
groups:
  ops: {{users: [{ADA}]}}
defaults: {{approve: [{{from: [ops]}}]}}
rules:
  - {{name: harmless, when: {{tool: restart}}, then: allow}}
  - {{name: ci, when: {{program: "ci-*", tool: lint}}, then: allow}}
  - {{name: never, when: {{program: "*", tool: drop}}, then: {{deny: Never.}}}}
default: {{ask: {{}}}}
"""
CALL: dict[str, Any] = {"env": "production"}


@dataclass
class World:
    """A stage with a program.

    Attributes:
        key: The program's key.
        url: Address of the API.
    """

    stage: Stage
    key: str
    url: str

    def client(self) -> AsyncCountersign:
        return AsyncCountersign(self.url, self.key)

    async def approve(self, title: str) -> None:
        card = await self.stage.card(word=title)
        await self.stage.click("Ada", card, ActionId.APPROVE)


@asynccontextmanager
async def a_world(tmp_path: Path) -> AsyncIterator[World]:
    path, port = tmp_path / "policy.yaml", free_port()
    path.write_text(POLICY, encoding="utf-8")
    async with a_stage(tmp_path, "socket", COUNTERSIGN_POLICY=str(path)) as stage:
        said: list[str] = []
        settings = stage.settings()
        environ = {
            **stage.environ,
            "SLACK_BOT_TOKEN": settings.slack_bot_token.get_secret_value(),
            "SLACK_APP_TOKEN": "xapp-stage-app-token",
            "SLACK_API_URL": settings.slack_api_url,
        }
        create = ("keys", "create", "ci-7", "--owner", ROSA, "--tool", "*", "--channel", OPS)
        assert await asyncio.to_thread(main, create, environ=environ, say=said.append) == 0
        await stage.stop_bot()
        await stage.start_bot(COUNTERSIGN_API_PORT=str(port))
        yield World(stage, said[-1], f"http://127.0.0.1:{port}")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as made:
        yield made


async def test_a_program_runs_what_a_person_approved(world: World) -> None:
    async with world.client() as cs:
        asking = asyncio.create_task(
            cs.approve("Deploy payments", key="build-1", tool="deploy", arguments=CALL)
        )
        await world.approve("Deploy payments")
        done = await asking
        decision = done.approved()
        assert [person.id for person in decision.by] == [ADA]
        async with cs.execute(done) as run:
            assert run.arguments == CALL
            run.summary = "3 pods healthy"
        ended = await cs.get(done.id)
        assert (ended.execution.state, ended.execution.summary) == ("ran", "3 pods healthy")
        with pytest.raises(NotStarted):
            async with cs.execute(done):
                raise AssertionError("it ran twice")
        again = await cs.approve("Deploy payments", key="build-1", tool="deploy", arguments=CALL)
        assert again.id == done.id


async def test_a_rejection_a_rule_and_a_withdrawal_are_told_apart(world: World) -> None:
    async with world.client() as cs:
        asking = asyncio.create_task(
            cs.approve("Delete backups", key="k1", tool="backups.delete", arguments={})
        )
        card = await world.stage.card(word="Delete backups")
        await world.stage.click("Ada", card, ActionId.REJECT)
        modal = await world.stage.modal("Ada")
        await world.stage.sandbox.submit(ADA, modal, {"canned": "later"})
        with pytest.raises(Rejected):
            await asking
        with pytest.raises(Rejected) as denied:
            await cs.approve("Drop it", key="k2", tool="drop", arguments={})
        assert denied.value.request.decision is not None
        assert denied.value.request.decision.source == "policy"
        allowed = await cs.approve("Lint", key="k3", tool="lint", arguments={})
        assert allowed.approved().source == "policy"
        asked = await cs.create("Restart", key="k4", tool="restart", arguments={})
        assert asked.status == "pending"  # the rule does not name programs
        assert (await cs.cancel(asked, "Not needed.")).status == "cancelled"


async def test_what_was_not_approved_does_not_start(world: World) -> None:
    async with world.client() as cs:
        asking = asyncio.create_task(
            cs.approve("Deploy once", key="k", tool="deploy", arguments=CALL)
        )
        await world.approve("Deploy once")
        done = await asking
        with pytest.raises(DigestMismatch):
            done.check("deploy", {"env": "staging"})


async def test_a_caller_that_waits_through_a_restart_gets_the_decision(world: World) -> None:
    """Check 6: the bot stops and starts again while a program waits."""
    async with world.client() as cs:
        asking = asyncio.create_task(
            cs.approve("Deploy slowly", key="k", tool="deploy", arguments=CALL)
        )
        await world.stage.card(word="Deploy slowly")
        await world.stage.stop_bot()
        await world.stage.start_bot()
        await world.approve("Deploy slowly")
        assert (await asking).status == "approved"


async def test_a_port_without_a_key_opens_nothing(tmp_path: Path) -> None:
    port = free_port()
    async with a_stage(tmp_path, "socket", COUNTERSIGN_API_PORT=str(port)):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
