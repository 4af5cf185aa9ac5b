"""Reports of a tool's progress: from any thread, with or without a run."""

from __future__ import annotations

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


@pytest.mark.parametrize(("name", "made"), [("in_thread", in_thread), ("in_task", in_task)])
async def test_a_report_is_an_event_of_its_call(name: str, made: Tool) -> None:
    world = World([call(name, id="c1"), say("ok")], [made])
    reports = [event for event in await world.run() if isinstance(event, ToolProgress)]
    assert [(report.call.id, report.text, report.fraction) for report in reports] == [
        ("c1", "412 of 1,000 orders", 0.412)
    ]


@tool(secret=["pin", "more"])
def log_in(pin: str, more: list[str]) -> str:
    """Log in."""
    report_progress(f"trying {pin}, then {more[0]}", fraction=float("nan"))
    return "in"


async def test_a_report_leaves_out_what_the_tool_declares_secret() -> None:
    asked = call("log_in", {"pin": "orange-cat", "more": ["blue-cat", "a"]}, id="c1")
    events = await World([asked, say("ok")], [log_in]).run()
    (report,) = [event for event in events if isinstance(event, ToolProgress)]
    assert report.text == "trying •••• redacted, then •••• redacted"
    assert report.fraction is None


@tool(secret=["pin", "is_new"])
def sign_up(pin: str | None = None, is_new: bool = True) -> str:
    """Sign up."""
    report_progress("None is True")
    return "in"


async def test_a_report_keeps_words_that_look_like_no_value() -> None:
    asked = call("sign_up", {"pin": None, "is_new": True}, id="c1")
    events = await World([asked, say("ok")], [sign_up]).run()
    assert [event.text for event in events if isinstance(event, ToolProgress)] == ["None is True"]


def test_a_report_outside_of_a_run_does_nothing() -> None:
    def work() -> str:
        report_progress("half", fraction=0.5)
        return "done"

    assert work() == "done"
