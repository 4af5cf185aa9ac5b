"""A guide on the page: the first screen, an arrow to what to press, and steps to try.

The sandbox draws the guide; its texts come from the program that starts the sandbox.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """A control at which the arrow points until it is pressed.

    Attributes:
        person: ID of the person who should press it.
        target: `action_id` of a message's button, or `data-testid` of a control of the page.
        text: The words beside the arrow.
    """

    person: str
    target: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideStep:
    """One thing to try.

    Attributes:
        title: The step's button.
        text: One or two sentences about it.
        pointers: Where the arrow points, in order.
        message: A message that begins the step; empty for none.
        author: ID of the person who writes the message.
        channel: ID of the channel of the message.
        command: A command to copy into a terminal; empty for none.
        outcome: Replaces `text` after the last pointer was pressed.
    """

    title: str
    text: str
    pointers: tuple[Pointer, ...] = ()
    message: str = ""
    author: str = ""
    channel: str = ""
    command: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """The first screen of a newcomer, and the steps after it.

    Attributes:
        person: ID of the person as whom the page opens.
        channel: ID of the channel in which it opens.
        first: The step of the first screen; it has no button.
        steps: The steps of the strip.
    """

    person: str
    channel: str
    first: GuideStep
    steps: tuple[GuideStep, ...]
