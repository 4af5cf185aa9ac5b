"""The forms behind buttons and menus, as people use them."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from bot.words import say
from slack_sandbox.errors import RefusedError
from slack_sandbox.server import Sandbox

DETAILS, MORE = "countersign:details", "countersign:more"
PATIENCE_S = 4.0
"""How long people look at a form that says that it takes a moment."""

View = dict[str, Any]


async def opened(sandbox: Sandbox, user: str) -> View:
    """Wait for the form of a click that was answered; at first it may say that it takes a moment.

    Raises:
        RefusedError: There is none; they were told why, privately.
    """
    loading = say("form.loading")

    def top() -> View | None:
        views = sandbox.open_views(user)
        if not views:
            raise RefusedError("no_form")
        return None if loading in str(views[-1]["blocks"]) else views[-1]

    view = await sandbox.until(top, timeout=PATIENCE_S)
    assert view is not None
    return view


async def choose(
    sandbox: Sandbox, user: str, channel: str, card: dict[str, Any], action: str
) -> bool:
    """Choose from the menu of a card; whether that was there."""
    match = re.search(rf"{action}=[^']+", str(card["blocks"]))
    if match:
        await sandbox.click(user, channel, card["ts"], MORE, selected_option={"value": match[0]})
    return match is not None


async def press_inside(
    sandbox: Sandbox, user: str, channel: str, card: dict[str, Any], action: str
) -> bool:
    """Press what only the form about a card has; whether it was there for this person."""
    if not await choose(sandbox, user, channel, card, DETAILS):
        return False
    view = await opened(sandbox, user)
    is_there = action in str(view["blocks"])
    if is_there:
        await sandbox.click_in_view(user, view, action)
    return is_there


async def close_all(sandbox: Sandbox, user: str) -> None:
    """Close what is open; it may be gone by itself meanwhile."""
    for view in sandbox.open_views(user)[:1]:
        with suppress(RefusedError):
            await sandbox.close_view(user, view, everything=True)


def filled(view: View, changes: dict[str, str]) -> dict[str, Any]:
    """What people write into a form: what is there, else `because`, and the first thing to choose.

    Args:
        view: The form.
        changes: What is filled in otherwise, by the first word of the label in small letters.
    """
    return {
        block["block_id"]: _value(block, changes)
        for block in view["blocks"]
        if block["type"] == "input"
    }


def _value(block: dict[str, Any], changes: dict[str, str]) -> Any:
    element = block["element"]
    word = block["label"]["text"].lower().split()[0]
    match element["type"]:
        case "radio_buttons" | "static_select":
            return element["options"][0]["value"]
        case "checkboxes":
            ticked = [] if block.get("optional") else element["options"]
            return {"selected_options": [{"value": option["value"]} for option in ticked]}
        case _:
            return changes.get(word) or element.get("initial_value") or "because"
