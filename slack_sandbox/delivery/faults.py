"""Planned faults: which calls and deliveries fail, how, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from random import Random
from typing import Any, Final, Literal

from slack_sandbox.workspace.records import Payload

Direction = Literal["call", "event", "interaction", "command"]
"""The direction of a fault. `call` is from the app to the Web API; the others are to the app."""

Effect = Literal[
    "cut",
    "delay",
    "drop",
    "duplicate",
    "empty_previous",
    "error",
    "hang",
    "html",
    "late",
    "lost_answer",
    "no_previous",
    "ratelimited",
    "reorder",
    "slow",
    "stale",
    "status",
    "unheard",
]
"""The effect of a fault:

- `error`: `ok: false` with the code in `error`; nothing is done.
- `status`: that HTTP status, such as 500 or 503; nothing is done.
- `ratelimited`: HTTP 429 with `retry_after`; nothing is done.
- `html`: a page of HTML with that status, as a proxy sends it; nothing is done.
- `cut`: the connection breaks; nothing is done.
- `hang`: no answer for `delay` seconds, then the connection breaks; nothing is done.
- `slow`: done and answered `delay` seconds later.
- `late`: done at once, answered `delay` seconds later.
- `lost_answer`: done, then the connection breaks instead of an answer.
- `drop`: the app never hears of it.
- `delay`: the app hears of it `delay` seconds later.
- `duplicate`: the app hears of it `count` times more, at the same time, with the same id.
- `reorder`: the app hears of the next event first; after `delay` seconds at the latest.
- `no_previous`: the event has no `previous_message`.
- `empty_previous`: the event has an empty `previous_message`.
- `unheard`: the app hears of it, but its answer does not arrive, `count` times; events are sent
  again, with `reason` in their headers.
