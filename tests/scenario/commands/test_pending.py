"""`countersign pending`: what waits, and asking anew, beside the bot and on each database (8.5)."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bot.approvals.outcome import ANEW
from bot.records.approval import Approval, Kind, Status, StoredEdits
from bot.records.terms import Group, Requirement, Rotation, Stage, Terms
from bot.stores import Stores
from tests.contract.builders import THREAD_ID, an_approval
from tests.scenario.commands.test_upkeep import Place, place
from tests.support.decided import decide
from tests.support.named import NOBODY

__all__ = ["place"]

FAR_MS = 4_000_000_000_000


def terms(*users: str, rotation: Rotation | None = None) -> Terms:
    group = Group(users=users, usergroups=("S0SRE",), rotation=rotation)
    return Terms(
        rules=("default", "second"),
        stages=(Stage(approve=(Requirement(name="sre", groups=("sre",), count=2),)),),
        groups={"sre": group},
    )


def waiting(number: int, **changes: object) -> Approval:
    fields: dict[str, object] = {
        "interrupt_id": f"{number:032x}",
        "title": f"Do {number}",
        "rule": "default + second",
        "terms": terms("U1"),
        "expires_ms": FAR_MS - number,
        "policy_file": "old",
        **changes,
    }
    return an_approval(approval_id=f"apr_{number:032x}", **fields)


def ids(lines: list[str]) -> list[int]:
    return [int(line.split()[0].removeprefix("apr_"), 16) for line in lines]


def test_what_waits_is_listed_by_deadline_and_choice(place: Place, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1")
    place.environ["COUNTERSIGN_POLICY"] = str(policy)
    now = hashlib.sha256(policy.read_bytes()).hexdigest()

    async def work(storage: Stores) -> None:
        for approval in (
            waiting(1),
            waiting(2, stuck="nobody is left", policy_file=now),
            waiting(3, rule="other", terms=terms("U2"), policy_file=now),
            waiting(4, kind=Kind.QUESTION, rule="", terms=NOBODY, expires_ms=1),
            waiting(5, status=Status.EXPIRED),
        ):
            await storage.approvals.insert(approval)
        lines = await place.type("pending")
        assert ids(lines) == [4, 3, 2, 1]
        assert lines[3].split("  ")[2:] == ["default + second", '"Do 1"', "waits for sre 0 of 2"]
        assert "until 2096-10-02 07:06 UTC" in lines[3]
        assert "waits for an answer" in lines[0]
        (stuck,) = await place.type("pending", "--stuck")
        assert stuck.endswith('stuck: "nobody is left"')
        assert ids(await place.type("pending", "--rule", "second")) == [2, 1]
        assert ids(await place.type("pending", "--user", "U2")) == [3]
        assert ids(await place.type("pending", "--user", "S0SRE")) == [3, 2, 1]
        assert ids(await place.type("pending", "--outdated")) == [1]
        assert await place.type("pending", "--rule", "nothing") == ["No open requests."]

    place.do(work)


def test_a_call_is_asked_anew_and_nothing_else_is(place: Place) -> None:
    async def work(storage: Stores) -> None:
        await storage.approvals.insert(waiting(1))
        await storage.approvals.insert(waiting(2, kind=Kind.DOUBT))
        await storage.approvals.insert(waiting(3, edits=StoredEdits(original={})))
        assert await place.type("pending", "reask", f"apr_{1:032x}") == [
            f"apr_{1:032x}: asked again."
        ]
        ended = await storage.approvals.get(f"apr_{1:032x}")
        assert ended.decision is not None
        assert (ended.status, ended.open, ended.decision.reason) == (Status.SUPERSEDED, True, ANEW)
        assert (await storage.threads.get(THREAD_ID)).due_ms is not None
        entries = await storage.audit.of_thread(THREAD_ID, limit=9)
        assert "superseded" in [entry.action for entry in entries]
        for number in (1, 2, 3, 9):
            await place.type("pending", "reask", f"apr_{number:032x}", fails=True)
        await place.type("pending", "reask", fails=True)

    place.do(work)


def test_all_that_another_policy_file_asked_is_asked_anew(place: Place, tmp_path: Path) -> None:
    async def work(storage: Stores) -> None:
        await storage.approvals.insert(waiting(1))
        await storage.approvals.insert(waiting(2, edits=StoredEdits(original={})))
        await place.type("pending", "reask", "--outdated", fails=True)  # under which file?
        place.environ["COUNTERSIGN_POLICY"] = str(tmp_path / "none.yaml")
        await place.type("pending", "--outdated", fails=True)
        policy = tmp_path / "policy.yaml"
        policy.write_text("version: 1")
        place.environ["COUNTERSIGN_POLICY"] = str(policy)
        first, second = sorted(await place.type("pending", "reask", "--outdated"))
        assert first.endswith("asked again.")
        assert "edited" in second
        ended = (await storage.approvals.get(f"apr_{1:032x}")).decision
        assert ended is not None
        await decide(storage.approvals, f"apr_{2:032x}", ended, digest=waiting(2).digest)
        (none,) = await place.type("pending", "reask", "--outdated")
        assert none.startswith("All open requests")

    place.do(work)
