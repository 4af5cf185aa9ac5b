"""Convert a text from Slack to what the person typed.

Slack's client marks up what people type in messages and commands: `bob@acme.example` arrives as
`<mailto:bob@acme.example|bob@acme.example>`, and 🚀 as `:rocket:`. A form has no such mark-up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

from bot.words.mrkdwn import escape, unescape

_MARK = re.compile(r"<([^<>]+)>")
_CODE = r"```.*?```|`[^`\n]+`"
_NAME = r":(?P<name>[a-z0-9_+'-]+):(?::skin-tone-(?P<tone>[2-6]):)?"
_FREE = r"(?<![\w:])(?::[a-z0-9_+'-]+:)+(?![\w:])"
"""Names that stand alone. Without blocks, nothing else tells emoji from `db:us:east`."""
_KEPT_OR_FREE = re.compile(rf"(?P<kept>{_CODE}|<[^<>]+>)|{_FREE}", re.DOTALL)
_FREE_NAMES = re.compile(_FREE)
_NAMED = re.compile(_NAME)
_NAMED_OR_MARK = re.compile(rf"<[^<>]+>|{_NAME}")
_SCHEME = re.compile(r"(?P<scheme>https?://|mailto:|tel:)(?P<address>.*)", re.IGNORECASE)
_TONE = 0x1F3FB - 2
"""The code point of the skin tone 0, which does not exist: Slack counts from 2."""
_WIDE = "\ufe0f"
"""The selector of a colored picture; a skin tone replaces it."""


def typed_text(text: str, emoji: Sequence[tuple[str, bool]] | None = None) -> str:
    """Return what a person typed in a message or a command.

    Slack's ids of people (`<@U1>`), user groups, and channels without a name stay: the same name
    may belong to several people, and tools for Slack need the ids.

    Args:
        text: The text as sent by Slack.
        emoji: Each name in colons in the message's blocks, in their order, and whether it is an
            emoji. Without blocks, each name of a standard emoji counts that stands alone, outside
            of code.
    """
    shown = _outside_code(text) if emoji is None else _in_order(text, emoji)
    return unescape(_MARK.sub(lambda match: _as_typed(match[1]), shown))


def as_sent(text: str) -> str:
    """Return a text as Slack would send it if a person typed it: the reverse of `typed_text`."""
    return escape(text)


def typed_in_form(text: str, initial: str = "") -> str:
    """Return what a person typed in a form: characters in place of the names of standard emoji.

    A name beside a letter or a digit stays, because `2001:db8:a:1` is no emoji.

    Args:
        text: The value as sent by Slack.
        initial: The text that the form showed at first. Names of emoji in it stay.
    """
    if _bare(text) == _bare(initial):
        return initial

    def replace(match: re.Match[str]) -> str:
        character = _character(match)
        is_kept = match[0] in initial and character not in initial
        return match[0] if is_kept else character

    return _FREE_NAMES.sub(lambda names: _NAMED.sub(replace, names[0]), text)


def _bare(text: str) -> str:
    """Return a text for comparison: Slack's names of emoji do not keep the selector."""
    return _NAMED.sub(_character, text).replace(_WIDE, "")


def _outside_code(text: str) -> str:
    return _KEPT_OR_FREE.sub(lambda match: match["kept"] or _NAMED.sub(_character, match[0]), text)


def _in_order(text: str, emoji: Sequence[tuple[str, bool]]) -> str:
    """Replace those names that are emoji in the message's blocks."""
    left = iter(emoji)
    wanted, is_emoji = next(left, ("", False))

    def replace(match: re.Match[str]) -> str:
        nonlocal wanted, is_emoji
        if match["name"] != wanted:
            return match[0]
        shown = _character(match) if is_emoji else match[0]
        wanted, is_emoji = next(left, ("", False))
        return shown

    return _NAMED_OR_MARK.sub(replace, text)


def names_in_colons(text: str) -> list[str]:
    """Return what looks like the name of an emoji."""
    return [match["name"] for match in _NAMED.finditer(text)]


def _character(match: re.Match[str]) -> str:
    """Return the characters of a standard emoji; another name stays."""
    characters = _characters().get(match["name"])
    if characters is None:
        return match[0]
    if not match["tone"]:
        return characters
    tone = chr(_TONE + int(match["tone"]))
    return characters[0] + tone + characters[1:].removeprefix(_WIDE)


@cache
def _characters() -> dict[str, str]:
    """Return the characters of each name."""
    lines = resources.files("bot.words").joinpath("emoji.txt").read_text("utf-8").splitlines()
    entries = (line.split(" ") for line in lines if not line.startswith("# "))
    return {name: characters for characters, *names in entries for name in names}


def _as_typed(mark: str) -> str:
    """Return the typed text of what stands between `<` and `>`."""
    target, _, label = mark.partition("|")
    match target[:1]:
        case "@":
            return f"<{target}>"
        case "#":
            return f"#{label}" if label else f"<{target}>"
        case "!":
            return _special(target, label)
        case _:
            return _address(target, label)


def _special(target: str, label: str) -> str:
    """Return a user group, `@here` and its like, or the text of a date."""
    if target.startswith("!subteam^"):
        return f"<{target}>"
    return label or (f"<{target}>" if "^" in target else f"@{target[1:]}")


def _address(target: str, label: str) -> str:
    """Return the label of a link if it is the address; else the address, which is what counts."""
    known = _SCHEME.fullmatch(target)
    if known is None:
        return target
    scheme, address = known["scheme"].lower(), known["address"]
    if _compared(scheme, label) in {_compared(scheme, address), _compared(scheme, target)}:
        return label
    return target if scheme.startswith("http") else address


def _compared(scheme: str, address: str) -> str:
    """Return an address without differences that do not count."""
    if scheme == "tel:":
        return re.sub(r"[\s().-]", "", address)
    return address.casefold().removesuffix("/")
