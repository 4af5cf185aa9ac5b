"""Table of commands, and the lists that they show. No command approves anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from cachetools import LRUCache

from bot.errors import UserFacingError
from bot.layout.blocks import Block
from bot.people.lookup import locale_of
from bot.ports.people import Actor
from bot.slack.slash_commands import freezes, lists, rights
from bot.slack.slash_commands.answers import Asker, TypedAnswer, TypoError, quoted
from bot.slack.slash_commands.rights import quiet
from bot.words import say, speaking

MOST_TYPED = 500
_VERDICTS = ("approve", "reject", "deny", "decide", "allow", "confirm", "accept", "ok", "yes", "no")
_NEAR, _VERY_NEAR = 0.55, 0.75


async def help_(_: Asker, __: Sequence[str]) -> TypedAnswer:
    """`help`: all commands."""
    return TypedAnswer(text=say("command.help"))


Work = Callable[[Asker, Sequence[str]], Awaitable[TypedAnswer]]

WORDS: Mapping[str, Work] = {
    "list": lists.waiting,
    "mine": lists.mine,
    "decided": lists.decided,
    "show": lists.show,
    "away": rights.away,
    "back": rights.back,
    "permissions": lists.grants,
    "grants": lists.grants,
    "revoke": lists.revoke,
    "stop": lists.stop,
    "quiet": quiet,
    "health": lists.health,
    "help": help_,
    "delegate": rights.delegate,
    "freeze": freezes.freeze,
    "unfreeze": freezes.unfreeze,
    "freezes": freezes.freezes,
}
_ALONE = frozenset(
    {"list", "mine", "decided", "back", "permissions", "grants", "health", "help", "freezes"}
)
"""Commands without arguments."""
_OF_THREADS = frozenset({"stop"})
"""Commands that refer to the thread in which they are typed."""


async def answer(asker: Asker, typed: str) -> TypedAnswer:
    """Execute what a person typed, in their language; return the answer."""
    words = typed[:MOST_TYPED].split()
    locale = await locale_of(asker.composer.overviews.directory, asker.actor.user_id)
    with speaking(locale):
        try:
            return await _work(words)(asker, words[1:])
        except UserFacingError as error:
            return TypedAnswer(text=str(error))


def is_word(typed: str) -> bool:
    """Whether a mention in a thread is a command.

    A sentence that only begins with a command is for the agent.
    """
    words = typed.lower().split()
    match words:
        case [word]:
            return word in WORDS and word not in _OF_THREADS
        case ["show" | "revoke" | "stop" as first, name]:
            return first != "stop" or (name.isascii() and name.isdigit())
        case ["away", "until" | "for" | "off", *_]:
            return True
        case ["quiet", first, *_]:
            return first == "off" or first[:1].isdigit()
        case ["delegate", first, *_]:
            return first.startswith("<@") or first == "off"
        case _:
            return False


def _work(words: Sequence[str]) -> Work:
    """Return the function of a command.

    Raises:
        TypoError: The command is unknown.
    """
    word = words[0].lower() if words else "list"
    work = WORDS.get(word)
    if work is None or (word in _ALONE and len(words) > 1) or _is_stop_of_nothing(words):
        raise _unknown(" ".join(words) if work is not None else words[0])
    return work


def _is_stop_of_nothing(words: Sequence[str]) -> bool:
    """Whether `stop` is followed by more than a grant's number."""
    match [word.lower() for word in words]:
        case ["stop", number]:
            return not (number.isascii() and number.isdigit())
        case ["stop", _, *_]:
            return True
        case _:
            return False


def _unknown(typed: str) -> TypoError:
    word = typed.lower()
    first = word.split()[0]
    if get_close_matches(first, _VERDICTS, n=1, cutoff=_VERY_NEAR):
        return TypoError(say("command.verdict", word=quoted(typed)))
    guesses = [first] if first in WORDS else get_close_matches(first, WORDS, n=1, cutoff=_NEAR)
    guess = guesses[0] if guesses else "list"
    return TypoError(say("command.unknown", word=quoted(typed), guess=f"`{guess}`"))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLists:
    """The list in which each person clicked last, and their Home.

    Slack lets an ephemeral message be changed only through the `response_url` of a click in it. The
    URL is kept in memory until the person's action is done.

    Attributes:
        publish_home: Publishes the open Home of a person.
        asker: Returns a person with the use cases of commands.
        respond: Changes the message of a `response_url`.
    """

    publish_home: Callable[[Actor], Awaitable[None]]
    asker: Callable[[Actor], Asker]
    respond: Respond
    _clicked: LRUCache[str, tuple[str, str]] = field(default_factory=lambda: LRUCache(_REMEMBERED))

    def clicked(self, user_id: str, action: Mapping[str, Any], address: str) -> None:
        """Remember the URL of a clicked list; ignore other clicks."""
        block_id = action.get("block_id")
        if address and isinstance(block_id, str) and block_id.startswith(_PREFIX):
            _, _, typed = block_id.removeprefix(_PREFIX).partition(":")
            self._clicked[user_id] = (typed, address)

    async def acted(self, actor: Actor) -> None:
        """Update a person's Home and the clicked list after their change, at once."""
        await self.publish_home(actor)
        typed, address = self._clicked.pop(actor.user_id, ("", ""))
        if address:
            answered = await answer(self.asker(actor), typed)
            await self.respond(address, answered.text, instead=marked(answered, typed))
