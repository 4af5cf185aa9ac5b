"""The catalogue: every text for people, by key, in each available language.

A language is a JSON file of keys and texts in this package. English has all keys. A key that is
missing in another language is shown in English. Names and numbers are placeholders of a text and
are never concatenated to it, so that a translation can move them. A text with a number has a key
for each plural form (`home.waiting.one`, `home.waiting.other`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, wraps
from importlib import resources
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

ENGLISH = "en"
_PLACE = re.compile(r"\{([a-z_]+)\}")
_FILLED = re.compile(r"\{([a-z_]+)\}(\.(?!\S))?")
_ENDS = (".", "!", "?", "…", "。")
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_PLURALS = ("one", "other")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The texts of one language.

    Args:
        language: The language code, such as `en`.
        texts: Texts by key.
        fallback: The texts for keys that this language lacks.
    """

    language: str
    texts: Mapping[str, str]
    fallback: Mapping[str, str] = field(default_factory=dict)

    def text(self, key: str, values: Mapping[str, object]) -> str:
        """Return a text with its values filled in; see `say`."""
        text = self._template(key, values.get("n"))
        missing = sorted(set(_PLACE.findall(text)) - values.keys())
        if missing:
            raise KeyError(f"the text {key!r} needs {', '.join(missing)}")
        return _FILLED.sub(lambda match: _set_in(str(values[match[1]]), match[2] or ""), text)

    def has(self, key: str) -> bool:
        """Whether a key exists, with or without plural forms."""
        known = (self.texts, self.fallback)
        return any(key in texts or f"{key}.other" in texts for texts in known)

    def _template(self, key: str, number: object) -> str:
        form = plural(self.language, number) if isinstance(number, int) else "other"
        for texts in (self.texts, self.fallback):
            for name in (f"{key}.{form}", f"{key}.other", key):
                if name in texts:
                    return texts[name]
        raise KeyError(f"there is no text {key!r} in the catalogue")


TIME = "{time}"
"""Stands in a stored text for a time, which each reader sees in their own time zone."""


def say(key: str, /, **values: object) -> str:
    """Return a text of the catalogue in the current language.

    Args:
        key: The text's key, such as `button.approve`. A key with plural forms is given without its
            form; the value `n` selects the form.
        **values: The values of the placeholders. They are inserted unchanged, so mrkdwn in them
            must be escaped before. Placeholders inside of a value are not filled. A full stop after
            a value that already ends a sentence is left out.

    Returns:
        The text.

    Raises:
        KeyError: The key is unknown or a value is missing: an error in the program.
    """
    return (_spoken.get() or _here[-1]).text(key, values)


@contextmanager
def speaking(language: str | Catalogue) -> Iterator[Catalogue]:
    """Set the current language for a block.

    Args:
        language: A locale of Slack (`de-DE`), a language (`de`), or a catalogue. A language without
            a catalogue means English.

    Yields:
        The catalogue.
    """
    chosen = language if isinstance(language, Catalogue) else catalogue(language)
    token = _spoken.set(chosen)
    try:
        yield chosen
    finally:
        _spoken.reset(token)


@contextmanager
def workspace_language(language: str | Catalogue) -> Iterator[Catalogue]:
    """Set the language of the process for a block; `speaking` takes precedence.

    Args:
        language: As in `speaking`.

    Yields:
        The catalogue.
    """
    chosen = language if isinstance(language, Catalogue) else catalogue(language)
    _here.append(chosen)
    try:
        yield chosen
    finally:
        _here.remove(chosen)


@contextmanager
def working_for(company: str) -> Iterator[None]:
    """Set the company of the process for a block.

    Args:
        company: Name of the company; empty if unknown.
    """
    _companies.append(company.strip())
    try:
        yield
    finally:
        _companies.remove(company.strip())


def company() -> str:
    """Return the name of the company whose people use this workspace; empty if unknown."""
    return _companies[-1]


def spoken_language() -> str:
    """Return the code of the current language, to store it for a later text."""
    return (_spoken.get() or _here[-1]).language


def for_all() -> AbstractContextManager[Catalogue]:
    """Set the workspace's language for a block, because many people read the text."""
    return speaking(_here[-1])


def said_to_all(
    work: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorate a function so that it writes in the workspace's language."""

    @wraps(work)
    async def speak(*args: P.args, **kwargs: P.kwargs) -> T:
        with for_all():
            return await work(*args, **kwargs)

    return speak


@contextmanager
def adding(added: Catalogue) -> Iterator[None]:
    """Add a language for a block, for example to test a translation."""
    _added[added.language] = added
    try:
        yield
    finally:
        del _added[added.language]


def languages() -> tuple[str, ...]:
    """Return the codes of all languages with a catalogue, including English."""
    return tuple(sorted({*_files(), *_added}))


def catalogue(locale: str) -> Catalogue:
    """Return the catalogue of a locale, or the English one."""
    language = re.split(r"[-_]", locale.strip().lower(), maxsplit=1)[0]
    if language in _added:
        return _added[language]
    return _loaded(language if _LANGUAGE.fullmatch(language) else ENGLISH)


def _set_in(value: str, stop: str) -> str:
    """Return a value and the full stop after it, unless the value ends a sentence."""
    return value if value.endswith(_ENDS) else f"{value}{stop}"


def plural(language: str, number: int) -> str:
    """Return the CLDR plural form of a number in a language.

    Source:
        https://cldr.unicode.org/index/cldr-spec/plural-rules
    """
    if language == ENGLISH:
        return _PLURALS[0] if number == 1 else _PLURALS[1]
    # Imported only if a translation is used, because its data loads slowly.
    from babel import Locale  # noqa: PLC0415

    return str(Locale.parse(language).plural_form(number))


@cache
def _loaded(language: str) -> Catalogue:
    english = _texts(ENGLISH) or {}
    if language == ENGLISH:
        return Catalogue(ENGLISH, english)
    texts = _texts(language)
    return Catalogue(ENGLISH, english) if texts is None else Catalogue(language, texts, english)


@cache
def _files() -> frozenset[str]:
    names = (resource.name for resource in resources.files(__package__).iterdir())
    return frozenset(name.removesuffix(".json") for name in names if name.endswith(".json"))


def _texts(language: str) -> dict[str, str] | None:
    """Return the texts of a language, or None if it has no file."""
    place = resources.files(__package__) / f"{language}.json"
    if not place.is_file():
        return None
    texts: dict[str, str] = json.loads(place.read_text(encoding="utf-8"))
    return texts


_spoken: ContextVar[Catalogue | None] = ContextVar("spoken", default=None)
_here: list[Catalogue] = [_loaded(ENGLISH)]
"""The last item is the workspace's language."""
_companies = [""]
"""The last item is the company of this process."""
_added: dict[str, Catalogue] = {}
