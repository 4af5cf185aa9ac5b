"""Where the forms of secrets begin and end: one character more or less is something else."""

from __future__ import annotations

import base64

import pytest

from bot.redaction.patterns import REDACTED, is_card, is_login, is_random, mask_looks

X = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
HEX = "0123456789abcdef0123456789abcdef"


# ---- card numbers --------------------------------------------------------------------------------

SIZES: dict[str, frozenset[int]] = {
    **dict.fromkeys(["4"], frozenset({13, 16, 19})),
    **dict.fromkeys(["51", "55", "2221", "2229", "223"], frozenset({16})),
    **dict.fromkeys(["23", "26", "270", "271", "2720"], frozenset({16})),
    **dict.fromkeys(["34", "37"], frozenset({15})),
    **dict.fromkeys(["300", "305", "36", "38", "39"], frozenset({14})),
    **dict.fromkeys(["6011", "644", "649", "65", "62"], frozenset({16, 17, 18, 19})),
    **dict.fromkeys(["3528", "3529", "353", "358"], frozenset({16, 17, 18, 19})),
    **dict.fromkeys(["5018", "5893", "6304", "6759", "6761", "6763"], frozenset(range(13, 20))),
    **dict.fromkeys(["1", "2220", "2721", "31", "306"], frozenset()),
    **dict.fromkeys(["3527", "359", "50", "56", "643"], frozenset()),
    **dict.fromkeys(["66", "6764", "7", "9", "0"], frozenset()),
}


def with_check(prefix: str, size: int) -> str:
    """A number of so many digits, the last of which fits the others."""
    digits = prefix.ljust(size - 1, "0")
    total = 0
    for at, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if at % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return digits + str(-total % 10)


@pytest.mark.parametrize("prefix", SIZES)
def test_each_issuer_has_its_lengths(prefix: str) -> None:
    numbers = {size: with_check(prefix, size) for size in range(12, 22)}
    assert {size for size, number in numbers.items() if is_card(number)} == SIZES[prefix]


@pytest.mark.parametrize("number", ["4111111111111111", "378282246310005", "30569309025904"])
def test_one_check_digit_fits_a_card(number: str) -> None:
    fitting = [last for last in "0123456789" if is_card(number[:-1] + last)]
    assert fitting == [number[-1]]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("4111 1111 1111 1111 123", REDACTED),  # in groups, with its check value
        ("4111 1111 1111 1111 1234", f"{REDACTED} 1234"),
        ("41111111111111111", "41111111111111111"),
        ("4111111111111111123", "4111111111111111123"),
    ],
)
def test_a_check_value_stands_behind_a_card_in_groups(text: str, masked: str) -> None:
    assert mask_looks(f"card {text}") == f"card {masked}"


# ---- words, logins -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["ab1", "1", "a=b", "a_b", "a+b", "a/b", "aB", "ABc", "a" * 20, "A" * 20]
)
def test_what_was_hardly_written_as_a_word(text: str) -> None:
    assert is_random(text)


@pytest.mark.parametrize("text", ["", "abc", "Abc", "ABC", "X", "Xa", "a-b", "a.b", "a" * 19])
def test_what_may_be_a_word(text: str) -> None:
    assert not is_random(text)


def test_how_long_a_word_can_be_is_said() -> None:
    assert [is_random("abcde", longest=size) for size in (4, 5, 6)] == [True, True, False]


@pytest.mark.parametrize(
    ("scheme", "longest"), [("Bearer", 14), ("BEARER", 14), ("Basic", 19), ("BASIC", 19)]
)
def test_words_after_a_scheme_are_shown_up_to_a_length(scheme: str, longest: int) -> None:
    word = "a" * longest
    assert mask_looks(f"{scheme} {word}") == f"{scheme} {word}"
    assert mask_looks(f"{scheme} {word}a") == f"{scheme} {REDACTED}"
    assert mask_looks(f"{scheme} aaaaaaa1") == f"{scheme} {REDACTED}"


def test_a_login_has_a_colon_and_nothing_but_base64() -> None:
    login = base64.b64encode(b"me:hunter2").decode()
    assert is_login(login)
    for other in (f"{login[:4]}!{login[4:]}", login[:-1], "é", base64.b64encode(b"me").decode()):
        assert not is_login(other)


# ---- tokens --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "token", ["AKIA" + "A1" * 8, "SK" + HEX, "secret_" + (X * 2)[:43], "key-" + HEX]
)
def test_a_token_of_a_fixed_length_is_no_part_of_a_longer_word(token: str) -> None:
    assert mask_looks(f"a {token} b") == f"a {REDACTED} b"
    assert mask_looks(f"a {token}A b") == f"a {token}A b"


def test_a_key_of_azure_is_signed_near_its_end() -> None:
    assert mask_looks(X[:30] + "AZDO" + X[:10]) == REDACTED
    early = X[:29] + "AZDO" + X[:11]
    assert mask_looks(early) == early
