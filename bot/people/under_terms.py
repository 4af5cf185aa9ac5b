"""The fields of a record that its terms give, for those who show it and remind of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from bot.policy.eligibility import EDITORS, REQUESTERS
from bot.policy.escalation import deadline
from bot.policy.terms import Group, Requirement, Terms
from bot.ports.people import CHANNEL
from storage.records import Approval


def under_terms(approval: Approval, text: str, *, now_ms: int) -> Approval:
    """Put an approval under terms: its times, and the people whom its card names.

    What is decided comes of the terms alone; these fields serve what is shown and sent.

    Args:
        approval: A new one, or one that was edited.
        text: The terms, as they were frozen.
        now_ms: The time from which they count.

    Raises:
        TermsError: They cannot be read.
    """
    terms = Terms.from_text(text)
    expires_ms = deadline(terms, now_ms)
    steps = terms.escalate[:1]
    escalate_ms = now_ms + steps[0].after_s * 1000 if steps else expires_ms
    remind_ms = now_ms + terms.remind_s * 1000 if terms.remind_s else expires_ms
    asked = [name for one in terms.stages[0].approve for name in one.groups]
    return replace(
        approval,
        terms_json=text,
        approvers_json=json.dumps(_names(terms.groups[name] for name in asked)),
        backups_json=json.dumps(_names(terms.groups[name] for one in steps for name in one.add)),
        self_approval=REQUESTERS not in terms.exclude,
        editors_excluded=EDITORS in terms.exclude,
        expires_ms=expires_ms,
        remind_ms=remind_ms if remind_ms < expires_ms else None,
        escalate_ms=escalate_ms if escalate_ms < expires_ms else None,
    )


def named_by(terms: Terms, requirement: Requirement) -> list[str]:
    """Those who fill a requirement, as a record names approvers: ids, and `channel`."""
    return _names(terms.groups[name] for name in requirement.groups)


def _names(groups: Iterable[Group]) -> list[str]:
    """Ids of people and user groups, and `channel`, as records of earlier releases list them."""
    found: dict[str, None] = {}
    for group in groups:
        rotation = group.rotation.people if group.rotation is not None else ()
        found.update(dict.fromkeys((*group.users, *group.usergroups, *rotation)))
        if group.here or group.channels:
            found[CHANNEL] = None
    return [*found]
