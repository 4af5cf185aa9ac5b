"""Mask the arguments, the title, the preview and the edit of a call.

`mask.py` masks whatever may be secret. Here approvers decide about a call, so a mask must not hide
what runs: a guess masks only a single plain token, and shows its length and a fingerprint. A text
with a space, a quote or a shell character is shown. An argument that its tool declares secret is
masked as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bot.redaction.key_value_patterns import OWN, Search, forms_in, gates_now, searches
from bot.redaction.masks import (
    NO_NAMES,
    ListWithMasks,
    Mask,
    Names,
    ObjectWithMasks,
    TextWithMasks,
    Words,
    joined_words,
    length,
    made_now,
    masks_in,
    write,
)
from bot.redaction.names import is_harmless, is_secret_key, secret_fields
from bot.redaction.patterns import is_card_value, names_card
from bot.redaction.rules import own_spans, print_of
from bot.redaction.scan import Suspects, suspects_in

__all__ = [
    "INLINE",
    "PLAIN",
    "is_empty",
    "mask_call",
    "mask_data",
    "mask_title",
    "mask_value",
    "written",
]

PLAIN = re.compile(r"[A-Za-z0-9_.+/=-]{1,200}")
"""Matches a plain token: only such texts may be masked by a guess."""
INLINE = 120
"""Length of an object or list in characters, above which it is written over several lines."""
_RUN = re.compile(r"[A-Za-z0-9_.+/=-]+")
_KEY_BEGINS = ("-----BEGIN", "---- BEGIN", "----BEGIN", "----- BEGIN", "PuTTY-")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{32,200}")
"""Matches a line of a private key. No command looks like this."""


def mask_call(text: str, *, is_open: bool = False, forms: int | None = None) -> Words:
    """Mask secrets and texts that look like secrets in a text about a call.

    Args:
        text: Any text.
        is_open: Whether guesses are shown.
        forms: The groups of secrets that the text may contain, see `forms_in`; None if unknown.
    """
    made = made_now()
    if made is None:
        return _mask_call(text, is_open=is_open, forms=forms)
    if (text, is_open) not in made.texts:
        made.texts[text, is_open] = _mask_call(text, is_open=is_open, forms=forms)
    return made.texts[text, is_open]


def _mask_call(text: str, *, is_open: bool, forms: int | None) -> Words:
    words = _cut((text,), own_spans, is_guess=False)
    if is_open:
        return words
    for search in searches(text, forms_in(text) if forms is None else forms):
        words = _cut(words, search, is_guess=True)
    return words


def mask_value(name: str, value: object, names: Names = NO_NAMES) -> Words:
    """Format an argument for people, with secrets masked: a text unchanged, other values as JSON.

    Args:
        name: Name of the argument.
        value: JSON data of any depth.
        names: The tool author's lists of names.
    """
    made = made_now()
    if made is None or not isinstance(value, dict | list):
        return _mask_value(name, value, names)
    itself = (name, id(value), names)
    if itself not in made.same:
        key = (name, json.dumps(value), names)
        if key not in made.values:
            made.values[key] = _mask_value(name, value, names)
        # The entry keeps the value alive, so that its id is not reused.
        made.same[itself] = (value, made.values[key])
    return made.same[itself][1]


def _mask_value(name: str, value: object, names: Names) -> Words:
    masked = _masked_argument(name, value, names)
    if isinstance(masked, str):
        return (_quoted(masked),)
    if isinstance(masked, TextWithMasks):
        return masked.words
    if not isinstance(masked, dict | list | tuple | ObjectWithMasks | ListWithMasks):
        return (json.dumps(masked, ensure_ascii=False),)
    inline = joined_words(write(masked, indent=None))
    if length(inline) <= INLINE:
        return inline
    return joined_words(write(masked, indent=2))


def is_masked(name: str, value: object, names: Names = NO_NAMES) -> bool:
    """Whether a part of a value is masked."""
    return any(masks_in(mask_value(name, value, names)))


def mask_data(data: object, names: Names = NO_NAMES) -> object:
    """Mask arguments like a card; return JSON data.

    Args:
        data: An object of arguments, or other JSON data.
        names: The tool author's lists of names.
    """
    if not isinstance(data, dict):
        return _as_data(_masked_argument("", data, names))
    pairs = ((mask_call(key), _masked_argument(key, item, names)) for key, item in data.items())
    return _as_data(ObjectWithMasks(tuple(pairs)))


def mask_title(text: str, data: object, names: Names = NO_NAMES) -> str:
    """Mask a text that was built from the arguments of a call, such as its title.

    Args:
        text: The text. It may contain secret values without their names.
        data: The arguments.
        names: The tool author's lists of names.
    """
    masks = dict(_hidden_in(data, names))
    words: Words = (text,)
    for clear in sorted(masks, key=len, reverse=True):
        words = tuple(new for old in words for new in _replaced(old, clear, masks[clear]))
    return "".join(
        str(part) if isinstance(part, Mask) else written(mask_call(part)) for part in words
    )


def _hidden_in(data: object, names: Names) -> Iterator[tuple[str, Mask]]:
    """Yield the masked parts of arguments, in every form in which a title may contain them."""
    for name, item in data.items() if isinstance(data, dict) else [("", data)]:
        leaves = [*_leaves(item)] if str(name) in names.secret else []
        for mask in masks_in(mask_value(str(name), item, names)):
            for clear in leaves or [mask.clear]:
                line = " ".join(clear.split())
                # A title contains only the beginning of a long value.
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


def written(words: Words) -> str:
    """Return a text with its masks, as people see it."""
    return "".join(map(str, words))


# ---- data --------------------------------------------------------------------------------------


def _masked_argument(name: str, value: object, names: Names) -> object:
    if name in names.secret:
        return value if is_empty(value) else TextWithMasks((_declared(value),))
    is_open = name in names.shown or names.is_open
    if not isinstance(value, dict | list | tuple):
        return _Masking(suspects=None, is_open=is_open).masked(value, "" if is_open else name)
    suspects = suspects_in(value, OWN, gates_now(is_open=is_open))
    return _Masking(suspects=suspects, is_open=is_open).masked(value, "" if is_open else name)


def is_empty(value: object) -> bool:
    """Whether a value is empty, so that it cannot be secret."""
    return value is None or value in ("", [], {})


def _declared(value: object) -> Mask:
    clear = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    # The prefix gives the text `"1"` and the number `1` different fingerprints.
    fingerprint = print_of(clear if isinstance(value, str) else f"json:{clear}")
    return Mask(len(clear), fingerprint, is_guess=False, clear=clear)


def _names_secret(key: str, value: object) -> bool:
    is_secret = is_secret_key(key) and not is_harmless(key, value)
    return is_secret or is_card_value(key, value)


def _says_what(name: str) -> bool:
    return is_secret_key(name) or names_card(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Masking:
    """Masks one argument. Values without masks are returned unchanged.

    Args:
        suspects: The parts that may need a mask; None if unknown.
        is_open: Whether guesses are shown.
    """

    suspects: Suspects | None
    is_open: bool

    def masked(self, value: object, key: str) -> object:
        """Mask JSON data under a name."""
        match value:
            case str():
                return self._text(value, key)
            case dict():
                return self._object(value, key)
            case list() | tuple():
                return self._list(value, key)
            case bool() | None:
                return value
            case _ if self.is_open:
                return value
            case _:
                return self._number(value, key)

    def _text(self, value: str, key: str) -> object:
        if not self.is_open and _names_secret(key, value) and PLAIN.fullmatch(value):
            return TextWithMasks((Mask.of(value, is_guess=True),))
        words = self._words(value)
        return value if words == (value,) else TextWithMasks(words)

    def _words(self, text: str) -> Words:
        forms = None if self.suspects is None else self.suspects.forms(text)
        return (text,) if forms == 0 else mask_call(text, is_open=self.is_open, forms=forms)

    def _number(self, value: object, key: str) -> object:
        is_secret = _names_secret(key, value)
        if not is_secret and self.suspects is not None and not self.suspects.forms(value):
            return value
        clear = json.dumps(value)
        if is_secret and PLAIN.fullmatch(clear):
            return TextWithMasks((Mask.of(clear, is_guess=True),))
        words = mask_call(clear) if isinstance(value, int) and len(clear) < 30 else (clear,)
        return value if words == (clear,) else TextWithMasks(words)

    def _has_none(self, key: str, *parts: Iterable[object]) -> bool:
        """Whether scalars under a name certainly need no mask. A fast check."""
        suspects = self.suspects
        if suspects is None or (not self.is_open and _says_what(key)):
            return False
        try:
            return all(suspects.has_none_of(some) for some in parts)
        except TypeError:  # a part is a list or an object
            return False

    def _object(self, value: dict[str, object], key: str) -> object:
        if self._has_none(key, value, value.values()):
            return value
        # {"name": "DB_PASSWORD", "value": "…"}: a list of variables or headers
        label = next((value[name] for name in ("name", "key", "Name", "Key") if name in value), "")
        secret_label = label if isinstance(label, str) and _says_what(label) else ""
        inherited = key if is_secret_key(key) else ""
        fields = secret_fields(value)
        pairs: list[tuple[Words, object]] = []
        is_same = True
        for name, item in value.items():
            words = (name,) if self.is_open else self._words(name)
            place = secret_label if secret_label and name.lower() == "value" else name
            place = "secret" if name in fields else place
            if inherited and not is_secret_key(place):
                place = inherited
            masked = self.masked(item, place)
            is_same = is_same and masked is item and words == (name,)
            pairs.append((words, masked))
        return value if is_same else ObjectWithMasks(tuple(pairs))

    def _list(self, items: Sequence[object], key: str) -> object:
        if self._has_none(key, items):
            return items
        masked: list[object] = []
        option = ""
        for item in items:
            masked.append(self.masked(item, option or key))
            # ["--password", "…"]: the arguments of a command
            is_option = isinstance(item, str) and item.startswith("-") and is_secret_key(item)
            option = str(item) if is_option else ""
        is_same = all(part is item for part, item in zip(masked, items, strict=True))
        return items if is_same else ListWithMasks(tuple(masked))


# ---- texts -------------------------------------------------------------------------------------


def _cut(words: Words, search: Search, *, is_guess: bool) -> Words:
    """Mask the findings of a search in the unmasked parts of a text."""
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
    """Yield the parts of findings that a guess may mask: plain tokens, lines of private keys."""
    for first, last in spans:
        piece = text[first:last]
        if _RUN.fullmatch(piece):
            yield from ((at, min(at + 200, last)) for at in range(first, last, 200))
        elif piece.startswith(_KEY_BEGINS):
            for line in _KEY_LINE.finditer(text, first, last):
                yield line.span()


def _replaced(word: str | Mask, clear: str, mask: Mask) -> Iterator[str | Mask]:
    if isinstance(word, Mask):
        yield word
        return
    whole = re.escape(clear)
    if len(clear) < 6:  # do not mask a short text inside of other words
        whole = rf"(?<!\w){whole}(?!\w)"
    for number, part in enumerate(re.split(whole, word)):
        if number:
            yield mask
        if part:
            yield part


# ---- writing -----------------------------------------------------------------------------------


_SCALAR = re.compile(
    r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|-?Infinity|NaN|\".*\"", re.DOTALL
)


def _quoted(text: str) -> str:
    """Quote a text that people could mistake for another value or for no value."""
    needs_quotes = text != text.strip() or text == "" or _SCALAR.fullmatch(text) is not None
    return json.dumps(text, ensure_ascii=False) if needs_quotes else text


def _as_data(value: object) -> object:
    """Convert masked data to JSON data, with masks as texts."""
    match value:
        case TextWithMasks(words=words):
            return written(words)
        case ObjectWithMasks(pairs=pairs):
            made: dict[str, object] = {}
            for words, item in pairs:
                name = key = written(words)
                while key in made:
                    key = f"{name} ({len(made) + 1})"
                made[key] = _as_data(item)
            return made
        case ListWithMasks(items=items):
            return [_as_data(item) for item in items]
        case tuple():
            return list(value)
        case _:
            return value
