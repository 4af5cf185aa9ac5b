"""Shapes of secrets that are known by their form or their place, and texts that only look alike."""

from __future__ import annotations

import base64

import pytest

from bot.redaction.call import mask_call
from bot.redaction.key_value_patterns import forms_in, searches
from bot.redaction.mask import REDACTED, mask, mask_text
from bot.redaction.masks import masks_in

X = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
HEX = "0123456789abcdef0123456789abcdef"
LOGIN = base64.b64encode(b"me:hunter2").decode()

TOKENS = {
    "Azure DevOps": (X * 3)[:76] + "AZDO" + "Ab3d",
    "Azure function code": X + X[:12] + "AzFu" + "Ab3dE" + "Q==",
    "Azure storage key": (X * 3)[:76] + "+ASt" + "Ab3dE" + "A==",
    "Discord bot": "MTIzNDU2Nzg5MDEyMzQ1Njc4." + "Ab3dEf." + X[:30],
    "Firebase messaging": "dAb3dEf6hIj:APA91" + X * 3,
    "Vault, old": "s." + X[:24],
    "Terraform": X[:14] + ".atlasv1." + X * 2,
    "Groq": "gsk_" + X,
    "xAI": "xai-" + X,
    "Perplexity": "pplx-" + X,
    "Replicate": "r8_" + X,
    "Notion": "ntn_" + X,
    "Notion, old": "secret_" + (X * 2)[:43],
    "Figma": "figd_" + X,
    "Fly": "fo1_" + X,
    "Fly, macaroon": "fm2_" + X,
    "Doppler": "dp.st.dev." + X,
    "Supabase": "sbp_" + HEX + HEX[:8],
    "Supabase, secret key": "sb_secret_" + X,
    "Sentry": "sntrys_" + X,
    "Sentry, user": "sntryu_" + HEX * 2,
    "Mailgun": "key-" + HEX,
    "Heroku": "HRKU-" + X,
    "Bedrock": "ABSK" + X * 2,
    "Bedrock, short": "bedrock-api-key-" + X,
    "crypt": "$6$rounds=5000$" + X + "/" + X,
    "bcrypt": "$2b$12$" + X + X[:21],
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_a_token_is_known_by_its_form(token: str) -> None:
    for text in ("use {} now", '{{"x": "{}"}}', "x={}\n"):
        assert mask_text(text.format(token)) == text.format(REDACTED)
    assert mask("x", token) == REDACTED


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://f.example/api?code=" + X * 2 + "==", "https://f.example/api?code=@"),
        ("mysql -u root -phunter2 shop", "mysql -u root -p@ shop"),
        ("mysqldump -h db -pS3cret! shop", "mysqldump -h db -p@ shop"),
        ("sshpass -p hunter2 ssh me@host", "sshpass -p @ ssh me@host"),
        ("sshpass -phunter2 ssh x", "sshpass -p@ ssh x"),
        ("machine h.example login me password hunter2", "machine h.example login me password @"),
        ("machine h\n  login me\n  password hunter2\n", "machine h\n  login me\n  password @\n"),
        (f"root:$6$salt${X}:19000:0:::", "root:@:19000:0:::"),
        ("X-Auth-Key: " + HEX, "X-Auth-Key: @"),
        ("the token is Qx7Gh2kQ", "the token is @"),
        ("    client-key-data: " + X * 4, "    client-key-data: @"),
        (
            f'{{"auths": {{"r.example": {{"auth": "{LOGIN}"}}}}}}',
            '{"auths": {"r.example": {"auth": "@"}}}',
        ),
        (
            "kind: Secret\ndata:\n  user: bWU=\n  key: aHVudGVyMg==\n",
            "kind: Secret\ndata:\n  user: @\n  key: @\n",
        ),
        (
            "stringData:\n  a: b c\nkind: Secret\n---\ndata:\n  a: b",
            "stringData:\n  a: @\nkind: Secret\n---\ndata:\n  a: b",
        ),
        ("PIN: 4711", "PIN: @"),
        ("your PIN is 471122.", "your PIN is @."),
        ("Passwort: geheim123", "Passwort: @"),
        ("Das Passwort lautet geheim123.", "Das Passwort lautet @."),
        ("Kennwort für db ist geheim123", "Kennwort für db ist @"),
        ("contraseña: secreto", "contraseña: @"),
        ("la contraseña es secreto1", "la contraseña es @"),
        ("mot de passe: secret1", "mot de passe: @"),
        ("le mot de passe est motsecret", "le mot de passe est @"),
        ("mnemonic: legal winner thank year wave sausage", "mnemonic: @"),
        ("seed phrase: legal winner thank year wave sausage", "seed phrase: @"),
    ],
)
def test_a_secret_is_known_by_its_place(text: str, masked: str) -> None:
    if "me@host" in text:
        assert mask_text(text) == masked.replace("@ ssh", f"{REDACTED} ssh")
        return
    assert mask_text(text) == masked.replace("@", REDACTED)
    assert mask_text(mask_text(text)) == mask_text(text)


def test_objects_that_hold_secrets() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "db"}, "data": {"user": "bWU="}}
    assert mask("", secret) == {**secret, "data": REDACTED}
    assert mask("", {"kind": "ConfigMap", "data": {"a": "b"}})["data"] == {"a": "b"}  # type: ignore[index]
    assert mask("", {"r.example": {"auth": LOGIN}}) == {"r.example": {"auth": REDACTED}}
    assert mask("", {"auth": "required"}) == {"auth": "required"}
    assert mask("", {"pin": "4711", "port": {"pin": 5}}) == {"pin": REDACTED, "port": {"pin": 5}}


