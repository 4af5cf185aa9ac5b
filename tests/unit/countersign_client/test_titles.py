"""Titles of calls that a framework holds: people tell two calls of one tool apart by them."""

from __future__ import annotations

from typing import Any

import pytest

from countersign_client.asking import title_of_call

SECRET = "k" * 41


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ({}, "Run refund"),
        ({"order": 12, "amount": 4.5, "fast": True}, "Run refund: order 12, amount 4.5, fast true"),
        ({"to": "Ada", "note": "one\ntwo", "tags": ["x"], "none": None}, "Run refund: to Ada"),
        ({"token": SECRET, "order": 12}, "Run refund: order 12"),
        (
            {f"n{n}": "v" * 40 for n in range(9)},
            f"Run refund: n0 {'v' * 40}, n1 {'v' * 40}, n2 {'v' * 40}",
        ),
    ],
)
def test_a_title_has_the_short_arguments_each_whole(arguments: Any, title: str) -> None:
    assert title_of_call("refund", arguments) == title
    assert len(title) <= 150
