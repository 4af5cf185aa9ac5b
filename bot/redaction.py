"""Masks secrets by the name of their key and by their look: the one choke point.

Whatever goes to Slack, logs or metrics and comes from a model, a tool or a person passes here.
When in doubt, it masks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

REDACTED = "•••• redacted"

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS = frozenset(
    {
        "apikey",
        "authorization",
        "bearer",
        "cookie",
        "credential",
        "credentials",
        "passphrase",
        "passwd",
        "password",
        "passwords",
        "pwd",
        "secret",
        "secrets",
        "token",
        "tokens",
    }
)
_SECRET_PAIRS = frozenset(
    {("api", "key"), ("api", "keys"), ("access", "key"), ("private", "key"), ("signing", "key")}
)
_COUNTED = frozenset({"token", "tokens"})
"""Words that a plain number beside them does not make secret: `max_tokens: 500`."""
_HARMLESS_ENDS = frozenset({"count", "length", "limit", "name", "ttl", "type"})

_PATTERNS = (
    re.compile(
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}KEY-----|\Z)", re.DOTALL
    ),
    re.compile(r"\bxox[a-z]{1,2}(?:\.xox[a-z])?-[A-Za-z0-9-]{6,}"),
    re.compile(r"\bxapp-[A-Za-z0-9-]{6,}"),
    re.compile(r"\b[sr]k[-_][A-Za-z0-9_-]{16,}"),
    re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    re.compile(r"\bAIza[0-9A-Za-z_-]{30,}"),
    re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{16,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*"),
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_LOGIN = re.compile(r"(://[^\s/:@]{0,200}:)[^\s/@]{1,500}(?=@)")
_ASSIGNED = re.compile(
    r"((?:password|passwd|pwd|passphrase|secret|api[_-]?key|access[_-]?key|token)"
    r"[\"']?\s{0,3}[=:]\s{0,3})(?:\"[^\"\n]+\"|'[^'\n]+'|[^\s\"',;&]+)",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?<![\d.])[3-6]\d{3}(?:[ -]?\d{2,6}){2,4}(?![\d.])")


def is_secret_key(key: str) -> bool:
    """Tell whether the name of a key says that its value is a secret."""
    words = [word.lower() for word in _WORDS.findall(key)]
    if words and words[-1] in _HARMLESS_ENDS:
        return False
    pairs = pairwise(words)
    return bool(_SECRET_WORDS.intersection(words)) or any(pair in _SECRET_PAIRS for pair in pairs)


def mask(key: str, value: object) -> object:
    """Mask what is secret in a value of JSON data.

    Args:
        key: The name that the value has; empty when it has none.
        value: JSON data of any depth.

    Returns:
        The value with `REDACTED` in place of secrets; equal to the value when there are none.
    """
    if is_secret_key(key) and not _is_harmless(key, value):
        return REDACTED
    match value:
        case str():
            return mask_text(value)
        case dict():
            return _mask_object(value)
        case list() | tuple():
            return [mask(key, item) for item in value]
        case int() if not isinstance(value, bool) and value.bit_length() < 80:
            return REDACTED if _CARD.fullmatch(str(value)) and _luhn(str(value)) else value
        case _:
            return value


def mask_text(text: str) -> str:
    """Mask what looks like a secret inside a text."""
    for pattern in _PATTERNS:
        text = pattern.sub(REDACTED, text)
    text = _BEARER.sub(rf"\1 {REDACTED}", text)
    text = _LOGIN.sub(rf"\1{REDACTED}", text)
    text = _ASSIGNED.sub(_assigned, text)
    return _CARD.sub(_card, text)


def _mask_object(value: Mapping[object, object]) -> dict[str, object]:
    masked: dict[str, object] = {}
    for key, item in value.items():
        name = shown = mask_text(str(key))
        while shown in masked:  # two secret names must not become one, or a value would vanish
            shown = f"{name} ({len(masked) + 1})"
        masked[shown] = mask(str(key), item)
    return masked


def _assigned(found: re.Match[str]) -> str:
    return found[0] if found[0].endswith(REDACTED[:4]) else f"{found[1]}{REDACTED}"


def _card(found: re.Match[str]) -> str:
    return REDACTED if _luhn(found[0]) else found[0]


def _is_harmless(key: str, value: object) -> bool:
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return True
    words = {word.lower() for word in _WORDS.findall(key)} & _SECRET_WORDS
    return isinstance(value, int | float) and words <= _COUNTED


def _luhn(text: str) -> bool:
    digits = [int(digit) for digit in text if digit.isdigit()]
    if not 13 <= len(digits) <= 19:
        return False
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
