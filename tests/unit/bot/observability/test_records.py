"""What a record is about, and what an error may say of itself."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from agents.core.errors import ModelError
from bot.observability.events import about, context
from bot.observability.logs import error_text
from tests.support.logs import logged

SAID = "PLUM-PUDDING at noon"


class Order(BaseModel):
    """A call's arguments, as a model may get them wrong."""

    amount: int


def invalid() -> ValidationError:
    try:
        Order.model_validate({"amount": SAID})
    except ValidationError as error:
        return error
    raise AssertionError


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    with logged("INFO", as_json=True) as written:
        yield written


def records(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_ids_of_the_block_are_in_each_record(stream: io.StringIO) -> None:
    with about(thread_id="T:C:1", approval_id=""):
        logging.getLogger("agents.x").warning("one")
        with about(approval_id="apr_1"):
            logging.getLogger("bot.x").warning("two", extra={"action": "a", "thread_id": "own"})
    logging.getLogger("bot.x").warning("three", extra={"action": "a"})
    first, two, three = records(stream)
    assert (first["thread_id"], first.get("approval_id")) == ("T:C:1", None)
    assert (two["thread_id"], two["approval_id"]) == ("own", "apr_1")
    assert "thread_id" not in three


async def test_ids_go_with_the_tasks_of_the_block() -> None:
    async def look() -> str:
        return context()["thread_id"]

    with about(thread_id="T:C:1"):
        task = asyncio.create_task(look())
    assert context() == {}
    assert await task == "T:C:1"


def test_the_block_ends_with_an_error() -> None:
    with pytest.raises(KeyError), about(thread_id="T:C:1"):
        raise KeyError
    assert context() == {}


def test_runtime_and_stores_have_an_action_of_their_own(stream: io.StringIO) -> None:
    for name in ("agents.retry", "storage.mongo", "slack_sdk.web"):
        logging.getLogger(name).warning("x")
    assert [record.get("action") for record in records(stream)] == ["agents", "storage", None]


def test_an_error_does_not_quote_its_input(stream: io.StringIO) -> None:
    logger = logging.getLogger("bot.x")
    logger.warning("failed: %s", invalid(), extra={"action": "a"})
    logger.error("failed", exc_info=invalid(), extra={"action": "a"})
    assert SAID not in stream.getvalue()
    assert "Order: amount: int_parsing" in records(stream)[0]["message"]
    assert "Order: amount: int_parsing" in records(stream)[1]["trace"]


def test_an_error_is_cut() -> None:
    assert error_text(ValueError("x" * 301)) == "x" * 300 + "…"
    assert error_text(ValueError("x" * 300)) == "x" * 300


def test_what_led_to_an_error_is_told_first(stream: io.StringIO) -> None:
    try:
        try:
            raise invalid()
        except ValidationError as error:
            raise RuntimeError("no order") from error
    except RuntimeError:
        logging.getLogger("bot.x").exception("failed", extra={"action": "a"})
    (record,) = records(stream)
    first, _, second = record["trace"].partition("which led to:")
    assert "ValidationError: Order: amount" in first
    assert "RuntimeError: no order" in second
    assert SAID not in record["trace"]


def test_all_parts_of_a_group_are_told(stream: io.StringIO) -> None:
    group = ExceptionGroup("two", [ValueError("a"), KeyError("b")])
    logging.getLogger("bot.x").error("failed", exc_info=group, extra={"action": "a"})
    (record,) = records(stream)
    assert "ValueError: a" in record["trace"]
    assert "KeyError: 'b'" in record["trace"]


def test_a_suppressed_cause_stays_so(stream: io.StringIO) -> None:
    try:
        try:
            int("inner")
        except ValueError:
            raise RuntimeError("outer") from None
    except RuntimeError:
        logging.getLogger("bot.x").exception("failed", extra={"action": "a"})
    assert "inner" not in stream.getvalue()


def test_values_by_name_and_percent_signs(stream: io.StringIO) -> None:
    logger = logging.getLogger("bot.x")
    logger.warning("%(what)s is 100%%", {"what": "it"}, extra={"action": "a"})
    logger.warning("100% sure", extra={"action": "a"})
    assert [record["message"] for record in records(stream)] == ["it is 100%", "100% sure"]


class ProviderError(Exception):
    """What a provider answers: it may repeat the conversation."""

    status_code = 400


def test_an_error_of_a_model_is_told_by_its_kind() -> None:
    error = ModelError(f"the model failed: {SAID}")
    error.__cause__ = ProviderError(SAID)
    assert error_text(error) == "ModelError: ProviderError 400"
    error.__cause__ = ValueError(SAID)
    assert error_text(error) == "ModelError: ValueError"
    assert error_text(ModelError("there is no model")) == "there is no model"
