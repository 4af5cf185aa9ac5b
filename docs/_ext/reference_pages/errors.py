"""The page of the errors: exception classes, codes of policy errors, and codes of refusals."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from agents import AgentError
from bot.errors import BotError
from bot.policy.refusals import RefusalCode
from reference_pages import policy_codes, text
from storage.errors import StorageError

PURPOSE = (
    "Every error class and error code of Countersign, for operators, policy authors and agent "
    "authors."
)
_MODULES = ("agents.graph", "agents.graph.messages", "bot.errors", "storage.errors")
"""Modules that define error classes."""
_BASES = (
    (
        "Errors of the runtime",
        AgentError,
        "Raised by `agents`. Import them from `agents.core.errors` or `agents.graph`.",
    ),
    ("Errors of the bot", BotError, "Raised inside the bot; the log shows their texts."),
    ("Errors of the storage", StorageError, "Raised by both databases."),
)


def build() -> str:
    """Make the page."""
    parts = [text.section(2, "Policy errors", "policy-errors")]
    parts.append(
        text.wrap(
            "`countersign policy check` prints each error with its code in brackets. An example "
            "shows the faulty keys of a file."
        )
    )
    for code, entry in policy_codes.CODES.items():
        parts += [text.section(3, text.code(code), text.anchor("policy-error", code))]
        parts.append(text.wrap(entry.meaning))
        if entry.example:
            parts.append(text.fence("yaml", entry.example))
    parts += [text.section(2, "Refusals", "refusals"), text.wrap(_REFUSALS)]
    parts.append(
        text.table(("Code", "Text"), [(text.code(code), f"*{code.words}*") for code in RefusalCode])
    )
    for title, base, about in _BASES:
        rows = [
            (text.code(error.__name__), _base(error), meaning_of(error)) for error in classes(base)
        ]
        parts += [
            text.section(2, title, text.anchor(title)),
            text.wrap(about),
            text.table(("Class", "Base", "Meaning"), rows),
        ]
    return text.page("Errors", PURPOSE, parts)


_REFUSALS = (
    "If a click or a form has no effect, the person reads one of these texts. The audit keeps its "
    "code as `code` of the entry `refused`."
)


def classes(base: type[Exception]) -> Iterator[type[Exception]]:
    """Give a base class and all of its subclasses in our modules, each base before its classes."""
    for module in _MODULES:
        import_module(module)
    yield base
    package = base.__module__.partition(".")[0]
    for error in sorted(base.__subclasses__(), key=lambda subclass: subclass.__name__):
        if error.__module__.startswith(f"{package}.") and _is_listed(error):
            yield from classes(error)


def _is_listed(error: type[Exception]) -> bool:
    return error.__module__ in {*_MODULES, "agents.core.errors", "agents.graph.errors"}


def meaning_of(error: type[Exception]) -> str:
    """Give the meaning of an error."""
    return text.words(error.__doc__)


def _base(error: type[Exception]) -> str:
    return ", ".join(text.code(base.__name__) for base in error.__bases__)
