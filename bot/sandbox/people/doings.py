"""All actions of people, in one record."""

from __future__ import annotations

from dataclasses import dataclass

from bot.sandbox.delivery.events import Events
from bot.sandbox.people.interactions import Interactions
from bot.sandbox.people.shortcuts import Shortcuts
from bot.sandbox.people.speech import Speech


@dataclass(frozen=True, slots=True, kw_only=True)
class Doings:
    """The ways in which people act on the workspace and on the app."""

    interactions: Interactions
    speech: Speech
    shortcuts: Shortcuts
    events: Events
