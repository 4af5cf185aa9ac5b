"""The parts that all gates share: ask in an own state slot, keep the answer, run what it covers.

A gate of one's own is a subclass of `CallGate` that says what it asks (`_question`), which answers
mean no (`_declined`), and which arguments an answer means (`_wanted`). The rest is here: nothing
runs without an answer that fits, and only what people were shown runs.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NoReturn

from agents.core.calls import ToolOutcome, ToolReturn
from agents.core.codec import Json
from agents.core.digest import call_digest, canonical_json
from agents.core.errors import InvalidArgumentsError, ResumeDataError, ToolError
from agents.core.infos import CallInfo, Cancelled, Expired
from agents.core.interrupt import (
    Interrupted,
    composite_interrupt,
    keep_waiting,
    pass_on,
    stateful_interrupt,
    ungrouped,
)
from agents.core.legacy import old_interrupts
from agents.core.pending import Answerable
from agents.core.scope import (
    Scope,
    begin_call,
    current_address,
    current_checkpoint_id,
    current_scope,
    current_why,
    entered,
    get_interrupt_state,
    get_resume_context,
    granted_arguments,
    interrupt_info,
    is_checked,
    mark_started,
    session_values,
    state_slot,
)
from agents.gates.rulings import (
    Around,
    Demand,
    DeniedError,
    GateState,
    Judgement,
    Vote,
    counting,
    deciders,
    demands,
    gates_around,
    inside,
)
from agents.policy.base import Ask, Deny, PolicyCall
from agents.tools.base import CallText, Tool, ToolSpec
from agents.tools.texts import cancelled_text, denied_text, edited_text, expired_text, words_of

DEFAULT_RULE = "always"


@dataclass(frozen=True, slots=True)
class CallGate(ABC):
    """A tool that asks people about each call before it runs what it wraps.

    Attributes:
        tool: The tool in it.
    """

    tool: Tool
    _definition: tuple[ToolSpec, ToolSpec] | None = field(
        default=None, init=False, repr=False, compare=False
    )

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
        """The tool's definition, with this gate around it."""
        inner, cached = self.tool.definition, self._definition
        if cached is None or cached[0] is not inner:
            cached = inner, replace(inner, gates=(self.gate_name, *inner.gates))
            object.__setattr__(self, "_definition", cached)
        return cached[1]

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Check arguments; see `Tool.validate`."""
        return self.tool.validate(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Say in words what a call does; see `Tool.describe`."""
        return self.tool.describe(arguments)

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Ask first, and run what people agreed to; see `Tool.call`.

        Raises:
            InvalidArgumentsError: The arguments do not fit; nobody is asked.
            Interrupted: People are asked, by the gate or by the tool in it.
        """
        granted = granted_arguments()
        with state_slot(self.slot):
            scope = current_scope("a gate")
            if granted is None:
                # Whoever calls it by hand may have checked nothing: people are asked about what
                # can run, and about all of it.
                decided = await self._decide(self.validate(arguments))
            else:
                decided = self._approved(None, GateState(arguments=granted))
        if isinstance(decided, ToolReturn):
            return decided
        return await self._run(decided, scope)

    def components(self) -> Mapping[tuple[str, str], object]:
        """Return the parts of its tool, such as an agent; see `agents.runs.topology`."""
        found: Mapping[tuple[str, str], object] = (
            self.tool.components() if hasattr(self.tool, "components") else {}
        )
        return found

    @abstractmethod
    async def _question(self, arguments: dict[str, Json]) -> CallInfo | ToolReturn | None:
        """Return the question about a new call, a result that ends it, or None when it may run."""

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

    def _ruling_of(self, info: CallInfo | None) -> str:
        """The ruling that a decision is bound to; empty when nobody was asked, or long ago."""
        return info.ruling if info is not None else ""

    @property
    def _fills_in(self) -> bool:
        """Whether its answers complete the arguments; then nobody is asked about these here."""
        return False

    def _told(self, arguments: dict[str, Json], text: str) -> str:
        """Return the text for the model when people changed its arguments."""
        return edited_text(arguments, text)

    @property
    def slot(self) -> str:
        """See `Demanding`: one for each gate of a pile of gates."""
        return f"gate{len(self.tool.definition.gates)}"

    async def demand(
        self,
        arguments: dict[str, Json],
        before: GateState,  # noqa: ARG002 - see Demanding
    ) -> CallInfo | Deny | None:
        """See `Demanding`: what it would ask about a new call."""
        asked = await self._question(arguments)
        return Deny(asked.text) if isinstance(asked, ToolReturn) else asked

    async def judge(self, arguments: dict[str, Json]) -> Judgement:
        """Say what the rules demand of the waiting call with other arguments; runs nothing.

        Args:
            arguments: Canonical.
        """
        with state_slot(self.slot):
            _, _, state = get_interrupt_state(GateState)
            state = replace(state or GateState(), info=_asked(state))
            try:
                left = await demands(self, _changed(state, arguments))
            except DeniedError as error:
                return Judgement(arguments=arguments, denied=str(error))
        return Judgement(arguments=arguments, info=left[0][1] if left else None)

    async def _decide(self, arguments: dict[str, Json]) -> GateState | ToolReturn:
        """Find out what people decided, and ask them if they have not."""
        was_interrupted, _, state = get_interrupt_state(GateState)
        if not was_interrupted:
            return await self._first(arguments)
        info = _asked(state)
        if state is not None and state.approved:
            return replace(state, info=info)
        if state is None or info is None or not isinstance(info, Answerable):
            raise ToolError(f"the gate of {self._name!r} has lost what it asked; nothing ran")
        is_target, _, answer = get_resume_context(object)
        if not is_target:
            stateful_interrupt(info, state)
        try:
            if not is_checked(info):
                info.check_answer(answer)
        except ResumeDataError as error:
            keep_waiting(error)
        return await self._verdict(replace(state, info=info), info, answer, arguments)

    async def _first(self, arguments: dict[str, Json]) -> GateState | ToolReturn:
        asked = await self._question(arguments)
        if asked is None:
            return self._approved(None, GateState(arguments=arguments))
        if not isinstance(asked, ToolReturn):
            stateful_interrupt(replace(asked, counted=deciders(gates_around())), GateState())
        return asked

    async def _verdict(
        self, state: GateState, info: CallInfo, answer: object, arguments: dict[str, Json]
    ) -> GateState | ToolReturn:
        match answer:
            case Expired():
                return ToolReturn(expired_text(self._name, answer), ToolOutcome.EXPIRED)
            case Cancelled():
                return ToolReturn(cancelled_text(self._name, answer), ToolOutcome.CANCELLED)
            case _:
                pass
        owner = self._owner(state)
        declined = owner._declined(info, answer)  # noqa: SLF001 - a gate like this one
        if declined is not None:
            return declined
        # From here on something will run: only if this still is the call that people saw.
        shown = arguments if state.arguments is None else state.arguments
        if info.digest != owner._digest_of(info, shown) or info.arguments != shown:  # noqa: SLF001
            self._refuse("the call, the tool or its rule has changed since people were asked")
        wanted = owner._wanted(info, answer, shown)  # noqa: SLF001
        return await self._settle(state, info, answer, shown=shown, wanted=wanted)

    async def _settle(
        self,
        state: GateState,
        info: CallInfo,
        answer: object,
        *,
        shown: dict[str, Json],
        wanted: dict[str, Json],
    ) -> GateState | ToolReturn:
        """Let the call run if everybody has agreed to it who has to; ask the others."""
        edits = not _same(wanted, shown)
        vote = self._vote(state, info, answer, wanted=wanted, edits=edits)
        is_asked = not vote.edits and vote.ruling == info.ruling
        asked_first = is_asked and state.arguments is None
        after = _changed(state, wanted) if vote.edits else replace(state, arguments=wanted)
        after = replace(
            after,
            edited=state.edited or vote.edits,
            edited_by=vote.editor,
            editors=vote.editors,
            decisions=(*after.decisions, *_answered()),
        )
        if asked_first or (self._fills_in and not state.asking):
            after = replace(after, decided_by=(*after.decided_by, *vote.voters))
        if asked_first:
            # Frozen: what the rules said of just this call when people were asked is what counts.
            return self._approved(info, after)
        try:
            after, left = vote.cast(after, await demands(self, after))
        except DeniedError as error:
            self._refuse(str(error))
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
        """Read who let it run, and under which ruling; refuse who was counted already."""
        by, editor, ruling = (_text(answer, name) for name in ("by", "edited_by", "ruling"))
        voters = _voters(answer)
        around = () if state.asking or state.lapsed else deciders(gates_around())
        counted = {*info.counted, *around}
        if edits:  # a gate around this one that is asked anew counts nobody yet
            counted = {*deciders(counting(replace(state, arguments=wanted)))}
        for name in (*voters, editor):
            if name in counted:
                self._refuse(f"{name} has agreed in another gate of this call, which needs two")
        editor = (editor or by) if edits else state.edited_by
        before = dict.fromkeys((*state.editors, state.edited_by))
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
        """Ask, in this gate's own slot, what the first gate demands of those that are left."""
        slot, asked = left[0]
        # Who has agreed for a gate that is asked anew may agree for it again, and for no other.
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
        stateful_interrupt(info, replace(state, info=None, approved=False, asking=asking))

    def _owner(self, state: GateState) -> CallGate:
        """The gate whose people were asked: this one, or one around it."""
        if not state.asking:
            return self
        found = [one.gate for one in gates_around() if one.gate.slot == state.asking]
        if not found or not isinstance(found[0], CallGate):
            raise ToolError(f"a gate of {self._name!r} that asked people is gone; nothing ran")
        return found[0]

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

    def _approved(self, info: CallInfo | None, state: GateState) -> GateState:
        arguments = state.arguments or {}
        digest = self._digest(arguments, self._rule_of(info), self._ruling_of(info))
        return replace(state, info=info, approved=True, arguments=arguments, digest=digest)

    async def _run(self, state: GateState, scope: Scope) -> ToolReturn:
        """Run exactly what people agreed to."""
        arguments, info = state.arguments, state.info
        if (
            not state.approved
            or arguments is None
            or self._digest_of(info, arguments) != state.digest
        ):
            raise ToolError(f"nobody agreed to this call of {self._name!r}; it did not run")
        if not self.tool.definition.gates:
            with entered(scope):
                refused = await self._start(state, arguments)
            if refused is not None:
                return refused
        try:
            passed = Around(address=scope.address, gate=self, state=state)
            with ungrouped(), old_interrupts(), inside(passed):
                result = await self.tool.call(arguments)
        except Interrupted as signal:
            with entered(scope):
                if info is None:
                    pass_on(state, signal)
                composite_interrupt(info, replace(state, info=None), signal)
        done = result if isinstance(result, ToolReturn) else ToolReturn(result)
        if not state.edited:
            return done
        told = self._told(arguments, done.text)
        return replace(done, text=told, said=done.said or done.text)

    async def _start(self, state: GateState, arguments: dict[str, Json]) -> ToolReturn | None:
        """Note that the call starts; ask people anew where what they decided does not count now.

        Returns:
            A result in place of a start, when the rules do not let people decide any more.
        """
        around, masks = counting(state), self.tool.definition.masks
        decisions = (*(name for one in around for name in one.state.decisions), *state.decisions)
        _, _, before = get_interrupt_state(GateState)
        again = await begin_call(
            self._name,
            arguments,
            decisions=decisions,
            masks=masks,
            goes_on=before is not None and before.approved,
        )
        if not again:
            return None
        lapsed = replace(
            state, info=None, approved=False, agreed={}, decided_by=(), decisions=(), lapsed=True
        )
        try:
            left = await demands(self, lapsed)
        except DeniedError as error:
            return ToolReturn(denied_text(self._name, str(error)), ToolOutcome.REFUSED)
        if left:
            original = state.info.original if state.info is not None else None
            self._ask_for(lapsed, left, original=original, asked_again=again)
        await mark_started(arguments, masks=masks)
        return None

    def _shown(self, arguments: dict[str, Json], rule: str, ruling: str = "") -> dict[str, Any]:
        """The fields of an info about this call; without a ruling of a policy, that of the gate."""
        ruling = ruling or self._own_ruling(rule)
        spec, address = self.tool.definition, current_address()
        is_new = current_scope("a gate").point is None
        words = self.describe(arguments) if is_new else words_of(self, arguments)
        return {
            "tool_name": spec.name,
            "arguments": arguments,
            "call_id": address.segments[-1].sub_id,
            "title": words.title,
            "why": current_why(),
            "preview": words.preview,
            "schema": dict(spec.schema),
            "digest": self._digest(arguments, rule, ruling),
            "rule": rule,
            "ruling": ruling,
            "thread": current_checkpoint_id(),
            "address": str(address),
            "secret": spec.secret,
            "shown": spec.shown,
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
            risk=spec.risk,
            idempotent=spec.idempotent,
            session=MappingProxyType(dict(session_values())),
        )

    def _own_ruling(self, rule: str) -> str:
        return Ask(rule=rule).to_text(kind=self.gate_name)

    def _digest_of(self, info: CallInfo | None, arguments: dict[str, Json]) -> str:
        return self._digest(arguments, self._rule_of(info), self._ruling_of(info))

    def _digest(self, arguments: dict[str, Json], rule: str, ruling: str) -> str:
        return call_digest(
            thread=current_checkpoint_id(),
            address=str(current_address()),
            tool=self._name,
            arguments=arguments,
            rule=rule,
            ruling=ruling,
        )

    @property
    def _name(self) -> str:
        return self.tool.definition.name

    def _refuse(self, fault: str) -> NoReturn:
        keep_waiting(ResumeDataError(f"{self._name!r} did not run: {fault}"))


def _asked(state: GateState | None) -> CallInfo | None:
    """Return the info that people saw: it is with the interrupt or, long ago, in the state."""
    kept = state.info if state is not None else None
    info = kept if kept is not None else interrupt_info()
    return info if isinstance(info, CallInfo) else None


def _same(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    return canonical_json(one) == canonical_json(other)


def _changed(state: GateState, arguments: dict[str, Json]) -> GateState:
    """The state of a gate whose call has other arguments now: nobody has agreed to these."""
    return replace(
        state, approved=False, arguments=arguments, agreed={}, decided_by=(), decisions=()
    )


def _answered() -> tuple[str, ...]:
    """The interrupt whose answer this is."""
    point = current_scope("a gate").point
    return (point.id,) if point is not None else ()


def _voters(answer: object) -> tuple[str, ...]:
    """All who were counted for an answer: those that it lists, or else whoever gave it."""
    listed = getattr(answer, "voters", ())
    by = _text(answer, "by")
    return tuple(dict.fromkeys(listed)) if listed else (by,) if by else ()


def _text(answer: object, name: str) -> str:
    """A field of an answer that is a text; empty when there is none."""
    found = getattr(answer, name, None)
    return found if isinstance(found, str) else ""
