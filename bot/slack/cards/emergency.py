"""Break-glass in Slack: the form, the alert to who was left out, and the card's words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from bot.core.decisions.emergencies import LEAST_REASON, Reasons
from bot.layout.action_ids import ActionId
from bot.layout.blocks import (
    Block,
    Card,
    line,
    literal,
    plain,
    quote,
    rich,
    section,
)
from bot.layout.modals import (
    MOST_REASON,
    Values,
    alert,
    modal,
    named,
    read_state,
    read_text,
    text_input,
)
from bot.layout.parts import spoken_title, title_of
from bot.layout.shape import third_line
from bot.layout.text import clip, show
from bot.policy.terms import BreakGlass
from bot.redaction.mask import mask_text
from bot.words import say
from bot.words.mrkdwn import mention
from storage.records import Approval

WHAT, WHY_NOW, SURE = "what", "why_now", "sure"
_YES = "yes"
_TITLE = 300
_BOTH = 600
_LABELS = {WHAT: "What is wrong", WHY_NOW: "Why it cannot wait"}


def override_modal(approval: Approval, glass: BreakGlass) -> Block:
    """Ask why it runs without those who should decide, and say who hears of it."""
    told = say("form.override_told", channel=f"<#{glass.alert}>")
    hint = say("form.override_least", n=LEAST_REASON)
    what, why_now = say("form.override_why"), say("form.override_now")
    box: Block = {
        "type": "input",
        "block_id": SURE,
        "label": plain(say("form.override_sure")),
        "element": {
            "type": "checkboxes",
            "action_id": str(ActionId.VALUE),
            "options": [{"text": plain(say("form.override_yes")), "value": _YES}],
        },
    }
    preview = show(mask_text(approval.preview), _TITLE, one_line=True).text
    blocks = [
        alert(f"*{say('form.override_now_runs')}* {told}", "error"),
        named(approval, preview),
        text_input(WHAT, what, MOST_REASON, hint=hint, optional=False),
        text_input(WHY_NOW, why_now, MOST_REASON, hint=hint, optional=False),
        box,
    ]
    words = (say("form.override"), say("form.override_submit"))
    return modal(approval, ActionId.OVERRIDE_MODAL, words, blocks)


def read_reasons(values: Values) -> Reasons:
    """Read the form; what was not sent is empty."""
    ticked = read_state(values, SURE).get("selected_options")
    found = ticked if isinstance(ticked, list) else []
    chosen = [one.get("value") for one in found if isinstance(one, dict)]
    return Reasons(
        what=read_text(values, WHAT), why_now=read_text(values, WHY_NOW), is_sure=_YES in chosen
    )


def alert_card(approval: Approval, *, link: str) -> Card:
    """Say that a call runs without those who are told this.

    Args:
        approval: As decided.
        link: Address of the card; empty when it is not known.
    """
    decision = approval.decision
    who = mention(decision.by if decision is not None else "")
    place = f"<{link}|Open the card>" if link else f"It stands in <#{approval.channel_id}>"
    words = (
        f":rotating_light: *Critical: {who} runs this as an emergency, without those who should "
        f"decide.* {place}."
    )
    title = rich(line(literal(clip(title_of(approval), _TITLE), "bold")))
    spoken = f"Emergency override by {who}: {spoken_title(approval)}."
    return Card(text=spoken, blocks=[section(words), title, *why_emergency(approval)])


def why_emergency(approval: Approval) -> list[Block]:
    """The reasons of somebody who broke the glass, word for word; nothing for other decisions."""
    decision = approval.decision
    if decision is None or not decision.emergency_json:
        return []
    texts = _texts(decision.emergency_json)
    parts: list[Block] = [line(literal("Risk: critical", "bold"))]
    for name, label in _LABELS.items():
        text = mask_text(texts.get(name, ""))
        parts += [line(literal(label, "bold")), quote(literal(text or "…"))]
    return [rich(*parts)]


def reasons_of(emergency_json: str) -> Iterator[Block]:
    """Both reasons as the third line of a card; nothing where they cannot be read."""
    texts = _texts(emergency_json)
    found = [mask_text(texts.get(name, "")).strip() for name in _LABELS]
    lines = [f"“{text}”" for text in found if text]
    if lines:
        yield third_line("\n".join(lines), _BOTH, lines=6)


def _texts(text: str) -> Mapping[str, str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
