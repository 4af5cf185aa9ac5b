"""A server of tools for tests, made with the official SDK; it writes down what it runs."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    MCPServer,
    Resolve,
)
from pydantic import BaseModel

LOG = Path(sys.argv[1])
server = MCPServer("toy")


def _note(text: str) -> None:
    with LOG.open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def deploy(env: str, replicas: int = 1) -> dict[str, Any]:
    """Deploy to an environment."""
    _note(f"deploy {env} {replicas}")
    return {"deployed": env, "replicas": replicas, "pid": os.getpid()}


def fail(text: str) -> str:
    """Fail."""
    _note("fail")
    raise ValueError(text)


async def slow(seconds: float, context: Context[Any]) -> str:
    """Take a while, and tell of it."""
    _note("slow begins")
    await context.report_progress(1, 2, "half")
    await asyncio.sleep(seconds)
    _note("slow ends")
    return "done"


def keys() -> str:
    """Tell what this process knows of Countersign."""
    return (
        ",".join(sorted(name for name in os.environ if name.startswith("COUNTERSIGN_"))) or "none"
    )


class Region(BaseModel):
    """What the user of the client is asked."""

    name: str


def which_region() -> Elicit[Region]:
    """Ask the user of the client."""
    return Elicit("Which region?", Region)


def move(region: Annotated[ElicitationResult[Region], Resolve(which_region)]) -> str:
    """Move to a region that the user names."""
    if not isinstance(region, AcceptedElicitation):
        return "the user did not say where"
    _note(f"move {region.data.name}")
    return f"moved to {region.data.name}"


async def die() -> str:
    """End this process."""
    _note("die")
    os._exit(3)


def text() -> str:
    """A resource."""
    return "the text"


def greet(name: str) -> str:
    """A prompt."""
    return f"Greet {name}"


for tool in (deploy, fail, slow, keys, move, die):
    server.add_tool(tool)
server.resource("toy://text")(text)
server.prompt()(greet)

if __name__ == "__main__":
    if sys.argv[2:]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run("stdio")
