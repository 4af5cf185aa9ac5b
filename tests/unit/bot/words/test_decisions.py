"""Typed words beside a waiting card: which of them its author may take for a decision."""

from __future__ import annotations

import pytest

from bot.words.decisions import looks_like_decision


@pytest.mark.parametrize(
    "text",
    [
        *("yes", "y", "No!", "nope", "OK.", "lgtm", "ship it", "+1", "do it", "looks good to me"),
        *("yes, approved", "Yes, please do it.", "yes please", "Approved, thanks!", "I approve"),
        *("go ahead and run it", "Please go ahead", "sounds good, go", "it's fine with me"),
        *("that's ok for me", "That\u2019s fine.", "No, don't do it", "rejected", "no thank you"),
        *("👍", "👍🏽", "👍👍 go!", "✅", "❌", "yes 🎉", ":+1:", ":thumbsup:", "approved :tada:"),
        *(":+1::skin-tone-3:", ":white_check_mark:", "yes :pray:", "not approved", "-1"),
    ],
)
def test_a_reply_that_only_decides_is_recognized(text: str) -> None:
    assert looks_like_decision(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "🎉", ":tada:", "thanks", "and then?", "ok?", "is it approved?", "who approves this"),
        *("yes, but use staging", "no, pay 6 instead", "ok, then deploy 1.4.3", "yes 5"),
        *("approve only the first one", "go to Berlin", "good morning", "+100", "no more than 10"),
        "yes yes yes yes yes yes yes yes yes yes yes",
    ],
)
def test_a_reply_that_says_more_is_for_the_agent(text: str) -> None:
    assert not looks_like_decision(text)
