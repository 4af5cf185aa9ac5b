"""Calls: tokens, scopes, unknown methods, what is remembered, what can be made to fail."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.config import manifest
from slack_sandbox import BOT_USER, DEFAULT_SCOPES, OPS, Sandbox
from slack_sandbox.api.methods import METHODS
from tests.unit.slack_sandbox.conftest import Slack


async def test_auth_test_names_the_bot_and_its_scopes(slack: Slack, sandbox: Sandbox) -> None:
    answer = await slack.client.auth_test()
    assert answer["user_id"] == BOT_USER
    assert answer.headers["x-oauth-scopes"] == ",".join(sorted(sandbox.scopes))


@pytest.mark.parametrize(
    ("token", "error"),
    [("xoxb-other", "invalid_auth"), (None, "not_authed"), ("app", "not_allowed_token_type")],
)
async def test_token_is_checked(sandbox: Sandbox, token: str | None, error: str) -> None:
    known = sandbox.app_token if token == "app" else token
    client = AsyncWebClient(token=known, base_url=sandbox.api_url)
    with pytest.raises(SlackApiError) as caught:
        await client.auth_test()
    assert caught.value.response["error"] == error


async def test_socket_needs_the_app_token(slack: Slack) -> None:
    assert await slack.error("apps.connections.open") == "not_allowed_token_type"


async def test_unknown_method(slack: Slack) -> None:
    assert await slack.error("chat.shout") == "unknown_method"


SCOPED = sorted((name, scopes) for name, (scopes, _) in METHODS.items() if scopes)


@pytest.mark.parametrize(("method", "scopes"), SCOPED)
async def test_missing_scope(
    slack: Slack, sandbox: Sandbox, method: str, scopes: tuple[str, ...]
) -> None:
    sandbox.scopes.difference_update(scopes)
    refused = await slack.refused(method)
    assert refused["error"] == "missing_scope"
    assert refused["needed"] == ",".join(scopes)
    assert set(refused["provided"].split(",")) == sandbox.scopes


@pytest.mark.parametrize(
    ("body", "error"), [("{", "invalid_json"), ("[]", "json_not_object"), ("1", "json_not_object")]
)
async def test_body_must_be_an_object(sandbox: Sandbox, body: str, error: str) -> None:
    headers = {"Authorization": f"Bearer {sandbox.bot_token}", "Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{sandbox.api_url}auth.test", data=body, headers=headers) as response,
    ):
        assert (await response.json())["error"] == error


async def test_form_arguments_and_token(sandbox: Sandbox) -> None:
    form = {
        "token": sandbox.bot_token,
        "channel": OPS,
        "text": "hello",
        "blocks": '[{"type": "divider"}]',
    }
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{sandbox.api_url}chat.postMessage", data=form) as response,
    ):
        assert (await response.json())["ok"] is True
    assert sandbox.messages(OPS)[0]["blocks"][0]["type"] == "divider"


async def test_calls_are_remembered_without_token(slack: Slack, sandbox: Sandbox) -> None:
    await slack.client.chat_postMessage(channel=OPS, text="hello")
    await slack.error("chat.update", channel=OPS, ts="1.1", text="x")
    first, second = sandbox.calls
    assert (first.method, first.error) == ("chat.postMessage", None)
    assert first.args == {"channel": OPS, "text": "hello"}
    assert (second.method, second.error) == ("chat.update", "message_not_found")
    assert sandbox.bot_token not in repr(sandbox.calls)
    assert sandbox.bot_token not in repr(sandbox)


@pytest.mark.parametrize(
    "args", [{"limit": 0}, {"limit": "many"}, {"cursor": "nonsense"}, {"cursor": "bmV4dDp4"}]
)
async def test_bad_paging(slack: Slack, args: dict[str, Any]) -> None:
    refused = await slack.error("users.list", **args)
    assert refused in {"invalid_limit", "invalid_cursor", "invalid_arguments"}


async def test_paging_gives_everything_once(slack: Slack, sandbox: Sandbox) -> None:
    ids: list[str] = []
    cursor = ""
    while True:
        page = await slack.ok("users.list", limit=4, cursor=cursor)
        ids += [member["id"] for member in page["members"]]
        cursor = page["response_metadata"]["next_cursor"]
        if not cursor:
            break
    assert ids == list(sandbox.workspace.people)


def test_loopback_only() -> None:
    with pytest.raises(ValueError, match="loopback only"):
        Sandbox(clock=lambda: 0.0, host="0.0.0.0")  # noqa: S104 - refused


def test_default_scopes_are_those_of_the_manifest() -> None:
    wanted = manifest.bot_scopes(manifest.read_manifest(manifest.manifest_text()))
    assert set(wanted) == DEFAULT_SCOPES
