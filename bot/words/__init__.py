"""The words of the product, and how Slack wants them written."""

from bot.words.catalog import Catalogue, catalogue, say, speaking

__all__ = ["Catalogue", "catalogue", "say", "speaking"]
