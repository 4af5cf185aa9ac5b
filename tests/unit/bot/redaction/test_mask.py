"""Secrets are masked by the name of their key and by their look."""

from __future__ import annotations

import pytest

from bot.redaction.mask import REDACTED, is_secret_key, mask, mask_text, mask_words


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "db_password",
        "dbPassword",
        "PASSWORD",
        "X-Api-Key",
        "apiKey",
        "apikey",
        "access_key",
        "privateKey",
        "authorization",
        "Authorization",
        "auth_token",
        "AUTHToken",
        "client_secret",
        "credentials",
        "session_cookie",
        "passphrase",
        "passwort",
        "Kennwort",
        "contraseña",
        "mdp",
        "X-Auth-Key",
        "seed_phrase",
    ],
)
def test_key_of_a_secret(key: str) -> None:
    assert is_secret_key(key)
    assert mask(key, "anything") == REDACTED
    assert mask(key, ["anything"]) == REDACTED
    assert mask("outer", {key: {"deep": 1}}) == {key: REDACTED}


@pytest.mark.parametrize(
    "key", ["", "key", "monkey", "keyboard", "passage", "secret_name", "token_count"]
)
def test_other_keys(key: str) -> None:
    assert not is_secret_key(key)
    assert mask(key, "anything") == "anything"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_tokens", 500),
        ("token", 1.5),
        ("password", None),
        ("password", True),
        ("password", ""),
        ("when", 1_760_000_000_000),
        ("order", "1234"),
        ("big", 10**40),
        ("card", 4_111_111_111_111_112),
        ("n", True),
        ("text", "task-force-abcdefghijklmnopqrst"),
        ("text", "the token expired, ask for a password"),
        ("text", "https://example.com/a:b@c"),
        ("phone", "+49 170 1234567"),
        ("version", "3.141592653589793238"),
        ("secretKeyRef", {"name": "db", "key": "x"}),
        ("imagePullSecrets", [{"name": "registry"}]),
        ("PWD", "/home/ada"),
        ("OTP", "26.2"),
        ("otp", 26.2),
        ("cookie_banner", "visible"),
        ("deploy_key", "ops"),
        ("jwt_issuer", "https://login.example"),
        ("password_rotation_days", 90),
    ],
)
def test_harmless_value_stays(key: str, value: object) -> None:
    assert mask(key, value) == value


@pytest.mark.parametrize("key", ["first_pass", "tokens", "pass_tokens", "passTokenTokens"])
def test_what_is_counted_stays_and_what_is_written_does_not(key: str) -> None:
    assert mask(key, 3) == 3
    assert mask(key, "3") == REDACTED


@pytest.mark.parametrize("key", ["pass_password", "pin_token", "token_secret"])
def test_a_number_with_a_name_that_is_secret_for_more_than_a_count_is_masked(key: str) -> None:
    assert mask(key, 1234) == REDACTED


@pytest.mark.parametrize("key", ["DB_PASS", "PWD", "otp", "pw", "a_b_pw", "password_rules_pass"])
def test_words_that_name_a_secret_as_the_last_ones(key: str) -> None:
    assert is_secret_key(key)
    assert mask(key, "hunter2") == REDACTED


@pytest.mark.parametrize("key", ["pass_rate", "pw_chart_x", "a_pass_x", "a_pass_word_b"])
def test_words_that_name_no_secret_before_the_last(key: str) -> None:
    assert mask(key, "hunter2") == "hunter2"


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_a_secret_of_kubernetes_is_masked_in_both_of_its_forms(field: str) -> None:
    for kind, shown in (("Secret", REDACTED), ("ConfigMap", {"a": "b"})):
        data = {"kind": kind, field: {"a": "b"}}
        assert mask("", data) == {"kind": kind, field: shown}


@pytest.mark.parametrize("key", ["old_pwd", "server_pin", "erlang_otp"])
def test_a_harmless_text_is_told_by_the_last_word_of_its_name(key: str) -> None:
    texts = {"old_pwd": "/srv", "server_pin": "PA5", "erlang_otp": "26.2"}
    assert mask(key, texts[key]) == texts[key]
    assert mask(f"{key}_password", texts[key]) == REDACTED


@pytest.mark.parametrize(
    "value",
    [
        *({"new": "1234"}, {"new": 1234}, {"token": 4711}, {"a": [{"b": "1234"}]}, {"chip": "PA5"}),
        *(["1234"], [["1234"]], [{"value": "1234"}], ("1234",), [None]),
    ],
)
@pytest.mark.parametrize("key", ["pin", "otp", "pwd", "password"])
def test_all_that_is_inside_of_a_secret_is_masked(key: str, value: object) -> None:
    assert mask("", {key: value}) == {key: REDACTED}
    assert mask("", {"name": key, "value": value}) == {"name": key, "value": REDACTED}


