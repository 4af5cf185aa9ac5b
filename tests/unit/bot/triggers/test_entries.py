"""Faults of triggers and schedules in the file of agents: all at once, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai.models.test import TestModel

from bot.policy.parser.problems import PolicyError
from bot.threads.named_agents import read_roster

AGENTS = 'version: 1\nagents:\n  ops: {use: "bot.demo:build", channels: ["*"]}\n'


def faults(text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        read_roster((AGENTS + text).encode(), TestModel())
    return caught.value.text("countersign.yaml")


def test_a_file_names_triggers_and_schedules(tmp_path: Path) -> None:
    secret = tmp_path / "pager"
    secret.write_text("0123456789abcdef")
    text = f"""
triggers:
  pager:
    agent: ops
    channel: C0OPS
    owner: U0OLGA
    verify: {{kind: github, secret_file: {secret}}}
    when: [{{path: alert.severity, op: in, value: [critical]}}]
schedules:
  certificates:
    channel: C0OPS
    owner: U0OLGA
    cron: "0 9 * * mon"
    timezone: Europe/Berlin
    text: Which certificates expire within 30 days?
"""
    roster = read_roster((AGENTS + text).encode(), TestModel())
    assert roster.triggers["pager"].limits.per_hour == 12
    assert roster.schedules["certificates"].missed == "skip"


def test_each_fault_is_told(tmp_path: Path) -> None:
    (tmp_path / "short").write_text("short")
    words = faults(
        f"""
triggers:
  pager: {{channel: C0OPS, owner: U0OLGA}}
  Upper: {{channel: C0OPS, owner: U0OLGA, verify: {{kind: none, secret_file: {tmp_path}/no}}}}
  short: {{channel: ops, owner: olga, verify: {{kind: bearer, secret_file: {tmp_path}/short}}}}
schedules:
  daily: {{channel: C0OPS, owner: U0OLGA, cron: "61 * * * *", timezone: Here, text: Look.}}
"""
    )
    for part in ("verify", "kind", "No such file", "fewer than 16 bytes", "61 * * * *", "Here"):
        assert part in words


def test_an_unknown_agent_is_a_fault() -> None:
    task = '{agent: opz, channel: C0OPS, owner: U0OLGA, cron: "0 9 * * *", text: Look.}'
    assert "no agent is called 'opz'" in faults(f"schedules:\n  daily: {task}\n")
