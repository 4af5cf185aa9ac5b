"""Patterns of secrets with a name before them: `password: …`, `--token …`."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import TypeAlias
from urllib.parse import unquote_plus

from agents.core.patterns import Pattern, PatternError
from bot.redaction.names import NAME_GATE, is_counted, is_harmless_text, is_secret_key
from bot.redaction.patterns import (
    CARD_GATE,
    CARD_LOOK,
    FIRST_GATE,
    FIRST_LOOKS,
    MORE_GATE,
    MORE_LOOKS,
    REDACTED,
    TOKEN_GATE,
    has_any,
    is_random,
    mask_looks,
    mask_spans,
)
from bot.redaction.rules import joined, rules_now
from bot.redaction.scan import Gates

NAMES_GATE = Pattern(
    "(?i)pass|pw|secret|token|key|cookie|credential|authorization|bearer|jwt|otp|cvc|cvv|kennwort"
    "|contrase|mdp|senha|wachtwoord|mnemonic|phrase|psk|pin[ :='\"]"
)
"""Pre-check: a text without a match has no value with a secret name."""

_NO_SECRETS = """
    a an and are at been being bool boolean by changed correct empty encrypted expired false hashed
    here hidden if in incorrect int integer invalid kept known masked missing needed never no none
    not now null of off ok old on only optional or out redacted required reset rotated secret sent
    set shown str stored string strong that the there to too true unchanged undefined unknown unset
    up used valid weak what wrong falsch leer nicht richtig correcta incorrecta incorrect vide faux