- `stale`: the trigger id has expired when the app gets it.
"""

EFFECTS: Final[Mapping[Direction, frozenset[Effect]]] = {
    "call": frozenset(
        {
            "cut",
            "error",
            "hang",
            "html",
            "late",
            "lost_answer",
            "ratelimited",
            "slow",
            "status",
        }
    ),
    "event": frozenset(
        {
            "delay",
            "drop",
            "duplicate",
            "empty_previous",
            "no_previous",
            "reorder",
            "unheard",
        }
    ),
    "interaction": frozenset({"delay", "drop", "duplicate", "stale", "unheard"}),
    "command": frozenset({"delay", "drop", "duplicate", "stale", "unheard"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """A planned fault: its effect, the calls it is for, and how often it strikes.

    Attributes:
        effect: The effect of the fault.
        on: The direction.
        match: Names that match, with * and ?: a method (`chat.*`), an event (`message`, and with
            its subtype `message.message_changed`), an interaction (`block_actions`) or a command.
        channel: The only conversation; empty for all.
        times: Number of strikes; None for no limit.
        skip: Number of matches without a fault before the first strike.
        every: Strikes only every n-th match.
        chance: Probability of each strike, from 0 to 1.
        seed: Seed of the random numbers for `chance`, to make them repeatable.
        delay: Delay in seconds.
        retry_after: Seconds, in the Retry-After header of a 429.
        status: The HTTP status.
        error: Slack's error code.
        count: Number of further copies, or of lost answers.
        reason: The reason for a retry, as in X-Slack-Retry-Reason.
        name: Free text that names the fault's owner, for `remove_named`.
    """

    effect: Effect
    on: Direction = "call"
    match: str = "*"
    channel: str = ""
    times: int | None = None
    skip: int = 0
    every: int = 1
    chance: float = 1.0
    seed: int = 0
    delay: float = 5.0
    retry_after: int = 1
    status: int = 503
    error: str = "internal_error"
    count: int = 1
    reason: str = "http_timeout"
    name: str = ""

    def __post_init__(self) -> None:
        if self.effect not in EFFECTS.get(self.on, ()):
            raise ValueError(f"{self.effect!r} cannot happen to {self.on!r}")
        if not all(isinstance(text, str) for text in (self.match, self.channel, self.error)):
            raise TypeError("match, channel and error must be texts")
        if self.times is not None and self.times < 1:
            raise ValueError("times must be at least 1, or None")
        if min(self.every, self.count) < 1 or min(self.skip, self.delay, self.retry_after) < 0:
            raise ValueError("every and count must be at least 1, the others at least 0")
        if not 0 <= self.chance <= 1 or not 200 <= self.status <= 599:
            raise ValueError("chance must be from 0 to 1, status from 200 to 599")


@dataclass(slots=True)
class _Rule:
    fault: PlannedFault
    rule_id: str
    random: Random
    seen: int = 0
    hits: int = field(default=0)

    @property
    def is_spent(self) -> bool:
        return self.fault.times is not None and self.hits >= self.fault.times

    def meets(self, on: Direction, name: str, channel: str) -> bool:
        fault = self.fault
        return (
            fault.on == on
            and fault.channel in ("", channel)
            and fnmatchcase(name or "-", fault.match)
        )

    def strikes(self) -> bool:
        """Count a match, and return whether the fault strikes."""
        fault = self.fault
        self.seen += 1
        place = self.seen - fault.skip
        if place < 1 or place % fault.every:
            return False
        if fault.chance < 1 and self.random.random() >= fault.chance:
            return False
        self.hits += 1
        return True


class Faults:
    """All planned faults, in the order in which they were added. The first that strikes applies."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._rules: list[_Rule] = []
        self._count = 0
        self.hits: Counter[str] = Counter()
        """Number of strikes of each fault by id, including removed faults."""

    def __len__(self) -> int:
        return len(self._rules)

    @property
    def kinds(self) -> int:
        """The number of faults. Faults with the same name count as one."""
        return len({rule.fault.name or rule.rule_id for rule in self._rules})

    def add(self, effect: Effect, match: str = "*", *, on: Direction = "call", **how: Any) -> str:
        """Add a fault that applies from now on.

        Args:
            effect: The effect of the fault.
            match: Names of methods, events, interactions or commands; see `PlannedFault`.
            on: The direction.
            **how: Further fields of `PlannedFault`.

        Returns:
            The id of the fault, for `remove` and `hits`.

        Raises:
            ValueError: The effect, the direction or another value is unknown.
            TypeError: `PlannedFault` has no such field.
        """
        return self.plan(PlannedFault(effect=effect, match=match, on=on, **how))

    def plan(self, fault: PlannedFault) -> str:
        """Add a planned fault, as `add` does, and return its id."""
        self._count += 1
        rule_id = f"F{self._count}"
        random = Random(fault.seed)  # noqa: S311 - to be repeatable, not to be secret
        self._rules.append(_Rule(fault, rule_id, random))
        self._changed()
        return rule_id

    def remove(self, rule_id: str) -> bool:
        """Remove a fault; return False if it does not exist."""
        return self._keep(lambda rule: rule.rule_id != rule_id)

    def remove_named(self, name: str) -> bool:
        """Remove all faults with a name; return False if there are none."""
        return self._keep(lambda rule: rule.fault.name != name)

    def clear(self) -> None:
        """Remove all faults."""
        self._keep(lambda _: False)

    def named(self, name: str) -> list[str]:
        """Return the ids of the faults with a name."""
        return [rule.rule_id for rule in self._rules if rule.fault.name == name]

    def pick(self, on: Direction, name: str, channel: str = "") -> PlannedFault | None:
        """Return the fault that strikes this call or delivery, if any does."""
        for rule in self._rules:
            if rule.meets(on, name, channel) and rule.strikes():
                self.hits[rule.rule_id] += 1
                if rule.is_spent:
                    self.remove(rule.rule_id)
                return rule.fault
        return None

    def shown(self) -> list[Payload]:
        """Return all faults with their ids and numbers of strikes, as JSON."""
        return [
            {"id": rule.rule_id, "hits": rule.hits, **asdict(rule.fault)} for rule in self._rules
        ]

    def _keep(self, wanted: Callable[[_Rule], bool]) -> bool:
        kept = [rule for rule in self._rules if wanted(rule)]
        is_fewer = len(kept) < len(self._rules)
        self._rules = kept
        if is_fewer:
            self._changed()
        return is_fewer
