"""Regular expressions of operators and policies, compiled with RE2 in linear time.

RE2 has no look-around and no back-references. Unsupported syntax is refused at compile time.

Sources:
    https://github.com/google/re2/wiki/Syntax, https://github.com/google/re2/wiki/WhyRE2
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, cast

import re2

MOST_STEPS = 1_000
"""Maximum number of steps of a compiled regular expression."""

_LARGE = "it is too large; repeat less often, as in {1,40}"
_SURROGATES = re.compile("[\ud800-\udfff]")
_FAULTS = (
    (r"\(\?<?[=!]", "look-around such as (?=…) is not possible"),
    (r"\\[1-9]|\(\?P=", r"a back-reference such as \1 is not possible"),
    (r"\(\?>|[*+?}]\+", "possessive and atomic groups such as a++ are neither possible nor needed"),
    (r"\\Z", r"\Z is not known; write \z for the end of the text"),
    (r"\\[uUN]", r"\u and \N are not known; write the character itself, or \x{416}"),
)


class PatternError(ValueError):
    """A regular expression cannot be used. The text is a clause that gives the reason."""


class _Match(Protocol):
    def span(self) -> tuple[int, int]: ...


class _Compiled(Protocol):
    @property
    def programsize(self) -> int: ...
    def finditer(self, text: str) -> Iterator[_Match]: ...
    def fullmatch(self, text: str) -> _Match | None: ...
    def search(
        self, text: str | bytes, pos: int | None = None, endpos: int | None = None
    ) -> _Match | None: ...


@dataclass(frozen=True, slots=True)
class Pattern:
    r"""A compiled regular expression; equal to another with the same text.

    `\d`, `\w`, `\s` and `\b` match ASCII only; `\pL` is a letter of any script.

    Attributes:
        text: The expression as written.
        dot_is_all: Whether a dot also matches line ends.
    """

    text: str
    dot_is_all: bool = False
    _compiled: _Compiled = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compiled", _compile(self.text, dot_is_all=self.dot_is_all))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of all matches that are not empty, in order."""
        for match in self._compiled.finditer(_readable(text)):
            begin, end = match.span()
            if end > begin:
                yield begin, end

    def matches(self, text: str) -> bool:
        """Whether the whole text matches. Half of a surrogate pair is read as U+FFFD."""
        return self._compiled.fullmatch(_readable(text)) is not None

    def finds(self, text: str) -> bool:
        """Whether the text contains a match."""
        # Bytes need no conversion of offsets to characters: a third of the time for a short text.
        return self._compiled.search(_readable(text).encode()) is not None

    def first_in(self, data: bytes, begin: int) -> tuple[int, int] | None:
        """Return start and end of the first match at or after a byte offset, or None.

        The data is text encoded by `utf8`.
        """
        match = self._compiled.search(data, begin)
        return None if match is None else match.span()


def utf8(text: str) -> bytes:
    """Encode a text for a search. Half of a surrogate pair becomes U+FFFD."""
    return _readable(text).encode()


def _readable(text: str) -> str:
    """Replace halves of surrogate pairs by U+FFFD. The length stays the same."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _compile(text: str, *, dot_is_all: bool) -> _Compiled:
    """Compile a regular expression."""
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = dot_is_all
    try:
        compiled = cast("_Compiled", re2.compile(text, options))
    except re2.error as error:
        raise PatternError(_fault(text, error)) from error
    except UnicodeEncodeError as error:
        raise PatternError("it has half of a character in it") from error
    if compiled.programsize > MOST_STEPS:
        raise PatternError(_LARGE)
    return compiled


def _fault(text: str, error: Exception) -> str:
    for form, fault in _FAULTS:
        if re.search(form, text):
            return fault
    reason = error.args[0] if error.args else ""
    words = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return _LARGE if words.startswith(("pattern too large", "invalid repetition")) else words
