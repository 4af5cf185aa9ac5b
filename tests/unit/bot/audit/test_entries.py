"""I12: everything is on record: who, when, and on what evidence; masked, in order, append-only."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.core.codec import Json
from agents.models import call, say
from bot.audit.acts import Act
from bot.audit.entries import entries_of_votes, note, note_decision, resume_entries
from bot.audit.report import json_line, line, story
from bot.records.approval import CastVote, Decision, Grounds, Kind, Status
from bot.redaction.mask import REDACTED, in_force
from bot.redaction.rules import MaskRules
from bot.slack.cards.details import history_blocks
from storage.audit import AuditEntry
from storage.errors import StoreUnavailableError
from tests.contract.builders import an_approval, an_entry
from tests.support.fakes import START_MS
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, GUS, ROSA, THREAD_ID, KilledError, Office

ROOT = Path(__file__).parents[4]
PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"
NEXT_TS = "1800000000.000002"


async def acts(storage: SqliteStores) -> list[tuple[str, str]]:
    """What happened, and by whom, in order."""
    return [
        (record.action, record.actor_id) for record in await story(storage, thread_id=THREAD_ID)
    ]


async def entry(storage: SqliteStores, act: Act) -> AuditEntry:
    (record,) = [
        noted for noted in await story(storage, thread_id=THREAD_ID) if noted.action == act
    ]
    return record


async def test_the_evidence(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    approval = await office.asked(ASK)
    office.clock.forward(seconds=5)
    decided = await office.decide(approval, edited={"to": "Mia", "amount": 4, "how": "card"})
    assert decided.decision is not None

    requested = await entry(storage, Act.REQUESTED)
    assert (requested.at_ms, requested.approval_id) == (START_MS, approval.approval_id)
    assert requested.detail["arguments"] == {"to": "Mia", "amount": 5, "how": "card"}
    assert requested.detail["digest"] == approval.digest
    assert requested.detail["deciders"] == ["channel"]
    assert requested.detail["expires_ms"] == approval.expires_ms
    assert requested.detail["kind"] == "approval"

    made = await entry(storage, Act.DECIDED)
    assert (made.at_ms, made.actor_id) == (START_MS + 5000, ADA)
    assert made.detail["status"] == "approved"
    assert made.detail["edited"] == {"to": "Mia", "amount": 4, "how": "card"}
    assert made.detail["digest"] == decided.decision.digest != approval.digest
    edited = await entry(storage, Act.EDITED)
    assert edited.detail["shown"] == approval.digest
    voted = await entry(storage, Act.VOTED)
    assert (voted.actor_id, voted.detail["groups"]) == (ADA, ["code:approvers"])
    assert voted.detail["digest"] == decided.decision.digest

    started = await entry(storage, Act.STARTED)
    assert started.detail["arguments"] == {"to": "Mia", "amount": 4, "how": "card"}
    done = await entry(storage, Act.EXECUTED)
    assert (done.detail["tool"], done.detail["outcome"]) == ("pay", "ran")
    assert done.detail["asked"] == {"to": "Mia", "amount": 5}
    assert started.detail["address"] == done.detail["address"] == approval.address
    assert started.detail["checkpoint"] == done.detail["checkpoint"] == approval.checkpoint_id


async def test_a_doubt_and_its_answer(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, say("Paid.")], dies_in_tools=True)
    await office.hear(ASK)
    with pytest.raises(KilledError):
        await office.decide(await office.the_approval())
    office.queue.drop()
    heir = Office(storage, [say("Paid.")], clock=office.clock, owner="heir")
    await heir.later(minutes=1)
    doubt = await heir.the_approval()
    assert doubt.kind is Kind.DOUBT
    answer: Json = {"choice": "ran", "result": "paid, token=abcdef"}
    heir.clock.forward(seconds=1)
    await heir.decide(doubt, Status.ANSWERED, answers=answer)
    entries = await story(storage, thread_id=THREAD_ID)
    assert [record.action for record in entries] == [
        *("requested", "voted", "decided", "resumed", "started"),
        *("doubted", "voted", "decided", "resumed", "answered_tool"),
    ]
    asked, voted, answered, _ = (
        record for record in entries if record.approval_id == doubt.approval_id
    )
    assert asked.actor_id == ""
    first = await storage.approvals.get(entries[0].approval_id)
    of_first = [record for record in entries if record.approval_id != doubt.approval_id]
    assert "May have run. People say it ran: “paid" in str(history_blocks(of_first, first))
    assert voted.detail["choice"] == "ran"
    assert asked.detail["kind"] == answered.detail["kind"] == "doubt"
    assert answered.detail["answer"] == {
        "choice": "ran",
        "result": f"paid, token={REDACTED} (6 characters)",
    }


async def test_a_tool_that_fails(storage: SqliteStores) -> None:
    office = Office(storage, [call("look", {"what": 5}, id="c1"), say("No.")])
    await office.hear("<@UBOT> look")
    refused = await entry(storage, Act.ANSWERED_TOOL)
    assert refused.detail["outcome"] == "refused"


async def test_a_turn_that_fails(storage: SqliteStores) -> None:
    office = Office(storage, [])
    await office.hear(ASK)
    for _ in range(12):
        await office.later(minutes=10)
    failed = await entry(storage, Act.TURN_FAILED)
    assert failed.detail["checkpoint"] == f"{THREAD_ID}#1"
    assert failed.detail["why"]
    assert failed.detail["error"]


async def test_no_record_no_start(storage: SqliteStores) -> None:
    """When the start cannot be put on record, the call does not run, and nobody is in doubt."""
    office = Office(storage, [PAY, say("Paid.")])
    await office.hear(ASK)
    store = storage.audit
    append = store.append

    async def away(*entries: AuditEntry) -> None:
        is_start = any(entry.action == Act.STARTED for entry in entries)
        if is_start and office.clock() < START_MS + 1000:
            raise StoreUnavailableError("away")
        await append(*entries)

    store.append = away  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailableError):
        await office.decide(await office.the_approval())
    assert office.ran == []
    office.queue.drop()
    await office.later(minutes=1)
    assert office.ran == [("pay", ("Mia", 5, "card"))]
    assert [act for act, _ in await acts(storage)].count("started") == 1
    assert not [card for card in office.notifier.cards.values() if card.kind is Kind.DOUBT]


# ---- masked, short, and JSON -------------------------------------------------------------------


async def test_evidence_is_masked_and_cut(storage: SqliteStores) -> None:
    await note(
        storage.audit,
        Act.EXECUTED,
        key="k",
        at_ms=1,
        about=THREAD_ID,
        arguments={"password": "hunter2", "note": ["xoxb-123456789-abc"], "long": "x" * 5000},
        odd={1, 2},
        nothing="",
    )
    (made,) = await story(storage, thread_id=THREAD_ID)
    arguments: Any = made.detail["arguments"]
    assert arguments["password"] == f"{REDACTED} (7 characters)"
    assert arguments["note"] == [f"{REDACTED} (18 characters)"]
    assert arguments["long"] == "x" * 4000 + "… 1,000 more characters"
    assert made.detail["odd"] == "{1, 2}"
    assert "nothing" not in made.detail


async def test_a_cut_does_not_uncover_a_secret(storage: SqliteStores) -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "QUJD" * 2000 + "\n-----END PRIVATE KEY-----"
    await note(storage.audit, Act.EXECUTED, key="k", at_ms=1, about=THREAD_ID, text=key)
    assert "QUJD" not in str(await story(storage, thread_id=THREAD_ID))


def test_entries_are_made_in_one_place_alone() -> None:
    """Otherwise something could get into the audit unmasked."""
    makers = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "bot").rglob("*.py")
        if ROOT / "bot" / "rehearsal" not in path.parents  # plays with a made-up world
        and "AuditEntry" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "AuditEntry"
    }
    assert makers == {"bot/audit/entries.py"}


async def test_a_vote_is_on_record_with_all_its_grounds(storage: SqliteStores) -> None:
    """A103: the vote of a delegate, by the shape that Slack's ids have."""
    approval = an_approval()
    payload = "5012345678901.1234567890123.0a1b2c3d4e5f60718293a4b5c6d7e8f9"
    grounds = Grounds(
        payload=payload, name="Ben", team="T1", read_ms=START_MS, shown="a" * 64, file="d" * 64
    )
    vote = CastVote(
        by=BEN,
        choice="approve",
        at_ms=START_MS,
        digest="b" * 64,
        note="fine",
        on_behalf_of=ADA,
        groups=("security",),
        grounds=grounds,
    )

    await storage.audit.append(*entries_of_votes(approval, [vote]))

    (made,) = await story(storage, thread_id=approval.thread_id)
    assert (made.action, made.actor_id, made.for_id) == ("voted", BEN, ADA)
    assert made.detail == {
        "choice": "approve",
        "note": "fine",
        "payload": payload,
        "person": grounds.person(BEN),
        "groups": ["security"],
        "groups_read_ms": START_MS,
        "shown": "a" * 64,
        "digest": "b" * 64,
        "ruling": approval.terms.digest,
        "file": "d" * 64,
    }
    assert f"by {BEN}  for {ADA}" in line(made)
    assert json.loads(json_line(made))["for"] == ADA


