"""The operator's own masks, beside those that are always on: read, checked, put in force.

Those in force, with the bot's own secrets and a key, are those of the whole process. Like the
set-up of the log they are no argument of who masks: a place that forgot to ask for them would be a
leak.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from agents.core.patterns import Pattern, PatternError

MOST_RULES = 50
"""Maximum number of rules in `COUNTERSIGN_REDACT`."""
MOST_CHARACTERS = 200
"""Maximum length of one rule in `COUNTERSIGN_REDACT`, in characters."""

_KEY = re.compile(r"[^\W\d_][\w-]*")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")


class RuleError(ValueError):
    """A rule that cannot be used.

    Attributes:
        fault: What is wrong, as a clause.
        remedy: What would be right, as a clause.
    """

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(f"{fault}; {remedy}")
        self.fault = fault
        self.remedy = remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskRules:
    """Masks beside those that are always on.

    Attributes:
        keys: Names of keys, each as its words in lower case: a value under such a key is secret.
        patterns: What they match is secret.
        values: Texts that are secret wherever they stand, the longest first.
    """

    keys: tuple[tuple[str, ...], ...] = ()
    patterns: tuple[Pattern, ...] = ()
    values: tuple[str, ...] = ()

    def has_key(self, words: Sequence[str]) -> bool:
        """Tell whether the words of a key's name hold one of `keys`, side by side."""
        return any(
            key == tuple(words[start : start + len(key)])
            for key in self.keys
            for start in range(len(words) - len(key) + 1)
        )


NO_RULES = MaskRules()


def words_of(name: str) -> list[str]:
    """The words of a key's name, in lower case: `dbPassword` and `DB-PASSWORD` have the same."""
    return [word.lower() for word in _WORDS.findall(name)]


def read_rules(text: str) -> MaskRules:
    """Read rules, separated by line ends, or by commas that are in no brackets.

    What consists of letters, digits, `_` and `-` alone is the name of a key; all else is a regular
    expression.

    Args:
        text: The rules.

    Raises:
        RuleError: There are too many, or one is too long, broken, or matches nothing.
    """
    entries = list(dict.fromkeys(entry for entry in map(str.strip, _split(text)) if entry))
    if not entries:
        raise RuleError("it has no rule", "write key names or regular expressions, or unset it")
    if len(entries) > MOST_RULES:
        raise RuleError(f"it has {len(entries)} rules", f"write at most {MOST_RULES}")
    keys = [entry for entry in entries if _KEY.fullmatch(entry)]
    patterns = [_compiled(entry) for entry in entries if not _KEY.fullmatch(entry)]
    return MaskRules(keys=tuple(tuple(words_of(key)) for key in keys), patterns=tuple(patterns))


def _split(text: str) -> Iterator[str]:
    entry, depth, in_class, is_escaped = "", 0, False, False
    for char in text:
        if char == "\n" or (char == "," and not (depth or in_class or is_escaped)):
            yield entry
            entry, depth, in_class, is_escaped = "", 0, False, False
            continue
        entry += char
        if is_escaped or char == "\\":
            is_escaped = not is_escaped
            continue
        if char in "[]":
            in_class = char == "[" or (in_class and entry.endswith(("[]", "[^]")))
        elif not in_class:
            depth = max(depth + (char in "({") - (char in ")}"), 0)
    yield entry


def _compiled(entry: str) -> Pattern:
    named = f"{entry[:40]!r}{'…' if len(entry) > 40 else ''}"
    if len(entry) > MOST_CHARACTERS:
        fault = f"{named} has {len(entry)} characters"
        raise RuleError(fault, f"write at most {MOST_CHARACTERS} for each rule")
    try:
        pattern = Pattern(entry)
    except PatternError as error:
        raise RuleError(
            f"{named} isn't valid: {error}", "see docs/how-to/manage-secrets.md"
        ) from error
    if pattern.matches("") or all(pattern.matches(char) for char in "a0 -"):
        raise RuleError(f"{named} matches nothing, or everything", "say what the secret looks like")
    return pattern


def joined(pattern: Pattern, text: str) -> list[tuple[int, int]]:
    """Begin and end of all that a pattern finds; what touches is one."""
    spans: list[tuple[int, int]] = []
    for first, last in pattern.spans(text):
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((first, last))
    return spans


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
