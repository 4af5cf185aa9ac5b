"""`countersign audit`: print, verify, export and prune the audit."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches

from bot.approvals.outcome import outcome_in
from bot.audit.acts import Act
from bot.audit.report import (
    AuditQuery,
    exported,
    fits,
    in_order,
    json_line,
    line,
    printable,
    story,
    when,
)
from bot.clock import milliseconds, system_clock
from bot.commands.call import Call, owner
from bot.commands.upkeep import clear_log
from bot.config.durations import LONGEST_RETENTION, parse_duration
from bot.errors import BotError
from bot.maintenance.audit_sealer import LATE, links, links_of, prune, verify
from bot.policy.values import PERSON
from bot.redaction.rules import in_force
from bot.stores import Stores
from bot.words.mrkdwn import untagged
from storage.audit import AuditEntry, Link
from storage.chain import Head, Verdict, Wrong
from storage.errors import RecordNotFoundError

_LEAST = timedelta(days=31)
"""Minimum age of entries that can be pruned: longer than any approval can be pending."""
_HASH = re.compile(r"[0-9a-f]{64}")
_QUOTED = tuple("=+-@\t\r\n'")
"""First characters of cells that get an apostrophe in front of them.

A spreadsheet would evaluate these cells as a formula. A cell that begins with an apostrophe gets
another, so that readers can remove the first one and have the value.
"""
_WIDTH = 120
"""Longest line of the list, in characters."""
_RESULTS = ("status", "choice", "outcome")
"""Evidence of an entry that `--outcome` looks at."""
_FLAT = ("tool", "status", "choice", "reason", "note", "outcome")
"""Evidence with a column of its own in a CSV export."""


async def execute(call: Call) -> None:
    """Run the command."""
    with in_force(call.redact):  # the rules may be newer than the entries
        await _PARTS[call.arguments.part or ""](call)


async def _show(call: Call) -> None:
    arguments = call.arguments
    thread_id = "" if arguments.part else arguments.thread
    async with call.open_beside(read_only=True) as storage:
        try:
            entries = await story(storage, thread_id=thread_id, approval_id=arguments.approval)
        except RecordNotFoundError:  # the audit outlives the record of a forgotten thread
            if not (entries := await _entries_about(storage, arguments.approval)):
                raise
    for entry in entries:
        call.say(json_line(entry) if arguments.json else whole_line(entry))
    if not entries:
        raise BotError(f"no audit entries for {thread_id or arguments.approval}")


async def _entries_about(storage: Stores, approval_id: str) -> list[AuditEntry]:
    """Return the entries of an approval, from the whole audit."""
    return in_order(
        [link.entry async for link in links(storage) if link.entry.approval_id == approval_id]
    )


async def _list(call: Call) -> None:
    arguments = call.arguments
    query, table = _query(call), arguments.format == "csv"
    show = _FORMATS[arguments.format]
    is_empty = True
    async with call.open_beside(read_only=True) as storage:
        if table:
            call.say(_row(_HEADINGS))
        async for link in links(storage):
            if fits(link.entry, query) and arguments.outcome in {"", *result_words(link.entry)}:
                is_empty = False
                call.say(show(link))
    if is_empty and not arguments.format:
        call.say("No matching audit entries.")


def _query(call: Call) -> AuditQuery:
    """Return what the options ask for.

    Raises:
        BotError: The value of an option is no time, no person or no action.
    """
    arguments = call.arguments
    since_ms, until_ms = _moment(arguments.since), _moment(arguments.until)
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise BotError(f"--since {arguments.since} isn't before --until {arguments.until}")
    if arguments.by and not re.fullmatch(PERSON, arguments.by):
        raise BotError(
            f"--by: {arguments.by!r} isn't the ID of a person, such as U0ADALINDQ; "
            "copy it from the person's profile in Slack"
        )
    if arguments.action and arguments.action not in set(Act):
        near = get_close_matches(arguments.action, list(Act), n=1)
        hint = f"; did you mean {near[0]}?" if near else ", such as decided"
        raise BotError(f"--action: {arguments.action!r} isn't an action of the audit{hint}")
    return AuditQuery(
        since_ms=since_ms,
        until_ms=until_ms,
        user=arguments.by,
        action=arguments.action,
        tool=arguments.tool,
        thread_id=arguments.thread,
    )


def whole_line(entry: AuditEntry) -> str:
    """Format an entry with its evidence; a reason as people read it, without Slack's markup."""
    why = entry.detail.get("why")
    if isinstance(why, str):
        entry = replace(entry, detail={**entry.detail, "why": untagged(why, {})})
    return line(entry)


