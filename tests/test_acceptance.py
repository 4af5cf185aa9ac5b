"""Each acceptance check of the doors for programs has its tests; the list is here, by number."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
API, PLAY, CLIENT = "unit/bot/api", "scenario/programs", "unit/countersign_client"
NUMBERS = frozenset([*range(1, 21), *range(31, 37), *range(41, 46), *range(49, 52)]) | frozenset(
    [*range(55, 64), *range(67, 74)]
)
CHECKS: dict[int, tuple[str, ...]] = {
    1: (
        f"{PLAY}/test_examples.py",
        "scenario/test_programs_ask.py::job_of_the_examples",
        "browser/test_programs.py::gets_what_people_decided",
    ),
    2: ("scenario/test_programs_ask.py::shell_script",),
    3: (f"{API}/test_requests.py::same_key", "contract/test_programs_at_once.py::hundred"),
    4: ("contract/test_programs_at_once.py::hundred_creations",),
    5: (f"{PLAY}/test_restarts.py::5", "scenario/test_programs_ask.py::outlives"),
    6: (f"{PLAY}/test_restarts.py::6", f"{API}/test_door.py::shutdown_answers_held"),
    7: (f"{API}/test_waiting.py::worked_out_once", f"{API}/test_waiting.py::left_in_the_hub"),
    8: (f"{API}/test_openapi.py", f"{API}/test_shapes.py"),
    9: (f"{API}/test_door.py::each_wrong_key",),
    10: ("scenario/test_programs_ask.py::rule_decides_for_programs",),
    11: (f"{API}/test_cards.py::nobody_can_decide", f"{API}/test_requests.py::rule_that_denies"),
    12: (
        f"{PLAY}/test_asking.py",
        f"{API}/test_requests.py::expired_request",
        "browser/test_programs.py::gets_what_people_decided",
    ),
    13: (f"{API}/test_requests.py::cancelling",),
    14: (f"{API}/test_door.py::pages_hold", f"{API}/test_door.py::cursor_is_bound"),
    15: (f"{API}/test_streams.py::15", f"{API}/test_door.py::stream"),
    16: (
        f"{API}/test_door.py::61st",
        f"{API}/test_requests.py::too_many_undecided",
        "cost/test_limits.py::16",
    ),
    17: (f"{API}/test_cards.py",),
    18: (f"{API}/test_schema_subset.py",),
    19: (f"{API}/test_cards.py",),
    20: (f"{API}/test_cards.py",),
    31: ("contract/test_programs_at_once.py::two_hundred_starts",),
    32: (f"{API}/test_deaths.py::32", "chaos/test_chaos.py::programs_that_die"),
    33: (f"{API}/test_executions.py::starts_once", f"{API}/test_executions.py::idempotent"),
    34: (f"{API}/test_executions.py::lost_call", f"{API}/test_executions.py::late_result"),
    35: (f"{API}/test_executions.py::of_an_edited_call", f"{PLAY}/test_executions.py::edited"),
    36: (f"{API}/test_executions.py::token_proves", f"{API}/test_executions.py::all_tokens"),
    41: ("unit/bot/webhooks/test_sending.py",),
    42: ("unit/bot/webhooks/test_delivery.py", "unit/bot/webhooks/test_sending.py"),
    43: ("unit/bot/webhooks/test_deaths.py", "chaos/test_chaos.py::programs_that_die"),
    44: ("unit/bot/webhooks/test_endpoints.py::44_all_since",),
    45: ("unit/bot/webhooks/test_addresses.py",),
    49: (f"{API}/test_threads.py",),
    50: (f"{API}/test_threads.py",),
    51: ("unit/bot/triggers/test_triggers.py",),
    55: (f"{PLAY}/test_asking.py",),
    56: (f"{PLAY}/test_gate.py", f"{PLAY}/test_gated_commands.py"),
    57: (f"{PLAY}/test_outages.py",),
    58: (f"{PLAY}/adapters/test_langgraph.py",),
    59: (f"{PLAY}/adapters/test_pydantic_ai.py",),
    60: (f"{PLAY}/adapters/openai_agents_plays.py",),
    61: (f"{CLIENT}/test_frameworks.py",),
    62: (f"{PLAY}/test_command_line.py",),
    63: (f"{PLAY}/test_gated_commands.py", f"{PLAY}/test_gate_processes.py"),
    67: (f"{PLAY}/test_mcp_proxy.py", f"{PLAY}/test_mcp_server.py"),
    68: (f"{CLIENT}/mcp/test_proxy.py", f"{PLAY}/test_mcp_server.py"),
    69: (f"{PLAY}/test_mcp_server.py::69_a_",),
    70: (f"{PLAY}/test_mcp_proxy.py", f"{PLAY}/test_mcp_proxy_http.py"),
    71: (f"{PLAY}/test_mcp_server.py",),
    72: (f"{PLAY}/test_hooks.py",),
}
"""Files under `tests/`, each with a part of a test's name where not all of the file is meant."""
OPEN = frozenset({73})
"""Checks without a test: plays with Claude Code itself."""


def test_each_check_has_a_test_or_is_open() -> None:
    assert frozenset(CHECKS) | OPEN == NUMBERS
    assert not frozenset(CHECKS) & OPEN


@pytest.mark.parametrize("number", CHECKS)
def test_the_tests_of_a_check_are_there(number: int) -> None:
    for place in CHECKS[number]:
        file, _, name = place.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"def test_\w*{name}", text), place
