"""A provider that refuses for good is told apart from one that is away for a while."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai.exceptions import (
    FallbackExceptionGroup,
    ModelAPIError,
    ModelAuthenticationError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelUnavailableError,
    UserError,
)
from pydantic_ai.models import override_allow_model_requests

from agents import ChatModelAgent, MessageEvent, Runner
from agents.core.errors import (
    ModelAnswerError,
    ModelError,
    ModelFault,
    ModelRefusedError,
    ModelTimeoutError,
)
from agents.graph.state.plan import RetryPolicy
from agents.middlewares import ModelRetryMiddleware
from agents.middlewares.retry import is_temporary
from agents.models import ask_once, model_error, model_fault
from tests.unit.bot.demo.openai_server import KEY, Reply, openai_server


@pytest.fixture(autouse=True)
def loopback_model() -> Iterator[None]:
    with override_allow_model_requests(allow_model_requests=True):
        yield


@pytest.mark.parametrize(
    ("status", "code", "fault"),
    [
        (401, "invalid_api_key", "key"),
        (403, "", "key"),
        (404, "model_not_found", "model"),
        (429, "insufficient_quota", "quota"),
        (402, "", "quota"),
        (400, "context_length_exceeded", "length"),
        (400, "", "request"),
        (422, "", "request"),
        (429, "rate_limit_exceeded", None),
        (408, "", None),
        (500, "", None),
        (503, "", None),
    ],
)
async def test_what_a_provider_refuses(status: int, code: str, fault: ModelFault | None) -> None:
    async with openai_server(Reply(status=status, code=code)) as (_, model):
        with pytest.raises(ModelError) as caught:
            await ask_once(model)
    error = caught.value
    assert isinstance(error, ModelRefusedError) == (fault is not None)
    assert isinstance(error.__cause__, ModelHTTPError)
    assert is_temporary(error.__cause__) == (fault is None)
    if isinstance(error, ModelRefusedError):
        assert (error.fault, error.model) == (fault, "gpt-test")
        assert KEY not in str(error)
        assert "out of order" not in str(error)
        assert "'gpt-test'" in str(error)


async def test_a_model_that_answers_is_asked_once_and_for_little() -> None:
    async with openai_server(Reply("ok")) as (server, model):
        await ask_once(model)
    (request,) = server.requests
    assert request["max_completion_tokens"] == 16
    assert "tools" not in request


@pytest.mark.parametrize(("status", "fault"), [(401, "key"), (404, "model"), (500, None)])
def test_a_model_of_ones_own_is_read_by_its_status(status: int, fault: ModelFault | None) -> None:
    assert model_fault(ModelHTTPError(status, "own")) == fault


def test_what_a_provider_says_goes_before_its_status() -> None:
    error = ModelHTTPError.for_category(ModelUnavailableError, status_code=403, model_name="m")
    assert model_fault(error) is None  # the account is being set up


def test_of_models_that_stand_in_for_each_other_all_must_refuse() -> None:
    key = ModelAuthenticationError("first", "no")
    quota = ModelQuotaExceededError("second", "no more")
    away = ModelAPIError("second", "away")
    error = model_error("the model", FallbackExceptionGroup("all", [key, quota]))
    assert isinstance(error, ModelRefusedError)
    assert (error.fault, error.model) == ("key", "first")
    assert model_fault(FallbackExceptionGroup("all", [key, away])) is None


def test_a_mistake_in_the_program_is_no_refusal() -> None:
    assert model_fault(UserError("no key")) is None
    assert not isinstance(model_error("the model", ValueError("x")), ModelRefusedError)


def test_a_refusal_without_a_name_is_told_without_one() -> None:
    assert str(ModelRefusedError("key")).startswith("the provider of the model does not accept")


def test_a_refusal_is_not_tried_again() -> None:
    refused = ModelRefusedError("key", "m")
    assert not RetryPolicy(attempts=3).wants(refused, 1)
    assert RetryPolicy(attempts=3).wants(ModelError("away"), 1)
    assert not is_temporary(refused)
    assert is_temporary(ModelError("away"))


# ---- answers that are none, or not whole (R8) ----------------------------------------------------


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streaming(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


async def answer_of(*replies: Reply, streaming: bool, **options: Any) -> MessageEvent:
    """Run an agent; give what it said."""
    async with openai_server(*replies) as (_, model):
        agent = ChatModelAgent(name="A", model=model, **options)
        limit = timedelta(seconds=0.2 if any(reply.hangs for reply in replies) else 30)
        runner = Runner(agent, streaming=streaming, model_timeout=limit)
        events = [event async for event in runner.query("go")]
    return [event for event in events if isinstance(event, MessageEvent)][-1]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply("Half an", finish="content_filter"), ""),
        (Reply("", finish="content_filter"), ""),
        (Reply("", refusal="No."), "No."),
        (Reply(status=400, code="content_filter"), ""),
    ],
)
async def test_a_filtered_answer_is_a_refusal_with_its_words(
    reply: Reply, said: str, streaming: bool
) -> None:
    with pytest.raises(ModelRefusedError) as caught:
        await answer_of(reply, streaming=streaming, middlewares=[ModelRetryMiddleware()])
    assert (caught.value.fault, caught.value.said) == ("filter", said)
    assert "declines to answer" in str(caught.value)


async def test_an_answer_that_reached_a_limit_says_so(streaming: bool) -> None:
    said = await answer_of(Reply("Cut", finish="length"), streaming=streaming)
    assert (said.text, said.cut) == ("Cut", "length")


async def test_an_answer_without_choices_cannot_be_read(streaming: bool) -> None:
    with pytest.raises(ModelAnswerError, match="an answer that cannot be read"):
        await answer_of(Reply(has_choices=False), streaming=streaming)


@pytest.mark.parametrize("text", ["", "Well"])
async def test_a_model_that_sends_nothing_more_is_given_up(text: str, streaming: bool) -> None:
    with pytest.raises(ModelTimeoutError, match=r"sent nothing for 0\.2 seconds"):
        await answer_of(Reply(text, hangs=True), streaming=streaming)
