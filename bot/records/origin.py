"""Parts of an approval: where it comes from, who waits for its end, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, TypeAlias

from storage.documents import Part, Text


class RequestDoor(StrEnum):
    """The way by which a request came. Stored: version 1, must stay readable."""

    SLACK = "slack"  # an agent's call in a thread that a person started
    API = "api"
    MCP = "mcp"
    HOOK = "hook"
    CLI = "cli"
    TRIGGER = "trigger"
    SCHEDULE = "schedule"


class ClaimedSource(Part):
    """A program's own description of what asks. It is a claim: nothing is decided by it.

    Stored: version 1, must stay readable.
    """

    framework: Text = ""
    agent: Text = ""
    run: Text = ""
    call: Text = ""
    url: Text = ""


class RequestOrigin(Part):
    """The origin of an approval, as the bot itself knows it.

    Stored: version 1, must stay readable.
    """

    door: RequestDoor = RequestDoor.SLACK
    program: str = ""
    """Id of the program that asks; empty for an agent of the bot."""
    program_name: str = ""
    """Name of the program when it asked."""
    key: str = ""
    """Public part of the program's key: `csk_` and the id."""
    owner: str = ""
    """Slack user id of the person who answers for the program."""
    is_personal: bool = False
    """Whether the program is its owner's own tool, and asks for its owner alone."""
    requested_for: str = ""
    """Slack user id of the person for whom the program asks; empty if it names none."""
    claimed: bool = False
    """Whether `requested_for` is only the program's word."""
    claims: Mapping[str, Text] = {}
    """Names of the people whom the program named in this group, by Slack user id. Cards name them
    without a mention, so that a program notifies nobody."""
    source: ClaimedSource | None = None
    """The program's own description; None without one."""


class AgentRun(Part):
    """A run of an agent that waits at an interrupt. Stored: version 1, must stay readable."""

    interrupt_id: str
    address: str
    """Address of the interrupt in the run, as text; part of the digest."""


class ProgramCall(Part):
    """A program's call, which the program looks up. Stored: version 1, must stay readable."""

    program: str
    """Id of the program."""
    key_digest: str
    """SHA-256 of the idempotency key, in hexadecimal."""
    generation: int = 0
    """Number of the request under this key; the first is 0."""
    fingerprint: str
    """SHA-256 of what the program asked, in hexadecimal."""
    wants: Literal["approval", "edit", "question", "choice", "form"]
    """The kind of request, in the words of the API."""
    tags: tuple[str, ...] = ()
    """Tags of the call that the program gives."""
    risk: Literal["low", "medium", "high", "critical"] = "medium"
    """Risk of the call that the program gives."""
    is_trusted: bool = False
    """Whether the tags and the risk are true; otherwise they are claims."""
    people: tuple[str, ...] = ()
    """Ids of the people and user groups whom the program chose to ask; empty for all."""
    about: str = ""
    """Id of the approval whose outcome people are asked for; empty for a program's own request."""
    run_timeout_s: int = 900
    """Longest time from the start of the call to its result, in seconds."""
    callback_url: str = ""
    """The address that gets the events of this request, beside the program's endpoints."""
    state: Text = ""
    """A text that the program gets back; nobody else sees it."""
    metadata: Mapping[str, str] = {}
    """Texts by name that the program gets back; nobody else sees them."""

    @property
    def address(self) -> str:
        """The place of the call, in the form of an agent's addresses; part of the digest."""
        return f"program:{self.program}:{self.key_digest}"


Asker: TypeAlias = AgentRun | ProgramCall
"""The run or the program that waits for the end of an approval."""


class RequestPlace(Part):
    """The place of an approval in Slack. Stored: version 1, must stay readable."""

    channel_id: str
    """Slack id of the channel."""
    thread_ts: str = ""
    """`ts` of the first message of its thread. Empty if the card is the first message."""
    group: Text = ""
    """The group of a program's requests, in the program's words. The first message of their thread
    says it. Empty without a group."""
