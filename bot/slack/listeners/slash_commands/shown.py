"""The lists that people typed for: redrawn when their reader has used a button in them.

Slack lets a private message be changed only by the address that comes with a click in it. So that
address is kept until its reader has done something; it is lost with the process.
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
    """The blocks of an answer, each with what was typed, so that a click in it tells that."""
    if len(typed) > _MOST_TYPED:
        return answered.blocks
    return [
        {**block, "block_id": f"{_PREFIX}{number}:{typed}"}
        for number, block in enumerate(answered.blocks)
    ]


@dataclass(frozen=True, slots=True)
class ShownLists:
    """The lists in which people have clicked last, by person."""

    _clicked: LRUCache[str, tuple[str, str]] = field(default_factory=lambda: LRUCache(_REMEMBERED))

    def clicked(self, user_id: str, action: Mapping[str, Any], address: str) -> None:
        """Keep the address of a list that somebody clicks in; nothing for another click."""
        block_id = action.get("block_id")
        if address and isinstance(block_id, str) and block_id.startswith(_PREFIX):
            _, _, typed = block_id.removeprefix(_PREFIX).partition(":")
            self._clicked[user_id] = (typed, address)

    async def redraw(self, asker: Asker, respond: Respond) -> None:
        """Draw the list again in which somebody clicked, once they have done something."""
        typed, address = self._clicked.pop(asker.actor.user_id, ("", ""))
        if address:
            answered = await answer(asker, typed)
            await respond(address, answered.text, instead=marked(answered, typed))
