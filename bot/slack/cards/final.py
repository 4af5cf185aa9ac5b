"""What a decision lets run, in place of what was asked for first."""

from __future__ import annotations

import json
from dataclasses import replace

from bot.layout.arguments import read_object
from bot.questions.form import Form, ask_of
from storage.records import Approval, Decision, Status

_GOOD = frozenset({Status.APPROVED, Status.ANSWERED})


def what_runs(approval: Approval) -> Approval:
    """The same approval with the title, the preview and the arguments of what runs.

    Where people changed or completed arguments and the tool had no words for that, the title says
    so: the old one is of a call that nobody runs.

    Args:
        approval: The record, pending or decided.
    """
    decision = approval.decision
    if decision is None or approval.status not in _GOOD:
        return approval
    if decision.arguments_json:
        return _edited(approval, decision)
    return _completed(approval, decision) if approval.tool.strip() else approval


def _edited(approval: Approval, decision: Decision) -> Approval:
    found = replace(
        approval,
        arguments_json=decision.arguments_json,
        preview=decision.preview,
        digest=decision.digest or approval.digest,
    )
    if ask_of(approval).form is Form.STEP:
        return found  # its title names the step, whatever the state is
    return replace(found, title=decision.title or _untold(approval, "with other arguments"))


def _completed(approval: Approval, decision: Decision) -> Approval:
    """A call of which people chose or filled in arguments."""
    ask = ask_of(approval)
    if ask.form not in {Form.CHOICE, Form.FIELDS} or not decision.answer_json:
        return approval
    arguments = read_object(approval.arguments_json) or {}
    if ask.form is Form.FIELDS or ask.parameter not in arguments:
        title, preview = decision.title or approval.title, decision.preview or approval.preview
        return replace(approval, title=title, preview=preview)
    # The model had a choice of its own, which the title and the preview were about.
    chosen = (read_object(decision.answer_json) or {}).get("selected")
    values = [one.value for one in ask.options if isinstance(chosen, list) and one.id in chosen]
    now = {**arguments, ask.parameter: values if ask.multiple else (values or [None])[0]}
    return replace(
        approval,
        arguments_json=json.dumps(now, ensure_ascii=False, separators=(",", ":")),
        title=decision.title or _untold(approval, "with what was chosen"),
        preview=decision.preview,
    )


def _untold(approval: Approval, how: str) -> str:
    return f"Run {approval.tool.strip() or 'this'} {how}"
