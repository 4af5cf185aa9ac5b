"""The patterns of secrets: the forms of tokens, keys, logins and card numbers.

Every pattern takes linear time: repetitions are bounded or possessive (without backtracking), and a
run of characters is matched only from its start. A pattern is tried only on texts with one of its
needles.

Sources:
    https://docs.slack.dev/authentication/tokens, https://github.blog/2021-04-05 (token formats),
    https://docs.gitlab.com/security/tokens, https://docs.aws.amazon.com/IAM/latest/UserGuide
    (unique identifiers), the rules of gitleaks and detect-secrets (vendors), RFC 7468 (PEM),
    RFC 7519 (JWT), ISO/IEC 7812 (card numbers)
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from agents.core.patterns import Pattern

REDACTED = "•••• redacted"
"""The text in place of a secret."""

_START = r"(?:(?<![A-Za-z0-9_\\-])|(?<=\\[nrt])|(?<=\\)(?![nrt]))"
"""Position where a token may begin: not inside of a word. An escaped line end ends a word."""
_END = r"(?![A-Za-z0-9])"


@dataclass(frozen=True, slots=True)
class Look:
    """One form of a secret.

    Attributes:
        needles: Texts of which every match contains at least one; empty without this pre-check.
        pattern: Matches the secret, and the text before it as the group `keep`.
        is_secret: Checks a match in detail; None if the pattern is sufficient.
        hint: A faster pattern that matches in every text with this form, or None.
        gate: The same as an RE2 pattern, for one combined pre-check of all forms; empty to use the
            needles.
    """

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    is_secret: Callable[[re.Match[str]], bool] | None = None
    hint: re.Pattern[str] | None = None
    gate: str = ""

    def may_be_in(self, text: str) -> bool:
        """Whether a text may contain this form. A fast check."""
        if self.needles and not has_any(self.needles, text):
            return False
        return self.hint is None or self.hint.search(text) is not None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each secret of this form, in order."""
        if not self.may_be_in(text):
            return
        has_keep = "keep" in self.pattern.groupindex
        for match in self.pattern.finditer(text):
            if self.is_secret is None or self.is_secret(match):
                yield (match.end("keep") if has_keep else match.start()), match.end()

    def mask(self, text: str) -> str:
        """Mask the secrets of this form."""
        return mask_spans(text, self.spans(text))


def mask_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace parts of a text by `REDACTED`. The parts are ordered and do not overlap."""
    pieces: list[str] = []
    end = 0
    for first, last in spans:
        pieces += [text[end:first], REDACTED]
        end = last
    return "".join([*pieces, text[end:]]) if pieces else text


def looks_for(text: str) -> Iterator[Look]:
    """Yield the forms that a text may contain, in order. A fast check."""
    if FIRST_GATE.finds(text):
        yield from (*FIRST_LOOKS, *CARD_LOOK)
    if MORE_GATE.finds(text):
        yield from MORE_LOOKS


def mask_looks(text: str) -> str:
    """Mask all texts with the form of a secret."""
    for look in looks_for(text):
        text = look.mask(text)
    return text


def has_any(needles: Sequence[str], text: str) -> bool:
    """Whether a text contains one of the needles."""
    for needle in needles:  # noqa: SIM110 - three times as quick as `any`, and asked of every text
        if needle in text:
            return True
    return False


def is_random(text: str, *, longest: int = 20) -> bool:
    """Whether a text looks random: it has digits or unusual capitals, or is very long.

    Args:
        text: The word.
        longest: Length from which a text counts as random, in characters.
    """
    if len(text) >= longest or any(char.isdigit() or char in "=_+/" for char in text):
        return True
    return any(char.isupper() for char in text[1:]) and any(char.islower() for char in text)


_CARD_WORD = re.compile(
    r"(?<![A-Za-z])(?i:(?:credit|debit)?[ _-]?cards?|visa|master[ _-]?card|maestro|amex"
    r"|american express|diners|jcb|ccn?|pan|(?:kredit)?karten?(?:nummer)?|tarjeta|carte"
    r"|cart[aã]o)(?![a-z])|Card(?![a-z])"
)
"""Matches words for payment cards, which mark a nearby number as a card number."""
CARD_WORD_BEFORE, CARD_WORD_BEHIND = 40, 20
"""Number of characters before and after a number that are searched for such a word."""


def names_card(key: str) -> bool:
    """Whether the name of a key means that its value is a payment card's number."""
    return _CARD_WORD.search(key) is not None


