"""Untrusted text becomes visible and short, and says what it lacks."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from bot.layout.text import (
    ShownText,
    _Reader,
    chunks,
    clip,
    clip_mrkdwn,
    is_plain,
    more,
    own_words,
    show,
    width,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("abc\td", "abc\td"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\u200bb", "a⟨U+200B⟩b"),
        ("a\x00\r\x7f", "a⟨U+0000⟩⟨U+000D⟩⟨U+007F⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("\u2028", "⟨U+2028⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("\ufffe", "⟨U+FFFE⟩"),
        ("\u3164\u2800", "⟨U+3164⟩⟨U+2800⟩"),
        ("\ufe01", "⟨U+FE01⟩"),
        ("⟨U+202E⟩", "⟨U+27E8⟩U+202E⟩"),
        ("⟨a⟩", "⟨a⟩"),
        ("a" + "\u0301" * 5, "a" + "\u0301" * 3 + "⟨U+0301⟩" * 2),
        ("a\n\n\nb", "a\n\n\nb"),
        ("a" + "\n" * 1_000 + "b", "a\n⟨1,000 line breaks⟩\nb"),
        ("Grüße, 東京 \U0001f680", "Grüße, 東京 \U0001f680"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text: str, shown: str) -> None:
    made = show(text, 10_000)
    assert made.text == shown
    assert made.hidden == 0
    assert made.altered is not is_plain(text)
    assert "".join(chunks(text, 10_000)) == shown


def test_line_breaks_on_one_line() -> None:
    assert show("a\nb" + "\n" * 9, 100, one_line=True).text == "a↵b⟨9 line breaks⟩"


def test_cut_counts_hidden_characters_of_the_original() -> None:
    assert show("a\u202ebc", 5).hidden == 3
    assert show("one\ntwo\nthree", 100, lines=2).text == "one\ntwo"
    assert show("one\ntwo\nthree", 100, lines=2).hidden == 6


@given(st.text(), st.integers(0, 60))
def test_shown_text_fits_when_escaped(text: str, most: int) -> None:
    made = show(text, most)
    assert width(made.text) <= most
    assert 0 <= made.hidden <= len(text)


@given(st.text() | st.text("<>&\n\u202e"), st.integers(75, 200))
def test_clipped_text_fits_when_escaped(text: str, most: int) -> None:
    made = clip_mrkdwn(text, most)
    assert len(made) <= most
    assert "\n" not in made
    assert "<" not in made


def test_clipped_text_says_how_much_is_missing() -> None:
    assert clip("x" * 300, 100) == "x" * 60 + "… 240 more characters"
    assert clip("x" * 30, 20) == "x" * 10 + "…"
    assert more(1) == "… 1 more character"
    assert more(4_812) == "… 4,812 more characters"


@given(st.text(), st.integers(30, 60))
def test_chunks_are_whole_and_short(text: str, most: int) -> None:
    parts = list(chunks(text, most))
    assert all(0 < len(part) <= most for part in parts)
    assert "".join(parts) == show(text, 10_000_000).text


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("<@U1>, <!subteam^S1> & members", "<@U1>, <!subteam^S1> &amp; members"),
        ("<!channel> <@U1|x> <https://a|b>", "&lt;!channel&gt; &lt;@U1|x&gt; &lt;https://a|b&gt;"),
        ("x" * 40, "x" * 30 + "…"),
        ("x" * 28 + "<@U1>", "x" * 28 + "…"),
    ],
)
def test_own_words_keep_mentions_alone(words: str, kept: str) -> None:
    assert own_words(words, 80 if "<" in words[:20] else 30) == kept


LATIN = st.text(
    st.sampled_from("ab&<> \n\u00e9\u2028\u2022\u27e8\u0441U+1"), max_size=40
) | st.text(st.sampled_from("a &\n"), max_size=120)


def by_character(text: str, most: int, *, one_line: bool, lines: int) -> ShownText:
    """As `show` does it, one character after the other."""
    made, taken, used, breaks, altered = "", 0, 0, 0, False
    for piece, size, odd in _Reader(text, one_line=one_line, has_masks=False).pieces():
        used += width(piece)
        breaks += piece.count("\n")
        if used > most or breaks >= lines:
            break
        made, taken, altered = made + piece, taken + size, altered or odd
    return ShownText(text=made, hidden=len(text) - taken, altered=altered)


@given(LATIN, st.integers(-1, 130), st.booleans(), st.integers(1, 5))
def test_ordinary_texts_are_shown_as_any(text: str, most: int, one_line: bool, lines: int) -> None:
    shown = show(text, most, one_line=one_line, lines=lines)
    assert shown == by_character(text, most, one_line=one_line, lines=lines)
    assert show((text,), most, one_line=one_line, lines=lines) == shown


@given(LATIN, st.integers(5, 130))
def test_ordinary_texts_are_cut_as_any(text: str, most: int) -> None:
    cut = [""]
    for piece, _, _ in _Reader(text, one_line=False, has_masks=False).pieces():
        if len(cut[-1] + piece) > most:
            cut.append("")
        cut[-1] += piece
    assert [chunk for chunk in chunks(text, most) if chunk] == [chunk for chunk in cut if chunk]


def test_a_piece_too_small_for_anything_still_comes_to_an_end() -> None:
    assert "".join(chunks("&&", 3)) == "&&"
