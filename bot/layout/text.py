"""Makes untrusted text readable: shows hidden characters and marks cuts.

Slack must not parse such text. This module makes it visible and short enough; `blocks` puts it into
elements that Slack does not parse.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from bot.layout.characters import foreign_letters, is_turned, is_unseen
from bot.redaction.masks import Mask, Words
from bot.redaction.patterns import REDACTED
from bot.words import say
from bot.words.mrkdwn import escape

_MARKS_IN_A_ROW = 3
_BREAKS_IN_A_ROW = 3
_SPACES_IN_A_ROW = 40
_BLANKS = re.compile(r"[ \t]+")
_OF_ONE_KIND = re.compile(r" +|\t+")
_NOTE = re.compile(r"⟨(?:U\+|[0-9])")
"""The beginning of our own notes, which are spelled out in untrusted text."""
_BULLETS = REDACTED.split(" ", maxsplit=1)[0]
_MENTION = re.compile(r"(<@[UW][A-Z0-9]{1,30}>|<!subteam\^S[A-Z0-9]{1,30}>|<#[CG][A-Z0-9]{1,30}>)")
_NOTE_ROOM = 40
_ORDINARY = re.compile(r"[ -~\n\u00a1-\u00ac\u00ae-\u017e]*")
"""Latin letters and signs that are never spelled out: a fast path for most texts."""
_RUNS = re.compile(rf" {{{_SPACES_IN_A_ROW + 1}}}|\n{{{_BREAKS_IN_A_ROW + 1}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownText:
    """A text as people see it.

    Attributes:
        text: The visible text. Not escaped.
        hidden: Number of characters of the original that are not shown.
        altered: Whether invisible or look-alike characters were spelled out.
        turned: Whether there is right-to-left text.
    """

    text: str
    hidden: int = 0
    altered: bool = False
    turned: bool = False


class Grouped(int):
    """A number for people: with commas between the thousands."""

    def __str__(self) -> str:
        return f"{int(self):,}"


def width(text: str) -> int:
    """Return the number of characters of a text after Slack's escaping."""
    return len(text) + 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))


def show(text: str | Words, most: int, *, one_line: bool = False, lines: int = 10_000) -> ShownText:
    """Make a text visible, and cut it.

    Args:
        text: Any text. Secrets must be masked already; text that only looks like a mask is spelled
            out.
        most: Maximum number of characters of the result, after escaping.
        one_line: Whether to show line breaks as a sign.
        lines: Maximum number of lines of the result.

    Returns:
        The longest beginning of the text that fits, cut between two characters.
    """
    if (made := _shown_plain(text, most, one_line=one_line, lines=lines)) is not None:
        return ShownText(text=made, hidden=_size(text) - len(made))
    pieces: list[str] = []
    taken = used = breaks = 0
    altered = False
    for piece, size, odd in _pieces(text, one_line=one_line):
        used += width(piece)
        breaks += piece.count("\n")
        if used > most or breaks >= lines:
            break
        pieces.append(piece)
        taken += size
        altered = altered or odd
    made = "".join(pieces)
    hidden = _size(text) - taken
    return ShownText(text=made, hidden=hidden, altered=altered, turned=is_turned(made))


def _shown_plain(text: str | Words, most: int, *, one_line: bool, lines: int) -> str | None:
    """Return the beginning of a text without special characters, else None."""
    plain = _only_text(text)
    if plain is None:
        return None
    # Long enough to include a run of spaces that must be spelled out
    head = plain[: most + _SPACES_IN_A_ROW + 1]
    if not _is_ordinary(head):
        return None
    if one_line:
        return _fitting(head.replace("\n", "↵"), most)
    return "\n".join(_fitting(head, most).split("\n")[:lines])


def _only_text(text: str | Words) -> str | None:
    """Return a text without masks, else None."""
    if isinstance(text, str):
        return text
    return text[0] if len(text) == 1 and not isinstance(text[0], Mask) else None


def _is_ordinary(text: str) -> bool:
    return _ORDINARY.fullmatch(text) is not None and _RUNS.search(text) is None


def _fitting(text: str, most: int) -> str:
    """Return the longest beginning with a maximum number of characters after escaping."""
    head = text[: max(most, 0)]
    if width(head) <= most:
        return head
    return head[: bisect_right(range(1, len(head) + 1), most, key=lambda n: width(head[:n]))]


def _size(text: str | Words) -> int:
    """Return the number of characters of the original."""
    if isinstance(text, str):
        return len(text)
    return sum(part.size if isinstance(part, Mask) else len(part) for part in text)


