"""Switches for common faults, in plain words, for the page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from slack_sandbox.delivery.faults import PlannedFault
from slack_sandbox.errors import RefusedError
from slack_sandbox.web.arrange import Arrangements
from slack_sandbox.workspace.records import Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One thing that can be on or off.

    Attributes:
        key: Its name for programs.
        label: Its name for people.
        note: What happens while it is on.
        faults: The rules that it adds; none for the two that are more than rules.
    """

    key: str
    label: str
    note: str
    faults: tuple[PlannedFault, ...] = ()

    @property
    def name(self) -> str:
        """The name of its rules."""
        return f"panel:{self.key}"


LIMITS: Final = "limits"
REVOKED: Final = "revoked"

SWITCHES: Final = (
    Switch(
        key="slow",
        label="Slow Slack",
        note="Each call of the bot is answered 1.5 seconds later.",
        faults=(PlannedFault(effect="slow", delay=1.5),),
    ),
    Switch(
        key=LIMITS,
        label="No rate limits",
        note="Without Slack's limits: one message a second in a channel, 50 card updates a minute.",
    ),
    Switch(
        key="busy",
        label="Too many requests",
        note="One call in two is refused with 429, by chance: try again after 2 seconds.",
        faults=(PlannedFault(effect="ratelimited", chance=1 / 2, retry_after=2),),
    ),
    Switch(
        key="errors",
        label="Server errors",
        note="One call in three fails with 503, by chance.",
        faults=(PlannedFault(effect="status", status=503, chance=1 / 3),),
    ),
    Switch(
        key="lost",
        label="Lost answers",
        note="Every second message appears, but the bot never hears that it did.",
        faults=(PlannedFault(effect="lost_answer", match="chat.postMessage", every=2),),
    ),
    Switch(
        key="duplicates",
        label="Duplicate events",
        note="The bot hears of each message and each click twice.",
        faults=(
            PlannedFault(effect="duplicate", on="event"),
            PlannedFault(effect="duplicate", on="interaction"),
        ),
    ),
    Switch(
        key="reorder",
        label="Events out of order",
        note="Every second event comes after the next one, or two seconds late.",
        faults=(PlannedFault(effect="reorder", on="event", every=2, delay=2.0),),
    ),
    Switch(
        key="unheard",
        label="Unheard acknowledgements",
        note="Slack misses the bot's first answer to each event, and sends the event again.",
        faults=(PlannedFault(effect="unheard", on="event"),),
    ),
    Switch(
        key="stale",
        label="Expired clicks",
        note="Each click is too old to open a dialog.",
        faults=(PlannedFault(effect="stale", on="interaction"),),
    ),
    Switch(
        key=REVOKED,
        label="Revoked token",
        note="Slack does not take the bot's token any more.",
    ),
)

_BY_KEY: Final = {switch.key: switch for switch in SWITCHES}


class Panel:
    """Turns switches, and says how they stand."""

    def __init__(self, scene: Arrangements) -> None:
        self._scene = scene

    def shown(self) -> Payload:
        """Return the panel for the page to draw."""
        switches = [
            {
                "key": switch.key,
                "label": switch.label,
                "note": switch.note,
                "on": self.is_on(switch),
            }
            for switch in SWITCHES
        ]
        ours = sum(len(self._scene.faults.named(switch.name)) for switch in SWITCHES)
        return {
            "switches": switches,
            "others": len(self._scene.faults) - ours,
            "connections": self._scene.connections,
            "coped": self._coped(),
        }

    def _coped(self) -> Payload:
        """Say what went wrong so far, and what the app made of it."""
        stats = self._scene.stats
        return {
            "failed": sum(stats.errors.values()),
            "again": sum(count - 1 for count in stats.deliveries.values()),
            "lost": len(self._scene.lost_events) + stats.dropped,
            "doubles": len(self._scene.doubles()),
        }

    def is_on(self, switch: Switch) -> bool:
        """Whether a switch is on."""
        if switch.key == LIMITS:
            return not self._scene.limits.is_on
        if switch.key == REVOKED:
            return self._scene.is_token_refused
        return bool(self._scene.faults.named(switch.name))

    def turn(self, key: str, *, on: bool) -> None:
        """Turn a switch; nothing happens if it stands like that already.

        Raises:
            RefusedError: There is no such switch.
        """
        switch = _BY_KEY.get(key)
        if switch is None:
            raise RefusedError("no_such_switch")
        if self.is_on(switch) == on:
            return
        if key == LIMITS:
            self._scene.set_limits(on=not on)
        elif key == REVOKED:
            self._turn_token(on=on)
        elif on:
            for fault in switch.faults:
                self._scene.faults.plan(replace(fault, name=switch.name))
        else:
            self._scene.faults.remove_named(switch.name)

    def _turn_token(self, *, on: bool) -> None:
        if on:
            self._scene.revoke_token()
        else:
            self._scene.restore_token()
