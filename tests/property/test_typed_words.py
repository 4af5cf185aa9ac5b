"""Whatever a person types, the agent gets it: by message, by form and by command alike."""

from __future__ import annotations

import re

from hypothesis import example, given, strategies as st

from bot.slack.rich_text import markup_of
from bot.threads.message_event import plain_text
from bot.words.typed import typed_in_form, typed_text
from slack_sandbox.workspace.typed import TypedNames, typed, typed_in_form as in_form

BOT, ADA = "U0BOT", "U0ADA"
NAMES = TypedNames(
    people={
        "ada": {"type": "user", "user_id": ADA},
        "countersign": {"type": "user", "user_id": BOT},
        "here": {"type": "broadcast", "range": "here"},
    }.get,
    rooms={"ops": "C0OPS"},
    public={"C0OPS": "ops"},
)

WORDS = [
    *(
        "bob@acme.example",
        "ann.o+x@mail.acme.com",
        "acme.example",
        "acme.example/a?b=1&c=2",
        "main.py",
    ),
    *(
        "https://acme.example/",
        "http://a.example/x_y~z",
        "HTTPS://A.example",
        "ftp://a.example",
        "www.",
    ),
    *("+1 555 123 4567", "(555) 123-4567", "555-123-4567", "2027-10-15", "1.000", "12:30:45", "-3"),
    *(
        "🚀",
        "👋🏽",
        "🕵🏽\u200d♂️",
        "❤️\u200d🔥",
        "1️⃣",
        "🇩🇪",
        "©",
        "☺",
        "👩🏽\u200d🤝\u200d👨🏾",
        ":no_emoji:",
        ":",
        "::",
    ),
    *(
        "*b*",
        "_i_",
        "~s~",
        "*",
        "_",
        "2*3*4",
        "a_b_c",
        "`x`",
        "`https://a.example 🚀 bob@acme.example`",
    ),
    *(
        "<b>",
        "&amp;",
        "&lt;!here&gt;",
        "<@U0ADA>",
        "<https://a.example|b>",
        "|",
        "@nobody",
        "@here",
    ),
    *(
        "#ops",
        "#nowhere",
        "#1",
        "שלום",
        "مرحبا 12",
        "\u202eabc",
        "é",
        "\u00a0",
        "(",
        ").",
        "\\",
        "'",
        '"',
    ),
    *(
        "1. a",
        "> q",
        "```",
        "```\nx = '🚀' # <b>\n```",
        "\n",
        "\n> 🚀 q\n> r\n",
        "\n1. a\n2. b\n7. c\n",
    ),
]
LISTED = re.compile(r"^[-*] ", re.MULTILINE)
"""The client shows a point in its place."""


def texts(*between: str) -> st.SearchStrategy[str]:
    """Texts of odd words, with one of some separators between them."""
    word = st.sampled_from(WORDS) | st.text(max_size=5)
    pieces = st.lists(st.tuples(word, st.sampled_from(between)), min_size=1, max_size=8)
    joined = pieces.map(lambda pairs: "".join(f"{word}{space}" for word, space in pairs).strip())
    return joined.filter(lambda text: not LISTED.search(text))


TEXTS = texts("", " ", " ", " ", "\n")
APART = texts(" ", " ", " ", "\n")
"""Without blocks, only an emoji that stands alone is told from a name in colons."""
PATHS = st.lists(
    st.sampled_from(["us", "a", "b", "x", "100", "1234", "key", "db8", "arn", ""]), min_size=2
).map(lambda parts: ":".join(["urn", *parts, "end"]))


@given(text=TEXTS)
@example(text="> 🚀")
@example(text="10:100:20 💯 `:100:` a```💯```")
def test_a_message_arrives_as_it_was_typed(text: str) -> None:
    sent = typed(f"@countersign {text}", NAMES)
    markup = markup_of({"blocks": sent.blocks})
    assert markup is not None
    assert BOT in markup.mentions
    assert plain_text(sent.text, BOT, markup) == text
    reply = typed(text, NAMES)
    assert plain_text(reply.text, BOT, markup_of({"blocks": reply.blocks})) == text


@given(text=APART.filter(lambda text: "`" not in text))
def test_a_command_arrives_as_it_was_typed(text: str) -> None:
    """A command has no blocks, which would tell code from text."""
    assert typed_text(typed(text, NAMES).text) == text


@given(text=APART)
def test_a_form_arrives_as_it_was_typed(text: str) -> None:
    assert typed_in_form(in_form(text)) == text


@given(text=TEXTS)
@example(text=":rocket: 🚀")
def test_a_field_that_nobody_changed_stays(text: str) -> None:
    assert typed_in_form(in_form(text), text) == text


@given(text=PATHS)
def test_names_between_colons_are_no_emoji(text: str) -> None:
    assert typed_in_form(text) == text
    assert typed_text(text) == text
