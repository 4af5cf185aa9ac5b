"""The guides for authors of agents: their Python code runs, and prints what the pages show.

All blocks of a page run in order, in one namespace. A `text` block directly below a block of code
is what the code prints; code without one prints nothing.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from dataclasses import fields as fields_of, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web

import agents
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
from bot.layout.action_ids import ActionId
from tests.pages.blocks import Block, read_blocks
from tests.pages.site import fences
from tests.support.stage import a_stage

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = [
    GUIDES / f"{name}.md"
    for name in (
        "write-an-agent",
        "call-an-api-with-a-secret",
        "ask-people-for-information",
        "test-an-agent",
        "run-several-agents",
        "use-the-library-alone",
        "compose-agents",
        "use-graphs",
        "extend-the-runtime",
        "migrate-from-langgraph",
    )
]
WRITTEN = [page for page in PAGES if "not written yet" not in page.read_text("utf-8")]
LONGEST = 52
"""Lines of a block, such as a whole file: a longer one is hard to follow."""


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
async def test_the_code_prints_what_the_page_shows(
    page: Path, module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    files = {fence.line: fence.name for fence in fences(page) if fence.kind == "python"}
    for block in read_blocks(page):
        name = files[block.line]
        if name:
            (tmp_path / name).write_text(block.code, "utf-8")
        if not name.startswith("test_"):  # pytest runs these, in the page's console block
            assert await block.run(module) == (block.printed or ""), f"line {block.line}"
    for name in files.values():
        sys.modules.pop(name.removesuffix(".py"), None)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_blocks_are_short(page: Path) -> None:
    blocks = read_blocks(page)
    assert blocks
    assert len(blocks) == len(re.findall(r"^```python$", page.read_text("utf-8"), re.MULTILINE))
    lines = [line for block in blocks for line in block.code.splitlines()]
    assert max(map(len, lines)) <= 100
    assert max(len(block.code.splitlines()) for block in blocks) <= LONGEST


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_blocks_can_be_pasted_into_the_shell_of_python(page: Path) -> None:
    """An empty line ends a class or a function there."""
    pasted = [fence for fence in fences(page) if fence.kind == "python" and not fence.name]
    assert [fence.line for fence in pasted if re.search(r"\n\n[ \t]", fence.text)] == []


async def test_another_output_is_noticed(module: ModuleType) -> None:
    block = Block(PAGES[0], line=3, code="import asyncio\nprint(1)\n", printed="2\n")
    assert await block.run(module) == "1\n"


async def test_the_agent_of_the_guide_does_what_people_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the demo's model, though a tool is called as one of the demo's."""
    page = GUIDES / "write-an-agent.md"
    text = page.read_text("utf-8")
    (name,) = re.findall(r"Save as `(\w+)\.py`:$", text, re.MULTILINE)
    (typed,) = re.findall(r"^> (@countersign .*)$", text, re.MULTILINE)
    assert f"COUNTERSIGN_AGENT={name}:build PYTHONPATH=. " in text
    (tmp_path / f"{name}.py").write_text(read_blocks(page)[0].code, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=f"{name}:build") as stage:
        await stage.say("Rosa", typed)
        card = await stage.card(word=ActionId.APPROVE)
        assert "Starts 3 replicas of payments 1.4.2, one after another." in str(card)
        await stage.click("Ada", card, ActionId.APPROVE)
        await stage.said("payments 1.4.2 is live in staging with 3 replicas")
    del sys.modules[name]


SECRET = "t0ken-of-the-shop"


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
    await read_blocks(GUIDES / "call-an-api-with-a-secret.md")[0].run(module)
    tool = vars(module)["refund_order"]
    model = ScriptedModel([call("refund_order", {"order": "A-1", "amount": 20}), say("Done.")])
    store = MemoryCheckpointStore()
    runner = Runner(ChatModelAgent(name="s", model=model, tools=[tool]), checkpoint_store=store)
    events = [event async for event in runner.query("Refund A-1.", checkpoint_id="1")]
    asked = events[-1]
    assert isinstance(asked, InterruptEvent)
    waiting = await store.load("1")
    (context,) = asked.contexts
    assert isinstance(context.info, ReviewEditInfo)
    answer = {context.id: context.info.accept(by="ada")}
    events += [event async for event in runner.resume("1", answer)]
    assert [tool_event.outcome for tool_event in events if isinstance(tool_event, ToolEvent)] == [
        "ran"
    ]
    ((token, key),) = refunds
    assert (token, bool(key)) == (f"Bearer {SECRET}", True)
    assert SECRET not in f"{events} {waiting}"


def test_names_that_a_migration_is_told_exist() -> None:
    text = (GUIDES / "migrate-from-langgraph.md").read_text("utf-8").partition("## 4. ")[2]
    lines = [line for line in text.partition("## Check")[0].splitlines() if line.startswith("| ")]
    names, unknown, checked = known_names(), [], 0
    for cell in (re.split(r"(?<!\\)\|", line)[2] for line in lines):
        for name in re.findall(r"`([A-Za-z_][\w.]*)`", cell):
            first, *rest = name.split(".")
            checked += 1
            if not any(leads(value, rest) for value in names.get(first, [])):
                unknown.append(name)
    assert unknown == []
    assert checked > 40


def known_names() -> dict[str, list[object]]:
    """Every name of every module of the runtime, with what it may mean."""
    by_name: dict[str, list[object]] = {"agents": [agents]}
    for info in pkgutil.walk_packages(agents.__path__, "agents."):
        owner = importlib.import_module(info.name)
        for name, value in vars(owner).items():
            if not name.startswith("_"):
                by_name.setdefault(name, []).append(value)
    return by_name


def has(value: object, name: str) -> bool:
    """Whether a class has a member or a field of this name."""
    if (
        inspect.isclass(value)
        and is_dataclass(value)
        and name in {field.name for field in fields_of(value)}
    ):
        return True
    return hasattr(value, name) or name in getattr(value, "__annotations__", {})


def leads(value: object, path: list[str]) -> bool:
    for at, name in enumerate(path):
        if not has(value, name):
            return False
        if at < len(path) - 1:
            value = getattr(value, name)
    return True
