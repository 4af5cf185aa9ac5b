"""Whatever secret stands wherever in a text is masked, and nothing that people must see is."""

from __future__ import annotations

import importlib
import re
import string
import time
from typing import Any

import pytest
from hypothesis import assume, example, given, settings, strategies as st

from bot.redaction import key_value_patterns
from bot.redaction.mask import REDACTED, mask, mask_text
from bot.redaction.patterns import LOOKS
from tests.support.halves import first

HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits


def some(alphabet: str, size: int) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=size, max_size=size)


def check_digit(digits: str) -> str:
    return next(digits + last for last in "0123456789" if luhn(digits + last))


def luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + place % 2)
        total += number - 9 * (number > 9)
    return total % 10 == 0


TOKENS: dict[str, st.SearchStrategy[str]] = {
    "slack": st.builds(lambda a, b: f"xoxb-{a}-{b}", some(string.digits, 11), some(ALNUM, 24)),
    "slack user": some(ALNUM, 24).map(lambda s: f"xoxp-1-2-{s}"),
    "slack app": some(ALNUM, 40).map(lambda s: f"xapp-1-A0-{s}"),
    "slack refresh": some(ALNUM, 40).map(lambda s: f"xoxe-1-{s}"),
    "github": some(ALNUM, 36).map(lambda s: f"ghp_{s}"),
    "github app": some(ALNUM, 36).map(lambda s: f"ghs_{s}"),
    "github fine": some(ALNUM, 59).map(lambda s: f"github_pat_{s}"),
    "gitlab": some(ALNUM + "_-", 20).map(lambda s: f"glpat-{s}"),
    "gitlab runner": some(ALNUM + "_-", 20).map(lambda s: f"glrt-{s}"),
    "aws id": some(string.ascii_uppercase + "234567", 16).map(lambda s: f"AKIA{s}"),
    "aws session": some(string.ascii_uppercase + "234567", 16).map(lambda s: f"ASIA{s}"),
    "google": some(ALNUM + "_-", 35).map(lambda s: f"AIza{s}"),
    "google oauth": some(ALNUM + "_-", 60).map(lambda s: f"ya29.{s}"),
    "google client": some(ALNUM + "_-", 28).map(lambda s: f"GOCSPX-{s}"),
    "stripe": some(ALNUM, 24).map(lambda s: f"sk_live_{s}"),
    "stripe restricted": some(ALNUM, 24).map(lambda s: f"rk_test_{s}"),
    "stripe webhook": some(ALNUM, 32).map(lambda s: f"whsec_{s}"),
    "openai": some(ALNUM, 48).map(lambda s: f"sk-proj-{s}"),
    "anthropic": some(ALNUM + "_-", 80).map(lambda s: f"sk-ant-api03-{s}"),
    "npm": some(ALNUM, 36).map(lambda s: f"npm_{s}"),
    "pypi": some(ALNUM + "_-", 90).map(lambda s: f"pypi-AgEIcHlwaS5vcmc{s}"),
    "twilio": some(HEX, 32).map(lambda s: f"SK{s}"),
    "sendgrid": st.builds(
        lambda a, b: f"SG.{a}.{b}", some(ALNUM + "_-", 22), some(ALNUM + "_-", 43)
    ),
    "azure client": some(ALNUM, 34).map(lambda s: f"abc8Q~{s}"),
    "hugging face": some(ALNUM, 34).map(lambda s: f"hf_{s}"),
    "digital ocean": some(HEX, 64).map(lambda s: f"dop_v1_{s}"),
    "databricks": some(HEX, 32).map(lambda s: f"dapi{s}"),
    "shopify": some(HEX, 32).map(lambda s: f"shpat_{s}"),
    "docker": some(ALNUM + "_-", 27).map(lambda s: f"dckr_pat_{s}"),
    "vault": some(ALNUM, 90).map(lambda s: f"hvs.{s}"),
    "new relic": some(string.ascii_uppercase, 27).map(lambda s: f"NRAK-{s}"),
    "brevo": some(HEX, 64).map(lambda s: f"xkeysib-{s}"),
    "age": some(string.ascii_uppercase + string.digits, 58).map(lambda s: f"AGE-SECRET-KEY-1{s}"),
    "telegram": some(ALNUM + "_-", 33).map(lambda s: f"123456789:AA{s}"),
    "jwt": st.builds(
        lambda a, b, c: f"eyJ{a}.eyJ{b}.{c}",
        some(ALNUM + "_-", 30),
        some(ALNUM + "_-", 60),
        some(ALNUM + "_-", 43),
    ),
    "pem": some(ALNUM + "+/\n", 200).map(
        lambda s: f"-----BEGIN RSA PRIVATE KEY-----\n{s}\n-----END RSA PRIVATE KEY-----"
    ),
    "openssh": some(ALNUM + "+/\n", 200).map(
        lambda s: f"-----BEGIN OPENSSH PRIVATE KEY-----\n{s}\n-----END OPENSSH PRIVATE KEY-----"
    ),
    "pgp": some(ALNUM + "+/\n", 200).map(
        lambda s: f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n{s}\n-----END PGP PRIVATE KEY BLOCK-----"
    ),
    "ssh2": some(ALNUM + "+/\n", 200).map(
        lambda s: (
            f"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{s}\n"
            "---- END SSH2 ENCRYPTED PRIVATE KEY ----"
        )
    ),
    "putty": some(ALNUM + "+/", 64).map(
        lambda s: (
            f"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\n{s}\n"
            "Private-MAC: 0123456789abcdef"
        )
    ),
    "visa": some(string.digits, 14).map(lambda s: check_digit(f"4{s}")),
    "mastercard": some(string.digits, 13).map(lambda s: check_digit(f"52{s}")),
    "amex": some(string.digits, 12).map(lambda s: check_digit(f"37{s}")),
    "visa in groups": some(string.digits, 14).map(
        lambda s: " ".join(re.findall("....", check_digit(f"4{s}")))
    ),
}

