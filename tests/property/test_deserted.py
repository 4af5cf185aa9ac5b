"""When all who could decide are away, the first escalation step comes at once (6.3).

However it comes about, and though no message of the ladder is due: by an absence, by the end of a
delegation, or by the vote of the last who was there.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.property.worlds.mortals import Playhouse, Step
from tests.support.stores import SqliteStores

UNTIL = "2026-11-27T18:00"
MIA_GOES = ("away", {"by": "U0MIA", "until": UNTIL})
TOM_GOES = ("away", {"by": "U0TOM", "until": UNTIL})
REFUND = ("request", {"tool": "refund", "args": {"order": "1"}})
SEARCH = ("request", {"tool": "search", "args": {"query": "a"}})


def policy() -> dict[str, object]:
    steps = [{"after": "2h", "add": ["leads"]}]
    silent = {"remind": "never", "escalate": steps, "expires": "8h"}
    return {
        "version": 1,
        "timezone": "Europe/Berlin",
        "groups": {
            "two": {"users": ["U0MIA", "U0TOM"]},
            "three": {"users": ["U0MIA", "U0TOM", "U0BEN"]},
            "leads": {"usergroups": ["S0LEAD"]},
        },
        "rules": [
            {
                "name": "both",
                "when": {"tool": "search"},
                "then": {"ask": {"approve": [{"from": ["three"], "count": 2}], **silent}},
            }
        ],
        "default": {"ask": {"approve": [{"from": ["two"]}], **silent}},
    }


def delegated(until: str) -> tuple[str, dict[str, str]]:
    return ("delegate", {"from": "U0MIA", "to": "U0ADA", "until": until})


SCENES: dict[str, tuple[Sequence[tuple[str, object]], int]] = {
    "they go while it waits": ([REFUND, MIA_GOES, TOM_GOES], 1),
    "one of them is there": ([REFUND, MIA_GOES], 0),
    "nobody is there any more when a delegate is not": (
        [delegated(UNTIL), MIA_GOES, TOM_GOES, REFUND, ("end_delegation", "U0MIA")],
        1,
    ),
    "a delegate is there": ([delegated(UNTIL), REFUND, MIA_GOES, TOM_GOES], 0),
    "the last one votes": ([MIA_GOES, TOM_GOES, SEARCH, ("approve", "U0BEN")], 1),
    "the time of a delegate ends": (
        [delegated("2026-11-23T10:30"), MIA_GOES, TOM_GOES, REFUND, ("wait", {})],
        1,
    ),
}


@pytest.mark.parametrize("scene", SCENES)
async def test_backups_are_asked_at_once(scene: str, storage: SqliteStores) -> None:
    acts, escalated = SCENES[scene]
    house = await Playhouse.open(storage, policy())
    times = [f"+{number}m" for number in range(len(acts) - 1)]
    last = "+1h" if acts[-1][0] == "wait" else f"+{len(acts)}m"
    steps: list[Step] = [
        (at, name, value) for at, (name, value) in zip([*times, last], acts, strict=True)
    ]
    ending = await house.play(steps)
    assert ending.audit["escalated", ""] == escalated
