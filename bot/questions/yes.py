"""Make every button and form that approves a call; each needs a proof of the whole call.

Builders give such a button or form an id that only shows something; `yes` alone lets it agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.layout.action_ids import ActionId
from bot.layout.blocks import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Proof that the reader of a surface knows everything that approval would run.

    Attributes:
        is_whole: Whether that surface shows everything unmasked, or its reader has opened the rest.
        is_checked: Whether a click without it is checked: it agrees for readers who have opened the
            rest, and shows others what to open.
    """

    is_whole: bool
    is_checked: bool = False


def yes(action: ActionId, made: Block, proof: Proof, review: Block | None = None) -> Block:
    """Return a button or a form that agrees; without proof, what opens the rest instead.

    Args:
        action: The id by which it agrees.
        made: The button or the form.
        proof: What its reader knows.
        review: What opens the rest; None for the same without inputs.
    """
    instead = review or _without_inputs(made)
    if not (proof.is_whole or proof.is_checked):
        return instead
    name = "callback_id" if made["type"] == "modal" else "action_id"
    return {**(made if proof.is_whole else instead), name: str(action)}


def _without_inputs(made: Block) -> Block:
    if made["type"] != "modal":
        return made
    blocks = [one for one in made["blocks"] if one["type"] != "input"]
    return {**{name: made[name] for name in made if name != "submit"}, "blocks": blocks}
