"""Prompts, titles and the stop button, as Slack is told of them; and where it has none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from bot.errors import DeliveryError
from bot.ports.threads import TaskStatus, ToolTask
from bot.records.thread import Thread
from bot.slack.agent_view import (
    NOT_IN_CHANNEL,
    PROMPTS,
    SESSION,
    WHO_ARE_YOU,
    AgentSessions,
    SlackTaskBoard,
    SuggestedPrompts,
    Unsupported,
)
from bot.slack.slash_commands.introduction import asks_who
from bot.threads.named_agents import Prompt
from tests.support.fakes import FakeClock
from tests.unit.bot.office import ROSA

THREAD = Thread(thread_id="T1:C1:1.1", requester_id=ROSA, created_ms=1)


@dataclass
class Line:
    """Slack, as far as it takes what the app can do without."""

    fault: DeliveryError | None = None
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=lambda: {"ok": True})

    async def __call__(
        self, method: str, channel_id: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        assert channel_id == arguments.get("channel_id", arguments.get("channel"))
        self.calls.append((method, arguments))
        if self.fault is not None:
            raise self.fault
        return self.answer


async def test_a_session_has_a_title_and_ends() -> None:
    line = Line()
    sessions = AgentSessions(line)
    await sessions.begin(THREAD, title="x" * 300)
    assert await sessions.end(THREAD) == 0
    place = {"channel_id": "C1", "thread_ts": "1.1"}
    assert line.calls == [
        (SESSION, {**place, "status": "processing", "title": "x" * 200}),
        (SESSION, {**place, "status": "active"}),
    ]


async def test_an_end_that_is_too_soon_is_tried_again() -> None:
    wait = DeliveryError(SESSION, "ratelimited", retry_after=timedelta(seconds=3))
    assert await AgentSessions(Line(wait)).end(THREAD) == 3


@pytest.mark.parametrize(
    ("reason", "calls"),
    [
        ("unknown_method", 1),
        ("missing_scope", 1),
        ("not_allowed_token_type", 1),
        ("internal_error", 3),
    ],
)
async def test_what_a_workspace_does_not_have_is_asked_for_once(reason: str, calls: int) -> None:
    line = Line(DeliveryError(SESSION, reason))
    sessions = AgentSessions(line)
    for _ in range(2):
        await sessions.begin(THREAD, title="")
    assert await sessions.end(THREAD) == 0
    assert len(line.calls) == calls


async def test_prompts_are_those_of_the_agents_and_who_they_are() -> None:
    line = Line()
    prompts = [Prompt(title="Deploy", message="deploy payments")]
    await SuggestedPrompts(line, prompts).offer("D1")
    ((method, arguments),) = line.calls
    assert (method, arguments["title"]) == (PROMPTS, "Try asking")
    assert json.loads(arguments["prompts"]) == [
        {"title": "Deploy", "message": "deploy payments"},
        {"title": "What can you do?", "message": "who are you?"},
    ]
    assert asks_who(WHO_ARE_YOU)


async def test_slack_takes_four_prompts() -> None:
    line = Line()
    many = [Prompt(title=str(number), message="x") for number in range(4)]
    await SuggestedPrompts(line, many).offer("D1")
    assert [prompt["title"] for prompt in json.loads(line.calls[0][1]["prompts"])] == [
        "0",
        "1",
        "2",
        "3",
    ]


TASKS = [
    ToolTask(task_id="c1", title="Search docs"),
    ToolTask(task_id="c2", title="x" * 300, status=TaskStatus.COMPLETE),
]


async def test_tasks_are_chunks_of_a_stream_that_ends() -> None:
    line = Line(answer={"ok": True, "ts": "5.5"})
    board = SlackTaskBoard(line)
    assert await board.begin(THREAD, TASKS) == "5.5"
    await board.update(THREAD, "5.5", TASKS[:1])
    await board.end(THREAD, "5.5", keep=True)
    await board.end(THREAD, "5.5", keep=False)
    assert [method for method, _ in line.calls] == [
        "chat.startStream",
        "chat.appendStream",
        "chat.stopStream",
        "chat.stopStream",
        "chat.delete",
    ]
    begun = line.calls[0][1]
    assert (begun["recipient_user_id"], begun["task_display_mode"]) == (ROSA, "timeline")
    first, second = json.loads(begun["chunks"])
    task = {"type": "task_update", "id": "c1", "title": "Search docs", "status": "in_progress"}
    assert first == task
    assert (second["status"], len(second["title"])) == ("complete", 150)


async def test_a_stream_that_slack_has_ended_still_goes() -> None:
    line = Line(DeliveryError("chat.stopStream", "message_not_in_streaming_state"))
    with pytest.raises(DeliveryError):
        await SlackTaskBoard(line).end(THREAD, "5.5", keep=False)
    assert [method for method, _ in line.calls] == ["chat.stopStream", "chat.delete"]


@pytest.mark.parametrize("reason", sorted(NOT_IN_CHANNEL))
async def test_what_one_channel_refuses_is_off_there_alone_and_for_an_hour(reason: str) -> None:
    clock = FakeClock()
    off = Unsupported(clock=clock)
    assert off.learn(reason, "C1")
    assert off.covers("C1")
    assert not off.covers("C2")
    assert not off.covers()
    clock.forward(hours=1)
    assert not off.covers("C1")


async def test_what_the_workspace_refuses_is_off_everywhere_for_an_hour() -> None:
    clock = FakeClock()
    off = Unsupported(clock=clock)
    assert off.learn("unknown_method", "C1")
    assert off.covers("C2")
    clock.forward(hours=1)
    assert not off.covers("C2")
    assert not off.learn("fatal_error", "C1")


@pytest.mark.parametrize(
    ("reason", "here", "elsewhere"),
    [
        *((reason, 1, 1) for reason in sorted(NOT_IN_CHANNEL)),
        ("unknown_method", 1, 0),
        ("fatal_error", 2, 1),
    ],
)
async def test_tasks_are_shown_elsewhere_after_one_channel_refused_them(
    reason: str, here: int, elsewhere: int
) -> None:
    line = Line(DeliveryError("chat.startStream", reason))
    board = SlackTaskBoard(line)
    other = THREAD.changed(thread_id="T1:C0OTHER:1.1")
    for thread in (THREAD, THREAD, other):
        with pytest.raises(DeliveryError):
            await board.begin(thread, TASKS)
    channels = [arguments["channel"] for _, arguments in line.calls]
    assert channels == ["C1"] * here + ["C0OTHER"] * elsewhere
    assert board.is_there is (elsewhere == 1)
