"""Reports of a tool's progress: from any thread, with or without a run."""

from __future__ import annotations

from typing import Any

import pytest

from agents import report_progress, tool
from agents.agent import ToolProgress
from agents.core.tools import Tool
from agents.models import call, say
from tests.unit.agents.support import World


@tool
def in_thread() -> str:
    """Work in a thread."""
    report_progress("412 of 1,000 orders", fraction=0.412)
    return "done"


@tool
async def in_task() -> str:
    """Work in a task."""
    report_progress("412 of 1,000 orders", fraction=0.412)
    return "done"


async def report_of(made: Tool, arguments: dict[str, Any] | None = None) -> ToolProgress:
    """The one report of a call."""
    world = World([call(made.definition.name, arguments, id="c1"), say("ok")], [made])
    (report,) = [event for event in await world.run() if isinstance(event, ToolProgress)]
    return report


@pytest.mark.parametrize("made", [in_thread, in_task])
async def test_a_report_is_an_event_of_its_call(made: Tool) -> None:
    report = await report_of(made)
    assert (report.call.id, report.text) == ("c1", "412 of 1,000 orders")
    assert report.fraction == 0.412


@tool(secret=["pin", "more"])
def log_in(pin: str, more: list[str]) -> str:
    """Log in."""
    report_progress(f"trying {pin}, then {more[0]}", fraction=float("nan"))
    return "in"


async def test_a_report_leaves_out_what_the_tool_declares_secret() -> None:
    report = await report_of(log_in, {"pin": "orange-cat", "more": ["blue-cat", "a"]})
    assert report.text == "trying •••• redacted, then •••• redacted"
    assert report.fraction is None


@tool(secret=["pin", "is_new"])
def sign_up(pin: str | None = None, is_new: bool = True) -> str:
    """Sign up."""
    report_progress("None is True")
    return "in"


async def test_a_report_keeps_words_that_look_like_no_value() -> None:
    assert (await report_of(sign_up, {"pin": None, "is_new": True})).text == "None is True"


def test_a_report_outside_of_a_run_does_nothing() -> None:
    def work() -> str:
        report_progress("half", fraction=0.5)
        return "done"

    assert work() == "done"
