"""What people typed, given back from Slack's mark-up."""

from __future__ import annotations

import pytest

from bot.words.typed import typed_in_form, typed_text


@pytest.mark.parametrize(
    ("sent", "typed"),
    [
        ("<mailto:bob@acme.example|bob@acme.example>", "bob@acme.example"),
        ("<mailto:Bob@acme.example>", "Bob@acme.example"),
        ("<mailto:eve@evil.example|bob@acme.example>", "eve@evil.example"),
        ("<http://acme.example|acme.example>", "acme.example"),
        ("<http://acme.example/|acme.example>", "acme.example"),
        ("<https://acme.example/a?b&amp;c>", "https://acme.example/a?b&c"),
        ("<https://acme.example|https://acme.example>", "https://acme.example"),
        ("<https://evil.example|acme.example>", "https://evil.example"),
        ("<tel:+15551234567|+1 (555) 123-4567>", "+1 (555) 123-4567"),
        ("<tel:+15551234567|call me>", "+15551234567"),
        ("<#C1|ops> <#C1> <#C1|>", "#ops <#C1> <#C1>"),
        ("<@U1> <@U1|ada> <!subteam^S1|@oncall>", "<@U1> <@U1> <!subteam^S1>"),
        ("<!here> <!channel|channel>", "@here channel"),
        ("<!date^1^{date}|today>", "today"),
        ("&lt;mailto:a@b.example|a@b.example&gt;", "<mailto:a@b.example|a@b.example>"),
        ("&amp;lt; a &lt; b", "&lt; a < b"),
        ("launch :rocket:", "launch 🚀"),
        (":+1::skin-tone-3: :woman-running::skin-tone-6:", "👍🏼 🏃🏿\u200d♀️"),
        (":our_logo: 10:30:15", ":our_logo: 10:30:15"),
        ("db:us:east 2001:db8:1234:a:b:1 10:100:20", "db:us:east 2001:db8:1234:a:b:1 10:100:20"),
        ("(:rocket::wave::skin-tone-4:), :x:.", "(🚀👋🏽), ❌."),
        ("`:x:` ```a\n:x:``` <http://a.example/:x:/>", "`:x:` ```a\n:x:``` http://a.example/:x:/"),
        ("`<http://acme.example|acme.example>`", "`acme.example`"),
    ],
)
def test_a_message_is_read_as_it_was_typed(sent: str, typed: str) -> None:
    assert typed_text(sent) == typed


@pytest.mark.parametrize(
    ("sent", "initial", "typed"),
    [
        ("launch :rocket:", "", "launch 🚀"),
        ("launch :rocket:", "launch 🚀", "launch 🚀"),
        ("launch :rocket:", "launch :rocket:", "launch :rocket:"),
        ("start :rocket: :x:", "launch :rocket:", "start :rocket: ❌"),
        (":point_up:", "☝", "☝"),
        ("2001:db8:1234:a::1", "", "2001:db8:1234:a::1"),
        ("arn:aws:id:us:db", "arn:aws:id:db", "arn:aws:id:us:db"),
        ("<mailto:a@b.example|a@b.example>", "", "<mailto:a@b.example|a@b.example>"),
    ],
)
def test_a_form_keeps_the_names_that_it_began_with(sent: str, initial: str, typed: str) -> None:
    assert typed_in_form(sent, initial) == typed
