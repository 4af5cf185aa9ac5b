"""The operator's masking rules, in addition to the built-in ones: parse, check, activate.

The active rules, with the bot's own secrets and a key, apply to the whole process, like the
configuration of the log. As an argument of the callers, a forgotten rule would leak.
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
        fault: The fault, as a clause.
        remedy: The remedy, as a clause.
    """

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(f"{fault}; {remedy}")
        self.fault = fault
        self.remedy = remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskRules:
    """Masking rules in addition to the built-in ones.

    Attributes:
        keys: Secret names of keys, each as its words in lower case.
        patterns: Patterns of secrets.
        values: Secret texts, the longest first.
    """

    keys: tuple[tuple[str, ...], ...] = ()
    patterns: tuple[Pattern, ...] = ()
    values: tuple[str, ...] = ()

    def has_key(self, words: Sequence[str]) -> bool:
        """Whether the words of a key's name contain one of `keys`, as adjacent words."""
        return any(
            key == tuple(words[start : start + len(key)])
            for key in self.keys
            for start in range(len(words) - len(key) + 1)
        )


NO_RULES = MaskRules()


def words_of(name: str) -> list[str]:
    """Return the words of a key's name in lower case; equal for `dbPassword` and `DB-PASSWORD`."""
    return [word.lower() for word in _WORDS.findall(name)]


def read_rules(text: str) -> MaskRules:
    """Parse rules, separated by line ends, or by commas outside of brackets.

    A rule of letters, digits, `_` and `-` alone is the name of a key; every other rule is a regular
    expression.

    Args:
        text: The rules.

    Raises:
        RuleError: There are too many rules, or a rule is too long, invalid, or matches nothing or
            everything.
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
    """Return start and end of a pattern's matches; adjacent matches are joined."""
    spans: list[tuple[int, int]] = []
    for first, last in pattern.spans(text):
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((first, last))
    return spans


SHORTEST_VALUE = 6
"""Minimum length of a secret text, in characters. A shorter one would be masked inside of ordinary
words. Patterns and names of keys still find it.
"""


_rules = NO_RULES
_parts: list[MaskRules] = []
_keys: list[bytes] = []


@contextmanager
def in_force(rules: MaskRules, *, secrets: Sequence[str] = (), key: bytes = b"") -> Iterator[None]:
    """Activate rules and secrets in the whole process while the block runs.

    Args:
        rules: The operator's rules.
        secrets: Texts to mask everywhere; too short ones are ignored.
        key: Key of the fingerprints in masked calls; without a key there are no fingerprints.
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
    """Add texts that are masked everywhere; too short ones are ignored."""
    long = {secret for secret in secrets if len(secret) >= SHORTEST_VALUE}
    values = sorted({*rules.values, *long}, key=len, reverse=True)
    return replace(rules, values=tuple(values))


def print_key(secret: str) -> bytes:
    """Derive the key of fingerprints from a secret that all processes of a deployment have."""
    return hmac.digest(secret.encode(), b"countersign.fingerprint/1", "sha256")


def print_of(clear: str) -> str:
    """Return the fingerprint of a masked text: 12 hexadecimal digits; empty without a key.

    Equal texts have equal fingerprints, so that people can compare hidden values. Without the key,
    nobody can find a text by trying candidates.
    """
    key = next((key for key in reversed(_keys) if key), b"")
    if not key:
        return ""
    return hmac.digest(key, clear.encode(errors="surrogatepass"), "sha256").hex()[:12]


def _join() -> None:
    global _rules  # noqa: PLW0603 - see the first lines of this file
    _rules = MaskRules(
        keys=tuple(dict.fromkeys(key for part in _parts for key in part.keys)),
        patterns=tuple(dict.fromkeys(pattern for part in _parts for pattern in part.patterns)),
        values=tuple(sorted({value for part in _parts for value in part.values}, key=len)[::-1]),
    )


def rules_now() -> MaskRules:
    """Return the active rules: the operator's, and the bot's own secrets."""
    return _rules


def own_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the active secret texts; see `in_force`."""
    places = sorted((at, -len(value)) for value in _rules.values for at in _places_of(value, text))
    end = 0
    for at, size in places:
        if at >= end:
            end = at - size
            yield at, end


def _places_of(value: str, text: str) -> Iterator[int]:
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + len(value))
