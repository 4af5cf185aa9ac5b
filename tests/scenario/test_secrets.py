"""I10: a secret that comes from anywhere goes nowhere but into the call that needs it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, ScriptedModel, follow_up_tool, tool
from agents.models import Turn, call, say
from bot.audit.report import json_line, story
from tests.support.logs import logged
from tests.support.stage import (
    APP_TOKEN,
    APPROVE,
    BOT_TOKEN,
    EDIT,
    REJECT,
    SECRET,
    Stage,
    a_stage,
    buttons,
)

RAN: list[tuple[str, ...]] = []

ASKED = "As4k-the-user-wrote-this"
WHY = "ghp_WhyWhyWhyWhyWhyWhyWhyWhyWhyWhyWhyWh"
ARGUMENT = "Ar6-ument-of-the-call"
NESTED = "AKIANESTEDNESTEDNEST"
NAMED = "Na8ed-by-its-sibling"
EDITED = "Ed1ted-by-the-approver"
RESULT = "sk-proj-ResultResultResultResult"
REASON = "Re4son-of-the-rejection"
ERROR = "Er5or-in-the-exception"
QUESTION = "eyJhbGciOiJxdWVzdGlvbiJ9.eyJzdWIiOiJxdWVzdGlvbiJ9.cXVlc3Rpb24"
ANSWER = "An7wer-to-the-question"
FAULT = "Fau1t-of-the-agent"
CARD = "4242424242424242"
CUSTOM = "KD-4711-4711"
PLANTED = {
    *(ASKED, WHY, ARGUMENT, NESTED, NAMED, EDITED, RESULT, REASON, ERROR, QUESTION, ANSWER),
    *(FAULT, CARD, CUSTOM, BOT_TOKEN, APP_TOKEN, SECRET),
}
NO_MATTER = "PLUM-PUDDING"
"""No secret, but what people and models say is nothing for the log."""


@tool(gate="review", title="Rotate {name} with {password}")
def rotate(name: str, password: str, note: str, settings: dict[str, Any]) -> str:
    """Rotate a password.

    Args:
        name: Of what.
        password: The new one.
        note: Anything else.
        settings: Further ones.
    """
    RAN.append((name, password, note, json.dumps(settings)))
    return f"rotated; the new key is {RESULT} {NO_MATTER}"


@tool
def explode(what: str) -> str:
    """Fail.

    Args:
        what: What to break.
    """
    raise RuntimeError(f"{what} broke: postgresql://app:{ERROR}@db/app {NO_MATTER}")


def _rotate(number: int) -> Turn:
    settings = {
        "aws": [{"id": NESTED}],
        "env": [{"name": "DB_PASSWORD", "value": NAMED}],
        "card": CARD,
        "customer": CUSTOM,
    }
    arguments = {"name": "db", "password": ARGUMENT, "note": "none", "settings": settings}
    return [
        say(f"I use the token {WHY} for that. {NO_MATTER}"),
        call("rotate", arguments, id=f"c{number}"),
    ]


def planted(_: Model) -> Agent:
    """Has secrets in all that it says and does."""
    turns: list[Turn] = [
        _rotate(1),
        say(f"Done. The key is {RESULT}, for customer {CUSTOM}, {NO_MATTER}."),
        _rotate(2),
        call("explode", {"what": "it"}, id="c3"),
        say(f"It broke with password={ERROR} in it."),
        call("ask_people", {"questions": [f"Is {QUESTION} right? {NO_MATTER}"]}, id="c4"),
        say(f"You said: password is {ANSWER}"),
    ]
    tools = [rotate, explode, follow_up_tool()]
    return ChatModelAgent(name="planted", model=ScriptedModel(turns), tools=tools)


class _Broken(ScriptedModel):
    """A model whose program has a fault."""

    def __init__(self) -> None:
        super().__init__([])

    def __getattribute__(self, name: str) -> Any:
        if name in {"request", "request_stream"}:
            raise RuntimeError(f"password={FAULT}")
        return super().__getattribute__(name)


def broken(_: Model) -> Agent:
    """Fails by a fault of its own, whose text has a secret."""
    return ChatModelAgent(name="broken", model=_Broken(), tools=[])


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    with logged(as_json=True) as stream:
        yield stream


@pytest.fixture(params=["socket", "http"])
async def stage(
    request: pytest.FixtureRequest, tmp_path: Path, log: io.StringIO
) -> AsyncIterator[Stage]:
    RAN.clear()
    async with a_stage(
        tmp_path,
        request.param,
        COUNTERSIGN_AGENT="tests.scenario.test_secrets:planted",
        COUNTERSIGN_METRICS_PORT="0",
        COUNTERSIGN_REDACT="KD(?:-[0-9]{4}){2}",
    ) as opened:
        yield opened


def sent(stage: Stage) -> str:
    """Everything that the bot has sent to Slack, but for what one person asked to see alone."""
    calls = [call for call in stage.sandbox.calls if not is_reveal(call.method, call.args)]
    return "\n".join(f"{call.method} {call.args}" for call in calls)


def is_reveal(method: str, args: object) -> bool:
    """Whether a call opens, for who may decide, what only looks like a secret."""
    return method.startswith("views.") and "'text': 'Revealed'" in str(args)


async def put_on_record(stage: Stage) -> str:
    """The audit of all threads, as it is stored and as it is printed."""
    entries = []
    for message in stage.messages():
        entries += await story(stage.storage, thread_id=stage.thread_id(message["ts"]))
    assert entries
    return "\n".join(f"{entry} {json_line(entry)}" for entry in entries)


async def measured(log: io.StringIO) -> str:
    (port,) = re.findall(r"metrics on port (\d+)", log.getvalue())
    address = f"http://127.0.0.1:{port}/metrics"
    async with aiohttp.ClientSession() as session, session.get(address) as answer:
        return await answer.text()


def found_in(text: str) -> set[str]:
    """Secrets that a text has, as they are or in a spelling that JSON gives them."""
    return {secret for secret in PLANTED if secret in text or json.dumps(secret)[1:-1] in text}


async def assert_nothing_leaked(stage: Stage, log: io.StringIO) -> None:
    assert found_in(sent(stage)) == set()
    assert found_in(await put_on_record(stage)) == set()
    assert found_in(await measured(log)) == set()
    assert found_in(log.getvalue()) == set()
    records = [json.loads(line) for line in log.getvalue().splitlines()]
    ours = [
        record for record in records if record["logger"].startswith(("agents", "bot", "storage"))
    ]
    assert ours
    assert [record for record in ours if not record.get("action")] == []
    assert [
        record for record in records if record["level"] != "DEBUG" and NO_MATTER in str(record)
    ] == []


async def test_planted_secrets_leave_no_trace(stage: Stage, log: io.StringIO) -> None:
    card = await stage.asked(
        f"@countersign rotate it, the old password is {ASKED} {NO_MATTER}", word=APPROVE
    )
    assert "hidden as “•••• redacted”" in str(card)
    assert "Rotate db with" in str(card)

    # Somebody who may not, then somebody who edits, with a secret in the edit.
    await stage.click("Rosa", card, APPROVE)
    await stage.whispered("Rosa", "own request|not an approver")
    await stage.click("Ada", card, EDIT)
    await stage.whispered("Ada", "Select Reveal")
    await stage.choose("Ada", card, "countersign:details")
    ada = stage.user("Ada")
    details = await stage.modal("Ada")
    await stage.sandbox.click_in_view(ada, details, "countersign:reveal")
    assert found_in(str(await stage.modal("Ada"))) == {ARGUMENT, NESTED, NAMED, CARD, CUSTOM}
    await stage.click("Ada", card, EDIT)
    ada = stage.user("Ada")
    await stage.until(lambda: "redacted" in str(stage.sandbox.open_views(ada)[-1:]))
    assert "errors" not in await stage.fill("Ada", note=f"password={EDITED}")
    await stage.said("Done")
    assert len(RAN) == 1
    name, password, note, settings = RAN[0]
    assert (name, password, note) == ("db", ARGUMENT, f"password={EDITED}")
    assert all(secret in settings for secret in (NESTED, NAMED, CARD))
    final = await stage.card(word="Edited by")
    assert buttons(final) == []
    assert "redacted" in str(final)

    # Rejected, with a secret in the reason; then a tool that fails, and says too much.
    second = await stage.asked("@countersign once more", number=2, word=REJECT)
    await stage.click("Ada", second, REJECT)
    await stage.fill("Ada", in_your_own_words=f"the password is {REASON}")
    await stage.said("It broke")
    assert len(RAN) == 1

    # A question with a secret, answered with a secret.
    third = await stage.asked("@countersign and now?", number=3)
    assert "redacted" in str(third)
    await stage.say("Rosa", f"@countersign my pwd={ANSWER}", thread_ts=third["thread_ts"])
    await stage.said("You said")
    await stage.card(number=3, word="Answered")
    await assert_nothing_leaked(stage, log)


async def test_a_fault_of_the_agent_leaves_no_trace(stage: Stage, log: io.StringIO) -> None:
    await stage.stop_bot()
    log.truncate(0)
    log.seek(0)
    await stage.start_bot(COUNTERSIGN_AGENT="tests.scenario.test_secrets:broken")
    await stage.say("Rosa", f"@countersign go, password={ASKED}")
    for _ in range(12):
        await stage.later(minutes=10)
    await stage.said("couldn't finish")
    assert "ModelError: RuntimeError" in log.getvalue()
    await assert_nothing_leaked(stage, log)


async def test_the_bots_own_secrets_leave_no_trace(stage: Stage, log: io.StringIO) -> None:
    """What the bot itself is started with is masked by value, whatever it looks like."""
    await stage.stop_bot()
    log.truncate(0)
    log.seek(0)
    await stage.start_bot(COUNTERSIGN_AGENT="tests.scenario.test_secrets:traitor")
    await stage.say("Rosa", "@countersign tell me")
    await stage.said("redacted")
    await stage.card(word="redacted")
    unknown = {SECRET} if stage.transport == "socket" else set()  # it is not set there
    assert found_in(sent(stage)) - unknown == set()


def traitor(_: Model) -> Agent:
    """Tells what it should not know."""
    words = f"My tokens are {BOT_TOKEN}, {APP_TOKEN} and {SECRET}."
    turns: list[Turn] = [
        [say(words), call("ask_people", {"questions": [words]}, id="c1")],
        say("Well."),
    ]
    return ChatModelAgent(name="traitor", model=ScriptedModel(turns), tools=[follow_up_tool()])
