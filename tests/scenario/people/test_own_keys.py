"""A member connects a program in Home: the key is shown once, works, and is revoked there."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from bot.layout.action_ids import ActionId
from bot.records.programs import WARNED_MS, program_id
from bot.slack.home import view
from bot.slack.home.items import REVOKE_KEY
from bot.slack.home.settings import CHANNELS, NAME
from bot.words import say
from countersign_client import AsyncCountersign
from slack_sandbox.workspace.people import ADA, FINANCE, ROSA
from tests.scenario.test_programs_ask import a_key, until_open
from tests.support.ports import free_port
from tests.support.stage import Stage, a_stage, write_policy

KEY = re.compile(r"csk_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}")
CALL = {"command": "make"}
POLICY = f"""
version: 1
groups: {{ops: {{users: [{ADA}]}}}}
defaults: {{approve: [{{from: [ops]}}]}}
default: {{ask: {{}}}}
rules: []
"""


@asynccontextmanager
async def homes(tmp_path: Path, **environ: str) -> AsyncIterator[tuple[Stage, str]]:
    """A bot whose members make keys; the address of its API."""
    port = free_port()
    chosen = {"COUNTERSIGN_PERSONAL_KEYS": "yes", "COUNTERSIGN_API_PORT": str(port), **environ}
    async with a_stage(tmp_path, "socket", **chosen) as stage:
        yield stage, f"http://127.0.0.1:{port}"


async def home_of(stage: Stage, user: str, word: str = "") -> dict[str, Any]:
    """Open a Home, and wait until it has a text."""

    def shown() -> dict[str, Any] | None:
        home = stage.sandbox.home(user)
        return home if home is not None and word in json.dumps(home, ensure_ascii=False) else None

    stage.sandbox.open_home(user)
    return await stage.until_retried(lambda: shown() or {})


async def connect(stage: Stage, name: str, *channels: str) -> dict[str, Any]:
    """Fill in the form; its answer."""
    home = await home_of(stage, ROSA, say("button.connect"))
    await stage.sandbox.click_in_view(ROSA, home, view.CONNECT)
    form = await stage.modal("Rosa")
    values = {
        NAME: {ActionId.VALUE: {"type": "plain_text_input", "value": name}},
        CHANNELS: {
            ActionId.VALUE: {
                "type": "multi_conversations_select",
                "selected_conversations": list(channels),
            }
        },
    }
    return await stage.sandbox.submit(ROSA, form, values)


async def test_a_key_made_in_home_asks_for_its_owner_until_it_is_revoked_there(
    tmp_path: Path,
) -> None:
    async with homes(tmp_path) as (stage, url):
        answer = await connect(stage, "claude-code", stage.channel)
        text = json.dumps(answer["view"])
        (key,) = set(KEY.findall(text))
        assert url in text
        await until_open(url)
        async with AsyncCountersign(url, key) as program:
            await program.create("Run make", key="k", tool="claude.Bash", arguments=CALL)
        card = await stage.card(word=ActionId.APPROVE)
        assert "Rosa Ortiz through claude-code" in card["text"]
        await stage.click("Rosa", card, ActionId.APPROVE)  # an owner decides nothing
        await stage.whispered("Rosa", "you")

        home = await home_of(stage, ROSA, key[:12])
        assert not KEY.search(json.dumps(home))
        await stage.sandbox.click_in_view(ROSA, home, REVOKE_KEY, value=key[4:12])
        await stage.sandbox.idle()
        stage.clock.forward(minutes=2)
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http:
            assert (await http.get(f"{url}/v1/me")).json()["code"] == "key-revoked"
        entries = await stage.storage.audit.of_thread("", limit=100)
        acts = [
            (entry.action, entry.actor_id) for entry in entries if entry.action.startswith("key_")
        ]
        assert {("key_made", ROSA), ("key_revoked", ROSA)} <= {*acts}
        assert not KEY.search(str(entries))


async def test_without_a_channel_the_program_asks_in_the_direct_message(tmp_path: Path) -> None:
    path = write_policy(tmp_path, POLICY)
    async with homes(tmp_path, COUNTERSIGN_POLICY=path) as (stage, url):
        key = KEY.findall(json.dumps(await connect(stage, "laptop")))[0]
        await until_open(url)
        async with AsyncCountersign(url, key) as program:
            await program.create("Run make", key="k", tool="claude.Bash", arguments=CALL)
        direct = stage.sandbox.dm_id(ROSA)
        await stage.until(lambda: "Run make" in str(stage.sandbox.messages(direct)))
        direct = stage.sandbox.dm_id(ADA)
        await stage.until(lambda: ActionId.APPROVE in str(stage.sandbox.messages(direct)))


async def test_a_member_chooses_channels_that_they_and_the_bot_are_in(tmp_path: Path) -> None:
    async with homes(tmp_path) as (stage, _):
        stage.sandbox.workspace.channels[FINANCE].is_private = True
        stage.sandbox.leave(ROSA, FINANCE)
        for name, channel, fault in (
            ("laptop", FINANCE, say("error.program_channel")),
            ("laptop", "C0NOWHERE", say("error.program_channel")),
            ("My laptop", stage.channel, say("error.program_name")),
            ("personal/u1/x", stage.channel, say("error.program_name")),
        ):
            answer = await connect(stage, name, channel)
            assert answer["errors"] == {NAME: fault}
        assert await stage.storage.programs.all_keys() == []


async def test_nobody_revokes_the_key_of_another_person(tmp_path: Path) -> None:
    async with homes(tmp_path) as (stage, _):
        await a_key(stage, owner="Ada", is_personal=True)
        (key,) = await stage.storage.programs.all_keys()
        await connect(stage, "laptop", stage.channel)
        home = await home_of(stage, ROSA, say("button.revoke"))
        await stage.sandbox.click_in_view(ROSA, home, REVOKE_KEY, value=key.id)
        await stage.sandbox.idle()
        (kept,) = await stage.storage.programs.keys_of(program_id("ci"))
        assert kept.revoked_ms is None


async def test_home_has_no_keys_unless_the_operator_allows_them(tmp_path: Path) -> None:
    async with homes(tmp_path, COUNTERSIGN_PERSONAL_KEYS="no") as (stage, _):
        home = await home_of(stage, ROSA, say("home.settings"))
        assert view.CONNECT not in json.dumps(home)


async def test_the_owner_sees_that_the_last_key_of_a_program_ends(tmp_path: Path) -> None:
    async with homes(tmp_path, COUNTERSIGN_PERSONAL_KEYS="no") as (stage, _):
        await a_key(stage, owner="Rosa")
        (key,) = await stage.storage.programs.all_keys()
        stage.clock.forward(seconds=(key.ends_ms - WARNED_MS - stage.clock()) / 1_000 + 1)
        await home_of(stage, ROSA, "The last key of ci ends")