@pytest.mark.parametrize("empty", [None, "", [], {}, True, False])
def test_nothing_at_all_is_no_secret(empty: object) -> None:
    assert mask("", {"pin": empty, "password": empty}) == {"pin": empty, "password": empty}


@pytest.mark.parametrize(
    "pin", ["1234", "123456789012", " 1234\n", "12 34", "1-2-3-4", "٤٧١١", "1234.0", 1234, 1234.0]
)
def test_a_pin_is_masked_however_it_is_written(pin: object) -> None:
    assert mask("pin", pin) == REDACTED


@pytest.mark.parametrize("value", ["PA5", "13", 5, "123", "1234567890123", "A1234", "1.26.4"])
def test_a_pin_of_a_chip_or_of_a_release_stays(value: object) -> None:
    assert mask("pin", value) == value


def test_a_secret_number_that_cannot_be_written_out_is_masked() -> None:
    assert mask("password", 10**5000) == REDACTED
    assert mask("max_tokens", 10**5000) == REDACTED
    assert (mask("token", 2**79 - 1), mask("token", 2**79)) == (2**79 - 1, REDACTED)


@pytest.mark.parametrize(
    "secret",
    [
        "xoxb-123456789-abcdefghij",
        "xoxe.xoxp-1-abcdefghijkl",
        "xapp-1-A0-123-abcdef",
        "sk-abcdefghijklmnopqrst",
        "sk-proj-abc_DEF-ghijklmnopqrst",
        "sk_live_abcdefghijklmnop",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_abcdefghijklmnopqrstuvwx",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nabc cut",
    ],
)
def test_look_of_a_secret(secret: str) -> None:
    assert mask_text(f"use {secret}") == f"use {REDACTED}"
    assert mask("list", [{"text": secret}]) == [{"text": REDACTED}]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"key csk_7h2kQ0aZ_{'aB3' * 12}xy sent", f"key csk_7h2kQ0aZ_{REDACTED} sent"),
        (f"csk_7h2kQ0aZ_{'aB3' * 6}", f"csk_7h2kQ0aZ_{REDACTED}"),
        (f"start cst_{'aB3' * 10}xy", f"start cst_{REDACTED}"),
        ("the key csk_7h2kQ0aZ ends", "the key csk_7h2kQ0aZ ends"),
        ("Authorization: Bearer abcdefghijkl", f"Authorization: Bearer {REDACTED}"),
        ("mongodb://me:pw@host/db", f"mongodb://me:{REDACTED}@host/db"),
        ('{"password": "a b c"}', f'{{"password": {REDACTED}}}'),
        ("token=abc&x=1", f"token={REDACTED}&x=1"),
        ("api_key='abc'", f"api_key={REDACTED}"),
        ("token: xoxb-123456789-abc", f"token: {REDACTED}"),
    ],
)
def test_secret_inside_a_text(text: str, masked: str) -> None:
    assert mask_text(text) == masked
    assert mask_text(masked) == masked


@pytest.mark.parametrize(
    "number", ["4111 1111 1111 1111", "4111-1111-1111-1111", "378282246310005"]
)
def test_a_card_number_is_masked_beside_the_word(number: str) -> None:
    assert mask_text(f"use card {number}") == f"use card {REDACTED}"
    assert mask_text(f"use {number} (Amex)") == f"use {REDACTED} (Amex)"
    assert mask("cards", [{"text": number}, number]) == [{"text": number}, REDACTED]


def test_words_that_were_made_from_data() -> None:
    data = {
        "name": "db",
        "password": "open sesame",
        "pin": {"token": 4711},
        "env": [{"name": "API_KEY", "value": "abc"}],
        "argv": ["--secret", "xy"],
        "key": "first\nsecond line",
        "private_key": "one\nsecond line",
    }
    words = "Rotate db: open sesame, 4711 and 47112, abc (not abcd), xy, second line, token=9x"
    assert mask_words(words, data) == (
        f"Rotate db: {REDACTED}, {REDACTED} and 47112, {REDACTED} (not abcd), xy, {REDACTED}, "
        f"token={REDACTED}"
    )
    assert mask_words("Pay 5 to Mia", {"amount": 5, "to": "Mia"}) == "Pay 5 to Mia"
    assert mask_words("Set 1234, 12345", {"password": [1234, {"a": True}]}) == (
        f"Set {REDACTED}, 12345"
    )
