"""What the operator adds to what is masked: read, checked, applied, bounded in time."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings, strategies as st

from bot.errors import InvalidSettingsError
from bot.looks import REDACTED
from bot.maskrules import (
    MOST_CHARACTERS,
    MOST_RULES,
    NO_RULES,
    PATIENCE_MS,
    WINDOW,
    RuleError,
    Rules,
    read_rules,
    words_of,
)
from bot.redaction import in_force, is_secret_key, mask, mask_text
from bot.settings import Settings
from bot.timing import steady_clock

GIVEN = {"SLACK_BOT_TOKEN": "xoxb-1-2-abc", "SLACK_APP_TOKEN": "xapp-1-A-2-abc"}
IBAN = r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b"


def rules(text: str) -> Rules:
    return read_rules(text, steady_clock)


def refusal(text: str) -> str:
    with pytest.raises(RuleError) as caught:
        rules(text)
    return str(caught.value)


# ---- reading -----------------------------------------------------------------------------------


def test_names_and_patterns_are_told_apart() -> None:
    read = rules(r"employee_id, salary-band" + "\nEMP-[0-9]{6}")
    assert read.keys == (("employee", "id"), ("salary", "band"))
    assert [one.pattern for one in read.patterns] == ["EMP-[0-9]{6}"]


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
    assert [one.pattern for one in rules(text).patterns] == patterns


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
    with in_force(rules("(?=x)|y+z")):
        assert mask_text("x yz x") == f"x {REDACTED} x"


@given(st.integers(0, 3 * WINDOW), st.integers(0, 3 * WINDOW), st.integers(1, WINDOW // 2))
@settings(deadline=None)
def test_no_window_hides_a_secret(before: int, after: int, size: int) -> None:
    secret = "Z" * size
    with in_force(Rules(patterns=rules("Z{1,300}").patterns)):
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
    assert refusal("a(b").startswith("'a(b' is no regular expression: missing )")


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
    "text",
    [
        "(a+)+$",
        "(a*)*b",
        "(a|a)*b",
        "(a|aa)+$",
        r"(\d+)*x",
        r"(\w+\s?)+!",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
        r"([a-zA-Z0-9]+)*@",
        "(x+x+)+y",
        "(ab|a|b)+c",
        r"\w+\w+\w+\w+!",
        "(?:(?:foo)+)+bar",
    ],
)
def test_what_takes_too_long(text: str) -> None:
    began = time.process_time()
    assert "takes too long on some texts" in refusal(text)
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "text",
    [
        IBAN,
        r"EMP-\d+",
        r"[a-z]+@corp\.example",
        r"\b\d{3}-\d{2}-\d{4}\b",
        "(?i)project [a-z]+",
        "a+b",
    ],
)
def test_what_is_quick_enough(text: str) -> None:
    assert rules(text).patterns


def test_a_busy_machine_is_no_fault_of_the_pattern() -> None:
    """One slow look at the clock, as when the process had to wait: the next try counts."""
    ticks = itertools.count()

    def clock() -> int:
        return PATIENCE_MS * 50 if next(ticks) == 1 else 0

    assert read_rules("EMP-[0-9]{6}", clock).patterns


def test_a_clock_that_says_slow_each_time() -> None:
    ticks = itertools.count(step=PATIENCE_MS + 1)
    with pytest.raises(RuleError, match="takes too long"):
        read_rules("EMP-[0-9]{6}", lambda: next(ticks))


def test_the_time_of_a_slow_but_accepted_pattern_is_in_proportion() -> None:
    with in_force(rules("a+b")):
        began = time.process_time()
        assert mask_text("a" * 100_000) == "a" * 100_000
        assert time.process_time() - began < 6


# ---- the setting -------------------------------------------------------------------------------


def test_the_setting() -> None:
    assert Settings.load(GIVEN).redact == NO_RULES
    settings = Settings.load({**GIVEN, "COUNTERSIGN_REDACT": "employee_id,EMP-[0-9]{6}"})
    assert settings.redact.keys == (("employee", "id"),)


@pytest.mark.parametrize("text", ["a(b", "(a+)+$", "x" * 300 + "+", "a*"])
def test_a_wrong_setting_is_told_at_start(text: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        Settings.load({**GIVEN, "COUNTERSIGN_REDACT": text})
    (problem,) = caught.value.problems
    assert problem.variable == "COUNTERSIGN_REDACT"
    assert problem.remedy
