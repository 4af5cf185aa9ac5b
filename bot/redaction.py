"""Masks secrets by the name of their key and by their look: the one choke point.

Whatever goes to Slack, logs, audit or metrics and comes from a model, a tool or a person passes
here. When in doubt, it masks. What the operator adds (`COUNTERSIGN_REDACT`) and the bot's own
secrets are put in force for the whole process, like the set-up of the log: a place that forgot to
ask for them would be a leak.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TypeAlias

from bot.looks import LOOKS, REDACTED, has_any, is_card, is_random, mask_looks, may_have_looks
from bot.maskrules import NO_RULES, Rules, joined, words_of

__all__ = [
    "REDACTED",
    "Search",
    "in_force",
    "is_harmless",
    "is_secret_key",
    "mask",
    "mask_text",
    "mask_words",
    "own_spans",
    "print_key",
    "print_of",
    "searches",
]

SHORTEST_VALUE = 6
"""A shorter secret would be masked inside ordinary words; patterns still find it in its place."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SECRET_WORDS = _set(
    """
    apikey authorization bearer cookie credential credentials cvc cvv jwt otp passphrase passcode
    passwd password passwords pwd secret secrets token tokens totp
    """
)
_SECRET_LAST = _set("pass pw")
"""Words that name a secret as the last ones of a name: `DB_PASS`, but not `pass_rate`."""
_SECRET_PAIRS = frozenset(
    (first, second)
    for first, seconds in {
        "api": "key keys",
        "access": "key keys",
        "account": "key",
        "deploy": "key",
        "encryption": "key",
        "master": "key",
        "private": "key keys lines",
        "secret": "key keys",
        "signing": "key",
        "ssh": "key",
    }.items()
    for second in seconds.split()
)
_SECRET_ENDS = (
    *("password", "passwd", "passphrase", "passcode", "apikey", "authtoken", "accesstoken"),
    *("secret", "credentials", "privatekey", "accesskey", "secretkey", "accountkey"),
)
"""Of words that are written as one: `PGPASSWORD`."""
_HARMLESS_ENDS = _set(
    """
    at budget count counts expires expiry file kind length limit name path policy scope scopes size
    status ttl type uri url usage used version
    """
)

_NEEDLES = (
    *("pass", "pw", "secret", "token", "key", "cookie", "credential", "authorization", "bearer"),
    *("jwt", "otp", "cvc", "cvv", "pin "),
)
"""A text without any of them has no value that a name makes secret."""

_UNSAID = _set(
    """
    a an and are at been being bool boolean by changed correct empty encrypted expired false hashed
    here hidden if in incorrect int integer invalid kept known masked missing needed never no none
    not now null of off ok old on only optional or out redacted required reset rotated secret sent
    set shown str stored string strong that the there to too true unchanged undefined unknown unset
    up used valid weak what wrong
    """
)
"""Words after “password is” and the like that are not the password."""

