"""A stand-in for Slack on the loopback interface; it knows nothing of the bot."""

from slack_sandbox.errors import RefusedError
from slack_sandbox.server import DEFAULT_SCOPES, Sandbox, serve
from slack_sandbox.workspace.guide import Guide, GuideStep, Pointer
from slack_sandbox.workspace.people import (
    ADA,
    APP,
    BEN,
    BOT,
    BOT_USER,
    FINANCE,
    FINANCE_GROUP,
    GUS,
    MIA,
    ONCALL,
    OPS,
    RANDOM,
    ROSA,
    TEAM,
)
from slack_sandbox.workspace.records import ApiCall, SlackChannel, SlackMessage, SlackUser, View
from slack_sandbox.workspace.surfaces import Shortcut, SlashCommand, Surfaces, surfaces_of

__all__ = [
    "ADA",
    "APP",
    "BEN",
    "BOT",
    "BOT_USER",
    "DEFAULT_SCOPES",
    "FINANCE",
    "FINANCE_GROUP",
    "GUS",
    "MIA",
    "ONCALL",
    "OPS",
    "RANDOM",
    "ROSA",
    "TEAM",
    "ApiCall",
    "Guide",
    "GuideStep",
    "Pointer",
    "RefusedError",
    "Sandbox",
    "Shortcut",
    "SlackChannel",
    "SlackMessage",
    "SlackUser",
    "SlashCommand",
    "Surfaces",
    "View",
    "serve",
    "surfaces_of",
]
