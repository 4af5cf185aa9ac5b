"""The uses of standing grants, each call once on either database; and whether one is over."""

from __future__ import annotations

import json

from storage.records import Grant


def used(grant: Grant, call: str) -> str | None:
    """The uses of a grant with one for a call, as JSON; None when it has no more."""
    uses = uses_of(grant)
    if call in uses:
        return grant.uses_json
    return json.dumps([*uses, call]) if len(uses) < grant.max_uses else None


def is_used_up(grant: Grant) -> bool:
    """Whether a grant lets nothing more run, however long it lasts; true of one that is damaged."""
    try:
        return len(json.loads(grant.uses_json)) >= grant.max_uses
    except (TypeError, ValueError):
        return True


def uses_of(grant: Grant) -> list[str]:
    """The calls that a grant was used for."""
    return [str(one) for one in json.loads(grant.uses_json)]


def is_over(grant: Grant, now_ms: int) -> bool:
    """Whether nothing starts by it any more: it was ended, used up, or its time is over."""
    is_used_up = len(uses_of(grant)) >= grant.max_uses
    return grant.ended_ms is not None or is_used_up or now_ms >= grant.until_ms


def is_void(grant: Grant) -> bool:
    """Whether a grant never began: when it was made, who gave it could not give it any more."""
    return grant.ended_ms is not None and grant.ended_ms <= grant.created_ms
