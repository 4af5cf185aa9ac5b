"""The usual questions: what docs/how-do-i.md tells people to copy works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from bot.commands.cli import main
from bot.config.agents import load_agents, load_model
from bot.config.settings import Settings
from bot.slack.listeners.typed.words import WORDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-do-i.md").read_text("utf-8")
FENCE = re.compile(r"^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def block(question: str) -> str:
    """What stands to copy below a question."""
    (section,) = [one for one in PAGE.split("\n## ") if question in one.partition("\n")[0]]
    (found,) = FENCE.findall(section)
    return str(found)


def test_there_are_fifteen_questions_of_few_lines() -> None:
    sections = [one for one in PAGE.split("\n## ") if one.startswith("… ")]
    assert len(sections) == 15
    for section in sections:
        text = FENCE.sub("", section.partition("\n")[2]).strip()
        assert len(text.splitlines()) <= 3, section


def test_each_command_to_copy_begins_with_a_word_that_works() -> None:
    typed = re.findall(r"/countersign (\w+)", PAGE)
    assert {"stop", "quiet", "away"} <= {*typed} <= {*WORDS}


def test_the_settings_to_copy_are_settings() -> None:
    names = set(re.findall(r"COUNTERSIGN_[A-Z_]+", block("one list a day")))
    assert names == {"COUNTERSIGN_DAILY_LIST"}
    assert names <= {field.alias for field in Settings.model_fields.values()}


@pytest.mark.parametrize(
    ("env", "names", "requirements"),
    [
        ("staging", ["staging"], [[{"ops": 1}]]),
        ("production", ["default"], [[{"sre": 1}]]),
        ("qa", ["default"], [[{"sre": 1}]]),
    ],
)
def test_sre_decides_about_production_and_anybody_about_staging(
    env: str, names: list[str], requirements: Any, tmp_path: Path
) -> None:
    policy, table = tmp_path / "policy.yaml", tmp_path / "cases.yaml"
    policy.write_text(block("let SRE decide"))
    world = {
        "people": {"U0ADA": {}, "U0ROSA": {}},
        "usergroups": {"S0SRE": ["U0ADA"]},
        "channels": {"C0OPS": ["U0ADA", "U0ROSA"]},
        "bot_in": ["C0OPS"],
        "agents": ["clerk"],
        "tools": {"deploy": {"schema": {"properties": {"env": {"type": "string"}}}}},
    }
    call = {"tool": "deploy", "args": {"env": env}, "said": ["U0ROSA"]}
    expect = {"effect": "ask", "names": names, "requirements": requirements, "undecidable": ""}
    case = {"id": "one", "kind": "explain", "call": call, "expect": expect}
    table.write_text(yaml.safe_dump({"world": world, "cases": [case]}))
    said: list[str] = []
    assert main(["policy", "test", str(policy), str(table)], environ={}, say=said.append) == 0, said


async def test_a_tool_calls_an_api_with_a_secret_and_is_tested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[str | None, Any]] = []

    async def refunds(request: web.Request) -> web.Response:
        seen.append((request.headers.get("Authorization"), await request.json()))
        return web.Response(text="refunded")

    app = web.Application()
    app.router.add_post("/refunds", refunds)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        monkeypatch.setenv("SHOP_URL", f"http://127.0.0.1:{runner.addresses[0][1]}")
        monkeypatch.setenv("SHOP_TOKEN", "s3cret")
        module: dict[str, Any] = {"__name__": "shop"}
        exec(block("calls an API"), module)  # noqa: S102 - our own page
        exec(block("test my agent"), module)  # noqa: S102 - our own page
        await module["test_a_refund_waits_for_people"]()
    finally:
        await runner.cleanup()
    assert seen == [("Bearer s3cret", {"order": "A-1", "amount": 20})]


def test_the_agent_of_the_image_is_found_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the variables of both Dockerfiles do, with the agent of the README."""
    agent = (ROOT / "examples" / "wifi.py").read_text("utf-8")
    base = (ROOT / "deploy" / "Dockerfile").read_text("utf-8")
    (path,) = re.findall(r"PYTHONPATH=(\S+)", base)
    (name,) = re.findall(r"COUNTERSIGN_AGENT=(\S+)", block("in Docker"))
    assert f"COPY wifi.py {path}/" in block("in Docker")
    (tmp_path / "wifi.py").write_text(agent)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [one.name for one in load_agents(name, load_model("demo")).values()] == ["wifi"]
