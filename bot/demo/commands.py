"""People's commands to the demo model, read with plain rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from agents.core.codec import Json

_MENTION = re.compile(r"^\s*(?:<@[A-Z0-9]+(?:\|[^>]*)?>[\s,:]*)+")
_POLITE = re.compile(
    r"^\s*(?:(?:please|hey|hi|hello|ok|now|can you|could you)\b[\s,!]*)+", re.IGNORECASE
)
_CALLED_OFF = re.compile(r"\s*(cancel|stop|abort|never ?mind|forget it)\b.{0,20}", re.IGNORECASE)
_VERSION = r"v?(\d+(?:\.\d+)+(?:-[0-9A-Za-z.]+)?)(?![\w.]*\w)"
_FULL_VERSION = r"(?<![\w.])v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)(?![\w.]*\w)"
_PLACE = r"\b(staging|stage|production|prod|live)\b"
_TARGET = re.compile(
    rf"(?:the\s+)?(?P<service>(?!(?:to|in|on|with|version|latest)\b)[a-z][a-z0-9-]*)"
    rf"(?:\s+(?:version\s+)?{_VERSION})?"
    rf"(?:\s+(?:to|in|on)\s+(?P<place>{_PLACE}))?"
    r"(?:\s+with\s+(?P<replicas>\d+)(?:\s+replicas?)?)?",
    re.IGNORECASE,
)
_JOINT = re.compile(r"\s*(?:,|\band\b)\s*", re.IGNORECASE)
_QUIETLY = re.compile(r"\b(silently|quietly|without (a )?notice)\b", re.IGNORECASE)
_REASONS = ("customer request", "duplicate charge", "late delivery", "faulty goods")


@dataclass(frozen=True, slots=True)
class Target:
    """One service to deploy; what is empty must be asked for."""

    service: str
    version: str = ""
    environment: str = ""
    replicas: int = 3


@dataclass(frozen=True, slots=True)
class Deploy:
    """Deploy services."""

    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class PlannedToolCall:
    """A call that can be made at once.

    Attributes:
        tool: Name of the tool.
        arguments: Its arguments.
        why: One short sentence.
    """

    tool: str
    arguments: Mapping[str, Json]
    why: str


@dataclass(frozen=True, slots=True)
class Hint:
    """A command that lacks something.

    Attributes:
        text: How to say it.
    """

    text: str


@dataclass(frozen=True, slots=True)
class PlannedToolCalls:
    """Several calls that can be made at once."""

    calls: tuple[PlannedToolCall, ...]


Command: TypeAlias = Deploy | PlannedToolCall | PlannedToolCalls | Hint


def read_command(text: str) -> Command | None:
    """Read a message; None when it is none of the commands."""
    plain = _POLITE.sub("", _MENTION.sub("", text)).strip()
    verb, _, rest = plain.partition(" ")
    rest = rest.strip()
    verb = verb.lower().rstrip(":")
    if verb == "roll" and rest.lower().startswith("back"):
        verb, rest = "rollback", rest[4:].strip()
    read = _READERS.get(verb)
    return read(rest) if read else None


def questions(deploy: Deploy) -> list[str]:
    """Return the questions before services can be deployed: at most five at a time."""
    asked = [
        f"Which version of {target.service} do you want to deploy?"
        for target in deploy.targets
        if not target.version
    ][:4]
    if any(not target.environment for target in deploy.targets):
        asked.append("To which environment: staging or production?")
    return asked


def with_answer(deploy: Deploy, answer: str) -> Deploy:
    """Fill in what an answer tells, in whatever form; what it does not tell stays empty."""
    versions = re.findall(_FULL_VERSION, answer)
    places = [_place(word) for word in re.findall(_PLACE, answer, re.IGNORECASE)]
    targets = []
    for target in deploy.targets:
        version = target.version or (versions.pop(0) if versions else "")
        place = target.environment or (places[0] if places else "")
        if not target.environment and len(places) > 1:
            places.pop(0)
        targets.append(replace(target, version=version, environment=place))
    return Deploy(tuple(targets))


def gives_up(answer: str) -> bool:
    """Whether an answer calls the whole thing off."""
    return _CALLED_OFF.fullmatch(answer) is not None


def calls(deploy: Deploy) -> list[PlannedToolCall]:
    """The calls for services of which everything is known."""
    return [_deploy_call(target) for target in deploy.targets]


def _deploy_call(target: Target) -> PlannedToolCall:
    arguments: dict[str, Json] = {
        "service": target.service,
        "version": target.version,
        "environment": target.environment,
        "replicas": target.replicas,
    }
    why = (
        f"The build of {target.service} {target.version} passed all checks, "
        f"and {target.environment} is the next step of its rollout."
    )
    return PlannedToolCall("deploy", arguments, why)


def _status(rest: str) -> Command:
    match = re.match(r"(?:of\s+|for\s+)?(?!(?:of|for)\b)([a-z][a-z0-9-]*)", rest, re.IGNORECASE)
    if not match:
        return Hint('Of which service? For example: "status of payments".')
    service = match[1].lower()
    return PlannedToolCall("get_status", {"service": service}, f"I look at {service}.")


def _deploy(rest: str) -> Command:
    matches = [_TARGET.match(part) for part in _JOINT.split(rest)]
    targets = [_target(match) for match in matches if match is not None]
    if not targets:
        return Hint('Deploy what? For example: "deploy payments 1.4.2 to production".')
    # "deploy payments 1.4.2 and search 2.0.1 to production" means production for both.
    place = ""
    for at in reversed(range(len(targets))):
        place = targets[at].environment or place
        targets[at] = replace(targets[at], environment=place)
    return Deploy(tuple(targets))


def _target(match: re.Match[str]) -> Target:
    replicas = match["replicas"]
    return Target(
        service=match["service"].lower(),
        version=match[2] or "",
        environment=_place(match["place"] or ""),
        replicas=int(replicas) if replicas and len(replicas) < 10 else 3,
    )


def _place(word: str) -> str:
    full = {"stage": "staging", "prod": "production", "live": "production"}
    return full.get(word.lower(), word.lower())


def _refunds(rest: str) -> Command:
    """One refund, or several with commas between them."""
    refunds = [_refund(part, rest) for part in _JOINT.split(rest) if part]
    calls = tuple(refund for refund in refunds if isinstance(refund, PlannedToolCall))
    if len(calls) > 1 and len(calls) == len(refunds):
        return PlannedToolCalls(calls)
    return refunds[0] if len(refunds) == 1 else _refund(rest, rest)


def _refund(part: str, rest: str) -> PlannedToolCall | Hint:
    match = re.match(
        r"(?:orders?\s+)?#?(?P<order>(?=\S*\d)[0-9A-Za-z-]+)\s+[€$]?(?P<amount>-?\d+(?:\.\d+)?)(?!\S*\d)",
        part,
    )
    if not match:
        return Hint('Refund which order, and how much? For example: "refund order 1234 120.50".')
    order, amount = match["order"], match["amount"]
    arguments: dict[str, Json] = {
        "order_id": order,
        "amount": amount,
        "reason": next((reason for reason in _REASONS if reason in rest.lower()), _REASONS[0]),
        "notify": _QUIETLY.search(rest) is None,
    }
    return PlannedToolCall(
        "refund_order",
        arguments,
        f"The customer of order {order} wants the money back, and I found the order paid.",
    )


def _restart(rest: str) -> Command:
    match = re.match(
        r"(?P<service>[a-z][a-z0-9-]*)\s+(?:on\s+)?(?P<day>\d{4}-\d{2}-\d{2})"
        r"(?:\s+(?:at\s+)?(?P<at>\d{1,2}:\d{2}))?",
        rest,
        re.IGNORECASE,
    )
    if not match:
        return Hint('Restart what, and on which day? For example: "restart cache on 2026-12-01".')
    service, day = match["service"].lower(), match["day"]
    arguments: dict[str, Json] = {"service": service, "day": day}
    if match["at"]:
        arguments["at"] = f"{day}T{match['at'].zfill(5)}:00Z"
    return PlannedToolCall(
        "restart",
        arguments,
        f"{service} uses more memory each day, and a planned restart prevents an outage.",
    )


def _announce(rest: str) -> Command:
    channel = r"#?(?:status|engineering|support)"
    match = re.match(
        rf"(?:(?:in|to)\s+(?P<to>{channel}(?:(?:\s*,\s*|\s+and\s+){channel})*)\s*:?\s+)?(?P<text>.+)",
        rest,
        re.IGNORECASE | re.DOTALL,
    )
    if not match:
        return Hint('Announce what? For example: "announce to status: payments is back".')
    named = [name.lower() for name in re.findall(r"[A-Za-z]{3,}(?<!and)", match["to"] or "")]
    channels: list[Json] = list(dict.fromkeys(named)) or ["status"]
    why = "People there wait for news, and have heard nothing yet."
    return PlannedToolCall("announce", {"message": match["text"], "channels": channels}, why)


def _roll_back(rest: str) -> Command:
    match = re.match(rf"([a-z][a-z0-9-]*)(?:\s+(?:in|on)\s+({_PLACE}))?", rest, re.IGNORECASE)
    if not match:
        return Hint('Roll back what? For example: "roll back payments in production".')
    service, place = match[1].lower(), _place(match[2] or "production")
    why = f"Errors of {service} in {place} rose after the last release, and its fix is not ready."
    return PlannedToolCall("roll_back", {"service": service, "environment": place}, why)


_READERS: Mapping[str, Callable[[str], Command]] = {
    "announce": _announce,
    "deploy": _deploy,
    "refund": _refunds,
    "release": _deploy,
    "restart": _restart,
    "rollback": _roll_back,
    "status": _status,
}


def joined(parts: Sequence[str]) -> str:
    """Write sentences as one text, each once and in order; lists stand on their own."""
    sentences = list(dict.fromkeys(part for part in parts if part))
    return ("\n\n" if any("\n" in part for part in sentences) else " ").join(sentences)