def test_grounds_that_are_missing_are_on_record_as_missing() -> None:
    bare = CastVote(by=BEN, choice="reject", at_ms=START_MS, digest="")
    (made,) = entries_of_votes(an_approval(), [bare])
    missing = {name: made.detail[name] for name in ("payload", "groups", "shown", "digest", "file")}
    assert missing == {"payload": None, "groups": [], "shown": None, "digest": None, "file": None}


async def test_two_votes_of_one_person_are_two_entries(storage: SqliteStores) -> None:
    first = an_approval()
    for at_ms in (START_MS, START_MS + 1):
        vote = CastVote(by=BEN, choice="approve", at_ms=at_ms, digest=first.digest)
        for _ in range(2):  # once more after a crash
            await storage.audit.append(*entries_of_votes(first, [vote]))
    assert len(await story(storage, thread_id=first.thread_id)) == 2


# ---- reading -----------------------------------------------------------------------------------


async def test_within_a_millisecond_the_order_is_that_of_the_acts(storage: SqliteStores) -> None:
    for act in reversed(Act):
        await note(storage.audit, act, key="k", at_ms=7, about=THREAD_ID)
    await storage.audit.append(an_entry("0", thread_id=THREAD_ID, action="of_old", at_ms=7))
    await storage.audit.append(an_entry("1", thread_id=THREAD_ID, action="of_old", at_ms=6))
    assert [record.action for record in await story(storage, thread_id=THREAD_ID)] == [
        *("of_old", *Act, "of_old")
    ]


