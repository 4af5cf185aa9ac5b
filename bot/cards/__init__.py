"""Cards and modals: pure functions from records to Block Kit. No Slack client, no clock."""

from bot.cards.blocks import Card
from bot.cards.choose import (
    approvers_words,
    card_for,
    concluded_text,
    escalation_text,
    reminder_text,
)
from bot.cards.reply import reply_cards
from bot.cards.withdrawal import withdrawal_card

__all__ = [
    "Card",
    "approvers_words",
    "card_for",
    "concluded_text",
    "escalation_text",
    "reminder_text",
    "reply_cards",
    "withdrawal_card",
]
