"""Handlers of buttons and modals by action id: one listener dispatches them.

Bolt tries all its listeners in order for every payload, which is slow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from bot.layout.action_ids import Reference
from bot.layout.modals import Errors, Values
from bot.ports.people import Actor
from bot.slack.destinations import ClickedMessage
from bot.slack.modals import Window

Services = TypeVar("Services")


@dataclass(frozen=True, slots=True, kw_only=True)
class Click:
    """A validated click.

    Attributes:
        action_id: The button.
        about: The approval that the button names.
        actor: The person.
        window: Opens or updates the modal of the click.
        message: The message with the button; empty for a modal.
        address: URL for responses without a token; may be empty.
    """

    action_id: str
    about: Reference
    actor: Actor
    window: Window
    message: ClickedMessage
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormNotice:
    """Notice that replaces a submitted modal.

    Attributes:
        title: At most 24 characters.
        words: Escaped mrkdwn.
        view: A modal to show instead of the text, or None.
    """

    title: str = ""
    words: str = ""
    view: dict[str, Any] | None = None


Press = Callable[[Click], Awaitable[None]]
"""Handles a button."""
Submit = Callable[[Reference, Actor, Values], Awaitable[Errors | FormNotice]]
"""Handles a modal: person, reference, and values."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """Handlers of buttons and modals, by action id."""

    clicks: dict[str, Press] = field(default_factory=dict)
    forms: dict[str, Submit] = field(default_factory=dict)

    def add(
        self,
        services: Services,
        *,
        clicks: Mapping[str, Callable[[Services, Click], Awaitable[None]]],
        forms: Mapping[
            str, Callable[[Services, Reference, Actor, Values], Awaitable[Errors | FormNotice]]
        ],
    ) -> None:
        """Add functions that get their use cases as their first argument."""
        self.clicks.update({name: partial(press, services) for name, press in clicks.items()})
        self.forms.update({name: partial(submit, services) for name, submit in forms.items()})
