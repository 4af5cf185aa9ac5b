"""Programs, webhooks and schedules start agents of the real bot, in the stand-in for Slack."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from standardwebhooks import Webhook

from bot.layout.action_ids import ActionId
from bot.records.programs import ProgramScope
from slack_sandbox.workspace.people import ADA, OPS, ROSA
from tests.scenario.test_programs_ask import a_door
from tests.support.stage import APPROVE, Stage

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
QUICK_S = 0.2
"""Most processor time of an answer to a webhook, of the bot and its caller, in seconds."""


def agents_file(tmp_path: Path) -> str:
    secret = tmp_path / "pager"
    secret.write_text(SECRET)
    path = tmp_path / "countersign.yaml"
    path.write_text(
        f"""
version: 1
agents:
  ops: {{use: "tests.scenario.agents:sender", channels: ["*"]}}
triggers:
  pager:
    channel: {OPS}
    owner: {ROSA}
    verify: {{kind: standard-webhooks, secret_file: {secret}}}
    title: "Alert: {{alert.name}}"
    text: "{{alert.text}}"
    key: "{{alert.id}}"
"""
    )
    return str(path)


def signed(body: bytes, name: str) -> dict[str, str]:
    now = datetime.now(UTC)
    signature = Webhook(SECRET).sign(name, now, body.decode())
    return {
        "webhook-id": name,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signature,
        "Content-Type": "application/json",
    }


def begun(stage: Stage) -> list[str]:
    """First messages of threads that no person started."""
    texts = [str(message["text"]) for message in stage.messages()]
    return [text for text in texts if text.startswith("Started by")]


def with_button(stage: Stage, action_id: str) -> list[dict[str, Any]]:
    """Messages with a button."""
    return [message for message in stage.messages() if action_id in str(message["blocks"])]


async def until_status(http: httpx.AsyncClient, at: str, status: str) -> dict[str, Any]:
    """Wait as a program does, until a thread has a status."""
    after = 0
    while True:
        body: dict[str, Any] = (await http.get(f"{at}?wait=10&after={after}")).json()
        if body["status"] == status:
            return body
        after = body["revision"]


async def test_a_program_starts_an_agent_and_its_owner_approves_nothing(tmp_path: Path) -> None:
    """Checks 49 and 50."""
    environ = {"COUNTERSIGN_AGENT": "tests.scenario.agents:sender"}
    async with a_door(tmp_path, (ProgramScope.THREADS,), **environ) as (stage, url, key):
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "alert-1"}
        async with httpx.AsyncClient(base_url=url, headers=headers) as http:
            body = {"title": "Payments p99 is high", "text": "deploy payments 1.4.2 to production"}
            made = (await http.post("/v1/threads", json=body)).json()
            card = await stage.card(word=APPROVE)
            assert "the program ci (of Rosa" in card["text"]
            waiting = await until_status(http, f"/v1/threads/{made['id']}", "waiting")
            assert len(waiting["pending"]) == 1
            again = await http.post("/v1/threads", json=body)
            assert (again.status_code, again.json()["id"]) == (200, made["id"])
            await stage.click("Rosa", card, APPROVE)
            await stage.whispered("Rosa", "you")
            await stage.click("Ada", card, APPROVE)
            ended = (await http.get(f"/v1/threads/{made['id']}?wait=10")).json()
            assert (ended["status"], ended["last_text"]) == ("done", "Sent.")
            link = await http.get(f"/t/{made['id']}")
            assert link.status_code == 302
        (root,) = begun(stage)
        assert root.startswith("Started by the program ci (of Rosa")


async def test_a_webhook_starts_an_agent_within_200_ms(tmp_path: Path) -> None:
    """Checks 49 and 51."""
    path = agents_file(tmp_path)
    async with a_door(tmp_path, COUNTERSIGN_AGENTS_FILE=path) as (stage, url, _):
        at = f"{url}/v1/triggers/pager"
        async with httpx.AsyncClient() as http:
            refused = [
                await http.post(at, content=b"{}", headers=headers)
                for headers in (
                    {},
                    {**signed(b"{}", "m0"), "webhook-id": "m1"},
                    signed(b"[]", "m0"),
                )
            ]
            assert {answer.status_code for answer in refused} == {401}
            took: list[float] = []
            for number in range(3):
                text = f"deploy payments 1.4.{number} to production"
                alert = {"id": f"a{number}", "name": "latency", "text": text}
                body = json.dumps({"alert": alert}).encode()
                began = time.process_time()
                taken = await http.post(at, content=body, headers=signed(body, f"m{number}"))
                took.append(time.process_time() - began)
                assert taken.status_code == 202
            assert min(took) <= QUICK_S
        await stage.card(word=APPROVE)
        await stage.until(lambda: len(begun(stage)) == 3)
        assert "the trigger pager" in begun(stage)[0]


async def test_its_owner_lets_a_held_trigger_run_again(tmp_path: Path) -> None:
    """9, row 22."""
    async with a_door(
        tmp_path, COUNTERSIGN_AGENTS_FILE=agents_file(tmp_path), COUNTERSIGN_APPROVERS=ADA
    ) as (stage, url, _):
        async with httpx.AsyncClient(base_url=url) as http:

            async def fire(number: int) -> int:
                alert = {
                    "id": f"a{number}",
                    "name": "latency",
                    "text": "deploy payments 1.4.2 to production",
                }
                body = json.dumps({"alert": alert}).encode()
                headers = signed(body, f"m{number}")
                return (
                    await http.post("/v1/triggers/pager", content=body, headers=headers)
                ).status_code

            assert [await fire(number) for number in range(5)] == [202, 202, 202, 429, 429]
            (held,) = await stage.until(lambda: with_button(stage, ActionId.LET_RUN))
            assert held["text"].startswith("Held: the trigger pager")
            await stage.click("Ben", held, ActionId.LET_RUN)
            await stage.whispered("Ben", "Only its owner")
            await stage.click("Rosa", held, ActionId.LET_RUN)
            await stage.said("let the trigger pager .* run again")
            assert await fire(5) == 202
        assert not with_button(stage, ActionId.LET_RUN)
