"""The agents of a case: they make the calls of its script, and record the results."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import jsonschema
from jsonschema.exceptions import best_match
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponsePart,
    ToolCallPart,
    ToolReturnPart,
)

from agents import Agent, ChatModelAgent, policy_gate
from agents.core.codec import Json
from agents.core.errors import ArgumentError, InvalidArgumentsError
from agents.core.tools import CallText, Tool, ToolSpec
from agents.gates.approval import approval_gate, review_edit_gate
from agents.models import AnsweringModel, call, say
from agents.policy.base import Allow, PolicyCall, Ruling
from agents.workflows.sequential import SequentialAgent
from bot.rehearsal.case_schema import Data
from bot.rehearsal.world import World, ruling_in_code

RAN = "ran"
"""The result of every tool."""


class DiedError(BaseException):
    """Simulates a crash of the process: no error handler catches it."""


@dataclass
class Script:
    """The acts of the agents in a case.

    Attributes:
        calls: For each future turn, the calls that its model makes.
        results: Results of calls, in the order in which the models read them.
        ran: Arguments of the calls that ran.
        crash: Whether the process crashes during the next call of a tool.
        is_slow: Whether calls of tools do not end yet.
        stall: Waits until slow calls may end.
        has_died: Whether the process has crashed.
        code: Decisions of policies in code about the present request.
    """

    calls: deque[list[ToolCallPart]] = field(default_factory=deque)
    results: list[str] = field(default_factory=list)
    ran: list[Data] = field(default_factory=list)
    crash: bool = False
    is_slow: bool = False
    has_died: bool = False
    code: list[Data] = field(default_factory=list)
    stall: Callable[[], Awaitable[None]] | None = None

    def next_turn(self, requests: Sequence[Data]) -> None:
        """Add a turn that makes these calls in one answer."""
        self.calls.append([call(str(request["tool"]), request["args"]) for request in requests])


def actors(script: Script, world: World, requests: Sequence[Data]) -> dict[str, Agent]:
    """Create the agents of a world, by name.

    Args:
        script: The acts of the agents.
        world: The world, which has their tools.
        requests: All requests of the case. They name the tools with policies in code.
    """
    code = {str(request["tool"]) for request in requests if request.get("code")}
    nested = {
        str(request["tool"]): request["nested"] for request in requests if request.get("nested")
    }
    tools = []
    for name, facts in world.tools.items():
        tool: Tool = _Prop(_spec(name, facts), script)
        for gate in reversed(nested.get(name, ())):
            tool = policy_gate(policy_gate(tool, _Fixed(gate)), _Fixed({"allow": True}))
        tools.append(_gated(tool, facts, script, has_code=name in code))
    model = _ScriptModel(script)
    agents: dict[str, Agent] = {
        name: ChatModelAgent(name=name, model=model, tools=tools) for name in world.agents
    }
    for request in requests:
        inner, *outer = reversed(request.get("agents", ()) or world.agents[:1])
        if outer:
            agent: Agent = agents[inner]
            for name in (*outer, name_of_agent(request)):
                agent = SequentialAgent(name, [agent])
            agents[agent.name] = agent
    return agents


def name_of_agent(request: Data) -> str:
    """Return the name of the agent that people address in a request; empty for the first one.

    Several agents in the address of the call are an agent of their own, around them.
    """
    agents = request.get("agents") or [str(request.get("agent", ""))]
    return "-".join(agents)


_ANY_ARGUMENTS: Data = {"type": "object", "additionalProperties": True}
"""Default schema of a tool."""


def _spec(name: str, facts: Data) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=f"The tool {name}.",
        schema=facts.get("schema") or _ANY_ARGUMENTS,
        tags=tuple(facts.get("tags") or ()),
        risk=facts.get("risk", "medium"),
    )


def refused_by(schema: Mapping[str, Json], arguments: Mapping[str, object]) -> str:
    """Return why a tool with this schema refuses a call before any rule; empty if it does not."""
    try:
        _validated(schema or _ANY_ARGUMENTS, arguments)
    except InvalidArgumentsError as error:
        return str(error)
    return ""


def _validated(schema: Mapping[str, Json], arguments: Mapping[str, object]) -> dict[str, Json]:
    kind = jsonschema.validators.validator_for(dict(schema))
    try:
        kind.check_schema(dict(schema))
    except jsonschema.SchemaError as error:
        fault = ArgumentError((), f"its schema is invalid: {error.message}")
        raise InvalidArgumentsError([fault]) from error
    filled = cast("dict[str, Json]", copy.deepcopy(dict(arguments)))
    fields = cast("dict[str, dict[str, Json]]", schema.get("properties") or {})
    for name, field_schema in fields.items():
        if "default" in field_schema:
            filled.setdefault(name, field_schema["default"])
    extra = sorted(filled.keys() - fields.keys())
    if extra and not schema.get("additionalProperties"):
        raise InvalidArgumentsError([ArgumentError((extra[0],), "there is no such argument")])
    # `jsonschema.validate` would check the schema again, which takes longer than the arguments.
    wrong = best_match(kind(dict(schema)).iter_errors(filled))
    if wrong is not None:
        fault = ArgumentError(tuple(wrong.absolute_path), wrong.message)
        raise InvalidArgumentsError([fault]) from wrong
    return filled


def _gated(tool: Tool, facts: Data, script: Script, *, has_code: bool) -> Tool:
    if has_code:
        return policy_gate(tool, _Coded(script))
    match facts.get("gate", "none"):
        case "approval":
            return approval_gate(tool)
        case "review":
            return review_edit_gate(tool)
        case _:
            return tool


@dataclass(frozen=True, slots=True)
class _Prop:
    """A tool that only records that it ran."""

    spec: ToolSpec
    script: Script

    @property
    def definition(self) -> ToolSpec:
        return self.spec

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        return _validated(self.spec.schema, arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:  # noqa: ARG002 - see Tool
        return CallText(title=f"Run {self.spec.name}")

    async def call(self, arguments: dict[str, Json]) -> str:
        if self.script.crash:
            self.script.crash, self.script.has_died = False, True
            raise DiedError
        self.script.ran.append(dict(arguments))
        if self.script.is_slow and self.script.stall is not None:
            await self.script.stall()
        return RAN


@dataclass(frozen=True, slots=True)
class _Fixed:
    """A policy in code with the same ruling for each call."""

    rule: Data

    async def evaluate(self, call: PolicyCall) -> Ruling:  # noqa: ARG002 - see Policy
        return await ruling_in_code([self.rule]) or Allow()


@dataclass(frozen=True, slots=True)
class _Coded:
    """The policy in code of the present request."""

    script: Script

    async def evaluate(self, call: PolicyCall) -> Ruling:  # noqa: ARG002 - see Policy
        return await ruling_in_code(self.script.code) or Allow()


class _ScriptModel(AnsweringModel):
    """A model that follows the script and notes the results that it reads."""

    def __init__(self, script: Script) -> None:
        super().__init__(self._parts, name="rehearsal")
        self._script = script

    def _parts(self, messages: list[ModelMessage]) -> Sequence[ModelResponsePart]:
        last = messages[-1]
        results = [
            str(part.content)
            for part in (last.parts if isinstance(last, ModelRequest) else ())
            if isinstance(part, ToolReturnPart)
        ]
        if results:
            self._script.results.extend(results)
            return [say("Done.")]
        return self._script.calls.popleft() if self._script.calls else [say("Nothing to do.")]
