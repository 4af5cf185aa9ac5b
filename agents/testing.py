"""Test helpers: `play`, and contract suites for checkpoint stores and message logs.

With pytest and pytest-asyncio, derive a class that returns the store::

    class TestMyStore(CheckpointStoreSuite):
        async def store(self) -> CheckpointStore:
            return await MyStore.open("a new, empty place")

Without them, `await MySuite().run_all()` does the same. Each test opens its store once, and uses
ids of its own, so that all tests may share one database.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from dataclasses import replace

from agents.agent import AgentEvent, InterruptEvent, MessageEvent, ToolEvent
from agents.core.checkpoint import CheckpointStatus, CheckpointStore, MessageLog, StoredCheckpoint
from agents.core.errors import CheckpointConflictError
from agents.core.pending import InterruptContext

__all__ = ["CheckpointStoreSuite", "MessageLogSuite", "play"]

RUNNING, PENDING, CLOSED = (
    CheckpointStatus.RUNNING,
    CheckpointStatus.PENDING,
    CheckpointStatus.CLOSED,
)
UNICODE = '{"ü":"\U0001f600 \u202e \\u0000 \\ud83d","nul":"\\u0000","quote":"\\"\'`$"}'
"""Text as the runtime writes it: any letters, no raw null byte, no lone surrogate."""


async def play(
    events: AsyncIterable[AgentEvent], say: Callable[[str], object] = print
) -> tuple[InterruptContext, ...]:
    """Run an agent until it ends or interrupts, and print its events.

    Args:
        events: Result of `Runner.query`, `run`, `resume` or `recover`.
        say: Receives each line: a text, the outcome of a call, or a question.

    Returns:
        The pending interrupts; empty if the run has ended.
    """
    questions: tuple[InterruptContext, ...] = ()
    async for event in events:
        match event:
            case MessageEvent(text=text) if text:
                say(f"{event.agent_name}: {text}")
            case ToolEvent(call=done, outcome=outcome, result=result):
                say(f"{done.name} {outcome}: {result}")
            case InterruptEvent(contexts=questions):
                for question in questions:
                    say(f"people are asked: {question.info}")
            case _:
                pass
    return questions


def expect(actual: object, wanted: object, what: str) -> None:
    """Check that two values are equal.

    Raises:
        AssertionError: The values differ.
    """
    if actual != wanted:
        difference = f"expected {_short(wanted)}, found {_short(actual)}"
        raise AssertionError(f"{what}: {difference}")


async def expect_conflict(attempt: Awaitable[object], what: str) -> None:
    """Check that a write is refused with a conflict.

    Raises:
        AssertionError: The write succeeded, or raised another error.
    """
    try:
        returned = await attempt
    except CheckpointConflictError:
        return
    except Exception as error:
        raise AssertionError(f"{what}: expected a conflict, got {error!r}") from error
    raise AssertionError(f"{what}: expected a conflict, got {_short(returned)}")


async def expect_one(attempts: Sequence[Awaitable[object]], what: str) -> int:
    """Check that one of several concurrent writes succeeds and the others conflict.

    Returns:
        The index of the successful write.

    Raises:
        AssertionError: Not exactly one succeeded, or a write raised another error.
    """
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    won = [number for number, each in enumerate(outcomes) if not isinstance(each, BaseException)]
    others = [
        each
        for each in outcomes
        if isinstance(each, BaseException) and not isinstance(each, CheckpointConflictError)
    ]
    expect(others, [], f"{what}: errors that are no conflict")
    expect(len(won), 1, f"{what}: how many of {len(outcomes)} won")
    return won[0]


class _Suite:
    """Runs its own tests without pytest."""

    async def run_all(self) -> list[str]:
        """Run all tests of this class, one after the other.

        Raises:
            AssertionError: A test failed.
        """
        names = [name for name in dir(self) if name.startswith("test_")]
        for name in names:
            await getattr(self, name)()
        return names


class CheckpointStoreSuite(_Suite):
    """The contract tests of `CheckpointStore`.

    Attributes:
        writers: Number of concurrent writers.
        big: Length of a big text, in characters.
    """

    writers = 20
    big = 1_000_000

    async def store(self) -> CheckpointStore:
        """Return the opened store to test; new for each test, or shared."""
        raise NotImplementedError("say how to make the store: `async def store(self)`")

    async def second(self, store: CheckpointStore) -> CheckpointStore:
        """Return another handle on the same data, like a second process's."""
        return store

    async def test_what_was_not_saved_is_not_there(self) -> None:
        """`load` returns None for an unknown id."""
        store = await self.store()
        expect(await _load(store, "absent"), None, "load")

    async def test_a_document_comes_back_as_it_was(self) -> None:
        """A document with any letters is read back unchanged."""
        store = await self.store()
        for number, data in enumerate(("", "{}", UNICODE)):
            name = f"T1:C1:17.0001#{number}/ü {number}"
            expect(await _save(store, name, data, PENDING), 1, "version of the first save")
            expect(await _load(store, name), _stored(data, PENDING), "load")

    async def test_big_texts_come_back_as_they_were(self) -> None:
        """A big document, claim and journal entry are read back unchanged."""
        store = await self.store()
        text = ("0123456789" * (self.big // 10 + 1))[: self.big]
        await _save(store, "big", text, PENDING)
        await store.append("big", text[:100_000], base=1, index=0)
        await store.claim("big", text[:100_000], expected_version=1)
        wanted = _stored(text, RUNNING, claim=text[:100_000], version=2, journal=(text[:100_000],))
        expect(await _load(store, "big"), wanted, "big texts")

    async def test_a_first_save_wants_that_there_is_none(self) -> None:
        """Expected version 0 is refused if a document exists."""
        store = await self.store()
        await _save(store, "first", "a", RUNNING)
        await expect_conflict(_save(store, "first", "b", RUNNING), "a second first save")
        expect(await _load(store, "first"), _stored("a", RUNNING), "what was saved first")

    async def test_a_save_wants_the_version_it_knows(self) -> None:
        """A lower or higher version is refused, also if no document exists."""
        store = await self.store()
        await _save(store, "known", "a", RUNNING)
        await _save(store, "known", "b", RUNNING, version=1)
        for version in (0, 1, 3, 99):
            attempt = _save(store, "known", "c", RUNNING, version=version)
            await expect_conflict(attempt, f"a save at version {version} of 2")
        attempt = _save(store, "known, another", "c", RUNNING, version=1)
        await expect_conflict(attempt, "a save at version 1 of nothing")
        expect(
            await _load(store, "known"), _stored("b", RUNNING, version=2, base=2), "what was saved"
        )
        expect(await _load(store, "known, another"), None, "what was never saved")

    async def test_of_many_saves_one_wins(self) -> None:
        """One of several concurrent saves wins, the first save and later ones."""
        store = await self.store()
        second = await self.second(store)
        for version in (0, 1):
            number = await expect_one(
                [
                    _save((store, second)[n % 2], "saves", f"{version}/{n}", PENDING, version)
                    for n in range(self.writers)
                ],
                "saves at once",
            )
            stored = await _load(store, "saves")
            expect(stored and stored.data, f"{version}/{number}", "what is stored")

    async def test_a_claim_takes_what_is_pending(self) -> None:
        """A claim stores the answers and keeps document, base and journal."""
        store = await self.store()
        await _save(store, "claim", "a", PENDING)
        await store.append("claim", "entry", base=1, index=0)
        expect(await store.claim("claim", UNICODE, expected_version=1), 2, "version")
        wanted = _stored("a", RUNNING, claim=UNICODE, version=2, journal=("entry",))
        expect(await _load(store, "claim"), wanted, "load")
        await store.append("claim", "entry 2", base=1, index=1)
        stored = await _load(store, "claim")
        expect(stored and stored.journal, ("entry", "entry 2"), "the same journal goes on")

    async def test_a_claim_is_refused_where_nothing_is_pending(self) -> None:
        """A claim is refused if the document is missing, running, claimed or newer."""
        store = await self.store()
        await expect_conflict(store.claim("c0", "x", expected_version=0), "a claim of nothing")
        await expect_conflict(store.claim("c0", "x", expected_version=1), "a claim of nothing")
        await _save(store, "c1", "a", RUNNING)
        await expect_conflict(store.claim("c1", "x", expected_version=1), "a claim of a run")
        await _save(store, "c2", "a", PENDING)
        for version in (0, 2):
            attempt = store.claim("c2", "x", expected_version=version)
            await expect_conflict(attempt, f"a claim at version {version} of 1")
        await store.claim("c2", "x", expected_version=1)
        for version in (1, 2):
            attempt = store.claim("c2", "y", expected_version=version)
            await expect_conflict(attempt, "a claim of what is claimed")
        wanted = _stored("a", RUNNING, claim="x", version=2)
        expect(await _load(store, "c2"), wanted, "the first claim")

    async def test_of_many_claims_one_wins(self) -> None:
        """One of several concurrent claims wins, also from two processes."""
        store = await self.store()
        second = await self.second(store)
        await _save(store, "claims", "a", PENDING)
        number = await expect_one(
            [
                (store, second)[n % 2].claim("claims", f"by {n}", expected_version=1)
                for n in range(self.writers)
            ],
            "claims at once",
        )
        stored = await _load(store, "claims")
        expect(stored and stored.claim, f"by {number}", "the claim that is stored")

    async def test_the_journal_comes_in_its_order(self) -> None:
        """Journal entries are ordered by index, however many there are."""
        store = await self.store()
        await _save(store, "journal", "a", RUNNING)
        for index in range(130):
            await store.append("journal", f"entry {index}", base=1, index=index)
        stored = await _load(store, "journal")
        wanted = tuple(f"entry {index}" for index in range(130))
        expect(stored and stored.journal, wanted, "the journal")

    async def test_an_index_is_given_once(self) -> None:
        """A second entry at an index is refused. This fences a process that seemed dead."""
        store = await self.store()
        second = await self.second(store)
        await _save(store, "index", "a", RUNNING)
        number = await expect_one(
            [
                (store, second)[n % 2].append("index", f"by {n}", base=1, index=0)
                for n in range(self.writers)
            ],
            "entries at once",
        )
        stored = await _load(store, "index")
        expect(stored and stored.journal, (f"by {number}",), "the journal")

    async def test_a_save_begins_a_new_journal(self) -> None:
        """A save deletes the claim and the old journal, and refuses late writers to it."""
        store = await self.store()
        await _save(store, "new", "a", PENDING)
        await store.append("new", "old", base=1, index=0)
        await store.claim("new", "answers", expected_version=1)
        expect(await _save(store, "new", "b", PENDING, version=2), 3, "version")
        expect(
            await _load(store, "new"), _stored("b", PENDING, version=3, base=3), "after the save"
        )
        await store.append("new", "new", base=3, index=0)
        wanted = _stored("b", PENDING, version=3, base=3, journal=("new",))
        expect(await _load(store, "new"), wanted, "the new journal")

    async def test_checkpoints_do_not_mix(self) -> None:
        """Checkpoints are separate, also if one id is a prefix of another."""
        store = await self.store()
        names = ("mix", "mix0", "mix/1", "mix#1", "MIX", "mix ")
        for name in names:
            await _save(store, name, name, RUNNING)
            await store.append(name, name, base=1, index=0)
        for name in names:
            wanted = _stored(name, RUNNING, journal=(name,))
            expect(await _load(store, name), wanted, f"checkpoint {name!r}")

    async def test_what_is_closed_keeps_nothing(self) -> None:
        """A closed checkpoint has no document, claim or journal; closing may be repeated."""
        store = await self.store()
        await _save(store, "end", "a", PENDING)
        await store.append("end", "entry", base=1, index=0)
        await store.claim("end", "answers", expected_version=1)
        await store.close("end", expected_version=2)
        await store.close("end", expected_version=2)
        stored = await _load(store, "end")
        if stored is None:
            raise AssertionError("a closed checkpoint is still known")
        contents = (stored.data, stored.claim, stored.status, stored.journal)
        expect(contents, ("", "", CLOSED, ()), "a closed checkpoint")

    async def test_what_is_closed_stays_closed(self) -> None:
        """A closed checkpoint refuses writes with any expected version."""
        store = await self.store()
        await _save(store, "closed", "a", PENDING)
        await store.append("closed", "entry", base=1, index=0)
        await store.close("closed", expected_version=1)
        for version in (0, 1, 2, 3):
            save = _save(store, "closed", "b", RUNNING, version=version)
            await expect_conflict(save, f"a save at version {version} of what is closed")
            claim = store.claim("closed", "x", expected_version=version)
            await expect_conflict(claim, f"a claim at version {version} of what is closed")
        append = store.append("closed", "late", base=1, index=0)
        await expect_conflict(append, "an entry of one who slept through the end")
        stored = await _load(store, "closed")
        expect(stored and (stored.data, stored.status), ("", CLOSED), "a closed checkpoint")

    async def test_nobody_closes_what_another_one_saved(self) -> None:
        """A close with another than the stored version is refused."""
        store = await self.store()
        await _save(store, "open", "a", RUNNING)
        await _save(store, "open", "b", PENDING, version=1)
        for version in (0, 1, 3):
            attempt = store.close("open", expected_version=version)
            await expect_conflict(attempt, f"a close at version {version} of 2")
        await expect_conflict(store.close("nothing", expected_version=0), "a close of nothing")
        expect(
            await _load(store, "open"), _stored("b", PENDING, version=2, base=2), "what was saved"
        )


class MessageLogSuite(_Suite):
    """The contract tests of `MessageLog`.

    Attributes:
        writers: Number of concurrent writers.
    """

    writers = 20

    async def log(self) -> MessageLog:
        """Return the opened log to test; new for each test, or shared."""
        raise NotImplementedError("say how to make the log: `async def log(self)`")

    async def test_turns_come_in_their_order(self) -> None:
        """Turns are ordered by number, not by time and not alphabetically."""
        log = await self.log()
        for turn in (2, 1, 10, 9):
            await log.append("order", turn, f"turn {turn}")
        await log.append("order, another", 1, "another")
        wanted = ["turn 1", "turn 2", "turn 9", "turn 10"]
        expect(list(await log.load("order", before_turn=11)), wanted, "all turns")
        expect(list(await log.load("order", before_turn=10)), wanted[:3], "turns before 10")
        expect(list(await log.load("order", before_turn=1)), [], "turns before the first")
        expect(list(await log.load("absent", before_turn=9)), [], "turns of nobody")

    async def test_a_turn_is_kept_once(self) -> None:
        """The first messages of a turn are kept."""
        log = await self.log()
        await log.append("once", 1, "first")
        await log.append("once", 1, "again")
        expect(list(await log.load("once", before_turn=2)), ["first"], "a turn")

    async def test_of_many_at_once_one_is_kept(self) -> None:
        """Concurrent appends of a turn all succeed, and one is kept."""
        log = await self.log()
        await asyncio.gather(*(log.append("many", 1, f"by {n}") for n in range(self.writers)))
        expect(len(await log.load("many", before_turn=2)), 1, "how often a turn is kept")

    async def test_texts_come_back_as_they_were(self) -> None:
        """Texts with any letters and of any length are read back unchanged."""
        log = await self.log()
        texts = [UNICODE, "x" * 300_000]
        for turn, text in enumerate(texts, start=1):
            await log.append("texts", turn, text)
        if list(await log.load("texts", before_turn=3)) != texts:
            raise AssertionError("a text has changed")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 500 else f"{text[:500]}… ({len(text)} characters)"


async def _save(
    store: CheckpointStore, name: str, data: str, status: CheckpointStatus, version: int = 0
) -> int:
    return await store.save(name, data, status=status, expected_version=version)


async def _load(store: CheckpointStore, name: str) -> StoredCheckpoint | None:
    stored = await store.load(name)
    return replace(stored, journal=tuple(stored.journal)) if stored else None


def _stored(
    data: str,
    status: CheckpointStatus,
    *,
    claim: str = "",
    version: int = 1,
    base: int = 1,
    journal: Sequence[str] = (),
) -> StoredCheckpoint:
    return StoredCheckpoint(
        data=data, claim=claim, status=status, version=version, base=base, journal=tuple(journal)
    )
