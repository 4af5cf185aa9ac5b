"""What the operator adds to what is masked: read, checked, applied, bounded in time."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings, strategies as st

from bot.config.settings import Settings
from bot.errors import InvalidSettingsError
from bot.redaction.mask import in_force, is_secret_key, mask, mask_text
from bot.redaction.patterns import REDACTED
from bot.redaction.rules import (
    MOST_CHARACTERS,
    MOST_RULES,
    NO_RULES,
    MaskRules,
    RuleError,
    read_rules,
    words_of,
)

GIVEN = {
    "SLACK_BOT_TOKEN": "xoxb-1-2-abc",
    "SLACK_APP_TOKEN": "xapp-1-A-2-abc",
    "COUNTERSIGN_APPROVERS": "U0ADALINDQ",
}
IBAN = r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b"


def rules(text: str) -> MaskRules:
    return read_rules(text)


def refusal(text: str) -> str:
    with pytest.raises(RuleError) as caught:
        rules(text)
    return str(caught.value)


# ---- reading -----------------------------------------------------------------------------------


def test_names_and_patterns_are_told_apart() -> None:
    read = rules(r"employee_id, salary-band" + "\nEMP-[0-9]{6}")
    assert read.keys == (("employee", "id"), ("salary", "band"))
    assert [pattern.text for pattern in read.patterns] == ["EMP-[0-9]{6}"]


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        (r"a\d{2,3}b,c\.d", [r"a\d{2,3}b", r"c\.d"]),
        (r"x[,;]y,z\d", [r"x[,;]y", r"z\d"]),
        (r"x[]],z\d", [r"x[]]", r"z\d"]),
        (r"x[^],]y,z\d", [r"x[^],]y", r"z\d"]),
        (r"(a|b,c)d,z\d", [r"(a|b,c)d", r"z\d"]),
        (r"a\,b,z\d", [r"a\,b", r"z\d"]),
        (r"a\(b,z\d", [r"a\(b", r"z\d"]),
        ("x\\d\n\n , y\\d ,\n", [r"x\d", r"y\d"]),
        (r"x\d,x\d", [r"x\d"]),
    ],
)
def test_commas_in_brackets_separate_nothing(text: str, patterns: list[str]) -> None:
    assert [pattern.text for pattern in rules(text).patterns] == patterns


@pytest.mark.parametrize("name", ["employeeId", "EMPLOYEE_ID", "employee-id", "the_employee_id_2"])
def test_a_key_is_known_in_all_its_spellings(name: str) -> None:
    with in_force(rules("employee_id")):
        assert is_secret_key(name)
        assert mask(name, 4711) == REDACTED
        assert mask("", {name: ["x"]}) == {name: REDACTED}
        assert mask_text(f"{name}=4711 and {name}: 'a b'") == f"{name}={REDACTED} and {name}: " + (
            REDACTED
        )
    assert not is_secret_key(name)
    assert mask(name, 4711) == 4711


@pytest.mark.parametrize("name", ["employee", "id", "id_employee", "employed_id"])
def test_other_keys_are_not(name: str) -> None:
    with in_force(rules("employee_id")):
        assert mask(name, 4711) == 4711


def test_a_harmless_ending_does_not_undo_the_operators_word() -> None:
    with in_force(rules("token_count")):
        assert mask("token_count", 3) == REDACTED
        assert mask("token_count", None) is None


def test_words() -> None:
    assert words_of("dbPassword2_größe") == ["db", "password", "2", "gr", "öß", "e"]


# ---- applying ----------------------------------------------------------------------------------


def test_a_pattern_masks_everywhere() -> None:
    with in_force(rules(f"{IBAN}\nEMP-[0-9]{{6}}")):
        text = "pay DE89 3704 0044 0532 0130 00 to EMP-123456, not EMP-12"
        assert mask_text(text) == f"pay {REDACTED} to {REDACTED}, not EMP-12"
        assert mask("to", {"DE89370400440532013000": 1}) == {REDACTED: 1}
    assert "DE89" in mask_text(text)


def test_what_is_masked_is_not_masked_again() -> None:
    with in_force(rules("[a-z]{8}")):
        once = mask_text("api_key=hunter2 and somewhat")
        assert once == f"api_key={REDACTED} and {REDACTED}"
        assert mask_text(once) == once


def test_what_touches_is_one() -> None:
    with in_force(rules("[0-9]")):
        assert mask_text("a 1234 5") == f"a {REDACTED} {REDACTED}"


def test_a_pattern_that_can_match_nothing_between_does_no_harm() -> None:
    with in_force(rules(r"y+z|\b")):
        assert mask_text("x yz x") == f"x {REDACTED} x"


@given(st.integers(0, 1_500), st.integers(0, 1_500), st.integers(1, 400))
@settings(deadline=None)
def test_a_secret_is_found_wherever_it_stands(before: int, after: int, size: int) -> None:
    secret = "Z" * size
    with in_force(MaskRules(patterns=rules("Z{1,400}").patterns)):
        text = f"{'a ' * before}{secret}{' b' * after}"
        assert mask_text(text) == f"{'a ' * before}{REDACTED}{' b' * after}"


def test_own_secrets_are_masked_wherever_they_stand() -> None:
    with in_force(NO_RULES, secrets=["purple-horse", "purple-horse-2", "abc"]):
        assert mask_text("xpurple-horsex purple-horse-2") == f"x{REDACTED}x {REDACTED}"
        assert mask_text("abc") == "abc"
    assert mask_text("purple-horse") == "purple-horse"


def test_several_may_be_in_force_and_end_in_any_order() -> None:
    first, second = in_force(rules(r"one\d")), in_force(rules(r"two\d"), secrets=["purple-horse"])
    first.__enter__()
    second.__enter__()
    assert mask_text("one1 two2 purple-horse") == " ".join([REDACTED] * 3)
    first.__exit__(None, None, None)
    assert mask_text("one1 two2") == f"one1 {REDACTED}"
    second.__exit__(None, None, None)
    assert mask_text("one1 two2 purple-horse") == "one1 two2 purple-horse"


# ---- refusing ----------------------------------------------------------------------------------


def test_a_broken_pattern() -> None:
    assert refusal("a(b").startswith("'a(b' isn't valid: missing )")


def test_a_long_pattern() -> None:
    said = refusal("[a-c]" * 41)
    assert "has 205 characters; write at most 200" in said
    assert len(said) < 120
    assert rules("[a-c]" * (MOST_CHARACTERS // 5)).patterns


def test_too_many() -> None:
    assert "has 51 rules" in refusal("\n".join(f"a{n}.b" for n in range(MOST_RULES + 1)))


@pytest.mark.parametrize("text", [",", " \n ", ",\n,"])
def test_none(text: str) -> None:
    assert "it has no rule" in refusal(text)


@pytest.mark.parametrize("text", ["a*", "(x)?", ".", r"[\s\S]", "^", "$|x", "()"])
def test_what_matches_nothing_or_everything(text: str) -> None:
    assert "matches nothing, or everything" in refusal(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("(?=x)y", "look-around"),
        ("(?<!x)y", "look-around"),
        (r"(['x])a+\1", "back-reference"),
        ("(?P<q>x)y(?P=q)", "back-reference"),
        ("a++b", "neither possible nor needed"),
        (r"KD-[0-9]+\Z", r"write \\z"),
        (r"\u0416+", "write the character itself"),
        (r"\pL{1,900}x", "repeat less often"),
        ("(?:a{1,90}){1,90}", "bad repetition|invalid repetition|repeat less often"),
    ],
)
def test_what_re2_has_not_is_refused_by_name(text: str, fault: str) -> None:
    said = refusal(text)
    assert re.search(fault, said)
    assert said.startswith(repr(text)[:20])


HARD = [
    "(a+)+$",
    "(a*)*b",
    "(a|a)*b",
    "(a|aa)+$",
    r"(\w+\s?)+!",
    r"([a-zA-Z0-9]+)*@",
    "(x+x+)+y",
    r"\w+\w+\w+\w+!",
    "(?:(?:foo)+)+bar",
    "(#+)+;",
    "(~+)+=",
    "([{]+)+[}]",
    r"(\x01+)+b",
    "(Ж+)+я",
]
"""Each takes a backtracking engine for ever on some text."""


@pytest.mark.parametrize("text", HARD)
def test_no_pattern_hangs(text: str) -> None:
    with in_force(rules(text)):
        began = time.process_time()
        for piece in ("a", "#", "~", "{", "\x01", "Ж", "foo", "a ", "xx"):
            mask_text(piece * 50_000 + "\x00")
        assert time.process_time() - began < 10


def test_half_of_a_character_stops_no_pattern() -> None:
    with in_force(rules("[x-z]{3}")):
        assert mask_text("\ud800xyz") == f"\ud800{REDACTED}"


# ---- the setting -------------------------------------------------------------------------------


def test_the_setting() -> None:
    assert Settings.load(GIVEN).redact == NO_RULES
    settings = Settings.load({**GIVEN, "COUNTERSIGN_REDACT": "employee_id,EMP-[0-9]{6}"})
    assert settings.redact.keys == (("employee", "id"),)


@pytest.mark.parametrize("text", ["a(b", "(?=a)b", "x" * 300 + "+", "a*"])
def test_a_wrong_setting_is_told_at_start(text: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        Settings.load({**GIVEN, "COUNTERSIGN_REDACT": text})
    (problem,) = caught.value.problems
    assert problem.variable == "COUNTERSIGN_REDACT"
    assert problem.remedy