CARDS = {"visa", "mastercard", "amex", "visa in groups"}


def named(kind: str) -> str:
    """The word that a number needs beside it to be a payment card."""
    return "card " if kind in CARDS else ""


AROUND = st.text(st.sampled_from("abc XYZ 019 .,:;!?()[]{}\"'\n\t/=&<>äß🙂"), max_size=30)


@pytest.mark.parametrize("kind", TOKENS)
@given(data=st.data())
@settings(deadline=None)
def test_a_token_is_masked_wherever_it_stands(kind: str, data: st.DataObject) -> None:
    secret = data.draw(TOKENS[kind])
    before, after = data.draw(AROUND), data.draw(AROUND)
    text = f"{before} {named(kind)}{secret} {after}"
    masked = mask_text(text)
    assert secret not in masked
    assert REDACTED in masked
    for start in range(0, len(secret) - 12, 12):
        part = secret[start + 4 : start + 12]
        assert part not in masked or part in before + after
    assert mask_text(masked) == masked
    assert secret not in str(mask("note", {"a": [text, {named(kind) + secret: 1}]}))


@pytest.mark.parametrize("kind", ["slack", "aws id", "openai", "jwt", "visa", "github"])
@pytest.mark.parametrize(
    "shell", ['"{}"', "'{}'", "({})", "<{}>", "x={}", "\\n{}\\n", "{}.", "`{}`"]
)
@given(data=st.data())
@settings(max_examples=5, deadline=None)
def test_a_token_is_masked_between_marks(kind: str, shell: str, data: st.DataObject) -> None:
    secret = data.draw(TOKENS[kind])
    assert secret[6:] not in mask_text(f"{named(kind)}{shell.format(secret)}")


PASSWORD = st.text(ALNUM + "!#%*+-.:_~$", min_size=6, max_size=30).filter(
    lambda text: text[0].isalnum() and text[-1].isalnum() and any(c.isdigit() for c in text[1:])
)
PLACES = [
    "password={}",
    "password: {}",
    "Password: {}",
    "my password is {}",
    "the password for the database is {} now",
    "The new passphrase was {}.",
    "pwd={} user=rosa",
    "DB_PASSWORD={} make",
    "export PGPASSWORD={}",
    "--password {} --user rosa",
    "--password={}",
    '{{"password": "{}"}}',
    '{{\\"password\\": \\"{}\\"}}',
    "{{'api_key': '{}'}}",
    "API key: {}",
    "aws_secret_access_key = {}",
    "?user=rosa&password={}&page=2",
    "https://rosa:{}@example.com/x",
    "postgresql+psycopg://rosa:{}@db.example.com:5432/app",
    "redis://:{}@cache:6379/0",
    "mongodb+srv://rosa:{}@a,b/c?x=1",
    "Server=db;User Id=sa;Password={};Encrypt=yes",
    "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};EndpointSuffix=y",
    "SharedAccessKeyName=x;SharedAccessKey={}",
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "X-Api-Key: {}",
    "Cookie: session={}; theme=dark",
    "//packages.example/:_authToken={}",
    "<password>{}</password>",
    "curl -u rosa:{} https://example.com",
    'env: "TOKEN={}"',
    "client_secret => {}",
]


@pytest.mark.parametrize("place", PLACES)
@given(password=PASSWORD)
@example(password="hunter2")
@example(password="Tr0ub4dor&3"[:9])
@settings(deadline=None)
def test_a_password_in_its_place_is_masked(place: str, password: str) -> None:
    assume(password.lower() not in key_value_patterns._UNSAID)
    masked = mask_text(place.format(password))
    assert password not in masked
    assert REDACTED in masked
    assert mask_text(masked) == masked


