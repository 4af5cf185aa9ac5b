"""The questions of a gate: what the rules have people asked, and what their answers mean."""

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
    """A gate as it asks people about its call, and reads what they answer."""

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
                demanded = await demands(self, changed(state, arguments))
            except DeniedError as error:
                denied = error.denied
                return Judgement(arguments=arguments, denied=denied.reason, failed=denied.failed)
        if demanded.left:
            return Judgement(arguments=arguments, info=demanded.left[0][1])
        return Judgement(arguments=arguments, rule=demanded.allow.rule if demanded.allow else "")

    async def _decide(self, arguments: dict[str, Json]) -> GateState | ToolReturn:
        """Find out what people decided, and ask them if they have not.

        Only the arguments of a new call are read here. What people were shown is kept as it was.
        """
        was_interrupted, _, state = get_interrupt_state(GateState)
        if not was_interrupted:
            # Whoever calls it by hand may have checked nothing: people are asked about what can
            # run, and about all of it.
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
        if not is_target:
            stateful_interrupt(info, state)
        if not is_checked(info):
            check_answer(info, answer)
        return await self._verdict(replace(state, info=info), info, answer)

    async def _first(self, arguments: dict[str, Json]) -> GateState | ToolReturn:
        around = gates_around()
        inside = any(agreed(one.gate, one.state) for one in around)
        asked = await self._ruled(arguments, inside=inside)
        if isinstance(asked, CallInfo):
            # People who agreed around this one cannot have agreed here: a grant is theirs alone.
            granted = None if inside else await self._granted(arguments, asked)
            if granted is None:
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
        owner = self._owner(state)
        declined = owner._declined(info, answer)  # noqa: SLF001 - a gate like this one
        if declined is not None:
            return declined
        # From here on something will run: only if this still is the call that people saw.
        shown = info.arguments if state.arguments is None else state.arguments
        if info.digest != owner._digest_of(info, shown) or info.arguments != shown:  # noqa: SLF001
            self._refuse("the call, the tool or its rule has changed since people were asked")
        owner._check_taken(info, shown)  # noqa: SLF001
        wanted = owner._wanted(info, answer, shown)  # noqa: SLF001
        return await self._settle(state, info, answer, shown=shown, wanted=wanted)

    def _check_taken(self, info: CallInfo, shown: dict[str, Json]) -> None:
        """Make sure that a tool whose schema has changed still takes just what was shown."""
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
        """Ask people about a call that waits once more, as the rules of now say."""
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
        before = changed(state, wanted) if vote.edits else state
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

    def _owner(self, state: GateState) -> AskingGate:
        """The gate whose people were asked: this one, or one around it."""
        if not state.asking:
            return self
        found = [one.gate for one in gates_around() if one.gate.slot == state.asking]
        if not found or not isinstance(found[0], AskingGate):
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


def _same(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    return one is other or canonical_json(one) == canonical_json(other)


def _has_started() -> bool:
    """Whether the call started in a process that is gone, with arguments that it noted."""
    scope = current_scope("a gate")
    return scope.run.journal.find(STARTED, str(scope.address)) is not None


def _answered() -> tuple[str, ...]:
    """The interrupt whose answer this is."""
    point = current_scope("a gate").point
    return (point.id,) if point is not None else ()


def _asked(state: GateState | None) -> CallInfo | None:
    """Return the info that people saw: it is with the interrupt or, long ago, in the state."""
    kept = state.info if state is not None else None
    info = kept if kept is not None else interrupt_info()
    return info if isinstance(info, CallInfo) else None