"""
_UNSAID = frozenset(_NO_SECRETS.split())
"""Words that can follow “password is” without being the password."""

_BEGINS = r"(?:(?<![\w.$@\\])|(?<=\\[nrt])|(?<=\\)(?![nrt]))"
_SCHEME = r"(?:(?:bearer|basic|token|digest|negotiate|apikey)[ \t]{1,3})?"
_QUOTED = (
    r"\\\"(?:[^\"\\\n]|\\[^\"\n]){0,4000}+(?:\\\")?"
    r"|\"(?:[^\"\\\n]|\\.){0,4000}+\"?"
    r"|'(?:[^'\\\n]|\\.){0,4000}+'?"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A syntax in which a name is followed by its value, such as `name: value`.

    Attributes:
        before: Matches the name, as the group `name`, and everything up to the value.
        value: Matches the value.
        follow: Must match after a value that is a plain token.
        needles: Texts of which every match contains at least one; empty without a pre-check.
        is_prose: Whether it is a sentence. Then its final punctuation is kept, and the value must
            look like a secret.
    """

    before: re.Pattern[str]
    value: re.Pattern[str]
    follow: re.Pattern[str]
    needles: tuple[str, ...] = ()
    is_prose: bool = False

    def may_be_in(self, text: str) -> bool:
        """Whether a text may contain this syntax. A fast check."""
        return not self.needles or has_any(self.needles, text)

    def mask(self, text: str) -> str:
        """Mask the values of secret names. Other values are searched for further names."""
        pieces: list[str] = []
        done = at = 0
        while (before := self.before.search(text, at)) is not None:
            at = before.end()
            match = self.value.match(text, at) if is_secret_key(before["name"]) else None
            if match is None or not self._tells(before["name"], match[0]):
                continue
            pieces += [text[done:at], REDACTED]
            done = at = match.end() - (len(_end_of(match[0])) if self.is_prose else 0)
        return "".join([*pieces, text[done:]])

    def plain_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of the values of secret names that are plain tokens."""
        at = 0
        while (before := self.before.search(text, at)) is not None:
            at = before.end()
            if not is_secret_key(before["name"]):
                continue
            value = _PLAIN_VALUE.match(text, at)
            if value is None or not self._ends(text, before, value):
                continue
            end = value.end("plain") - (len(_end_of(value["plain"])) if self.is_prose else 0)
            if self._tells(before["name"], value["plain"]):
                yield value.start("plain"), end
                at = value.end()

    def _ends(self, text: str, before: re.Match[str], match: re.Match[str]) -> bool:
        """Whether the value ends after the token."""
        if match["quote"]:
            return text.startswith(match["quote"], match.end())
        follow = _END_OF_FIELD if before[0].rstrip()[-1:] == ":" else self.follow
        return follow.match(text, match.end()) is not None

    def _tells(self, name: str, value: str) -> bool:
        """Whether a value can be the secret itself."""
        core = value.strip(_AROUND)
        if not core or core in _MASKED or core.lower() in _UNSAID or _FILE.search(name):
            return False
        if "." in name and _PORT.match(value):  # a host, such as password.example.com:8443
            return False
        if is_harmless_text(name, core):
            return False
        if self.is_prose and name.lower().startswith("pin"):
            return _PIN.fullmatch(core) is not None
        if self.is_prose and not name.lower().startswith(_PASSWORDS):
            return is_random(core) and len(core) >= 8
        return not (_NUMBER.fullmatch(core) and is_counted(name, "pass", "tokens"))


_PLAIN_VALUE = re.compile(
    r"(?P<quote>\\?[\"'])?(?P<plain>[A-Za-z0-9_.+/=-]{1,200}+)(?![A-Za-z0-9_.+/=-])"
)
_END_OF_WORD = re.compile(r"[\s\"',;&|<>)\]}]|\\[\"'nrt]|\Z")
_END_OF_FIELD = re.compile(r"[ \t]*+(?:[\n\"',;&>)\]}]|\\[\"'nrt]|\Z)")
"""After a colon, the whole line is the value: a token followed by more words is not all of it."""
_END_OF_LINE = re.compile(r"[ \t]*+(?:\n|\Z)")
_END_OF_SENTENCE = re.compile(r"[,;:!?)\]]*+(?:\s|\Z)")
_END_OF_ELEMENT = re.compile("<")
_PIN = re.compile(r"[0-9]{4,8}")
_PASSWORDS = ("pass", "pwd", "kennwort", "contrase", "mot de passe", "senha")
_AROUND = "\"'\\.,;:!?()[]{}` "
_MASKED = {REDACTED, REDACTED.partition(" ")[0]}
_FILE = re.compile(r"\.(?:css|go|html|js|json|log|md|py|rs|sh|toml|ts|txt|ya?ml)\Z")
_PORT = re.compile(r"[0-9]{1,5}(?:[/?#]|\Z)")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")


def _end_of(sentence: str) -> str:
    return sentence[len(sentence.rstrip(".,;:!?")) :]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The values of a Kubernetes Secret in YAML."""

    def may_be_in(self, text: str) -> bool:
        """Whether a text may contain a Secret. A fast check."""
        return "kind:" in text

    def mask(self, text: str) -> str:
        """Mask the values."""
        return mask_spans(text, self._spans(text))

    def plain_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of the values that are plain tokens."""
        for first, last in self._spans(text):
            if _PLAIN_VALUE.fullmatch(text, first, last):
                yield first, last

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        begins = [0, *(match.start() for match in _NEXT.finditer(text)), len(text)]
        for begin, end in pairwise(begins):
            if _IS_SECRET.search(text, begin, end) is not None:
                yield from self._values(text, begin, end)

    def _values(self, text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
        is_data = False
        for match in _LINE.finditer(text, begin, end):
            if match["top"]:
                is_data = match["top"] in {"data", "stringData"}
            elif is_data and match["value"] not in _MASKED:
                yield match.span("value")


_NEXT = re.compile(r"^---", re.MULTILINE)
_IS_SECRET = re.compile(r"^kind:[ \t]{0,9}[\"']?Secret[\"']?[ \t]{0,9}$", re.MULTILINE)
_LINE = re.compile(
    r"^(?:(?P<top>[\w-]{1,63}+):"
    r"|[ \t]{1,32}+(?:[\w.-]{1,253}+:[ \t]{1,9}+)?(?P<value>[^\s#|>][^\n]*+))",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Nested:
    """An object or a list with a secret name, in text that is JSON or looks like it."""

    def may_be_in(self, text: str) -> bool:
        """Whether a text may contain an object or a list. A fast check."""
        return "[" in text or "{" in text

    def mask(self, text: str) -> str:
        """Mask each such value as a whole."""
        return mask_spans(text, self._spans(text))

    def plain_spans(self, text: str) -> Iterator[tuple[int, int]]:  # noqa: ARG002 - as in `Place`
        """Yield nothing: such a value is not a plain token."""
        return iter(())

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        at = 0
        while (before := _BEFORE_NESTED.search(text, at)) is not None:
            at = before.end()
            if is_secret_key(before["name"]):
                end = _end_of_nested(text, at)
                if not _says_nothing(text[at:end]):
                    yield at, end
                    at = end


_BEFORE_NESTED = re.compile(
    rf"{_BEGINS}(?P<name>[A-Za-z_$@][\w.$@-]{{0,127}}+)(?:\\?[\"'])?\s{{0,9}}(?:=>|:=|[:=])\s{{0,9}}"
    r"(?=[\[{])"
)
_BRACKET = re.compile(r"\\.|\"(?:[^\"\\]|\\.){0,4000}+\"|[\[\]{}]", re.DOTALL)
_NESTED = 20_000
"""Length within which a nested value must end, in characters. Otherwise the rest of the text is
masked.
"""


def _end_of_nested(text: str, begin: int) -> int:
    """Return the position after the matching closing bracket."""
    depth = 0
    for match in _BRACKET.finditer(text, begin, begin + _NESTED):
        depth += (match[0] in "[{") - (match[0] in "]}")
        if depth == 0:
            return match.end()
    return len(text)


def _says_nothing(value: str) -> bool:
    try:
        return json.loads(value) in ([], {})
    except (ValueError, RecursionError):
        return not value.strip("[]{} \n\t")


PLACES = (
    Place(  # the line of a file or of a header; a passphrase has spaces
        re.compile(
            r"^[ \t>*-]{0,16}+[\"']?"
            r"(?P<name>[\w.-]{0,64}?(?:passwords?|passwd|passphrase|passcode|cookie|mnemonic"
            r"|(?:seed|recovery)[ _-]?phrase))"
            r"[\"']?[ \t]{0,3}:[ \t]{1,3}",
            re.IGNORECASE | re.MULTILINE,
        ),
        re.compile(r"\S[^\n]{0,4000}+"),
        _END_OF_LINE,
        (":",),
    ),
    Place(  # the password for the database is …
        re.compile(
            r"(?<!\w)(?P<name>(?:api|access|secret|auth)[ -](?:key|token)|password|passwd"
            r"|passphrase|passcode|pwd|secret|token"
            r"|passwort|kennwort|contraseña|mot de passe|senha|pin)"
            r"(?:\s(?:for|of|to|on|für|de|del|du|pour)(?:\s(?!(?:is|was|ist|es|est)\b)\S{1,64}+){1,3})?"
            r"\s{1,3}(?:is|was|ist|lautet|es|est|é)(?: now)?:?\s{1,3}",
            re.IGNORECASE,
        ),
        re.compile(r"\"[^\"\n]{1,200}+\"?|'[^'\n]{1,200}+'?|[^\s\"']\S{0,200}+"),
        _END_OF_SENTENCE,
        is_prose=True,
    ),
    Place(  # --password …
        re.compile(r"(?<![\w-])--?(?!no-)(?P<name>[A-Za-z][\w-]{1,63}+)[ \t]{1,3}"),
        re.compile(rf"{_QUOTED}|[^\s\"'-]\S{{0,2000}}+"),
        _END_OF_WORD,
        ("-",),
    ),
    Place(
        re.compile(r"<(?P<name>[\w:.-]{1,64}+)>"),
        re.compile(r"[^<\n]{1,2000}+"),
        _END_OF_ELEMENT,
        ("<",),
    ),
    Place(
        re.compile(
            rf"{_BEGINS}(?P<name>(?:(?:api|access|account|auth|private|secret|signing|mot de|seed"
            r"|recovery)[ ])?"
            r"[A-Za-z_$@][\w.$@-]{0,127}+)"
            rf"(?:\\?[\"'])?\]?[ \t]{{0,3}}(?:=>|:=|[:=])\s{{0,3}}{_SCHEME}",
            re.IGNORECASE,
        ),
        re.compile(rf"{_QUOTED}|[^\s\"',;&]{{1,4000}}+"),
        _END_OF_WORD,
        (":", "="),
    ),
)
ALL_PLACES: tuple[Place | Manifest | Nested, ...] = (Manifest(), Nested(), *PLACES)

CURL_GATE = Pattern("(?i)curl")
CURL = re.compile(
    r"(?<![\w-])(?P<keep>(?:-u|--user)[ =]{1,3}[\"']?"
    r"(?![0-9]{1,10}+:[0-9]{1,10}+\b)[^\s:\"']{1,128}+:)"
    r"(?!//|••••)[^\s\"']{1,500}+"
)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Words that contain a secret in URL encoding or base64."""

    def mask(self, text: str) -> str:
        """Mask each such word as a whole."""
        return mask_spans(text, self.spans(text)) if ENCODED_GATE.finds(text) else text

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each word."""
        for match in _ENCODED_WORD.finditer(text):
            decoded = _from_base64(match[0]) if match["base64"] else unquote_plus(match[0])
            if decoded and _has_secret(decoded, is_login=match["base64"] is not None):
                yield match.span()


ENCODED = Encoded()
ENCODED_GATE = Pattern("%(?:3[AaDd]|2[0Ff]|40)|(?:[A-Za-f][A-Za-z0-9+/]{3}){4}")
"""Matches URL-encoded separators, and base64 of at least twelve ASCII characters."""
_FOUR = "[A-Za-f][A-Za-z0-9+/][A-Za-z0-9+/][A-Za-z0-9+/]"
_ENCODED_WORD = re.compile(
    r"(?<![\w%.~-])(?P<url>(?=[\w.~!*'()+-]{0,200}+%[0-9A-Fa-f]{2})[\w.~%!*'()+-]{8,4000}+)"
    rf"|(?<![A-Za-z0-9+/])(?P<base64>(?:{_FOUR}){{3,5000}}+"
    r"(?:[A-Za-f][A-Za-z0-9+/][A-Za-z0-9+/]?+={0,2}+)?+)(?![A-Za-z0-9+/=])"
)
_LOGIN_PAIR = re.compile(r"[\w.@+-]{1,64}:(?!/)(?=\S*[A-Za-z])(?=\S*[^A-Za-z\s])\S{6,200}")


def _from_base64(word: str) -> str:
    """Return the decoded text of a word; empty if it is not printable ASCII."""
    try:
        text = base64.b64decode(word + "=" * (-len(word) % 4), validate=True).decode("ascii")
    except ValueError:
        return ""
    return text if text.isprintable() else ""


def _has_secret(text: str, *, is_login: bool) -> bool:
    if is_login and _LOGIN_PAIR.fullmatch(text):
        return True
    return mask_looks(text) != text or (
        NAMES_GATE.finds(text) and any(place.mask(text) != text for place in ALL_PLACES)
    )


_GATES = tuple(
    Pattern("|".join(f"(?:{gate.text})" for gate in some))
    for some in ((FIRST_GATE, NAMES_GATE, CURL_GATE), (MORE_GATE, ENCODED_GATE))
)
"""Two patterns, because a single one would exceed RE2's size limit."""


