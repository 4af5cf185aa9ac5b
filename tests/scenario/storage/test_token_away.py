"""Slack refuses the token for a while: clicks are answered, and nothing is left untrue after."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.errors import SettingsError
from bot.main import run
from tests.support.stage import APPROVE, Transport, a_stage, buttons


async def test_a_wrong_token_of_the_app_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"SLACK_APP_TOKEN: .*invalid_auth; check"):
        async with a_stage(tmp_path, "socket", SLACK_APP_TOKEN="xapp-another"):
            pass


async def test_a_bot_that_is_still_connecting_can_be_stopped(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        await stage.stop_bot()
        stage.sandbox.fail("apps.connections.open", error="internal_error", times=1_000)
        stop, ready, before = asyncio.Event(), asyncio.Event(), len(stage.sandbox.calls)
        running = asyncio.create_task(run(stage.settings(), stop=stop, ready=ready))
        await stage.sandbox.until(
            lambda: any(
                call.method == "apps.connections.open" for call in stage.sandbox.calls[before:]
            )
        )
        assert not ready.is_set()
        stop.set()
        await asyncio.wait_for(running, 60)
        assert not ready.is_set()


@pytest.mark.parametrize("transport", ["socket", "http"])
async def test_i7_a_click_is_answered_while_slack_refuses_the_token(
    tmp_path: Path, transport: Transport
) -> None:
    async with a_stage(tmp_path, transport) as stage:
        card = await stage.asked("@countersign deploy payments 1.4.2 to production")
        stage.sandbox.revoke_token()
        stage.clock.forward(minutes=10)  # what is known is too old to decide
        await stage.click("Ada", card, APPROVE)
        text = await stage.whispered("Ada", "I couldn't check whether you're allowed to do this")
    assert "try again" in text


async def test_i8_a_card_that_was_decided_meanwhile_is_drawn_when_the_token_is_good(
    tmp_path: Path,
) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        card = await stage.asked("@countersign deploy search 3.0.1 to staging")
        for method in ("chat.update", "chat.postMessage", "chat.startStream", "chat.postEphemeral"):
            stage.sandbox.fail(method, error="token_revoked", times=1_000)
        await stage.click("Ada", card, APPROVE)
        await stage.whispered("Ada", "Your decision counts")
        assert buttons(await stage.card())
        stage.sandbox.calm()
        await stage.click("Ben", card, APPROVE)
        await stage.whispered("Ben", "was first: approved")
        done = await stage.card(word="ran")
        await stage.said("search 3.0.1")
    assert buttons(done) == []


async def test_i8_a_card_is_drawn_by_the_next_process(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        card = await stage.asked("@countersign deploy search 3.0.1 to staging")
        stage.sandbox.fail("chat.update", error="invalid_auth", times=1_000)
        await stage.click("Ada", card, APPROVE)
        await stage.said("search 3.0.1")
        await stage.stop_bot()
        stage.sandbox.calm()
        await stage.start_bot()
        done = await stage.card(word="ran")
    assert buttons(done) == []
