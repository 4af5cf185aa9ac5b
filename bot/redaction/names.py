"""Names of keys whose values are secret: `db_password`, `X-Api-Key`, `PGPASSWORD`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise

from agents.core.patterns import Pattern
from bot.redaction.patterns import is_login
from bot.redaction.rules import MaskRules, rules_now, words_of


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SECRET_WORDS = _set(
    """
    apikey authorization bearer cookie credential credentials cvc cvv jwt kennwort mdp mnemonic
    motdepasse otp passcode passphrase passwd password passwords passwort pin psk pwd secret secrets
    senha token tokens totp wachtwoord
    """
)
_SECRET_LAST = _set("pass pw")
"""Words that make a name secret if they are its last word: `DB_PASS`, but not `pass_rate`."""
_SECRET_PAIRS = frozenset(
    (first, second)
    for first, seconds in {
        "api": "key keys",
        "access": "key keys",
        "account": "key",
        "auth": "key",
        "contrase": "ñ na",
        "de": "passe",
        "encryption": "key",
        "key": "data",
        "master": "key",
        "private": "key keys lines",
        "recovery": "phrase",
        "secret": "key keys",
        "seed": "phrase",
        "signing": "key",
        "ssh": "key",
    }.items()
    for second in seconds.split()
)
_SECRET_ENDS = (
    *("password", "passwd", "passphrase", "passcode", "apikey", "authtoken", "accesstoken"),
    *(
        "secret",
        "credentials",
        "privatekey",
        "accesskey",
        "secretkey",
        "accountkey",
        "identitytoken",
    ),
)
"""Suffixes of secret names that are written as one word: `PGPASSWORD`."""


def _needles() -> Iterator[str]:
    """Yield texts of which every secret name contains at least one, in any case."""
    yield from (*_SECRET_WORDS, *_SECRET_LAST, *_SECRET_ENDS)
    for pair in _SECRET_PAIRS:
        yield "key" if any(word.startswith("key") for word in pair) else max(pair, key=len)


NAME_GATE = Pattern("(?i)" + "|".join(sorted({*_needles()})))
"""Pre-check: a text without a match is not a secret name, apart from the operator's rules."""
_HARMLESS_NAMES = frozenset({("image", "pull", "secret"), ("image", "pull", "secrets")})
"""Names of references to secrets; the secrets are stored elsewhere."""
_HARMLESS_ENDS = _set(
    """
    alg algorithm at audience banner budget consent count counts days enabled endpoint expires
    expiry file hours issuer kind label length limit minutes name notice path policy ref refs
    required scope scopes seconds size status ttl type uri url usage used version weeks
    """
)


def is_secret_key(key: str) -> bool:
    """Whether the name of a key means that its value is a secret."""
    is_secret = _is_secret if len(key) <= _MOST_KEPT else _is_secret.__wrapped__
    return is_secret(key, rules_now().keys)


_MOST_KEPT = 64
"""Length of a name in characters, up to which its result is cached: most names recur."""


@lru_cache(maxsize=4_096)
def _is_secret(key: str, keys: tuple[tuple[str, ...], ...]) -> bool:
    words = words_of(key)
    if MaskRules(keys=keys).has_key(words):
        return True
    if words and (words[-1] in _HARMLESS_ENDS or tuple(words) in _HARMLESS_NAMES):
        return False
    if words[-2:] in (["key", "id"], ["key", "ids"]):
        return False
    return (
        not _SECRET_WORDS.isdisjoint(words)
        or not _SECRET_LAST.isdisjoint(words[-1:])
        or any(word.endswith(_SECRET_ENDS) for word in words)
        or any(pair in _SECRET_PAIRS for pair in pairwise(words))
    )


_PLACE = re.compile(r"[/~$.].*", re.DOTALL)
_RELEASE = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,6}){1,3}(?:-[a-z0-9.]{1,20})?")
_PIN = re.compile(r"\s*\d(?:[ -]?\d){3,11}(?:\.0)?\s*")
"""4 to 12 digits (ISO 9564), possibly in groups. A float without a fraction counts, too."""
_LONGEST_NUMBER = 80
"""Size of a number in bits, from which it cannot be a count."""


def is_harmless_text(key: str, value: str) -> bool:
    """Whether a text under a secret name is known to be something else.

    For a shell, `PWD` is a directory; `OTP` can be a release of Erlang, and `pin` a pin of a chip.
    """
    if rules_now().has_key(words_of(key)):
        return False
    match words_of(key)[-1:]:
        case ["pwd"]:
            return _PLACE.fullmatch(value) is not None
        case ["otp"]:
            return _RELEASE.fullmatch(value) is not None
        case ["pin"]:
            return _PIN.fullmatch(value) is None
        case _:
            return False


def secret_fields(value: Mapping[str, object]) -> frozenset[str]:
    """Return the fields of an object that are secret because of the object's type."""
    fields = {"data", "stringData"} if value.get("kind") == "Secret" else set()
    login = value.get("auth")  # the login of a container registry
    if isinstance(login, str) and is_login(login):
        fields.add("auth")
    return frozenset(fields)


def is_harmless(key: str, value: object) -> bool:
    """Whether a value under a secret name is empty, a boolean or a count."""
    match value:
        case None | bool() | "" | [] | ():
            return True
        case str():
            return is_harmless_text(key, value)
        case float():
            return _is_harmless_number(key, value)
        case int() if value.bit_length() < _LONGEST_NUMBER:
            return _is_harmless_number(key, value)
        case _:
            return value == {}


def _is_harmless_number(key: str, value: float) -> bool:
    return is_harmless_text(key, str(value)) or is_counted(key, "pass", "token", "tokens")


def is_counted(key: str, *counted: str) -> bool:
    """Whether a key is secret only because of words that can also be counted, such as tokens."""
    words = words_of(key)
    secret_words = {word for word in words if word in _SECRET_WORDS or word in _SECRET_LAST}
    return bool(secret_words) and secret_words <= set(counted) and not rules_now().has_key(words)