_BEGINS = r"(?:(?<![\w.$@\\])|(?<=\\[nrt])|(?<=\\)(?![nrt]))"
_SCHEME = r"(?:(?:bearer|basic|token|digest|negotiate|apikey)[ \t]{1,3})?"
_QUOTED = (
    r"\\\"(?:[^\"\\\n]|\\[^\"\n]){0,4000}+(?:\\\")?"
    r"|\"(?:[^\"\\\n]|\\.){0,4000}+\"?"
    r"|'(?:[^'\\\n]|\\.){0,4000}+'?"
)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a text where a name says what the value after it is.

    Attributes:
        before: Matches the name, as a group, and what stands between it and the value.
        value: Matches the value.
        follow: What has to follow a value that is one plain token.
        is_prose: Whether it is a sentence: its end is kept, and the value has to look secret.
    """

    before: re.Pattern[str]
    value: re.Pattern[str]
    follow: re.Pattern[str]
    is_prose: bool = False

    def mask(self, text: str) -> str:
        """Mask the values with secret names; a value without one may have names in it."""
        pieces: list[str] = []
        done = at = 0
        while (before := self.before.search(text, at)) is not None:
            at = before.end()
            found = self.value.match(text, at) if is_secret_key(before["name"]) else None
            if found is None or not self._tells(before["name"], found[0]):
                continue
            pieces += [text[done:at], REDACTED]
            done = at = found.end() - (len(_end_of(found[0])) if self.is_prose else 0)
        return "".join([*pieces, text[done:]])

    def plain_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield begin and end of the values with secret names that are one plain token."""
        at = 0
        while (before := self.before.search(text, at)) is not None:
            at = before.end()
            if not is_secret_key(before["name"]):
                continue
            found = _PLAIN_VALUE.match(text, at)
            if found is None or not self._ends(text, before, found):
                continue
            end = found.end("plain") - (len(_end_of(found["plain"])) if self.is_prose else 0)
            if self._tells(before["name"], found["plain"]) and end > found.start("plain"):
                yield found.start("plain"), end
                at = found.end()

    def _ends(self, text: str, before: re.Match[str], found: re.Match[str]) -> bool:
        """Tell whether the value ends with a token: what comes after is no part of it."""
        if found["quote"]:
            return text.startswith(found["quote"], found.end())
        follow = _END_OF_FIELD if before[0].rstrip()[-1:] == ":" else self.follow
        return follow.match(text, found.end()) is not None

    def _tells(self, name: str, value: str) -> bool:
        """Tell whether a value can be the secret itself."""
        core = value.strip(_AROUND)
        if not core or core in _MASKED or core.lower() in _UNSAID or _FILE.search(name):
            return False
        if "." in name and _PORT.match(value):  # a host, such as password.example.com:8443
            return False
        if self.is_prose and not name.lower().startswith(("pass", "pwd")):
            return is_random(core) and len(core) >= 8
        return not (_NUMBER.fullmatch(core) and _is_counted(name, "pass", "tokens"))


_PLAIN_VALUE = re.compile(
    r"(?P<quote>\\?[\"'])?(?P<plain>[A-Za-z0-9_.+/=-]{1,200}+)(?![A-Za-z0-9_.+/=-])"
)
_END_OF_WORD = re.compile(r"[\s\"',;&|<>)\]}]|\\[\"'nrt]|\Z")
_END_OF_FIELD = re.compile(r"[ \t]*+(?:[\n\"',;&>)\]}]|\\[\"'nrt]|\Z)")
"""A colon gives its whole line a name: more words after the first are a part of the value."""
_END_OF_LINE = re.compile(r"[ \t]*+(?:\n|\Z)")
_END_OF_SENTENCE = re.compile(r"[,;:!?)\]]*+(?:\s|\Z)")
_END_OF_ELEMENT = re.compile("<")
_AROUND = "\"'\\.,;:!?()[]{}` "
_MASKED = {REDACTED, REDACTED.split(" ", maxsplit=1)[0]}
_FILE = re.compile(r"\.(?:css|go|html|js|json|log|md|py|rs|sh|toml|ts|txt|ya?ml)\Z")
_PORT = re.compile(r"[0-9]{1,5}(?:[/?#]|\Z)")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")


def _end_of(sentence: str) -> str:
    return sentence[len(sentence.rstrip(".,;:!?")) :]


_PLACES = (
    _Place(  # the line of a file or of a header; a passphrase has spaces
        re.compile(
            r"^[ \t>*-]{0,16}+[\"']?"
            r"(?P<name>[\w.-]{0,64}?(?:passwords?|passwd|passphrase|passcode|cookie))"
            r"[\"']?[ \t]{0,3}:[ \t]{1,3}",
            re.IGNORECASE | re.MULTILINE,
        ),
        re.compile(r"\S[^\n]{0,4000}+"),
        _END_OF_LINE,
    ),
    _Place(  # the password for the database is …
        re.compile(
            r"(?<!\w)(?P<name>(?:api|access|secret|auth)[ -](?:key|token)|password|passwd"
            r"|passphrase|passcode|pwd|secret|token)"
            r"(?:\s(?:for|of|to|on)(?:\s(?!(?:is|was)\b)\S{1,64}+){1,3})?"
            r"\s{1,3}(?:is|was)(?: now)?:?\s{1,3}",
            re.IGNORECASE,
        ),
        re.compile(r"\"[^\"\n]{1,200}+\"?|'[^'\n]{1,200}+'?|[^\s\"']\S{0,200}+"),
        _END_OF_SENTENCE,
        is_prose=True,
    ),
    _Place(  # --password …
        re.compile(r"(?<![\w-])--?(?!no-)(?P<name>[A-Za-z][\w-]{1,63}+)[ \t]{1,3}"),
        re.compile(rf"{_QUOTED}|[^\s\"'-]\S{{0,2000}}+"),
        _END_OF_WORD,
    ),
    _Place(
        re.compile(r"<(?P<name>[\w:.-]{1,64}+)>"),
        re.compile(r"[^<\n]{1,2000}+"),
        _END_OF_ELEMENT,
    ),
    _Place(
        re.compile(
            rf"{_BEGINS}(?P<name>(?:(?:api|access|account|auth|private|secret|signing)[ ])?"
            r"[A-Za-z_$@][\w.$@-]{0,127}+)"
            rf"(?:\\?[\"'])?\]?[ \t]{{0,3}}(?:=>|:=|[:=])\s{{0,3}}{_SCHEME}",
            re.IGNORECASE,
        ),
        re.compile(rf"{_QUOTED}|[^\s\"',;&]{{1,4000}}+"),
        _END_OF_WORD,
    ),
)
_CURL = re.compile(
    r"(?<![\w-])(?P<keep>(?:-u|--user)[ =]{1,3}[\"']?"
    r"(?![0-9]{1,10}+:[0-9]{1,10}+\b)[^\s:\"']{1,128}+:)"
    r"(?!//|••••)[^\s\"']{1,500}+"
)

