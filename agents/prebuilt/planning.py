"""Planner, executor and replanner: their input, and the session values they share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TypeGuard, cast

from pydantic_ai.messages import ModelMessage, UserPromptPart

from agents.agent import ActionEvent, Agent, AgentEvent, AgentInput, make_action, make_message
from agents.chat.handoff import Notes, final_text
from agents.core.calls import BreakLoop
from agents.core.codec import Json, register
from agents.core.component.context import session_values
from agents.core.component.state import get_interrupt_state, state_slot
from agents.core.errors import CheckpointDecodeError, ModelError
from agents.core.interrupt import InterruptSignal, pass_on
from agents.core.messages import user_message
from agents.core.observers import ToolOutcome
from agents.runs.topology import Component, Described, Key

USER_INPUT = "UserInput"
PLAN = "Plan"
EXECUTED_STEPS = "ExecutedSteps"
EXECUTED_STEP = "ExecutedStep"
"""Session value keys: the task, the plan, all finished steps, the last result."""

PLAN_TOOL = "plan"
RESPOND_TOOL = "respond"
_SLOT = "plan"


@register("countersign.plan/1")
@dataclass(frozen=True, slots=True)
class Plan:
    """The remaining steps of a plan. Stored: version 1, must stay readable.

    Attributes:
        steps: In order; never empty.
    """

    steps: list[str]

    def __str__(self) -> str:
        return "\n".join(f"{number}. {step}" for number, step in enumerate(self.steps, start=1))


@register("countersign.executed-step/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedStep:
    """A finished step. Stored: version 1, must stay readable.

    Attributes:
        step: The step.
        result: Result of the step, as text.
    """

    step: str
    result: str


@register("countersign.plan-part-state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPartState:
    """State of an interrupted part of the plan. Stored: version 1, must stay readable."""

    notes: list[Json]
    plan: Plan | None


@dataclass(slots=True)
class _Course:
    """The events of one part so far, and the plan when the part began."""

    plan: Plan | None
    notes: Notes = field(default_factory=Notes)

    @property
    def response(self) -> str | None:
        """The answer that the model gave with its tool."""
        return self._result(RESPOND_TOOL)

    @property
    def has_plan(self) -> bool:
        """Whether the part has set a new plan."""
        return self._result(PLAN_TOOL) is not None or session_values().get(PLAN) != self.plan

    def _result(self, tool: str) -> str | None:
        for note in self.notes.all:
            is_result = note.result_of is not None and note.result_of.name == tool
            if is_result and note.outcome is ToolOutcome.RAN:
                return note.text
        return None


class _Part:
    """Base class of the parts: prepares an agent's input and stores its result."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    @property
    def name(self) -> str:
        return self._agent.name

    @property
    def description(self) -> str:
        return self._agent.description

    async def run(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        self._begin(input)
        async with aclosing(self._run_step(input, _Course(_plan()), is_resumed=False)) as events:
            async for event in events:
                yield event

    async def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        with state_slot(_SLOT):
            _, has_state, state = get_interrupt_state(PlanPartState)
        if not has_state or state is None:
            raise CheckpointDecodeError(f"agent {self.name!r} has lost what it was doing")
        course = _Course(state.plan, Notes.from_json(state.notes))
        async with aclosing(self._run_step(input, course, is_resumed=True)) as events:
            async for event in events:
                yield event

    def components(self) -> Mapping[Key, Component]:
        return self._agent.components() if isinstance(self._agent, Described) else {}

    async def _run_step(
        self, given: AgentInput, course: _Course, *, is_resumed: bool
    ) -> AsyncGenerator[AgentEvent, None]:
        begin = self._agent.resume if is_resumed else self._agent.run
        # Agents are async generators, which have `aclose`.
        inner = cast("AsyncGenerator[AgentEvent, None]", begin(self._input_of_agent(given)))
        try:
            async with aclosing(inner) as events:
                async for event in events:
                    course.notes.add_event(event)
                    for passed in self._passed(event, course):
                        yield passed
        except InterruptSignal as signal:
            state = PlanPartState(notes=course.notes.to_json(), plan=course.plan)
            with state_slot(_SLOT):
                pass_on(state, signal)
        for event in self._end(course):
            yield event

    def _begin(self, given: AgentInput) -> None:
        """Set session values. Runs once, not on resume."""

    def _input_of_agent(self, given: AgentInput) -> AgentInput:
        """Return the agent's input; always the same on resume."""
        return given

    def _passed(self, event: AgentEvent, course: _Course) -> list[AgentEvent]:  # noqa: ARG002 - for overrides
        """Return the events to emit for an event of the agent."""
        return [event]

    def _end(self, course: _Course) -> list[AgentEvent]:  # noqa: ARG002 - for overrides
        """Store the result. Return further events."""
        return []


class Planner(_Part):
    """Makes the plan and resets the list of finished steps."""

    def _begin(self, given: AgentInput) -> None:
        session = session_values()
        session[USER_INPUT] = _user_text(given.messages)
        session[EXECUTED_STEPS] = []
        for key in (PLAN, EXECUTED_STEP):
            session.pop(key, None)

    def _passed(self, event: AgentEvent, course: _Course) -> list[AgentEvent]:  # noqa: ARG002 - see _Part
        # The tool for the plan ends the planner with a break, which must not end an enclosing loop.
        return [replace(event, is_done=True) if _is_break(event) else event]

    def _end(self, course: _Course) -> list[AgentEvent]:
        action = course.notes.action()
        if _plan() is None and (action is None or isinstance(action, BreakLoop)):
            raise ModelError(f"agent {self.name!r} has made no plan; it must call {PLAN_TOOL!r}")
        return []


class Executor(_Part):
    """Does the first step of the plan and stores the result."""

    def _input_of_agent(self, given: AgentInput) -> AgentInput:
        plan = _needed_plan()
        text = f"{_state_of_work()}\n\nDo now the first step of the plan: {plan.steps[0]}"
        return replace(given, messages=(user_message(text),))

    def _end(self, course: _Course) -> list[AgentEvent]:
        session, result = session_values(), final_text(course.notes.all)
        step = _needed_plan().steps[0]
        session[EXECUTED_STEP] = result
        session[EXECUTED_STEPS] = [*_executed(), ExecutedStep(step=step, result=result)]
        return []


class Replanner(_Part):
    """Revises the plan, or ends the loop with an answer."""

    def _input_of_agent(self, given: AgentInput) -> AgentInput:
        text = f"{_state_of_work()}\n\nThe first step of the plan has been done. Go on from there."
        return replace(given, messages=(user_message(text),))

    def _passed(self, event: AgentEvent, course: _Course) -> list[AgentEvent]:
        if not _is_break(event):
            return [event]
        if course.response is not None:
            return [make_message(course.response), event]
        return [replace(event, is_done=True)] if course.has_plan else [event]

    def _end(self, course: _Course) -> list[AgentEvent]:
        if course.notes.action() is None and not course.has_plan:
            return [make_action(BreakLoop())]
        return []


def _is_break(event: AgentEvent) -> TypeGuard[ActionEvent]:
    match event:
        case ActionEvent(action=BreakLoop(), is_done=False, is_inner=False):
            return True
        case _:
            return False


def _plan() -> Plan | None:
    plan = session_values().get(PLAN)
    return plan if isinstance(plan, Plan) and plan.steps else None


def _needed_plan() -> Plan:
    plan = _plan()
    if plan is None:
        raise ModelError(f"the session value {PLAN!r} is no plan with a step that is left to do")
    return plan


def _executed() -> list[ExecutedStep]:
    return cast("list[ExecutedStep]", session_values().get(EXECUTED_STEPS, []))


def _state_of_work() -> str:
    """Return the task, the plan and the finished steps as a text for a model."""
    done = "\n\n".join(
        f"Step: {executed.step}\nResult: {executed.result}" for executed in _executed()
    )
    task = session_values().get(USER_INPUT, "")
    return f"# Task\n{task}\n\n# Plan\n{_needed_plan()}\n\n# Done so far\n{done or 'Nothing yet.'}"


def _user_text(messages: Sequence[ModelMessage]) -> str:
    """Return the texts of users, without pictures and other media."""
    texts: list[str] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                contents = [part.content] if isinstance(part.content, str) else part.content
                texts += [text for text in contents if isinstance(text, str)]
    return "\n".join(texts)
