"""Which values are masked, by their names and places, and how the rest is written."""

from __future__ import annotations

import json

import pytest

from bot.redaction.call import INLINE, mask_call, mask_data, mask_title, mask_value, written
from bot.redaction.mask import REDACTED, in_force, mask, mask_words, print_key
from bot.redaction.masks import NO_NAMES, Mask, Names, has_guess, masks_in
from bot.redaction.rules import NO_RULES, SHORTEST_VALUE, read_rules

SLACK = "xoxb-123456789-abc"
OPEN = Names(is_open=True)


def shown(value: object, name: str = "x", names: Names = NO_NAMES) -> str:
    return written(mask_value(name, value, names))


def masked(size: int) -> str:
    return f"{REDACTED} ({size} characters)"


# ---- names that stand beside a value -------------------------------------------------------------


@pytest.mark.parametrize("name", ["name", "key", "Name", "Key"])
def test_a_variable_whose_name_stands_beside_it_is_masked(name: str) -> None:
    data = {name: "DB_PASSWORD", "value": "hunter2", "scope": "prod"}
    assert mask("env", [data]) == [{**data, "value": REDACTED}]
    assert mask_data([data]) == [{**data, "value": masked(7)}]


@pytest.mark.parametrize("given", [5, "colour", None])
def test_a_value_beside_another_name_stays(given: object) -> None:
    data = {"name": given, "value": "red"}
    assert mask("env", data) == data
    assert mask_data([data]) == [data]


def test_data_of_a_secret_are_masked_whatever_their_names() -> None:
    data = {"kind": "Secret", "data": {"first": "aGVsbG8"}, "metadata": {"name": "web"}}
    assert mask("x", data) == {**data, "data": REDACTED}
    assert mask_data([data]) == [{**data, "data": {"first": masked(7)}}]


# ---- options of commands, lists ------------------------------------------------------------------


def test_what_follows_a_secret_option_is_masked_and_nothing_else() -> None:
    words = ["run", "--password", "hunter2", "-v", "password", "red"]
    assert mask("argv", words) == ["run", "--password", REDACTED, "-v", "password", "red"]
    assert mask_data(words) == ["run", "--password", masked(7), "-v", "password", "red"]


def test_all_of_a_list_under_a_secret_name_is_masked() -> None:
    assert mask("pin", ["1234", "5678"]) == REDACTED
    assert shown(["hunter2", "hunter3"], "password") == f"[{masked(7)}, {masked(7)}]"


def test_opened_in_private_lists_and_names_are_clear() -> None:
    data = {SLACK: ["--token", "abc", {"password": "x"}]}
    assert shown(data, names=OPEN) == json.dumps(data)
    assert SLACK not in shown(data)


def test_what_has_a_name_of_its_own_under_a_secret_one_is_judged_by_it() -> None:
    assert shown({"pin": "GPIO4", "pwd": "/srv", "a": "b"}, "secrets") == (
        '{"pin": "GPIO4", "pwd": "/srv", "a": ' + f"{REDACTED} (1 character)}}"
    )


# ---- names that are masked, numbers --------------------------------------------------------------


def test_masked_names_stay_apart_and_in_order() -> None:
    data = {"a": 0, "xoxb-111111111-a": 1, "xoxb-222222222-b": 2}
    assert mask("x", data) == {"a": 0, REDACTED: 1, f"{REDACTED} (3)": 2}
    assert mask_data(data) == {"a": 0, masked(16): 1, f"{masked(16)} (3)": 2}


def test_a_number_of_any_length_can_be_masked_or_not() -> None:
    assert mask("n", 1 << 20_000) == 1 << 20_000


def test_long_numbers_and_fractions_are_shown_as_they_are() -> None:
    with in_force(read_rules("[0-9]{12}[0-9]*")):
        assert shown(int("1" * 29)) == masked(29)
        assert shown(int("1" * 30)) == "1" * 30
        assert shown(1234567890123.5) == "1234567890123.5"


# ---- texts ---------------------------------------------------------------------------------------


def test_two_forms_of_secrets_in_one_text_are_both_masked() -> None:
    text = f"a {SLACK} b API_KEY=abc123 c ghp_0123456789abcdefghij d"
    assert written(mask_call(text)) == f"a {masked(18)} b API_KEY={masked(6)} c {masked(24)} d"


def test_a_text_that_is_one_secret_is_one_mask() -> None:
    assert [type(word) for word in mask_call(SLACK)] == [Mask]
    assert shown({"a": SLACK}) == f'{{"a": {masked(18)}}}'


