"""One look at all texts of a value finds at least what a closer look at each of them masks."""

from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import example, given, settings, strategies as st

from agents.core.patterns import Pattern
from bot.redaction import names
from bot.redaction.call import _Masking, mask_data, mask_value, written
from bot.redaction.key_value_patterns import OWN, gates_now, is_free
from bot.redaction.mask import in_force, is_secret_key
from bot.redaction.masks import Names, masked_once
from bot.redaction.patterns import LOOKS
from bot.redaction.rules import NO_RULES, read_rules
from bot.redaction.scan import suspects_in

OURS = "our-own-secret"
PARTS = [
    *(needle for look in LOOKS for needle in look.needles),
    *(
        "card 4111 1111 1111 1111",
        "4111111111111111",
        "card",
        "3782 822463 10005",
        "378282246310005",
    ),
    *("-----BEGIN PRIVATE KEY-----\n", "A" * 40, "0123456789" * 4, "://me:pass@host"),
    *("Bearer abcdef0123456789abc", "password: hunter2", "the pin is 1234", "token=a1"),
    *("curl -u bot:hunter2 https://x", "--password", "--token hunter2", "<pin>1</pin>"),
    *("kind: Secret\n", "data:\n a: bb", '{"token": ["a"]}', "tenant-1234", "größe-12", "a\ud800b"),
    *(
        "password%3Dhunter2x",
        "cm9zYTpUcjB1YjRkb3I=",
        "cio" + "aB3dE6fH" * 4,
        "pul-" + "0a1b2c3d" * 5,
    ),
    *("•", "\n", " ", '"', "abc", "Secret", OURS),
]
NAMES = [
    *(
        "card",
        "cardNumbers",
        "password",
        "dbPassword",
        "name",
        "key",
        "Name",
        "value",
        "kind",
        "data",
        "auth",
        "tokens",
    ),
    *("pin", "PWD", "otp", "recovery phrase", "contraseña", "tenant code", "\u017fecret", "x"),
    "private_lines",
]
TEXTS = st.lists(st.sampled_from(PARTS) | st.text(max_size=4), max_size=4).map("".join)
NUMBERS = st.sampled_from([0, 1, True, 1.0, 4111111111111111, 4111111111111111.0, 12, 0.5, 10**40])
VALUES = st.recursive(
    st.none() | NUMBERS | TEXTS | st.just("cm9zYTpodW50ZXIy"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)
RULES = ["", "tenant-[0-9]{4}", "^tenant", "\\btenant", "tenant_code", "größe", "[^a]ize,ten+ant"]


@given(VALUES, st.sampled_from(NAMES), st.sampled_from(RULES), st.booleans(), st.booleans())
@example([4111111111111111.0, 4111111111111111], "x", "", False, False)
@example([["tenant-1234"]], "x", "^tenant", False, False)
@example({"a": {"auth": "cm9zYTpodW50ZXIy"}}, "x", "", False, False)
@settings(deadline=None)
def test_nothing_is_left_out(
    value: object, name: str, rules: str, is_open: bool, has_own: bool
) -> None:
    with in_force(read_rules(rules) if rules else NO_RULES, secrets=[OURS] if has_own else []):
        closer = _Masking(suspects=None, is_open=is_open).masked(value, name)
        suspects = suspects_in(value, OWN, gates_now(is_open=is_open))
        assert _Masking(suspects=suspects, is_open=is_open).masked(value, name) == closer


@pytest.mark.parametrize("word", sorted(names._SECRET_WORDS | names._SECRET_LAST))
def test_each_name_of_a_secret_is_found(word: str) -> None:
    for name in (word, word.upper(), f"my_{word}", f"my{word.title()}"):
        assert names.NAME_GATE.finds(name)


@pytest.mark.parametrize("pair", sorted(names._SECRET_PAIRS))
def test_each_name_of_two_words_is_found(pair: tuple[str, str]) -> None:
    for between, name in product((" ", "_", "-", "."), (pair, tuple(map(str.upper, pair)))):
        assert is_secret_key(between.join(pair))
        assert names.NAME_GATE.finds(between.join(name))


@given(st.lists(st.sampled_from(NAMES) | st.text(max_size=6), max_size=3).map("".join))
def test_what_is_not_found_is_no_name_of_a_secret(name: str) -> None:
    assert names.NAME_GATE.finds(name) or not is_secret_key(name)


def test_what_a_rule_says_of_the_beginning_of_a_text_is_looked_for_in_each() -> None:
    with in_force(read_rules("^tenant-[0-9]{4}")):
        assert mask_data(["a", "tenant-1234", "a tenant-1234"]) == [
            "a",
            "•••• redacted (11 characters)",
            "a tenant-1234",
        ]


@pytest.mark.parametrize("text", ["abc", r"\d{3}", "[^a]x", r"foo\.bar", r"[[:alpha:]]x", "a|b"])
def test_what_is_found_anywhere_may_be_looked_for_in_all_texts_at_once(text: str) -> None:
    assert is_free(Pattern(text))


@pytest.mark.parametrize("text", ["^a", "a$", r"\ba", r"a\B", r"\Aa", r"a\z", r"\[^a", "(?m)^a"])
def test_what_says_where_it_stands_may_not(text: str) -> None:
    assert not is_free(Pattern(text))


def test_rules_of_very_many_words_are_kept_all_the_same() -> None:
    keys = ",".join(f"{'abcdefghij' * 15}x{number}_id" for number in range(50))
    with in_force(read_rules(keys)):
        name = keys.partition(",")[0]
        assert mask_data([{name: "hunter2"}]) == [{name: "•••• redacted (7 characters)"}]


def test_the_kept_answer_about_a_name_follows_the_rules() -> None:
    assert not is_secret_key("tenant_code")
    with in_force(read_rules("tenant_code")):
        assert is_secret_key("tenant_code")
    assert not is_secret_key("tenant_code")


def test_a_value_of_one_drawing_is_masked_once_whoever_reads_it() -> None:
    text = json.dumps({"token": "hunter2", "more": ["x"] * 50})
    with masked_once():
        first = json.loads(text)
        words = mask_value("data", first)
        assert mask_value("data", json.loads(text)) is words
        assert mask_value("data", first) is words
        assert mask_value("other", first) == words
        assert written(mask_value("data", first, Names(is_open=True))) != written(words)
    assert mask_value("data", first) == words
