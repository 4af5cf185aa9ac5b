"""Values of buttons and modals: made in one form, and read in no other."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from bot.errors import InvalidInputError
from bot.layout.action_ids import (
    IN_MENU,
    ActionId,
    Reference,
    decode,
    decode_option,
    encode,
    encode_option,
)

ID = "apr_" + "0123456789abcdef" * 2
DIGEST = "ab" * 32


def test_names_are_frozen() -> None:
    buttons = ("approve", "reject", "edit", "answer", "details", "ran", "again", "give_up")
    more = (
        "accept",
        "respond",
        "ignore",
        "choose",
        "pick_1",
        "pick_2",
        "pick_3",
        "pick_4",
        "reveal",
        "withdraw",
        "compare",
        "take_back",
        "claim",
        "let_go",
        "let_run",
        "lift",
        "snooze",
        "ask_back",
        "more",
        "grant",
        "revoke",
        "override",
        "batch",
        "edit_page",
        "hand_over",
        "page",
        "page_back",
        "page_next",
        "seen",
        "ask_admin",
        "stop_grant",
        "stop_agent",
        "approve_all",
        "batch_reject",
        "batch_details",
        "batch_split",
        "batch_ask",
        "batch_withdraw",
    )
    forms = (
        "reject",
        "edit",
        "answer",
        "details",
        "ran",
        "respond",
        "choose",
        "withdraw",
        "lift",
        "snooze",
        "ask_back",
        "grant",
        "override",
        "batch",
        "notice",
        "review",
        "hand_over",
        "ask_admin",
        "stop_grant",
        "batch_reject",
        "batch_ask",
        "batch_withdraw",
    )
    names = {*buttons, *more, "value", *(f"{form}_modal" for form in forms)}
    assert {str(name) for name in ActionId} == {f"countersign:{name}" for name in names}


def test_value_comes_back() -> None:
    value = encode(ID, DIGEST)
    assert value == f"{ID}.{DIGEST[:32]}"
    assert decode(value) == Reference(approval_id=ID, shown=DIGEST[:32])


@pytest.mark.parametrize(
    ("approval_id", "digest"),
    [
        ("", DIGEST),
        (ID.upper(), DIGEST),
        (f"{ID}0", DIGEST),
        (f"{ID}\n", DIGEST),
        (ID, ""),
        (ID, "ab" * 15),
        (ID, "xy" * 32),
    ],
)
def test_malformed_record_makes_no_button(approval_id: str, digest: str) -> None:
    with pytest.raises(ValueError, match="malformed"):
        encode(approval_id, digest)


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        [],
        "",
        ID,
        f"{ID}.",
        f"{ID}.{DIGEST[:31]}",
        f"{ID}.{DIGEST[:33]}",
        f"{ID}.{DIGEST[:32]}\n",
        f" {ID}.{DIGEST[:32]}",
        f"{ID}.{DIGEST[:32].upper()}",
        f"{ID}:{DIGEST[:32]}",
    ],
)
def test_any_other_value_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match="is isn't one I made"):
        decode(value)


@given(st.text() | st.binary().map(repr))
def test_noise_is_refused(value: str) -> None:
    with pytest.raises(InvalidInputError):
        decode(value)


@pytest.mark.parametrize("action", IN_MENU)
def test_an_option_of_the_menu_comes_back(action: ActionId) -> None:
    value = encode_option(action, ID, DIGEST)
    assert len(value) <= 150  # Slack's limit
    assert decode_option(value) == (action, Reference(approval_id=ID, shown=DIGEST[:32]))


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "",
        f"{ID}.{DIGEST[:32]}",
        f"countersign:approve={ID}.{DIGEST[:32]}",
        f"countersign:claim={ID}.{DIGEST}",
        f"countersign:claim=={ID}.{DIGEST[:32]}",
        f"claim={ID}.{DIGEST[:32]}",
    ],
)
def test_no_other_option_is_read(value: object) -> None:
    with pytest.raises(InvalidInputError):
        decode_option(value)
