"""Base class of gates: request approval, store the answer, run the approved call.

A custom gate is a subclass of `CallGate` that defines its request (`_question`), the answers that
reject (`_declined`), and the arguments that an answer approves (`_wanted`). The base classes ensure
that nothing runs without a valid answer, and that only the call that people saw runs.
`agents.gates.bound` binds decisions to the call, `agents.gates.asking` requests approval and
applies the answer, and this module runs the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.component.legacy import old_interrupts
from agents.core.component.state import get_interrupt_state, state_slot
from agents.core.errors import ToolError
from agents.core.interrupt import InterruptSignal, composite_interrupt, pass_on, ungrouped
from agents.core.journal import STARTED
from agents.core.observers import ToolOutcome
from agents.core.scope import Scope, current_scope, entered
from agents.gates.asking import AskingGate
from agents.gates.bound import layers_of
from agents.gates.rulings import (
    DEFAULT_RULE,
    Around,
    DeniedError,
    GateState,
    agreed,
    all_lapsed,
    counting,
    demands,
    gates_around,
    inside,
)
from agents.policy.base import Allow, Deny, PolicyCall
from agents.policy.house import House, current_house
from agents.tools.base import Tool
from agents.tools.starting import begin_call, granted_arguments, mark_started
from agents.tools.texts import denied_text, edited_text

__all__ = ["DEFAULT_RULE", "CallGate", "gates_in"]

_RULED_ANEW = "the rules have changed since it was allowed"


@dataclass(frozen=True, slots=True)
class CallGate(AskingGate):
    """A tool that requests approval of each call before it runs the wrapped tool.

    Attributes:
        tool: The wrapped tool.
    """

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Request approval and run the approved call; see `Tool.call`.

        Raises:
            InvalidArgumentsError: The arguments do not fit; approval is not requested.
            InterruptSignal: The gate or the wrapped tool asks people.
        """
        granted = granted_arguments()
        with state_slot(self.slot):
            scope = current_scope("a gate")
            if granted is None:
                decided = await self._decide(arguments)
            else:
                # People have just decided about the doubt, so the gate does not ask again.
                decided = self._approved(None, GateState(arguments=granted))
        if isinstance(decided, ToolReturn):
            return decided
        return await self._run(decided, scope)

    def _told(self, arguments: dict[str, Json], text: str) -> str:
        """Return the text for the model if people changed its arguments."""
        return edited_text(arguments, text)

    async def _run(self, state: GateState, scope: Scope) -> ToolReturn:
        """Run exactly the approved call."""
        arguments, info = state.arguments, state.info
        # Checked again, because the state may come from the store.
        if (
            not state.approved
            or arguments is None
            or self._digest_of(info, arguments) != state.digest
        ):
            raise ToolError(f"nobody agreed to this call of {self._name!r}; it did not run")
        passed = Around(address=scope.address, gate=self, state=state)
        tool = self._guarded(state)
        # Only the innermost gate records the start: an inner gate may still interrupt.
        if tool is self.tool and not tool.definition.gates:
            with entered(scope):
                refused = await self._start(state, arguments)
            if refused is not None:
                return refused
        try:
            with ungrouped(), old_interrupts(), inside(passed):
                result = await tool.call(arguments)
        except InterruptSignal as signal:
            with entered(scope):
                if info is None:
                    # A gate without a request of its own stays invisible to people.
                    pass_on(state, signal)
                composite_interrupt(info, replace(state, info=None), signal)
        done = result if isinstance(result, ToolReturn) else ToolReturn(result)
        if not state.edited:
            return done
        told = self._told(arguments, done.text)
        return replace(done, text=told, said=done.said or done.text)

    def _guarded(self, state: GateState) -> Tool:
        """Return the wrapped tool, in the policy's gate if the policy must still decide."""
        house = current_house()
        if house is None:
            return self.tool
        passed = [*((one.gate, one.state) for one in gates_around()), (self, state)]
        if any(agreed(gate, one) or one.allow for gate, one in passed):
            # This gate or an outer one has already applied the policy.
            return self.tool
        return house.guarded(self.tool, in_code=any(not gate.fills_in for gate, _ in passed))

    async def _start(self, state: GateState, arguments: dict[str, Json]) -> ToolReturn | None:
        """Record the start of the call; request approval again if it is no longer valid.

        Returns:
            The result of a denied call; None if the call has started.
        """
        around, masks = counting(state), self.tool.definition.masks
        decisions = (*(name for one in around for name in one.state.decisions), *state.decisions)
        _, _, before = get_interrupt_state(GateState)
        goes_on = before is not None and before.approved
        # A call that resumes has already acted; a denial now would leave it half done.
        word = None if goes_on else await self._last_word(state, arguments, decisions)
        if isinstance(word, ToolReturn):
            return word
        again = word if isinstance(word, str) else ""
        allow = word if isinstance(word, Allow) else None
        again = again or await begin_call(
            self._name,
            arguments,
            decisions=decisions,
            masks=masks,
            goes_on=goes_on,
            kept=_kept(allow),
        )
        return await self._anew(state, arguments, again) if again else None

    async def _last_word(
        self, state: GateState, arguments: dict[str, Json], decisions: tuple[str, ...]
    ) -> Allow | ToolReturn | str | None:
        """Evaluate the application's policy right before the call starts.

        Returns:
            The recorded ruling that allows the call without approval; None if people approved it; a
            result if it must not start; or why approval must be requested again.
        """
        house, scope = current_house(), current_scope("a gate")
        begun = scope.run.journal.find(STARTED, str(scope.address))
        # Without a policy there is nothing to ask; a start before a crash was already allowed.
        if house is None or begun is not None:
            return None
        around, is_granted = counting(state), scope.granted is not None
        passed = [*((one.gate, one.state) for one in around), (self, state)]
        allows = [one.allow for _, one in passed if one.allow is not None]
        has_agreed = is_granted or any(agreed(gate, one) for gate, one in passed)
        is_free = not allows and house.policy.allows_ungated
        if is_free and all(gate.fills_in for gate, _ in passed):
            return None  # people filled in arguments, and no approval was needed
        call, code = self._policy_call(arguments), self._code(None)
        # A new call was evaluated just now. A decision of people may be old, so evaluate again.
        if decisions or is_granted or not allows:
            ruling = await house.last_word(call, code, decisions)
            if isinstance(ruling, Deny):
                return await self._denied_now(house, call, ruling)
            if not has_agreed and not (allows and isinstance(ruling, Allow)):
                return _RULED_ANEW
        if has_agreed:
            return None
        await house.note(call, allows[-1])
        return allows[-1]

    async def _denied_now(self, house: House, call: PolicyCall, denied: Deny) -> ToolReturn:
        await house.note(call, denied)
        return ToolReturn(denied_text(self._name, denied.reason), ToolOutcome.REFUSED)

    async def _anew(
        self, state: GateState, arguments: dict[str, Json], again: str
    ) -> ToolReturn | None:
        """Request approval again if current rules require it, else record the start."""
        lapsed = all_lapsed(state)
        house = current_house()
        call = self._policy_call(arguments)
        try:
            demanded = await demands(self, lapsed)
        except DeniedError as error:
            denied = Deny(str(error))
            if house is not None:
                await house.note(call, denied)
            return ToolReturn(denied_text(self._name, denied.reason), ToolOutcome.REFUSED)
        if demanded.left:
            original = state.info.original if state.info is not None else None
            self._ask_for(lapsed, demanded.left, original=original, asked_again=again)
        allow = self._leave(demanded)
        if house is not None and allow is not None:
            await house.note(call, allow)
        masks = self.tool.definition.masks
        await mark_started(arguments, frozen=_kept(allow), masks=masks)
        return None


def gates_in(tool: object) -> Iterator[CallGate]:
    """Yield the gates around a tool, outermost first, through other wrappers."""
    return (one for one in layers_of(tool) if isinstance(one, CallGate))


def _kept(allow: Allow | None) -> dict[str, Json]:
    """Return the terms to store at the start of an allowed call, in case of a doubt."""
    return {"terms": allow.terms} if allow is not None and allow.terms else {}
