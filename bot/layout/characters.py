"""Detects deceptive characters: invisible ones, odd spaces, look-alike letters.

Scripts are read from the letters' names in `unicodedata`. Look-alike libraries have tables that are
older than the interpreter's, and here it is enough to detect letters of two scripts in one word.

Sources:
    https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt (Default_Ignorable),
    https://www.unicode.org/reports/tr39/ (restriction levels)
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_IGNORABLE = (
    *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
    *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
"""Ranges of Default_Ignorable_Code_Point, which `unicodedata` lacks."""
_BLANK = frozenset({0x2800, 0x13441, 0x13442, 0x16FE4, 0x1D159})
"""Characters of a visible category that are drawn as blank."""
_UNSEEN_KINDS = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_WORD = re.compile(r"[\w\u0300-\u036f]+")
_TURNED = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_TOGETHER = frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH", "HANGUL", "BOPOMOFO"})
"""Scripts that are commonly mixed in one word and whose letters do not look alike."""
_COMMON = frozenset({"MICRO", "FEMININE", "MASCULINE", "MODIFIER", "IDEOGRAPHIC"})


@lru_cache(maxsize=4_096)
def is_unseen(character: str) -> bool:
    """Whether a character is invisible or an unusual space."""
    if character in {" ", "\t"}:
        return False
    code = ord(character)
    if code in _BLANK or any(first <= code <= last for first, last in _IGNORABLE):
        return True
    return unicodedata.category(character) in _UNSEEN_KINDS


def is_turned(text: str) -> bool:
    """Whether a text contains right-to-left characters."""
    return not text.isascii() and _TURNED.search(text) is not None


def foreign_letters(text: str, start: int) -> tuple[int, frozenset[str]]:
    """Find letters of a word that are of another script than most of its letters.

    Args:
        text: Any text.
        start: Possible start of a word.

    Returns:
        The end of the word, or `start` if there is none; and the letters to spell out.
    """
    match = _WORD.match(text, start)
    if match is None:
        return start, frozenset()
    return match.end(), frozenset() if match[0].isascii() else _foreign_in(match[0])


def _foreign_in(word: str) -> frozenset[str]:
    scripts: dict[str, list[str]] = {}
    for character in word:
        script = script_of(character)
        if script:
            scripts.setdefault(script, []).append(character)
    if len(scripts) < 2 or scripts.keys() <= _TOGETHER:
        return frozenset()
    # If two scripts have equally many letters, keep Latin.
    most = max(scripts, key=lambda script: (len(scripts[script]), script == "LATIN"))
    return frozenset(
        character for script, letters in scripts.items() if script != most for character in letters
    )


@lru_cache(maxsize=4_096)
def script_of(character: str) -> str:
    """Return the script of a letter; empty for characters common to all scripts."""
    if not unicodedata.category(character).startswith("L"):
        return ""
    script = unicodedata.name(character, "UNKNOWN").split()[0]
    return "" if script in _COMMON else script
