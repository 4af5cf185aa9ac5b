"""Votes: read people's answers to a request about a call, and count them for a requirement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.core.asking.answers import ApprovalResult, ReviewEditResult
from agents.core.asking.infos import ApprovalInfo, CallInfo, ReviewEditInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.observers import ToolOutcome
from agents.gates.rulings import (
    DEFAULT_RULE,
    Demand,
    GateState,
    counting,
    deciders,
    gates_around,
)
from agents.policy.base import GATE_RULE, Ask
from agents.tools.texts import rejected_text


def declined(info: CallInfo, answer: object) -> ToolReturn | None:
    """Return the result if an approval or a review rejects the call, else None."""
    match answer:
        case ApprovalResult(approved=True):
            return None
        case ApprovalResult(reason=reason):
            pass
        case ReviewEditResult(disapproved=True, disapprove_reason=reason):
            pass
        case _:
            return None
    return ToolReturn(rejected_text(info.tool_name, reason), ToolOutcome.REJECTED)


def edited_in(answer: object) -> dict[str, Json] | None:
    """Return the edited arguments of a review; None if the shown ones were approved."""
    match answer:
        case ReviewEditResult(no_need_to_edit=False, edited_arguments=dict() as edited):
            return edited
        case _:
            return None


def ask_in(info: CallInfo) -> Ask:
    """Return a gate's request as a ruling of code, for the application's policy."""
    edits = isinstance(info, ReviewEditInfo) or "edit" in getattr(info, "allowed", ())
    return Ask(
        kind="review" if edits and not isinstance(info, ApprovalInfo) else "approval",
        rule=GATE_RULE if info.rule == DEFAULT_RULE else info.rule,
        title=info.title,
        reason=info.reason,
        approvers=info.approvers,
        expires_in=info.expires_in,
        remind_in=info.remind_in,
        escalate_in=info.escalate_in,
        backups=info.backups,
        exclude_editors=info.exclude_editors,
        terms=info.terms,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """An answer that approves a call.

    Attributes:
        ruling: Terms that it is bound to.
        voters: All counted voters; empty if unknown.
        editor: Who edited the arguments last; empty if unknown.
        editors: Everyone who made earlier edits.
        slot: Slot of the gate that requested approval.
        edits: Whether this answer edits the arguments.
    """

    ruling: str
    voters: tuple[str, ...]
    editor: str
    editors: tuple[str, ...]
    slot: str
    edits: bool

    def counts_for(self, asked: CallInfo) -> bool:
        """Whether the answer fits a requirement, and its voter may decide on it."""
        if not self.ruling or self.ruling != asked.ruling:
            return False
        if self.editor:
            own = {self.editor, *self.editors}
            # An unknown voter may be the editor.
            is_own = not self.voters or not own.isdisjoint(self.voters)
        else:
            is_own = self.edits
        return not (asked.exclude_editors and is_own)

    def cast(self, state: GateState, left: Sequence[Demand]) -> tuple[GateState, list[Demand]]:
        """Count the answer for the requirement of the gate that asked, if it fits.

        Returns the new state and the missing approvals.
        """
        # The gate that asked comes first; the answer may also fit another gate with the same
        # terms.
        in_order = sorted(left, key=lambda demand: demand[0] != self.slot)
        choice = next((demand for demand in in_order if self.counts_for(demand[1])), None)
        if choice is None:
            return state, list(left)
        slot, info = choice
        names = (*state.decided_by, *self.voters)
        counted = replace(state, agreed={**state.agreed, slot: info.ruling}, decided_by=names)
        return counted, [demand for demand in left if demand is not choice]


def read_vote(
    answer: object,
    state: GateState,
    info: CallInfo,
    *,
    slot: str,
    edited: dict[str, Json] | None,
) -> Vote:
    """Read the voters and the terms of an answer to the gate at a slot.

    `edited` has the arguments, if the answer edits them.

    Raises:
        ValueError: A voter already counts in another gate, or has edited the arguments.
    """
    by, editor, ruling = (_text_in(answer, name) for name in ("by", "edited_by", "ruling"))
    voters = tuple(dict.fromkeys(getattr(answer, "voters", ()))) or ((by,) if by else ())
    around = () if state.asking or state.lapsed else deciders(gates_around())
    counted = {*info.counted, *around}
    if edited is not None:  # an edit voids the votes of outer gates that are asked again
        counted = {*deciders(counting(replace(state, arguments=edited)))}
    for name in (*voters, editor):
        if name in counted:
            raise ValueError(f"{name} has agreed in another gate of this call, which needs two")
    editor = (editor or by) if edited is not None else state.edited_by
    before = (*state.editors, state.edited_by, *getattr(answer, "editors", ()))
    editors = tuple(name for name in dict.fromkeys(before) if name not in {"", editor})
    own = [name for name in voters if name in (editor, *editors)]
    if edited is None and info.exclude_editors and own:
        raise ValueError(f"{own[0]} has edited it, and the rule wants somebody else to approve it")
    return Vote(
        ruling=ruling or info.ruling,
        voters=voters,
        editor=editor,
        editors=editors,
        slot=slot,
        edits=edited is not None,
    )


def _text_in(answer: object, name: str) -> str:
    """Return a text field of an answer; empty if it is missing or not a text."""
    value = getattr(answer, name, None)
    return value if isinstance(value, str) else ""