def short_line(entry: AuditEntry) -> str:
    """Format an entry for people: time, person, act, tool, outcome, and where it belongs."""
    who = printable(entry.actor_id or "bot")
    if entry.for_id:
        who += f" for {printable(entry.for_id)}"
    begin = f"{when(entry.at_ms, 'seconds')}  {who:<11}  {printable(entry.action):<16}"
    place = entry.approval_id or entry.thread_id
    end = printable(place) if place else ""
    tool = printable(entry.detail.get("tool") or "-")
    deleted = "(content deleted)" if entry.erased else ""
    middle = "  ".join(part for part in (tool, _result(entry), deleted) if part)
    room = max(0, _WIDTH - len(begin) - len(end) - 4)
    if len(middle) > room:
        middle = f"{middle[: room - 1]}…" if room else ""
    return "  ".join(part for part in (begin, middle, end) if part).rstrip()[:_WIDTH]


def _result(entry: AuditEntry) -> str:
    """Return the outcome; of a vote its choice, of a refusal its code."""
    result = outcome_in(entry) or entry.detail.get("choice") or entry.detail.get("code")
    return printable(str(result)) if result else ""


def result_words(entry: AuditEntry) -> set[str]:
    """Return the words by which `--outcome` finds an entry."""
    return {str(entry.detail.get(name)) for name in _RESULTS} | {_result(entry)}


async def _verify(call: Call) -> None:
    arguments = call.arguments
    async with call.open_beside(read_only=True) as storage:
        verdicts = await verify(
            storage,
            call.seal,
            head=_head(arguments.head),
            plain_until=_head(arguments.plain_until),
            team_id=arguments.team,
        )
        left = await storage.trail.unsealed()
        open_ones = await storage.trail.open_links(limit=1_000)
        strange = sum(not link.is_whole for link in open_ones)
        emptied = await storage.teams() - verdicts.keys()
    emptied -= {str(link.form["team"]) for link in open_ones}
    faults = [
        fault for team, verdict in verdicts.items() if (fault := _report(call, team, verdict))
    ]
    faults += [
        f"{team}: the audit log has no entries, but there are approvals: it was emptied"
        for team in sorted(emptied)
        if not arguments.team or team == arguments.team
    ]
    if arguments.head and not verdicts:
        faults.append("the audit log is empty, but you gave a head: entries are missing")
    if left.count:
        since = datetime.fromtimestamp(left.since_ms / 1_000, UTC)
        call.say(f"not sealed yet: {left.count}, since {since:%Y-%m-%d %H:%M:%S} UTC")
        if system_clock() - left.since_ms > milliseconds(LATE):
            faults.append("entries have been unsealed for more than a minute: is the bot running?")
    else:
        call.say("not sealed yet: none")
    if strange:
        were = "was" if strange == 1 else "were"
        faults.append(
            f"{_entries(strange, 'unsealed ')} {were} altered, or {were} written without the key"
        )
    if faults:
        raise BotError("\n".join(faults))


def _report(call: Call, team_id: str, verdict: Verdict) -> str:
    """Print the result of a valid chain; return the fault of an invalid one."""
    if verdict.fault is not None:
        fault = f"{team_id}: entry {verdict.fault.at} is {_WORDS[verdict.fault.wrong]}"
        if verdict.segments:
            named = ", ".join(map(str, verdict.segments))
            fault += f"; the end of the chain was damaged before entry {named}"
        is_unkeyed = verdict.fault.wrong is Wrong.UNKEYED
        return f"{fault}. {_PLAIN_REMEDY}" if is_unkeyed else fault
    call.say(f"{team_id}: {_entries(verdict.count)} verified; head {verdict.seq}:{verdict.hash}")
    if verdict.unkeyed and call.seal.key:
        call.say(
            f"{team_id}: {verdict.unkeyed} of them {_are(verdict.unkeyed)} sealed without a key"
        )
    return ""


