"""The product's texts, and Slack's markup for them."""

from bot.words.catalog import (
    Catalogue,
    adding,
    catalogue,
    company,
    for_all,
    languages,
    said_to_all,
    say,
    speaking,
    spoken_language,
    working_for,
    workspace_language,
)

__all__ = [
    "Catalogue",
    "adding",
    "catalogue",
    "company",
    "for_all",
    "languages",
    "said_to_all",
    "say",
    "speaking",
    "spoken_language",
    "working_for",
    "workspace_language",
]
