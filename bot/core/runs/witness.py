"""Sees from the journal what becomes of what people let run, and puts it on its approval.

The journal says it first: that a call starts, and what came of it. Each such entry is followed by
the record of the approval, whose card is drawn again. A crash between the two is made good when the
run is recovered, as the journal is read then. Nothing of a call is decided here.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from agents.core.address import Address
from agents.core.calls import ToolOutcome
from agents.core.checkpoint import AmendingStore, CheckpointStatus, StoredCheckpoint
from bot.core.runs.outcome import ENDED, Run, RunState, lets_run, run_of
from bot.ports import Clock
from bot.questions.form import Form, ask_of
from bot.redaction.call import mask_title
from bot.redaction.mask import mask_text, mask_words
from storage.base import ApprovalStore
from storage.errors import StorageError
from storage.records import Approval, Kind

logger = logging.getLogger(__name__)

_READ = 4_000
"""Characters of a result that are masked before it is cut."""
_KEPT = 600
"""Characters of a result that a record keeps."""
_TOLD = frozenset({"started", "finished", "node", "node_failed"})
"""The kinds of journal entries that tell of what runs."""
_FAILED = "The tool failed: "
_NOT_STARTED = "The turn ended before it was started."


@dataclass(frozen=True, slots=True)
class News:
    """The news in a journal entry about a call or a step.

    Attributes:
        at: Its address.
        state: What became of it.
        text: Its result or its error.
    """

    at: str
    state: RunState
    text: str = ""


@dataclass(slots=True)
class _Watched:
    """The approvals of one turn, as last read or written here.

    Attributes:
        approvals: By id.
        starting: By address, what puts on record in a moment that a call runs.
    """

    approvals: dict[str, Approval] = field(default_factory=dict)
    starting: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def at(self, address: str) -> list[Approval]:
        """Those that let run what stands at an address."""
        return [one for one in self.approvals.values() if _is_about(one, address)]


@dataclass(frozen=True, slots=True)
class Witness:
    """Keeps the approvals of running turns true.

    Args:
        approvals: Where they are kept.
        clock: The time now.
        redraw: Starts to draw the card of an approval again, without waiting for it.
        quick: Of a call that takes no longer, only what came of it is put on its approval. That it
            runs says its journal in any case.
    """

    approvals: ApprovalStore
    clock: Clock
    redraw: Callable[[str], None]
    quick: timedelta = timedelta(0)
    _turns: dict[str, _Watched] = field(default_factory=dict)

    async def watch(
        self,
        checkpoint_id: str,
        journal: Sequence[str] = (),
        *,
        known: Iterable[Approval] | None = None,
    ) -> None:
        """Follow what becomes of what people let run in a turn.

        Args:
            checkpoint_id: Of the turn; its lease is held.
            journal: What a process before this one left: it may have died before it told.
            known: All approvals of the turn whose calls may still run, read under that lease; they
                are looked up when None.
        """
        if known is None:
            known = await self.approvals.of_turn(checkpoint_id)
        found = {one.approval_id: one for one in known if lets_run(one)}
        turn = self._turns[checkpoint_id] = _Watched(found)
        for entry in journal if found else ():  # it is no news that a call runs
            await self._take(turn, _news_in(entry))

    def watched(self, checkpoint_id: str) -> list[Approval]:
        """Return the approvals followed in a turn, as on record: this process alone writes them."""
        turn = self._turns.get(checkpoint_id)
        return list(turn.approvals.values()) if turn is not None else []

    def forget(self, checkpoint_id: str) -> None:
        """Follow that turn no more."""
        turn = self._turns.pop(checkpoint_id, None)
        for task in turn.starting.values() if turn is not None else ():
            task.cancel()

    async def read(self, checkpoint_id: str, entry: str) -> None:
        """Take note of an entry of the journal that was just written.

        Raises:
            StorageError: It could not be put on record.
        """
        turn = self._turns.get(checkpoint_id)
        if turn is None or not turn.approvals:
            return
        news = _news_in(entry)
        starting = turn.starting.pop(news.at, None) if news is not None else None
        if starting is not None:  # what it may be writing now is written over
            starting.cancel()
            await asyncio.wait({starting})
        if news is not None and news.state is RunState.RUNNING and self.quick:
            if turn.at(news.at):
                turn.starting[news.at] = asyncio.create_task(self._tell_later(turn, news))
            return
        await self._take(turn, news)

    async def _take(self, turn: _Watched, news: News | None) -> None:
        if news is not None:
            for approval in turn.at(news.at):
                await self._tell(turn, approval, news)

    async def _tell_later(self, turn: _Watched, news: News) -> None:
        await asyncio.sleep(self.quick.total_seconds())
        try:
            await self._take(turn, news)
        except StorageError as error:
            _untold(error)

    async def doubted(self, checkpoint_id: str, address: str) -> None:
        """People are asked whether what they let run there has run."""
        await self._all(checkpoint_id, News(address, RunState.DOUBT))

    async def vouched(self, checkpoint_id: str, address: str, text: str) -> None:
        """People say that what stood in doubt there has run."""
        await self._all(checkpoint_id, News(address, RunState.RAN, text))

    async def ended(self, checkpoint_id: str, journal: Sequence[str]) -> None:
        """The turn is given up: what had started is in doubt, what had not never will.

        Args:
            checkpoint_id: Of the turn.
            journal: What is left of it.
        """
        await self.watch(checkpoint_id, journal)
        watched = self._turns[checkpoint_id]
        for approval in list(watched.approvals.values()):
            run = run_of(approval)
            if run is not None and run.state is RunState.RUNNING:
                await self._tell(watched, approval, News("", RunState.DOUBT))
            elif run is None and approval.open and approval.tool.strip():
                # Of what is closed, an earlier release may have seen the end, and kept nothing.
                await self._tell(watched, approval, News("", RunState.STOPPED, _NOT_STARTED))
        self.forget(checkpoint_id)

    async def _all(self, checkpoint_id: str, news: News) -> None:
        known = await self.approvals.of_turn(checkpoint_id)
        watched = _Watched({one.approval_id: one for one in known if lets_run(one)})
        for approval in watched.at(news.at):
            await self._tell(watched, approval, news)
        if checkpoint_id in self._turns:
            self._turns[checkpoint_id] = watched

    async def _tell(self, watched: _Watched, approval: Approval, news: News) -> None:
        """Put news on record; those that are older than what is there are dropped."""
        while True:
            run = run_of(approval)
            if not _is_newer(run, news):
                return
            now = self.clock()
            text = _shown(approval, news.text)
            new = Run(state=news.state, text=text, at_ms=now).to_text()
            name = approval.approval_id
            kept = await self.approvals.mark_run(
                name, was=approval.run_json, run_json=new, now_ms=now
            )
            newest = kept or await self.approvals.get(name)
            watched.approvals[name] = newest
            if kept is not None:
                self.redraw(name)
                return
            if newest.run_json == approval.run_json:
                return  # it was withdrawn meanwhile: nothing was let run
            approval = newest


def _is_newer(run: Run | None, news: News) -> bool:
    if run is None:
        return True
    if run.state in ENDED or run.state is news.state:
        return False
    if run.state is RunState.DOUBT:  # only people end a doubt: it ran, or it runs once more
        return news.state in {RunState.RUNNING, RunState.RAN}
    return True


def _news_in(entry: str) -> News | None:
    """Return the news in an entry; None when it is about nothing that people let run."""
    found = json.loads(entry)
    at, kind = str(found.get("at", "")), found.get("kind")
    if kind not in _TOLD or not at:
        return None
    match kind:
        case "started":
            return News(at, RunState.RUNNING)
        case "finished":
            return _result(at, found)
        case "node":
            return News(at, RunState.RAN)
        case _:
            return News(at, RunState.FAILED, str(found.get("error", "")))


def _result(at: str, found: dict[str, object]) -> News | None:
    text = str(found.get("said") or found.get("text", ""))
    match found.get("outcome"):
        case ToolOutcome.RAN:
            return News(at, RunState.RAN, text)
        case ToolOutcome.FAILED:
            return News(at, RunState.FAILED, text.removeprefix(_FAILED))
        case ToolOutcome.ANSWERED:
            return None  # people said something in place of a run
        case _:
            return News(at, RunState.STOPPED, text)


def _is_about(approval: Approval, address: str) -> bool:
    """Whether an approval let run what stands at an address: its call, or the step it stopped."""
    if approval.address == address:
        return True
    if ask_of(approval).form is not Form.STEP or approval.kind is not Kind.APPROVAL:
        return False
    here = Address.parse(address)
    node = here.segments[-1]
    return str(here.parent) == approval.address and (
        node.type == "node" and approval.rule == f"before {node.id}"
    )


def _shown(approval: Approval, text: str) -> str:
    """The beginning of a text, masked before it is cut: half of a secret is not recognised."""
    try:
        arguments = json.loads(approval.arguments_json)
    except (ValueError, RecursionError):
        arguments = {}
    clean = mask_title(mask_text(text[:_READ]), arguments, ask_of(approval).masks)
    return mask_words(clean, arguments)[:_KEPT]


def _untold(error: StorageError) -> None:
    logger.warning("not on the card: %s", error, extra={"action": "run_untold"})


@dataclass(frozen=True, slots=True)
class WitnessedCheckpoints:
    """A checkpoint store whose journal a witness reads as it is written.

    Args:
        checkpoints: Where checkpoints are kept.
        witness: Reads the journal.
    """

    checkpoints: AmendingStore
    witness: Witness

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        """See `CheckpointStore.load`."""
        return await self.checkpoints.load(checkpoint_id)

    async def save(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        """See `CheckpointStore.save`."""
        return await self.checkpoints.save(
            checkpoint_id, data, status=status, expected_version=expected_version
        )

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        """See `CheckpointStore.claim`."""
        return await self.checkpoints.claim(checkpoint_id, claim, expected_version=expected_version)

    async def amend(self, checkpoint_id: str, change: str, *, expected_version: int) -> int:
        """See `AmendingStore.amend`."""
        return await self.checkpoints.amend(
            checkpoint_id, change, expected_version=expected_version
        )

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        """See `CheckpointStore.append`.

        What a call came to is never dropped with its journal before its card can tell of it: when
        that cannot be put on record, the run stops, and its journal is read again. A start that
        cannot be put on record stops nothing: a call that is marked and does not run is in doubt.
        """
        await self.checkpoints.append(checkpoint_id, entry, base=base, index=index)
        try:
            await self.witness.read(checkpoint_id, entry)
        except StorageError as error:
            if not entry.startswith('{"kind":"started"'):
                raise
            _untold(error)

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        """See `CheckpointStore.close`."""
        await self.checkpoints.close(checkpoint_id, expected_version=expected_version)
