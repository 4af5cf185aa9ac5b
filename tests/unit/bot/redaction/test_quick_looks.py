"""What is quick about masking and counting changes nothing of what they do."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from bot.observability import events
from bot.observability.metrics import _MOST_SERIES, Metrics
from bot.redaction.key_value_patterns import (
    ALL_PLACES,
    CURL,
    CURL_GATE,
    ENCODED,
    ENCODED_GATE,
    NAMES_GATE,
    may_have_guess,
)
from bot.redaction.mask import mask_text
from bot.redaction.patterns import FIRST_GATE, LOOKS, MORE_GATE, REDACTED, mask_looks

PARTS = [
    *(needle for look in LOOKS for needle in look.needles),
    *("4111 1111 1111 1111", "4111111111111111", "2", "12", " ", "\n", "abc", "0123456789" * 4),
    *("-----BEGIN PRIVATE KEY-----", "A" * 40, "://me:pass@host", "Bearer abcdef0123456789abc"),
]


@given(st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=5)), max_size=6).map("".join))
def test_no_look_is_left_out(text: str) -> None:
    expected = text
    for look in LOOKS:
        expected = look.mask(expected)
    assert mask_looks(text) == expected


_LOOK_AROUND = re.compile(r"\(\?<?[=!][^()]*\)\)(?:[*+?]|\{[0-9,]+\})\+")
"""A possessive quantifier behind a group that ends with a look-around."""


def test_no_group_with_a_look_around_is_possessive() -> None:
    """Python 3.11.0 to 3.11.4, such as that of Debian 12, finds too little with it (gh-106052)."""
    assert _LOOK_AROUND.search(r"a(?:@b++(?=@)){0,4}+")
    assert [
        quick_look.pattern.pattern
        for quick_look in LOOKS
        if _LOOK_AROUND.search(quick_look.pattern.pattern)
    ] == []


NAMED = [
    *("Password: ", "--token ", "curl -u me:hunter22x ", "OTP=123456"),
    "kind: Secret\ndata:\n  a: b",
]


@given(st.lists(st.one_of(st.sampled_from(PARTS + NAMED), st.text(max_size=5)), max_size=6))
def test_one_look_opens_wherever_a_gate_does(parts: list[str]) -> None:
    text = "".join(parts)
    gates = (FIRST_GATE, MORE_GATE, NAMES_GATE, CURL_GATE, ENCODED_GATE)
    assert may_have_guess(text) == any(gate.finds(text) for gate in gates)
    expected = ENCODED.mask(mask_looks(text))
    for place in ALL_PLACES:
        expected = place.mask(expected)
    if CURL_GATE.finds(text):
        expected = CURL.sub(rf"\g<keep>{REDACTED}", expected)
    assert may_have_guess(text) or mask_text(text) == text == expected


def test_a_series_is_masked_when_it_is_made_and_then_found_again() -> None:
    metrics = Metrics()
    secret = "xoxb-" + "1" * 20
    for _ in range(3):
        metrics(events.SlackAnswered("chat.update", 0.1, error=secret))
        metrics(events.SlackAnswered("chat.postMessage", 0.1))
        metrics(events.GoneOn(-1.0))
    text = metrics.text().decode()
    assert secret not in text
    failed = f'{{error="{REDACTED}",method="chat.update"}} 3.0'
    assert f"countersign_slack_errors_total{failed}" in text
    assert 'countersign_slack_call_seconds_count{method="chat.update"} 3.0' in text
    assert 'countersign_slack_call_seconds_count{method="chat.postMessage"} 3.0' in text
    assert "countersign_decision_to_resume_seconds_count 3.0" in text


def test_one_label_of_two_metrics_is_two_series() -> None:
    metrics = Metrics()
    metrics(events.LeaseTakenOver("thread"))
    metrics(events.WorkFailed("thread"))
    metrics(events.WorkFailed("thread"))
    text = metrics.text().decode()
    assert 'countersign_lease_takeovers_total{record="thread"} 1.0' in text
    assert 'countersign_retries_total{record="thread"} 2.0' in text


def test_only_so_many_series_are_remembered() -> None:
    metrics = Metrics()
    for number in range(_MOST_SERIES + 5):
        metrics(events.SlackCalled(f"m{number}"))
    assert len(metrics._slack_calls._known) == _MOST_SERIES
    metrics(events.SlackCalled(f"m{_MOST_SERIES + 1}"))
    assert f'method="m{_MOST_SERIES + 1}"}} 2.0' in metrics.text().decode()
