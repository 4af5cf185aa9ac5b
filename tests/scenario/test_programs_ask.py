"""Programs ask the real bot through its door; people decide in the stand-in for Slack."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import which
from typing import Any

import httpx
import pytest

from bot.commands.cli import main
from bot.demo.patterns.programs import SCRIPTS, Script
from bot.records.programs import ProgramScope, new_key
from countersign_client import AsyncCountersign, Rejected, text_for_model
from tests.support.ports import free_port
from tests.support.programs.keys import add_program
from tests.support.stage import (
    APP_TOKEN,
    APPROVE,
    BOT_TOKEN,
    EDIT,
    REJECT,
    Stage,
    a_stage,
    values_of,
    write_policy,
)

ROOT = Path(__file__).parents[2]
CALL: dict[str, Any] = {"service": "payments", "version": "1.4.2"}


async def a_key(stage: Stage, owner: str = "Olga", **changes: Any) -> str:
    """Make the program `ci` and its key."""
    known = {
        "team_id": stage.sandbox.workspace.team_id,
        "owner_id": stage.user(owner),
        "channels": (stage.channel,),
        **changes,
    }
    return await add_program(stage.storage, "ci", now_ms=stage.clock(), **known)


async def until_open(url: str) -> None:
    async with httpx.AsyncClient() as http:
        while True:
            try:
                if (await http.get(f"{url}/healthz")).status_code == 200:
                    return
            except httpx.TransportError:
                await asyncio.sleep(0.05)


@asynccontextmanager
async def a_door(
    tmp_path: Path,
    scopes: tuple[ProgramScope, ...] = (ProgramScope.WRITE, ProgramScope.READ),
    **environ: str,
) -> AsyncIterator[tuple[Stage, str, str]]:
    """A bot with its door for programs open; its address, and a key."""
    port = free_port()
    async with a_stage(tmp_path, "socket", COUNTERSIGN_API_PORT=str(port), **environ) as stage:
        key = await a_key(stage, owner="Rosa", scopes=scopes)
        await stage.restart_bot()
        url = f"http://127.0.0.1:{port}"
        await until_open(url)
        yield stage, url, key


async def test_a_program_asks_people_approve_and_it_runs_once(tmp_path: Path) -> None:
    async with a_door(tmp_path) as (stage, url, key), AsyncCountersign(url, key) as program:
        asking = asyncio.create_task(
            program.approve("Deploy payments 1.4.2", key="build-7", tool="deploy", arguments=CALL)
        )
        card = await stage.card(word=APPROVE)
        assert "the program ci (of Rosa" in card["text"]
        await stage.click("Rosa", card, APPROVE)  # its owner decides nothing
        await stage.whispered("Rosa", "you")
        await stage.click("Ada", card, APPROVE)
        done = await asking
        ran: list[dict[str, Any]] = []
        async with program.execute(done) as run:
            ran.append(dict(run.arguments))
            run.summary = "3 pods"
        assert ran == [CALL]
        after = await program.get(done.id)
        assert after.execution.state == "ran"
        await stage.card(word="3 pods")
        again = await program.approve(
            "Deploy payments 1.4.2", key="build-7", tool="deploy", arguments=CALL
        )
        assert again.id == done.id


async def test_a_rejection_reaches_the_program_with_its_reason(tmp_path: Path) -> None:
    async with a_door(tmp_path) as (stage, url, key), AsyncCountersign(url, key) as program:
        asking = asyncio.create_task(
            program.approve("Drop the table", key="drop", tool="drop", arguments={"table": "t"})
        )
        card = await stage.card(word=APPROVE)
        await stage.click("Ada", card, REJECT)
        await stage.fill("Ada", in_your_own_words="Not today.")
        with pytest.raises(Rejected) as refusal:
            await asking
        assert "Not today." in text_for_model(refusal.value)


@pytest.mark.parametrize("group", [None, "build-7"])
async def test_nobody_reads_what_people_write_under_a_card(
    tmp_path: Path, group: str | None
) -> None:
    async with a_door(tmp_path) as (stage, url, key), AsyncCountersign(url, key) as program:
        await program.create("Deploy", key="k", tool="deploy", arguments=CALL, group=group)
        card = await stage.card(word=APPROVE)
        root = card.get("thread_ts", card["ts"])
        await stage.rest()
        await stage.say("Ada", "Looks good, go on.", thread_ts=root)
        answer = "Nobody reads here; the program ci only hears the decision."
        await stage.whispered("Ada", answer)
        await stage.say("Ada", "@countersign hello", thread_ts=root)
        await stage.say("Ben", "Approve", thread_ts=root)
        await stage.whispered("Ben", answer)
        await stage.rest()
        assert len(stage.sandbox.ephemerals(stage.user("Ada"))) == 1
        assert await stage.storage.threads.collection.count({}) == 0


async def test_a_request_outlives_a_restart_of_the_bot(tmp_path: Path) -> None:
    async with a_door(tmp_path) as (stage, url, key), AsyncCountersign(url, key) as program:
        made = await program.create("Deploy", key="k", tool="deploy", arguments=CALL)
        waiting = asyncio.create_task(program.wait(made))
        card = await stage.card(word=APPROVE)
        await stage.restart_bot()
        await stage.click("Ada", card, APPROVE)
        assert (await waiting).status == "approved"


async def test_a_wrong_key_asks_nobody(tmp_path: Path) -> None:
    async with a_door(tmp_path) as (stage, url, _), httpx.AsyncClient() as http:
        headers = {"Authorization": f"Bearer {new_key()}", "Idempotency-Key": "k"}
        answer = await http.post(f"{url}/v1/requests", headers=headers, json={"title": "t"})
        assert (answer.status_code, answer.json()["code"]) == (401, "key-invalid")
        await stage.rest()
        assert stage.cards() == []


POLICY = """\
version: 1
groups: {ops: {users: [U0ADALINDQ]}}
defaults: {approve: [{from: [ops]}]}
rules:
  - {name: harmless, when: {tool: restart}, then: allow}
  - {name: ci, when: {program: "c*", tool: lint}, then: allow}
  - {name: never, when: {program: "*", tool: drop}, then: {deny: Never.}}
