"""What cannot be seen, or looks like something else, is spelled out or noted."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from bot.layout.arguments import Budget, list_arguments
from bot.layout.characters import _IGNORABLE, is_turned, is_unseen, script_of
from bot.layout.text import ShownText, show
from bot.redaction.call import mask_call

EVERYTHING = 1_000_000


def seen(text: str, *, one_line: bool = False) -> str:
    return show(text, EVERYTHING, one_line=one_line).text


def test_the_table_is_that_of_unicode() -> None:
    regex = pytest.importorskip("regex", reason="comes with a library of the development set")
    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    expected = {code for code in range(0x110000) if ignorable.match(chr(code))}
    assert {code for first, last in _IGNORABLE for code in range(first, last + 1)} == expected


@pytest.mark.parametrize(
    "code", [0xFE0F, 0xFE0E, 0x2065, *range(0xFFF0, 0xFFF9), 0x16FE4, 0x1D159, 0x13441, 0xAD, 0x378]
)
def test_what_shows_nothing_is_spelled_out(code: int) -> None:
    assert seen(f"a{chr(code)}b") == f"a⟨U+{code:04X}⟩b"


def test_all_odd_spaces_are_spelled_out() -> None:
    odd = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) == "Zs" and c != 0x20]
    assert len(odd) == 16
    for space in odd:
        assert seen(f"a{space}b") == f"a⟨U+{ord(space):04X}⟩b"


def test_a_long_run_of_spaces_pushes_nothing_away() -> None:
    assert seen("echo hi" + " " * 300 + "; rm -rf /") == "echo hi⟨300 spaces⟩; rm -rf /"
    assert seen("a" + "\t" * 50 + "b") == "a⟨50 tabs⟩b"
    assert seen("a" + " " * 40 + "\tb") == "a⟨40 spaces⟩⟨1 tab⟩b"
    assert seen("a" + " " * 40 + "b") == "a" + " " * 40 + "b"
    assert "⟨300 spaces⟩" in seen("é" + " " * 300 + "b")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("p\u0430ypal", "p⟨U+0430⟩ypal"),
        ("prod_\u0455erver", "prod_⟨U+0455⟩erver"),
        ("ждж\u0061", "ждж⟨U+0061⟩"),
        ("\uff52m -rf", "⟨U+FF52⟩m -rf"),
        ("\u212aelvin", "⟨U+212A⟩elvin"),
        ("\U0001d42bm", "⟨U+1D42B⟩m"),
        ("abc\u05e9", "abc⟨U+05E9⟩"),
        ("\u0391bc", "⟨U+0391⟩bc"),
        ("пароль Αθήνα Grüße", "пароль Αθήνα Grüße"),
        ("東京CEO会議 ひらカナ 한글abc", "東京CEO会議 ひらカナ 한글abc"),
        ("5 µs, 1ª", "5 µs, 1ª"),
    ],
)
def test_letters_of_two_scripts_in_one_word(text: str, shown: str) -> None:
    made = show(text, EVERYTHING)
    assert made.text == shown
    assert made.altered is (text != shown)


def test_what_is_written_from_right_to_left_is_noted() -> None:
    assert show("pay שלום 100", 100).turned
    assert show("ادفع", 100).turned
    assert not show("Grüße, 東京", 100).turned
    listed = list_arguments([("to", "שלום"), ("x", "a")], Budget(whole=1_000, value=100))
    assert listed.turned


@pytest.mark.parametrize("text", ["⟨5 spaces⟩", "⟨U+0041⟩", "⟨3 line breaks⟩"])
def test_our_notes_cannot_be_forged(text: str) -> None:
    assert seen(text) == f"⟨U+27E8⟩{text[1:]}"
    assert seen("a↵b", one_line=True) == "a⟨U+21B5⟩b"
    assert seen("a↵b") == "a↵b"


def test_a_mask_cannot_be_forged() -> None:
    words = mask_call("token=abc123 •••• redacted (6 characters) •••")
    assert show(words, EVERYTHING).text == (
        "token=•••• redacted (6 characters) ⟨U+2022⟩••• redacted (6 characters) •••"
    )


def test_a_mask_counts_as_what_it_hides_and_is_never_cut() -> None:
    words = mask_call("x token=abc123 y")
    made = show(words, 20)
    assert (made.text, made.hidden) == ("x token=", len("abc123 y"))


ODD = st.sampled_from(
    "a b\t\n ⟨⟩U+0041:•↵ 5spaces\u200b\u00a0\u0430\u05e9\ufe0f\u0301{}[]\"'\\" + "\U000e0041é京"
)


@given(st.text(ODD, max_size=30) | st.text(max_size=20), st.text(ODD, max_size=30))
def test_two_texts_are_never_shown_alike(first: str, other: str) -> None:
    words = [mask_call(text) for text in (first, other)]
    if first != other and all(isinstance(part, str) for parts in words for part in parts):
        assert show(words[0], EVERYTHING).text != show(words[1], EVERYTHING).text


@given(st.characters())
def test_every_unseen_character_is_spelled_out(character: str) -> None:
    if is_unseen(character) and character != "\n":
        assert seen(f"a{character}b") == f"a⟨U+{ord(character):04X}⟩b"


@given(st.text(max_size=40))
def test_all_that_is_shown_can_be_seen(text: str) -> None:
    made: ShownText = show(text, EVERYTHING)
    assert not any(is_unseen(char) for char in made.text if char != "\n")
    assert made.turned is is_turned(made.text)


def test_scripts() -> None:
    assert [script_of(char) for char in "aяλ京5_µ "] == [
        "LATIN",
        "CYRILLIC",
        "GREEK",
        "CJK",
        *[""] * 4,
    ]