def test_a_digest_after_a_private_key_is_shown() -> None:
    line, digest = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "0123456789abcdef" * 2
    key = f"-----BEGIN PRIVATE KEY-----\n{line}\n-----END PRIVATE KEY-----"
    assert written(mask_call(f"{key}\n{digest}")) == f"{key.replace(line, masked(32))}\n{digest}"


# ---- how it is written ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["5", "true", "", " é"])
def test_a_text_that_would_be_taken_for_another_value_is_quoted(text: str) -> None:
    assert shown(text) == f'"{text}"'


def test_around_a_mask_a_text_is_written_as_json() -> None:
    value = {"run": 'API_KEY=abc "é"\n', "then": 1}
    assert shown(value) == f'{{"run": "API_KEY={masked(3)} \\"é\\"\\n", "then": 1}}'


def test_what_needs_several_lines_is_indented_at_every_depth() -> None:
    value = {"a": {"token": "T", "b": {"c": [1, 2]}, "d": {"é": {}}}, "e": "x" * INLINE}
    assert shown(value) == json.dumps(value, indent=2, ensure_ascii=False).replace(
        '"T"', f"{REDACTED} (1 character)"
    )


@pytest.mark.parametrize(("size", "lines"), [(INLINE, 1), (INLINE + 1, 3)])
def test_an_object_stands_on_one_line_as_long_as_it_fits(size: int, lines: int) -> None:
    value = {"a": "x" * (size - len('{"a": ""}'))}
    assert len(shown(value).splitlines()) == lines


# ---- what is declared secret ---------------------------------------------------------------------


def test_fingerprints_of_declared_values_tell_values_apart_and_no_more() -> None:
    names = Names(secret=("x",))
    with in_force(NO_RULES, key=print_key("xoxb-1")):
        number, text, same, other = (
            mask_value("x", value, names)[0]
            for value in (5, "5", {"a": 1, "b": [2]}, {"b": [2], "a": 1})
        )
    assert number != text
    assert same == other
    assert isinstance(same, Mask)
    assert (same.size, same.clear) == (18, '{"a": 1, "b": [2]}')
    assert len(same.fingerprint) == 12


# ---- titles --------------------------------------------------------------------------------------


def test_a_title_hides_every_part_of_a_declared_value() -> None:
    data = {"login": {"user": "rosa", "words": ["open sesame", 4711]}}
    title = mask_title("Log in rosa with open sesame and 4711", data, Names(secret=("login",)))
    secret = str(next(masks_in(mask_value("login", data["login"], Names(secret=("login",))))))
    assert title == f"Log in {secret} with {secret} and {secret}"


def test_a_title_shows_of_a_command_what_the_card_shows() -> None:
    command = "API_KEY=abc123 ./run"
    assert mask_title(f"Run {command}", {"command": command}) == f"Run API_KEY={masked(6)} ./run"


def test_a_title_of_arguments_that_are_a_list() -> None:
    assert mask_title("Run with hunter2", ["--password", "hunter2"]) == f"Run with {masked(7)}"


@pytest.mark.parametrize(
    ("secret", "title", "is_hidden"),
    [
        ("no", "say no", False),
        ("yes", "say yes", True),
        ("abcde", "xabcdex", False),
        ("abcdef", "xabcdefx", True),
    ],
)
def test_a_short_secret_is_hidden_in_titles_where_it_is_a_word(
    secret: str, title: str, is_hidden: bool
) -> None:
    assert (secret not in mask_title(title, {"token": secret})) is is_hidden


def test_a_secret_inside_of_another_leaves_nothing_of_it() -> None:
    data = {"password": "at-sesame-gate", "token": "sesame-gate"}
    assert mask_title("Go at-sesame-gate", data) == f"Go {masked(14)}"
    assert mask_words("Go at-sesame-gate", data) == f"Go {REDACTED}"


def test_words_hide_all_that_is_in_a_secret_object() -> None:
    data = {"password": {"first": {"of": "open sesame"}, "then": ["more of it"]}}
    assert mask_words("Set open sesame, more of it", data) == f"Set {REDACTED}, {REDACTED}"


@pytest.mark.parametrize(
    ("size", "is_hidden"), [(SHORTEST_VALUE - 1, False), (SHORTEST_VALUE, True)]
)
def test_a_long_secret_is_hidden_inside_of_other_words(size: int, is_hidden: bool) -> None:
    secret = "qwertyuiop"[:size]
    assert (secret not in mask_words(f"a{secret}b", {"password": secret})) is is_hidden


def test_masks_that_are_sure_are_no_guesses() -> None:
    with in_force(NO_RULES, secrets=["our-own-secret"]):
        words = mask_call("say our-own-secret")
    assert not has_guess(words)
    assert len(list(masks_in(words))) == 1
