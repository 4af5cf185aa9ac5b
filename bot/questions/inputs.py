"""The form of a record whose arguments people edit, or whose values they fill in."""

from __future__ import annotations

from bot.layout.action_ids import ActionId, encode
from bot.layout.arguments import read_object
from bot.layout.blocks import Block, line, literal, plain, rich
from bot.layout.forms.edit import drawn, too_long
from bot.layout.forms.fields import Field, NotEditable, fields_of
from bot.layout.parts import title_of
from bot.layout.text import clip
from bot.questions.form import Form, ask_of, form_values
from storage.records import Approval


def edit_view(approval: Approval) -> Block | NotEditable:
    """Draw the form of a pending approval, or say why there is none."""
    blocks = _blocks_of(approval)
    if isinstance(blocks, NotEditable):
        return blocks
    is_step = ask_of(approval).form is Form.STEP
    return {
        "type": "modal",
        "callback_id": str(ActionId.EDIT_MODAL),
        "private_metadata": encode(approval.approval_id, approval.digest),
        "title": plain("Edit and continue" if is_step else "Edit and approve"),
        "submit": plain("Continue" if is_step else "Approve changes"),
        "close": plain("Cancel"),
        "blocks": [rich(line(literal(clip(title_of(approval), 300), "bold"))), *blocks],
    }


def fields_view(approval: Approval, about: list[Block]) -> Block | NotEditable:
    """Draw the form for values that people are asked for, or say why there is none.

    Args:
        approval: A pending approval.
        about: What stands above the inputs.
    """
    blocks = _blocks_of(approval)
    if isinstance(blocks, NotEditable):
        return blocks
    words = "Fill in" if approval.tool else "Answer"
    return {
        "type": "modal",
        "callback_id": str(ActionId.ANSWER_MODAL),
        "private_metadata": encode(approval.approval_id, approval.digest),
        "title": plain(words),
        "submit": plain(words),
        "close": plain("Cancel"),
        "blocks": [*about, *blocks],
    }


def obstacle(approval: Approval) -> str:
    """Say why an approval has no form; empty when it has one."""
    fields = _fields_in(approval)
    return fields.reason if isinstance(fields, NotEditable) else too_long(fields)


def _blocks_of(approval: Approval) -> list[Block] | NotEditable:
    fields = _fields_in(approval)
    return fields if isinstance(fields, NotEditable) else drawn(fields)


def _fields_in(approval: Approval) -> tuple[Field, ...] | NotEditable:
    ask = ask_of(approval)
    if not ask.schema or read_object(approval.arguments_json) is None:
        return NotEditable(reason="the tool does not say what its arguments may be.")
    return fields_of(ask.schema, form_values(approval, ask), ask.masks)
