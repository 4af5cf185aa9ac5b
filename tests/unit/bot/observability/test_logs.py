"""The log: no secret, no forged line, no body of a request."""

import inspect
import io
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

from tests.support.logs import logged

SECRET = "5f0c2a9e77b14d0a"


@pytest.fixture
def log() -> Iterator[Callable[..., io.StringIO]]:
    with ExitStack() as stack:

        def set_up(level: str = "INFO", *, as_json: bool = False) -> io.StringIO:
            return stack.enter_context(logged(level, as_json=as_json, secrets=[SECRET, "abc"]))

        yield set_up


def test_text_line(log: Callable[..., io.StringIO]) -> None:
    stream = log()
    record = logging.makeLogRecord(
        {
            "name": "bot.main",
            "levelno": logging.INFO,
            "levelname": "INFO",
            "msg": "ready, listening on port %d",
            "args": (3000,),
            "created": 1700000000.25,
            "action": "ready",
            "thread_id": "T1:C1:1.2",
        }
    )
    logging.getLogger("bot.main").handle(record)
    assert stream.getvalue() == (
        "2023-11-14T22:13:20.250Z INFO bot.main [ready] "
        "ready, listening on port 3000 thread_id=T1:C1:1.2\n"
    )


def test_json_line(log: Callable[..., io.StringIO]) -> None:
    stream = log(as_json=True)
    extra = {"action": "decided", "count": 2, "is_late": False, "who": ["U1"], "level": "x"}
    logging.getLogger("bot.approvals.service").info("decided", extra=extra)
    fields = json.loads(stream.getvalue())
    assert fields.pop("at").endswith("Z")
    assert fields == {
        "level": "INFO",
        "logger": "bot.approvals.service",
        "message": "decided",
        "action": "decided",
        "count": 2,
        "is_late": False,
        "who": "['U1']",
    }


LEAKS = [
    "xoxb-123-456-abcDEF",
    "xoxe.xoxp-1-abcdefgh",
    "xapp-1-A02-345-abcdef",
    "Bearer abcdefgh12345",
    "mongodb://ann:abcdefgh12345@db/x",
    f"it is {SECRET}!",
]


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("leak", LEAKS)
def test_secrets_are_masked_wherever_they_are(
    log: Callable[..., io.StringIO], leak: str, *, as_json: bool
) -> None:
    stream = log(as_json=as_json)
    logger = logging.getLogger("bot.test")
    logger.warning("found %s", leak, extra={"detail": leak})
    logger.error("failed", exc_info=ValueError(leak), stack_info=True)
    written = stream.getvalue()
    assert "redacted" in written
    for part in ("123-456", "abcdefgh", "345-abcdef", SECRET):
        assert part not in written


def test_keys_that_name_a_secret_hide_their_value(log: Callable[..., io.StringIO]) -> None:
    stream = log()
    logging.getLogger("bot.test").warning("x", extra={"password": "hush", "tokens": 12})
    assert "hush" not in stream.getvalue()
    assert "tokens=12" in stream.getvalue()


def test_short_secrets_do_not_mask_ordinary_words(log: Callable[..., io.StringIO]) -> None:
    stream = log()
    logging.getLogger("bot.test").warning("abcdef")
    assert "abcdef" in stream.getvalue()


def test_no_text_can_forge_a_line(log: Callable[..., io.StringIO]) -> None:
    stream = log()
    evil = "hi\n2026-01-01T00:00:00.000Z INFO bot [decided] approved\r\x1b[2K\u2028x"
    logging.getLogger("bot.test").warning(evil)
    logging.getLogger("bot.test").error("failed", exc_info=ValueError(evil))
    first, second, *trace = stream.getvalue().split("\n")
    assert "hi\\n2026" in first
    assert "\\x1b[2K\\u2028x" in first
    assert second.endswith("failed")
    assert trace.pop() == ""
    assert all(line.startswith("  ") for line in trace)


