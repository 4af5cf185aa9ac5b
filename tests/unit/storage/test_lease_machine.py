"""Random histories of one thread's lease, compared with a model of ten lines."""

import asyncio

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from bot.records.thread import Thread
from tests.contract.builders import THREAD_ID, a_thread
from tests.support.stores import SqliteStores

steps = st.integers(0, 30)


class LeaseMachine(RuleBasedStateMachine):
    """The model is a record that plain code changes as the port's docstrings say."""

    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.storage = SqliteStores(None)
        self.model = a_thread()
        self.now = 1_000
        self.handled = 0  # wakes that a holder saw and gave the lease back for
        self.loop.run(self.storage.open())
        self.loop.run(self.storage.threads.ensure(self.model))

    @rule(step=steps)
    def time_passes(self, step: int) -> None:
        self.now += step

    @rule()
    def wake(self) -> None:
        self.loop.run(self.storage.threads.wake(THREAD_ID, now_ms=self.now))
        self.model = self.model.changed(
            due_ms=self.now, active_ms=self.now, wakes=self.model.wakes + 1
        )

    @rule(target=claims, length=st.integers(1, 60), owner=st.sampled_from(["a", "b"]))
    def claim(self, length: int, owner: str) -> Thread | None:
        until = self.now + length
        claimed = self.loop.run(
            self.storage.threads.claim(THREAD_ID, owner=owner, now_ms=self.now, until_ms=until)
        )
        if not self.claimable:
            assert claimed is None
            return None
        self.model = self.model.changed(
            leased_by=owner,
            leased_until_ms=until,
            due_ms=until,
            fence=self.model.fence + 1,
        )
        assert claimed is not None
        assert claimed.changed(revision=0) == self.model
        return claimed

    @rule(claim=claims, length=st.integers(1, 60))
    def extend(self, claim: Thread | None, length: int) -> None:
        if claim is None:
            return
        until = self.now + length
        kept = self.loop.run(
            self.storage.threads.extend(THREAD_ID, fence=claim.fence, until_ms=until)
        )
        assert kept == self.holds(claim)
        if kept:
            self.model = self.model.changed(leased_until_ms=until)

    @rule(claim=claims, turn=st.integers(1, 5), turn_open=st.booleans())
    def set_turn(self, claim: Thread | None, turn: int, *, turn_open: bool) -> None:
        if claim is None:
            return
        kept = self.loop.run(
            self.storage.threads.set_turn(
                THREAD_ID, fence=claim.fence, turn=turn, turn_open=turn_open
            )
        )
        assert kept == self.holds(claim)
        if kept:
            self.model = self.model.changed(turn=turn, turn_open=turn_open)

    @rule(claim=claims, delay=st.none() | steps)
    def release(self, claim: Thread | None, delay: int | None) -> None:
        if claim is None:
            return
        retry = None if delay is None else self.now + delay
        done = self.loop.run(
            self.storage.threads.release(
                THREAD_ID, fence=claim.fence, wakes=claim.wakes, now_ms=self.now, retry_ms=retry
            )
        )
        if not self.holds(claim):
            assert not done
            return
        seen = claim.wakes == self.model.wakes
        due = retry if seen else self.now
        self.model = self.model.changed(
            leased_by="",
            leased_until_ms=0,
            due_ms=due,
            attempts=0 if retry is None else self.model.attempts + 1,
            clean_fence=self.model.fence,
        )
        assert done == (due is None or due > self.now)
        if retry is None:
            self.handled = claim.wakes

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        stored = self.loop.run(self.storage.threads.get(THREAD_ID))
        due = self.loop.run(self.storage.threads.due(now_ms=self.now, limit=9))
        assert stored.changed(revision=0) == self.model
        assert list(due) == ([stored] if self.claimable else [])

    @invariant()
    def no_wake_is_lost(self) -> None:
        if self.model.wakes > self.handled:
            assert self.model.due_ms is not None

    @property
    def claimable(self) -> bool:
        due = self.model.due_ms
        return due is not None and due <= self.now and self.model.leased_until_ms <= self.now

    def holds(self, claim: Thread) -> bool:
        return self.model.fence == claim.fence and self.model.leased_until_ms > 0

    def teardown(self) -> None:
        self.loop.run(self.storage.close())
        self.loop.close()


TestLeases = LeaseMachine.TestCase
TestLeases.settings = settings(
    stateful_step_count=30,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
