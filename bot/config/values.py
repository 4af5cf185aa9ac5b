"""Parses and checks single values of settings; each error has the fault and the remedy."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NoReturn
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic_core import PydanticCustomError

from bot.config.durations import LONGEST_RETENTION, parse_duration
from bot.config.secretfiles import read_secrets
from bot.config.stores import KEY_REMEDY, seal_of
from bot.errors import SettingsError
from bot.ports.people import CHANNEL
from bot.redaction.rules import MaskRules, RuleError, read_rules
from bot.words import languages

AGENT_PATH = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"
"""Pattern of an agent's import path: module and attribute."""
AGENT_REMEDY = "write module:attribute, such as helpdesk.agent:build"

LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The level and format of the log.

    Attributes:
        level: `DEBUG`, `INFO`, `WARNING` or `ERROR`.
        as_json: Whether each record is a line of JSON instead of text.
    """

    level: str = "INFO"
    as_json: bool = False


def refuse(fault: str, remedy: str) -> NoReturn:
    """Refuse a value.

    Args:
        fault: The fault as a clause, which never repeats a secret.
        remedy: The remedy as a clause.
    """
    raise PydanticCustomError("setting", "{fault}. {remedy}", {"fault": fault, "remedy": remedy})


def matching(pattern: str, remedy: str) -> Callable[[str], str]:
    """Return a check that a value matches a pattern as a whole."""
    shape = re.compile(pattern)

    def check(value: str) -> str:
        if not shape.fullmatch(value):
            refuse(f"{value!r} isn't in the right format", remedy)
        return value

    return check


host = matching(r"[0-9A-Za-z:][0-9A-Za-z.:-]{0,252}", "write an address or a host name")
"""Checks the address or the name of a host."""


def token(prefix: str, remedy: str) -> Callable[[str | None], str | None]:
    """Return a check that a value is None or a Slack token with a prefix."""
    shape = re.compile(re.escape(prefix) + r"[A-Za-z0-9-]+")

    def check(value: str | None) -> str | None:
        if value is None or shape.fullmatch(value):
            return value
        fault = f"doesn't start with {prefix}"
        if value.startswith(prefix):
            fault = "contains characters that aren't valid in a token"
        refuse(fault, remedy)

    return check


def signing_secret(value: str | None) -> str | None:
    """Check that a value is None or can be a signing secret."""
    if value is not None and not re.fullmatch(r"[!-~]{16,200}", value):
        refuse(
            "too short, or contains characters that aren't valid in a signing secret",
            "copy it from the app's page, Basic Information, App Credentials",
        )
    return value


def duration(value: str | timedelta) -> timedelta:
    """Parse a duration."""
    if isinstance(value, timedelta):
        return value
    try:
        return parse_duration(value)
    except ValueError as error:
        refuse(
            f"{value!r} isn't valid: {error}",
            "use whole numbers with d, h, m or s, such as 15m, 8h or 1h30m",
        )


def max_age(value: str | timedelta) -> timedelta:
    """Parse the time after a decision in which the call may start: one minute to one day."""
    period = duration(value)
    if not timedelta(minutes=1) <= period <= timedelta(days=1):
        refuse(
            f"{value!r} is not between 1m and 24h",
            "use a duration such as 15m; old approvals shouldn't start calls",
        )
    return period


def optional_duration(value: str | timedelta | None) -> timedelta | None:
    """Parse an optional duration."""
    return None if value is None else duration(value)


def retention(value: str | timedelta | None) -> timedelta | None:
    """Parse the retention of threads. Short times are refused, because a deletion is final."""
    if value is None or isinstance(value, timedelta):
        return value
    try:
        period = parse_duration(value, longest=LONGEST_RETENTION)
    except ValueError as error:
        refuse(f"{value!r} isn't valid: {error}", "write whole days, such as 90d")
    if period < timedelta(days=1):
        refuse(f"{value!r} is less than a day", "write whole days, such as 90d, or unset it")
    return period


def api_url(value: str) -> str:
    """Check the URL of a Web API, and add a final slash if it is missing."""
    remedy = "give an https address such as https://slack.com/api/ (http only on this machine)"
    parts = _split(value)
    if parts is None or not parts.hostname:
        refuse("not an address", remedy)
    if parts.username or parts.password or parts.query or parts.fragment:
        refuse("has a login, a query or a fragment", remedy)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        refuse("tokens would be sent without encryption", remedy)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/"


def public_url(value: str) -> str:
    """Check the public address of the API; it gets no slash at its end."""
    return api_url(value).rstrip("/") if value else ""


def proxy_url(value: str | None) -> str | None:
    """Check the address of an optional HTTP proxy."""
    if value is None:
        return None
    remedy = "give an address such as http://proxy.example.com:3128"
    parts = _split(value)
    if parts is None or not parts.hostname or parts.scheme not in {"http", "https"}:
        refuse("not the address of a proxy", remedy)
    if parts.username or parts.password or parts.path.strip("/") or parts.query or parts.fragment:
        refuse("has a login, a path, a query or a fragment", remedy)
    return f"{parts.scheme}://{parts.netloc}"


def networks(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """Parse networks, separated by commas."""
    texts = value.split(",") if isinstance(value, str) else value
    try:
        return tuple(str(ipaddress.ip_network(text.strip())) for text in texts)
    except ValueError as error:
        refuse(f"has a text that is no network: {error}", "write networks such as 10.0.0.0/8")


def _split(address: str) -> SplitResult | None:
    if re.search(r"[\s\\]", address):
        return None
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises ValueError for an invalid port
    except ValueError:
        return None
    return parts


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine, without a DNS query."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_MONGO = re.compile(r"mongodb(?:\+srv)?://(?:(?P<login>[^@/?#]*)@)?[^@/?#]+(?:[/?].*)?")


def mongodb_uri(value: str | None) -> str | None:
    """Check the general form of a database's address; the driver parses the rest."""
    if value is None or _MONGO.fullmatch(value):
        return value
    fault = "names no host, or has characters in its login that have to be written as %40 or such"
    if not value.startswith(("mongodb://", "mongodb+srv://")):
        fault = "doesn't start with mongodb:// or mongodb+srv://"
    refuse(fault, "write mongodb://user:password@host1,host2/database?replicaSet=name")


