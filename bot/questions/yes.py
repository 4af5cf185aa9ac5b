"""Make every button and form that approves a call. Each needs proof that the reader saw all.

Builders give such a button or form an action id that only shows something. Only `yes` gives it the
id that approves.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Proof that the reader of a surface knows everything that an approval would run.

    Attributes:
        is_whole: Whether the surface shows everything unmasked, or its reader has opened the rest.
        is_checked: Whether a click without this proof is checked again: readers who have opened
            the rest approve with it, and others see what to open.
    """

    is_whole: bool
    is_checked: bool = False


def yes(action: ActionId, made: Block, proof: Proof, review: Block | None = None) -> Block:
    """Return a button or a form that approves; without proof, one that opens the rest instead.

    Args:
        action: The action id that approves.
        made: The button or the form.
        proof: What its reader knows.
        review: The button that opens the rest; None for `made` without inputs.
    """
    instead = review or _without_inputs(made)
    if not (proof.is_whole or proof.is_checked):
        return instead
    name = "callback_id" if made["type"] == "modal" else "action_id"
    return {**(made if proof.is_whole else instead), name: str(action)}


def _without_inputs(made: Block) -> Block:
    if made["type"] != "modal":
        return made
    blocks = [block for block in made["blocks"] if block["type"] != "input"]
    return {**{name: made[name] for name in made if name != "submit"}, "blocks": blocks}