@given(
    name=st.sampled_from(
        ["password", "db_password", "clientSecret", "X-Auth-Token", "AWS_SECRET_ACCESS_KEY"]
    ),
    secret=st.text(min_size=1),
    depth=st.integers(0, 4),
)
@settings(deadline=None)
def test_a_value_under_a_secret_name_is_masked_at_any_depth(
    name: str, secret: str, depth: int
) -> None:
    value: Any = {
        name: secret,
        "list": [{name: [secret]}],
        "env": [{"name": name, "value": secret}],
    }
    for _ in range(depth):
        value = {"x": [value]}
    masked: Any = mask("", value)
    for _ in range(depth):
        masked = masked["x"][0]
    assert masked == {
        name: REDACTED,
        "list": [{name: REDACTED}],
        "env": [{"name": name, "value": REDACTED}],
    }


# ---- what must stay as it is -------------------------------------------------------------------

HARMLESS: dict[str, st.SearchStrategy[str]] = {
    "digest": some(HEX, 64),
    "short digest": some(HEX, 40),
    "md5": some(HEX, 32),
    "uuid": st.uuids().map(str),
    "approval": some(HEX, 32).map(lambda s: f"apr_{s}"),
    "version": st.builds(lambda a, b, c: f"v{a}.{b}.{c}", *[st.integers(0, 9999)] * 3),
    "slack ts": st.builds(
        lambda a, b: f"{a}.{b:06d}",
        st.integers(1_600_000_000, 1_999_999_999),
        st.integers(0, 999_999),
    ),
    "thread": some(string.ascii_uppercase + string.digits, 9).map(
        lambda s: f"T{s}:C{s}:1800000000.000001#3"
    ),
    "user": some(string.ascii_uppercase + string.digits, 10).map(lambda s: f"U{s}"),
    "number": st.integers(-(10**12) + 1, 10**12 - 1).map(str),
    "milliseconds": st.integers(10**12, 2 * 10**12 - 1).map(str),
    "decimal": st.floats(0, 1, allow_nan=False).map(lambda x: f"{x:.18f}"),
    "money": st.integers(0, 10**9).map(lambda n: f"{n:,}.00 EUR"),
    "date": st.datetimes().map(lambda d: d.isoformat()),
    "phone": some(string.digits, 7).map(lambda s: f"+49 170 {s}"),
    "iban": some(string.digits, 20).map(lambda s: f"DE{s}"),
    "path": st.lists(some(string.ascii_lowercase, 6), min_size=1, max_size=6).map(
        lambda parts: "/" + "/".join(parts) + ".py"
    ),
    "windows path": some(string.ascii_letters, 8).map(lambda s: f"C:\\Users\\{s}\\notes.txt"),
    "address": some(string.ascii_lowercase, 8).map(
        lambda s: f"https://{s}.example.com:8443/a/b?page=2&sort=name#top"
    ),
    "e-mail": some(string.ascii_lowercase, 8).map(lambda s: f"{s}@example.com"),
    "image": some(HEX, 64).map(lambda s: f"registry.example.com/app@sha256:{s}"),
    "branch": some(string.ascii_lowercase, 8).map(lambda s: f"feature/{s}-task-force"),
}


@pytest.mark.parametrize("kind", HARMLESS)
@given(data=st.data())
@settings(deadline=None)
def test_what_an_approver_must_see_stays(kind: str, data: st.DataObject) -> None:
    shown = data.draw(HARMLESS[kind])
    text = f"Deploy {shown} to production, as said."
    assert mask_text(text) == text
    assert mask("what", {"a": [shown], "b": text}) == {"a": [shown], "b": text}


@given(value=st.integers(-(10**12) + 1, 10**12 - 1) | st.booleans() | st.none())
def test_ordinary_numbers_stay(value: object) -> None:
    for key in ("amount", "token_count", "max_tokens", "replicas", "key", "tokens"):
        assert mask(key, value) == value


@given(st.text(st.sampled_from("abcdefghij klmnop qrstuvwxyz ,.!\n"), max_size=300))
@settings(deadline=None)
def test_plain_prose_stays(text: str) -> None:
    names = ("pass", "pw", "secret", "token", "key", "cookie", "jwt", "otp", "cvc", "cvv", "basic")
    assume(not any(name in text for name in names))
    assert mask_text(text) == text


@given(st.text(max_size=400))
@settings(deadline=None)
@example("password: password: x")
@example("password=password=x=y")
@example('token="a" token=\'b')
@example("Bearer Bearer abcdefgh12345678")
def test_masking_twice_is_masking_once(text: str) -> None:
    once = mask_text(text)
    assert mask_text(once) == once


