"""The masks in force in the whole process: the operator's, the bot's own secrets, a key.

Like the set-up of the log it is no argument of those who mask: a place that forgot to ask for it
would be a leak.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from bot.redaction.rules import NO_RULES, MaskRules

SHORTEST_VALUE = 6
"""A shorter secret would be masked inside ordinary words; patterns still find it in its place."""


_rules = NO_RULES
_parts: list[MaskRules] = []
_keys: list[bytes] = []


@contextmanager
def in_force(rules: MaskRules, *, secrets: Sequence[str] = (), key: bytes = b"") -> Iterator[None]:
    """Mask more than what is masked anyway, in the whole process, as long as the block lasts.

    Args:
        rules: What the operator wants masked.
        secrets: Texts that are masked wherever they stand; those that are too short are not.
        key: Makes the fingerprints of what is masked in calls; without one there are none.
    """
    part = with_secrets(rules, secrets)
    _parts.append(part)
    _keys.append(key)
    _join()
    try:
        yield
    finally:
        _parts.remove(part)
        _keys.remove(key)
        _join()


def with_secrets(rules: MaskRules, secrets: Sequence[str]) -> MaskRules:
    """Add texts that are masked wherever they stand; those that are too short are left out."""
    long = {secret for secret in secrets if len(secret) >= SHORTEST_VALUE}
    values = sorted({*rules.values, *long}, key=len, reverse=True)
    return replace(rules, values=tuple(values))


def print_key(secret: str) -> bytes:
    """Derive the key of fingerprints from a secret that all replicas of an installation have."""
    return hmac.digest(secret.encode(), b"countersign.fingerprint/1", "sha256")


def print_of(clear: str) -> str:
    """A fingerprint of what is masked: 12 hexadecimal digits; empty when no key is in force.

    Equal texts have equal ones, so that people can compare what they do not see. Without the key
    nobody can try out texts until one fits.
    """
    key = next((key for key in reversed(_keys) if key), b"")
    if not key:
        return ""
    return hmac.digest(key, clear.encode(errors="surrogatepass"), "sha256").hex()[:12]


def _join() -> None:
    global _rules  # noqa: PLW0603 - see the first lines of this file
    _rules = MaskRules(
        keys=tuple(dict.fromkeys(key for part in _parts for key in part.keys)),
        patterns=tuple(dict.fromkeys(one for part in _parts for one in part.patterns)),
        values=tuple(sorted({one for part in _parts for one in part.values}, key=len)[::-1]),
    )


def rules_now() -> MaskRules:
    """Return the operator's masks, and the bot's own secrets."""
    return _rules


def own_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the texts that are surely secret: see `in_force`."""
    found = sorted((at, -len(value)) for value in _rules.values for at in _places_of(value, text))
    end = 0
    for at, size in found:
        if at >= end:
            end = at - size
            yield at, end


def _places_of(value: str, text: str) -> Iterator[int]:
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + len(value))