def is_card_value(key: str, value: object) -> bool:
    """Whether a value is a payment card's number, and its name says so."""
    if isinstance(value, bool) or not isinstance(value, int | str) or not names_card(key):
        return False
    text = value if isinstance(value, str) else str(value) if value.bit_length() < 80 else ""
    return is_card(re.sub(_GAP, "", text.strip()))


def _is_card(match: re.Match[str]) -> bool:
    begin, end = match.span()
    beside = (
        match.string[max(begin - CARD_WORD_BEFORE, 0) : begin],
        match.string[end : end + CARD_WORD_BEHIND],
    )
    if not any(map(names_card, beside)):
        return False
    digits = "".join(re.findall("[0-9]", match[0]))
    # Three digits after the groups of four can be the card verification code.
    return is_card(digits) or (len(match[0]) > len(digits) and is_card(digits[:16]))


def is_card(digits: str) -> bool:
    """Whether digits are a payment card's number: by issuer, length and check digit."""
    if not any(len(digits) in sizes and issuer.match(digits) for issuer, sizes in _ISSUERS):
        return False
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    return (sum(int(digit) for digit in digits[-1::-2]) + sum(doubled)) % 10 == 0


_ISSUERS = (
    (re.compile("4"), {13, 16, 19}),
    (re.compile("5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), {16}),
    (re.compile("3[47]"), {15}),
    (re.compile("30[0-5]|3[689]"), {14}),
    (re.compile("6011|64[4-9]|65|62"), {16, 17, 18, 19}),
    (re.compile("35(?:2[89]|[3-8])"), {16, 17, 18, 19}),
    (re.compile("5018|5020|5038|5893|6304|6759|676[1-3]"), set(range(13, 20))),
)


_LONG_WORD = 20
_ODD_BASE64 = re.compile("(?=[A-Za-z+/]{0,20}[0-9=])[A-Za-z0-9+/]++={0,2}+")
"""Matches base64 with a digit or padding among its first 20 characters, unlike any word."""


def _is_credential(match: re.Match[str]) -> bool:
    if match["keep"][:2].lower() == "be":
        return is_random(match["value"], longest=15)
    # “basic” is an ordinary word, too
    value = match["value"]
    is_odd = _ODD_BASE64.fullmatch(value) is not None or is_login(value)
    return is_odd or len(value) >= _LONG_WORD


def _token(*needles: str, form: str, whole: bool = False) -> Look:
    """Return the form of a token with a distinctive prefix; a whole one has a fixed length."""
    return Look(needles, re.compile(f"{_START}(?:{form}){_END if whole else ''}"))


def _is_signed(match: re.Match[str]) -> bool:
    """Whether a match has the signature that Azure puts near the end of a key."""
    return re.search(r"(?:AZDO|AzFu|\+ASt|APIM|ACDb|\+AMC|\+ABa)", match[0][30:]) is not None


def _has_digit(match: re.Match[str]) -> bool:
    return any(char.isdigit() for char in match[0])


def _is_login(match: re.Match[str]) -> bool:
    return is_login(match[0].removeprefix(match["keep"]))


def is_login(text: str) -> bool:
    """Whether a text is base64 of a name and a password, as in HTTP and container registries."""
    try:
        return b":" in base64.b64decode(text, validate=True)
    except ValueError:
        return False


_PEM = r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_PEM_END = r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_GAP = "[ .\u00a0\u2009\u2011-]"

FIRST_LOOKS = (
    Look(("BEGIN",), re.compile(rf"{_PEM}.*?(?:{_PEM_END}|\Z)", re.DOTALL)),
    Look(
        ("PuTTY-User-Key-File-",),
        re.compile(
            r"PuTTY-User-Key-File-[0-9].*?(?:Private-MAC: ?[0-9a-fA-F]{1,128}+|\Z)", re.DOTALL
        ),
    ),
    _token("eyJ", form=r"eyJ[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]{5,}+(?:\.[A-Za-z0-9_-]*+){1,3}+"),
    Look(
        ("xox", "xapp-"),  # Slack: matched inside of words, too, because the prefix is unmistakable
        re.compile(r"(?:xox[a-z]{1,2}(?:\.xox[a-z])?|xapp)-[A-Za-z0-9-]{6,}+"),
    ),
    Look(
        ("hooks.slack.com/", "/api/webhooks/", "webhook.office.com/"),
        re.compile(
            r"(?P<keep>hooks\.slack\.com/[a-z]{1,20}/|discord(?:app)?\.com/api/webhooks/"
            r"|webhook\.office\.com/)[A-Za-z0-9@/_-]{8,}+"
        ),
    ),
    _token("sk-", "rk-", form="[sr]k-[A-Za-z0-9_-]{16,}+"),
    _token("k_", "whsec_", form="(?:[sr]k_(?:live|test|prod)_|whsec_)[A-Za-z0-9_+/=-]{10,}+"),
    Look(  # our own keys and tokens of starts; the id of a key stays, to name it
        ("csk_", "cst_"),
        re.compile(rf"{_START}(?P<keep>csk_[0-9A-Za-z]{{8}}_|cst_)[0-9A-Za-z]{{16,}}+"),
    ),
    _token("gh", "github_pat_", form="gh[pousr]_[A-Za-z0-9_]{16,}+|github_pat_[A-Za-z0-9_]{16,}+"),
    _token(
        "gl",
        form=r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|ffct|oas)-[A-Za-z0-9_.=-]{16,}+",
    ),
    _token("AKIA", "ASIA", "ABIA", "ACCA", form="A(?:KI|SI|BI|CC)A[0-9A-Z]{16}", whole=True),
    _token("AIza", "ya29.", form=r"AIza[0-9A-Za-z_-]{30,}+|ya29\.[0-9A-Za-z_-]{16,}+"),
    _token("GOCSPX-", "1//0", form="GOCSPX-[0-9A-Za-z_-]{16,}+|1//0[0-9A-Za-z_-]{30,}+"),
    _token("npm_", "pypi-", form="npm_[A-Za-z0-9]{30,}+|pypi-[A-Za-z0-9_-]{40,}+"),
    _token("SK", form="SK[0-9a-f]{32}", whole=True),
    _token("SG.", form=r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
    Look(("Q~",), re.compile(r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,}+")),
    Look(("sig=",), re.compile(r"(?P<keep>[?&;]sig=)[^&\s\"'<>]{16,}+")),
    _token("hf_", "_v1_", "dapi", form="(?:hf_|do[por]_v1_|wandb_v1_|dapi)[A-Za-z0-9]{30,}+"),
    _token("shp", "lin_api_", "dckr_pat_", form=r"(?:shp[a-z]{2}|lin_api|dckr_pat)_[\w-]{20,}+"),
    _token("hvs.", "hvb.", "ATATT3", form=r"(?:hv[sb]\.|ATATT3)[A-Za-z0-9_=-]{20,}+"),
    _token("NRAK-", "PMAK-", "glsa_", form=r"(?:NRAK-|PMAK-|glsa_)[A-Za-z0-9_-]{20,}+"),
    _token("xkeysib-", "sq0", form=r"(?:xkeysib-|sq0[a-z]{3}-)[A-Za-z0-9_-]{20,}+"),
    _token("AGE-SECRET-KEY-", form="AGE-SECRET-KEY-1[A-Z0-9]{20,}+"),
    _token(":AA", form="[0-9]{8,10}+:AA[A-Za-z0-9_-]{30,}+"),
    Look(
        ("://",),  # the password in a URL, but not a port
        re.compile(
            r"(?P<keep>://[^\s/:@\"'<>]{0,200}+:)(?!//)(?![0-9]{1,5}+/)"
            # No "+" behind {0,4}: Python 3.11.0 to 3.11.4 then does not find what is there.
            r"[^\s\"'<>@]{1,500}+(?:@[^\s\"'<>@/?#]{1,256}+(?=@)){0,4}(?=@)"
        ),
    ),
    Look(
        ("earer", "EARER", "asic", "ASIC"),
        re.compile(
            r"\b(?P<keep>(?:Bearer|Basic)\s{1,3})(?![a-z_-]{1,40}+=[^=\s])"
            r"(?P<value>[A-Za-z0-9._~+/=-]{8,}+)",
            re.IGNORECASE,
        ),
        _is_credential,
    ),
)

CARD_LOOK = (
    Look(
        (),
        re.compile(
            r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))(?<![0-9]\.)"
            rf"(?:[2-6][0-9]{{3}}({_GAP})[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{4}}(?:\1[0-9]{{3}}(?![0-9]))?"
            rf"|3[0-9]{{3}}({_GAP})[0-9]{{6}}\2[0-9]{{4,5}}"
            r"|[2-6][0-9]{12,18}+)(?![A-Za-z0-9_])(?!\.[0-9])"
        ),
        _is_card,
        hint=re.compile("[2-6][0-9]{3}"),
        gate=(
            rf"[2-6][0-9]{{3}}(?:[0-9]{{9}}|{_GAP}[0-9]{{4}}{_GAP}[0-9]{{4}}"
            rf"|{_GAP}[0-9]{{6}}{_GAP}[0-9]{{4}})"
        ),
    ),
)

VENDORS: tuple[tuple[tuple[str, ...], str], ...] = (
    # package registries
    (
        ("rubygems_", "cio", "CLOJARS_"),
        r"rubygems_[0-9a-f]{40,}+|cio[A-Za-z0-9]{32}(?!\w)|CLOJARS_[a-z0-9]{40,}+",
    ),
    (
        ("oy2", "AKCp", "cmVmd"),
        r"oy2[a-z0-9]{43}(?!\w)|AKCp[A-Za-z0-9]{60,}+|cmVmd[A-Za-z0-9]{50,}+",
    ),
    # code hosts and build services
    (
        ("GR1348941", "ATBB", "ATCTT3", "BBDC-"),
        r"GR1348941[\w-]{16,}+|ATBB[\w=.-]{24,}+|ATCTT3[\w=-]{20,}+|BBDC-[\w+/@-]{40,}+",
    ),
    (("sgp_", "squ_", "sqp_", "sqa_", "bkua_"), r"(?:sgp|bkua)_\w{32,}+|sq[upa]_[\w=-]{32,}+"),
    (("CCIPAT_", "CCIPRJ_"), r"CCI(?:PAT|PRJ)_\w{30,}+"),
    (("pat.", "sat."), r"[ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.\w{20,}+"),
    (("API-", "pul-", "ico-"), "API-[A-Z0-9]{24,}+|pul-[0-9a-f]{40}|ico-[A-Za-z0-9]{32}"),
    (("pnu_", "pnb_", "tk-us-"), "pn[ub]_[a-z0-9A-Z]{30,}+|tk-us-[A-Za-z0-9_-]{40,}+"),
    (
        ("sha256~", "ops_eyJ", "A3-"),
        r"sha256~[\w-]{40,}+|ops_eyJ[A-Za-z0-9+/]{60,}+={0,3}+|A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,6}+){4,5}+",
    ),
    # clouds
    (("LTAI", "AKID", "AQVN"), r"LTAI[A-Za-z0-9]{16,}+|AKID[A-Za-z0-9]{32}|AQVN[\w-]{35,}+"),
    (("v1.0-",), r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}+"),
    (
        ("vcp_", "vci_", "vca_", "vcr_", "vck_", "vercel_blob_"),
        "vc[piark]_[A-Za-z0-9]{24,}+|vercel_blob_[a-z]{1,4}_[A-Za-z0-9_]{24,}+",
    ),
    (("nfp_", "rnd_", "napi_"), "nfp_[A-Za-z0-9]{30,}+|rnd_[A-Za-z0-9]{28,}+|napi_[a-z0-9]{40,}+"),
    (("pscale_", "4b1d"), r"pscale_(?:tkn|pw|oauth)_[\w.=-]{24,}+|4b1d[A-Za-z0-9]{38}(?!\w)"),
    # observability
    (
        ("glc_", "NRJS-", "NRII-"),
        "glc_[A-Za-z0-9+/]{32,}+={0,3}+|NRJS-[0-9a-f]{19}|NRII-[A-Za-z0-9-]{32}",
    ),
    (("dt0",), r"dt0[a-z][0-9]{2}\.[A-Z0-9]{8,24}+\.[A-Z0-9]{40,}+"),
    (
        ("phc_", "phx_", "pdus+_", "u+"),
        r"ph[cx]_[A-Za-z0-9]{40,}+|pdus\+_[\w-]{20,}+|u\+[\w+-]{18}(?![\w+-])",
    ),
    # messages and mail
    (
        ("md-", "pubkey-", "re_"),
        r"md-[\w-]{22}(?![\w-])|pubkey-[0-9a-f]{32}|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}+",
    ),
    # money and shops
    (
        ("EAAA", "access_token$"),
        r"EAAA[\w-]{55,}+|access_token\$[a-z]{4,12}\$[a-z0-9]{8,}+\$[0-9a-f]{32}",
    ),
    (
        ("EZAK", "EZTK", "FLWSECK"),
        r"EZ[AT]K[A-Za-z0-9]{50,}+|FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,}+(?:-X)?",
    ),
    (("shippo_", "duffel_"), r"(?:shippo|duffel)_(?:live|test)_[\w=-]{32,}+"),
    (("access-",), "access-(?:sandbox|development|production)-[0-9a-f-]{36}"),
    (
        ("live_", "test_", "AQE"),
        r"(?:live|test)_(?:pub_)?[0-9a-f]{31,}+|AQE[\w+/]{40,}+=?-[\w+/=-]{30,}+",
    ),
    # work
    (("pat", "lin_oauth_"), r"pat[A-Za-z0-9]{14}\.[0-9a-f]{40,}+|lin_oauth_[0-9a-f]{40,}+"),
    (("1/", "2/"), "[12]/(?:[0-9]{15,17}/)?[0-9]{15,17}:[0-9a-f]{32}"),
    (("pk_", "pat-"), "pk_[0-9]{6,10}_[A-Z0-9]{32}|pat-[a-z]{2}[0-9]-[0-9a-f-]{36}"),
    (("tfp_", "fio-u-", "rdme_"), r"tfp_[\w.=-]{40,}+|fio-u-[\w=-]{40,}+|rdme_[a-z0-9]{40,}+"),
    (
        ("SSWS 00", "sk.eyJ", "CFPAT-"),
        r"SSWS 00[\w-]{36,}+|sk\.eyJ[\w-]{20,}+\.[\w-]{20,}+|CFPAT-[\w-]{40,}+",
    ),
    (("EAA", "p8e-"), "EAA[MC][A-Za-z0-9]{40,}+|p8e-[a-z0-9]{32}"),
    # models
    (
        ("api_org_", "lsv2_", "pcsk_"),
        r"api_org_[A-Za-z0-9]{30,}+|lsv2_(?:pt|sk)_\w{30,}+|pcsk_\w{40,}+",
    ),
    (("dckr_oat_", "nvapi-"), r"(?:dckr_oat_|nvapi-)[\w-]{20,}+"),
    # networks, and what people log in with
    (
        ("tskey-", "dnkey-"),
        r"tskey-[a-z]{3,9}-[A-Za-z0-9-]{20,}+|dnkey-[a-z0-9=_-]{26}-[a-z0-9=_-]{52}",
    ),
    (("_mmk", "t1."), r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk|t1\.[\w-]{1,512}+={0,2}+\.[\w-]{80,}+"),
    ((".acc",), r"(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[\w.+/=-]{40,}+"),
    (("AAAAAAAAAAAAAAAAAAAAAA",), "A{22}[A-Za-z0-9%]{80,}+"),
    (("s-s4t2", "sm_"), "s-s4t2(?:ud|af)-[0-9a-f]{64}|sm_(?:pat|aat|sat)_[A-Za-z0-9]{16}(?!\\w)"),
    (("live_",), r"live_(?=[A-Za-z_=-]{0,39}[0-9])(?=[a-z0-9_=-]{0,39}[A-Z])[\w=-]{40}(?![\w=-])"),
    (("eyJrIjoi",), "eyJrIjoi[A-Za-z0-9+/]{60,}+={0,3}+"),
)
"""Needles and forms of tokens with distinctive prefixes, by vendor."""

MORE_LOOKS = (
    _token("gsk_", "r8_", "ntn_", form="(?:gsk|r8|ntn)_[A-Za-z0-9]{20,}+"),
    _token("xai-", "pplx-", form="(?:xai|pplx)-[A-Za-z0-9]{20,}+"),
    _token("secret_", form="secret_[A-Za-z0-9]{43}", whole=True),
    _token("figd_", "fo1_", "sb_secret_", form="(?:figd|fo1|sb_secret)_[A-Za-z0-9_-]{20,}+"),
    _token("fm1", "fm2", form=r"fm[12][ar]?_[A-Za-z0-9+/=_-]{20,}+"),
    _token("dp.", form=r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{20,}+"),
    _token("sbp_", "sntry", form="(?:sbp|sntrys|sntryu)_[A-Za-z0-9+/=_-]{20,}+"),
    _token("key-", form="key-[0-9a-f]{32}", whole=True),
    *(_token(*needles, form=form) for needles, form in VENDORS),
    Look(
        ("@",),  # the URL of an error tracker: its user name is the key
        re.compile(r"(?P<keep>://)[0-9a-f]{32}(?=@)"),
        gate="://[0-9a-f]{32}@",
    ),
    Look(("-us",), re.compile(r"(?<![0-9a-f])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9a-z])")),
    Look(
        ("pbkdf2", "scrypt:", "{SHA", "{SSHA", "{sha", "{ssha"),  # of passwords
        re.compile(
            r"(?:pbkdf2[_:]sha[0-9]{1,3}[$:][0-9]{1,9}\$|scrypt:[0-9:]{5,20}+\$"
            r"|\{(?i:S?SHA(?:256|512)?)\})[A-Za-z0-9+/=$.]{20,}+"
        ),
    ),
    Look(
        ("WIFI:",),
        re.compile(
            r"(?P<keep>WIFI:(?:[TSHRIEA]++:(?:[^;\\\n]|\\.){0,200}+;){0,5}+P:)(?:[^;\\\n]|\\.){1,200}+"
        ),
    ),
    Look(
        (),
        re.compile(
            r"(?P<keep>(?<![A-Za-z])(?i:wi-?fi|wlan)[ _-]"
            r"(?i:code|password|key|pass|passwort|schlüssel)[ \t]{0,3}[:=][ \t]{0,3}[\"']?)"
            r"(?!••••)[^\s\"']{1,200}+"
        ),
        hint=re.compile("(?i)wi-?fi|wlan"),
        gate="(?i:wi-?fi|wlan)[ _-]",
    ),
    Look(
        ("redis-cli",),
        re.compile(
            r"(?P<keep>\bredis-cli\b[^\n|;&]{0,64}?[ \t]-a[ \t]{1,3})(?!••••)[^\s\"']{1,200}+"
        ),
    ),
    Look(
        (),  # a line of pgpass: host, port, database, name, password
        re.compile(
            r"(?P<keep>(?<![\w.*:-])[A-Za-z*][\w.*-]{0,200}+:(?:[0-9]{4,5}|\*):[\w.*-]{1,64}+:[\w.-]{1,64}+:)"
            r"(?!••••)[^\s:\"']{1,200}+"
        ),
        hint=re.compile(r":(?:[0-9]{4,5}|\*):"),
        gate=r":(?:[0-9]{4,5}|\*):",
    ),
    _token("HRKU-", "ABSK", form="HRKU-[A-Za-z0-9_-]{20,}+|ABSK[A-Za-z0-9+/]{40,}+={0,2}+"),
    _token("bedrock-api-key-", form="bedrock-api-key-[A-Za-z0-9+/=_-]{20,}+"),
    Look(
        (".atlasv1.",), re.compile(rf"{_START}[A-Za-z0-9]{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{40,}}+")
    ),
    _token(":APA91", form="[A-Za-z0-9_-]{11,22}+:APA91[A-Za-z0-9_-]{60,}+"),
    Look(
        ("AZDO", "AzFu", "+ASt", "APIM", "ACDb", "+AMC", "+ABa"),  # signed keys of Azure
        re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{44,90}+(?:={0,2}+)(?![A-Za-z0-9])"),
        _is_signed,
    ),
    Look(
        ("code=",),
        re.compile(r"(?P<keep>[?&]code=)[A-Za-z0-9_/%-]{40,}+={0,2}+"),
    ),
    Look(
        (),
        re.compile(
            r"(?<![A-Za-z0-9_.-])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}+"
        ),
        hint=re.compile(r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6,7}\."),
        gate=r"[MNO][A-Za-z0-9_-]{23}[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{6}",
    ),
    Look(
        ("s.",), re.compile(r"(?<![A-Za-z0-9_.$-])s\.[A-Za-z0-9]{24}(?![A-Za-z0-9.(])"), _has_digit
    ),
    Look(
        ("$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$apr1$", "$argon2"),  # of passwords
        re.compile(
            r"(?<![A-Za-z0-9])\$(?:1|apr1|2[aby]|5|6|y|argon2(?:id|i|d))\$[./A-Za-z0-9$,=+]{20,}+"
        ),
    ),
    Look(
        ("mysql", "mariadb"),
        re.compile(
            r"(?P<keep>\b(?:mysql|mariadb)(?:-?(?:admin|dump|import|check|show))?\b"
            r"[^\n|;&]{0,64}?[ \t]-p)(?![ \t]|••••)[^\s\"'|;&]{1,200}+"
        ),
    ),
    Look(
        ("sshpass",),
        re.compile(r"(?P<keep>\bsshpass[ \t]{1,3}-p[ \t]{0,3})(?!••••)[^\s\"']{1,200}+"),
    ),
    Look(
        ("machine ", "machine\t"),
        re.compile(
            r"(?P<keep>\bmachine\s{1,3}\S{1,200}+\s{1,9}login\s{1,3}\S{1,200}+\s{1,9}password\s{1,3})"
            r"(?!••••)\S{1,200}+"
        ),
    ),
    Look(
        ('auth"', "auth'"),
        re.compile(r"(?P<keep>[\"']auth[\"']\s{0,3}:\s{0,3}[\"'])[A-Za-z0-9+/]{8,}+={0,2}+"),
        _is_login,
    ),
)


def _gate(looks: tuple[Look, ...]) -> Pattern:
    """Return one pattern that matches in every text with one of these forms."""
    gates = [
        [look.gate] if look.gate else [re.escape(needle) for needle in look.needles]
        for look in looks
    ]
    return Pattern("|".join(dict.fromkeys(gate for each in gates for gate in each)))


FIRST_GATE, MORE_GATE = _gate((*FIRST_LOOKS, *CARD_LOOK)), _gate(MORE_LOOKS)
TOKEN_GATE, CARD_GATE = _gate(FIRST_LOOKS), _gate(CARD_LOOK)
"""Pre-checks of the tokens and of the card numbers; `FIRST_GATE` combines them."""

LOOKS = (*FIRST_LOOKS, *CARD_LOOK, *MORE_LOOKS)
"""All forms in the order of the search: longer and more certain forms first."""
