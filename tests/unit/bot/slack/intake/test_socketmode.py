"""Socket Mode: what becomes of an envelope whose connection is closed."""

from __future__ import annotations

import logging
from typing import cast

import pytest
from aiohttp import ClientConnectionResetError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest

from bot.slack.intake.socketmode import SocketMode
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import ASK, Counter, an_event
from tests.unit.bot.office import Office


class Closed:
    """A connection that was closed while an envelope was under way."""

    logger = logging.getLogger("slack_sdk")

    async def send_socket_mode_response(self, _: object) -> None:
        raise ClientConnectionResetError("Cannot write to closing transport")


async def test_an_envelope_under_way_at_a_stop_is_one_line_of_the_log(
    storage: SqliteStores, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    counter = Counter.on(Office(storage, []))
    envelope = SocketModeRequest(type="events_api", envelope_id="e1", payload=an_event(text=ASK))
    mode = SocketMode(counter.bolt, "xapp-test")
    try:
        await mode.handle(cast(SocketModeClient, Closed()), envelope)
    finally:
        await mode.client.close()  # type: ignore[no-untyped-call]  # not typed in slack_sdk
    assert "an envelope was not acknowledged: ClientConnectionResetError" in caplog.text
    assert "Traceback" not in caplog.text
