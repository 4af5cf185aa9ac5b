"""The demo with agents of your own: nothing of it speaks of the demo's."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.clock import MovableClock
from bot.commands.demo import try_out
from bot.config.settings import Settings
from bot.records.programs import key_id

FILE = "version: 1\nagents: {wifi: {use: 'wifi:build', channels: ['*']}}\n"


async def tried_out(directory: Path, **environ: str) -> tuple[str, set[str]]:
    """The greeting, and the names of the channels."""
    stop, said, names = asyncio.Event(), list[str](), set[str]()

    async def run_bot(
        settings: Settings, *, stop: asyncio.Event, demo: MovableClock, ready: asyncio.Event
    ) -> None:
        token = settings.slack_bot_token.get_secret_value()
        slack = AsyncWebClient(token=token, base_url=settings.slack_api_url)
        answer = await slack.conversations_list()
        names.update(channel["name"] for channel in answer["channels"])
        ready.set()
        await stop.wait()

    def say(words: str) -> None:
        said.append(words)
        stop.set()

    await try_out(
        {"COUNTERSIGN_DATA_DIR": str(directory / "data"), **environ},
        port=0,
        clock=MovableClock(),
        run_bot=run_bot,
        stop=stop,
        say=say,
    )
    return said[0], names


@pytest.mark.parametrize("is_file", [True, False])
async def test_agents_of_your_own_are_named_and_have_no_channels_of_the_demo(
    tmp_path: Path, is_file: bool
) -> None:
    file = tmp_path / "countersign.yaml"
    file.write_text(FILE)
    name = str(file) if is_file else "wifi:build"
    variable = "COUNTERSIGN_AGENTS_FILE" if is_file else "COUNTERSIGN_AGENT"

    greeting, names = await tried_out(tmp_path, **{variable: name})

    assert f"Countersign is ready, with {name}." in greeting
    assert "#approval" not in greeting
    assert "COUNTERSIGN_KEY" not in greeting
    assert "ops" in names
    assert "approval" not in names


async def test_the_agents_of_the_demo_have_theirs(tmp_path: Path) -> None:
    greeting, names = await tried_out(tmp_path)

    assert "you are Ada" in greeting
    assert re.search(r"export COUNTERSIGN_URL=http://127\.0\.0\.1:\d+$", greeting, re.MULTILINE)
    key = re.search(r"export COUNTERSIGN_KEY=(\S+)$", greeting, re.MULTILINE)
    assert key is not None
    assert key_id(key[1])
    assert names >= {"ops", "approval"}


async def test_members_make_keys_on_the_port_of_the_settings(tmp_path: Path) -> None:
    """Before, the demo took another port, and refused keys of members without one."""
    greeting, _ = await tried_out(tmp_path, COUNTERSIGN_PERSONAL_KEYS="yes")
    assert "COUNTERSIGN_URL=http://127.0.0.1:" in greeting
    greeting, _ = await tried_out(tmp_path, COUNTERSIGN_API_PORT="8099")
    assert "COUNTERSIGN_URL=http://127.0.0.1:8099\n" in greeting
