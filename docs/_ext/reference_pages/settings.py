"""The page of the settings: every variable, in groups."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from pydantic.fields import FieldInfo

from bot.config.durations import format_duration
from bot.config.settings import GROUPS, Settings
from bot.config.values import Log
from reference_pages import text

PURPOSE = (
    "Every variable of the environment that Countersign reads, for operators. An unknown, empty or "
    "wrong setting stops the start, and the message names the variable and the remedy."
)
_DURATIONS = (
    "A duration is a whole number with a unit, the largest unit first: `45s`, `15m`, `8h`, "
    "`1h30m`, `2d`. `true`, `on` and `1` mean `yes`; `false`, `off` and `0` mean `no`."
)


def build() -> str:
    """Make the page."""
    return text.page("Settings", PURPOSE, [text.wrap(_DURATIONS), *_groups()])


def fields() -> dict[str, FieldInfo]:
    """Give the fields of the settings by their variables."""
    return {str(field.alias): field for field in Settings.model_fields.values()}


def values_of(field: FieldInfo) -> str:
    """Say which values a setting can have."""
    extra = field.json_schema_extra
    return str(extra["values"]) if isinstance(extra, dict) else ""


def default_of(field: FieldInfo) -> str:
    """Write the default as an operator would; empty without one."""
    match field.get_default():
        case bool() as switch:
            return "yes" if switch else "no"
        case timedelta() as time:
            return format_duration(time)
        case Log() as log:
            return f"{log.level.lower()},{'json' if log.as_json else 'text'}"
        case str() | int() as value:
            return str(value)
        case value if value and hasattr(value, "parts"):
            return str(value)
        case _:
            return ""


def _groups() -> Iterator[str]:
    known = fields()
    for title, names in GROUPS.items():
        yield text.section(2, title)
        for name in names:
            field = known[name]
            yield text.section(3, text.code(name), text.anchor(name))
            default = default_of(field)
            yield text.properties(
                [
                    ("Default", _default(field, default)),
                    ("Values", values_of(field)),
                    ("Example", text.code(field.examples[0] if field.examples else "")),
                ]
            )
            yield text.wrap(str(field.description))


def _default(field: FieldInfo, default: str) -> str:
    if field.is_required():
        return "required"
    return text.code(default) if default else "not set"
