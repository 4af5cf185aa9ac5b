"""A model with tools whose calls people accept, ignore, respond to or edit.

The module follows gographgo's `CreateReactAgent` and LangGraph's agent inbox and is stricter:
answers that the configuration does not permit are refused, a missing or malformed answer runs
nothing, results keep the order of the calls, and a decision applies to one call, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic_ai.models import Model

from agents.chat.agent import ChatModelAgent
from agents.core.codec import Json
from agents.core.errors import AgentConfigError, AmbiguousTargetError, UnknownInterruptError
from agents.core.pending import InterruptContext
from agents.core.tools import Tool
from agents.gates.human import HumanInterrupt, HumanInterruptConfig, human_gate
from agents.middlewares.base import Middleware
from agents.models import resolve_model
from agents.prebuilt.stages import Stage, StageMiddleware

HumanInterrupts = HumanInterruptConfig | Mapping[str, HumanInterruptConfig]
"""One configuration for all tools, or one per tool name; other tools run freely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingToolCall:
    """A call that waits for a person's decision.

    Attributes:
        interrupt_id: Key of the answer.
        call_id: Id of the call in the model's answer.
        name: Name of the tool.
        args: Its canonical arguments.
        request: What people see.
    """

    interrupt_id: str
    call_id: str
    name: str
    args: dict[str, Json]
    request: HumanInterrupt


def create_react_agent(  # noqa: PLR0913 - the documented names, given by keyword
    model: Model | str,
    tools: Sequence[Tool],
    *,
    human_interrupt: HumanInterrupts | None = None,
    name: str = "agent",
    instruction: str = "",
    description: str = "",
    interrupt_before: Sequence[Stage] = (),
    interrupt_after: Sequence[Stage] = (),
    middlewares: Sequence[Middleware] = (),
    max_iterations: int = 20,
) -> ChatModelAgent:
    """Create an agent of a model and tools, with approval of tool calls.

    Args:
        model: The model, or its name for `resolve_model`.
        tools: Tools that the model may call.
        human_interrupt: Which calls need a decision, and which answers are permitted; None asks
            about no call. This gate is the innermost, inside of all middlewares.
        name: See `ChatModelAgent`.
        instruction: See `ChatModelAgent`.
        description: See `ChatModelAgent`.
        interrupt_before: Stages that people must permit: `agent` (the model call) and `tools` (its
            tool calls). The interrupt has a `StageInfo`, one for all calls.
        interrupt_after: Stages after which people must permit the agent to continue.
        middlewares: See `ChatModelAgent`.
        max_iterations: See `ChatModelAgent`.

    Raises:
        AgentConfigError: A configuration is for an unknown tool, or a stage is unknown.
    """
    stages = [
        *(StageMiddleware(stage, "before") for stage in _listed(interrupt_before)),
        *(StageMiddleware(stage, "after") for stage in _listed(interrupt_after)),
    ]
    return ChatModelAgent(
        name=name,
        model=resolve_model(model) if isinstance(model, str) else model,
        instruction=instruction,
        description=description,
        tools=_gated(name, tools, human_interrupt),
        middlewares=[*middlewares, *stages],
        max_iterations=max_iterations,
    )


def pending_tool_calls(contexts: Iterable[InterruptContext]) -> tuple[PendingToolCall, ...]:
    """Return the calls that wait for a `HumanResponse`, in order.

    Args:
        contexts: Pending interrupts of an `InterruptEvent` or of `Runner.pending`. Interrupts of
            other kinds are left out.
    """
    return tuple(
        PendingToolCall(
            interrupt_id=context.id,
            call_id=context.info.call_id,
            name=context.info.tool_name,
            args=context.info.arguments,
            request=context.info,
        )
        for context in contexts
        if isinstance(context.info, HumanInterrupt)
    )


def targets_by_call(
    pending: Sequence[PendingToolCall], responses: Mapping[str, object]
) -> dict[str, object]:
    """Convert responses by call id to resume targets.

    Args:
        pending: Result of `pending_tool_calls`.
        responses: `HumanResponse`, or its wire form, by call id. Calls without a response stay
            pending.

    Returns:
        The `targets` of `ResumeParams`.

    Raises:
        UnknownInterruptError: No pending call has this id.
        AmbiguousTargetError: Pending calls of several agents have this id.
    """
    targets: dict[str, object] = {}
    for call_id, response in responses.items():
        interrupt_ids = [call.interrupt_id for call in pending if call.call_id == call_id]
        if not interrupt_ids:
            raise UnknownInterruptError(call_id, [call.call_id for call in pending])
        if len(interrupt_ids) > 1:
            raise AmbiguousTargetError(call_id, interrupt_ids)
        targets[interrupt_ids[0]] = response
    return targets


def _gated(name: str, tools: Sequence[Tool], wanted: HumanInterrupts | None) -> list[Tool]:
    names = [tool.definition.name for tool in tools]
    if isinstance(wanted, HumanInterruptConfig):
        wanted = dict.fromkeys(names, wanted)
    configs = wanted or {}
    unknown = sorted(set(configs) - set(names))
    if unknown:
        raise AgentConfigError(
            f"agent {name!r} asks people about {', '.join(map(repr, unknown))}, and has no such "
            f"tool; it has: {', '.join(names) or 'none'}"
        )
    return [
        human_gate(tool, configs[tool.definition.name]) if tool.definition.name in configs else tool
        for tool in tools
    ]


def _listed(stages: Sequence[Stage]) -> list[Stage]:
    if isinstance(stages, str):
        raise AgentConfigError(f"stages are a list; write [{stages!r}]")
    return list(dict.fromkeys(stages))