ORDINARY = [
    "secretKeyRef:\n  name: db\n  key: password",
    "imagePullSecrets:\n- name: registry",
    "PWD=/home/ada/work",
    "OLDPWD=/tmp",
    "OTP=26.2",
    "OTP=26.2.5-rc1 and Elixir",
    "cookie_banner: visible",
    "deploy_key: ops-team",
    "jwt_issuer: https://login.example",
    "jwt_audience=api",
    "password_rotation_days: 90",
    "token_hours = 8",
    "pin: PA5",
    "gpio pin = 13",
    "code=200",
    "version s.1 of it, e.g. this.something_long_enough_to_be",
    "key-value store",
    "npm run mysql-proxy -p 3306",
    "auth: required",
    "das Passwort ist falsch",
    "the secret_manager module",
    "kind: ConfigMap\ndata:\n  a: b",
    "it costs $5$ and $6",
    "password.example.com:8443",
    "tokens=12345",
    "pass=12345",
    "the token is abcdefghij",
    "the token is Qx7Gh2k",
    "the password is ...",
    "token_count=12, max_tokens: 500, tokens used: 7",
    "the password is required, and the token is expired",
    "the secret is out",
    "The token is 5 minutes old.",
    "Bearer of bad news; a basic understanding of bearer authentication",
    "docker run --user 1000:1000 -u 1000:1000 app",
    "password_policy: strong",
    "secret_name=db-main secret_version=4 token_type=bearer token_ttl=3600",
    "secrets_path=/run/secrets/db password_file=/etc/app/pw.txt",
    "see docs/token.md: it says how",
    "def check(token: str, password: str) -> bool:",
    "Pass: 12, fail: 0",
    "global-configuration-management-of-things",
    "multi-token budget is 5",
    "sk_buff and rk_list are kernel names",
    "http://localhost:8080/a@b",
    "press any key: it goes on",
    "passage: 12; keyboard: us; monkey: yes; author: Rosa",
    "2026-11-21T14:20:16Z 10.0.0.1:27017 [::1]:3000",
    "pass_rate=0.98",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_stays(text: str) -> None:
    assert mask_text(text) == text
    assert not any(masks_in(mask_call(text)))


@pytest.mark.parametrize(
    "text",
    [
        '{"password": {"new": "hunter2x"}}',
        '{"user": "ada", "passwords": ["hunter2x", "hunter3x"], "n": 1}',
        "password = ['hunter2x']",
        "password: {new: hunter2x, old: [hunter2x]}",
        r"{\"secret\": {\"value\": \"hunter2x\"}}",
        '{"password": {"new": "a}b", "old": "hunter2x"}}',
        '{"password": {"new": "hunter2x"',
    ],
)
def test_what_is_inside_of_a_secret_value_is_masked_in_text(text: str) -> None:
    assert "hunter" not in mask_text(text)


def test_what_stands_beside_a_secret_object_stays() -> None:
    text = '{"password": {"new": "hunter2x"}, "user": "ada", "tags": ["a"]}'
    assert mask_text(text) == f'{{"password": {REDACTED}, "user": "ada", "tags": ["a"]}}'


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ('x {"password": ["a", {"b": "c]"}], "n": [1]}', f'x {{"password": {REDACTED}, "n": [1]}}'),
        ("db_token := {a: 'x y'} then", f"db_token := {REDACTED} then"),
        ("db_token = [ X ] then", f"db_token = {REDACTED} then"),
        ("db_token = [[]] then", f"db_token = {REDACTED} then"),
        ("user = {a: 'x y'} token = {}", "user = {a: 'x y'} token = {}"),
    ],
)
def test_a_secret_value_ends_where_its_own_bracket_is_closed(text: str, masked: str) -> None:
    assert mask_text(text) == masked


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a_token=hunter2x and more", {"hunter2x"}),
        ("a_token: hunter2x", {"hunter2x"}),
        ("a_token=hunter2x.", {"hunter2x."}),
        ("the password is hunter2x.", {"hunter2x"}),
        ("a_token: hunter2x and more", set()),
        ("kind: Secret\ndata:\n  key: hunter2x\n  other: a b\n", {"hunter2x"}),
        ("kind: Secret\nkey: hunter2x\n", set()),
    ],
)
def test_a_value_is_known_elsewhere_when_it_is_one_token(text: str, values: set[str]) -> None:
    spans = [span for search in searches(text, forms_in(text)) for span in search(text)]
    assert {text[begin:end] for begin, end in spans} == values


@pytest.mark.parametrize(("length", "rest"), [(19_998, " after"), (19_999, "")])
def test_a_secret_value_that_is_too_long_takes_the_rest_of_the_text(length: int, rest: str) -> None:
    text = "db_token = [" + ";" * length + "] after"
    assert mask_text(text) == f"db_token = {REDACTED}{rest}"


EMPTY = [
    '{"password": {}}',
    '{"password": []}',
    "password: [ ]",
    "a_token = [{ \n\t",
    "a_token = {]}",
]


@pytest.mark.parametrize("text", EMPTY)
def test_an_empty_secret_value_says_nothing(text: str) -> None:
    assert mask_text(text) == text


def test_many_open_brackets_take_no_time_of_their_own() -> None:
    text = '{"password": {}, ' * 5_000 + '{"password": {"a": ' * 5_000
    assert REDACTED in mask_text(text)
