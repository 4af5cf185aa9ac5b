"""Benchmark of drawing: processor time of each sample card, and of cards with one huge argument.

Run from the checkout:

    PYTHONPATH=. python benchmarks/bench_cards.py
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial

from bot.layout.blocks import Card
from bot.records.approval import Approval
from bot.slack.cards.card_for import card_for
from tests.unit.bot.slack.cards.samples import APPROVERS, CARDS, an_approval

ROUNDS = 15
HUGE = 400_000
LIMIT_MS, LIMIT_HUGE_MS = 3.0, 100.0
HUGE_TEXTS = {
    "one word": "x",
    "sentences": "The quick brown fox jumps. ",
    "lines with “pass” and signs": "echo <!channel> & go pass\n",
    "letters with accents": "Größe, straße, é ",
    "Hebrew": "שלום ",
    "SQL": "SELECT * FROM t WHERE a='b' AND c=12;\n",
}


def _rows(count: int) -> list[object]:
    return [{"id": n, "name": f"customer {n}", "paid": True} for n in range(count)]


HUGE_VALUES: dict[str, Callable[[int], object]] = {
    "objects of three fields": _rows,
    "objects of ten fields": lambda count: [
        {f"field {k}": f"a few words, {n}" for k in range(10)} for n in range(count)
    ],
    "one object": lambda count: {f"field {n}": f"value {n}" for n in range(count)},
    "words": lambda count: [f"item {n}" for n in range(count)],
    "whole numbers": lambda count: [*range(10_000, 10_000 + count)],
    "pairs of numbers": lambda count: [[n, n + 1] for n in range(count)],
    "addresses and phone numbers": lambda count: [
        {"mail": f"u{n}@example.com", "phone": f"+49 30 {n:07}"} for n in range(count)
    ],
    "names and passwords": lambda count: [
        {"user": f"u{n}", "password": f"hunter{n}"} for n in range(count)
    ],
    "texts with a password each": lambda count: [f"password: hunter{n}" for n in range(count)],
    "card numbers": lambda count: [4111111111111111 + 10 * n for n in range(count)],
}


def least_ms(draw: Callable[[], Card], rounds: int = ROUNDS) -> float:
    """The least processor time of several drawings, in milliseconds."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        draw()
        times.append(time.process_time() - begin)
    return 1000 * min(times)


def with_huge(text: str) -> Approval:
    """An approval with an argument that repeats a text."""
    whole = (text * (HUGE // len(text) + 1))[:HUGE]
    return an_approval(arguments={"data": whole})


def with_parts(make: Callable[[int], object]) -> Approval:
    """An approval with an argument of many parts."""
    each = len(json.dumps(make(1_000))) / 1_000
    return an_approval(arguments={"data": make(int(HUGE / each))})


def main() -> None:
    """Print a table."""
    samples = {name: least_ms(draw) for name, draw in CARDS.items()}
    slowest = max(samples, key=lambda name: samples[name])
    rows = [("sample cards, the slowest: " + slowest, samples[slowest], LIMIT_MS)]
    huge_ones = {name: with_huge(text) for name, text in HUGE_TEXTS.items()}
    huge_ones |= {name: with_parts(make) for name, make in HUGE_VALUES.items()}
    for name, huge in huge_ones.items():
        took_ms = least_ms(partial(card_for, huge, approvers_text=APPROVERS), rounds=5)
        rows.append((f"{HUGE:,} characters: {name}", took_ms, LIMIT_HUGE_MS))
    for words, took, limit in rows:
        sys.stdout.write(f"{words:<55} {took:7.1f} ms   wanted: at most {limit:.0f}\n")


if __name__ == "__main__":
    main()