def mongodb_passwords(uri: str) -> list[str]:
    """Return the password in a database's address, encoded and decoded; empty without one."""
    match = _MONGO.fullmatch(uri)
    password = (match["login"] or "").partition(":")[2] if match is not None else ""
    return [password, unquote(password)] if password else []


def data_dir(value: str | Path) -> str | Path:
    """Refuse a path that only a shell understands."""
    if str(value).startswith("~"):
        refuse("~ isn't expanded here", "write the whole path")
    return value


def optional_path(value: str | Path | None) -> str | Path | None:
    """Parse an optional path."""
    return None if value is None else data_dir(value)


def secrets_dir(value: str | Mapping[str, str]) -> Mapping[str, str]:
    """Read a directory of secret files; see `secret_files`."""
    if not isinstance(value, str):
        return value
    try:
        return read_secrets(Path(value))
    except SettingsError as error:
        refuse(error.fault, error.remedy)


def port(value: str | int) -> int:
    """Parse a port."""
    text = str(value)
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65535:
        refuse(
            f"{text!r} isn't a valid port",
            "give a number from 1 to 65535 (0 takes any that is free)",
        )
    return int(text)


def optional_port(value: str | int | None) -> int | None:
    """Parse an optional port."""
    return None if value is None else port(value)


def redact(value: str | MaskRules) -> MaskRules:
    """Parse the masking rules, in addition to the built-in ones."""
    if isinstance(value, MaskRules):
        return value
    try:
        return read_rules(value)
    except RuleError as error:
        refuse(error.fault, error.remedy)


_ANSWERS = {
    **dict.fromkeys(("yes", "true", "on", "1"), True),
    **dict.fromkeys(("no", "false", "off", "0"), False),
}


def yes_or_no(value: object) -> bool:
    """Parse a yes-or-no value."""
    answer = _ANSWERS.get(str(value).lower())
    if answer is None:
        refuse(f"{value!r} isn't yes or no", "write yes or no")
    return answer


def is_yes(value: str) -> bool:
    """Whether a text means yes; False also for a text that means nothing."""
    return _ANSWERS.get(value.strip().lower()) is True


def language(value: str) -> str:
    """Parse the language of cards, for which a catalogue must exist."""
    known = languages()
    name = value.strip().lower()
    if name not in known:
        refuse(f"there's no translation for {value!r}", f"write one of these: {', '.join(known)}")
    return name


def approvers(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """Parse the approvers. There is no value that means everyone."""
    text = value if isinstance(value, str) else ",".join(value)
    remedy = (
        "list user ids (U… or W…), user group ids (S…), or write channel for the members of the "
        "thread's channel; separate them with commas"
    )
    names = [name for name in re.split(r"[,\s]+", text) if name]
    if not names:
        refuse("it doesn't list anyone", remedy)
    for name in names:
        if name != CHANNEL and not re.fullmatch(r"[USW][A-Z0-9]{2,30}", name):
            refuse(f"{name!r} isn't a user ID or a user group ID", remedy)
    return tuple(dict.fromkeys(names))


def channels(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """Parse ids of channels."""
    text = value if isinstance(value, str) else ",".join(value)
    names = [name for name in re.split(r"[,\s]+", text) if name]
    for name in names:
        if not re.fullmatch(r"[CG][A-Z0-9]{2,30}", name):
            refuse(
                f"{name!r} is not the id of a channel",
                "list channel ids (C…), separated by commas; the id is at the end of what "
                "*View channel details* shows",
            )
    return tuple(dict.fromkeys(names))


def backups(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """Parse the backup approvers, who may decide after the escalation; empty for none."""
    return approvers(value) if value else ()


def one_of(*choices: str) -> Callable[[str], str]:
    """Return a check that a value is one of some words."""

    def check(value: str) -> str:
        if value not in choices:
            refuse(f"{value!r} isn't a valid value", f"write {' or '.join(choices)}")
        return value

    return check


def log(value: str | Log) -> Log:
    """Parse the level and format of the log, in any order."""
    if isinstance(value, Log):
        return value
    by_kind: dict[str, str] = {}
    for word in (word for word in re.split(r"[,\s]+", value.lower()) if word):
        kind = "level" if word in LEVELS else "form" if word in {"text", "json"} else ""
        if not kind or kind in by_kind:
            refuse(
                f"{value!r} isn't valid",
                f"write a level ({', '.join(LEVELS)}), a form (text, json), or both: info,json",
            )
        by_kind[kind] = word
    return Log(level=by_kind.get("level", "info").upper(), as_json=by_kind.get("form") == "json")


def audit_key(value: str | None) -> str | None:
    """Check the key, or keys, of the audit."""
    try:
        seal_of(value or "")
    except ValueError as error:
        refuse(f"can't be used: {error}", KEY_REMEDY)
    return value
