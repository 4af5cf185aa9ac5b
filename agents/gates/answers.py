"""Read gates' requests and answers: rejection, edited arguments, voters, editors."""

from __future__ import annotations

from agents.core.asking.answers import ApprovalResult, ReviewEditResult
from agents.core.asking.infos import ApprovalInfo, CallInfo, ReviewEditInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.observers import ToolOutcome
from agents.gates.rulings import DEFAULT_RULE
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


def voters_of(answer: object) -> tuple[str, ...]:
    """Return all counted voters of an answer, or the person who gave it."""
    listed = getattr(answer, "voters", ())
    by = text_in(answer, "by")
    return tuple(dict.fromkeys(listed)) if listed else (by,) if by else ()


def editors_of(answer: object) -> tuple[str, ...]:
    """Return everyone who edited the arguments before the last editor."""
    return tuple(getattr(answer, "editors", ()))


def text_in(answer: object, name: str) -> str:
    """Return a text field of an answer; empty if it is missing or not a text."""
    found = getattr(answer, name, None)
    return found if isinstance(found, str) else ""


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