# ---- card numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111111",
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "4111.1111.1111.1111",
        "4111\u00a01111\u00a01111\u00a01111",
        "3782 822463 10005",
        "3056 930902 5904",
        "30569309025904",
        "6011111111111117",
        "3530111333300000",
        "2223003122003222",
        "6759649826438453",
        "my card is 4111 1111 1111 1111.",
        "4111 1111 1111 1111 12/27 123",
        "card:4242424242424242, thanks",
        "no.4242424242424242",
    ],
)
def test_card_numbers(text: str) -> None:
    assert REDACTED in mask_text(f"card {text}")


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111112",  # wrong check digit
        "1111111111111117",  # no issuer
        "41111111111111111",  # no card of Visa has 17 digits
        "a4111111111111111",
        "4111111111111111f",
        "0.4111111111111111",
        "4111-1111 1111-1111",  # not written like this
        "4111-111111111111",
    ],
)
def test_other_digits(text: str) -> None:
    assert mask_text(text) == text


# ---- time ----------------------------------------------------------------------------------------

HARD = [
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN ",
    "PuTTY-User-Key-File-",
    "PuTTY-User-Key-File-3",
    "://a:",
    "://",
    "://a:b@",
    "4111 ",
    "4",
    "sk-",
    "eyJ",
    "eyJ-",
    "eyJaaaaa.",
    "eyJ.eyJ.",
    "a=",
    "a: ",
    "password=",
    "password: ",
    "password is ",
    "password for a ",
    "the token is ",
    "secret",
    "-p ",
    "--password ",
    "--a ",
    "<a>",
    "<password>",
    '"password": "\\',
    "password='",
    'password="\\"',
    "curl -u a:",
    "curl -u ",
    "Bearer ",
    "Basic a",
    "\\n",
    "SG.a",
    "SG.aaaaaaaaaaaaaaaaaaaa",
    "hooks.slack.com/a/",
    "abc8Q~",
    "?sig=",
    "1234567890:AA",
    " \t",
    "\n",
    ">",
    "_",
    "a.b-",
    "xox",
    "AKIA",
]


def cpu_s(text: str) -> float:
    """The processor's seconds for one text."""
    began = time.process_time()
    assert mask_text(text)
    return time.process_time() - began


@pytest.mark.parametrize("piece", HARD)
@pytest.mark.parametrize("end", first(1, ["\x00", ""]))
def test_long_texts_take_time_in_proportion(piece: str, end: str) -> None:
    """A text of eight times the length takes eight times as long; a quadratic one, 64 times.

    The short text is the measure, so that the speed of the machine does not count.
    """
    short, long = (piece * (length // len(piece)) + end for length in (12_500, 100_000))
    once = min(cpu_s(short) for _ in range(3))
    assert any(cpu_s(long) < 20 * once + 0.05 for _ in range(3))


def parts(pattern: re.Pattern[str]) -> list[tuple[str, int, bool]]:
    """All repeats of a pattern: kind, most, and whether another repeat is inside."""
    parser: Any = importlib.import_module("re._parser")
    repeats: list[tuple[str, int, bool]] = []

    def walk(tree: Any) -> bool:
        """Visit; say whether there is a repeat that can be given back, of more than a few."""
        has_repeat = False
        for op, value in tree:
            name = str(op)
            if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
                _, most, inner = value
                repeats.append((name, int(most), walk(inner)))
                has_repeat = has_repeat or (name != "POSSESSIVE_REPEAT" and int(most) > 1)
            elif name == "SUBPATTERN":
                has_repeat = walk(value[-1]) or has_repeat
            elif name == "BRANCH":
                branches = [walk(branch) for branch in value[1]]  # all of them are looked at
                has_repeat = any(branches) or has_repeat
            elif name in {"ASSERT", "ASSERT_NOT", "ATOMIC_GROUP"}:
                has_repeat = walk(value[1] if isinstance(value, tuple) else value) or has_repeat
        return has_repeat

    walk(parser.parse(pattern.pattern, pattern.flags))
    return repeats


PATTERNS = [
    *(look.pattern for look in LOOKS),
    *(
        pattern
        for place in key_value_patterns.PLACES
        for pattern in (place.before, place.value, place.follow)
    ),
    key_value_patterns.CURL,
    key_value_patterns._ENCODED_WORD,
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.pattern[:40])
def test_no_pattern_can_backtrack_far(pattern: re.Pattern[str]) -> None:
    """Counted in steps, not in seconds: what can be given back is short, and never nested."""
    for kind, most, has_inner in parts(pattern):
        assert not (has_inner and most > 3), kind
        if kind == "MAX_REPEAT":
            assert most <= 64
        if kind == "MIN_REPEAT":
            # Searches for the end of a key, forwards, once: there is always an end.
            assert most <= 64 or pattern.pattern.endswith((r"|\Z)",))
