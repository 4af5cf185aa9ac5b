"""An agent as a tool: another agent's model calls it, and gets what it said last."""

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
    run_path,
)
from agents.chat.handoff import Notes, conversation, final_text, retold
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
from agents.runs.topology import Component, Key, agent_component
from agents.tools.base import CallText, ToolSpec
from agents.tools.schema import parameters
from agents.tools.starting import is_frozen

_PASSED_ON = (
    AgentConfigError,
    CheckpointError,
    NotAnsweredError,
    ResumeError,
    RunCancelledError,
)
"""Errors that are not the inner agent's failure: whoever runs the call says what they mean."""


@register("countersign.agent-tool-info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToolInfo(Unanswerable):
    """An agent that was called as a tool waits. Stored: version 1, must stay readable.

    Attributes:
        agent_name: Which agent.
    """

    agent_name: str

    def __str__(self) -> str:
        return "agent tool interrupt"


@register("countersign.agent-tool-state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToolState:
    """The notes of the agent in a tool. Stored: version 1, must stay readable.

    Attributes:
        notes: One by one.
    """

    notes: list[Json]


class AgentTool:
    """A tool that gives its call to an agent; the result is what the agent said last.

    The agent runs below the call: `…;tool:Inner:c1;agent:Inner`. It shares the session values. Its
    interrupts are those of the run; its exits, breaks and transfers end at this tool. An error of
    it is the tool's error.

    Args:
        agent: The agent; its name is the tool's name.
        description: What it is good at, for the model; the agent's own when empty.
        input_schema: What the model has to give; the agent gets it as JSON text. Without one it
            is `request`, a text that the agent gets as it is.
        full_history: Whether the agent is told the conversation of the one that calls it, too.
        emit_events: Whether its events are told as they happen, marked as inner; otherwise only
            what comes of it.

    Raises:
        AgentConfigError: It is no agent, or its name cannot be the name of a tool.
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
            # What the agent did is in the journal, call by call: it goes on from there.
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
            found = self._input_schema.model_validate_json(json.dumps(arguments), strict=True)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentsError(_faults(error)) from error
        return cast("dict[str, Json]", found.model_dump(mode="json", by_alias=True))

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Say in words what a call does; see `Tool.describe`."""
        return CallText(title=f"Ask {self._agent.name}", preview=self._request(arguments))

    async def call(self, arguments: dict[str, Json]) -> str:
        """Run the agent, or go on with it; see `Tool.call`.

        Raises:
            InterruptSignal: People are needed in it.
            ToolError: The agent failed.
        """
        refuse_orphans()
        is_frozen(self.definition.name, arguments)
        return await call_agent(self._agent, self._input(arguments), emit_events=self._emit_events)

    def components(self) -> Mapping[Key, Component]:
        """The agent; see `Described`."""
        return dict([agent_component(self._agent)])

    def _input(self, arguments: Mapping[str, Json]) -> AgentInput:
        """Return the agent's input; the same each time it goes on."""
        request = user_message(self._request(arguments))
        if not self._full_history:
            return AgentInput(messages=(request,))
        caller = run_path(current_address())[-1]
        return AgentInput(messages=(*retold(caller, conversation()), request))

    def _request(self, arguments: Mapping[str, Json]) -> str:
        if self._input_schema is None:
            return str(arguments["request"])
        return json.dumps(dict(arguments), ensure_ascii=False)


async def call_agent(agent: Agent, given: AgentInput, *, emit_events: bool = False) -> str:
    """Run an agent inside a tool call, or go on with it. For tools that are agents.

    Args:
        agent: The agent.
        given: What it works on; the same each time it goes on.
        emit_events: See `AgentTool`.

    Returns:
        What it said last.

    Raises:
        InterruptSignal: People are needed in it.
        ToolError: The agent failed.
    """
    _, _, state = get_interrupt_state(AgentToolState)
    notes = Notes.from_json(state.notes) if state is not None else Notes()
    try:
        async with aclosing(run_agent(agent, given)) as events:
            async for event in events:
                notes.take(event)
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
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [ArgumentError(tuple(one["loc"]), one["msg"]) for one in found]
