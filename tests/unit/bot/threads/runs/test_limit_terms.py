"""I13: who decides at a limit of models, and that the requesters never do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from agents.core.asking.limits import LimitInfo
from agents.core.errors import LimitReachedError
from bot.errors import DirectoryError
from bot.policy.evaluation.evaluate import PolicyEvaluator
from bot.policy.model import PolicyFile
from bot.ports.people import Person
from bot.records.terms import Group, Terms
from bot.records.thread import Thread
from bot.threads.runs.limit_terms import LimitTerms
from tests.contract.builders import a_thread
from tests.support.stores import SqliteStores
from tests.unit.bot.office import RULES

THREAD = a_thread(thread_id="T1:C0OPS:1800000000.000001")
CHANNEL_ID, REQUESTER = THREAD.channel_id, THREAD.requester_id
INFO = LimitInfo(
    limit="cost",
    period="2026-11-29",
    used=5,
    allowed=5,
    more=5,
    title="Go on with another 5.00 USD",
    text="This thread has used 5.00 of 5.00 USD today.",
)
FINANCE: dict[str, Any] = {
    "name": "money",
    "when": {"limit": "cost"},
    "then": {
        "ask": {
            "approve": [{"from": ["finance"]}],
            "exclude": ["editors"],
            "edit": "yes",
            "grants": {"max_time": "1h", "max_uses": 5},
            "break_glass": {"by": ["finance"], "alert": "C0ALERT"},
        }
    },
}
EVERYTHING = {"name": "all", "then": {"deny": "Nothing runs."}}


@dataclass
class Held:
    """A policy in force."""

    rulebook: PolicyEvaluator
    file_hash: str = "a1"
    is_settings: bool = False


async def members(group: Group) -> frozenset[str] | None:
    """The requester of the thread is in the team."""
    return frozenset({REQUESTER} if "U0TEAM" in group.users else ())


async def admins() -> Sequence[Person]:
    return [Person(user_id="U0MIA", name="Mia", team_id="T1", is_admin=True)]


async def no_answer() -> Sequence[Person]:
    raise DirectoryError("Slack does not answer")


def held(*rules: dict[str, Any], groups: Sequence[str] = ("finance",)) -> Held:
    data = {
        "version": 1,
        "groups": {name: {"users": [f"U0{name.upper()}"]} for name in groups},
        "rules": list(rules),
        "default": "allow",
    }
    return Held(PolicyEvaluator(PolicyFile.model_validate(data)))


@pytest.fixture
async def thread(storage: SqliteStores) -> Thread:
    await storage.threads.add(THREAD)
    return THREAD


async def terms_of(
    storage: SqliteStores, thread: Thread, policy: Held | None, ask: Any = admins
) -> Terms:
    limit_terms = LimitTerms(
        storage=storage,
        rules=RULES,
        in_force=None if policy is None else lambda: policy,
        members=members,
        admins=ask,
    )
    return Terms.from_text(await limit_terms(thread, "clerk", INFO))


def people_of(terms: Terms) -> set[str]:
    return {user for group in terms.groups.values() for user in group.users}


async def test_a_rule_names_them_and_gives_nothing_that_passes_them_by(
    storage: SqliteStores, thread: Thread
) -> None:
    terms = await terms_of(storage, thread, held(FINANCE, groups=("finance", "operators")))
    assert (people_of(terms), terms.rules) == ({"U0FINANCE"}, ("money",))
    assert terms.exclude == ("editors", "requesters")
    assert (terms.edit, terms.grants, terms.break_glass) == ("no", None, None)
    assert terms.always_ask


@pytest.mark.parametrize(
    ("when", "is_met"),
    [
        ({"agent": ["clerk"]}, True),
        ({"agent": ["waiter"]}, False),
        ({"channel": [CHANNEL_ID]}, True),
        ({"channel": ["C0OTHER"]}, False),
        ({"requester": {"in": ["team"]}}, True),
        ({"requester": {"not_in": ["team"]}}, False),
    ],
)
async def test_a_rule_has_conditions_on_agent_channel_and_requesters(
    storage: SqliteStores, thread: Thread, when: dict[str, Any], is_met: bool
) -> None:
    rule = {**FINANCE, "when": {"limit": "cost", **when}}
    terms = await terms_of(storage, thread, held(rule, groups=("finance", "team")))
    assert people_of(terms) == ({"U0FINANCE"} if is_met else {"U0MIA"})


async def test_the_times_are_those_of_the_settings(storage: SqliteStores, thread: Thread) -> None:
    terms = await terms_of(storage, thread, None)
    assert terms.rules == ("limit",)
    assert terms.expires_s == RULES.expire_after.total_seconds()
    assert terms.remind_s == RULES.remind_after.total_seconds()
    assert terms.max_age_s == RULES.max_age.total_seconds()


async def test_without_a_rule_the_operators_decide(storage: SqliteStores, thread: Thread) -> None:
    policy = held(EVERYTHING, groups=("finance", "operators"))
    terms = await terms_of(storage, thread, policy)
    assert (people_of(terms), terms.exclude) == ({"U0OPERATORS"}, ("requesters",))
    assert (terms.rules, terms.risk) == (("limit",), "medium")


@pytest.mark.parametrize("policy", [None, held(EVERYTHING)])
async def test_without_operators_the_admins_decide(
    storage: SqliteStores, thread: Thread, policy: Held | None
) -> None:
    terms = await terms_of(storage, thread, policy)
    assert (people_of(terms), terms.exclude) == ({"U0MIA"}, ("requesters",))
    assert terms.expires_s == RULES.expire_after.total_seconds()


async def test_a_rule_that_denies_asks_nobody(storage: SqliteStores, thread: Thread) -> None:
    rule = {"name": "stop", "when": {"limit": "cost"}, "then": {"deny": "Write less."}}
    with pytest.raises(LimitReachedError, match=r"USD today\. Write less\."):
        await terms_of(storage, thread, held(rule))


async def test_i1_if_the_admins_are_unknown_nothing_goes_on(
    storage: SqliteStores, thread: Thread
) -> None:
    with pytest.raises(DirectoryError):
        await terms_of(storage, thread, None, no_answer)
