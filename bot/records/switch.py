"""The switch: the freezes in force, and the number of the last start."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from storage.documents import Document, Part, Spec, Text

SWITCH_ID = "switch"
"""Id of the only switch of a database."""

MAX_ACTS = 100
"""Maximum number of actions that the switch keeps for the audit."""

MAX_ALERTS = 50
"""Maximum number of freezes whose messages the switch keeps."""

MAX_WHY = 300
"""Maximum length of the reason for a freeze or for its lifting, in characters."""

Why = Annotated[Text, Field(min_length=1, max_length=MAX_WHY)]


class ScopeKind(StrEnum):
    """Kind of the scope of a freeze. Stored: version 1, must stay readable."""

    ALL = "all"
    AGENT = "agent"
    TOOL = "tool"
    TAG = "tag"
    CHANNEL = "channel"


class FreezeScope(Part):
    """The calls that a freeze covers. Stored: version 1, must stay readable."""

    kind: ScopeKind = ScopeKind.ALL
    name: Text = ""
    """Name of the agent, tool or tag, or Slack id of the channel; empty for all calls."""

    @model_validator(mode="after")
    def _is_named(self) -> Self:
        if bool(self.name) is (self.kind is ScopeKind.ALL):
            raise ValueError("every scope but `all` has a name")
        return self

    def __str__(self) -> str:
        """Return the scope as a command names it: `all`, or kind and name."""
        return f"{self.kind} {self.name}".rstrip()


class Confirmation(Part):
    """A person's wish to lift a freeze, while more people must want it.

    Stored: version 1, must stay readable.
    """

    by: str
    """Slack user id, or `cli:user@host`."""
    why: Why
    at_ms: int


class Freeze(Part):
    """A freeze in force: no call in its scope starts until people lift it.

    Stored: version 1, must stay readable.
    """

    id: str
    """`f1`, `f2`, …: never used twice in a database."""
    scope: FreezeScope
    by: str
    """Slack user id, or `cli:user@host`."""
    why: Why
    since_ms: int
    turns: bool = False
    """Whether turns of agents stop, too."""
    place: str = ""
    """Slack id of the channel where a person set it; empty for a freeze by the command line."""
    confirmations: tuple[Confirmation, ...] = ()
    """People who want to lift the freeze, oldest first, while more people must want it."""


class FreezeAlert(Part):
    """The messages about a freeze: the alert in a channel, and reminders to whoever froze.

    Stored: version 1, must stay readable.
    """

    freeze: Freeze
    """The freeze as the alert shows it."""
    channel: str = ""
    """Slack id of the channel, or of the person, that gets the alert; empty for none."""
    ts: str = ""
    """`ts` of the alert; empty while it is not known to be in Slack."""
    lifted: Confirmation | None = None
    """The end of the freeze, which the alert does not show yet; None while it is in force."""
    reminders: int = 0
    """Number of days for which the person was reminded."""
    until_ms: int = 0
    """Time until which a process works at the messages; 0 if none does."""


class FreezeAct(Part):
    """A freeze or its lifting that the audit may not have yet. Stored: version 1."""

    act: str
    """Kind of the audit entry: `frozen` or `unfrozen`."""
    freeze: Freeze
    by: str
    why: Why
    at_ms: int
    revision: int
    """Revision of the switch that the action made."""
    missing: int = 0
    """How many more people must confirm the lifting; 0 if the freeze is lifted."""


class SwitchRecord(Document):
    """The freezes in force, and the number of the last start. Each start of a call writes it.

    A database has one switch: one bot serves one workspace and one database, and the command line
    must reach the switch without Slack, so without knowing the workspace.
    """

    spec = Spec(name="switches", noun="switch")

    id: str = SWITCH_ID
    freezes: tuple[Freeze, ...] = ()
    """The freezes in force, oldest first."""
    last_freeze: int = 0
    """Number in the id of the newest freeze; 0 before the first."""
    starts: int = 0
    """Number of the last start; 0 before the first."""
    acts: tuple[FreezeAct, ...] = ()
    """Actions that the audit may not have yet, oldest first."""
    alerts: tuple[FreezeAlert, ...] = ()
    """Messages about freezes in force, and about lifted ones that Slack does not show as lifted."""

    def freeze(self, freeze_id: str) -> Freeze | None:
        """Return the freeze in force with this id, or None."""
        return next((freeze for freeze in self.freezes if freeze.id == freeze_id), None)

    def alert(self, freeze_id: str) -> FreezeAlert | None:
        """Return the messages about the freeze with this id, or None."""
        return next((alert for alert in self.alerts if alert.freeze.id == freeze_id), None)

    def with_alert(self, freeze_id: str, alert: FreezeAlert | None) -> Self:
        """Return the switch with messages about a freeze, which replace the stored ones."""
        others = [other for other in self.alerts if other.freeze.id != freeze_id]
        alerts = [*others, *([alert] if alert is not None else [])]
        while len(alerts) > MAX_ALERTS:  # while Slack is away; those in force are fewer
            alerts.remove(next((old for old in alerts if old.lifted is not None), alerts[0]))
        return self.changed(alerts=tuple(alerts))

    def acted(self, act: FreezeAct) -> Self:
        """Return the switch with an action for the audit."""
        return self.changed(acts=(*self.acts, act)[-MAX_ACTS:])
