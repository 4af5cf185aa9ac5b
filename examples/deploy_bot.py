"""An example agent whose steps have a fixed order: build, a person's look, deploy, announce.

A graph needs no model. Before the node `deploy` the graph stops: the card shows the state, and
people can change the number of replicas. Then a node asks who announces the release.
"""

import re
from typing import TypedDict

from pydantic_ai.models import Model

from agents import Agent
from agents.graph import END, START, GraphAgent, NotAnsweredError, StateGraph, node_interrupt


class Release(TypedDict, total=False):
    """The state of a deployment; `input` is the message, `output` the last words."""

    input: str
    service: str
    version: str
    replicas: int
    output: str


def prepare(state: Release) -> dict[str, object]:
    """Read the service and the version from the message."""
    match = re.search(r"deploy (\S+) (\d+\.\d+\.\d+)", state["input"])
    if match is None:
        return {"output": "Write: deploy payments 1.4.2"}
    return {"service": match[1], "version": match[2], "replicas": 3}


def is_complete(state: Release) -> str:
    """Go on if there is something to deploy."""
    return "deploy" if "version" in state else END


def deploy(state: Release) -> dict[str, object]:
    """Deploy with the replicas that people saw, or chose."""
    what = f"{state['service']} {state['version']}"
    return {"output": f"{what} is live with {state['replicas']} replicas."}


def announce(state: Release) -> dict[str, object]:
    """Ask who announces the release; without an answer, nobody does."""
    try:
        name = node_interrupt("Who announces the release?", response_type=str)
    except NotAnsweredError:
        return {"output": f"{state['output']} It was not announced."}
    return {"output": f"{state['output']} {name} announces it."}


def build(model: Model) -> Agent:
    """Build the agent. Countersign calls this function once, at start."""
    graph = StateGraph(Release)
    graph.add_node("prepare", prepare).add_node("deploy", deploy).add_node("announce", announce)
    graph.add_edge(START, "prepare").add_conditional_edges("prepare", is_complete, ["deploy", END])
    graph.add_edge("deploy", "announce").add_edge("announce", END)
    release = graph.compile(name="release", interrupt_before=["deploy"])
    return GraphAgent(release, "deploy_bot", description="Deploys services step by step.")
