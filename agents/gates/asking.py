"""Base class of gates: request approval of a call and apply the answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from agents.core.asking.answers import ANY_OUTCOME, Cancelled, Expired, Reasked
from agents.core.asking.infos import ApprovalInfo, CallInfo, ReviewEditInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.component.state import (
    get_interrupt_state,
    get_resume_context,
    interrupt_info,
    is_checked,
    state_slot,
)
from agents.core.digest import canonical_json
from agents.core.errors import InvalidArgumentsError, ToolError
from agents.core.interrupt import check_answer, stateful_interrupt
from agents.core.journal import STARTED
from agents.core.observers import ToolOutcome
from agents.core.pending import Answerable
from agents.core.scope import current_scope
from agents.gates.answers import ask_in, editors_of, text_in, voters_of
from agents.gates.bound import BoundGate
from agents.gates.rulings import (
    Demand,
    Demands,
    DeniedError,
    GateState,
    Judgement,
    Vote,
    agreed,
    all_lapsed,
    changed,
    counting,
    deciders,
    demands,
    gates_around,
)
from agents.policy.base import Allow, Ask, Deny, Ruling
from agents.policy.house import current_house
from agents.tools.texts import cancelled_text, denied_text, expired_text


@dataclass(frozen=True, slots=True)
class AskingGate(BoundGate):
    """Asks people before a call runs and applies their answer."""

    @abstractmethod
    async def _question(self, arguments: dict[str, Json]) -> CallInfo | Deny | ToolReturn | None:
        """Return the request for a new call, or None if the call needs no approval.

        A gate can also deny the call, or return a result without running it.
        """

    @abstractmethod
    def _declined(self, info: CallInfo, answer: object) -> ToolReturn | None:
        """Return the tool result if the answer stops the call, else None."""

    @abstractmethod
    def _wanted(
        self, info: CallInfo, answer: object, arguments: dict[str, Json]
    ) -> dict[str, Json]:
        """Return the arguments that the answer approves. Validate edits with `_checked`."""

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
        with state_slot(self.slot):
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

    async def _decide(self, arguments: dict[str, Json]) -> GateState | ToolReturn:
        """Return the approved state, or interrupt to request approval.

        Only the arguments of a new call are validated here. Arguments that people have seen are not
        changed.
        """
        was_interrupted, _, state = get_interrupt_state(GateState)
        if not was_interrupted:
            # A direct caller may not have validated the arguments. People must see arguments that
            # can run, and all of them.
            is_read = _has_started() or any(
                _same(one.state.arguments or {}, arguments) for one in gates_around()
            )
            return await self._first(arguments if is_read else self.validate(arguments))
        info = _asked(state)
        if state is not None and state.approved:
            return replace(state, info=info)
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

    async def _first(self, arguments: dict[str, Json]) -> GateState | ToolReturn:
        around = gates_around()
        inside = any(agreed(one.gate, one.state) for one in around)
        asked = await self._ruled(arguments, inside=inside)
        if isinstance(asked, CallInfo):
            # A grant could come from an approver of an outer gate, who must not count twice.
            granted = None if inside else await self._granted(arguments, asked)
            if granted is None:
                # Voters of outer gates must not decide here as well.
                if around:
                    asked = replace(asked, counted=deciders(around))
                stateful_interrupt(asked, GateState())
            asked = granted
        if isinstance(asked, Deny):
            return await self._denied(arguments, asked)
        if isinstance(asked, ToolReturn):
            return asked
        return self._approved(None, GateState(arguments=arguments, allow=asked))

    async def _granted(self, arguments: dict[str, Json], asked: CallInfo) -> Allow | None:
        """Return the standing grant that allows a new call, or None."""
        # Filling in arguments is not an approval, so a grant cannot replace it.
        house = None if self.fills_in else current_house()
        if house is None:
            return None
        return await house.granted(self._policy_call(arguments), asked.terms)

    async def _ruled(
        self, arguments: dict[str, Json], *, inside: bool
    ) -> CallInfo | Allow | Deny | ToolReturn | None:
        """Combine the gate's request with the policy. Without a policy, the gate decides."""
        asked = await self._question(arguments)
        house = None if self.fills_in else current_house()
        if house is None or isinstance(asked, ToolReturn):
            return asked
        # The policy is applied once per call: by an outer gate, or else by an inner one.
        if asked is None and (inside or self._defers):
            return None
        call = self._policy_call(arguments)
        ruling = await house.ruling(call, self._code(asked), inside=inside)
        return self._asking(ruling, arguments, asked) if isinstance(ruling, Ask) else ruling

    @property
    def _defers(self) -> bool:
        """Whether an inner gate applies the policy if this gate requests nothing."""
        return True

    def _code(self, asked: CallInfo | Deny | None) -> Ruling | None:
        """Return the gate's own decision, as input for the policy."""
        return asked if isinstance(asked, Deny) else ask_in(asked) if asked else Allow()

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

    def _narrowed(self, info: CallInfo, ask: Ask) -> CallInfo:  # noqa: ARG002 - for gates that can
        """Remove answers that the policy does not permit. Subclasses may override."""
        return info

    async def _denied(self, arguments: dict[str, Json], denied: Deny) -> ToolReturn:
        """Return the result of a denied call. The policy records the denial."""
        house = None if self.fills_in else current_house()
        if house is not None:
            await house.note(self._policy_call(arguments), denied)
        return ToolReturn(denied_text(self._name, denied.reason), ToolOutcome.REFUSED)

    async def _verdict(
        self, state: GateState, info: CallInfo, answer: object
    ) -> GateState | ToolReturn:
        match answer:
            case Expired():
                return ToolReturn(expired_text(self._name, answer), ToolOutcome.EXPIRED)
            case Reasked(reason=reason):
                return await self._asked_anew(state, info, reason)
            case Cancelled():
                return ToolReturn(cancelled_text(self._name, answer), ToolOutcome.CANCELLED)
            case _:
                pass
        # The gate that asked reads the answer: the type of answers depends on the gate.
        owner = self._owner(state)
        declined = owner._declined(info, answer)  # noqa: SLF001 - a gate like this one
        if declined is not None:
            return declined
        # The call may run only if it is still the call that the approvers saw.
        shown = info.arguments if state.arguments is None else state.arguments
        if info.digest != owner._digest_of(info, shown) or info.arguments != shown:  # noqa: SLF001
            self._refuse("the call, the tool or its rule has changed since people were asked")
        owner._check_taken(info, shown)  # noqa: SLF001
        wanted = owner._wanted(info, answer, shown)  # noqa: SLF001
        return await self._settle(state, info, answer, shown=shown, wanted=wanted)

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
            self._refuse("the tool has changed since people were asked")

    async def _asked_anew(
        self, state: GateState, info: CallInfo, why: str
    ) -> GateState | ToolReturn:
        """Request approval again, under the current policy."""
        shown = info.arguments if state.arguments is None else state.arguments
        lapsed = replace(all_lapsed(state), arguments=shown)
        try:
            demanded = await demands(self, lapsed)
        except DeniedError as error:
            return await self._denied(shown, Deny(str(error)))
        if demanded.left:
            self._ask_for(lapsed, demanded.left, original=info.original, asked_again=why)
        return self._approved(info, replace(lapsed, allow=self._leave(demanded)))

    def _leave(self, demanded: Demands) -> Allow | None:
        """Return the policy's permission for a call that needs no approval."""
        if current_house() is not None and demanded.allow is None:
            raise ToolError(f"no rule lets this call of {self._name!r} run; it did not run")
        return demanded.allow

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
        vote = self._vote(state, info, answer, wanted=wanted, edits=edits)
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
            decisions=(*before.decisions, *_answered()),
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

    def _vote(
        self,
        state: GateState,
        info: CallInfo,
        answer: object,
        *,
        wanted: dict[str, Json],
        edits: bool,
    ) -> Vote:
        """Read the voters and the terms. Refuse a voter who counts in another gate."""
        by, editor, ruling = (text_in(answer, name) for name in ("by", "edited_by", "ruling"))
        voters = voters_of(answer)
        around = () if state.asking or state.lapsed else deciders(gates_around())
        counted = {*info.counted, *around}
        if edits:  # an edit voids the votes of outer gates that are asked again
            counted = {*deciders(counting(replace(state, arguments=wanted)))}
        for name in (*voters, editor):
            if name in counted:
                self._refuse(f"{name} has agreed in another gate of this call, which needs two")
        editor = (editor or by) if edits else state.edited_by
        before = dict.fromkeys((*state.editors, state.edited_by, *editors_of(answer)))
        editors = tuple(name for name in before if name not in {"", editor})
        own = [name for name in voters if name in (editor, *editors)]
        if not edits and info.exclude_editors and own:
            self._refuse(f"{own[0]} has edited it, and the rule wants somebody else to approve it")
        slot = state.asking or self.slot
        return Vote(
            ruling=ruling or info.ruling,
            voters=voters,
            editor=editor,
            editors=editors,
            slot=slot,
            edits=edits,
        )

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
        around = deciders([one for one in counting(state) if one.gate.slot not in anew])
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

    def _owner(self, state: GateState) -> AskingGate:
        """Return the gate that requested approval: this gate or an outer one."""
        if not state.asking:
            return self
        found = [one.gate for one in gates_around() if one.gate.slot == state.asking]
        if not found or not isinstance(found[0], AskingGate):
            raise ToolError(f"a gate of {self._name!r} that asked people is gone; nothing ran")
        return found[0]

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

    def _approved(self, info: CallInfo | None, state: GateState) -> GateState:
        arguments = state.arguments or {}
        digest = self._digest_of(info, arguments)
        return replace(state, info=info, approved=True, arguments=arguments, digest=digest)


def _same(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    return one is other or canonical_json(one) == canonical_json(other)


def _has_started() -> bool:
    """Whether the call started in a process that crashed, with stored arguments."""
    scope = current_scope("a gate")
    return scope.run.journal.find(STARTED, str(scope.address)) is not None


def _answered() -> tuple[str, ...]:
    """Return the id of the interrupt that is being resumed, if any."""
    point = current_scope("a gate").point
    return (point.id,) if point is not None else ()


def _asked(state: GateState | None) -> CallInfo | None:
    """Return the info that approvers saw, from the state or from the interrupt."""
    kept = state.info if state is not None else None
    info = kept if kept is not None else interrupt_info()
    return info if isinstance(info, CallInfo) else None
