"""Changes of stored approvals, as the use cases write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bot.approvals import changes
from bot.records.approval import Approval, Decision
from storage.documents import Collection, Document, update

CHANGES: Mapping[str, tuple[str, ...]] = {
    "rebind": ("digest",),
    "vote": ("votes",),
    "decide": ("decision",),
    "close": ("open",),
    "escalate": ("escalation.begun_ms",),
    "take_step": ("escalation",),
    "mark_beside": ("cards", "messages"),
    "annotate": ("claim", "snoozes", "dialog"),
    "mark_card": ("card",),
}
"""What a write of an approval is, by the fields that it changes; the first that fits."""


def change_of(
    document: Document, *, based_on: Document, releases: bool = False, **_: object
) -> str:
    """Name a call of `Collection.replace` by what it changes of an approval."""
    if releases:
        return "release"
    for name, fields in CHANGES.items():
        if any(_value(document, field) != _value(based_on, field) for field in fields):
            return name
    return "replace"


def _value(document: Document, field: str) -> object:
    """Return a field of a document or of one of its parts; None if there is none."""
    value: object = document
    for name in field.split("."):
        value = getattr(value, name, None)
    return value


async def write(
    approvals: Collection[Approval], key: str, change: Any, /, **options: Any
) -> Approval | None:
    """Apply one of `bot.approvals.changes` to a stored approval, which is due then."""
    return await update(approvals, key, partial(change, **options), writes_due=True)


async def decide(
    approvals: Collection[Approval], key: str, decision: Decision, *, digest: str
) -> Approval:
    """Store a decision that must not fail."""
    stored = await write(approvals, key, changes.decided, decision=decision, digest=digest)
    assert stored is not None
    return stored


def failing_at(
    approvals: Collection[Approval],
    matches: Callable[[Approval, Approval], bool],
    error: type[BaseException] | BaseException,
    *,
    times: int = 1_000,
    after: bool = False,
) -> Callable[[], None]:
    """Let the writes of some changes fail, given the new and the old approval.

    With `after`, they fail once they have had their effect.

    Returns:
        Ends it.
    """
    store: Any = approvals
    replace, left = store.replace, [error] * times

    async def fails(document: Approval, *, based_on: Approval, **options: Any) -> Approval:
        fault = left.pop() if left and matches(document, based_on) else None
        if fault is not None and not after:
            raise fault
        changed: Approval = await replace(document, based_on=based_on, **options)
        if fault is not None:
            raise fault
        return changed

    store.replace = fails
    return lambda: vars(store).pop("replace", None) and None
