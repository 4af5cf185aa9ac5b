"""The cards of programs' requests: who asks, who decides, and what people can do there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.api.problems import ApiProblemError
from bot.errors import DirectoryError, NotApproverError
from bot.layout.action_ids import ActionId
from bot.records.approval import Approval, Status
from bot.slack.cards.card_for import card_for
from bot.slack.side_messages.notices import group_card
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import (
    ASKS,
    OLGA,
    QUESTION,
    a_caller,
    a_request,
    acts_of,
    an_office,
    the_record,
)
from tests.unit.bot.office import ADA, BEN, BOT, CHANNEL, Office

GROUP: dict[str, Any] = {"where": {"group": "run-7"}}


def card_of(approval: Approval) -> str:
    """What people see of an approval, in mrkdwn."""
    return json.dumps(card_for(approval, approvers_text="<@UBEN>").blocks, ensure_ascii=False)


@pytest.mark.parametrize(
    ("kind", "edit", "has_button"),
    [
        ("approval", "yes", False),
        ("approval", "no", False),
        ("edit", "no", False),
        ("edit", "yes", True),
    ],
)
async def test_people_edit_if_both_the_program_and_the_rule_let_them(
    storage: SqliteStores, kind: str, edit: str, has_button: bool
) -> None:
    """Check 17: the program could not take an edit, or the rule forbids it."""
    ask = {**ASKS["then"]["ask"], "edit": edit}
    office = an_office(storage, {**ASKS, "then": {"ask": ask}})
    record = await the_record(office, await a_request(office, kind=kind))
    assert (f'"{ActionId.EDIT}"' in card_of(record)) is has_button


async def test_all_whose_words_led_to_a_request_are_named_and_cannot_approve(
    storage: SqliteStores,
) -> None:
    """Check 19: the owner, the named person, and who answered in the same group."""
    groups = {"sre": {"users": [ADA, BEN, OLGA, "UMIA"]}}
    office = an_office(storage, groups=groups)
    office.directory.add("UMIA")
    asking = await a_request(office, key="a", **QUESTION, **GROUP)
    await office.decide(
        await the_record(office, asking), Status.ANSWERED, by=BEN, answers=["Tuesday"]
    )
    named = a_caller(requester="named")
    request = await a_request(office, named, key="b", requested_for=ADA, **GROUP)
    record = await the_record(office, request)
    for person in (OLGA, ADA, BEN):
        with pytest.raises(NotApproverError):
            await office.decide(record, by=person)
    shown = card_of(record)
    assert f"<@{OLGA}>" in shown
    assert office.directory.people[ADA].name in shown
    assert f"<@{BEN}>" in shown
    await office.decide(record, by="UMIA")
    assert (await the_record(office, request)).status is Status.APPROVED


async def test_a_card_names_program_owner_and_person_and_mentions_no_claimed_person(
    office: Office,
) -> None:
    """Check 20: a mention would let a program notify whom it likes."""
    office.directory.add("UFAR", name="Fara *Far*")
    named = a_caller(requester="named")
    record = await the_record(office, await a_request(office, named, requested_for="UFAR"))
    card = card_for(record, approvers_text="<@UBEN>")
    shown = card_of(record)
    assert "the program ci (of <@UOLGA>) for" in shown
    assert "Fara" in shown
    assert "as it says" in shown
    assert "<@UFAR>" not in shown + card.text


@pytest.mark.parametrize(
    ("channels", "remedy"),
    [
        (("D1",), "Give the key a channel, and name it in where.channel."),
        (("D1", CHANNEL), "Name another channel of the key in where.channel."),
    ],
)
async def test_a_direct_message_whose_people_decide_is_refused_with_the_remedy(
    storage: SqliteStores, channels: tuple[str, ...], remedy: str
) -> None:
    """Members of the channel decide, and in a direct message that is the owner alone."""
    rule = {"name": "all", "when": {}, "then": {"ask": {"approve": [{"from": ["members"]}]}}}
    office = an_office(storage, rule, groups={"members": {"here": True}})
    office.directory.channels["D1"] = frozenset({OLGA, BOT})
    caller = a_caller(channels=channels, is_personal=True)
    with pytest.raises(ApiProblemError) as refused:
        await a_request(office, caller)
    (fault,) = refused.value.faults
    assert (refused.value.code, fault.pointer) == ("invalid", "/where/channel")
    assert fault.detail == f"Members of the channel decide, and this is a direct message. {remedy}"
    assert office.notifier.cards == {}


@pytest.mark.parametrize("where", [None, {"group": "run-7"}], ids=["channel", "group"])
async def test_a_request_that_nobody_can_decide_says_so_once_where_its_card_would_be(
    storage: SqliteStores, where: dict[str, Any] | None
) -> None:
    """Check 11: it fails at once, and people see why, below the first message of its group."""
    office = an_office(storage, groups={"sre": {"users": [OLGA]}})
    request = await a_request(office, where=where)
    assert (request.status, request.failure and request.failure.code) == (
        "failed",
        "nobody-can-decide",
    )
    for _ in range(3):
        await office.later(minutes=10)
        assert (await a_request(office, where=where)).id == request.id
    assert office.notifier.posts == [request.id]
    record = await the_record(office, request)
    assert record.thread_card.ts
    assert [title for _, title, _ in office.notices.groups] == (["run-7"] if where else [])
    assert (record.thread_ts != record.thread_card.ts) is bool(where)
    assert (record.open, record.due_ms) == (False, None)
    assert await acts_of(office, record) == ["undecidable"]


async def test_a_program_reads_names_of_those_who_cannot_decide(storage: SqliteStores) -> None:
    office = an_office(storage, groups={"sre": {"usergroups": ["S00000001"]}})
    office.directory.groups["S00000001"] = frozenset({OLGA})
    failure = (await a_request(office)).failure
    assert failure is not None
    assert "s00000001" in failure.detail  # as the directory calls it
    assert "<" not in failure.detail


@pytest.mark.parametrize("changes", [{}, QUESTION], ids=["call", "question"])
async def test_a_look_up_that_fails_stores_nothing_and_the_key_works_afterwards(
    office: Office, changes: dict[str, Any]
) -> None:
    """Check 11."""
    office.directory.is_down = True
    with pytest.raises(DirectoryError):
        await a_request(office, **changes)
    assert await office.storage.approvals.count({}) == 0
    assert office.notifier.cards == {}
    office.directory.is_down = False
    assert (await a_request(office, **changes)).status == "pending"
    assert CHANNEL in {card.channel_id for card in office.notifier.cards.values()}


async def test_the_card_of_a_personal_program_names_its_owner(office: Office) -> None:
    request = await a_request(office, a_caller(is_personal=True))
    record = await the_record(office, request)
    assert "Requested by <@UOLGA> through ci." in card_of(record)
    with pytest.raises(NotApproverError):
        await office.decide(record, by=OLGA)


async def test_the_first_message_of_a_group_shows_the_programs_words_as_text(
    office: Office,
) -> None:
    record = await the_record(office, await a_request(office, **GROUP))
    card = group_card(record, "Release <!channel> *1.4.2* <@UADA>")
    shown = json.dumps([card.blocks, card.text])
    assert '"text": "Release <!channel> *1.4.2* <@UADA>"' in shown  # literal, in rich text
    assert card.text.startswith("Release &lt;!channel&gt; *1.4.2* &lt;@UADA&gt;.")
    assert "the program ci (of <@UOLGA>)" in shown
