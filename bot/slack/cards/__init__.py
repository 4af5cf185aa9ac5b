"""Cards and modals: pure functions from records to Block Kit. No Slack client, no clock."""

from bot.layout.blocks import Card
from bot.layout.parts import approvers_words
from bot.slack.cards.beside import (
    concluded_text,
    escalation_text,
    line_card,
    nudge_text,
    reminder_text,
)
from bot.slack.cards.choose import card_for
from bot.slack.cards.reply import reply_cards
from bot.slack.cards.withdrawal import withdrawal_card

__all__ = [
    "Card",
    "approvers_words",
    "card_for",
    "concluded_text",
    "escalation_text",
    "line_card",
    "nudge_text",
    "reminder_text",
    "reply_cards",
    "withdrawal_card",
]
