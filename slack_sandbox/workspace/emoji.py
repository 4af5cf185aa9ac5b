"""Names and characters of emoji that Slack knows, from the page's list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from slack_sandbox.workspace.records import Payload

_LIST = Path(__file__).parents[1] / "page" / "blocks" / "emoji_data.js"
_ENTRY = re.compile(r'"([a-z0-9_+-]+)": "([^"]+)"')
_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_FIRST_TONE = 2
_WIDE = "\ufe0f"


@cache
def _characters() -> Mapping[str, str]:
    """Name → characters."""
    return dict(_ENTRY.findall(_LIST.read_text(encoding="utf-8")))


@cache
def _names() -> Mapping[str, str]:
    """Characters → the first of their names."""
    return {characters: name for name, characters in reversed([*_characters().items()])}


@cache
def emoji_pattern() -> re.Pattern[str]:
    """A pattern for the characters of an emoji, with or without a skin tone."""
    longest = sorted(_names(), key=len, reverse=True)
    toned = [
        f"{each[0]}[{_TONES}]{_after_first(each)}" for each in longest if not each[0].isascii()
    ]
    return re.compile("|".join([*toned, *map(re.escape, longest)]))


def emoji_element(characters: str) -> Payload:
    """The element of a `rich_text` block for what `emoji_pattern` matched."""
    if characters in _names():
        return _element(_names()[characters])
    tone = _TONES.index(characters[1]) + _FIRST_TONE
    bare = characters[0] + characters[2:]
    named = [name for each, name in _names().items() if each[:1] + _after_first(each) == bare]
    return _element(named[0], tone)


def named_element(name: str, tone: str | None) -> Payload | None:
    """The element for a typed name, without its colons; None if there is no such emoji."""
    return _element(name, int(tone) if tone else 0) if name in _characters() else None


def as_name(element: Payload) -> str:
    """The name of an element in texts, with colons."""
    tone = element.get("skin_tone")
    return f":{element['name']}:" + (f":skin-tone-{tone}:" if tone else "")


def is_emoji(name: str) -> bool:
    """Whether there is an emoji of that name; one with a skin tone is one, too."""
    plain, _, tone = name.partition("::")
    return plain in _characters() and tone in {"", *(f"skin-tone-{n}" for n in range(2, 7))}


def emoji_names() -> frozenset[str]:
    """All names, without colons."""
    return frozenset(_characters())


def _after_first(characters: str) -> str:
    """Return the part after the skin tone, which takes the place of the selector."""
    return characters[1:].removeprefix(_WIDE)


def _element(name: str, tone: int = 0) -> Payload:
    characters = _characters()[name]
    if tone:
        characters = characters[0] + _TONES[tone - _FIRST_TONE] + _after_first(characters)
    code = "-".join(f"{ord(each):x}" for each in characters)
    element: Payload = {"type": "emoji", "name": name, "unicode": code}
    return {**element, "skin_tone": tone} if tone else element
