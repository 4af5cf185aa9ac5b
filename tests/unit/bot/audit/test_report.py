"""Lines of the audit for people: whatever an entry contains, it is listed and can be found."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from bot.audit.report import AuditQuery, fits
from bot.commands.audit import result_words, short_line, whole_line
from storage.audit import AuditEntry

EVIDENCE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
NAMES = ("status", "choice", "outcome", "tool", "code", "kind")


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, EVIDENCE)),
    st.sampled_from(["executed", "decided", "voted", "refused", "what\never"]),
    st.text(max_size=200),
)
def test_any_entry_is_one_short_line(evidence: dict[str, object], action: str, about: str) -> None:
    entry = AuditEntry(
        entry_id="e", at_ms=1_700_000_000_000, action=action, thread_id=about, detail=evidence
    )
    short, whole = short_line(entry), whole_line(entry)
    assert len(short) <= 120
    for text in (short, whole):
        assert len(text.splitlines()) == 1
        assert text.isprintable()
    assert all(isinstance(word, str) for word in result_words(entry))
    assert fits(entry, AuditQuery(tool="deploy")) is (evidence.get("tool") == "deploy")


@pytest.mark.parametrize("at_ms", [-(2**62), 2**62])
def test_a_time_out_of_range_is_listed(at_ms: int) -> None:
    assert short_line(AuditEntry(entry_id="e", at_ms=at_ms, action="voted"))


def test_a_reason_is_told_without_the_marks_of_slack() -> None:
    why = "From <!date^1796006802^{time}|2026-11-30 02:46 UTC>. Until then, <!subteam^S1> can."
    entry = AuditEntry(entry_id="e", at_ms=0, action="refused", detail={"why": why})
    assert "why=From 2026-11-30 02:46 UTC. Until then, S1 can." in whole_line(entry)
