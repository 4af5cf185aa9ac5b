"""What all gates share: ask in a state slot of their own, keep the answer, run what it covers.

A gate of one's own is a subclass of `CallGate` that says what it asks (`_question`), which answers
mean no (`_declined`), and which arguments an answer means (`_wanted`). The rest is here: nothing
runs without an answer that fits, and only what people were shown runs.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

from agents.address import Address
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
    interrupt_info,
    mark_started,
    session_values,
    state_slot,
)
from agents.errors import InvalidArgumentsError, ResumeDataError, ToolError
from agents.points import Answerable
from agents.policy.base import PolicyCall
from agents.signals import (
    Interrupted,
    composite_interrupt,
    keep_waiting,
    pass_on,
    stateful_interrupt,
    ungrouped,
)
from agents.tools.base import CallText, Tool, ToolSpec
from agents.tools.digest import call_digest
from agents.tools.infos import CallInfo, Cancelled, Expired
from agents.tools.texts import cancelled_text, edited_text, expired_text

DEFAULT_RULE = "always"

Judge: TypeAlias = Callable[[dict[str, Json]], Awaitable[str]]
"""Says why a call may not run with other arguments; an empty text lets it."""

_judges: ContextVar[tuple[tuple[Address, Judge], ...]] = ContextVar("agents_judges", default=())


@register("countersign.gate/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class GateState:
    """What a gate must know to go on. Stored: version 1, must stay readable.

    Attributes:
        info: What people were shown; None when nobody was asked, and in what is stored: there the
            interrupt has it already.
        approved: Whether the call may run; then the gate never asks again.
        arguments: With which arguments, in canonical form.
        edited: Whether they are others than the model asked for.
        digest: Digest of what may run.
    """

    info: CallInfo | None = None
    approved: bool = False
    arguments: dict[str, Json] | None = None
    edited: bool = False
    digest: str = ""


@dataclass(frozen=True, slots=True)
class CallGate(ABC):
    """A tool that asks people about each call before it runs what it wraps.

    Attributes:
        tool: What is guarded.
    """

    tool: Tool

    @property
    @abstractmethod
    def gate_name(self) -> str:
        """Stored with an interrupt: never change it."""

    @property
    def completes_arguments(self) -> bool:
        """Whether people may still fill in arguments, here or in a gate inside of this one."""
        return isinstance(self.tool, CallGate) and self.tool.completes_arguments

    @property
    def definition(self) -> ToolSpec:
        """What the tool is, with this gate around it."""
        inner = self.tool.definition
        return replace(inner, gates=(self.gate_name, *inner.gates))

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
                decided = await self._decide(arguments)
            else:
                decided = self._agreed(None, granted, edited=False)
        if isinstance(decided, ToolReturn):
            return decided
        return await self._run(decided, scope)

    def components(self) -> Mapping[tuple[str, str], object]:
        """What the tool in it is made of, such as an agent; see `agents.topology`."""
        found: Mapping[tuple[str, str], object] = (
            self.tool.components() if hasattr(self.tool, "components") else {}
        )
        return found

    @abstractmethod
    async def _question(self, arguments: dict[str, Json]) -> CallInfo | ToolReturn | None:
        """What people are asked about a new call; a result that ends it; or None: it may run."""

    @abstractmethod
    def _declined(self, info: CallInfo, answer: object) -> ToolReturn | None:
        """The result when an answer means that the call does not run; None when it may."""

    @abstractmethod
    def _wanted(
        self, info: CallInfo, answer: object, arguments: dict[str, Json]
    ) -> dict[str, Json]:
        """The arguments that an answer means; read edited ones with `_checked`."""

    def _rule_of(self, info: CallInfo | None) -> str:
        """The rule that a decision is bound to: the one there is now, or the one that asked."""
        return info.rule if info else DEFAULT_RULE

    def _told(self, arguments: dict[str, Json], text: str) -> str:
        """What the model is told when people changed its arguments."""
        return edited_text(arguments, text)

    async def _objection(self, info: CallInfo, arguments: dict[str, Json]) -> str:  # noqa: ARG002 - for subclasses
        """Why the call may not run with arguments that people changed; empty when it may."""
        return await outer_objection(arguments)

    @property
    def _slot(self) -> str:
        # One slot for each gate of a pile of gates.
        return f"gate{len(self.tool.definition.gates)}"

    async def _decide(self, arguments: dict[str, Json]) -> GateState | ToolReturn:
        """Find out what people decided, and ask them if they have not."""
        was_interrupted, _, state = get_interrupt_state(GateState)
        if not was_interrupted:
            asked = await self._question(arguments)
            if asked is None:
                return self._agreed(None, arguments, edited=False)
            if isinstance(asked, ToolReturn):
                return asked
            stateful_interrupt(asked, GateState())
        info = _asked(state)
        if state is not None and state.approved:
            return replace(state, info=info)
        if state is None or info is None or not isinstance(info, Answerable):
            raise ToolError(f"the gate of {self._name!r} has lost what it asked; nothing ran")
        is_target, _, answer = get_resume_context(object)
        if not is_target:
            stateful_interrupt(info, state)
        try:
            info.check_answer(answer)
        except ResumeDataError as error:
            keep_waiting(error)
        return await self._verdict(info, answer, arguments)

    async def _verdict(
        self, info: CallInfo, answer: object, arguments: dict[str, Json]
    ) -> GateState | ToolReturn:
        match answer:
            case Expired():
                return ToolReturn(expired_text(self._name, answer), ToolOutcome.EXPIRED)
            case Cancelled():
                return ToolReturn(cancelled_text(self._name, answer), ToolOutcome.CANCELLED)
            case _:
                declined = self._declined(info, answer)
        if declined is not None:
            return declined
        # From here on something will run: only if this still is the call that people saw.
        digest = self._digest(arguments, self._rule_of(info))
        if info.digest != digest or info.arguments != arguments:
            self._refuse("the call, the tool or its rule has changed since people were asked")
        wanted = self._wanted(info, answer, arguments)
        edited = self._digest(wanted, self._rule_of(info)) != digest
        if edited:
            objection = await self._objection(info, wanted)
            if objection:
                self._refuse(objection)
        return self._agreed(info, wanted, edited=edited)

    def _checked(self, edited: Mapping[str, object]) -> dict[str, Json]:
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
        self, info: CallInfo | None, arguments: dict[str, Json], *, edited: bool
    ) -> GateState:
        return GateState(
            info=info,
            approved=True,
            arguments=arguments,
            edited=edited,
            digest=self._digest(arguments, self._rule_of(info)),
        )

    async def _run(self, state: GateState, scope: Scope) -> ToolReturn:
        """Run exactly what people agreed to."""
        arguments, rule = state.arguments, self._rule_of(state.info)
        if not state.approved or arguments is None or self._digest(arguments, rule) != state.digest:
            raise ToolError(f"nobody agreed to this call of {self._name!r}; it did not run")
        if not self.tool.definition.gates:
            await mark_started(arguments)
        try:
            with ungrouped():
                result = await self._inner(state, arguments)
        except Interrupted as signal:
            with entered(scope):
                if state.info is None:
                    pass_on(state, signal)
                composite_interrupt(state.info, replace(state, info=None), signal)
        done = result if isinstance(result, ToolReturn) else ToolReturn(result)
        if not state.edited:
            return done
        told = self._told(arguments, done.text)
        return replace(done, text=told, said=done.said or done.text)

    async def _inner(self, state: GateState, arguments: dict[str, Json]) -> str | ToolReturn:  # noqa: ARG002 - for subclasses
        return await self.tool.call(arguments)

    def _shown(self, arguments: dict[str, Json], rule: str) -> dict[str, Any]:
        """The fields of an info about this call."""
        spec, words, address = self.tool.definition, self.describe(arguments), current_address()
        return {
            "tool_name": spec.name,
            "arguments": arguments,
            "call_id": address.segments[-1].sub_id,
            "title": words.title,
            "why": current_why(),
            "preview": words.preview,
            "schema": dict(spec.schema),
            "digest": self._digest(arguments, rule),
            "rule": rule,
            "thread": current_checkpoint_id(),
            "address": str(address),
        }

    def _policy_call(self, arguments: dict[str, Json]) -> PolicyCall:
        """This call, for a policy or a predicate."""
        spec, address = self.tool.definition, current_address()
        return PolicyCall(
            tool=spec.name,
            arguments=copy.deepcopy(arguments),
            call_id=address.segments[-1].sub_id,
            address=str(address),
            thread=current_checkpoint_id(),
            why=current_why(),
            tags=spec.tags,
            idempotent=spec.idempotent,
            session=MappingProxyType(dict(session_values())),
        )

    def _digest(self, arguments: dict[str, Json], rule: str) -> str:
        return call_digest(
            thread=current_checkpoint_id(),
            address=str(current_address()),
            tool=self._name,
            arguments=arguments,
            rule=rule,
        )

    @property
    def _name(self) -> str:
        return self.tool.definition.name

    def _refuse(self, fault: str) -> NoReturn:
        keep_waiting(ResumeDataError(f"{self._name!r} did not run: {fault}"))


def _asked(state: GateState | None) -> CallInfo | None:
    """What people were shown: it is with the interrupt, or, long ago, in the state."""
    kept = state.info if state is not None else None
    info = kept if kept is not None else interrupt_info()
    return info if isinstance(info, CallInfo) else None


@contextmanager
def judged_by(judge: Judge) -> Iterator[None]:
    """Have the gates inside of this one ask a judge about arguments that people change.

    Args:
        judge: Asked by gates of the same call only, not by those of agents in it.
    """
    token = _judges.set((*_judges.get(), (current_address(), judge)))
    try:
        yield
    finally:
        _judges.reset(token)


async def outer_objection(arguments: dict[str, Json]) -> str:
    """Why the gates around this one do not let the call run with changed arguments, or nothing."""
    here = current_address()
    for address, judge in _judges.get():
        fault = await judge(arguments) if address == here else ""
        if fault:
            return fault
    return ""