def test_exc_info_outside_of_a_handler_is_nothing(log: Callable[..., io.StringIO]) -> None:
    stream = log()
    logging.getLogger("bot.test").error("failed", exc_info=(None, None, None))
    assert stream.getvalue().endswith("failed\n")


def test_json_is_one_line(log: Callable[..., io.StringIO]) -> None:
    stream = log(as_json=True)
    logging.getLogger("bot.test").error("c\nd\u2028", exc_info=ValueError("a\nb"))
    assert len(stream.getvalue().splitlines()) == 1
    fields = json.loads(stream.getvalue())
    assert fields["message"] == "c\nd\u2028"
    assert "ValueError: a\nb" in fields["trace"]


@pytest.mark.parametrize("as_json", [False, True])
def test_what_is_no_text_is_written_as_text(
    log: Callable[..., io.StringIO], *, as_json: bool
) -> None:
    stream = log(as_json=as_json)
    logging.getLogger("bot.test").error(
        "no '\udcff'", exc_info=OSError("\udcff"), extra={"a": "\udcff"}
    )
    fields = str(json.loads(stream.getvalue())) if as_json else stream.getvalue()
    assert fields.encode().count("\ufffd".encode()) == 3


def test_debug_is_for_our_own_packages(log: Callable[..., io.StringIO]) -> None:
    stream = log("DEBUG")
    logging.getLogger("bot.test").debug("ours")
    for name in ("slack_sdk.web", "slack_bolt.App", "pymongo.command", "openai", "helpdesk"):
        logging.getLogger(name).debug("a body")
    logging.getLogger("apscheduler.executors").info("ran")
    assert "ours" in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


def test_levels_above_info_hold_for_all(log: Callable[..., io.StringIO]) -> None:
    stream = log("ERROR")
    for name in ("bot.test", "slack_sdk.web", "helpdesk", "apscheduler"):
        logging.getLogger(name).warning("no")
    assert stream.getvalue() == ""


async def test_a_bad_signature_does_not_put_its_body_into_the_log(
    log: Callable[..., io.StringIO],
) -> None:
    stream = log("DEBUG")
    app = AsyncApp(
        token="xoxb-1", signing_secret="0123456789abcdef", logger=logging.getLogger("slack_bolt")
    )
    request = AsyncBoltRequest(
        body='{"type":"event_callback","text":"a stranger\'s words"}',
        headers={"x-slack-signature": ["v0=bad"], "x-slack-request-timestamp": ["1"]},
    )
    answer = await app.async_dispatch(request)
    assert answer.status == 401
    assert "a request with a wrong signature or time was refused" in stream.getvalue()
    assert "stranger" not in stream.getvalue()


def test_what_bolt_says_of_a_token_that_it_does_not_use_is_left_out(
    log: Callable[..., io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-of-the-environment")
    stream = log()
    AsyncApp(
        client=AsyncWebClient(),
        signing_secret="s",
        authorize=_nobody,
        logger=logging.getLogger("slack_bolt"),
    )
    assert "token" not in stream.getvalue()


async def _nobody() -> AuthorizeResult:
    """Stands for who may do what."""
    return AuthorizeResult(enterprise_id=None, team_id="T1")


def test_a_connection_that_fails_again_and_again_is_one_line_each_time(
    log: Callable[..., io.StringIO],
) -> None:
    words = "Failed to connect (error: "
    assert words in inspect.getsource(SocketModeClient.connect)
    stream = log()
    fault = ConnectionError("away")
    logging.getLogger("slack_bolt").error("another fault", exc_info=fault)
    logging.getLogger("slack_bolt").error(f"{words}away); Retrying...", exc_info=fault)  # noqa: G004 - as there
    another, *trace, line = stream.getvalue().splitlines()
    assert another.endswith("another fault")
    assert trace
    assert line.endswith("Failed to connect (error: away); Retrying...")
