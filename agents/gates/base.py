"""The base class of gates: ask people about a call, keep their answer, run what they approved.

A custom gate is a subclass of `CallGate` that defines its request (`_question`). It may also define
which answers reject (`_declined`) and which arguments an answer approves (`_wanted`). The base
class ensures that nothing runs without a valid answer, and that only the call that people saw runs.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NoReturn, cast

from agents.core.asking.answers import (
    ANY_OUTCOME,
    ApprovalResult,
    Cancelled,
    Expired,
    Reasked,
)
from agents.core.asking.infos import ApprovalInfo, CallInfo, ParkedInfo, ReviewEditInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.component.legacy import old_interrupts
from agents.core.component.state import (
    get_interrupt_state,
    get_resume_context,
    interrupt_info,
    is_checked,
    runtime_slot,
)
from agents.core.digest import call_digest, canonical_json
from agents.core.errors import InvalidArgumentsError, ResumeDataError, ToolError
from agents.core.interrupt import (
    InterruptSignal,
    check_answer,
    composite_interrupt,
    keep_waiting,
    pass_on,
    stateful_interrupt,
    ungrouped,
)
from agents.core.journal import STARTED
from agents.core.observers import ToolOutcome
from agents.core.pending import Answerable
from agents.core.scope import (
    AskAgain,
    Park,
    Scope,
    answered_here,
    current_scope,
    entered,
)
from agents.core.starts import start_call
from agents.core.tools import EXTERNAL, Tool, ToolSpec, ToolWrapper, layers_of
from agents.gates.rulings import (
    DEFAULT_RULE,
    Around,
    Demand,
    DeniedError,
    GateState,
    Judgement,
    agreed,
    all_lapsed,
    changed,
    counting,
    deciders,
    demands,
    gates_around,
    inside,
)
from agents.gates.votes import ask_in, declined, edited_in, read_vote
from agents.policy.base import Allow, Ask, Deny, PolicyCall, Ruling
from agents.policy.house import House, current_house
from agents.tools.texts import (
    cancelled_text,
    denied_text,
    edited_text,
    expired_text,
    open_schema,
    rejected_text,
    words_of,
)

__all__ = ["DEFAULT_RULE", "CallGate", "gates_in"]

_RULED_ANEW = AskAgain("the rules have changed since it was allowed")


@dataclass(frozen=True, slots=True)
class CallGate(ToolWrapper, ABC):
    """A tool that requests approval of each call before it runs the wrapped tool.

    Attributes:
        tool: The wrapped tool.
    """

    _definition: tuple[ToolSpec, ToolSpec] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    # Properties of a gate.

    @property
    @abstractmethod
    def gate_name(self) -> str:
        """Return the gate's name. Stored with an interrupt: never change it."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the names of arguments that the model may omit and people fill in."""
        return ()

    @property
    def fills_in(self) -> bool:
        """Whether answers fill in arguments. The gate then does not ask about these."""
        return False

    @property
    def asks_people(self) -> bool:
        """Whether the gate itself requires approval. A policy's gate may not."""
        return not self.fills_in

    @property
    def always_asks(self) -> bool:
        """Whether the gate requires approval of every call."""
        return False

    @abstractmethod
    async def _question(
        self, arguments: dict[str, Json]
    ) -> CallInfo | Ask | Deny | ToolReturn | None:
        """Return the request for a new call, or None if the call needs no approval.

        A gate can also return a ruling, or a result without running the call.
        """

    def _declined(self, info: CallInfo, answer: object) -> ToolReturn | None:
        """Return the tool result if the answer stops the call, else None."""
        return declined(info, answer)

    def _wanted(
        self,
        info: CallInfo,  # noqa: ARG002 - for gates whose answers depend on it
        answer: object,
        arguments: dict[str, Json],
    ) -> dict[str, Json]:
        """Return the arguments that the answer approves. Validate edits with `_checked`."""
        edited = edited_in(answer)
        return arguments if edited is None else self._checked(edited)

    def _narrowed(self, info: CallInfo, ask: Ask) -> CallInfo:
        """Remove answers that the policy does not permit, such as the edit of a review."""
        if ask.kind == "review" or type(info) is not ReviewEditInfo:
            return info
        return ApprovalInfo(
            **{attribute.name: getattr(info, attribute.name) for attribute in fields(info)}
        )

    def _text_after_edit(self, arguments: dict[str, Json], text: str) -> str:
        """Return the text for the model if people changed its arguments."""
        return edited_text(arguments, text)

    def _decision_rule(self, info: CallInfo | None) -> str:
        """Return the rule that a decision is bound to: the current or the requesting one."""
        return info.rule if info else DEFAULT_RULE

    @property
    def _defers(self) -> bool:
        """Whether an inner gate applies the policy if this gate requests nothing."""
        return True

    def _code(self, asked: CallInfo | Ask | Deny | None) -> Ruling | None:
        """Return the gate's own decision, as input for the policy."""
        return ask_in(asked) if isinstance(asked, CallInfo) else asked or Allow()

    # The tool around the tool.

    @property
    def completes_arguments(self) -> bool:
        """Whether people may still fill in arguments, in this gate or an inner one."""
        inner = self.tool
        return bool(self.left_out) or (isinstance(inner, CallGate) and inner.completes_arguments)

    @property
    def definition(self) -> ToolSpec:
        """Return the tool's definition with this gate added."""
        inner, cached = self.tool.definition, self._definition
        # Cached for the same inner definition, which each call reads several times.
        if cached is None or cached[0] is not inner:
            schema = open_schema(inner.schema, self.left_out) if self.left_out else inner.schema
            cached = inner, replace(inner, gates=(self.gate_name, *inner.gates), schema=schema)
            object.__setattr__(self, "_definition", cached)
        return cached[1]

    @property
    def slot(self) -> str:
        """Return a slot that is unique among the nested gates; see `Demanding`."""
        # Counted from the inside: a new outer gate does not change the slots of pending calls.
        return f"gate{len(self.tool.definition.gates)}"

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Request approval and run the approved call; see `Tool.call`.

        Raises:
            InvalidArgumentsError: The arguments do not fit; approval is not requested.
            InterruptSignal: The gate or the wrapped tool asks people.
        """
        with runtime_slot(self.slot):
            scope = current_scope("a gate")
            if scope.granted is None:
                decided = await self._decide(arguments)
            else:
                # People have just decided about the doubt, so the gate does not ask again.
                decided = self._approved(None, GateState(arguments=scope.granted))
        if isinstance(decided, ToolReturn):
            return decided
        return await self._run(decided, scope)

    # What the gates of a call require.

    async def demand(
        self,
        arguments: dict[str, Json],
        before: GateState,  # noqa: ARG002 - see Demanding
        *,
        inside: bool,
    ) -> CallInfo | Allow | Deny | None:
        """Return what the gate requires of a new call; see `Demanding`."""
        asked = await self._ruled(arguments, inside=inside)
        if isinstance(asked, ToolReturn):
            return Deny(asked.text)
        if isinstance(asked, Deny):
            why = f"the rules do not allow the call with these arguments: {asked.reason}"
            return replace(asked, reason=why)
        return asked

    async def judge(self, arguments: dict[str, Json]) -> Judgement:
        """Return what the policy requires if the pending call has these arguments.

        Nothing runs and nothing is stored. The arguments must be validated.
        """
        with runtime_slot(self.slot):
            _, _, state = get_interrupt_state(GateState)
            state = replace(state or GateState(), info=_asked(state))
            try:
                demanded = await demands(self, changed(state, arguments))
            except DeniedError as error:
                denied = error.denied
                return Judgement(arguments=arguments, denied=denied.reason, failed=denied.failed)
        if demanded.left:
            return Judgement(arguments=arguments, info=demanded.left[0][1])
        return Judgement(arguments=arguments, rule=demanded.allow.rule if demanded.allow else "")

    async def _ruled(
        self, arguments: dict[str, Json], *, inside: bool
    ) -> CallInfo | Allow | Deny | ToolReturn | None:
        """Combine the gate's request with the policy. Without a policy, the gate decides."""
        asked = await self._question(arguments)
        code = None if isinstance(asked, ToolReturn) else self._code(asked)
        if isinstance(asked, Ask):
            asked = self._asking(asked, arguments)
        house = None if self.fills_in else current_house()
        if house is None or isinstance(asked, ToolReturn):
            return asked
        # The policy is applied once per call: by an outer gate, or else by an inner one.
        if asked is None and (inside or self._defers):
            return None
        call = self._policy_call(arguments)
        ruling = await house.ruling(call, code, inside=inside)
        return self._asking(ruling, arguments, asked) if isinstance(ruling, Ask) else ruling

    def _asking(
        self, ask: Ask, arguments: dict[str, Json], asked: CallInfo | Deny | None = None
    ) -> CallInfo:
        """Build the approval request for a policy decision.

        Approvers can do no more than the gate's own request (`asked`) permits.
        """
        if isinstance(asked, CallInfo):
            # Offer an edit only if the gate and the policy both permit it.
            is_review = ask.kind == "review" and not isinstance(asked, ApprovalInfo)
            ask = ask if is_review else replace(ask, kind="approval")
        shown = self._shown(arguments, ask.rule, ask.to_text())
        if isinstance(asked, CallInfo):
            # The digest covers the policy's terms, also if the gate's own request is shown.
            bound = {name: shown[name] for name in ("digest", "rule", "ruling")}
            info = self._narrowed(replace(asked, **bound), ask)
        else:
            info = ReviewEditInfo(**shown) if ask.kind == "review" else ApprovalInfo(**shown)
        return replace(
            info,
            title=ask.title or info.title,
            # A title of the policy need not contain these arguments.
            named=info.named if ask.title in {"", info.title} else (),
            reason=ask.reason,
            approvers=ask.approvers,
            expires_in=ask.expires_in,
            remind_in=ask.remind_in,
            escalate_in=ask.escalate_in,
            backups=ask.backups,
            exclude_editors=ask.exclude_editors,
            terms=ask.terms,
        )

    # Ask people, and read their answer.

    async def _decide(self, arguments: dict[str, Json]) -> GateState | ToolReturn:
        """Return the approved state, or interrupt to request approval.

        Only the arguments of a new call are validated here. Arguments that people have seen are not
        changed.
        """
        was_interrupted, _, state = get_interrupt_state(GateState)
        if not was_interrupted:
            # A direct caller may not have validated the arguments. People must see arguments that
            # can run, and all of them.
            is_read = _begun() is not None or any(
                _same(outer.state.arguments or {}, arguments) for outer in gates_around()
            )
            return await self._first(arguments if is_read else self.validate(arguments))
        info = _asked(state)
        if state is not None and state.approved:
            return self._unparked(state) if state.parked else replace(state, info=info)
        if state is None or info is None or not isinstance(info, Answerable):
            raise ToolError(f"the gate of {self._name!r} has lost what it asked; nothing ran")
        is_target, _, answer = get_resume_context(ANY_OUTCOME)
        # Another interrupt of the run was answered: keep this one unchanged.
        if not is_target:
            stateful_interrupt(info, state)
        # Answers that an earlier process received were not checked in this resume.
        if not is_checked(info):
            check_answer(info, answer)
        return await self._verdict(replace(state, info=info), info, answer)

    def _unparked(self, state: GateState) -> GateState | ToolReturn:
        """Return the approved state of a call that need not wait any more, or why it ends."""
        info = interrupt_info()
        if not isinstance(info, ParkedInfo):
            raise ToolError(f"the gate of {self._name!r} has lost why it waits; nothing ran")
        is_target, _, answer = get_resume_context(ANY_OUTCOME)
        if not is_target:  # another interrupt of the run was answered
            stateful_interrupt(info, state)
        check_answer(info, answer)
        match answer:
            case Expired():
                return ToolReturn(expired_text(self._name, answer), ToolOutcome.EXPIRED)
            case Cancelled():
                return ToolReturn(cancelled_text(self._name, answer), ToolOutcome.CANCELLED)
            case ApprovalResult():
                text = rejected_text(self._name, answer.reason)
                return ToolReturn(text, ToolOutcome.REJECTED)
            case _:
                return state

    async def _first(self, arguments: dict[str, Json]) -> GateState | ToolReturn:
        around = gates_around()
        inside = any(agreed(outer.gate, outer.state) for outer in around)
        asked = await self._ruled(arguments, inside=inside)
        if isinstance(asked, CallInfo):
            granted = None
            # A grant could come from an approver of an outer gate, who must not count twice.
            # Nor can a grant fill in arguments: that is no approval.
            house = None if inside or self.fills_in else current_house()
            if house is not None:
                granted = await house.granted(self._policy_call(arguments), asked.terms)
            if granted is None:
                # Voters of outer gates must not decide here as well.
                if around:
                    asked = replace(asked, counted=deciders(around))
                stateful_interrupt(asked, GateState())
            asked = granted
        if isinstance(asked, Deny):
            return await self._denied(self._policy_call(arguments), asked)
        if isinstance(asked, ToolReturn):
            return asked
        return self._approved(None, GateState(arguments=arguments, allow=asked))

    async def _verdict(
        self, state: GateState, info: CallInfo, answer: object
    ) -> GateState | ToolReturn:
        shown = info.arguments if state.arguments is None else state.arguments
        match answer:
            case Expired():
                return ToolReturn(expired_text(self._name, answer), ToolOutcome.EXPIRED)
            case Reasked(reason=reason):
                lapsed = replace(all_lapsed(state), arguments=shown)
                decided = await self._ask_again(lapsed, shown, info.original, reason)
                return self._approved(info, decided) if isinstance(decided, GateState) else decided
            case Cancelled():
                return ToolReturn(cancelled_text(self._name, answer), ToolOutcome.CANCELLED)
            case _:
                pass
        # The gate that asked reads the answer: the type of answers depends on the gate.
        owner = self._owner(state)
        stopped = owner._declined(info, answer)  # noqa: SLF001 - a gate like this one
        if stopped is not None:
            return stopped
        # The call may run only if it is still the call that the approvers saw.
        if info.digest != owner._digest_of(info, shown) or info.arguments != shown:  # noqa: SLF001
            self._refuse(
                "the call, the tool or its rule has changed since people were asked; start the "
                "version that asked, or cancel and ask again"
            )
        owner._check_taken(info, shown)  # noqa: SLF001
        wanted = owner._wanted(info, answer, shown)  # noqa: SLF001
        return await self._settle(state, info, answer, shown=shown, wanted=wanted)

    def _owner(self, state: GateState) -> CallGate:
        """Return the gate that requested approval: this gate or an outer one."""
        if not state.asking:
            return self
        gates = [outer.gate for outer in gates_around() if outer.gate.slot == state.asking]
        if not gates or not isinstance(gates[0], CallGate):
            raise ToolError(f"a gate of {self._name!r} that asked people is gone; nothing ran")
        return gates[0]

    def _check_taken(self, info: CallInfo, shown: dict[str, Json]) -> None:
        """Check that a tool with a changed schema still accepts the shown arguments."""
        # With the same schema, the tool accepts what it accepted before.
        if self.fills_in or info.schema == dict(self.tool.definition.schema):
            return
        try:
            is_taken = _same(self.tool.validate(shown), shown)
        except InvalidArgumentsError:
            is_taken = False
        if not is_taken:
            self._refuse(
                "the tool does not take the arguments any more that people saw; start the version "
                "that asked, or cancel and ask again"
            )

    def _checked(self, edited: Mapping[str, object]) -> dict[str, Json]:
        """Validate edited arguments. Refuse missing ones: a default would be unseen."""
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

    async def _settle(
        self,
        state: GateState,
        info: CallInfo,
        answer: object,
        *,
        shown: dict[str, Json],
        wanted: dict[str, Json],
    ) -> GateState | ToolReturn:
        """Run the call if all approvals exist; otherwise request the missing ones."""
        edits = not _same(wanted, shown)
        try:
            vote = read_vote(
                answer,
                state,
                info,
                slot=state.asking or self.slot,
                edited=wanted if edits else None,
            )
        except ValueError as error:
            self._refuse(str(error))
        is_asked = not vote.edits and vote.ruling == info.ruling
        asked_first = is_asked and state.arguments is None
        before = changed(state, wanted) if vote.edits else state
        # All other votes are counted by `Vote.cast` below.
        is_counted = asked_first or (self.fills_in and not state.asking)
        after = replace(
            before,
            arguments=wanted,
            edited=state.edited or vote.edits,
            edited_by=vote.editor,
            editors=vote.editors,
            decisions=(*before.decisions, *answered_here()),
            decided_by=(*before.decided_by, *(vote.voters if is_counted else ())),
        )
        if asked_first:
            # The call is unchanged, so the terms stored with the request apply.
            return self._approved(info, after)
        try:
            demanded = await demands(self, after)
        except DeniedError as error:
            # Refused instead of denied, so that the approver can correct the edit.
            self._refuse(str(error))
        after, left = vote.cast(replace(after, allow=demanded.allow), demanded.left)
        if left:
            original = info.original if info.original is not None else shown
            self._ask_for(after, left, original=original)
        return self._approved(info, after)

    async def _ask_again(
        self,
        lapsed: GateState,
        arguments: dict[str, Json],
        original: dict[str, Json] | None,
        why: str,
    ) -> GateState | ToolReturn:
        """Request approval again under the current policy, or return its permission or denial."""
        try:
            demanded = await demands(self, lapsed)
        except DeniedError as error:
            return await self._denied(self._policy_call(arguments), Deny(str(error)))
        if demanded.left:
            self._ask_for(lapsed, demanded.left, original=original, asked_again=why)
        if current_house() is not None and demanded.allow is None:
            raise ToolError(f"no rule lets this call of {self._name!r} run; it did not run")
        return replace(lapsed, allow=demanded.allow)

    def _ask_for(
        self,
        state: GateState,
        left: Sequence[Demand],
        *,
        original: dict[str, Json] | None,
        asked_again: str = "",
    ) -> NoReturn:
        """Interrupt with the request of the next gate whose approval is missing."""
        slot, asked = left[0]
        # Approvers of a gate that is asked again may approve it again, but no other gate.
        anew = set() if slot == self.slot else {name for name, _ in left}
        around = deciders([outer for outer in counting(state) if outer.gate.slot not in anew])
        info = replace(
            asked,
            counted=tuple(dict.fromkeys((*around, *state.decided_by))),
            edited_by=state.edited_by,
            editors=state.editors,
            original=original,
            asked_again=asked_again,
        )
        asking = "" if slot == self.slot else slot
        # The interrupt stores the info; the state must not store it twice.
        stateful_interrupt(info, replace(state, info=None, approved=False, asking=asking))

    def _approved(self, info: CallInfo | None, state: GateState) -> GateState:
        arguments = state.arguments or {}
        digest = self._digest_of(info, arguments)
        return replace(state, info=info, approved=True, arguments=arguments, digest=digest)

    async def _denied(self, call: PolicyCall, denied: Deny) -> ToolReturn:
        """Return the result of a denied call. The policy records the denial."""
        house = current_house()
        if house is not None:
            await house.note(call, denied)
        return ToolReturn(denied_text(self._name, denied.reason), ToolOutcome.REFUSED)

    def _refuse(self, fault: str) -> NoReturn:
        keep_waiting(ResumeDataError(f"{self._name!r} did not run: {fault}"))

    # Run the approved call.

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
            state = replace(state, parked=False)
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
        text = self._text_after_edit(arguments, done.text)
        return replace(done, text=text, said=done.said or done.text)

    def _guarded(self, state: GateState) -> Tool:
        """Return the wrapped tool, in the policy's gate if the policy must still decide."""
        house = current_house()
        if house is None:
            return self.tool
        passed = [*((outer.gate, outer.state) for outer in gates_around()), (self, state)]
        if any(agreed(gate, gate_state) or gate_state.allow for gate, gate_state in passed):
            # This gate or an outer one has already applied the policy.
            return self.tool
        return house.guard(self.tool, in_code=any(not gate.fills_in for gate, _ in passed))

    async def _start(self, state: GateState, arguments: dict[str, Json]) -> ToolReturn | None:
        """Record the start of the call; request approval again if it is no longer valid.

        Returns:
            The result of a denied call; None if the call has started.
        """
        outer_decisions = (name for outer in counting(state) for name in outer.state.decisions)
        decisions = tuple(dict.fromkeys((*outer_decisions, *state.decisions)))
        _, _, before = get_interrupt_state(GateState)
        goes_on = before is not None and before.approved and not before.parked
        # A call that resumes has already acted; a denial now would leave it half done.
        word = None if goes_on else await self._last_word(state, arguments, decisions)
        if isinstance(word, ToolReturn):
            return word
        allow = word if isinstance(word, Allow) else None
        lapsed = word if isinstance(word, AskAgain) else None
        if lapsed is None:
            granted_by = current_scope("a gate").granted_by  # people decided about the doubt
            state = replace(state, decisions=decisions or granted_by)
            lapsed = await self._begin(state, arguments, allow, goes_on=goes_on)
        if lapsed is None:
            return None
        original = state.info.original if state.info is not None else None
        decided = await self._ask_again(all_lapsed(state), arguments, original, lapsed.reason)
        if isinstance(decided, ToolReturn):
            return decided
        house, allow = current_house(), decided.allow
        if house is not None and allow is not None:
            await house.note(self._policy_call(arguments), allow)
        refused = await self._begin(replace(decided, decisions=()), arguments, allow)
        if refused is not None:
            raise ToolError(f"{self._name!r} did not run: {refused.reason}")
        return None

    async def _begin(
        self,
        state: GateState,
        arguments: dict[str, Json],
        allow: Allow | None,
        *,
        goes_on: bool = False,
    ) -> AskAgain | None:
        """Start the call, as the last step before the tool; or let it wait.

        After this, a crash leaves a doubt, never a second run.
        """
        begun, scope = _begun(), current_scope("a gate")
        waited = interrupt_info() if state.parked else None
        # What an earlier start has kept, and the terms that let the call start, in case of a doubt.
        kept = {**scope.frozen, **cast("dict[str, Json]", (begun or {}).get("frozen", {}))}
        if allow is not None and allow.terms:
            kept["terms"] = allow.terms
        spec = self.tool.definition
        refused = await start_call(
            spec,
            arguments,
            decisions=state.decisions,
            grant=allow.grant if allow is not None else "",
            kept=kept,
            goes_on=goes_on,
            repeats=begun is not None,
            may_park=True,
            parked=waited.kept if isinstance(waited, ParkedInfo) else None,
        )
        if isinstance(refused, Park):
            info = ParkedInfo(
                tool_name=spec.name,
                title=words_of(self, arguments).title,
                tags=spec.tags,
                why=refused.reason,
                kept=dict(refused.kept),
            )
            stateful_interrupt(info, replace(state, arguments=arguments, parked=True))
        return refused

    async def _last_word(
        self, state: GateState, arguments: dict[str, Json], decisions: tuple[str, ...]
    ) -> Allow | ToolReturn | AskAgain | None:
        """Evaluate the application's policy right before the call starts.

        Returns:
            The recorded ruling that allows the call without approval; None if people approved it; a
            result if it must not start; or that approval must be requested again.
        """
        house, is_granted = current_house(), current_scope("a gate").granted is not None
        # Without a policy there is nothing to ask; a start before a crash was already allowed.
        if house is None or _begun() is not None:
            return None
        around = counting(state)
        passed = [*((outer.gate, outer.state) for outer in around), (self, state)]
        allows = [gate_state.allow for _, gate_state in passed if gate_state.allow is not None]
        has_agreed = is_granted or any(agreed(gate, gate_state) for gate, gate_state in passed)
        is_free = not allows and house.policy.allows_ungated
        if is_free and all(gate.fills_in for gate, _ in passed):
            return None  # people filled in arguments, and no approval was needed
        if state.parked and allows and not has_agreed:
            return await self._anew(state, arguments, house)
        call, code = self._policy_call(arguments), self._code(None)
        # A new call was evaluated just now. A decision of people may be old, so evaluate again.
        if decisions or is_granted or not allows:
            ruling = await house.last_word(call, code, decisions)
            if isinstance(ruling, Deny):
                return await self._denied(call, ruling)
            if not has_agreed and not (allows and isinstance(ruling, Allow)):
                return _RULED_ANEW
        allow = None if has_agreed else allows[-1]
        if allow is not None:
            await house.note(call, allow)
        return allow

    async def _anew(
        self, state: GateState, arguments: dict[str, Json], house: House
    ) -> Allow | ToolReturn | AskAgain:
        """Evaluate a call that nobody decided and that was parked, as if it were new."""
        call = self._policy_call(arguments)
        try:
            demanded = await demands(self, all_lapsed(state))
        except DeniedError as error:
            return await self._denied(call, error.denied)
        allow = demanded.allow
        if demanded.left:  # a grant stands for one gate
            terms = demanded.left[0][1].terms
            allow = await house.granted(call, terms) if len(demanded.left) == 1 else None
        if allow is None:
            return _RULED_ANEW
        await house.note(call, allow)
        return allow

    # The call, for people, for the policy, and in the digest.

    def _shown(self, arguments: dict[str, Json], rule: str, ruling: str = "") -> dict[str, Any]:
        """Return the fields of an info about this call; the gate's terms are the default."""
        ruling = ruling or _gate_ruling(self.gate_name, rule)
        spec, scope = self.tool.definition, current_scope("a gate")
        # A failing description refuses a new call, but must not block a pending request.
        words = self.describe(arguments) if scope.point is None else words_of(self, arguments)
        return {
            "tool_name": spec.name,
            "arguments": arguments,
            "call_id": scope.address.segments[-1].sub_id,
            "title": words.title,
            "why": scope.why,
            "preview": words.preview,
            "named": words.named,
            "leaves": EXTERNAL in spec.tags,
            "schema": dict(spec.schema),
            "digest": self._digest(arguments, rule, ruling),
            "rule": rule,
            "ruling": ruling,
            "thread": scope.run.checkpoint_id,
            "address": str(scope.address),
            "secret": spec.secret,
            "shown": spec.shown,
        }

    def _policy_call(self, arguments: dict[str, Json]) -> PolicyCall:
        """Return this call as input for a policy or a predicate."""
        spec, scope = self.tool.definition, current_scope("a gate")
        # Whether code requires approval of its calls, in this, an outer or an inner gate.
        gates = (*(outer.gate for outer in gates_around()), *gates_in(self))
        return PolicyCall(
            tool=spec.name,
            # A copy: the policy is code of the application and may modify it.
            arguments=copy.deepcopy(arguments),
            call_id=scope.address.segments[-1].sub_id,
            address=str(scope.address),
            thread=scope.run.checkpoint_id,
            why=scope.why,
            tags=spec.tags,
            gated=any(gate.asks_people for gate in gates),
            secret=spec.secret,
            shown=spec.shown,
            risk=spec.risk,
            idempotent=spec.idempotent,
            session=MappingProxyType(dict(scope.run.session)),
        )

    def _digest_of(self, info: CallInfo | None, arguments: dict[str, Json]) -> str:
        rule, ruling = self._decision_rule(info), info.ruling if info is not None else ""
        if info is not None and ruling not in {"", _gate_ruling(self.gate_name, info.rule)}:
            rule = info.rule  # a policy asked: the complete terms are bound
        return self._digest(arguments, rule, ruling)

    def _digest(self, arguments: dict[str, Json], rule: str, ruling: str) -> str:
        scope = current_scope("a gate")
        return call_digest(
            thread=scope.run.checkpoint_id,
            address=str(scope.address),
            tool=self._name,
            arguments=arguments,
            rule=rule,
            ruling=ruling,
        )

    @property
    def _name(self) -> str:
        return self.tool.definition.name


def gates_in(tool: object) -> Iterator[CallGate]:
    """Yield the gates around a tool, outermost first, through other wrappers."""
    return (layer for layer in layers_of(tool) if isinstance(layer, CallGate))


@lru_cache(maxsize=256)
def _gate_ruling(gate_name: str, rule: str) -> str:
    """Return the terms of a gate without a policy. Cached: compared at each decision."""
    return Ask(rule=rule).to_text(kind=gate_name)


def _same(arguments: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    return arguments is other or canonical_json(arguments) == canonical_json(other)


def _begun() -> dict[str, Json] | None:
    """Return the start of this call in a process that crashed, with stored arguments."""
    scope = current_scope("a gate")
    return scope.run.journal.find(STARTED, str(scope.address))


def _asked(state: GateState | None) -> CallInfo | None:
    """Return the info that approvers saw, from the state or from the interrupt."""
    kept = state.info if state is not None else None
    info = kept if kept is not None else interrupt_info()
    return info if isinstance(info, CallInfo) else None
