"""A program outside of the bot: the agent starts a script, and the script asks people itself."""

from __future__ import annotations

import asyncio
import sys
import uuid
from pathlib import Path

from pydantic_ai.models import Model

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.gates.decorator import tool
from bot.demo.patterns.rules import CurrentRequest, Reply, call, hint, voice

EXAMPLE = "run the CI job"
SCRIPT = Path(__file__).parents[1] / "ci_job.txt"
"""The script, in Python."""
ACCESS: dict[str, str] = {}
"""The script's `COUNTERSIGN_URL` and `COUNTERSIGN_KEY`; `countersign demo` fills them in."""
_LONGEST_OUTPUT = 2_000


@tool(title="Run the CI job", tags=["read-only"])
async def run_ci_job() -> str:
    """Run the job of CI, and return what it prints. The job asks people before it deploys."""
    if not ACCESS:
        return "The job has no key for Countersign. Only `countersign demo` gives it one."
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-",
        env={**ACCESS, "BUILD": f"build-{uuid.uuid4().hex[:8]}"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        printed, _ = await process.communicate(SCRIPT.read_bytes())
    except asyncio.CancelledError:
        process.kill()
        raise
    return printed.decode(errors="replace")[-_LONGEST_OUTPUT:].strip()


def build(model: Model) -> Agent:
    """Make `ci`: it starts a script that asks through the API for programs."""
    return ChatModelAgent(
        name="ci",
        description="Starts a script that asks people by itself.",
        model=voice(model, start),
        instruction="You run the CI job when people ask for it, and say what it printed.",
        tools=[run_ci_job],
    )


def start(seen: CurrentRequest) -> Reply:
    """Show the script and start it; at the end, say what it printed."""
    if seen.done:
        return Reply(f"The job printed:\n```\n{seen.done[-1].result}\n```")
    if "job" not in seen.request.lower():
        return Reply(hint(EXAMPLE))
    text = SCRIPT.read_text("utf-8").partition("\n\n\n")[2]
    words = f"I start this script. It asks in this channel, through the API:\n```\n{text}```"
    return Reply(words, (call("run_ci_job"),))
