"""The agents of examples/: each plays its approval on the real bot, as its docstring says."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.commands.cli import main
from bot.layout.action_ids import ActionId
from tests.support.stage import a_stage

EXAMPLES = Path(__file__).parents[2] / "examples"
AGENTS = sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The modules of the examples, as PYTHONPATH=examples makes them found."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("EXAMPLE_VAULT", str(tmp_path / "vault.json"))
    yield
    for name in AGENTS:
        sys.modules.pop(name, None)


async def test_a_small_refund_is_for_those_on_call_and_a_large_one_for_finance(
    tmp_path: Path,
) -> None:
    policy = str(EXAMPLES / "refund-policy.yaml")
    settings = {"COUNTERSIGN_AGENT": "refund_shop:build", "COUNTERSIGN_POLICY": policy}
    async with a_stage(tmp_path, "socket", **settings) as stage:
        await stage.say("Rosa", "@countersign refund A-2")
        small = await stage.card(word=ActionId.APPROVE)
        assert "The customer of A-2 gets 19.50 € back" in str(small)
        await stage.click("Ada", small, ActionId.APPROVE)
        await stage.said("19.50 € of order A-2 are refunded")
        await stage.say("Rosa", "@countersign refund A-1")
        large = await stage.card(number=2, word=ActionId.APPROVE)
        await stage.click("Ada", large, ActionId.APPROVE)
        await stage.whispered("Ada", "S0FINANCE1")
        await stage.click("Mia", large, ActionId.APPROVE)
        await stage.said("240.00 € of order A-1 are refunded")


async def test_a_deployment_stops_before_its_node_and_asks_who_announces_it(
    tmp_path: Path,
) -> None:
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT="deploy_bot:build") as stage:
        await stage.say("Rosa", "@countersign deploy payments 1.4.2")
        card = await stage.card(word=ActionId.APPROVE)
        await stage.click("Ada", card, ActionId.APPROVE)
        question = await stage.card(number=2, word=ActionId.ANSWER)
        assert "Who announces the release?" in str(question)
        await stage.say("Ada", "Ben", thread_ts=card["thread_ts"])
        await stage.said("payments 1.4.2 is live with 3 replicas. Ben announces it.")


async def test_the_runbook_restarts_after_approval_and_asks_whether_that_helped(
    tmp_path: Path,
) -> None:
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT="oncall_runbook:build") as stage:
        await stage.say("Rosa", "@countersign follow the runbook")
        card = await stage.card(word=ActionId.APPROVE)
        assert "Restart cache in production" in str(card)
        await stage.click("Ada", card, ActionId.APPROVE)
        question = await stage.card(number=2, word=ActionId.ANSWER)
        assert "Do customers still see errors?" in str(question)


async def test_totals_are_told_at_once_and_personal_data_after_approval(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT="data_questions:build") as stage:
        await stage.say("Rosa", "@countersign how much did Oslo order?")
        await stage.said("Oslo: 2 orders, 259.50 €")
        await stage.say("Rosa", "@countersign who ordered in Oslo?")
        card = await stage.card(word=ActionId.APPROVE)
        assert "Shows names and addresses of 2 customers" in str(card)
        assert "eve@example.com" not in str(stage.messages())
        await stage.click("Ada", card, ActionId.APPROVE)
        await stage.said("Eve Berg, .*eve@example.com")


async def test_a_secret_of_the_vault_is_in_no_message_and_no_record(tmp_path: Path) -> None:
    vault = tmp_path / "vault.json"
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT="own_vault:build") as stage:
        await stage.say("Rosa", "@countersign rotate the password")
        card = await stage.card(word=ActionId.APPROVE)
        assert not vault.exists()
        await stage.click("Ada", card, ActionId.APPROVE)
        await stage.said("guest-wifi is new, fingerprint [0-9a-f]{8}")
        value = json.loads(vault.read_text("utf-8"))["guest-wifi"]
        assert stat.S_IMODE(vault.stat().st_mode) == 0o600
        assert value not in str(stage.messages())
    stored = b"".join(
        path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()
    )
    assert b"guest-wifi" in stored
    assert value.encode() not in stored


@pytest.mark.parametrize(
    ("policy", "agent"), [("refund-policy.yaml", "refund_shop"), ("wifi-policy.yaml", "wifi")]
)
def test_policies_of_the_examples_have_no_faults(policy: str, agent: str) -> None:
    said: list[str] = []
    environ = {"COUNTERSIGN_AGENT": f"{agent}:build"}
    argv = ["policy", "check", str(EXAMPLES / policy), "--offline"]
    assert main(argv, environ=environ, say=said.append) == 0, said
