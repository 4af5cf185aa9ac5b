"""The parts that all gates share: ask in an own state slot, keep the answer, run what it covers.

A gate of one's own is a subclass of `CallGate` that says what it asks (`_question`), which answers
mean no (`_declined`), and which arguments an answer means (`_wanted`). The rest is here: nothing
runs without an answer that fits, and only what people were shown runs.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NoReturn

from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.digest import call_digest, canonical_json
from agents.core.errors import InvalidArgumentsError, ResumeDataError, ToolError
from agents.core.infos import (
    ApprovalInfo,
    AskedAnew,
    CallInfo,
    Cancelled,
    Expired,
    ReviewEditInfo,
)
from agents.core.interrupt import (
    Interrupted,
    composite_interrupt,
    keep_waiting,
    pass_on,
    stateful_interrupt,
    ungrouped,
)
from agents.core.journal import STARTED
from agents.core.legacy import old_interrupts
from agents.core.observers import ToolOutcome
from agents.core.pending import Answerable
from agents.core.scope import (
    Scope,
    current_address,
    current_checkpoint_id,
    current_scope,
    current_why,
    entered,
    get_interrupt_state,
    get_resume_context,
    interrupt_info,
    is_checked,
    session_values,
    state_slot,
)
from agents.gates.answers import DEFAULT_RULE, ask_in, text_in, voters_of
from agents.gates.rulings import (
    Around,
    Demand,
    Demands,
    DeniedError,
    GateState,
    Judgement,
    Vote,
    agreed,
    counting,
    deciders,
    demands,
    gates_around,
    inside,
)
from agents.policy.base import Allow, Ask, Deny, PolicyCall, Ruling
from agents.policy.house import House, current_house
from agents.tools.base import EXTERNAL, CallText, Tool, ToolSpec
from agents.tools.starting import begin_call, granted_arguments, mark_started
from agents.tools.texts import (
    cancelled_text,
    denied_text,
    edited_text,
    expired_text,
    open_schema,
    words_of,
)

__all__ = ["DEFAULT_RULE", "CallGate", "gates_in"]

_RULED_ANEW = "the rules have changed since it was allowed"


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
    def left_out(self) -> tuple[str, ...]:
        """Names of the arguments that the model may leave out: people fill them in here."""
        return ()

    @property
    def completes_arguments(self) -> bool:
        """Whether people may still fill in arguments, here or in a gate inside of this one."""
        if self.left_out:
            return True
        return isinstance(self.tool, CallGate) and self.tool.completes_arguments

    @property
    def definition(self) -> ToolSpec:
        """The tool's definition, with this gate around it."""
        inner, cached = self.tool.definition, self._definition
        if cached is None or cached[0] is not inner:
            schema = open_schema(inner.schema, self.left_out) if self.left_out else inner.schema
            cached = inner, replace(inner, gates=(self.gate_name, *inner.gates), schema=schema)
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
    async def _question(self, arguments: dict[str, Json]) -> CallInfo | Deny | ToolReturn | None:
        """Return the question about a new call, or None when it may run.

        What must not run is denied, or ends with a result of the gate's own.
        """

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
    def fills_in(self) -> bool:
        """Whether its answers complete the arguments; then nobody is asked about these here."""
        return False

    @property
    def asks_people(self) -> bool:
        """Whether people agree to calls in it because it is there; in a policy's, they may not."""
        return not self.fills_in

    @property
    def always_asks(self) -> bool:
        """Whether it has people agree to each call, whatever it is."""
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
        *,
        inside: bool,
    ) -> CallInfo | Allow | Deny | None:
        """See `Demanding`: what it would ask about a new call."""
        asked = await self._ruled(arguments, inside=inside)
        if isinstance(asked, ToolReturn):
            return Deny(asked.text)
        if isinstance(asked, Deny):
            why = f"the rules do not allow the call with these arguments: {asked.reason}"
            return replace(asked, reason=why)
        return asked

    async def judge(self, arguments: dict[str, Json]) -> Judgement:
        """Say what the rules demand of the waiting call with other arguments; runs nothing.

        Args:
            arguments: Canonical.
        """
        with state_slot(self.slot):
            _, _, state = get_interrupt_state(GateState)
            state = replace(state or GateState(), info=_asked(state))
            try:
                demanded = await demands(self, _changed(state, arguments))
            except DeniedError as error:
                denied = error.denied
                return Judgement(arguments=arguments, denied=denied.reason, failed=denied.failed)
        if demanded.left:
            return Judgement(arguments=arguments, info=demanded.left[0][1])
        return Judgement(arguments=arguments, rule=demanded.allow.rule if demanded.allow else "")

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
        around = gates_around()
        inside = any(agreed(one.gate, one.state) for one in around)
        asked = await self._ruled(arguments, inside=inside)
        if isinstance(asked, CallInfo):
            # People who agreed around this one cannot have agreed here: a grant is theirs alone.
            granted = None if inside else await self._granted(arguments, asked)
            if granted is None:
                stateful_interrupt(replace(asked, counted=deciders(around)), GateState())
            asked = granted
        if isinstance(asked, Deny):
            return await self._denied(arguments, asked)
        if isinstance(asked, ToolReturn):
            return asked
        return self._approved(None, GateState(arguments=arguments, allow=asked))

    async def _granted(self, arguments: dict[str, Json], asked: CallInfo) -> Allow | None:
        """The permission of a standing grant for a new call; None when people have to be asked."""
        house = None if self.fills_in else current_house()
        if house is None:
            return None
        return await house.granted(self._policy_call(arguments), asked.terms)

    async def _ruled(
        self, arguments: dict[str, Json], *, inside: bool
    ) -> CallInfo | Allow | Deny | ToolReturn | None:
        """Judge a call by code and house together; without a house, what code says."""
        asked = await self._question(arguments)
        house = None if self.fills_in else current_house()
        if house is None or isinstance(asked, ToolReturn):
            return asked
        if asked is None and (inside or self._defers):
            return None
        call = self._policy_call(arguments)
        ruling = await house.ruling(call, self._code(asked), inside=inside)
        return self._asking(ruling, arguments, asked) if isinstance(ruling, Ask) else ruling

    @property
    def _defers(self) -> bool:
        """Whether a gate inside asks about the house's ruling, when this one has nothing to ask."""
        return True

    def _code(self, asked: CallInfo | Deny | None) -> Ruling | None:
        """The ruling of code, for the house."""
        return asked if isinstance(asked, Deny) else ask_in(asked) if asked else Allow()

    def _asking(
        self, ask: Ask, arguments: dict[str, Json], asked: CallInfo | Deny | None = None
    ) -> CallInfo:
        """The question by which people are asked under a ruling.

        Args:
            ask: The ruling.
            arguments: Canonical.
            asked: What the gate would ask by itself: people can do no more than it lets them.
        """
        if isinstance(asked, CallInfo):
            # People can do no more than code lets them, nor more than the house does.
            is_review = ask.kind == "review" and not isinstance(asked, ApprovalInfo)
            ask = ask if is_review else replace(ask, kind="approval")
        shown = self._shown(arguments, ask.rule, ask.to_text())
        if isinstance(asked, CallInfo):
            bound = {name: shown[name] for name in ("digest", "rule", "ruling")}
            info = self._narrowed(replace(asked, **bound), ask)
        else:
            info = ReviewEditInfo(**shown) if ask.kind == "review" else ApprovalInfo(**shown)
        return replace(
            info,
            title=ask.title or info.title,
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
        """A question of the gate's own kind, with no more answers than a ruling lets people."""
        return info

    async def _denied(self, arguments: dict[str, Json], denied: Deny) -> ToolReturn:
        """Give the result of a call that must not run; the house puts it on record."""
        house = None if self.fills_in else current_house()
        if house is not None:
            await house.note(self._policy_call(arguments), denied)
        return ToolReturn(denied_text(self._name, denied.reason), ToolOutcome.REFUSED)

    async def _verdict(
        self, state: GateState, info: CallInfo, answer: object, arguments: dict[str, Json]
    ) -> GateState | ToolReturn:
        match answer:
            case Expired():
                return ToolReturn(expired_text(self._name, answer), ToolOutcome.EXPIRED)
            case AskedAnew(reason=reason):
                return await self._asked_anew(state, info, arguments, reason)
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

    async def _asked_anew(
        self, state: GateState, info: CallInfo, arguments: dict[str, Json], why: str
    ) -> GateState | ToolReturn:
        """Ask people about a call that waits once more, as the rules of now say."""
        shown = arguments if state.arguments is None else state.arguments
        lapsed = replace(_lapsed(state), arguments=shown)
        try:
            demanded = await demands(self, lapsed)
        except DeniedError as error:
            return await self._denied(shown, Deny(str(error)))
        if demanded.left:
            self._ask_for(lapsed, demanded.left, original=info.original, asked_again=why)
        return self._approved(info, replace(lapsed, allow=self._leave(demanded)))

    def _leave(self, demanded: Demands) -> Allow | None:
        """The leave of the house for a call of which nobody has to be asked.

        Raises:
            ToolError: It gives none.
        """
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
        if asked_first or (self.fills_in and not state.asking):
            after = replace(after, decided_by=(*after.decided_by, *vote.voters))
        if asked_first:
            # Frozen: what the rules said of just this call when people were asked is what counts.
            return self._approved(info, after)
        try:
            demanded = await demands(self, after)
        except DeniedError as error:
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
        """Read who let it run, and under which ruling; refuse who was counted already."""
        by, editor, ruling = (text_in(answer, name) for name in ("by", "edited_by", "ruling"))
        voters = voters_of(answer)
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
        digest = self._digest_of(info, arguments)
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
        passed = Around(address=scope.address, gate=self, state=state)
        tool = self._guarded(state)
        if tool is self.tool and not tool.definition.gates:
            with entered(scope):
                refused = await self._start(state, arguments)
            if refused is not None:
                return refused
        try:
            with ungrouped(), old_interrupts(), inside(passed):
                result = await tool.call(arguments)
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

    def _guarded(self, state: GateState) -> Tool:
        """The tool in it; with the house's gate, where the house has not judged the call yet."""
        house = current_house()
        if house is None:
            return self.tool
        passed = [*((one.gate, one.state) for one in gates_around()), (self, state)]
        if any(agreed(gate, one) or one.allow for gate, one in passed):
            return self.tool
        return house.guarded(self.tool, in_code=any(not gate.fills_in for gate, _ in passed))

    async def _start(self, state: GateState, arguments: dict[str, Json]) -> ToolReturn | None:
        """Note that the call starts; ask people anew where what they decided does not count now.

        Returns:
            A result in place of a start, when the rules do not let people decide any more.
        """
        around, masks = counting(state), self.tool.definition.masks
        decisions = (*(name for one in around for name in one.state.decisions), *state.decisions)
        _, _, before = get_interrupt_state(GateState)
        goes_on = before is not None and before.approved
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
        """The house's last word on a call that is about to start.

        Returns:
            The ruling by which it starts without anybody's agreement, on record by now; None when
            people have agreed to it; a result when it must not start; or why it is ruled anew.
        """
        house, scope = current_house(), current_scope("a gate")
        begun = scope.run.journal.find(STARTED, str(scope.address))
        if house is None or begun is not None:
            return None
        around, is_granted = counting(state), scope.granted is not None
        passed = [*((one.gate, one.state) for one in around), (self, state)]
        allows = [one.allow for _, one in passed if one.allow is not None]
        has_agreed = is_granted or any(agreed(gate, one) for gate, one in passed)
        is_free = not allows and house.policy.allows_ungated
        if is_free and all(gate.fills_in for gate, _ in passed):
            return None  # people gave arguments, and nobody had to agree to anything
        call, code = self._policy_call(arguments), self._code(None)
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
        """Ask people anew, where the rules of now want it; else note that the call starts."""
        lapsed = _lapsed(state)
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
            "named": words.named,
            "leaves": EXTERNAL in spec.tags,
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
            gated=self._is_gated,
            secret=spec.secret,
            shown=spec.shown,
            risk=spec.risk,
            idempotent=spec.idempotent,
            session=MappingProxyType(dict(session_values())),
        )

    @property
    def _is_gated(self) -> bool:
        """Whether code has people agree to its calls, in this gate, around it or inside."""
        pile = (self, *(one.gate for one in gates_around()), *gates_in(self.tool))
        return any(gate.asks_people for gate in pile)

    def _own_ruling(self, rule: str) -> str:
        return Ask(rule=rule).to_text(kind=self.gate_name)

    def _digest_of(self, info: CallInfo | None, arguments: dict[str, Json]) -> str:
        rule, ruling = self._rule_of(info), self._ruling_of(info)
        if info is not None and ruling and ruling != self._own_ruling(info.rule):
            rule = info.rule  # the house asked, or a policy: the whole ruling is bound
        return self._digest(arguments, rule, ruling)

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


def gates_in(tool: object) -> Iterator[CallGate]:
    """The gates around a tool, the outermost first, through other wrappers."""
    while tool is not None:
        if isinstance(tool, CallGate):
            yield tool
        tool = getattr(tool, "tool", None)


def _kept(allow: Allow | None) -> dict[str, Json]:
    """The note of the start of a call that a rule allows: who decides about a doubt."""
    return {"terms": allow.terms} if allow is not None and allow.terms else {}


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


def _lapsed(state: GateState) -> GateState:
    """The state of a gate whose call nobody has agreed to any more, nor in gates around it."""
    return replace(
        state,
        info=None,
        approved=False,
        agreed={},
        decided_by=(),
        decisions=(),
        lapsed=True,
        allow=None,
    )


def _answered() -> tuple[str, ...]:
    """The interrupt whose answer this is."""
    point = current_scope("a gate").point
    return (point.id,) if point is not None else ()
