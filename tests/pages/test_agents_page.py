"""docs/agents.md: its code runs and prints what stands below it; a secret gets to nobody else."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web

from agents import (
    ChatModelAgent,
    InterruptEvent,
    MemoryCheckpointStore,
    ReviewEditInfo,
    Runner,
    ScriptedModel,
    ToolEvent,
)
from agents.models import call, say
from tests.pages.blocks import Section, chapters, read_sections

SECTIONS = read_sections(Path(__file__).parents[2] / "docs" / "agents.md")
HELPERS = SECTIONS[0]
SECRET = "t0ken-of-the-shop"


@pytest.mark.parametrize("chapter", chapters(SECTIONS[1:]), ids=lambda found: found[0].title)
async def test_the_code_runs_and_prints_what_the_page_says(
    chapter: list[Section], module: ModuleType
) -> None:
    for section in [HELPERS, *chapter]:
        for block in section.blocks:
            assert await block.run(module) == (block.printed or ""), section.title


def test_each_block_of_code_is_run() -> None:
    run = [
        one for chapter in chapters(SECTIONS[1:]) for section in chapter for one in section.blocks
    ]
    text = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")
    assert len(run) + len(HELPERS.blocks) == text.count("```python\n") == 9


@pytest.fixture
async def refunds(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A shop on this machine; the keys and the token that it was called with."""
    seen: list[tuple[str | None, str | None]] = []

    async def take(request: web.Request) -> web.Response:
        seen.append((request.headers.get("Authorization"), request.headers.get("Idempotency-Key")))
        return web.Response(text="refunded")

    app = web.Application()
    app.router.add_post("/refunds", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("SHOP_URL", f"http://127.0.0.1:{runner.addresses[0][1]}")
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    yield seen
    await runner.cleanup()


async def test_the_secret_of_a_tool_is_in_the_request_and_nowhere_else(
    module: ModuleType, refunds: list[tuple[str | None, str | None]]
) -> None:
    (section,) = [one for one in SECTIONS if one.title == "An API, and its secret"]
    await section.blocks[0].run(module)
    refund = vars(module)["refund"]
    model = ScriptedModel([call("refund", {"order": "A-1", "amount": 20}), say("Done.")])
    store = MemoryCheckpointStore()
    runner = Runner(ChatModelAgent(name="s", model=model, tools=[refund]), checkpoint_store=store)
    events = [event async for event in runner.query("Refund A-1.", checkpoint_id="1")]
    asked = events[-1]
    assert isinstance(asked, InterruptEvent)
    waiting = await store.load("1")
    (context,) = asked.contexts
    assert isinstance(context.info, ReviewEditInfo)
    answer = {context.id: context.info.accept(by="ada")}
    events += [event async for event in runner.resume("1", answer)]
    assert [one.outcome for one in events if isinstance(one, ToolEvent)] == ["ran"]
    ((token, key),) = refunds
    assert (token, bool(key)) == (f"Bearer {SECRET}", True)
    assert SECRET not in f"{events} {waiting}"
