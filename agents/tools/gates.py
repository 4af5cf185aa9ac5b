"""Gates: wrappers that let a tool run only after people have agreed.

A gate asks in a state slot of its own, so that it never collides with what it wraps. It keeps
whether people have agreed; what it wraps may then ask people itself, at any depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, cast

from agents.calls import ToolOutcome, ToolReturn
from agents.codec import Json, register
from agents.context import (
    Scope,
    current_address,
    current_checkpoint_id,
    current_scope,
    current_why,
    entered,
    get_interrupt_state,
    get_resume_context,
    granted_arguments,
    mark_started,
    state_slot,
)
from agents.errors import InvalidArgumentsError, ResumeDataError, ToolError
from agents.interrupt import Interrupted, composite_interrupt, keep_waiting, stateful_interrupt
from agents.tools.base import CallText, Tool, ToolSpec
from agents.tools.digest import call_digest
from agents.tools.infos import (
    ApprovalInfo,
    ApprovalResult,
    Cancelled,
    Expired,
    ReviewEditInfo,
    ReviewEditResult,
)
from agents.tools.texts import cancelled_text, edited_text, expired_text, rejected_text

Kind = Literal["approval", "review"]
DEFAULT_RULE = "always"


@register("countersign.gate/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class GateState:
    """What a gate must know to go on. Stored: version 1, must stay readable.

    Attributes:
        info: What people were shown.
        approved: Whether they agreed; then the gate never asks again.
        arguments: What they agreed to, in canonical form.
        edited: Whether that is something else than the model asked for.
        digest: Digest of what they agreed to.
    """

    info: ApprovalInfo | ReviewEditInfo
    approved: bool = False
    arguments: dict[str, Json] | None = None
    edited: bool = False
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """A tool that runs only after a person has agreed to the call.

    Attributes:
        tool: What is guarded.
        kind: Whether people can only approve and reject, or also edit.
        rule: Name of the rule that asks; a part of the digest.
    """

    tool: Tool
    kind: Kind
    rule: str = DEFAULT_RULE

    @property
    def definition(self) -> ToolSpec:
        """What the tool is, with this gate around it."""
        inner = self.tool.definition
        return replace(inner, gates=(self.kind, *inner.gates))

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Check arguments; see `Tool.validate`."""
        return self.tool.validate(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Say in words what a call does; see `Tool.describe`."""
        return self.tool.describe(arguments)

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Ask first, and run what people agreed to; see `Tool.call`.

        Raises:
            Interrupted: People are asked, or what is guarded asks them.
        """
        granted = granted_arguments()
        with state_slot(self._slot):
            scope = current_scope("a gate")
            if granted is None:
                decided = self._decide(arguments)
            else:
                decided = self._agreed(self._info(granted), granted, edited=False)
        if isinstance(decided, ToolReturn):
            return decided
        return await self._run(decided, scope)

    @property
    def _slot(self) -> str:
        # One slot for each gate of a pile of gates.
        return f"gate{len(self.tool.definition.gates)}"

    def _decide(self, arguments: dict[str, Json]) -> GateState | ToolReturn:
        """Find out what people decided, and ask them if they have not."""
        was_interrupted, _, state = get_interrupt_state(GateState)
        if not was_interrupted:
            info = self._info(arguments)
            stateful_interrupt(info, GateState(info=info))
        if state is None:
            raise ToolError(f"the gate of {self._name!r} has lost what it asked; nothing ran")
        if state.approved:
            return state
        is_target, _, answer = get_resume_context(object)
        if not is_target:
            stateful_interrupt(state.info, state)
        try:
            state.info.check_answer(answer)
        except ResumeDataError as error:
            keep_waiting(error)
        return self._verdict(state.info, answer, arguments)

    def _verdict(
        self, info: ApprovalInfo | ReviewEditInfo, answer: object, arguments: dict[str, Json]
    ) -> GateState | ToolReturn:
        match answer:
            case Expired():
                return ToolReturn(expired_text(self._name, answer), ToolOutcome.EXPIRED)
            case Cancelled():
                return ToolReturn(cancelled_text(self._name, answer), ToolOutcome.CANCELLED)
            case ApprovalResult(approved=False, reason=reason):
                return ToolReturn(rejected_text(self._name, reason), ToolOutcome.REJECTED)
            case ReviewEditResult(disapproved=True, disapprove_reason=reason):
                return ToolReturn(rejected_text(self._name, reason), ToolOutcome.REJECTED)
            case _:
                pass
        # From here on something will run: only if this still is the call that people saw.
        if info.digest != self._digest(arguments) or info.arguments != arguments:
            self._refuse("the call, the tool or its rule has changed since people were asked")
        edited = answer.edited_arguments if isinstance(answer, ReviewEditResult) else None
        if edited is None or cast("ReviewEditResult", answer).no_need_to_edit:
            return self._agreed(info, arguments, edited=False)
        wanted = self._checked(edited)
        return self._agreed(info, wanted, edited=wanted != arguments)

    def _checked(self, edited: dict[str, Json]) -> dict[str, Json]:
        """Read edited arguments; what was left out must not come back as a default unseen."""
        try:
            wanted = self.tool.validate(edited)
        except InvalidArgumentsError as error:
            self._refuse(str(error))
        unseen = [
            name for name, value in wanted.items() if name not in edited and value is not None
        ]
        if unseen:
            self._refuse(f"the edited arguments leave out {', '.join(unseen)}; give all of them")
        return wanted

    def _agreed(
        self, info: ApprovalInfo | ReviewEditInfo, arguments: dict[str, Json], *, edited: bool
    ) -> GateState:
        return GateState(
            info=info,
            approved=True,
            arguments=arguments,
            edited=edited,
            digest=self._digest(arguments),
        )

    async def _run(self, state: GateState, scope: Scope) -> ToolReturn:
        """Run exactly what people agreed to."""
        arguments = state.arguments
        if not state.approved or arguments is None or self._digest(arguments) != state.digest:
            raise ToolError(f"nobody agreed to this call of {self._name!r}; it did not run")
        if not self.tool.definition.gates:
            await mark_started(arguments)
        try:
            result = await self.tool.call(arguments)
        except Interrupted as signal:
            with entered(scope):
                composite_interrupt(state.info, state, signal)
        done = result if isinstance(result, ToolReturn) else ToolReturn(result)
        return replace(done, text=edited_text(arguments, done.text)) if state.edited else done

    def _info(self, arguments: dict[str, Json]) -> ApprovalInfo | ReviewEditInfo:
        spec, words, address = self.tool.definition, self.describe(arguments), current_address()
        make = ApprovalInfo if self.kind == "approval" else ReviewEditInfo
        return make(
            tool_name=spec.name,
            arguments=arguments,
            call_id=address.segments[-1].sub_id,
            title=words.title,
            why=current_why(),
            preview=words.preview,
            schema=dict(spec.schema),
            digest=self._digest(arguments),
            rule=self.rule,
            thread=current_checkpoint_id(),
            address=str(address),
        )

    def _digest(self, arguments: dict[str, Json]) -> str:
        return call_digest(
            thread=current_checkpoint_id(),
            address=str(current_address()),
            tool=self._name,
            arguments=arguments,
            rule=self.rule,
        )

    @property
    def _name(self) -> str:
        return self.tool.definition.name

    def _refuse(self, fault: str) -> NoReturn:
        keep_waiting(ResumeDataError(f"{self._name!r} did not run: {fault}"))


def approval_gate(tool: Tool, *, rule: str = DEFAULT_RULE) -> Tool:
    """Let a tool run only after a person has approved the call; asks with `ApprovalInfo`.

    Args:
        tool: What is guarded; any tool, also one that asks people itself.
        rule: Name of the rule that asks.
    """
    return Gate(tool, "approval", rule)


def review_edit_gate(tool: Tool, *, rule: str = DEFAULT_RULE) -> Tool:
    """Let a tool run only after a person has approved or edited it; asks with `ReviewEditInfo`.

    Args:
        tool: What is guarded; any tool, also one that asks people itself.
        rule: Name of the rule that asks.
    """
    return Gate(tool, "review", rule)