def may_have_guess(text: str) -> bool:
    """Whether a text may contain a guessed secret, without the operator's rules. A fast check."""
    return any(gate.finds(text) for gate in _GATES)


Search: TypeAlias = Callable[[str], Iterable[tuple[int, int]]]
"""Finds start and end of texts that look like secrets, in order."""

OWN, TOKEN, CARD, MORE, PLACE, LOGIN, RULE, CODED = (1 << number for number in range(8))
"""Bits of the groups of secrets: the bot's own secrets, and kinds of guesses."""


def forms_in(text: str) -> int:
    """Return the groups of secrets that a text may contain, as bits. A fast check."""
    if not (rules_now().keys or may_have_guess(text)):
        return OWN | RULE
    return (
        OWN
        | (TOKEN | CARD) * FIRST_GATE.finds(text)
        | MORE * MORE_GATE.finds(text)
        | PLACE * (bool(rules_now().keys) or NAMES_GATE.finds(text))
        | LOGIN * CURL_GATE.finds(text)
        | CODED * ENCODED_GATE.finds(text)
        | RULE
    )


def gates_now(*, is_open: bool = False) -> Gates | None:
    """Return the pre-check patterns of all guessed groups, for `suspects_in`.

    None if an operator's rule cannot be checked on joined texts.

    Args:
        is_open: Whether guesses are shown, so that nothing is searched.
    """
    rules = rules_now()
    return () if is_open else _gates(rules.keys, rules.patterns)


