"""I3, I4, I5, I12, I13: the bot is killed at any write of what people do under a policy.

Votes, steps of the ladder, cards by direct message, grants, emergencies, delegations and the end of
a run are played by `playhouse`. The bot dies before a write to the database is made, or right after
it has taken effect, and another one takes over. Whichever write it is: all ends as it does where
nobody dies, and comes to rest; nothing runs, is noted, or is told twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

import pytest

from tests.property.worlds.mortals import Ending, Playhouse, Step
from tests.property.worlds.relay import dies
from tests.support.sizes import size
from tests.support.stores import SqliteStores

T = TypeVar("T")
POLICY = {
    "version": 1,
    "timezone": "Europe/Berlin",
    "groups": {
        "sre": {"usergroups": ["S0SRE"]},
        "mia": {"users": ["U0MIA"]},
        "leads": {"usergroups": ["S0LEAD"]},
    },
    "rules": [
        {
            "name": "quorum",
            "when": {"tool": "sql"},
            "then": {
                "ask": {
                    "approve": [{"from": ["sre"], "count": 2}],
                    "break_glass": {"by": ["mia"], "alert": "C0ALERT"},
                    "escalate": [{"after": "1h", "add": ["leads"]}],
                    "remind": {"after": "25m", "times": 1},
                    "expires": "3h",
                }
            },
        },
        {
            "name": "hosts",
            "when": {"tool": "restart_db"},
            "then": {
                "ask": {
                    "approve": [{"from": ["sre"]}],
                    "grants": {"max_time": "2h", "max_uses": 2, "vary": ["host"]},
                    "expires": "2h",
                }
            },
        },
        {
            "name": "ends",
            "when": {"tool": "search"},
            "then": {
                "ask": {
                    "approve": [{"from": ["sre"]}],
                    "on_expiry": "cancel_run",
                    "expires": "30m",
                    "remind": "never",
                }
            },
        },
    ],
    "default": {"ask": {"approve": [{"from": ["mia"]}], "expires": "2h"}},
}
SQL = {"tool": "sql", "args": {"statement": "a"}}
REFUND = {"tool": "refund", "args": {"order": "1"}}
GLASS = {"by": "U0MIA", "reasons": ["the database is down now", "nobody else is awake"]}


def host(name: str) -> dict[str, object]:
    return {"tool": "restart_db", "args": {"host": name}}


SCENES: Mapping[str, list[Step]] = {
    "a quorum": [
        ("+0m", "request", SQL),
        ("+1m", "approve", "U0ADA"),
        ("+2m", "take_back", "U0ADA"),
        ("+3m", "approve", "U0BEN"),
        ("+4m", "approve", "U0ADA"),
    ],
    "the ladder": [
        ("+0m", "request", SQL),
        ("+1h10m", "approve", "U0LIA"),
        ("+1h20m", "approve", "U0CLEO"),
    ],
    "direct messages": [
        ("+0m", "request", {**REFUND, "channel": "D0ROSA"}),
        ("+20m", "approve", "U0MIA"),
    ],
    "cards that somebody asks for": [
        ("+0m", "wish", "U0ADA"),
        ("+1m", "request", SQL),
        ("+30m", "approve", "U0BEN"),
        ("+31m", "approve", "U0ADA"),
    ],
    "nobody answers": [
        ("+0m", "request", SQL),
        ("+3h10m", "wait", {}),
    ],
    "a grant": [
        ("+0m", "request", host("a")),
        ("+1m", "approve", {"by": "U0ADA", "grant": {"time": "1h", "uses": 2}}),
        ("+5m", "request", host("a")),
        ("+9m", "revoke", "U0ADA"),
        ("+12m", "request", host("a")),
        ("+13m", "approve", "U0BEN"),
        ("+14m", "approve", "U0CLEO"),  # refused, unless people were asked once more
    ],
    "a grant that expires": [
        ("+0m", "request", host("a")),
        ("+1m", "approve", {"by": "U0ADA", "grant": {"time": "1h", "uses": 2}}),
        ("+2h", "request", host("a")),
        ("+2h1m", "approve", "U0BEN"),
    ],
    "an emergency": [
        ("+0m", "request", SQL),
        ("+1m", "approve", "U0ADA"),
        ("+2m", "break_glass", GLASS),
    ],
    "the end of a run": [
        ("+0m", "request", [{"tool": "search", "args": {"query": "a"}}, SQL]),
        ("+40m", "wait", {}),
    ],
    "a delegation": [
        ("+0m", "request", REFUND),
        ("+1m", "delegate", {"from": "U0MIA", "to": "U0TOM", "until": "2026-11-27T18:00"}),
        ("+2m", "approve", "U0TOM"),
        ("+3m", "end_delegation", "U0MIA"),
    ],
}


WAYS = (True, False, True)
"""Whether it dies after a write, not before it: in turns, or both."""
FEWEST = 20
"""Writes of a scene; there are more."""
ALWAYS = frozenset({"grants.add", "switches.replace"})
LATE = frozenset({("taken_back", "U0ADA")})
"""Put into the audit after the record: a process that dies in between leaves no entry."""
ANEW = Counter({("started", ""): 1})
"""A start with a number that no journal has: the next process starts with a number of its own, and
the audit has both. What ran is compared on its own."""


@pytest.mark.parametrize("scene", SCENES)
async def test_whichever_write_it_dies_at(scene: str, storage: SqliteStores) -> None:
    house = await Playhouse.open(storage, POLICY)
    await house.play(SCENES[scene])  # the first start makes the switch's record
    whole = await house.play(SCENES[scene])
    assert (whole.faults, whole.deaths, whole.doubts) == ([], 0, 0)
    assert len(whole.writes) > FEWEST
    faults_by_death = {}
    for write, is_after in deaths(scene, whole.writes):
        ending = await house.play(SCENES[scene], dies(write, is_after=is_after))
        assert ending.deaths == 1, write
        if faults := [*ending.faults, *differences(whole, ending)]:
            faults_by_death[write, is_after, whole.writes[write - 1]] = faults
    assert faults_by_death == {}


def deaths(scene: str, writes: Sequence[str]) -> list[tuple[int, bool]]:
    """The writes to die at, and whether after them: some of all, and what one write has promised.

    `ALWAYS` is never left out: what goes before such a write says that it will be made.
    """
    step = size(13, 1)
    numbers = enumerate(range(1 + len(scene) % step, len(writes) + 1, step))
    some = [(write, after) for at, write in numbers for after in WAYS[at % 2 :][: size(1, 2)]]
    kept = [at for at, name in enumerate(writes, 1) if name in ALWAYS]
    return sorted({*some, *((write, after) for write in kept for after in (False, True))})


def differences(whole: Ending, ending: Ending) -> list[str]:
    """What ended otherwise than where nobody died; a call in doubt is one more question."""
    problems = []
    states = ending.states
    if ending.doubts:  # no grant covers words such as who settles a doubt says
        states = states[: len(whole.states)]
    if (states, ending.ran) != (whole.states, whole.ran):
        problems.append(f"{ending.states}, {ending.ran}")
    noted, missing = apart(ending.audit, whole.audit)
    if not ending.doubts and (noted - ANEW or set(missing) - LATE):
        problems.append(f"in the audit too often {noted}, missing {missing}")
    more, less = apart(ending.posted, whole.posted)
    if states != ending.states:  # one more question has messages of its own
        return problems
    if more - doubted(ending.doubts) or less:
        problems.append(f"posted too often {more}, missing {less}")
    return problems


def doubted(count: int) -> Counter[str]:
    """The messages that ask about calls in doubt; by direct message they are cards with a line."""
    kinds = ("countersign_doubt", "countersign_card", "countersign_line")
    return Counter(dict.fromkeys(kinds, count))


def apart(first: Counter[T], other: Counter[T]) -> tuple[Counter[T], Counter[T]]:
    """What is in the first alone, and in the second alone."""
    return first - other, other - first
