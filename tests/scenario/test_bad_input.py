"""Models, tools, people and strangers that do what they should not, through the whole bot."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from slack_sandbox.blockkit.rules import message_errors
from slack_sandbox.delivery.http import AppReply, HttpTransport, Parcel
from tests.scenario import agents
from tests.support.logs import logged
from tests.support.stage import SECRET, Stage, a_stage, buttons

APPROVE, DETAILS = "countersign:approve", "countersign:details"
ASK = "@countersign go"

Opening = Callable[[str], AbstractAsyncContextManager[Stage]]


@pytest.fixture
def opened(tmp_path: Path) -> Opening:
    agents.RAN.clear()

    def opening(name: str) -> AbstractAsyncContextManager[Stage]:
        path = f"tests.scenario.agents:{name}"
        return a_stage(tmp_path, "http", COUNTERSIGN_AGENT=path)

    return opening


def all_faults(stage: Stage) -> list[str]:
    return [fault for message in stage.messages() for fault in message_errors(message)]


async def test_a_tool_that_raises(opened: Opening) -> None:
    async with opened("failing") as stage:
        await stage.say("Rosa", ASK)
        await stage.said("It broke")
        shown = str(stage.messages())
    assert "Traceback" not in shown
    assert "hunter2secret" not in shown


async def test_a_model_that_is_confused(opened: Opening) -> None:
    async with opened("confused") as stage:
        await stage.say("Rosa", ASK)
        await stage.said("I give up")
        assert stage.cards() == []
    assert agents.RAN == []


async def test_a_long_argument(opened: Opening) -> None:
    async with opened("long") as stage:
        card = await stage.asked(ASK, word=APPROVE)
        assert all_faults(stage) == []
        assert "the end" not in str(card["blocks"])
        await stage.click("Ada", card, APPROVE)
        view = await stage.modal("Ada")
        text = ""
        while (view.get("submit") or {}).get("text") == "Next page":
            answer = await stage.sandbox.submit(stage.user("Ada"), view, {})
            view = answer["view"]
            text += "".join(all_texts(view["blocks"]))
        assert len(set(agents.LONG.split()) - set(text.split())) < 10  # cut between two pages
        await stage.sandbox.submit(stage.user("Ada"), view, {})
        await stage.said("Sent")
    assert agents.RAN == [agents.LONG]


def all_texts(payload: object) -> list[str]:
    """The texts of rich text, in order."""
    if isinstance(payload, list):
        return [text for value in payload for text in all_texts(value)]
    if not isinstance(payload, dict):
        return []
    if payload.get("type") == "text":
        return [str(payload.get("text"))]
    return [text for value in payload.values() for text in all_texts(value)]


async def test_an_argument_that_nobody_can_read_cannot_be_approved(opened: Opening) -> None:
    async with opened("huge") as stage:
        card = await stage.asked(ASK, word="Too long")
        assert all_faults(stage) == []
        assert APPROVE not in buttons(card)
        await stage.choose("Ada", card, DETAILS)
        assert "Too long to show in full" in str(await stage.modal("Ada"))
    assert agents.RAN == []


def obeyed(payload: object) -> list[str]:
    """The texts in a payload in which Slack would obey control characters."""
    texts: list[str] = []
    if isinstance(payload, dict):
        if payload.get("type") in {"user", "usergroup", "broadcast", "channel"}:
            texts.append(str(payload))
        if payload.get("type") == "mrkdwn":
            texts.append(str(payload.get("text")))
        for value in payload.values():
            texts.extend(obeyed(value))
    if isinstance(payload, list):
        for value in payload:
            texts.extend(obeyed(value))
    return texts


async def test_markup_is_shown_and_never_obeyed(opened: Opening) -> None:
    async with opened("nasty") as stage:
        card = await stage.asked(ASK, word=APPROVE)
        await stage.click("Ada", card, APPROVE)
        await stage.said("Sent")
        await stage.card(word="Approved")
        calls = [c for c in stage.sandbox.calls if c.method.startswith("chat.")]
        assert all_faults(stage) == []
    for sent in calls:
        texts = [*obeyed(sent.args), str(sent.args.get("text", ""))]
        texts.append(str(sent.args.get("markdown_text", "")))
        for text in texts:
            assert "<!channel" not in text
            assert "<https://evil" not in text
        assert "<@U0ADALINDQ>" not in str(sent.args.get("markdown_text", ""))
    assert agents.RAN == [agents.NASTY]


async def test_a_tampered_digest(opened: Opening) -> None:
    async with opened("plain") as stage:
        card = await stage.asked(ASK, word=APPROVE)
        ada = stage.user("Ada")
        click = stage.sandbox.payload_of_click(ada, stage.channel, card["ts"], APPROVE)
        approval_id, _, _ = click["actions"][0]["value"].partition(".")
        click["actions"][0]["value"] = f"{approval_id}.{'0' * 32}"
        await stage.sandbox.send_interaction(click)
        await stage.whispered("Ada", "changed after you opened it")
        assert APPROVE in buttons(stage.cards()[0])
    assert agents.RAN == []


async def forged(stage: Stage, payload: dict[str, Any], secret: str, *, age: float = 0) -> AppReply:
    """Send a click that is signed with another secret, or at another time."""
    transport = HttpTransport(
        lambda: stage.sandbox.events_url,
        secret,
        clock=lambda: stage.sandbox.clock() - age,
        patience=5,
    )
    try:
        return await transport.send(Parcel(kind="interactive", payload=payload))
    finally:
        await transport.close()


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    with logged() as written:
        yield written


@pytest.mark.parametrize(("secret", "age"), [("another-signing-secret", 0), (SECRET, 600)])
async def test_a_forged_or_old_click_is_refused(
    opened: Opening, secret: str, age: float, log: io.StringIO
) -> None:
    async with opened("plain") as stage:
        card = await stage.asked(ASK, word=APPROVE)
        ada = stage.user("Ada")
        click = stage.sandbox.payload_of_click(ada, stage.channel, card["ts"], APPROVE)
        click["note"] = "a-word-of-the-body"
        reply = await forged(stage, click, secret, age=age)
        assert not reply.ok
        assert APPROVE in buttons(stage.cards()[0])
        assert "wrong signature or time was refused" in log.getvalue()
        assert "a-word-of-the-body" not in log.getvalue()
        assert (await forged(stage, click, SECRET)).ok
        await stage.said("Sent")
    assert agents.RAN == ["hello"]


async def test_an_unsigned_click_is_refused(opened: Opening) -> None:
    async with opened("plain") as stage, aiohttp.ClientSession() as session:
        card = await stage.asked(ASK, word=APPROVE)
        ada = stage.user("Ada")
        click = stage.sandbox.payload_of_click(ada, stage.channel, card["ts"], APPROVE)
        assert stage.sandbox.events_url is not None
        data = {"payload": json.dumps(click)}
        async with session.post(stage.sandbox.events_url, data=data) as answer:
            assert answer.status == 401
        assert APPROVE in buttons(stage.cards()[0])
    assert agents.RAN == []
