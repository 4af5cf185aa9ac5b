"""`countersign pending`: list open requests, and ask again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from bot.clock import system_clock
from bot.commands.call import Call
from bot.errors import BotError
from bot.maintenance.pending import PendingQuery, PendingRequests, why_not
from bot.policy.progress import progress_of
from bot.records.approval import Approval, Kind
from bot.redaction.mask import mask_text
from bot.redaction.rules import in_force
from bot.words.times import utc


async def execute(call: Call) -> None:
    """Run the command."""
    with in_force(call.redact):
        async with call.open_beside() as storage:
            requests = PendingRequests(storage, system_clock)
            if call.arguments.part == "reask":
                await _reask(call, requests)
            else:
                await _list(call, requests)


async def _list(call: Call, requests: PendingRequests) -> None:
    given = call.arguments
    query = PendingQuery(
        user=given.user,
        rule=given.rule,
        is_stuck=given.stuck,
        outdated_by=_file_hash(call) if given.outdated else "",
    )
    approvals = await requests.find_pending(query)
    for approval in approvals:
        call.say(pending_line(approval))
    if not approvals:
        call.say("No open requests.")


async def _reask(call: Call, requests: PendingRequests) -> None:
    given = call.arguments
    if bool(given.id) is given.outdated:
        raise BotError("give a request ID, or --outdated")
    if given.id:
        await requests.reask(given.id)
        call.say(f"{given.id}: asked again.")
        return
    approvals = await requests.find_pending(PendingQuery(outdated_by=_file_hash(call)))
    for approval in approvals:
        if why := why_not(approval):
            call.say(f"{approval.approval_id}: unchanged: {why}")
            continue
        try:
            await requests.reask(approval.approval_id)
        except BotError as error:  # the request was decided or closed since
            call.say(str(error))
        else:
            call.say(f"{approval.approval_id}: asked again.")
    if not approvals:
        call.say("All open requests use the current policy.")


def _file_hash(call: Call) -> str:
    """Return the hash of the policy file.

    Raises:
        BotError: No policy file is set, or it cannot be read.
    """
    path = call.environ.get("COUNTERSIGN_POLICY", "").strip()
    if not path:
        raise BotError("set COUNTERSIGN_POLICY to the policy file to find outdated requests")
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise BotError(f"the policy file cannot be read: {error.strerror}") from error


def pending_line(approval: Approval) -> str:
    """Format a request for a terminal: id, expiry, rule, title, progress, missing approvers."""
    progress = progress_of(approval)
    waits = ", ".join(f"{tally.name} {tally}" for tally in progress.tallies)
    if approval.kind is Kind.DOUBT:
        waits = "whether it ran"
    elif approval.kind is Kind.QUESTION:
        waits = "an answer"
    title = json.dumps(mask_text(approval.title), ensure_ascii=False)
    words = [approval.approval_id, f"until {utc(approval.expires_ms)}"]
    words += [approval.rule] if approval.rule else []
    words += [title, f"waits for {waits}" if waits else ""]
    words += [f"in stage {progress.stage}"] if progress.stage else []
    words += [f"stuck: {json.dumps(approval.stuck, ensure_ascii=False)}"] if approval.stuck else []
    return "  ".join(word for word in words if word)
