"""The uses of standing grants: each call counts once, on either database."""

from __future__ import annotations

import json

from storage.records import Grant


def used(grant: Grant, call: str) -> str | None:
    """The uses of a grant with one for a call, as JSON; None when it has no more."""
    uses = [str(one) for one in json.loads(grant.uses_json)]
    if call in uses:
        return grant.uses_json
    return json.dumps([*uses, call]) if len(uses) < grant.max_uses else None


def is_used_up(grant: Grant) -> bool:
    """Whether a grant lets nothing more run, however long it lasts; true of one that is damaged."""
    try:
        return len(json.loads(grant.uses_json)) >= grant.max_uses
    except (TypeError, ValueError):
        return True
