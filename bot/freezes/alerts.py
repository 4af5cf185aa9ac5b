"""Tell people about freezes: an alert in a channel, kept true, and reminders to whoever froze.

What is told is stored on the switch before it is posted, with the time until which this process
works at it. So at most one message is posted for a freeze, whichever process dies.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from bot.clock import milliseconds
from bot.errors import DeliveryError
from bot.freezes.rights import FreezeRights
from bot.freezes.service import Freezes
from bot.ports.people import is_person
from bot.ports.process import Spawn
from bot.ports.threads import Notices
from bot.records.switch import Freeze, FreezeAlert, SwitchRecord
from storage.errors import RecordNotFoundError

logger = logging.getLogger(__name__)

REMIND_EVERY = timedelta(hours=24)
"""Interval between reminders of a freeze to the person who set it."""
HOLD = timedelta(minutes=1)
"""Longest time for which one process works at the messages about a freeze."""
RETRY = timedelta(seconds=10)
"""Delay before the next attempt, after a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeAlerts:
    """Posts and updates the messages about freezes.

    Attributes:
        freezes: Reads and writes the switch.
        notices: Posts messages.
        rights: Returns who is told, and how many people must lift, by the policy in force.
        spawn: Starts a task.
    """

    freezes: Freezes
    notices: Notices
    rights: Callable[[], FreezeRights]
    spawn: Spawn

    async def post_due(self) -> None:
        """Start to post and update what is due.

        Raises:
            StorageError: The switch cannot be read; the next look repeats it.
        """
        try:
            switch = await self.freezes.read()
        except RecordNotFoundError:
            return
        now = self.freezes.clock()
        ids = [freeze.id for freeze in switch.freezes]
        ids += [alert.freeze.id for alert in switch.alerts]
        for freeze_id in dict.fromkeys(ids):
            if claimed(switch, freeze_id, channel=self._channel(switch, freeze_id), now_ms=now):
                self.spawn(self._see_to(freeze_id))

    def _channel(self, switch: SwitchRecord, freeze_id: str) -> str:
        freeze = switch.freeze(freeze_id)
        return self.rights().alert or (freeze.place if freeze is not None else "")

    async def _see_to(self, freeze_id: str) -> None:
        """Post or update the messages about a freeze, unless another process does."""

        def claim(switch: SwitchRecord) -> SwitchRecord | None:
            channel = self._channel(switch, freeze_id)
            return claimed(switch, freeze_id, channel=channel, now_ms=self.freezes.clock())

        switch = await self.freezes.change(claim)
        alert = switch.alert(freeze_id) if switch is not None else None
        if switch is None or alert is None:
            return
        freeze, again_ms = switch.freeze(freeze_id), 0
        shown, is_over = alert.changed(freeze=freeze or alert.freeze), freeze is None
        try:
            shown = await self._show(alert, shown)
        except DeliveryError as error:
            again_ms = self._retry_ms(error)
            is_over &= not again_ms
            shown = alert if again_ms else elsewhere(alert)
        if freeze is not None and reminder_is_due(alert, freeze, self.freezes.clock()):
            days = days_of(freeze, self.freezes.clock())
            try:
                await self.notices.remind_of_freeze(freeze, day=days)
            except DeliveryError as error:
                again_ms = again_ms or self._retry_ms(error)
            shown = shown if again_ms else shown.changed(reminders=days)
        shown = shown.changed(until_ms=again_ms)
        await self.freezes.change(partial(after, alert=shown, is_over=is_over))

    async def _show(self, alert: FreezeAlert, shown: FreezeAlert) -> FreezeAlert:
        """Make the alert show the freeze as it is; return the alert as it is then.

        Raises:
            DeliveryError: Slack refused the message.
        """
        if not alert.channel or (alert.ts and alert == shown and alert.lifted is None):
            return shown
        ts = await self.notices.show_freeze(shown, count=self.rights().count)
        return shown.changed(ts=ts)

    def _retry_ms(self, error: DeliveryError) -> int:
        """Return when to try again; 0 for never, because Slack will not take the message."""
        logger.warning(
            "could not tell people about a freeze: %s", error, extra={"action": "freeze_untold"}
        )
        is_final = error.is_permanent and not error.is_refusal
        return 0 if is_final else self.freezes.clock() + milliseconds(RETRY)


def days_of(freeze: Freeze, now_ms: int) -> int:
    """Return for how many days a freeze has been in force."""
    return max(now_ms - freeze.since_ms, 0) // milliseconds(REMIND_EVERY)


def reminder_is_due(alert: FreezeAlert, freeze: Freeze, now_ms: int) -> bool:
    """Whether a person must be reminded of a freeze in force."""
    return is_person(freeze.by) and days_of(freeze, now_ms) > alert.reminders


def claimed(
    switch: SwitchRecord, freeze_id: str, *, channel: str, now_ms: int
) -> SwitchRecord | None:
    """Return the switch with messages that this process works at; None if none are due.

    Args:
        switch: The stored switch.
        freeze_id: The freeze.
        channel: Slack id of the channel that gets a new alert; empty for none.
        now_ms: The time now.
    """
    freeze, alert = switch.freeze(freeze_id), switch.alert(freeze_id)
    if alert is None:
        if freeze is None or not (channel or is_person(freeze.by)):
            return None
        alert = FreezeAlert(freeze=freeze, channel=channel)
    elif _is_held(alert, now_ms) or not _is_due(alert, freeze, now_ms):
        return None
    held = alert.changed(until_ms=now_ms + milliseconds(HOLD))
    return switch.with_alert(freeze_id, held)


def _is_held(alert: FreezeAlert, now_ms: int) -> bool:
    """Whether a process works at the messages. A time too far ahead is of a wrong clock."""
    return now_ms < alert.until_ms <= now_ms + milliseconds(HOLD)


def _is_due(alert: FreezeAlert, freeze: Freeze | None, now_ms: int) -> bool:
    if freeze is None:
        return True
    is_old = not alert.ts or alert.freeze != freeze
    return (bool(alert.channel) and is_old) or reminder_is_due(alert, freeze, now_ms)


def elsewhere(alert: FreezeAlert) -> FreezeAlert:
    """Return an alert that its channel does not take: for the person who froze, or for nobody."""
    by = alert.freeze.by
    other = by if is_person(by) and by != alert.channel else ""
    return alert.changed(channel=other, ts="")


def after(switch: SwitchRecord, *, alert: FreezeAlert, is_over: bool) -> SwitchRecord | None:
    """Return the switch after the messages about a freeze were tried.

    Args:
        switch: The stored switch.
        alert: The messages as they are now. If the freeze changed meanwhile, they are due again.
        is_over: Whether the alert shows the end of the freeze, or never will.
    """
    stored = switch.alert(alert.freeze.id)
    if stored is None:
        return None
    if is_over and not (alert.channel and not alert.ts):
        return switch.with_alert(alert.freeze.id, None)
    return switch.with_alert(alert.freeze.id, alert.changed(lifted=stored.lifted))