_rules = NO_RULES
_parts: list[Rules] = []
_keys: list[bytes] = []


@contextmanager
def in_force(rules: Rules, *, secrets: Sequence[str] = (), key: bytes = b"") -> Iterator[None]:
    """Mask more than what is masked anyway, in the whole process, as long as the block lasts.

    Args:
        rules: What the operator wants masked.
        secrets: Texts that are masked wherever they stand; those that are too short are not.
        key: Makes the fingerprints of what is masked in calls; without one there are none.
    """
    long = {secret for secret in secrets if len(secret) >= SHORTEST_VALUE}
    part = replace(rules, values=(*rules.values, *long))
    _parts.append(part)
    _keys.append(key)
    _join()
    try:
        yield
    finally:
        _parts.remove(part)
        _keys.remove(key)
        _join()


def print_key(secret: str) -> bytes:
    """Derive the key of fingerprints from a secret that all replicas of an installation have."""
    return hmac.digest(secret.encode(), b"countersign.fingerprint/1", "sha256")


def print_of(clear: str) -> str:
    """A fingerprint of what is masked: 12 hexadecimal digits; empty when no key is in force.

    Equal texts have equal ones, so that people can compare what they do not see. Without the key
    nobody can try out texts until one fits.
    """
    key = next((key for key in reversed(_keys) if key), b"")
    if not key:
        return ""
    return hmac.digest(key, clear.encode(errors="surrogatepass"), "sha256").hex()[:12]


def _join() -> None:
    global _rules  # noqa: PLW0603 - see the first lines of this file
    _rules = Rules(
        keys=tuple(dict.fromkeys(key for part in _parts for key in part.keys)),
        patterns=tuple(dict.fromkeys(one for part in _parts for one in part.patterns)),
        values=tuple(sorted({one for part in _parts for one in part.values}, key=len)[::-1]),
    )


def is_secret_key(key: str) -> bool:
    """Tell whether the name of a key says that its value is a secret."""
    words = words_of(key)
    if _rules.has_key(words):
        return True
    if words and words[-1] in _HARMLESS_ENDS:
        return False
    return (
        not _SECRET_WORDS.isdisjoint(words)
        or not _SECRET_LAST.isdisjoint(words[-1:])
        or any(word.endswith(_SECRET_ENDS) for word in words)
        or any(pair in _SECRET_PAIRS for pair in pairwise(words))
    )


def mask(key: str, value: object) -> object:
    """Mask what is secret in a value of JSON data.

    Args:
        key: The name that the value has; empty when it has none.
        value: JSON data of any depth.

    Returns:
        The value with `REDACTED` in place of secrets; equal to the value when there are none.
    """
    if is_secret_key(key) and not is_harmless(key, value):
        return REDACTED
    match value:
        case str():
            return mask_text(value)
        case dict():
            return _mask_object(value)
        case list() | tuple():
            return _mask_list(key, value)
        case int() if not isinstance(value, bool) and value.bit_length() < 80:
            return REDACTED if is_card(str(value)) else value
        case _:
            return value


