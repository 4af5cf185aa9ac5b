"""A sandbox with a clock that is moved by hand, and a client that talks to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from slack_sandbox import OPS, ROSA, Sandbox


class Seconds:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Slack:
    """The bot's view: calls that give the answer, or the name of the error."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.client = AsyncWebClient(
            token=sandbox.bot_token, base_url=sandbox.api_url, retry_handlers=[], timeout=60
        )

    async def ok(self, method: str, **args: Any) -> dict[str, Any]:
        answer = await self.client.api_call(method, json=args)
        return dict(answer.data)  # type: ignore[arg-type]

    async def error(self, method: str, **args: Any) -> str:
        return str((await self.refused(method, **args))["error"])

    async def refused(self, method: str, **args: Any) -> dict[str, Any]:
        with pytest.raises(SlackApiError) as caught:
            await self.client.api_call(method, json=args)
        return dict(caught.value.response.data)


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


@pytest.fixture
async def sandbox(clock: Seconds) -> AsyncIterator[Sandbox]:
    async with Sandbox(clock=clock, retry_delays=()) as opened:
        yield opened


@pytest.fixture
def slack(sandbox: Sandbox) -> Slack:
    return Slack(sandbox)


@pytest.fixture
async def asked(sandbox: Sandbox) -> str:
    """The ts of a person's message in #ops."""
    return await sandbox.say(ROSA, OPS, "@countersign deploy payments")


def a_card(*, value: str = "apr_1") -> list[dict[str, Any]]:
    button = {
        "type": "button",
        "action_id": "approve",
        "value": value,
        "style": "primary",
        "text": {"type": "plain_text", "text": "Approve"},
    }
    return [
        {"type": "section", "text": {"type": "mrkdwn", "text": "Deploy payments?"}},
        {"type": "actions", "block_id": "buttons", "elements": [button]},
    ]


def a_modal(**changes: Any) -> dict[str, Any]:
    return {
        "type": "modal",
        "callback_id": "edit",
        "private_metadata": "apr_1",
        "title": {"type": "plain_text", "text": "Edit"},
        "submit": {"type": "plain_text", "text": "Run"},
        "blocks": [an_input("version"), an_input("replicas", optional=True)],
        **changes,
    }


def an_input(name: str, *, optional: bool = False) -> dict[str, Any]:
    return {
        "type": "input",
        "block_id": name,
        "optional": optional,
        "label": {"type": "plain_text", "text": name},
        "element": {"type": "plain_text_input", "action_id": "input"},
    }


@pytest.fixture
async def web(sandbox: Sandbox) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(sandbox.url) as session:
        yield session
