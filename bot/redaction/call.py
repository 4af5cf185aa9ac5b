"""Masks in what people agree to: a call's arguments, its title, what will happen, an edit.

Elsewhere `mask.py` masks whatever may be secret. Here something runs, and a mask must not
hide what: only one unbroken plain token is masked, with its length and a fingerprint. All that has
a space, a quote or a sign of a shell in it is shown. What a tool declares secret is masked whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from bot.redaction.masks import NO_NAMES, Mask, Names, Words, length, masks_in
from bot.redaction.names import is_harmless, is_secret_key, secret_fields
from bot.redaction.places import Search, searches
from bot.redaction.rules import own_spans, print_of
from bot.redaction.writing import ObjectWithMasks, TextWithMasks, as_data, quoted, write, written

__all__ = [
    "INLINE",
    "PLAIN",
    "is_empty",
    "mask_call",
    "mask_data",
    "mask_title",
    "mask_value",
    "masked_once",
    "written",
]

PLAIN = re.compile(r"[A-Za-z0-9_.+/=-]{1,200}")
"""The texts that may be masked by a guess."""
INLINE = 120
"""Longer objects and lists are written over several lines."""
_RUN = re.compile(r"[A-Za-z0-9_.+/=-]+")
_KEY_BEGINS = ("-----BEGIN", "---- BEGIN", "----BEGIN", "----- BEGIN", "PuTTY-")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{32,200}")
"""A line of a private key; nothing that runs is written like this."""


@contextmanager
def masked_once() -> Iterator[None]:
    """Mask each text and each value once inside of this block: a card needs them several times."""
    token = _made.set(_Made())
    try:
        yield
    finally:
        _made.reset(token)


def mask_call(text: str, *, is_open: bool = False) -> Words:
    """Mask what looks like a secret in a text about a call.

    Args:
        text: Any text.
        is_open: Whether guesses are shown.
    """
    made = _made.get()
    if made is None:
        return _mask_call(text, is_open=is_open)
    if (text, is_open) not in made.texts:
        made.texts[text, is_open] = _mask_call(text, is_open=is_open)
    return made.texts[text, is_open]


@dataclass(frozen=True, slots=True)
class _Made:
    """All that was masked for one drawing: texts, and arguments that are objects or lists."""

    texts: dict[tuple[str, bool], Words] = field(default_factory=dict)
    values: dict[tuple[str, str, Names], Words] = field(default_factory=dict)


_made: ContextVar[_Made | None] = ContextVar("made", default=None)


def _mask_call(text: str, *, is_open: bool) -> Words:
    words = _cut((text,), own_spans, is_guess=False)
    if is_open:
        return words
    for search in searches(text):
        words = _cut(words, search, is_guess=True)
    return words


def mask_value(name: str, value: object, names: Names = NO_NAMES) -> Words:
    """Write an argument for people: a text as it is, the rest as JSON; secrets masked.

    Args:
        name: Of the argument.
        value: JSON data of any depth.
        names: What the tool's author says of its arguments.
    """
    made = _made.get()
    if made is None or not isinstance(value, dict | list):
        return _mask_value(name, value, names)
    key = (name, json.dumps(value), names)
    if key not in made.values:
        made.values[key] = _mask_value(name, value, names)
    return made.values[key]


def _mask_value(name: str, value: object, names: Names) -> Words:
    masked = _masked_argument(name, value, names)
    if isinstance(masked, str):
        return (quoted(masked),)
    if isinstance(masked, TextWithMasks):
        return masked.words
    inline = tuple(write(masked, indent=None))
    if not isinstance(masked, dict | list | tuple | ObjectWithMasks) or length(inline) <= INLINE:
        return inline
    return tuple(write(masked, indent=2))


def is_masked(name: str, value: object, names: Names = NO_NAMES) -> bool:
    """Tell whether a value would not be shown as it is."""
    return any(masks_in(mask_value(name, value, names)))


def mask_data(data: object, names: Names = NO_NAMES) -> object:
    """Mask arguments as cards do, as JSON data.

    Args:
        data: An object of arguments, or other JSON data.
        names: What the tool's author says of the arguments.
    """
    if not isinstance(data, dict):
        return as_data(_masked_argument("", data, names))
    pairs = ((mask_call(key), _masked_argument(key, item, names)) for key, item in data.items())
    return as_data(ObjectWithMasks(tuple(pairs)))


def mask_title(text: str, data: object, names: Names = NO_NAMES) -> str:
    """Mask a text that was made from the arguments of a call, such as its title.

    Args:
        text: May have values of the arguments in it, where no name says that they are secret.
        data: The arguments.
        names: What the tool's author says of them.
    """
    found = dict(_hidden_in(data, names))
    words: Words = (text,)
    for clear in sorted(found, key=len, reverse=True):
        words = tuple(new for old in words for new in _replaced(old, clear, found[clear]))
    return "".join(
        str(part) if isinstance(part, Mask) else written(mask_call(part)) for part in words
    )


def _hidden_in(data: object, names: Names) -> Iterator[tuple[str, Mask]]:
    """Yield the masked parts of arguments, in all forms in which they may stand in a title."""
    for name, item in data.items() if isinstance(data, dict) else [("", data)]:
        leaves = [*_leaves(item)] if str(name) in names.secret else []
        for mask in masks_in(mask_value(str(name), item, names)):
            for clear in leaves or [mask.clear]:
                line = " ".join(clear.split())
                # A title shows the beginning of a long value.
                forms = (clear, *clear.splitlines(), line, line[:79])
                yield from ((form, mask) for form in forms if len(form) > 2)


def _leaves(value: object) -> Iterator[str]:
    match value:
        case dict():
            yield from (leaf for item in value.values() for leaf in _leaves(item))
        case list() | tuple():
            yield from (leaf for item in value for leaf in _leaves(item))
        case _:
            yield value if isinstance(value, str) else json.dumps(value)


# ---- data --------------------------------------------------------------------------------------


def _masked_argument(name: str, value: object, names: Names) -> object:
    if name in names.secret:
        return value if is_empty(value) else TextWithMasks((_declared(value),))
    if name in names.shown or names.is_open:
        return _masked(value, "", is_open=True)
    return _masked(value, name)


def is_empty(value: object) -> bool:
    """Tell whether there is nothing that could be secret."""
    return value is None or value in ("", [], {})


def _declared(value: object) -> Mask:
    clear = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    # A text and a number that look alike are two values.
    fingerprint = print_of(clear if isinstance(value, str) else f"json:{clear}")
    return Mask(len(clear), fingerprint, is_guess=False, clear=clear)


def _masked(value: object, key: str, *, is_open: bool = False) -> object:
    """Mask JSON data; what has nothing to mask is given back as it is."""
    match value:
        case str():
            return _masked_text(value, key, is_open=is_open)
        case dict():
            return _masked_object(value, key, is_open=is_open)
        case list() | tuple():
            return _masked_list(value, key, is_open=is_open)
        case bool() | None:
            return value
        case _ if is_open:
            return value
        case _:
            return _masked_number(value, key)


def _masked_text(value: str, key: str, *, is_open: bool) -> object:
    if not is_open and _names_secret(key, value) and PLAIN.fullmatch(value):
        return TextWithMasks((Mask.of(value, is_guess=True),))
    words = mask_call(value, is_open=is_open)
    return value if words == (value,) else TextWithMasks(words)


def _names_secret(key: str, value: object) -> bool:
    return is_secret_key(key) and not is_harmless(key, value)


def _masked_number(value: object, key: str) -> object:
    clear = json.dumps(value)
    if _names_secret(key, value) and PLAIN.fullmatch(clear):
        return TextWithMasks((Mask.of(clear, is_guess=True),))
    words = mask_call(clear) if isinstance(value, int) and len(clear) < 30 else (clear,)
    return value if words == (clear,) else TextWithMasks(words)


def _masked_object(value: dict[str, object], key: str, *, is_open: bool) -> object:
    # {"name": "DB_PASSWORD", "value": "…"}: a list of variables or headers
    label = next((value[name] for name in ("name", "key", "Name", "Key") if name in value), "")
    secret_label = label if isinstance(label, str) and is_secret_key(label) else ""
    inherited = key if is_secret_key(key) else ""
    fields = secret_fields(value)
    pairs: list[tuple[Words, object]] = []
    is_same = True
    for name, item in value.items():
        words = (name,) if is_open else mask_call(name)
        place = secret_label if secret_label and name.lower() == "value" else name
        place = "secret" if name in fields else place
        if inherited and not is_secret_key(place):
            place = inherited
        masked = _masked(item, place, is_open=is_open)
        is_same = is_same and masked is item and words == (name,)
        pairs.append((words, masked))
    return value if is_same else ObjectWithMasks(tuple(pairs))


def _masked_list(items: Sequence[object], key: str, *, is_open: bool) -> object:
    masked: list[object] = []
    option = ""
    for item in items:
        masked.append(_masked(item, option or key, is_open=is_open))
        # ["--password", "…"]: the arguments of a command
        is_option = isinstance(item, str) and item.startswith("-") and is_secret_key(item)
        option = str(item) if is_option else ""
    is_same = all(one is item for one, item in zip(masked, items, strict=True))
    return items if is_same else masked


# ---- texts -------------------------------------------------------------------------------------


def _cut(words: Words, search: Search, *, is_guess: bool) -> Words:
    """Mask what a search finds in the parts of a text that are not masked yet."""
    made: list[str | Mask] = []
    is_same = True
    for part in words:
        if isinstance(part, Mask):
            made.append(part)
            continue
        end = 0
        for first, last in _tokens(part, search(part)) if is_guess else search(part):
            made += [part[end:first], Mask.of(part[first:last], is_guess=is_guess)]
            end, is_same = last, False
        made.append(part[end:] if end else part)
    return words if is_same else tuple(part for part in made if part != "")


def _tokens(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of findings that may be masked: plain tokens, and lines of a private key."""
    for first, last in spans:
        found = text[first:last]
        if _RUN.fullmatch(found):
            yield from ((at, min(at + 200, last)) for at in range(first, last, 200))
        elif found.startswith(_KEY_BEGINS):
            for line in _KEY_LINE.finditer(text, first, last):
                yield line.span()


def _replaced(word: str | Mask, clear: str, mask: Mask) -> Iterator[str | Mask]:
    if isinstance(word, Mask):
        yield word
        return
    whole = re.escape(clear)
    if len(clear) < 6:  # not inside of other words
        whole = rf"(?<!\w){whole}(?!\w)"
    for number, part in enumerate(re.split(whole, word)):
        if number:
            yield mask
        if part:
            yield part
