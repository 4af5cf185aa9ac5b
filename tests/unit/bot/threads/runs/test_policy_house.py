"""The bot's house: calls judged by the policy in force, what it settles on record (I12, I13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agents.policy.base import Allow, Ask, Deny, PolicyCall, Ruling
from bot.records.terms import Group, Rotation, Terms
from bot.threads.runs.application_policy import BotPolicy, GroupMembers
from storage.audit import AuditEntry
from storage.thread_ids import thread_of
from tests.contract.builders import a_thread
from tests.support.fakes import FakeClock, FakeDirectory
from tests.support.force import Forced, forced
from tests.support.stores import SqliteStores

THREAD = "T1:C0OPS:18.1"
GROUPS = {"sre": {"users": ["U0ADA", "U0BEN"]}, "leads": {"users": ["U0LIA"]}}
BY_SRE = {"approve": [{"from": ["sre"]}]}
BIG = {
    "name": "big",
    "when": {"tool": "pay", "args": [{"path": "x", "op": "gt", "value": 3}]},
    "then": {"ask": {"approve": [{"from": ["sre"], "count": 2}], "edit": "yes"}},
}
CALL = PolicyCall(
    tool="pay",
    arguments={"x": 5},
    call_id="c1",
    address="agent:A;agent:clerk;tool:pay:c1",
    thread=f"{THREAD}#1",
)


def a_house(
    storage: SqliteStores, force: Forced, directory: FakeDirectory | None = None
) -> BotPolicy:
    return BotPolicy(
        storage=storage,
        audit=storage.audit,
        clock=FakeClock(),
        members=GroupMembers(directory or FakeDirectory(), FakeClock()),
        in_force=force,
    )


async def test_a_start_waits_as_the_application_says(storage: SqliteStores) -> None:
    house = a_house(storage, forced(BIG, groups=GROUPS))
    assert not await house.wait(("i1",), 0)

    async def twice(_: Sequence[str], tries: int) -> bool:
        return tries < 2

    patient = replace(house, patience=twice)
    assert [await patient.wait(("i1",), tries) for tries in range(3)] == [True, True, False]


async def judged(
    storage: SqliteStores,
    force: Forced,
    call: PolicyCall = CALL,
    code: Ruling | None = None,
    *,
    inside: bool = False,
) -> Ruling:
    await storage.threads.ensure(a_thread(thread_id=thread_of(call.thread)))
    return await a_house(storage, force).rule(call, code, inside=inside)


def terms_in(ruling: Ruling) -> Terms:
    assert isinstance(ruling, Ask)
    terms = Terms.from_text(ruling.terms)
    assert (ruling.bound, ruling.rule) == (terms.digest, terms.rule)
    return terms


async def test_a_rule_that_allows_says_who_decides_a_doubt(storage: SqliteStores) -> None:
    small = replace(CALL, arguments={"x": 1})
    ruling = await judged(storage, forced(BIG, groups=GROUPS, defaults=BY_SRE), small)
    assert isinstance(ruling, Allow)
    assert ruling.rule == "default"
    terms = Terms.from_text(ruling.terms)
    assert (terms.rules, list(terms.requirements)) == (("default",), ["sre"])


async def test_where_no_default_names_anybody_nobody_decides_a_doubt(storage: SqliteStores) -> None:
    small = replace(CALL, arguments={"x": 1})
    assert await judged(storage, forced(BIG, groups=GROUPS), small) == Allow(rule="default")


@pytest.mark.parametrize(
    ("code", "names", "needed"),
    [
        (Ask(rule="second", approvers=("U0LIA",)), ("code:second",), ["code:second"]),
        (Ask(rule="gate"), ("code:gate",), ["sre"]),
    ],
)
async def test_inside_of_a_gate_that_asked_only_what_code_says_counts(
    storage: SqliteStores, code: Ask, names: tuple[str, ...], needed: list[str]
) -> None:
    force = forced(BIG, groups=GROUPS, defaults=BY_SRE)
    terms = terms_in(await judged(storage, force, code=code, inside=True))
    assert (terms.rules, list(terms.requirements)) == (names, needed)
    assert terms.requirements[needed[0]].count == 1


async def test_inside_a_gate_takes_the_people_of_the_rule_where_no_default_names_anybody(
    storage: SqliteStores,
) -> None:
    force = forced(BIG, groups=GROUPS)
    terms = terms_in(await judged(storage, force, code=Ask(rule="gate"), inside=True))
    assert terms.requirements["sre"].count == 2


async def test_inside_a_denial_of_the_file_stands(storage: SqliteStores) -> None:
    force = forced(default={"deny": "Never."})
    ruling = await judged(storage, force, code=Ask(rule="gate"), inside=True)
    assert ruling == Deny("Never.", rule="default")


async def test_a_group_is_the_union_of_what_slack_says() -> None:
    directory = FakeDirectory()
    directory.groups["S1"] = frozenset({"U2"})
    directory.channels["C1"] = frozenset({"U3"})
    members = GroupMembers(directory, FakeClock())
    group = Group(users=("U1",), usergroups=("S1",), channels=("C1",))
    assert await members(group) == frozenset({"U1", "U2", "U3"})
    assert await members(Group(here=True)) is None
    directory.is_down = True
    assert await members(group) is None
    assert await members(Group(users=("U1",))) == frozenset({"U1"})


async def entries(storage: SqliteStores) -> list[AuditEntry]:
    return list(await storage.audit.of_thread(THREAD, limit=100))


@pytest.mark.parametrize(("size", "is_known"), [(500, True), (501, False)])
async def test_nobody_knows_who_is_in_a_group_of_a_large_channel(
    size: int, *, is_known: bool
) -> None:
    directory = FakeDirectory()
    directory.channels["C1"] = frozenset(f"U{number}" for number in range(size))
    members = GroupMembers(directory, FakeClock())
    assert (await members(Group(channels=("C1",))) is not None) is is_known


async def test_what_a_rule_settles_is_on_record_once(storage: SqliteStores) -> None:
    house = a_house(storage, forced())
    for _ in range(2):
        await house.note(CALL, Allow(rule="default"))
    await house.note(CALL, Deny("no", rule="stop"))
    trail = await entries(storage)
    assert [entry.action for entry in trail] == ["allowed", "denied"]
    detail = trail[0].detail
    assert (detail["rule"], detail["tool"], detail["policy"]) == ("default", "pay", "f1")
    assert trail[1].detail["reason"] == "no"


async def test_a_secret_argument_is_not_on_record(storage: SqliteStores) -> None:
    house = a_house(storage, forced())
    call = replace(CALL, arguments={"password": "hunter2"}, secret=("password",))
    await house.note(call, Allow(rule="default"))
    (entry,) = await entries(storage)
    assert "hunter2" not in str(entry.detail)


async def test_the_policy_of_the_settings_lets_ungated_calls_pass_unasked(
    storage: SqliteStores,
) -> None:
    force = forced()
    assert not a_house(storage, force).allows_ungated
    force.is_settings = True
    assert a_house(storage, force).allows_ungated


# ---- the policy of the settings ------------------------------------------------------------------

OF_SETTINGS = {
    "name": "settings",
    "when": {"gated": True, "channel": ["C0OPS"]},
    "then": {"ask": {**BY_SRE, "expires": "2h"}},
}
ELSEWHERE = {"name": "elsewhere", "when": {"gated": True}, "then": {"deny": "Not in this channel."}}
IN_PAY = replace(CALL, thread="T1:C0PAY:18.1#1")


def settings() -> Forced:
    force = forced(OF_SETTINGS, ELSEWHERE, groups=GROUPS)
    force.is_settings = True
    return force


@pytest.mark.parametrize("gated", [False, True])
async def test_people_of_the_settings_decide_where_a_rule_of_code_names_nobody(
    storage: SqliteStores, *, gated: bool
) -> None:
    code = Ask(rule="small", kind="review")
    ruling = await judged(storage, settings(), replace(CALL, gated=gated), code)
    terms = terms_in(ruling)
    assert (terms.rules, list(terms.requirements), terms.edit) == (("code:small",), ["sre"], "yes")


@pytest.mark.parametrize("gated", [False, True])
async def test_where_a_rule_of_code_names_people_the_settings_add_none(
    storage: SqliteStores, *, gated: bool
) -> None:
    code = Ask(rule="big", approvers=("U0LIA",))
    ruling = await judged(storage, settings(), replace(CALL, gated=gated), code)
    terms = terms_in(ruling)
    assert list(terms.requirements) == ["code:big"]
    assert terms.groups["code:big"] == Group(users=("U0LIA",))
    assert terms.expires_s == 7200


async def test_a_gate_in_a_rule_of_code_asks_the_people_of_the_settings(
    storage: SqliteStores,
) -> None:
    gated = replace(CALL, gated=True)
    code = Ask(rule="gate", kind="review")
    terms = terms_in(await judged(storage, settings(), gated, code, inside=True))
    assert (list(terms.requirements), terms.edit) == (["sre"], "yes")


async def test_what_a_rule_of_code_allows_the_settings_allow(storage: SqliteStores) -> None:
    for call in (replace(CALL, gated=True), IN_PAY):
        assert isinstance(await judged(storage, settings(), call, Allow("small")), Allow)


@pytest.mark.parametrize(
    "code", [Ask(rule="gate"), Ask(rule="small"), Ask(rule="big", approvers=("U0LIA",))]
)
async def test_what_asks_people_is_denied_outside_of_the_channels_of_the_settings(
    storage: SqliteStores, code: Ask
) -> None:
    ruling = await judged(storage, settings(), replace(IN_PAY, gated=True), code)
    assert ruling == Deny("Not in this channel.", rule="elsewhere")


async def test_of_a_rotation_whoever_is_on_duty_is_in_the_group() -> None:
    clock = FakeClock()
    start = datetime.fromtimestamp(clock() / 1000, UTC).replace(tzinfo=None)
    duty = Rotation(start=start, every="1d", people=("U1", "U2"), timezone="UTC")
    members = GroupMembers(FakeDirectory(), clock)
    group = Group(users=("U3",), rotation=duty)
    clock.forward(hours=23)
    assert await members(group) == frozenset({"U1", "U3"})
    clock.forward(hours=2)
    assert await members(group) == frozenset({"U2", "U3"})
    clock.forward(hours=-26)
    assert await members(group) == frozenset({"U3"})
    nowhere = duty.model_copy(update={"timezone": "Mars/Olympus"})
    assert await members(Group(rotation=nowhere)) is None
