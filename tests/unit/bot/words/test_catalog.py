"""The catalogue: texts by key, with values, plural forms, and other languages."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

from bot.words import Catalogue, catalogue, say, speaking

ROOT = Path(__file__).parents[4]
ENGLISH: dict[str, str] = json.loads((ROOT / "bot/words/en.json").read_text(encoding="utf-8"))
_PLURAL = re.compile(r"\.(one|few|many|other)$")


@pytest.mark.parametrize("end", [".", "?", "!", "…"])
def test_a_value_that_ends_a_sentence_takes_no_full_stop(end: str) -> None:
    catalogue = Catalogue("en", {"a": "{n}. {what}. Then {what}.", "b": "{what}.md, {what}..."})
    values = {"n": 2, "what": f"Go on{end}"}
    assert catalogue.text("a", values) == f"2. Go on{end} Then Go on{end}"
    assert catalogue.text("b", values) == f"Go on{end}.md, Go on{end}..."


def test_a_value_that_looks_like_a_place_stays_as_it_is() -> None:
    assert say("refuse.not_approver", who="{channel}").endswith("{channel} can decide.")


def test_no_key_stands_twice() -> None:
    """The later text would replace the earlier one."""
    text = (ROOT / "bot/words/en.json").read_text(encoding="utf-8")
    keys = [key for key, _ in json.loads(text, object_pairs_hook=list)]
    assert sorted(keys) == sorted(ENGLISH)


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(KeyError, match="needs who"):
        say("refuse.own")


def test_an_unknown_key_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"no text 'refuse\.nothing'"):
        say("refuse.nothing")


@pytest.mark.parametrize(("n", "text"), [(1, "1 request"), (2, "2 requests"), (0, "0 requests")])
def test_a_number_chooses_the_plural_form(n: int, text: str) -> None:
    texts = {"a.one": "{n} request", "a.other": "{n} requests"}
    with speaking(Catalogue("en", texts)):
        assert say("a", n=n) == text


def test_other_languages_have_plural_forms_of_their_own() -> None:
    texts = {"a.one": "{n} wniosek", "a.few": "{n} wnioski", "a.many": "{n} wniosków"}
    with speaking(Catalogue("pl", texts, {"a.other": "{n} requests"})):
        assert [say("a", n=n) for n in (1, 3, 5)] == ["1 wniosek", "3 wnioski", "5 wniosków"]


def test_a_language_that_lacks_a_text_is_read_in_english_there() -> None:
    with speaking(Catalogue("de", {"button.approve": "Genehmigen"}, ENGLISH)):
        assert (say("button.approve"), say("button.reject")) == ("Genehmigen", "Reject…")
    assert say("button.approve") == "Approve"


@pytest.mark.parametrize("locale", ["xx-YY", "", "../../etc/passwd", "en-US", "EN", "tlh_KL"])
def test_a_locale_that_is_not_there_is_english(locale: str) -> None:
    assert catalogue(locale).language == "en"


def test_every_text_that_the_code_writes_exists_and_gets_its_values() -> None:
    faults = list(_faults())
    assert not faults, "\n".join(faults)


def _faults() -> Iterator[str]:
    for path in sorted((ROOT / "bot").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if not re.search(r"^from bot\.words import .*\bsay\b", source, re.MULTILINE):
            continue
        for call in ast.walk(ast.parse(source)):
            if _is_said(call):
                yield from (f"{path}:{call.lineno}: {fault}" for fault in _fault(call))


def _is_said(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "say"
        and bool(node.args)
    )


def _fault(call: ast.Call) -> Iterator[str]:
    given = {keyword.arg for keyword in call.keywords}
    for key in _keys(call.args[0]):
        texts = [text for name, text in ENGLISH.items() if _PLURAL.sub("", name) == key]
        texts = texts or [text for name, text in ENGLISH.items() if name == key]
        if not texts:
            yield f"there is no text {key!r}"
        elif None not in given:
            needed = {place for text in texts for place in re.findall(r"\{([a-z_]+)\}", text)}
            if needed - given or given - needed - {"n"}:
                yield f"{key!r} needs {sorted(needed)} and gets {sorted(map(str, given))}"


def _keys(argument: ast.expr) -> Iterator[str]:
    """The keys that an argument may be: a text, or one of two."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value
    elif isinstance(argument, ast.IfExp):
        yield from _keys(argument.body)
        yield from _keys(argument.orelse)
