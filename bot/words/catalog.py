"""The catalogue: every text that people read, by key, in each language that there is.

A language is one JSON file of keys and texts beside this one. English has all keys; another
language that lacks one is read in English there. Names and numbers are values of a text and are
never glued to it, so that a translation can place them; a text that counts has a key for each
plural form (`home.waiting.one`, `home.waiting.other`).
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
        language: Its code, such as `en`.
        texts: Texts by key.
        fallback: The texts where this language has none.
    """

    language: str
    texts: Mapping[str, str]
    fallback: Mapping[str, str] = field(default_factory=dict)

    def text(self, key: str, values: Mapping[str, object]) -> str:
        """Write a text with its values; see `say`."""
        found = self._found(key, values.get("n"))
        missing = sorted(set(_PLACE.findall(found)) - values.keys())
        if missing:
            raise KeyError(f"the text {key!r} needs {', '.join(missing)}")
        return _FILLED.sub(lambda match: _set_in(str(values[match[1]]), match[2] or ""), found)

    def has(self, key: str) -> bool:
        """Whether there is such a text, with plural forms or without."""
        known = (self.texts, self.fallback)
        return any(key in one or f"{key}.other" in one for one in known)

    def _found(self, key: str, number: object) -> str:
        form = plural(self.language, number) if isinstance(number, int) else "other"
        for texts in (self.texts, self.fallback):
            for name in (f"{key}.{form}", f"{key}.other", key):
                if name in texts:
                    return texts[name]
        raise KeyError(f"there is no text {key!r} in the catalogue")


def say(key: str, /, **values: object) -> str:
    """Write a text of the catalogue in the language that is spoken here.

    Args:
        key: The text's key, such as `button.approve`. A key with plural forms is given without
            them: the value `n` chooses.
        **values: The values of its places. They are set in as they are: whoever writes mrkdwn
            escapes them first. A place inside of a value is not filled. A full stop behind a value
            that ends a sentence itself is left out.

    Returns:
        The text.

    Raises:
        KeyError: There is no such text, or a value is missing: a mistake in the program.
    """
    return (_spoken.get() or _here[-1]).text(key, values)


@contextmanager
def speaking(language: str | Catalogue) -> Iterator[Catalogue]:
    """Speak a language in what is written inside of this block.

    Args:
        language: A locale as Slack names it (`de-DE`), a language (`de`), or a catalogue. One that
            there is no catalogue for is English.

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
    """Speak a language in the whole process where nobody's own is spoken, inside of this block.

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
    """Know in the whole process whose people work here, inside of this block.

    Args:
        company: Its name; empty where it is not known.
    """
    _companies.append(company.strip())
    try:
        yield
    finally:
        _companies.remove(company.strip())


def company() -> str:
    """The name of the company whose people work here; empty where it is not known."""
    return _companies[-1]


def spoken_language() -> str:
    """The language that is spoken here, for what is written later."""
    return (_spoken.get() or _here[-1]).language


def for_all() -> AbstractContextManager[Catalogue]:
    """Speak the workspace's language in what is written inside, as everybody reads it."""
    return speaking(_here[-1])


def said_to_all(
    work: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Let a function speak the workspace's language, whoever it is called for."""

    @wraps(work)
    async def speak(*args: P.args, **kwargs: P.kwargs) -> T:
        with for_all():
            return await work(*args, **kwargs)

    return speak


@contextmanager
def adding(added: Catalogue) -> Iterator[None]:
    """Know one more language inside of this block, such as one that is being tried out."""
    _added[added.language] = added
    try:
        yield
    finally:
        del _added[added.language]


def languages() -> tuple[str, ...]:
    """The languages that there are catalogues of, English among them."""
    return tuple(sorted({*_files(), *_added}))


def catalogue(locale: str) -> Catalogue:
    """The catalogue of a locale; English where there is none."""
    language = re.split(r"[-_]", locale.strip().lower(), maxsplit=1)[0]
    if language in _added:
        return _added[language]
    return _loaded(language if _LANGUAGE.fullmatch(language) else ENGLISH)


def _set_in(value: str, stop: str) -> str:
    """A value, and the full stop behind it unless the value ends a sentence by itself."""
    return value if value.endswith(_ENDS) else f"{value}{stop}"


def plural(language: str, number: int) -> str:
    """The plural form of a number in a language, as CLDR names it.

    Source:
        https://cldr.unicode.org/index/cldr-spec/plural-rules
    """
    if language == ENGLISH:
        return _PLURALS[0] if number == 1 else _PLURALS[1]
    # Only where a translation is in use: reading its data takes a while.
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
    names = (one.name for one in resources.files(__package__).iterdir())
    return frozenset(name.removesuffix(".json") for name in names if name.endswith(".json"))


def _texts(language: str) -> dict[str, str] | None:
    """The texts of a language; None where it has no file."""
    place = resources.files(__package__) / f"{language}.json"
    if not place.is_file():
        return None
    found: dict[str, str] = json.loads(place.read_text(encoding="utf-8"))
    return found


_spoken: ContextVar[Catalogue | None] = ContextVar("spoken", default=None)
_here: list[Catalogue] = [_loaded(ENGLISH)]
"""The workspace's language stands last."""
_companies = [""]
"""The one whose people work here stands last."""
_added: dict[str, Catalogue] = {}
