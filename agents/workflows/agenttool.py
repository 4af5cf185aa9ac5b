"""An agent as a tool: another agent's model calls it and reads its final text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from pydantic import BaseModel, ValidationError

from agents.agent import (
    Agent,
    AgentInput,
    check_agent,
    emit_inner,
    run_agent,
)
from agents.chat.handoff import Notes, final_text, retold
from agents.chat.state import conversation
from agents.core.codec import Json, register
from agents.core.component.state import get_interrupt_state
from agents.core.errors import (
    AgentConfigError,
    AgentError,
    ArgumentError,
    CheckpointError,
    InvalidArgumentsError,
    NotAnsweredError,
    ResumeError,
    RunCancelledError,
    ToolError,
)
from agents.core.interrupt import InterruptSignal, composite_interrupt, refuse_orphans
from agents.core.messages import user_message
from agents.core.pending import Unanswerable
from agents.core.scope import current_address
from agents.core.starts import is_frozen
from agents.core.tools import CallText, ToolSpec
from agents.runs.topology import Component, Key, agent_component
from agents.tools.schema import parameters

_PASSED_ON = (
    AgentConfigError,
    CheckpointError,
    NotAnsweredError,
    ResumeError,
    RunCancelledError,
)
"""Errors that are not failures of the inner agent, and that the caller handles."""


@register("countersign.agent-tool-info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToolInfo(Unanswerable):
    """Info of an interrupted agent in a tool. Stored: version 1, must stay readable.

    Attributes:
        agent_name: Name of the agent.
    """

    agent_name: str

    def __str__(self) -> str:
        return "agent tool interrupt"


@register("countersign.agent-tool-state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToolState:
    """The notes of the agent in a tool. Stored: version 1, must stay readable."""

    notes: list[Json]


class AgentTool:
    """A tool that runs an agent; its result is the agent's final text.

    The agent runs below the call: `…;tool:Inner:c1;agent:Inner`. It shares the session values. Its
    interrupts belong to the run; its exits, breaks and transfers end at this tool. An error of the
    agent is the tool's error.

    Args:
        agent: The agent; its name is the tool's name.
        description: What the agent is good at, for the model; by default the agent's own.
        input_schema: Schema of the input, which the agent receives as JSON text. By default the
            input is `request`, a text that the agent receives unchanged.
        full_history: Whether the agent also reads the conversation of the calling agent.
        emit_events: Whether the agent's events are emitted, marked as inner. Otherwise only its
            result is visible.

    Raises:
        AgentConfigError: `agent` is not an agent, or its name cannot be the name of a tool.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        description: str = "",
        input_schema: type[BaseModel] | None = None,
        full_history: bool = False,
        emit_events: bool = False,
    ) -> None:
        check_agent(agent)
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", agent.name):
            raise AgentConfigError(
                f"the agent {agent.name!r} cannot be a tool: its name must be a letter, then "
                "letters, digits, `_` and `-`, at most 64 together"
            )
        self._agent = agent
        self._input_schema = input_schema
        self._full_history = full_history
        self._emit_events = emit_events
        schema = input_schema.model_json_schema() if input_schema else _REQUEST.schema
        self._definition = ToolSpec(
            name=agent.name,
            description=description or agent.description,
            schema=schema,
            # The agent's journal stores each of its calls, so a rerun of this tool resumes it.
            idempotent=True,
        )

    @property
    def definition(self) -> ToolSpec:
        """The tool's definition."""
        return self._definition

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Check arguments; see `Tool.validate`."""
        if self._input_schema is None:
            return _REQUEST.canonical(arguments)
        try:
            validated = self._input_schema.model_validate_json(json.dumps(arguments), strict=True)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentsError(_faults(error)) from error
        return cast("dict[str, Json]", validated.model_dump(mode="json", by_alias=True))

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Describe a call in words; see `Tool.describe`."""
        return CallText(title=f"Ask {self._agent.name}", preview=self._request(arguments))

    async def call(self, arguments: dict[str, Json]) -> str:
        """Run or resume the agent; see `Tool.call`.

        Raises:
            InterruptSignal: The agent is interrupted.
            ToolError: The agent failed.
        """
        refuse_orphans()
        is_frozen(self.definition.name, arguments)
        return await call_agent(self._agent, self._input(arguments), emit_events=self._emit_events)

    def components(self) -> Mapping[Key, Component]:
        """The agent; see `Described`."""
        return dict([agent_component(self._agent)])

    def _input(self, arguments: Mapping[str, Json]) -> AgentInput:
        """Return the agent's input; always the same on resume."""
        request = user_message(self._request(arguments))
        if not self._full_history:
            return AgentInput(messages=(request,))
        caller = current_address().agents[-1]
        return AgentInput(messages=(*retold(caller, conversation()), request))

    def _request(self, arguments: Mapping[str, Json]) -> str:
        if self._input_schema is None:
            return str(arguments["request"])
        return json.dumps(dict(arguments), ensure_ascii=False)


async def call_agent(agent: Agent, given: AgentInput, *, emit_events: bool = False) -> str:
    """Run or resume an agent inside a tool call, and return its final text.

    `given` must be the same on resume.

    Raises:
        InterruptSignal: The agent is interrupted.
        ToolError: The agent failed.
    """
    _, _, state = get_interrupt_state(AgentToolState)
    notes = Notes.from_json(state.notes) if state is not None else Notes()
    try:
        async with aclosing(run_agent(agent, given)) as events:
            async for event in events:
                notes.add_event(event)
                if emit_events:
                    emit_inner(event)
    except InterruptSignal as signal:
        info = AgentToolInfo(agent_name=agent.name)
        composite_interrupt(info, AgentToolState(notes=notes.to_json()), signal)
    except _PASSED_ON:
        raise
    except AgentError as error:
        raise ToolError(f"the agent {agent.name!r} failed: {error}") from error
    return final_text(notes.all)


def _request(request: str) -> None:
    """Only its signature is used.

    Args:
        request: What it shall do, with all that it needs to know.
    """


_REQUEST = parameters(_request)


def _faults(error: Exception) -> list[ArgumentError]:
    if not isinstance(error, ValidationError):
        return [ArgumentError((), str(error))]
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    return [ArgumentError(tuple(problem["loc"]), problem["msg"]) for problem in problems]