_WORDS = {
    "altered": "altered",
    "missing": "missing",
    "displaced": "displaced",
    "unknown_key": "sealed with a key that is not in COUNTERSIGN_AUDIT_KEY",
    "unkeyed": "sealed without a key, though COUNTERSIGN_AUDIT_KEY is set",
}
_PLAIN_REMEDY = (
    "If it was written before the key was set, add --plain-until SEQ:HASH, as the log line "
    "audit_key_begins has it"
)


async def _export(call: Call) -> None:
    async with call.open_beside(read_only=True) as storage:
        if call.arguments.format == "csv":
            call.say(_row(_HEADINGS))
        async for link in links(storage):
            call.say(_FORMATS[call.arguments.format](link))


_COLUMNS = (
    *("v", "team", "seq", "id", "at_ms", "at", "action", "thread", "approval", "actor", "for"),
    *("alg", "prev", "hash", "erased"),
)
_HEADINGS = (*_COLUMNS, *_FLAT, "detail")


def _json_row(link: Link) -> str:
    return json.dumps(exported(link), default=str)


def _table_row(link: Link) -> str:
    record = exported(link)
    detail = record["detail"]
    flat = detail if isinstance(detail, dict) else {}
    cells = [record.get(name) for name in _COLUMNS] + [flat.get(name) for name in _FLAT]
    return _row([*cells, detail])


def _row(cells: Sequence[object]) -> str:
    text = io.StringIO()
    # With another end of lines, the writer leaves line breaks in cells unquoted.
    csv.writer(text, lineterminator="\r\n").writerow([_cell(cell) for cell in cells])
    return text.getvalue().removesuffix("\r\n")


def _cell(value: object) -> str:
    """Format a cell so that no spreadsheet evaluates it, and nothing of its value is lost."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return f"'{text}" if text.startswith(_QUOTED) else text


async def _prune(call: Call) -> None:
    older = call.arguments.older_than
    if older < _LEAST:
        raise BotError(
            "can't delete entries from the last 31 days: open requests may still need them"
        )
    before_ms = system_clock() - milliseconds(older)
    if not call.arguments.yes:
        async with call.open_beside(read_only=True) as storage:
            for team_id in sorted(await storage.trail.heads()):
                count = await _count_before(storage, team_id, before_ms)
                would = f"{_entries(count)} would be deleted"
                call.say(
                    f"{team_id}: {would}. To delete {'it' if count == 1 else 'them'}, add --yes."
                )
        return
    async with call.open_beside() as storage:
        for team_id in sorted(await storage.trail.heads()):
            gone = await prune(
                storage, team_id, before_ms=before_ms, owner=owner(), clock=system_clock
            )
            call.say(f"{team_id}: {_entries(gone)} {_are(gone)} deleted, behind a checkpoint")
        await clear_log(storage, call.say)


async def _count_before(storage: Stores, team_id: str, before_ms: int) -> int:
    count = 0
    async for link in links_of(storage, team_id):
        if link.entry.at_ms >= before_ms:
            break
        count += 1
    return count


def _entries(count: int, kind: str = "") -> str:
    return f"{count} {kind}{'entry' if count == 1 else 'entries'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _head(text: str) -> Head | None:
    """Parse a recorded head `NUMBER:HASH`; None for an empty text."""
    if not text:
        return None
    seq, _, hash_ = text.partition(":")
    if not (seq.isascii() and seq.isdigit() and _HASH.fullmatch(hash_)):
        raise BotError(f"{text!r} isn't a head; copy it from the log, as SEQ:HASH")
    return Head(int(seq), hash_)


def _moment(text: str) -> int | None:
    """Parse a date, a time in UTC, or an age; None for an empty text."""
    if not text:
        return None
    try:
        return system_clock() - milliseconds(parse_duration(text, longest=LONGEST_RETENTION))
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        fault = (
            f"{text!r} isn't a valid time; use 2026-11-22, 2026-11-22T09:30, or 2d for two days ago"
        )
        raise BotError(fault) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)


_FORMATS: Mapping[str, Callable[[Link], str]] = {
    "": lambda link: short_line(link.entry),
    "csv": _table_row,
    "jsonl": _json_row,
}
_PARTS: Mapping[str, Callable[[Call], Awaitable[None]]] = {
    "": _show,
    "show": _show,
    "list": _list,
    "verify": _verify,
    "export": _export,
    "prune": _prune,
}
