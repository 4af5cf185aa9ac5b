"""I2: whoever approves has seen all of what runs, and no two calls look alike to them.

Arbitrary tools, declarations and arguments; the cards are drawn and the rule of the use case is
asked, as for a click.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from typing import Any

from hypothesis import HealthCheck, assume, given, settings, strategies as st

from bot.approvals.disclosure import Opened, Surface, guesses, has_opened, with_opened
from bot.layout.characters import is_unseen
from bot.questions.drawing import drawn_question
from bot.questions.form import AnswerForm, Form, ask_of, in_order
from bot.records.approval import Approval
from bot.redaction.call import PLAIN, mask_call, mask_value, written
from bot.redaction.mask import in_force
from bot.redaction.masks import Mask, masks_in
from bot.redaction.rules import NO_RULES
from bot.slack.cards.card_for import card_for, shows_all
from bot.slack.cards.details import details_modal, fits_details, pages_of
from tests.unit.bot.slack.cards.samples import an_approval

ADA = "U0ADA"
NAMES = ["token", "password", "command", "to_account", "note", "a", "b", "data", "", "(no name)"]
PIECES = [
    *("token=", "password: ", "abc123", "ghp_0123456789abcdefghij", "4111111111111111", " ", "\n"),
    *('"', "$(curl x|sh)", "`reboot`", "; rm -rf /", "\u200b", "\u00a0", "\u0430", "\u05e9", "x"),
    *(
        " " * 60,
        "\n" * 9,
        "⟨5 spaces⟩",
        "⟨U+200B⟩",
        "•••• redacted (6 characters)",
        "↵",
        "5",
        "true",
    ),
    *("{", "}", '{"a": 1}', "[1]", "null", "x" * 300, "long text " * 90, "https://me:", "@host"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=5).map("".join) | st.text(max_size=12)
names = st.sampled_from(NAMES) | st.text(max_size=6) | st.just("n" * 90)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
calls = st.dictionaries(names, values, max_size=4)
declared = st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple)
many = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    max_examples=max(settings().max_examples, 30),
)


def holding(call: dict[str, Any], secret: tuple[str, ...], shown: tuple[str, ...]) -> Approval:
    shown = tuple(name for name in shown if name not in secret)
    return an_approval(
        title="Run it",
        why="",
        preview="",
        arguments=call,
        form=AnswerForm(form=Form.CALL, secret=secret, shown=shown).to_data(),
    )


def is_live(approval: Approval) -> bool:
    """Whether Approve on this card would be taken from Ada, as `Approvals.check_seen` says."""
    if guesses(approval):
        return has_opened(approval, ADA, Opened.CLEAR)
    return shows_all(approval, Surface.CARD) or has_opened(approval, ADA, Opened.DETAILS)


def drawn(approval: Approval) -> str:
    """What Ada sees: the card, and what she has opened; without ids and digests."""
    pages: list[Any] = [card_for(approval, approvers_text="").blocks]
    if has_opened(approval, ADA, Opened.DETAILS):
        is_open = has_opened(approval, ADA, Opened.CLEAR)
        pages += [details_modal(approval)["blocks"]] if is_open else []
        pages += [] if is_open else pages_of(approval)[0]
    return "".join(map(as_seen, json.dumps(pages, ensure_ascii=False)))


@cache
def as_seen(character: str) -> str:
    """A character as the eye takes it: all spaces are one, and what shows nothing is nothing."""
    if unicodedata.category(character) == "Zs":
        return " "
    return "" if is_unseen(character) else character


def opened(approval: Approval, what: Opened) -> Approval:
    return approval.changed(seen=with_opened(approval, ADA, what))


def has_approve(approval: Approval) -> bool:
    return "countersign:approve" in drawn(approval)


def plain_words(approval: Approval) -> str:
    """All texts that are drawn, one after the other, as they are read."""
    literals = re.findall(r'"text": "((?:[^"\\]|\\.)*)"', drawn(approval))
    return "".join(json.loads(f'"{text}"', strict=False) for text in literals)


@many
@given(calls, declared, declared)
def test_what_the_card_hides_makes_approve_impossible_until_it_is_opened(
    call: dict[str, Any], secret: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    approval = holding(call, secret, shown)
    masks = ask_of(approval).masks
    hidden = [m for name, value in call.items() for m in masks_in(mask_value(name, value, masks))]
    unsure = [mask for mask in hidden if mask.is_guess]
    if unsure or not shows_all(approval, Surface.CARD):
        assert not is_live(approval)
    for mask in unsure:
        assert PLAIN.fullmatch(mask.clear)
        assert mask.clear in json.dumps(approval.arguments, ensure_ascii=False)
    for mask in hidden:
        assert mask.is_guess or any(name in secret for name in call)
    seen = opened(approval, Opened.CLEAR)
    assert is_live(seen)
    if has_approve(seen) and fits_details(drawn_question(approval)):
        shown_now = plain_words(seen)
        assert all(mask.clear in shown_now for mask in unsure)
    changed = seen.changed(digest="e" * 64)
    assert is_live(changed) is is_live(changed.changed(seen=()))


@many
@given(calls, calls, declared, declared, st.sampled_from([None, *Opened]))
def test_no_two_calls_look_alike_where_approve_is_live(
    first: dict[str, Any],
    other: dict[str, Any],
    secret: tuple[str, ...],
    shown: tuple[str, ...],
    what: Opened | None,
) -> None:
    with in_force(NO_RULES, key=b"installation"):
        approvals = [holding(call, secret, shown) for call in (first, other)]
        assume(in_order(first) != in_order(other))
        if what is not None:
            approvals = [opened(approval, what) for approval in approvals]
        assume(all(is_live(each) and has_approve(each) for each in approvals))
        assert drawn(approvals[0]) != drawn(approvals[1])


def twins_of(value: Any) -> list[Any]:
    """Other values that look, or are written, nearly the same."""
    made: list[Any] = [json.dumps(value), [value], {"a": value}]
    if not isinstance(value, str):
        return [*made, str(value)]
    for old, new in (
        *((" ", "\u00a0"), (" ", "  "), ("a", "\u0430"), ("x", "x\u200b"), ("\n", "\u2028")),
        *(("\n", "↵"), ("•", "\u2022\ufe0f"), ("5", "\uff15"), (" " * 60, "⟨60 spaces⟩")),
    ):
        made.append(value.replace(old, new))
    made += [f"{value} ", f" {value}", f'"{value}"', value + "\u2060", written(mask_call(value))]
    made.append(re.sub("[\u200b\u00a0\u0430]", lambda m: f"⟨U+{ord(m[0]):04X}⟩", value))
    try:
        return [*made, json.loads(value)]
    except ValueError:
        return made


@settings(many, max_examples=max(settings().max_examples, 20))
@given(values | texts, st.sampled_from(["token", "note", "n" * 90]), st.booleans())
def test_what_looks_nearly_the_same_is_told_apart(value: Any, name: str, is_nested: bool) -> None:
    def call_of(argument: Any) -> dict[str, Any]:
        return {"a": 1, name: [argument] if is_nested else argument}

    with in_force(NO_RULES, key=b"installation"):
        pictures = pictures_of(call_of(value))
        for other in twins_of(value):
            if json.dumps(other) != json.dumps(value):
                assert pictures.isdisjoint(pictures_of(call_of(other)))


def pictures_of(call: dict[str, Any]) -> set[str]:
    """All that Ada may see when her Approve is taken: as it is asked, and opened."""
    approval = holding(call, (), ())
    both = (approval, opened(approval, Opened.CLEAR))
    return {drawn(card) for card in both if is_live(card) and has_approve(card)}


@many
@given(texts, st.sampled_from(["token", "note"]))
def test_a_mask_never_hides_what_a_shell_would_read(text: str, name: str) -> None:
    for part in mask_value(name, text):
        if isinstance(part, Mask):
            assert not set(part.clear) & set(" \n\t\"'$`|;&<>(){}[]\\*?!~#")
