"""Each translation beside the English catalogue is checked; see docs/how-to/translate.md."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from babel import Locale

from tests.unit.bot.words.test_nowhere_else import ENGLISH, PLACES

WORDS = Path(__file__).parents[4] / "bot/words"
TRANSLATIONS = sorted(WORDS.glob("*.json"))
_PLACE = re.compile(r"\{[a-z_]+\}")
_MARK = re.compile(r"`[^`]*`|<[^>]*>")
_DOT = " · "
_PLURAL = re.compile(r"\.(zero|one|two|few|many|other)$")


def faults(language: str, texts: Mapping[str, str]) -> Iterator[str]:
    """Say what is wrong in a translation; a key that it lacks is no fault."""
    forms = {*Locale.parse(language).plural_form.tags, "other"}
    for key, text in texts.items():
        other = _PLURAL.sub(".other", key)
        plural = _PLURAL.search(key) if other in ENGLISH else None  # "line.two" is a name
        english = ENGLISH.get(key) or ENGLISH.get(other)
        if english is None:
            yield f"{key}: English has no such text"
            continue
        if plural is not None and plural[1] not in forms:
            yield f"{key}: {language} has no such plural form"
        yield from _changed(key, english, text, is_plural=plural is not None)


def _changed(key: str, english: str, text: str, *, is_plural: bool) -> Iterator[str]:
    wanted, given = Counter(_PLACE.findall(english)), Counter(_PLACE.findall(text))
    if is_plural:  # "one request" needs no number
        wanted["{n}"] = given["{n}"] = 0
    if set(+wanted) != set(+given):
        yield f"{key}: its places are {sorted(+wanted)}, and not {sorted(+given)}"
    if lost := [mark for mark in _MARK.findall(english) if mark not in text]:
        yield f"{key}: {', '.join(lost)} is what people type"
    if key.startswith("status.") and text.count(_DOT) != english.count(_DOT):
        yield f"{key}: what stands before “{_DOT}” is bold; keep the dot"
    fits = (most for place, most in PLACES.items() if re.fullmatch(place, _PLURAL.sub("", key)))
    if len(_PLACE.sub("", text)) > (most := next(fits, 3_000)):
        yield f"{key}: it has more than {most} characters"


@pytest.mark.parametrize("path", TRANSLATIONS, ids=lambda path: path.stem)
def test_each_translation_has_the_keys_places_and_lengths_of_english(path: Path) -> None:
    texts = json.loads(path.read_text(encoding="utf-8"))
    problems = list(faults(path.stem, texts))
    assert problems == [], "\n".join(problems)


@pytest.mark.parametrize(
    ("key", "text", "fault"),
    [
        ("button.approove", "Genehmigen", "English has no such text"),
        ("button.approve.other", "Genehmigen", "English has no such text"),
        ("command.grants", "{n} Anfragen", "English has no such text"),
        ("home.waiting.few", "{n} warten", "de has no such plural form"),
        ("status.claimed", "Jemand ist dran", "its places are"),
        ("status.claimed", "{who} ist dran, {name}", "its places are"),
        ("status.ran", "Genehmigt von {who}, lief {time}", "keep the dot"),
        ("button.approve", "Genehmigen und sofort ausführen", "more than 30 characters"),
        ("command.verdict", "{word} entscheidet nichts", "is what people type"),
    ],
)
def test_a_fault_of_a_translation_is_found(key: str, text: str, fault: str) -> None:
    assert fault in " ".join(faults("de", {key: text}))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("status.claimed", "Darum kümmert sich {who}"),
        ("home.waiting.one", "Eine Anfrage wartet auf dich"),
        ("home.waiting.other", "{n} Anfragen warten auf dich"),
        ("status.ran", "Von {who} genehmigt · lief {time}"),
        ("line.two", "{a} oder {b} kann zustimmen"),
    ],
)
def test_a_text_in_its_own_order_is_fine(key: str, text: str) -> None:
    assert list(faults("de", {key: text})) == []
