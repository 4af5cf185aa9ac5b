"""An example agent that follows a runbook: look, restart one service, ask whether that helped.

Looking runs at once. The restart needs approval. At the end people answer a question. The model is
a small function, so that the example needs no API key.
"""

from typing import Literal

from pydantic_ai.messages import ModelMessage, ModelResponsePart, ToolReturnPart
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, follow_up_tool, tool
from agents.models import AnsweringModel, call, say

Service = Literal["cache", "payments", "search"]
HEALTH = {"cache": "does not answer", "payments": "is slow", "search": "is healthy"}


@tool(tags=["read-only"])
def check_health() -> str:
    """Return the health of all services."""
    return ", ".join(f"{service} {state}" for service, state in HEALTH.items())


def effect(service: Service, environment: str) -> str:
    """Say what a restart does; approvers read it on the card."""
    return f"Requests to {service} in {environment} fail for some seconds."


@tool(
    title="Restart {service} in {environment}",
    preview=effect,
    gate="approval",
    risk="high",
    idempotent=True,
)
def restart(service: Service, environment: Literal["staging", "production"]) -> str:
    """Restart a service.

    Args:
        service: Name of the service.
        environment: Where the service runs.
    """
    HEALTH[service] = "is healthy"
    return f"{service} runs again in {environment}"


def answer(messages: list[ModelMessage]) -> list[ModelResponsePart]:
    """Follow the runbook: check, restart what does not answer, ask, report."""
    last = messages[-1].parts[-1]
    if not isinstance(last, ToolReturnPart):
        return [call("check_health")]
    text = str(last.content)
    if last.tool_name == "check_health":
        dead = [service for service, state in HEALTH.items() if state == "does not answer"]
        if not dead:
            return [say(f"Nothing to restart: {text}.")]
        return [call("restart", {"service": dead[0], "environment": "production"})]
    if last.tool_name == "restart" and text.endswith("production"):
        return [call("ask_people", {"questions": ["Do customers still see errors?"]})]
    return [say(f"I note: {text}")]


def build(model: Model) -> Agent:
    """Build the agent. Countersign calls this function once, at start."""
    return ChatModelAgent(
        name="oncall_runbook",
        model=AnsweringModel(answer, name="example"),
        instruction="You follow the runbook of the engineer on call.",
        tools=[check_health, restart, follow_up_tool()],
    )
