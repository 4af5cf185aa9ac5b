"""The form of the site's pages: short, of one kind, without history."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.pages.site import DOCS, ROOT, prose, written_pages

PAGES = written_pages()
MOST_WORDS = 36_000
"""Maximum number of words on the pages that people write, README.md and code blocks among them."""
_DIRECTIVES = re.compile(r"^```\{eval-rst\}\n.*?^```$", re.DOTALL | re.MULTILINE)
"""Lists of names, which the site replaces by their docstrings."""
_WORD = re.compile(r"\S*\w\S*")
MOST_IN_FIRST_PARAGRAPH = 50
LONGEST_LINE = 120
HISTORY = re.compile(
    r"\b(no longer|earlier release|used to be|previous version|anymore)\b", re.IGNORECASE
)


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def paragraphs(page: Path) -> list[str]:
    return [paragraph.strip() for paragraph in prose(page).split("\n\n") if paragraph.strip()]


def test_all_pages_together_are_short() -> None:
    pages = [ROOT / "README.md", *PAGES]
    texts = [_DIRECTIVES.sub("", page.read_text("utf-8")) for page in pages]
    assert sum(len(_WORD.findall(text)) for text in texts) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_begins_with_its_purpose(page: Path) -> None:
    title, first, *_ = paragraphs(page)
    assert title.startswith("# ")
    assert len(first.split()) <= MOST_IN_FIRST_PARAGRAPH
    assert "](" not in first
    assert not first.startswith(("#", "|", "-", ">"))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_is_readable_as_it_is_written(page: Path) -> None:
    text = prose(page)
    long = [line for line in text.splitlines() if len(line) > LONGEST_LINE and line[:1] != "|"]
    assert long == []
    assert re.findall(r"</?[a-z]+[ >]", re.sub(r"`[^`\n]*`", "", text)) == []
    assert HISTORY.findall(text) == []
    assert "not written yet" not in text


HOW_TOS = [page for page in PAGES if page.parent.name == "how-to" and page.stem != "index"]


@pytest.mark.parametrize("page", HOW_TOS, ids=name_of)
def test_a_guide_ends_with_what_may_go_wrong_and_where_to_read_on(page: Path) -> None:
    text = page.read_text("utf-8")
    assert re.search(r"^## If something is wrong$", text, re.MULTILINE)
    assert re.search(r"^(## See also|See also:)", text, re.MULTILINE)


def messages(page: Path) -> list[str]:
    """Messages in the first column of the table of what may go wrong."""
    text = page.read_text("utf-8").partition("## If something is wrong")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")][2:]
    quoted = [pair for cell in cells for pair in re.findall(r"`([^`]+)`|\*([^*]+)\*", cell)]
    return [code or said for code, said in quoted]


@cache
def sources() -> str:
    """All that the program can say, with one blank between words."""
    files = [ROOT / "bot" / "words" / "en.json", ROOT / "Makefile"]
    files.append(ROOT / "tests" / "unit" / "bot" / "words" / "test_translations.py")
    for folder in ("agents", "bot", "countersign_client", "slack_sandbox", "storage"):
        files += (ROOT / folder).rglob("*.py")
    text = " ".join(file.read_text("utf-8") for file in files)
    joined = re.sub(r'"\s*\n\s*f?"', "", text)  # strings that go on in the next line
    return re.sub(r"\s+", " ", joined)


@pytest.mark.parametrize("page", HOW_TOS, ids=name_of)
def test_messages_of_a_guide_are_said_by_the_program(page: Path) -> None:
    strange = [message for message in messages(page) if not is_said(message)]
    assert strange == []


def is_said(message: str) -> bool:
    """Whether three words of it in a row, or all of a shorter one, stand in the code."""
    words = message.split()
    size = min(3, len(words))
    runs = (" ".join(words[at : at + size]) for at in range(len(words) - size + 1))
    return any(run in sources() for run in runs)


def test_a_message_that_nothing_says_is_noticed() -> None:
    assert not is_said("frobnication of the widget has stopped")
    assert is_said("did you mean deploy?")