default: {ask: {}}
"""


async def test_a_rule_decides_for_programs_only_if_it_names_them(tmp_path: Path) -> None:
    """Checks 10 and 11."""
    path = write_policy(tmp_path, POLICY)
    async with (
        a_door(tmp_path, COUNTERSIGN_POLICY=path) as (stage, url, key),
        AsyncCountersign(url, key) as program,
    ):
        allowed = await program.create("Lint", key="k1", tool="lint", arguments={})
        assert (allowed.status, allowed.approved().source) == ("approved", "policy")
        denied = await program.create("Drop", key="k2", tool="drop", arguments={})
        assert denied.decision is not None
        assert (denied.status, denied.decision.source) == ("rejected", "policy")
        asked = await program.create("Restart", key="k3", tool="restart", arguments={})
        assert asked.status == "pending"
        await stage.card(word="Restart")
        assert len(stage.cards()) == 1


async def test_a_key_of_the_command_line_opens_the_door_of_a_running_bot(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_API_PORT=str(port)) as stage:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        said: list[str] = []
        settings = stage.settings()
        environ = {
            "COUNTERSIGN_APPROVERS": stage.user("Ada"),
            "COUNTERSIGN_DATA_DIR": stage.environ["COUNTERSIGN_DATA_DIR"],
            "SLACK_API_URL": settings.slack_api_url,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
        }
        create = ("keys", "create", "ci", "--tool", "*", "--channel", stage.channel)
        argv = (*create, "--owner", stage.user("Rosa"))
        assert await asyncio.to_thread(main, argv, environ=environ, say=said.append) == 0
        await until_open(url)
        async with AsyncCountersign(url, said[-1]) as program:
            await program.create("Deploy", key="k", tool="deploy", arguments=CALL)
        await stage.card(word="Deploy")


@pytest.mark.parametrize(
    ("script", "result"),
    [("CI job", "Deploying {'service': 'payments'"), ("graph", "Refunding {'order': 1234")],
)
async def test_the_scripts_of_the_demo_ask_and_go_on(
    tmp_path: Path, script: Script, result: str
) -> None:
    async with a_door(tmp_path) as (stage, url, key):
        job = await asyncio.create_subprocess_exec(
            sys.executable,
            "-",
            env={"COUNTERSIGN_URL": url, "COUNTERSIGN_KEY": key, "BUILD": "build-1"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        running = asyncio.create_task(job.communicate(SCRIPTS[script].read_bytes()))
        card = await stage.card(word=APPROVE)
        await stage.click("Ada", card, APPROVE)
        printed, _ = await running
        assert printed.decode().startswith(result)


async def test_the_job_of_the_examples_runs_what_people_approved(tmp_path: Path) -> None:
    async with a_door(tmp_path) as (stage, url, key):
        job = await asyncio.create_subprocess_exec(
            sys.executable,
            str(ROOT / "examples" / "ci_deploy.py"),
            env={"COUNTERSIGN_URL": url, "COUNTERSIGN_KEY": key, "PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        card = await stage.card(word=APPROVE)
        assert "Deploy payments to production" in str(card)
        await stage.click("Ada", card, APPROVE)
        printed, _ = await job.communicate()
        assert (job.returncode, printed) == (0, b"Deployed payments 4711 to production\n")
        await stage.card(word="Approved by")


async def test_people_edit_a_text_of_a_command_before_it_runs(tmp_path: Path) -> None:
    async with a_door(tmp_path) as (stage, url, key):
        job = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "countersign_client.cli", "gate", "--edit", "replicas=3"),
            *("--title", "Scale the shop", "--", "echo", "scaled", "to={replicas}"),
            env={"COUNTERSIGN_URL": url, "COUNTERSIGN_KEY": key, "PATH": "/usr/bin:/bin"},
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        card = await stage.card(word=EDIT)
        assert "to={replicas}" in str(card["blocks"])
        await stage.click("Ada", card, EDIT)
        view = await stage.modal("Ada")
        labels = [block["label"]["text"] for block in view["blocks"] if block["type"] == "input"]
        assert labels == ["Replicas"]
        await stage.sandbox.submit(stage.user("Ada"), view, values_of(view, replicas="5"))
        printed, said = await job.communicate()
        assert (job.returncode, printed) == (0, b"scaled to=5\n"), said


@asynccontextmanager
async def a_shell_job(tmp_path: Path, url: str, key: str) -> AsyncIterator[asyncio.Task[int]]:
    """The shell script of the page, as it is printed there; it writes `deployed`."""
    page = (ROOT / "docs" / "how-to" / "ask-from-a-program.md").read_text(encoding="utf-8")
    script = next(text for text in page.split("```sh\n") if "jq -r .id" in text).split("```")[0]
    deploy = tmp_path / "deploy.sh"
    deploy.write_text("#!/bin/sh\necho $* > deployed\n")
    deploy.chmod(0o755)
    environ = {"COUNTERSIGN_URL": url, "COUNTERSIGN_KEY": key, "PATH": os.environ["PATH"]}
    job = await asyncio.create_subprocess_exec("sh", "-c", script, cwd=tmp_path, env=environ)
    yield asyncio.create_task(job.wait())


needs_jq = pytest.mark.skipif(not (which("curl") and which("jq")), reason="needs curl and jq")


@needs_jq
async def test_the_shell_script_of_the_page_deploys_what_people_approved(tmp_path: Path) -> None:
    """Check 2."""
    async with a_door(tmp_path) as (stage, url, key), a_shell_job(tmp_path, url, key) as job:
        card = await stage.card(word=APPROVE)
        await stage.click("Ada", card, APPROVE)
        assert await job == 0
        assert (tmp_path / "deployed").read_text() == "payments 1.4.2\n"


@needs_jq
async def test_a_server_that_stops_makes_the_shell_script_not_deploy(tmp_path: Path) -> None:
    """Check 2."""
    async with a_door(tmp_path) as (stage, url, key), a_shell_job(tmp_path, url, key) as job:
        await stage.card(word=APPROVE)
        await stage.stop_bot()
        assert await job != 0
        assert not (tmp_path / "deployed").exists()
