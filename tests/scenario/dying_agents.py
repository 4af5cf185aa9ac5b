"""Agents whose tools end their process, named by COUNTERSIGN_AGENT; each ignores the model.

A message names the tool: "@countersign leave". What each tool did is a line of the file `ACTS`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponsePart,
    ToolReturnPart,
)
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, tool
from agents.core.tools import Tool
from agents.models import AnsweringModel, call, say
from tests.scenario.agents import newest_words

ACTS = "TEST_ACTS"
"""The variable with the path of a file."""


def _act(name: str) -> None:
    with Path(os.environ[ACTS]).open("a", encoding="utf-8") as file:
        file.write(f"{name}\n")
        file.flush()
        os.fsync(file.fileno())


@tool
def leave() -> str:
    """Do what a command line parser does with bad input."""
    _act("leave")
    sys.exit(2)


@tool
async def leave_in_loop() -> str:
    """Do the same in the event loop."""
    _act("leave_in_loop")
    sys.exit(2)


@tool
def crash() -> str:
    """End the process at once."""
    _act("crash")
    os._exit(3)


@tool
def kill() -> str:
    """End the process by a signal."""
    _act("kill")
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@tool(gate="approval", title="Crash after {name}")
def crash_approved(name: str) -> str:
    """Act, and end the process at once.

    Args:
        name: What to do first.
    """
    _act(f"approved {name}")
    os._exit(3)


@tool
def greet() -> str:
    """Say hello."""
    _act("greet")
    return "hello"


TOOLS: list[Tool] = [leave, leave_in_loop, crash, kill, crash_approved, greet]
_NAMES = {each_tool.definition.name: each_tool for each_tool in TOOLS}


def _answer(messages: list[ModelMessage]) -> Iterable[ModelResponsePart]:
    returns = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returns:
        return [say(f"The result: {returns[-1].content}")]
    words = newest_words(messages).split()
    named = [word for word in words if word in _NAMES]
    if not named:
        return [say("Name a tool.")]
    arguments = {"name": words[-1]} if named[0] == "crash_approved" else {}
    return [call(named[0], arguments)]


def dying(_: Model) -> Agent:
    """Calls the tool that a message names, and says what came of it."""
    model = AnsweringModel(_answer, name="dying")
    return ChatModelAgent(name="dying", model=model, tools=TOOLS)
