"""The page of what people type in Slack: commands, shortcuts, and words in a thread."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import yaml

from bot.config.manifest import manifest_text
from bot.slack.listeners.commands import COMMAND
from bot.slack.slash_commands.words import WORDS
from reference_pages import text

PURPOSE = (
    "Everything that people can type to Countersign in Slack, for approvers and requesters: "
    "commands, shortcuts, and words in a thread."
)
_COMMANDS = (
    f"Type a word after `{COMMAND}`. Only you see the answer. Without a word, the command shows "
    "`list`. No command approves or rejects: use the buttons of the card. In a thread, where "
    "Slack has no commands, mention the bot instead: `@countersign mine`."
)
_THREAD = (
    ("`@countersign` and a sentence", "Ask the agent; the answer is in a thread."),
    (
        "a reply in such a thread",
        "Continue with the same agent. The person who began needs no mention; others mention it.",
    ),
    (
        "`stop`, `halt` or `abort`",
        "Stop the agent. Requesters can do this, and people who can reject what is pending.",
    ),
    (
        "`cancel`",
        "Offers the button *Withdraw…* to the requester. The word alone withdraws nothing.",
    ),
    ("`yes`, `approve` or `reject`", "Nothing is decided. The bot points to the card."),
    ("`@countersign` in a quote or in code", "It calls nobody."),
)
_TYPED = (
    "The agent reads addresses, links, phone numbers and channels as they were typed, and standard "
    "emoji as characters, by message, command and form alike. In commands and forms, an emoji "
    "beside a letter or a digit stays a name, because `db:us:east` has none. People and user "
    "groups stay as Slack's ids, such as `<@U012AB3CD>`: two people may have the same name. So "
    "does a channel whose name Slack leaves out."
)


def build() -> str:
    """Make the page."""
    manifest: dict[str, Any] = yaml.safe_load(manifest_text())
    shortcuts = [
        (
            f"*{shortcut['name']}*",
            "message menu" if shortcut["type"] == "message" else "shortcut menu",
            f"{shortcut['description']}.",
        )
        for shortcut in manifest["features"]["shortcuts"]
    ]
    rows = [(usage_of(work), meaning_of(work)) for work in dict.fromkeys(WORDS.values())]
    return text.page(
        "Slack commands",
        PURPOSE,
        [
            text.section(2, text.code(COMMAND)),
            text.wrap(_COMMANDS),
            text.table(("Word", "Effect"), rows),
            text.section(2, "Shortcuts"),
            text.table(("Shortcut", "Place", "Effect"), shortcuts),
            text.section(2, "Words in a thread"),
            text.table(("What you write", "Effect"), _THREAD),
            text.wrap(_TYPED),
        ],
    )


def usage_of(work: Callable[..., object]) -> str:
    """Give the words of a command, as they are typed."""
    return _docstring(work).partition(": ")[0]


def meaning_of(work: Callable[..., object]) -> str:
    """Give the effect of a command."""
    said = re.sub(r"^.*?(?<!\d): ", "", _docstring(work), count=1)
    return said[:1].upper() + said[1:]


def _docstring(work: Callable[..., object]) -> str:
    return " ".join(inspect.cleandoc(work.__doc__ or "").split())
