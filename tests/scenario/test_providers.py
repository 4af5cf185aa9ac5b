"""What becomes of a model's answer is told in the thread as what it is (R8)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic_ai.models import override_allow_model_requests

from tests.support.stage import a_stage
from tests.unit.bot.demo.openai_server import KEY, Reply, openai_server

AGENT = "tests.scenario.agents:modelled"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply("", refusal="No."), r"declined: “No\.” Ask in another way"),
        (Reply("Half", finish="content_filter"), "its content filter stopped it"),
        (Reply(status=400, code="content_filter"), "its content filter stopped it"),
        (Reply("Cut", finish="length"), r"Cut\s+_The model's length limit cut this off"),
        (Reply("Cut", finish=None), r"Cut\s+_The connection to the model ended early"),
        (Reply("", finish="length"), "^_The model's length limit cut this off"),
    ],
)
async def test_an_answer_that_is_none_is_told_as_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply, said: str
) -> None:
    async with openai_server(reply) as (server, _):
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        environ = {"COUNTERSIGN_AGENT": AGENT, "COUNTERSIGN_MODEL": "openai-chat:gpt-test"}
        with override_allow_model_requests(allow_model_requests=True):
            async with a_stage(tmp_path, "http", **environ) as stage:
                await stage.say("Rosa", "@countersign go")
                await stage.said(said)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "limit", "said", "tries"),
    [
        (Reply("", hangs=True), "1s", "The model sent nothing for 1s", 2),
        (Reply(has_choices=False), "1m", "The model's answer can't be read", 6),
    ],
)
async def test_a_model_that_fails_again_is_given_up_in_words(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply,
    limit: str,
    said: str,
    tries: int,
) -> None:
    async with openai_server(*[reply] * 9) as (server, _):
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        environ = {
            "COUNTERSIGN_AGENT": AGENT,
            "COUNTERSIGN_MODEL": "openai-chat:gpt-test",
            "COUNTERSIGN_MODEL_TIMEOUT": limit,
        }
        with override_allow_model_requests(allow_model_requests=True):
            async with a_stage(tmp_path, "http", **environ) as stage:
                await stage.say("Rosa", "@countersign go")
                for number in range(1, tries + 1):
                    async with asyncio.timeout(60):
                        while len(server.requests) < number:  # noqa: ASYNC110 - another server
                            await asyncio.sleep(0.01)
                    await stage.later(minutes=10)
                await stage.said(said)
    assert len(server.requests) == tries
