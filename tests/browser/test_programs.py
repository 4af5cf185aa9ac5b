"""Six kinds of programs ask in one channel of the demo; each gets what people decided."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from playwright.async_api import Locator, expect

from bot.demo.patterns.programs import ACCESS
from countersign_client import AsyncCountersign
from countersign_client.adapters.pydantic_ai import run
from slack_sandbox import ADA, BEN, MIA
from tests.browser.players import Player, a_demo, player
from tests.browser.test_page import browser, pytestmark
from tests.scenario.programs.adapters.test_openai_agents import SDK
from tests.scenario.programs.adapters.test_pydantic_ai import Shop, refund
from tests.scenario.programs.test_mcp_proxy import texts
from tests.scenario.test_programs_ask import a_shell_job, needs_jq

__all__ = ["browser", "player", "pytestmark"]

ROOT = Path(__file__).parents[2]
PROGRAMS = "C0PROGRAMS"
OPENAI_AGENT = """
import asyncio
from countersign_client import AsyncCountersign
from countersign_client.adapters.openai_agents import run
from tests.scenario.programs.adapters.openai_agents_plays import Shop, call

async def main():
    shop = Shop([call(7)])
    async with AsyncCountersign() as client:
        await run(shop.agent, "Refund.", client=client, key="openai-agent")
    print(shop.model.read["c7"])

asyncio.run(main())
"""


@pytest_asyncio.fixture(loop_scope="session")
async def demo(tmp_path: Path) -> AsyncIterator[str]:
    """The demo with its own policy; the address of its page."""
    async with a_demo(tmp_path / "demo") as url:
        yield url


async def run_program(folder: Path, *command: str, packages: Path = ROOT) -> tuple[int | None, str]:
    """Run a program with the demo's address and key; return its exit code and its output."""
    process = await asyncio.create_subprocess_exec(
        *command, env=environ(folder, packages), cwd=ROOT, stdout=PIPE
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, output.decode()


def environ(folder: Path, packages: Path = ROOT) -> dict[str, str]:
    """The variables of a program: where the API and the client's commands are, and its key."""
    return {
        **ACCESS,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{packages}{os.pathsep}{ROOT}",
        "XDG_STATE_HOME": str(folder),
    }


async def run_pydantic_agent() -> tuple[list[Any], dict[str, Any]]:
    """Run an agent; return the calls that ran, and what its model read, by the call's id."""
    shop = Shop(refund("c3", {"order": 3}))
    async with AsyncCountersign(ACCESS["COUNTERSIGN_URL"], ACCESS["COUNTERSIGN_KEY"]) as client:
        await run(shop.agent, "Refund.", client=client, key="pydantic-agent")
    return shop.ran, shop.read


async def call_mcp_tool(folder: Path, log: Path) -> tuple[bool | None, str]:
    """Call a tool through the proxy; return whether the result is an error, and its text."""
    args = ["-m", "countersign_client.cli", "mcp-proxy", "--name", "toy", "--", sys.executable]
    args += ["-m", "tests.support.programs.toy_server", str(log)]
    server = StdioServerParameters(command=sys.executable, args=args, env=environ(folder))
    async with Client(server) as client:
        await client.list_tools()
        result = await client.call_tool("deploy", {"env": "production"})
        return result.is_error, texts(result)


async def card(player: Player, user: str, words: str) -> Locator:
    """Open #programs as somebody; return the card with these words."""
    await player.become(user, channel=PROGRAMS)
    return player.page.get_by_test_id("messages").locator("article", has_text=words)


async def press(player: Player, user: str, action: str, words: str) -> None:
    """Press a button of the card with these words, as somebody."""
    await player.press(action, within=await card(player, user, words))


@needs_jq
@pytest.mark.skipif(not SDK.is_dir(), reason="make test-all installs the SDK")
async def test_each_program_gets_what_people_decided(player: Player, tmp_path: Path) -> None:
    python, log = sys.executable, tmp_path / "log"
    async with asyncio.TaskGroup() as programs:
        start = programs.create_task
        graph = start(run_program(tmp_path, python, "examples/langgraph_gate.py"))
        script = start(run_program(tmp_path, "sh", "examples/release.sh", "payments", "1.4.2"))
        openai = start(run_program(tmp_path, python, "-P", "-c", OPENAI_AGENT, packages=SDK))
        pydantic = start(run_pydantic_agent())
        mcp = start(call_mcp_tool(tmp_path, log))
        for words in ("Order 7", "Order 12", "Order 3", "go first?", "Run toy.deploy"):
            await expect(await card(player, ADA, words)).to_be_visible()
        await player.look("asked")

        await press(player, ADA, "approve", "Order 7")
        assert await openai == (0, "refunded 7\n")

        await press(player, BEN, "edit", "Order 12")
        await player.form.get_by_label("amount").fill("4.5")
        await player.submit()
        assert await graph == (0, "Refunded 4.50 of order 12.\n")

        await press(player, MIA, "reject", "Order 3")
        await player.form.get_by_role("radio", name="Another reason").check()
        await player.form.locator("textarea").fill("Not on Fridays.")
        await player.submit()
        assert await pydantic == ([], {"c3": "Rejected by Mia Chen: Not on Fridays."})

        question = await card(player, ADA, "Where does payments 1.4.2 go first?")
        await question.get_by_role("button", name="America").click()
        await press(player, BEN, "approve", "Release payments 1.4.2 in us")
        assert await script == (0, "payments 1.4.2 is live in us\n")
        await player.look("decided")

        await player.skip("86400")
        silence = "Not run: nobody answered within 8 h. This is no rejection."
        assert await mcp == (True, silence)
        assert not log.exists()

    url, key = ACCESS["COUNTERSIGN_URL"], ACCESS["COUNTERSIGN_KEY"]
    async with a_shell_job(tmp_path, url, key) as curl:
        await press(player, ADA, "approve", "Deploy payments 1.4.2")
        assert await curl == 0
    assert (tmp_path / "deployed").read_text(encoding="utf-8") == "payments 1.4.2\n"
    await expect(await card(player, ADA, "Deploy payments 1.4.2")).to_contain_text("Approved by")
    await player.look("all")
