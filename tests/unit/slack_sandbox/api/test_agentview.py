"""Slack's surface for agents in the sandbox: sessions, prompts, and the stop button."""

from __future__ import annotations

from typing import Any

import pytest

from slack_sandbox import OPS
from slack_sandbox.errors import RefusedError
from slack_sandbox.server import Sandbox
from slack_sandbox.workspace.state import AgentSession
from tests.unit.slack_sandbox.conftest import Slack

SESSION = "agents.sessions.setStatus"
PROMPTS = "assistant.threads.setSuggestedPrompts"


async def test_a_session_keeps_the_title_that_it_began_with(
    slack: Slack, sandbox: Sandbox, asked: str
) -> None:
    place = {"channel_id": OPS, "thread_ts": asked}
    await slack.ok(SESSION, **place, status="processing", title="Deploy")
    await slack.ok(SESSION, **place, status="active", title="Another")
    sessions = sandbox.workspace.agent_view.sessions
    assert sessions == {(OPS, asked): AgentSession(status="active", title="Deploy")}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"status": "busy"}, "invalid_status"),
        ({"title": "x" * 201}, "invalid_title"),
        ({"thread_ts": "1.1"}, "thread_not_found"),
        ({"channel_id": "C0"}, "channel_not_found"),
    ],
)
async def test_a_session_that_cannot_be(
    slack: Slack, asked: str, changes: dict[str, str], error: str
) -> None:
    values = {"channel_id": OPS, "thread_ts": asked, "status": "processing", **changes}
    assert await slack.error(SESSION, **values) == error


async def test_the_stop_button_is_there_while_the_agent_works(
    slack: Slack, sandbox: Sandbox, asked: str
) -> None:
    user, place = sandbox.user_id("Ada"), {"channel_id": OPS, "thread_ts": asked}
    with pytest.raises(RefusedError, match="session_not_processing"):
        sandbox.stop_agent(user, OPS, asked)
    await slack.ok(SESSION, **place, status="processing")
    stream = await slack.ok(
        "chat.startStream",
        channel=OPS,
        thread_ts=asked,
        recipient_team_id=sandbox.workspace.team_id,
        recipient_user_id=user,
        markdown_text="I think",
    )
    sandbox.stop_agent(user, OPS, asked)
    assert await slack.error(
        "chat.appendStream", channel=OPS, ts=stream["ts"], markdown_text="x"
    ) == ("message_not_in_streaming_state")
    await slack.ok(SESSION, **place, status="active")
    with pytest.raises(RefusedError, match="session_not_processing"):
        sandbox.stop_agent(user, OPS, asked)


async def test_prompts_with_a_thread_are_silently_not_shown(slack: Slack, sandbox: Sandbox) -> None:
    direct = sandbox.workspace.direct_message(sandbox.user_id("Ada")).id
    prompts = [{"title": "Deploy", "message": "deploy payments"}]
    await slack.ok(PROMPTS, channel_id=direct, prompts=prompts, thread_ts="1.1")
    assert sandbox.workspace.agent_view.prompts == {}


@pytest.mark.parametrize(
    "prompts", [[], [{"title": "a"}], [{"title": "a", "message": ""}], [{"title": "a"}] * 5]
)
async def test_prompts_that_slack_does_not_take(
    slack: Slack, sandbox: Sandbox, prompts: list[dict[str, Any]]
) -> None:
    direct = sandbox.workspace.direct_message(sandbox.user_id("Ada")).id
    assert await slack.error(PROMPTS, channel_id=direct, prompts=prompts) == "invalid_prompts"