@lru_cache(maxsize=16)
def _gates(keys: tuple[tuple[str, ...], ...], patterns: tuple[Pattern, ...]) -> Gates | None:
    words = [key[0] for key in keys]
    if not all(map(str.isascii, words)) or not all(map(is_free, patterns)):
        return None
    try:
        more = [Pattern("(?i)" + "|".join(map(re.escape, words)))] if words else []
    except PatternError:  # the names together exceed RE2's size limit
        return None
    return (
        (TOKEN, TOKEN_GATE),
        (CARD, CARD_GATE),
        (MORE, MORE_GATE),
        (LOGIN, CURL_GATE),
        (CODED, ENCODED_GATE),
        *((PLACE, gate) for gate in (_NAMES, *more)),
        *((RULE, pattern) for pattern in patterns),
    )


_NAMES = Pattern(f"{NAMES_GATE.text}|{NAME_GATE.text}|auth")
"""Matches secret names in texts and keys, and `auth`, which `secret_fields` checks."""


_BOUND = re.compile(r"\\[^dDsSwWnrtfavpPx.*+?()\[\]{}|/:_-]|\$|(?<!(?<!\\)\[)\^")
"""Matches anchors and other position assertions; in doubt, anything that could be one."""


def is_free(pattern: Pattern) -> bool:
    """Whether a pattern has no position assertions, so that it matches in joined texts, too."""
    return _BOUND.search(pattern.text) is None


def searches(text: str, forms: int) -> Iterator[Search]:
    """Yield the searches for secrets that may succeed in a text, in order.

    Args:
        text: The text.
        forms: The groups to search for, as bits.
    """
    groups = ((TOKEN, FIRST_LOOKS), (CARD, CARD_LOOK), (MORE, MORE_LOOKS))
    for group, looks in groups:
        if forms & group:
            yield from (look.spans for look in looks if look.may_be_in(text))
    if forms & CODED:
        yield ENCODED.spans
    if forms & PLACE:
        yield from (place.plain_spans for place in ALL_PLACES if place.may_be_in(text))
    if forms & LOGIN:
        yield _curl_spans
    if forms & RULE:
        yield from (partial(joined, pattern) for pattern in rules_now().patterns)


def _curl_spans(text: str) -> Iterator[tuple[int, int]]:
    return ((match.end("keep"), match.end()) for match in CURL.finditer(text))
