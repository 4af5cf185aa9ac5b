"""The start says what it waits for: a server may need seconds to answer."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack

import pytest

from bot.config.settings import Settings
from bot.errors import SettingsError
from bot.main import Outside, start
from slack_sandbox.workspace.people import ADA
from tests.support.stage import UNREACHABLE
from tests.support.stores import SqliteStores


@pytest.mark.parametrize(
    ("more", "kind"),
    [({}, "the embedded database"), ({"MONGODB_URI": "mongodb://127.0.0.1:9/x"}, "MongoDB")],
)
async def test_a_start_says_what_it_waits_for(
    more: dict[str, str], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bot.main")
    async with AsyncExitStack() as stack:
        with pytest.raises(SettingsError):
            await start(
                Settings.load({**UNREACHABLE, "COUNTERSIGN_APPROVERS": ADA, **more}),
                stack,
                outside=Outside(storage=SqliteStores(None)),
            )
    said = [record.getMessage() for record in caplog.records if record.name == "bot.main"]
    assert said == [f"opening {kind}", "connecting to Slack"]
