"""Cards and modals: pure functions from records to Block Kit. No Slack client, no clock."""

from bot.layout.blocks import Card
from bot.layout.parts import approvers_words
from bot.slack.cards.choose import card_for
from bot.slack.cards.reply import reply_cards

__all__ = ["Card", "approvers_words", "card_for", "reply_cards"]
