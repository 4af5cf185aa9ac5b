"""Start agents by webhooks that come in, as the file of agents says."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from agents.core.codec import Json
from bot.clock import milliseconds
from bot.errors import StartRefusedError
from bot.records.origin import RequestDoor
from bot.records.starts import ThreadStart
from bot.triggers.entries import TriggerEntry, secrets_in
from bot.triggers.signatures import delivery_of
from bot.triggers.starting import HOUR, SAME_KEY, NewStart, ThreadStarts
from storage.documents import update
from storage.errors import RecordNotFoundError

_MOST_READ = 50
"""Newest starts of a trigger that are read to find its open threads."""
_MOST_DELIVERIES = 100
_PATH = re.compile(r"\{([A-Za-z0-9_.-]{1,200})\}")
_NO_SECRET = (b"a secret of a trigger that does not exist",)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTriggers:
    """The triggers of the file.

    Args:
        entries: AgentTriggers by name.
        starts: Starts threads.
    """

    entries: Mapping[str, TriggerEntry]
    starts: ThreadStarts

    def check(self, name: str, headers: Mapping[str, str], body: bytes) -> str:
        """Return the identity of a delivery with a right signature.

        Raises:
            StartRefusedError: There is no such trigger, or the signature is missing, wrong or old.
                Both take the same time.
        """
        entry, now_ms = self.entries.get(name), self.starts.clock()
        kind = entry.verify.kind if entry is not None else "standard-webhooks"
        try:
            secrets = secrets_in(entry.verify.secret_file) if entry is not None else _NO_SECRET
        except (OSError, ValueError) as error:
            raise StartRefusedError("signature-invalid") from error
        delivery = delivery_of(kind, secrets, headers, body, now_ms=now_ms)
        if entry is None:
            raise StartRefusedError("not-found")
        if delivery is None:
            raise StartRefusedError("signature-invalid")
        return delivery

    async def fire(self, name: str, delivery: str, body: Json) -> ThreadStart | None:
        """Start a thread, or find the one that the key has named in the last 24 hours.

        Args:
            name: The trigger.
            delivery: As `check` returned it.
            body: The body.

        Returns:
            The start; None if the conditions of the trigger do not hold.

        Raises:
            StartRefusedError: The delivery came before, or nothing starts now.
            DirectoryError: A look-up failed; nothing is stored.
        """
        entry, starts = self.entries[name], self.starts
        members = body if isinstance(body, dict) else {}
        if not all(condition.holds(members) is True for condition in entry.conditions):
            return None
        text = _filled(entry.text, body)
        # A sender that repeats a webhook keeps its id, and signs it with a new time.
        sent = delivery.rpartition(".")[0] or delivery
        key_digest = _digest(f"trigger {name} {_filled(entry.key, body) or sent or _digest(text)}")
        start_id, known = await starts.known(key_digest, None)
        if known is not None:
            return await self._again(known, delivery)
        new = NewStart(
            id=start_id,
            key_digest=key_digest,
            title=" ".join(_filled(entry.title, body).split()) or name,
            text=text,
            deliveries=(delivery,) if delivery else (),
        )
        start = await starts.made(entry, RequestDoor.TRIGGER, name, new)
        with starts.counted(RequestDoor.TRIGGER):
            if hold := await starts.holds.hold(start):
                starts.spawn(starts.work(hold.id))
                raise StartRefusedError("held", retry_after_s=600)
            if open_ := await self._open(start, entry):
                start = start.changed(under=open_.thread_ts)
        if await starts.start(start):
            return start
        return await self.fire(name, delivery, body)

    async def _again(self, start: ThreadStart, delivery: str) -> ThreadStart:
        """Take another delivery under the same key; refuse one that came before."""

        def taken(now: ThreadStart) -> ThreadStart:
            if delivery in now.deliveries:
                raise StartRefusedError("signature-invalid")
            return now.changed(deliveries=(*now.deliveries, delivery)[-_MOST_DELIVERIES:])

        if delivery:
            await update(self.starts.storage.starts, start.id, taken)
        return start

    async def _open(self, start: ThreadStart, entry: TriggerEntry) -> ThreadStart | None:
        """Return the newest open thread of the trigger, if it may have no further one.

        Raises:
            StartRefusedError: It has started too many in this hour.
        """
        starts, ours = self.starts.storage.starts, {"origin.program": start.origin.program}
        hour_ms = start.created_ms - milliseconds(HOUR)
        count = await starts.count({**ours, "created_ms": {"$gt": hour_ms}})
        if count >= entry.limits.per_hour:
            raise StartRefusedError("rate-limited", retry_after_s=600)
        day_ms = start.created_ms - milliseconds(SAME_KEY)
        roots = {**ours, "under": "", "created_ms": {"$gt": day_ms}}
        page = await starts.find(roots, sort=["-created_ms"], limit=_MOST_READ)
        opened = [root for root in page.documents if not root.failure and await self._is_open(root)]
        begun = [root for root in opened if root.thread_id]
        return begun[0] if len(opened) >= entry.limits.open and begun else None

    async def _is_open(self, start: ThreadStart) -> bool:
        if not start.thread_id:
            return start.due_ms is not None
        try:
            thread = await self.starts.storage.threads.get(start.thread_id)
        except RecordNotFoundError:
            return False
        return thread.turn_open or thread.turn == 0


def _filled(template: str, body: Json) -> str:
    """Put values of the body into a template; `{body}` is the whole body. Nothing is executed."""
    return _PATH.sub(lambda match: _text_at(body, match[1]), template)


def _text_at(body: Json, path: str) -> str:
    value: object = body
    for part in path.split(".") if path != "body" else ():
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return ""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
