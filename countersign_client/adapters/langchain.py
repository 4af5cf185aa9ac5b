"""LangChain: its human-in-the-loop middleware, set up for what people can decide in Slack.

`countersign_client.adapters.langgraph.run` runs the agent. Extra: `countersign-client[langchain]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from countersign_client.adapters.frameworks import framework

_middleware: Any = framework("langchain.agents.middleware", "langchain", "langchain", "1.4", "2")


def review(*tools: str, edit: Sequence[str] = (), mode: str = "per_call") -> Any:
    """Make a middleware that holds calls back until people have decided.

    It allows `respond`, which the adapter alone uses, to say that nobody answered: people approve,
    edit or reject.

        agent = create_agent(model, tools, middleware=[review("refund", edit=["refund"])])

    Args:
        tools: Names of the tools that need approval.
        edit: Those of them whose arguments people may edit.
        mode: `per_call`, or `batched` for one interrupt a turn.

    Returns:
        A HumanInTheLoopMiddleware.

    Raises:
        ValueError: No tool is named, or one of `edit` is none of `tools`.
    """
    if not tools or not set(edit) <= set(tools):
        raise ValueError("review: name the tools, and in edit none but those")
    allowed = {
        tool: ["approve", *(["edit"] if tool in edit else []), "reject", "respond"]
        for tool in tools
    }
    return _middleware.HumanInTheLoopMiddleware(
        interrupt_on={tool: {"allowed_decisions": each} for tool, each in allowed.items()},
        interrupt_mode=mode,
    )
