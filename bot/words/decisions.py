"""Recognizes typed replies that read like a decision. None ever counts as one."""

from __future__ import annotations

import re

_DECIDING = re.compile(
    r"yes|yep|yeah|yup|y|aye|sure|certainly|absolutely|definitely|ok|okay|k|go|proceed|continue|do|"
    r"run|ship|approv(e|ed|ing)|accept(ed)?|agreed?|allow(ed)?|confirm(ed)?|granted|affirmative|"
    r"good|fine|great|perfect|lgtm|no|nope|nah|n|don't|dont|reject(ed|ing)?|den(y|ied)|"
    r"decline[d]?|refuse[d]?|veto|negative|[+-]1|thumbs(up|down)|(white|heavy)_check_mark|"
    r"ballot_box_with_check|ok_hand|x|no_entry|no_entry_sign|[👍👎✅✔☑👌🆗❌✖⛔🚫]"
)
_BESIDE = re.compile(
    r"a|ahead|all|and|are|by|course|everything|for|from|here|i|i'm|is|it|it's|just|let|let's|looks|"
    r"me|my|not|now|of|on|please|pls|request|side|so|sounds|thanks?|that|that's|the|them|then|these|"
    r"this|those|to|very|will|with|you"
)
"""Words that change nothing about a decision beside them."""
_WORD = re.compile(r"[+-]1\b|[^\W\d]+(?:'[^\W\d]+)?|\d+|[👍👎✅✔☑👌🆗❌✖⛔🚫]")
_EMOJI_NAME = re.compile(r":([\w+-]+):")
_MOST_WORDS = 10
"""Words of the longest reply that only decides."""


def looks_like_decision(text: str) -> bool:
    """Whether a reply reads like a decision and says nothing else. It never counts as one."""
    named = _EMOJI_NAME.sub(_deciding_emoji, text.casefold().replace("\u2019", "'"))
    words = _WORD.findall(named)
    if "?" in text or len(words) > _MOST_WORDS or not any(map(_DECIDING.fullmatch, words)):
        return False
    return all(_DECIDING.fullmatch(word) or _BESIDE.fullmatch(word) for word in words)


def _deciding_emoji(emoji: re.Match[str]) -> str:
    """Return the name of an emoji that decides; a space for other emoji, such as a skin tone."""
    return f" {emoji[1]} " if _DECIDING.fullmatch(emoji[1]) else " "
