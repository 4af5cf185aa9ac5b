"""Lists shown by commands: updated after a click in them.

Slack lets an ephemeral message be changed only through the `response_url` of a click in it. The URL
is kept in memory until the person's action is done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache

from bot.layout.blocks import Block
from bot.slack.listeners.slash_commands.answers import Asker, TypedAnswer
from bot.slack.listeners.slash_commands.words import answer

_PREFIX = "countersign:list:"
_REMEMBERED = 1_000
_MOST_TYPED = 100

Respond = Callable[..., Awaitable[bool]]


def marked(answered: TypedAnswer, typed: str) -> Sequence[Block]:
    """Return an answer's blocks, marked with the typed command."""
    if len(typed) > _MOST_TYPED:
        return answered.blocks
    return [
        {**block, "block_id": f"{_PREFIX}{number}:{typed}"}
        for number, block in enumerate(answered.blocks)
    ]


@dataclass(frozen=True, slots=True)
class ShownLists:
    """The list in which each person clicked last."""

    _clicked: LRUCache[str, tuple[str, str]] = field(default_factory=lambda: LRUCache(_REMEMBERED))

    def clicked(self, user_id: str, action: Mapping[str, Any], address: str) -> None:
        """Remember the URL of a clicked list; ignore other clicks."""
        block_id = action.get("block_id")
        if address and isinstance(block_id, str) and block_id.startswith(_PREFIX):
            _, _, typed = block_id.removeprefix(_PREFIX).partition(":")
            self._clicked[user_id] = (typed, address)

    async def redraw(self, asker: Asker, respond: Respond) -> None:
        """Update the clicked list after the person's action."""
        typed, address = self._clicked.pop(asker.actor.user_id, ("", ""))
        if address:
            answered = await answer(asker, typed)
            await respond(address, answered.text, instead=marked(answered, typed))