def mask_text(text: str) -> str:
    """Mask what is, or looks like, a secret inside a text."""
    text = mask_looks(_rules.mask_values(text))
    lower = text.lower()
    if _rules.keys or has_any(_NEEDLES, lower):
        for place in _PLACES:
            text = place.mask(text)
    if "curl" in lower:
        text = _CURL.sub(rf"\g<keep>{REDACTED}", text)
    return _rules.mask_patterns(text)


def own_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the texts that are surely secret: see `in_force`."""
    found = sorted((at, -len(value)) for value in _rules.values for at in _places_of(value, text))
    end = 0
    for at, size in found:
        if at >= end:
            end = at - size
            yield at, end


def _places_of(value: str, text: str) -> Iterator[int]:
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + len(value))


Search: TypeAlias = Callable[[str], Iterable[tuple[int, int]]]
"""Finds begin and end of what looks like a secret, in order."""


def searches(text: str) -> Iterator[Search]:
    """Yield what guesses at secrets, one form after the other; only what may be in this text."""
    if may_have_looks(text):
        yield from (look.spans for look in LOOKS)
    lower = text.lower()
    if _rules.keys or has_any(_NEEDLES, lower):
        yield from (place.plain_spans for place in _PLACES)
    if "curl" in lower:
        yield _curl_spans
    yield from (partial(joined, pattern) for pattern in _rules.patterns)


def _curl_spans(text: str) -> Iterator[tuple[int, int]]:
    return ((found.end("keep"), found.end()) for found in _CURL.finditer(text))


def mask_words(text: str, data: object) -> str:
    """Mask what is, or looks like, a secret in a text that was made from data, such as a title.

    Args:
        text: May have values of the data in it, where no name says that they are secret.
        data: JSON data.
    """
    for value in sorted(set(_secrets_in(data, mask("", data))), key=len, reverse=True):
        whole = re.escape(value)
        if len(value) < SHORTEST_VALUE:  # not inside of other words
            whole = rf"(?<!\w){whole}(?!\w)"
        text = re.sub(whole, REDACTED, text)
    return mask_text(text)


def _secrets_in(value: object, masked: object) -> Iterator[str]:
    """The values of data that are masked as a whole."""
    match value, masked:
        case dict(), dict():
            for item, shown in zip(value.values(), masked.values(), strict=True):
                yield from _secrets_in(item, shown)
        case list() | tuple(), list():
            for item, shown in zip(value, masked, strict=True):
                yield from _secrets_in(item, shown)
        case _ if masked == REDACTED:
            yield from (leaf for leaf in _leaves(value) if len(leaf) > 2)


def _leaves(value: object) -> Iterator[str]:
    match value:
        case dict():
            yield from (leaf for item in value.values() for leaf in _leaves(item))
        case list() | tuple():
            yield from (leaf for item in value for leaf in _leaves(item))
        case str():
            yield value
            yield from value.splitlines()
        case _:
            yield str(value)


def _mask_object(value: Mapping[object, object]) -> dict[str, object]:
    # {"name": "DB_PASSWORD", "value": "…"}: a list of variables or headers
    given = next((value[name] for name in ("name", "key", "Name", "Key") if name in value), "")
    named = given if isinstance(given, str) and is_secret_key(given) else ""
    masked: dict[str, object] = {}
    for key, item in value.items():
        name = shown = mask_text(str(key))
        while shown in masked:  # two secret names must not become one, or a value would vanish
            shown = f"{name} ({len(masked) + 1})"
        masked[shown] = mask(named if named and str(key).lower() == "value" else str(key), item)
    return masked


def _mask_list(key: str, items: Sequence[object]) -> list[object]:
    masked: list[object] = []
    option = ""
    for item in items:
        masked.append(mask(option, item) if option else mask(key, item))
        # ["--password", "…"]: the arguments of a command
        is_option = isinstance(item, str) and item.startswith("-") and is_secret_key(item)
        option = str(item) if is_option else ""
    return masked


def is_harmless(key: str, value: object) -> bool:
    """Tell whether a value under a secret name says nothing: nothing at all, yes or no, a count."""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return True
    return isinstance(value, int | float) and _is_counted(key, "pass", "token", "tokens")


def _is_counted(key: str, *counted: str) -> bool:
    """Tell whether a key is secret for nothing but words of things that are counted, too."""
    words = words_of(key)
    found = {word for word in words if word in _SECRET_WORDS or word in _SECRET_LAST}
    return bool(found) and found <= set(counted) and not _rules.has_key(words)
