"""The product's texts, and Slack's markup for them."""

from bot.words.catalog import (
    TIME,
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
    "TIME",
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
