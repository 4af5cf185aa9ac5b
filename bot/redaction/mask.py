"""Masks secrets by the name of their key and by their look: the one choke point.

Whatever goes to Slack, logs, audit or metrics and comes from a model, a tool or a person passes
here. When in doubt, it masks. What the operator adds (`COUNTERSIGN_REDACT`) and the bot's own
secrets are put in force for the whole process, like the set-up of the log: a place that forgot to
ask for them would be a leak.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from bot.redaction.key_value_patterns import (
    ALL_PLACES,
    CURL,
    CURL_GATE,
    ENCODED,
    NAMES_GATE,
    may_have_guess,
)
from bot.redaction.names import is_harmless, is_secret_key, secret_fields
from bot.redaction.patterns import (
    REDACTED,
    is_card_value,
    mask_looks,
    mask_spans,
    names_card,
)
from bot.redaction.rules import (
    SHORTEST_VALUE,
    MaskRules,
    in_force,
    joined,
    own_spans,
    print_key,
    print_of,
    rules_now,
)

__all__ = [
    "REDACTED",
    "in_force",
    "is_harmless",
    "is_secret_key",
    "mask",
    "mask_text",
    "mask_values",
    "mask_words",
    "own_spans",
    "print_key",
    "print_of",
]


def mask(key: str, value: object) -> object:
    """Mask what is secret in a value of JSON data.

    Args:
        key: The name that the value has; empty when it has none.
        value: JSON data of any depth.

    Returns:
        The value with `REDACTED` in place of secrets; equal to the value when there are none.
    """
    if (is_secret_key(key) and not is_harmless(key, value)) or is_card_value(key, value):
        return REDACTED
    match value:
        case str():
            return mask_text(value)
        case dict():
            return _mask_object(value)
        case list() | tuple():
            return _mask_list(value, key)
        case _:
            return value


def mask_text(text: str) -> str:
    """Mask what is, or looks like, a secret inside a text."""
    text = mask_values(text, rules_now())
    if rules_now().keys or may_have_guess(text):
        text = _mask_guesses(text)
    return _mask_patterns(text, rules_now())


def _mask_guesses(text: str) -> str:
    """Mask what has the form of a secret, or stands where a name says that it is one."""
    text = ENCODED.mask(mask_looks(text))
    if rules_now().keys or NAMES_GATE.finds(text):
        for place in ALL_PLACES:
            text = place.mask(text)
    return CURL.sub(rf"\g<keep>{REDACTED}", text) if CURL_GATE.finds(text) else text


def mask_values(text: str, rules: MaskRules) -> str:
    """Mask the texts that rules call secret wherever they stand."""
    for value in rules.values:
        text = text.replace(value, REDACTED)
    return text


def _mask_patterns(text: str, rules: MaskRules) -> str:
    """Mask what the patterns of rules match, but never what is masked already."""
    for pattern in rules.patterns:
        parts = [mask_spans(part, joined(pattern, part)) for part in text.split(REDACTED)]
        text = REDACTED.join(parts)
    return text


def mask_words(text: str, data: object) -> str:
    """Mask what is, or looks like, a secret in a text that was made from data, such as a title.

    Args:
        text: May have values of the data in it, where no name says that they are secret.
        data: JSON data.
    """
    for value in sorted(set(_secrets_in(data, mask("", data))), key=len, reverse=True):
        whole = re.escape(value)
        if len(value) < SHORTEST_VALUE:  # not inside of other words
            whole = rf"(?<!\w){whole}(?!\w)"
        text = re.sub(whole, REDACTED, text)
    return mask_text(text)


def _secrets_in(value: object, masked: object) -> Iterator[str]:
    """The values of data that are masked as a whole."""
    match value, masked:
        case dict(), dict():
            for item, shown in zip(value.values(), masked.values(), strict=True):
                yield from _secrets_in(item, shown)
        case list() | tuple(), list():
            for item, shown in zip(value, masked, strict=True):
                yield from _secrets_in(item, shown)
        case _ if masked == REDACTED:
            yield from (leaf for leaf in _leaves(value) if len(leaf) > 2)


def _leaves(value: object) -> Iterator[str]:
    match value:
        case dict():
            yield from (leaf for item in value.values() for leaf in _leaves(item))
        case list() | tuple():
            yield from (leaf for item in value for leaf in _leaves(item))
        case str():
            yield value
            yield from value.splitlines()
        case _:
            yield str(value)


def _mask_object(value: Mapping[str, object]) -> dict[str, object]:
    # {"name": "DB_PASSWORD", "value": "…"}: a list of variables or headers
    label = next((value[name] for name in ("name", "key", "Name", "Key") if name in value), "")
    secret_label = label if isinstance(label, str) and _says_what(label) else ""
    secret = secret_fields(value)
    masked: dict[str, object] = {}
    for key, item in value.items():
        name = text = mask_text(str(key))
        while text in masked:  # two secret names must not become one, or a value would vanish
            text = f"{name} ({len(masked) + 1})"
        place = secret_label if secret_label and str(key).lower() == "value" else str(key)
        masked[text] = mask("secret" if key in secret else place, item)
    return masked


def _says_what(name: str) -> bool:
    return is_secret_key(name) or names_card(name)


def _mask_list(items: Sequence[object], key: str) -> list[object]:
    masked: list[object] = []
    option = ""
    for item in items:
        masked.append(mask(option or (key if names_card(key) else ""), item))
        # ["--password", "…"]: the arguments of a command
        is_option = isinstance(item, str) and item.startswith("-") and is_secret_key(item)
        option = str(item) if is_option else ""
    return masked
