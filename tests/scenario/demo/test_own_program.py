"""A program of one's own asks in the demo, with the address and the key that the demo prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.demo.patterns.programs import ACCESS
from countersign_client import AsyncCountersign
from tests.browser.players import a_demo


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("deploy", {"service": "payments", "env": "production"}),
        ("mail", {"to": "nora@acme.example"}),
    ],
)
async def test_people_in_the_channel_decide_about_any_call(
    tmp_path: Path, tool: str, arguments: dict[str, object]
) -> None:
    async with (
        a_demo(tmp_path),
        AsyncCountersign(ACCESS["COUNTERSIGN_URL"], ACCESS["COUNTERSIGN_KEY"]) as program,
    ):
        request = await program.create("Act", key="k", tool=tool, arguments=arguments)
        assert request.status == "pending"
