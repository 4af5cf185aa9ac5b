"""Masks secrets by the name of their key and by their form: the single choke point.

All texts of models, tools and people pass here on their way to Slack, logs, audit and metrics. In
doubt, a text is masked. The operator's rules (`COUNTERSIGN_REDACT`) and the bot's own secrets apply
to the whole process, like the configuration of the log. As an argument of the callers, a forgotten
rule would leak.
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
    """Mask the secrets in JSON data.

    Args:
        key: Name of the value; empty without one.
        value: JSON data of any depth.

    Returns:
        The value with `REDACTED` in place of secrets; an equal value without secrets.
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
    """Mask secrets, and texts that look like secrets, inside a text."""
    rules = rules_now()
    text = mask_values(text, rules)
    if rules.keys or may_have_guess(text):
        text = _mask_guesses(text)
    for pattern in rules.patterns:  # outside of existing masks
        parts = [mask_spans(part, joined(pattern, part)) for part in text.split(REDACTED)]
        text = REDACTED.join(parts)
    return text


def _mask_guesses(text: str) -> str:
    """Mask texts with the form of a secret, and values of secret names."""
    text = ENCODED.mask(mask_looks(text))
    if rules_now().keys or NAMES_GATE.finds(text):
        for place in ALL_PLACES:
            text = place.mask(text)
    return CURL.sub(rf"\g<keep>{REDACTED}", text) if CURL_GATE.finds(text) else text


def mask_values(text: str, rules: MaskRules) -> str:
    """Mask every occurrence of the secret texts of rules."""
    for value in rules.values:
        text = text.replace(value, REDACTED)
    return text


def mask_words(text: str, data: object) -> str:
    """Mask secrets in a text that was built from data, such as a title.

    Args:
        text: The text. It may contain secret values without their names.
        data: The JSON data.
    """
    for value in sorted(set(_secrets_in(data, mask("", data))), key=len, reverse=True):
        whole = re.escape(value)
        if len(value) < SHORTEST_VALUE:  # do not mask a short text inside of other words
            whole = rf"(?<!\w){whole}(?!\w)"
        text = re.sub(whole, REDACTED, text)
    return mask_text(text)


def _secrets_in(value: object, masked: object) -> Iterator[str]:
    """Yield the values of data that are masked as a whole."""
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
    is_telling = isinstance(label, str) and (is_secret_key(label) or names_card(label))
    secret_label = str(label) if is_telling else ""
    secret = secret_fields(value)
    masked: dict[str, object] = {}
    for key, item in value.items():
        name = text = mask_text(str(key))
        while text in masked:  # masked names can be equal; a duplicate key would drop a value
            text = f"{name} ({len(masked) + 1})"
        place = secret_label if secret_label and str(key).lower() == "value" else str(key)
        masked[text] = mask("secret" if key in secret else place, item)
    return masked


def _mask_list(items: Sequence[object], key: str) -> list[object]:
    masked: list[object] = []
    option = ""
    for item in items:
        masked.append(mask(option or (key if names_card(key) else ""), item))
        # ["--password", "…"]: the arguments of a command
        is_option = isinstance(item, str) and item.startswith("-") and is_secret_key(item)
        option = str(item) if is_option else ""
    return masked
