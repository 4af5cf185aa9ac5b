"""Untrusted text made fit to be read: nothing hidden in it, and cut where the reader can tell.

Slack is never trusted to parse such text. Here it only becomes visible and short enough; `blocks`
puts it where nothing is parsed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from bot.mrkdwn import escape

_UNSEEN = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    | set(range(0x180B, 0x1810))
    | set(range(0xFE00, 0xFE0E))
    | set(range(0xE0000, 0xE1000))
)
"""Characters that show nothing, though their category does not say so."""
_UNSEEN_KINDS = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_MARKS_IN_A_ROW = 3
_BREAKS_IN_A_ROW = 3
_MENTION = re.compile(r"(<@[UW][A-Z0-9]{1,30}>|<!subteam\^S[A-Z0-9]{1,30}>|<#[CG][A-Z0-9]{1,30}>)")
_PLAIN = re.compile(r"[\t\n -~]*")
_NOTE_ROOM = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A text as people see it.

    Attributes:
        text: What is shown. Not escaped.
        hidden: How many characters of the original are not shown.
        altered: Whether characters that cannot be seen were spelled out.
    """

    text: str
    hidden: int = 0
    altered: bool = False


def width(text: str) -> int:
    """Characters of a text after Slack escaped it."""
    return len(text) + 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))


def show(text: str, most: int, *, one_line: bool = False, lines: int = 10_000) -> Shown:
    """Make a text visible, and cut it.

    Args:
        text: Any text; secrets are masked before.
        most: Characters of the result, measured on the escaped text.
        one_line: Write line breaks as a sign.
        lines: Lines of the result at most.

    Returns:
        The beginning of the text that fits, cut between two characters.
    """
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
    return Shown(text="".join(pieces), hidden=len(text) - taken, altered=altered)


def clip(text: str, most: int) -> str:
    """Make a text visible on one line, with a note of how much was cut away. Not escaped."""
    shown = show(text, most, one_line=True)
    if not shown.hidden:
        return shown.text
    shown = show(text, max(most - _NOTE_ROOM, most // 2), one_line=True)
    cut = f"{shown.text}{more(shown.hidden)}"
    return cut if width(cut) <= most else f"{shown.text}…"


def clip_mrkdwn(text: str, most: int) -> str:
    """Escape a text, made visible and cut; the result has at most so many characters."""
    return escape(clip(text, most))


def more(hidden: int) -> str:
    """Say how much is not shown."""
    return f"… {hidden:,} more character{'' if hidden == 1 else 's'}"


def chunks(text: str, most: int) -> Iterator[str]:
    """Make a text visible, whole, in pieces of at most so many escaped characters."""
    pieces: list[str] = []
    used = 0
    for piece, _, _ in _pieces(text, one_line=False):
        size = 1 if len(piece) == 1 and piece not in "&<>" else width(piece)
        if used + size > most:
            yield "".join(pieces)
            pieces, used = [], 0
        pieces.append(piece)
        used += size
    if pieces:
        yield "".join(pieces)


def own_words(text: str, most: int) -> str:
    """Escape our own words, but keep the mentions of people and user groups in them."""
    kept: list[str] = []
    room = most
    for part in _MENTION.split(text):
        if _MENTION.fullmatch(part):
            piece, cut = (part, False) if len(part) <= room else ("", True)
        else:
            shown = show(part, room, one_line=True)
            piece, cut = escape(shown.text), bool(shown.hidden)
        kept.append(piece)
        room -= len(piece)
        if cut:
            kept.append("…")
            break
    return "".join(kept)


def is_plain(text: str) -> bool:
    """Tell whether all of a text can be seen as it is."""
    if _PLAIN.fullmatch(text):
        return "\n" * (_BREAKS_IN_A_ROW + 1) not in text
    return all(not odd for _, _, odd in _pieces(text, one_line=False))


def _pieces(text: str, *, one_line: bool) -> Iterator[tuple[str, int, bool]]:
    """Yield what is shown, how many characters it stands for, and whether they are spelled out."""
    index = marks = 0
    while index < len(text):
        character = text[index]
        if " " <= character <= "~":  # nearly all characters: no need to ask what they are
            yield character, 1, False
            index, marks = index + 1, 0
            continue
        marks = marks + 1 if unicodedata.category(character) in {"Mn", "Me"} else 0
        if character == "\n":
            run = _run_of_breaks(text, index)
            yield _breaks(run, one_line=one_line), run, run > _BREAKS_IN_A_ROW
            index += run
            continue
        odd = marks > _MARKS_IN_A_ROW or _is_unseen(character) or text.startswith("⟨U+", index)
        yield (f"⟨U+{ord(character):04X}⟩" if odd else character), 1, odd
        index += 1


def _run_of_breaks(text: str, start: int) -> int:
    end = start
    while end < len(text) and text[end] == "\n":
        end += 1
    run = end - start
    return run if run > _BREAKS_IN_A_ROW else 1


def _breaks(run: int, *, one_line: bool) -> str:
    note = f"⟨{run:,} line breaks⟩"
    if one_line:
        return "↵" if run == 1 else note
    return "\n" if run == 1 else f"\n{note}\n"


def _is_unseen(character: str) -> bool:
    if character == "\t":
        return False
    code = ord(character)
    if code in _UNSEEN or code & 0xFFFE == 0xFFFE:
        return True
    return unicodedata.category(character) in _UNSEEN_KINDS
