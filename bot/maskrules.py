"""What the operator wants masked beside what is masked anyway: read, checked, applied.

A pattern is somebody else's, so it is never let loose on a whole text: it sees one window after the
other. That bounds its time, whatever the text, once the check has shown that one window is quick.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bot.looks import REDACTED

MOST_RULES = 50
MOST_CHARACTERS = 200
"""Of one rule."""
WINDOW = 512
"""Characters that a pattern sees at once. Half of it is what it finds for sure."""
PATIENCE_MS = 20
"""Milliseconds that a pattern may take for one window of a text made to be hard for it."""
TRIES = 3
"""A machine that is busy is no fault of the pattern: the quickest try counts."""

_KEY = re.compile(r"[^\W\d_][\w-]*")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_SAMPLES = "a0 A_-.,:/@\n"


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
class Rules:
    """What is masked beside what is masked anyway.

    Attributes:
        keys: Names of keys, each as its words in lower case: a value under such a key is secret.
        patterns: What they match is secret.
        values: Texts that are secret wherever they stand, the longest first.
    """

    keys: tuple[tuple[str, ...], ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    values: tuple[str, ...] = ()

    def has_key(self, words: Sequence[str]) -> bool:
        """Tell whether the words of a key's name hold one of `keys`, side by side."""
        return any(
            key == tuple(words[start : start + len(key)])
            for key in self.keys
            for start in range(len(words) - len(key) + 1)
        )

    def mask_values(self, text: str) -> str:
        """Mask the texts that are secret wherever they stand."""
        for value in self.values:
            text = text.replace(value, REDACTED)
        return text

    def mask_patterns(self, text: str) -> str:
        """Mask what the patterns match, but never what is masked already."""
        for pattern in self.patterns:
            parts = [_masked(pattern, part) for part in text.split(REDACTED)]
            text = REDACTED.join(parts)
        return text


NO_RULES = Rules()


def words_of(name: str) -> list[str]:
    """The words of a key's name, in lower case: `dbPassword` and `DB-PASSWORD` have the same."""
    return [word.lower() for word in _WORDS.findall(name)]


def read_rules(text: str, clock: Callable[[], int]) -> Rules:
    """Read rules, separated by line ends, or by commas that are in no brackets.

    What consists of letters, digits, `_` and `-` alone is the name of a key; all else is a regular
    expression.

    Args:
        text: The rules.
        clock: Milliseconds that go steadily; measures the patterns.

    Raises:
        RuleError: There are too many, or one is too long, broken, too slow, or matches nothing.
    """
    entries = list(dict.fromkeys(entry for entry in map(str.strip, _split(text)) if entry))
    if not entries:
        raise RuleError("it has no rule", "write key names or regular expressions, or unset it")
    if len(entries) > MOST_RULES:
        raise RuleError(f"it has {len(entries)} rules", f"write at most {MOST_RULES}")
    keys = [entry for entry in entries if _KEY.fullmatch(entry)]
    patterns = [_compiled(entry, clock) for entry in entries if not _KEY.fullmatch(entry)]
    return Rules(keys=tuple(tuple(words_of(key)) for key in keys), patterns=tuple(patterns))


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


def _compiled(entry: str, clock: Callable[[], int]) -> re.Pattern[str]:
    named = f"{entry[:40]!r}{'…' if len(entry) > 40 else ''}"
    if len(entry) > MOST_CHARACTERS:
        fault = f"{named} has {len(entry)} characters"
        raise RuleError(fault, f"write at most {MOST_CHARACTERS} for each rule")
    try:
        pattern = re.compile(entry)
    except (re.error, OverflowError, RecursionError) as error:
        raise RuleError(
            f"{named} is no regular expression: {error}", "see docs/configuration.md, Secrets"
        ) from error
    if pattern.search("") or all(pattern.fullmatch(char) for char in "a0 -"):
        raise RuleError(f"{named} matches nothing, or everything", "say what the secret looks like")
    if _is_slow(pattern, clock):
        raise RuleError(
            f"{named} takes too long on some texts",
            "do not repeat what is repeated already, and bound what is repeated, as in {1,40}",
        )
    return pattern


def _is_slow(pattern: re.Pattern[str], clock: Callable[[], int]) -> bool:
    """Try the pattern on texts that grow, so that the first slow one is not yet a very slow one."""
    seeds = _seeds(pattern.pattern)
    for size in (*range(4, 40), 64, 128, 256, WINDOW):
        for seed in seeds:
            text = (seed * (size // len(seed) + 1))[: size - 1] + "\x00"
            if all(_duration(pattern, text, clock) > PATIENCE_MS for _ in range(TRIES)):
                return True
    return False


def _duration(pattern: re.Pattern[str], text: str, clock: Callable[[], int]) -> int:
    began = clock()
    for _ in pattern.finditer(text):
        pass
    return clock() - began


def _seeds(source: str) -> list[str]:
    """What hard texts are made of: single characters, and the pattern's own words."""
    plain = re.sub(r"\\[a-zA-Z]", "", source)
    singles = dict.fromkeys(_SAMPLES + "".join(char for char in plain if char.isalnum()))
    runs = dict.fromkeys([*re.findall(r"\w{2,20}", plain), *re.findall(r"[\w@:/ -]{2,20}", plain)])
    alphabet = "".join(dict.fromkeys(char for char in plain if char.isalnum()))
    several = [*list(runs)[:16], alphabet, "a0", "a ", "aA0"]
    return [*list(singles)[:40], *(seed for seed in several if seed)]


def _masked(pattern: re.Pattern[str], text: str) -> str:
    pieces: list[str] = []
    end = 0
    for first, last in _spans(pattern, text):
        pieces += [text[end:first], REDACTED]
        end = last
    return "".join([*pieces, text[end:]])


def _spans(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """What the pattern finds, window by window; what touches or overlaps is one."""
    step = WINDOW // 2
    found = sorted(
        match.span()
        for start in range(0, max(len(text) - step, 1), step)
        for match in pattern.finditer(text, start, start + WINDOW)
        if match.end() > match.start()
    )
    spans: list[tuple[int, int]] = []
    for first, last in found:
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
        else:
            spans.append((first, last))
    return spans
