"""Programs outside of the bot: the agent starts a script, and the script asks people itself."""

from __future__ import annotations

import asyncio
import sys
import uuid
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from pydantic_ai.models import Model

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.gates.decorator import tool
from bot.demo.patterns.rules import CurrentRequest, Reply, call, hint, voice

EXAMPLES: Final = ("run the CI job", "run the graph")
EXAMPLE: Final = EXAMPLES[0]
Script = Literal["CI job", "graph"]
SCRIPTS: dict[Script, Path] = {
    "CI job": Path(__file__).parents[1] / "ci_job.txt",
    "graph": Path(__file__).parents[1] / "graph_job.txt",
}
"""The scripts, in Python: one of its standard library alone, one of LangGraph."""
ACCESS: dict[str, str] = {}
"""The scripts' `COUNTERSIGN_URL` and `COUNTERSIGN_KEY`; `countersign demo` fills them in."""
_PACKAGES = ("langgraph", "countersign_client")
_LONGEST_OUTPUT = 2_000


@tool(title="Run the {script}", tags=["read-only"])
async def run_script(script: Script) -> str:
    """Run a script, and return what it prints. The script asks people before it acts.

    Args:
        script: Which script.
    """
    if not ACCESS:
        return "The script has no key for Countersign. Only `countersign demo` gives it one."
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-",
        env={**ACCESS, "BUILD": f"build-{uuid.uuid4().hex[:8]}"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        printed, _ = await process.communicate(SCRIPTS[script].read_bytes())
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode:
        return "The script ended with an error."
    return printed.decode(errors="replace")[-_LONGEST_OUTPUT:].strip()


def build(model: Model) -> Agent:
    """Make `ci`: it starts scripts that ask through the API for programs."""
    return ChatModelAgent(
        name="ci",
        description="Starts scripts that ask people by themselves.",
        model=voice(model, start),
        instruction="You run the script that people ask for, and say what it printed.",
        tools=[run_script],
    )


def start(current: CurrentRequest) -> Reply:
    """Show the script and start it; at the end, say what it printed."""
    if current.done:
        return Reply(f"The script printed:\n```\n{current.done[-1].result}\n```")
    request = current.request.lower()
    if "job" not in request and "graph" not in request:
        return Reply(hint(" or ".join(EXAMPLES)))
    script: Script = "graph" if "graph" in request else "CI job"
    words = "I start this script. It asks in this channel, through the API:"
    if script == "graph" and not all(map(find_spec, _PACKAGES)):
        script = "CI job"
        words = (
            "LangGraph is not installed here: `pip install './countersign_client[langgraph]'` adds "
            "it. I start a plain script instead. It asks in the same way:"
        )
    code = SCRIPTS[script].read_text("utf-8").partition("\n\n\n")[2]
    return Reply(f"{words}\n```\n{code}```", (call("run_script", script=script),))
