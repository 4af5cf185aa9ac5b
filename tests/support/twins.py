"""Tests that differ in nothing that they look at: for each change one of them runs.

Both drivers of MongoDB do the same behind one door, and so do SQLite's file and SQLite's memory,
and Slack's two ways to deliver, by socket and by HTTP; what is worth a test with both is found by a
half with each. So are what people do on a desk and on a phone, where a test does not ask how the
page looks: the others do, at both sizes. All run in the thorough profile; those with a driver also
in `make test-mongo`.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable

_TWINS = (
    re.compile(r"\b(motor|pymongo)\b"),
    re.compile(r"\bsqlite-(file|memory)\b"),
    re.compile(r"(?<![^-])(socket|http)(?=[-\]])"),
)
_SIZES = re.compile(r"\b(desk|phone-dark|phone)\b")

AT_ANY_SIZE = {
    "tests/browser/test_demo.py": (
        "test_staging_is_for_anybody_in_the_channel",
        "test_production_takes_two_of_those_on_call",
        "test_large_refund_is_for_finance",
        "test_skipped_time_brings_the_reminder_the_wider_ask_and_the_expiry",
    ),
    "tests/browser/test_forms.py": ("test_a_rejection_says_what_the_agent_may_do",),
    "tests/browser/test_messages.py": (
        "test_a_card_by_direct_message_says_where_it_is_from_and_ends_in_all_places",
    ),
    "tests/browser/test_page.py": (
        "test_reject_with_a_reason",
        "test_edit_with_a_wrong_value_first",
        "test_a_reply_answers_then_a_card",
        "test_stop_cancels_what_waits",
        "test_two_cards_second_decided_first",
    ),
    "tests/browser/test_roster.py": (
        "test_whoever_joins_a_group_may_decide",
        "test_closed_account_is_seen_and_opened_again",
    ),
    "tests/browser/test_surfaces.py": (
        "test_slash_offers_commands_with_their_hints",
        "test_bot_is_invited_where_it_is_not",
        "test_options_are_searched_by_the_keyboard",
        "test_neutral_page_has_no_examples",
        "test_time_is_that_of_the_persons_zone",
        "test_rare_blocks_are_drawn_or_named",
    ),
    "tests/browser/test_trouble.py": (
        "test_a_switch_is_not_turned_back_by_what_was_read_before",
        "test_disconnected_bot_comes_back",
        "test_a_decision_with_duplicate_events_and_lost_answers",
    ),
}
"""By file: what says and does the same on a desk and on a phone, and asks nothing about looks."""
_ALIKE = frozenset(f"{file}::{name}" for file, names in AT_ANY_SIZE.items() for name in names)


def left_out(names: Iterable[str]) -> set[str]:
    """The names of tests that need not run, as a twin of theirs does.

    Args:
        names: Ids of tests, as pytest writes them.

    Returns:
        Of all that differ in a driver, a transport, or in a size that is no matter, all but one;
        always the same one.
    """
    families: dict[str, set[str]] = defaultdict(set)
    for name in names:
        family = name
        is_alike = name.partition("[")[0] in _ALIKE
        for number, twins in enumerate((*_TWINS, _SIZES) if is_alike else _TWINS):
            test, bracket, case = family.partition("[")
            family = f"{test}{bracket}{twins.sub(f'<{number}>', case)}"
        families[family].add(name)
    left: set[str] = set()
    for family, members in families.items():
        ordered = sorted(members)
        left |= members - {ordered[zlib.crc32(family.encode()) % len(ordered)]}
    return left