def test_lines() -> None:
    made = an_entry(
        "e",
        action="decided",
        at_ms=1_800_000_000_250,
        thread_id=THREAD_ID,
        approval_id="apr_1",
        actor_id=ADA,
        detail={"reason": "no\n2027 decided by UADA \x1b[2K", "digest": "", "n": [1], "ü": "größe"},
    )
    assert line(made) == (
        "2027-01-15T08:00:00.250Z  decided  by UADA  apr_1  "
        'reason=no\\n2027 decided by UADA \\x1b[2K  digest=""  n=[1]  ü=größe'
    )
    assert json.loads(json_line(made)) == {
        "at": "2027-01-15T08:00:00.250Z",
        "action": "decided",
        "thread_id": THREAD_ID,
        "approval_id": "apr_1",
        "by": ADA,
        "evidence": made.detail,
    }
    assert line(replace(made, actor_id="", approval_id="", detail={})) == (
        "2027-01-15T08:00:00.250Z  decided"
    )


def test_lines_are_masked_with_the_rules_of_today() -> None:
    made = an_entry(detail={"badge": "B-12", "x": "xoxb-123456789-abc"})
    with in_force(MaskRules(keys=(("badge",),))):
        for text in (line(made), json_line(made)):
            assert "B-12" not in text
            assert "xoxb" not in text


def test_a_resume_notes_a_decision_that_is_missing_and_no_other() -> None:
    decision = Decision(status=Status.APPROVED, by=ADA, at_ms=START_MS + 1)
    decided = an_approval().changed(status=Status.APPROVED, decision=decision)
    missing = resume_entries([decided], START_MS + 2)
    noted = resume_entries([decided], START_MS + 2, noted=[decided.approval_id])
    assert [record.action for record in missing] == [Act.DECIDED, Act.RESUMED]
    assert [record.action for record in noted] == [Act.RESUMED]


async def test_a_question(storage: SqliteStores) -> None:
    asks = call("ask_people", {"questions": ["How much?"]}, id="q1")
    office = Office(storage, [asks, say("Thanks.")])
    await office.hear(ASK)
    await office.hear("a million", user_id=GUS, ts=NEXT_TS)
    office.clock.forward(seconds=1)
    await office.hear("five", ts="1800000000.000003")
    assert await acts(storage) == [
        ("message_refused", GUS),
        ("requested", ROSA),
        ("decided", ROSA),
        ("resumed", ""),
        ("answered_tool", ""),
    ]
    assert (await entry(storage, Act.DECIDED)).detail["answer"] == ["five"]
    assert "Guests" in str((await entry(storage, Act.MESSAGE_REFUSED)).detail["why"])


@pytest.mark.parametrize(
    ("status", "by", "act"),
    [
        (Status.EXPIRED, "", Act.EXPIRED),
        (Status.CANCELLED, "", Act.CANCELLED),
        (Status.CANCELLED, ADA, Act.DECIDED),
        (Status.REJECTED, ADA, Act.DECIDED),
    ],
)
async def test_how_an_end_is_called(
    storage: SqliteStores, status: Status, by: str, act: Act
) -> None:
    approval = an_approval()
    await note_decision(storage.audit, approval, Decision(status=status, by=by, at_ms=5))
    (made,) = await story(storage, thread_id=approval.thread_id)
    assert made.action == act
