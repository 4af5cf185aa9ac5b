"""The default workspace: five people, their bot, and its channels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from slack_sandbox.workspace.records import SlackChannel, SlackUser, UserGroup

TEAM: Final = "T0ACMEWORK"
APP: Final = "A0COUNTERS"
BOT: Final = "B0COUNTERS"
BOT_USER: Final = "U0COUNTERS"

ROSA: Final = "U0ROSAORTI"
ADA: Final = "U0ADALINDQ"
BEN: Final = "U0BENOKAFO"
MIA: Final = "U0MIACHENF"
GUS: Final = "U0GUSGUEST"

OPS: Final = "C0OPSOPS01"
FINANCE: Final = "C0FINANCE1"
RANDOM: Final = "C0RANDOM01"

_PROJECT = (
    "set up the project Customer Portal with $150000 from engineering, team Alice, Bob, Charlie"
)
_GRAPHS = (
    "delete record 42, or: onboard Nora, or: newsletter about our new office, "
    "or: slogan for a bakery, or: release 2.0.0"
)
_FREEZE = (
    "restart cache on 2026-12-01, then: /countersign freeze #freeze wild, "
    "then: /countersign unfreeze mended"
)
_PATTERNS = (
    ("approval", "book a ticket for Martin, to Beijing, phone 1234567"),
    ("review-edit", "book a ticket for Martin, to Beijing, phone 1234567"),
    ("feedback", "write a short poem about potatoes"),
    ("follow-up", "plan a 3-day trip to New York City"),
    (
        "supervisor",
        "check my checking account balance, then transfer $500 from checking to savings",
    ),
    ("plan", "plan a trip from Berlin to Tokyo on 2027-10-15 for 3 nights"),
    ("deep", "analyse the market for electric bicycles"),
    ("project", _PROJECT),
    ("graph", _GRAPHS),
    ("react", "write to nora@acme.example: the office moves on Monday"),
    ("limit", "read the 6 pages of the report"),
    ("programs", "run the CI job, or: run the graph"),
)
"""Channels with everybody in them, and what to write there to the bot."""
_RULES = (
    ("batches", "refund orders 1234 20.00, 1240 12.50, 1251 99.50, 1262 9.90, 1270 31.00"),
    ("grants", "refund order 1234 20.00"),
    ("stages", "deploy payments 1.4.2 to production"),
    ("routing", "deploy search 2.0.1 to production"),
    ("rotation", "deploy payments 1.4.2 to staging"),
    ("override", "roll back payments in production"),
    ("freeze", _FREEZE),
)
"""Channels in which a rule of the demo's policy shows one thing, and what to write there."""

ONCALL: Final = "S0ONCALL01"
FINANCE_GROUP: Final = "S0FINANCE1"

_PEOPLE = (
    (ROSA, "rosa", "Rosa Ortiz", "Engineer", "b5446e", "Europe/Madrid"),
    (ADA, "ada", "Ada Lind", "Engineer, approver", "2f7d6b", "Europe/Stockholm"),
    (BEN, "ben", "Ben Okafor", "On call, approver", "3b5fa8", "America/New_York"),
    (MIA, "mia", "Mia Chen", "Finance, admin", "8a5a2b", "Asia/Singapore"),
    (GUS, "gus", "Gus Guest", "Single-channel guest", "6b7280", "Europe/London"),
)
_EXAMPLES = (
    ("deploy payments 1.4.2 to staging", "asks for approval", "channel"),
    ("deploy payments 1.4.2 to production", "asks for approval", "direct"),
    ("deploy payments", "asks what is missing"),
    ("status of payments", "answers at once"),
)
PATTERNS: Final = "Patterns"
RULES: Final = "Policy"
TRY_IT: Final = "Try it"
"""Headings of the demo's channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """The people, channels and groups that a new workspace starts with."""

    people: tuple[SlackUser, ...]
    channels: tuple[SlackChannel, ...]
    groups: tuple[UserGroup, ...]
    examples: tuple[tuple[str, ...], ...]
    """An example to type, its result, and the kind of place where it makes sense."""


def first_cast(bot_name: str, *, with_demo: bool = True) -> Cast:
    """Five people, the bot, #ops, #finance, #random, a DM each, @oncall, @finance.

    With the demo also a channel for each of its patterns, and for what its policy shows.
    """
    people = [_person(*facts) for facts in _PEOPLE]
    bot = SlackUser(
        id=BOT_USER, name=bot_name, real_name=bot_name, team_id=TEAM, is_bot=True, color="4a154b"
    )
    everybody = [ROSA, ADA, BEN, MIA, GUS]
    members = [*everybody, BOT_USER]
    rooms = {PATTERNS: _PATTERNS, RULES: _RULES}
    patterns = [
        _pattern(*facts, bot_name, [*members], section)
        for section, channels in rooms.items()
        for facts in channels
    ]
    channels = (
        SlackChannel(
            id=OPS, name="ops", topic="Deploys and incidents", members=[*everybody, BOT_USER]
        ),
        SlackChannel(id=FINANCE, name="finance", topic="Refunds", members=[ADA, MIA, BOT_USER]),
        SlackChannel(id=RANDOM, name="random", topic="Anything else", members=everybody[:4]),
    )
    for channel in channels if with_demo else ():
        channel.section = TRY_IT
    direct = (direct_message(f"D{person.id[1:]}", person.id, BOT_USER) for person in people)
    groups = (
        UserGroup(id=ONCALL, handle="oncall", name="On call", members=[ADA, BEN]),
        UserGroup(id=FINANCE_GROUP, handle="finance", name="Finance", members=[MIA]),
    )
    return Cast(
        people=(*people, bot),
        channels=(*channels, *(patterns if with_demo else ()), *direct),
        groups=groups,
        examples=_EXAMPLES if with_demo else (),
    )


def direct_message(channel_id: str, user: str, bot_user: str) -> SlackChannel:
    """The conversation of one person with the bot."""
    return SlackChannel(id=channel_id, name=user, kind="im", members=[user, bot_user])


def _pattern(name: str, text: str, bot_name: str, members: list[str], section: str) -> SlackChannel:
    id_ = f"C0{re.sub('[^A-Z]', '', name.upper())}00000000"[:10]
    topic = f"Write: @{bot_name} {text}"
    return SlackChannel(id=id_, name=name, topic=topic, members=members, section=section)


def _person(id_: str, name: str, real_name: str, title: str, color: str, zone: str) -> SlackUser:
    return SlackUser(
        id=id_,
        name=name,
        real_name=real_name,
        title=title,
        color=color,
        tz=zone,
        team_id=TEAM,
        is_admin=id_ == MIA,
        is_ultra_restricted=id_ == GUS,
        is_restricted=id_ == GUS,
        email=f"{name}@acme.example",
    )