def clip(text: str | Words, most: int) -> str:
    """Make a text visible on one line, with a note about the cut. Not escaped."""
    view = show(text, most, one_line=True)
    if not view.hidden:
        return view.text
    view = show(text, max(most - _NOTE_ROOM, most // 2), one_line=True)
    cut = f"{view.text}{more(view.hidden)}"
    return cut if width(cut) <= most else f"{view.text}…"


def clip_mrkdwn(text: str, most: int) -> str:
    """Escape a text, made visible and cut to a maximum number of escaped characters."""
    return escape(clip(text, most))


def more(hidden: int) -> str:
    """Return the note about hidden characters."""
    return say("line.more_characters", n=hidden, count=f"{hidden:,}")


def chunks(text: str | Words, most: int) -> Iterator[str]:
    """Make a whole text visible, in pieces of a maximum number of characters.

    They are for rich text, which Slack does not escape.
    """
    plain = _only_text(text)
    if plain is not None and _is_ordinary(plain):
        yield from (plain[start : start + most] for start in range(0, len(plain), most))
        return
    pieces: list[str] = []
    used = 0
    for piece, _, _ in _pieces(text, one_line=False):
        if used + len(piece) > most:
            yield "".join(pieces)
            pieces, used = [], 0
        pieces.append(piece)
        used += len(piece)
    if pieces:
        yield "".join(pieces)


def own_words(text: str, most: int) -> str:
    """Escape our own words, but keep mentions of people and user groups."""
    pieces: list[str] = []
    room = most
    for part in _MENTION.split(text):
        if _MENTION.fullmatch(part):
            piece, cut = (part, False) if len(part) <= room else ("", True)
        else:
            view = show(part, room, one_line=True)
            piece, cut = escape(view.text), bool(view.hidden)
        pieces.append(piece)
        room -= len(piece)
        if cut:
            pieces.append("…")
            break
    return "".join(pieces)


def is_plain(text: str) -> bool:
    """Whether all characters of a text are visible as they are."""
    if _is_ordinary(text):
        return True
    return all(not odd for _, _, odd in _pieces(text, one_line=False))


_Piece = tuple[str, int, bool]
"""A visible text, the number of replaced characters, and if they are spelled out."""


def _pieces(text: str | Words, *, one_line: bool) -> Iterator[_Piece]:
    if isinstance(text, str):
        yield from _Reader(text, one_line=one_line, has_masks=False).pieces()
        return
    for part in text:
        if isinstance(part, Mask):
            yield str(part), part.size, False
        else:
            yield from _Reader(part, one_line=one_line, has_masks=True).pieces()


class _Reader:
    """Reads a text character by character.

    Args:
        one_line: Whether line breaks are shown as a sign.
        has_masks: Whether masks are beside the text, so that it must not imitate them.
    """

    def __init__(self, text: str, *, one_line: bool, has_masks: bool) -> None:
        self._text = text
        self._one_line = one_line
        self._has_masks = has_masks
        self._is_ascii = text.isascii()
        self._word_end = 0
        self._foreign = frozenset[str]()
        self._blank_end = 0
        self._marks = 0

    def pieces(self) -> Iterator[_Piece]:
        """Yield the pieces."""
        index, text, size = 0, self._text, len(self._text)
        while index < size:
            character = text[index]
            if "!" <= character <= "~" and self._is_ascii:  # fast path for nearly all characters
                index += 1
                yield character, 1, False
                continue
            if character in " \t" and index >= self._blank_end:
                self._blank_end, notes = self._blanks(index)
                yield from notes
                index = self._blank_end if notes else index
                if notes:
                    continue
            if character == "\n":
                run = _run_of_breaks(text, index)
                self._marks = 0
                yield _breaks(run, one_line=self._one_line), run, run > _BREAKS_IN_A_ROW
                index += run
                continue
            odd = self._is_odd(character, index)
            yield (f"⟨U+{ord(character):04X}⟩" if odd else character), 1, odd
            index += 1

    def _is_odd(self, character: str, index: int) -> bool:
        if index >= self._word_end:
            self._word_end, self._foreign = foreign_letters(self._text, index)
        if character.isascii():
            self._marks = 0
            return (
                character in self._foreign
                or (character < " " and is_unseen(character))
                or (character == "\x7f")
            )
        is_mark = unicodedata.category(character) in {"Mn", "Me"}
        # Stacked combining marks can cover the lines above and below.
        self._marks = self._marks + 1 if is_mark else 0
        return (
            self._marks > _MARKS_IN_A_ROW
            or character in self._foreign
            or is_unseen(character)
            or self._is_ours(character, index)
        )

    def _is_ours(self, character: str, index: int) -> bool:
        """Whether a character would look like the start of one of our notes or masks."""
        match character:
            case "⟨":
                return _NOTE.match(self._text, index) is not None
            case "↵":
                return self._one_line
            case "•":
                return self._has_masks and self._text.startswith(_BULLETS, index)
            case _:
                return False

    def _blanks(self, index: int) -> tuple[int, list[_Piece]]:
        """Return the end of a run of spaces, and the notes that replace a long run."""
        run = _BLANKS.match(self._text, index)
        if run is None or len(run[0]) <= _SPACES_IN_A_ROW:
            return (run.end() if run else index), []
        kinds = [match[0] for match in _OF_ONE_KIND.finditer(run[0])]
        return run.end(), [(_blank_note(kind), len(kind), True) for kind in kinds]


def _blank_note(run: str) -> str:
    what = "space" if run[0] == " " else "tab"
    return f"⟨{len(run):,} {what}{'' if len(run) == 1 else 's'}⟩"


def _run_of_breaks(text: str, start: int) -> int:
    end = start
    while end < len(text) and text[end] == "\n":
        end += 1
    run = end - start
    return run if run > _BREAKS_IN_A_ROW else 1


def _breaks(run: int, *, one_line: bool) -> str:
    note = f"⟨{say('line.line_breaks', n=run, count=f'{run:,}')}⟩"
    if one_line:
        return "↵" if run == 1 else note
    return "\n" if run == 1 else f"\n{note}\n"
