"""Stages: people permit an agent to continue before or after its model or its tools.

The module follows gographgo's `WithAgentInterruptBefore` and `WithAgentInterruptAfter`: one
interrupt per stage, also for several calls. Gates around tools ask about each call instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, get_args

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)

from agents.core.asking.answers import ANY_OUTCOME, Cancelled, Expired, check_bools, check_texts
from agents.core.asking.infos import wrong_answer
from agents.core.calls import ToolReturn
from agents.core.codec import Json, register
from agents.core.component.context import current_checkpoint_id
from agents.core.component.doubts import has_new_answer
from agents.core.component.state import get_interrupt_state, get_resume_context
from agents.core.digest import call_digest
from agents.core.errors import AgentConfigError, ResumeDataError, ToolError
from agents.core.interrupt import check_answer, keep_waiting, stateful_interrupt
from agents.core.messages import planned_calls
from agents.core.scope import current_address, current_scope
from agents.core.starts import lapse_of, start_call
from agents.core.tools import Tool, ToolWrapper
from agents.middlewares.base import CallNext, Middleware, ModelCall

Stage = Literal["agent", "tools"]
When = Literal["before", "after"]


@register("countersign.stage_result/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """Whether an agent may continue. Stored: version 1, must stay readable.

    Attributes:
        proceed: Only exactly True lets the agent continue.
        reason: Why the agent must stop.
        digest: Digest of the shown info; required to continue.
        by: The person who decided.
    """

    proceed: bool
    reason: str | None = None
    digest: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        check_bools(self, "proceed")
        check_texts(self, "reason", "digest", "by", optional=True)


@register("countersign.stage_info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class StageInfo:
    """Asks whether an agent may continue. Stored: version 1, must stay readable.

    Attributes:
        agent_name: Name of the agent.
        stage: `agent` for the model call, or `tools` for its tool calls.
        when: Before or after the stage.
        calls: The requested calls, with `id`, `name` and `args` as the model wrote them.
        said: The model's text beside the calls; may be empty. Untrusted.
        digest: Digest of the info, its address and its thread.
        asked_again: Why people are asked again; empty the first time.
    """

    agent_name: str
    stage: Stage
    when: When
    calls: tuple[dict[str, Json], ...]
    said: str
    digest: str
    asked_again: str = ""

    def __str__(self) -> str:
        names = ", ".join(str(call["name"]) for call in self.calls)
        wants = f" It wants to call: {names}." if names else ""
        return f"{self.agent_name!r} stopped {self.when} its {self.stage}.{wants} May it go on?"

    def go_on(self, *, by: str | None = None) -> StageResult:
        """Return the answer that lets the agent continue."""
        return StageResult(proceed=True, digest=self.digest, by=by)

    def stop(self, reason: str | None = None, *, by: str | None = None) -> StageResult:
        """Return the answer that ends the agent. None of the shown calls runs."""
        return StageResult(proceed=False, reason=reason, digest=self.digest, by=by)

    def check_answer(self, answer: object) -> None:
        """Refuse an answer that does not belong to this interrupt.

        Raises:
            ResumeDataError: The answer has the wrong type, or its digest differs.
        """
        match answer:
            case StageResult(proceed=True, digest=digest):
                if digest != self.digest:
                    raise ResumeDataError("the decision is not bound to what was shown; look again")
            case StageResult() | Expired() | Cancelled():
                pass
            case _:
                raise wrong_answer(f"the agent {self.agent_name!r}", answer, "StageResult")


class StageMiddleware(Middleware):
    """Interrupts at one stage, each time the agent reaches the stage.

    Raises:
        AgentConfigError: The stage is unknown.
    """

    def __init__(self, stage: Stage, when: When) -> None:
        if stage not in get_args(Stage):
            raise AgentConfigError(
                f"an agent has no stage {stage!r}; use {' or '.join(get_args(Stage))}"
            )
        self._stage: Stage = stage
        self._when: When = when

    @property
    def idempotent(self) -> bool:
        """True: the hooks only permit or end the agent."""
        return True

    def wrap_tool(self, tool: Tool) -> Tool:
        """Start approved calls at most once, like gated calls."""
        lets_run = (self._stage, self._when) in {("tools", "before"), ("agent", "after")}
        is_free = not tool.definition.gates and not tool.definition.idempotent
        return _StartedOnce(tool) if lets_run and is_free else tool

    @property
    def name(self) -> str:
        """See `Middleware.name`."""
        return f"interrupt_{self._when}_{self._stage}"

    async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
        """Interrupt before the model is called, or after the tools have run."""
        before_agent = (self._stage, self._when) == ("agent", "before")
        after_tools = (self._stage, self._when) == ("tools", "after") and _ends_with_results(
            call.messages
        )
        stopped = await self._settle([], "") if before_agent or after_tools else ""
        if stopped:
            return ModelResponse(parts=[TextPart(stopped)])
        return await call_next(call)

    async def after_model(self, response: ModelResponse) -> ModelResponse:
        """Interrupt after the model has answered, or before the tools run."""
        calls: list[dict[str, Json]] = [
            {"id": planned.call.id, "name": planned.call.name, "args": planned.call.arguments}
            for planned in planned_calls(response)
        ]
        after_agent = (self._stage, self._when) == ("agent", "after")
        before_tools = (self._stage, self._when) == ("tools", "before") and calls
        said = "\n\n".join(part.content for part in response.parts if isinstance(part, TextPart))
        stopped = await self._settle(calls, said) if after_agent or before_tools else ""
        if not stopped:
            return response
        # Remove the calls, so that none runs and none is left without a result.
        left = [part for part in response.parts if not isinstance(part, ToolCallPart | TextPart)]
        return replace(response, parts=[*left, TextPart(stopped)])

    async def _settle(self, calls: Sequence[dict[str, Json]], said: str) -> str:
        """Interrupt, or read the answer. Return the agent's final text if it must stop."""
        was_interrupted, _, info = get_interrupt_state(StageInfo)
        shown = self._info(calls, said)
        if not was_interrupted:
            stateful_interrupt(shown, shown)
        is_target, _, answer = get_resume_context(ANY_OUTCOME)
        if info is None or info.digest != shown.digest:
            self._refuse(
                "what the agent wants has changed since people were asked; start the version that "
                "asked, or cancel and ask again"
            )
        if not is_target:
            stateful_interrupt(info, info)
        check_answer(info, answer)
        stopped = _ending(answer)
        again = "" if stopped else await self._lapsed()
        if again:
            anew = replace(info, asked_again=again)
            stateful_interrupt(anew, anew)
        return stopped

    async def _lapsed(self) -> str:
        """Return why a new decision no longer applies, or an empty text if it applies."""
        scope = current_scope("a stage")
        run, point = scope.run, scope.point
        has_begun = run.journal.knows_below(str(scope.address))
        if point is None or has_begun or not has_new_answer(run, point):
            return ""
        return await lapse_of(self.name, {}, (point.id,))

    def _info(self, calls: Sequence[dict[str, Json]], said: str) -> StageInfo:
        address = current_address()
        shown: dict[str, Json] = {"calls": list(calls), "said": said}
        return StageInfo(
            agent_name=address.segments[-1].id,
            stage=self._stage,
            when=self._when,
            calls=tuple(calls),
            said=said,
            digest=call_digest(
                thread=current_checkpoint_id(),
                address=str(address),
                tool=f"({self._when} {self._stage})",
                arguments=shown,
                rule="stage",
            ),
        )

    def _refuse(self, fault: str) -> NoReturn:
        keep_waiting(ResumeDataError(f"the agent did not go on: {fault}"))


@dataclass(frozen=True, slots=True)
class _StartedOnce(ToolWrapper):
    """A tool whose approved calls are journaled at their start and never repeated."""

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Record the start unless a gate around the tool has; see `Tool.call`."""
        scope = current_scope("a tool")
        if scope.run.journal.started(str(scope.address)) is None:
            refused = await start_call(self.definition, arguments)
            if refused is not None:
                raise ToolError(f"{self.definition.name!r} did not run: {refused.reason}")
        return await self.tool.call(arguments)


def _ending(answer: object) -> str:
    match answer:
        case StageResult(proceed=True):
            return ""
        case Expired():
            return "Stopped: nobody answered in time. This is not a rejection."
        case Cancelled(fact=fact):
            return f"Stopped: {fact[0].lower()}{fact[1:]}. This is not a rejection."
        case StageResult(reason=str(reason)) if reason.strip():
            return f"Stopped by a person: {reason.strip()}"
        case _:
            return "Stopped by a person."


def _ends_with_results(messages: Sequence[ModelMessage]) -> bool:
    last = messages[-1] if messages else None
    return isinstance(last, ModelRequest) and any(
        isinstance(part, ToolReturnPart) for part in last.parts
    )
