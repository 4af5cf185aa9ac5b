"""Labels and hints of inputs: an argument's name, and its schema's limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bot.layout.text import clip
from bot.words import say

_PATTERN = 80
_ACRONYMS = frozenset({"id", "url", "uri", "ip", "api", "sql", "vat", "iban", "cc", "bcc"})


def humanised(name: str) -> str:
    """Convert the name of an argument to words: `order_id` becomes `Order ID`.

    A name that is not an identifier stays unchanged.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_\-]*", name):
        return name
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = [word for word in re.split(r"[_\-\s]+", spaced) if word]
    written = [word.upper() if word.lower() in _ACRONYMS else word.lower() for word in words]
    first, *others = written or [name]
    return " ".join([first[:1].upper() + first[1:], *others])


def limits_of(schema: Mapping[str, Any], *, is_text: bool) -> list[str]:
    """Describe the limits of a schema, one sentence each.

    Args:
        schema: The schema of a value other than null.
        is_text: Whether the value is typed as text, so that lengths and patterns matter.
    """
    bounds = (schema.get("minimum"), schema.get("maximum"))
    words = [_range(*bounds, "hint.range", "hint.least", "hint.most")]
    for key, name in (
        ("exclusiveMinimum", "hint.more_than"),
        ("exclusiveMaximum", "hint.less_than"),
    ):
        if _is_number(schema.get(key)):
            words.append(say(name, n=schema[key]))
    if _is_number(schema.get("multipleOf")):
        words.append(say("hint.multiple", n=schema["multipleOf"]))
    if is_text:
        bounds = (schema.get("minLength") or None, schema.get("maxLength"))
        words.append(_range(*bounds, "hint.length", "hint.least_long", "hint.most_long"))
    bounds = (schema.get("minItems") or None, schema.get("maxItems"))
    words.append(_range(*bounds, "hint.count", "hint.least_many", "hint.most_many"))
    example = schema.get("examples")
    if isinstance(example, list) and example and isinstance(example[0], str | int | float):
        words.append(say("hint.example", example=clip(str(example[0]), _PATTERN)))
    return [word for word in words if word]


def _range(low: object, high: object, both: str, least: str, most: str) -> str:
    """Describe limits by the text for both of them, for the lower one, or for the upper one."""
    if _is_number(low) and _is_number(high):
        return say(both, min=low, max=high)
    if _is_number(low):
        return say(least, n=low)
    return say(most, n=high) if _is_number(high) else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
