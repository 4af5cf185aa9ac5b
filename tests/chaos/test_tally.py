"""The count itself: a click that was answered has a trace, or its person was told the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from storage.audit import AuditEntry
from tests.chaos.tally import UNRECORDED, Press, Seats, Tally, Word
from tests.contract.builders import an_approval

CARD = an_approval(tool="pay", votes=())
PRESS = Press(
    by="U2",
    approval_id=CARD.approval_id,
    choice="approve",
    channel="C1",
    began_ms=10_000,
    ended_ms=12_600,
    is_answered=True,
)
WORD = Word(user="U2", channel="C1", text=UNRECORDED[0], at_ms=12_650)
REFUSED = AuditEntry(
    entry_id="e1", at_ms=12_000, action="refused", approval_id=CARD.approval_id, actor_id="U2"
)


def count(presses: Sequence[Press], *words: Word, audit: Sequence[AuditEntry] = ()) -> Tally:
    tally = Tally(seats={"pay": Seats(slots=(frozenset({"U2"}),))}, presses=presses, words=words)
    tally.count([CARD], audit)
    return tally


def test_what_was_answered_is_lost_without_a_trace_however_slow_it_was() -> None:
    assert len(count([PRESS]).wrong) == 1
    assert "lost" in count([PRESS]).wrong[0]
    assert count([PRESS], audit=[REFUSED]).wrong == []
    assert count([replace(PRESS, is_answered=False)]).wrong == []


@pytest.mark.parametrize("text", UNRECORDED)
def test_who_is_told_that_it_may_not_be_recorded_has_lost_nothing(text: str) -> None:
    tally = count([PRESS], replace(WORD, text=text))
    assert (tally.wrong, tally.unrecorded) == ([], {text: 1})


@pytest.mark.parametrize(
    "word",
    [
        replace(WORD, user="U3"),
        replace(WORD, channel="C2"),
        replace(WORD, text="You have voted already."),
        replace(WORD, at_ms=9_999),
        replace(WORD, at_ms=20_000),
    ],
    ids=["another person", "another place", "something else", "before it", "long after it"],
)
def test_other_words_excuse_nothing(word: Word) -> None:
    assert len(count([PRESS], word).wrong) == 1


def test_one_word_answers_one_click() -> None:
    tally = count([PRESS, replace(PRESS)], WORD)
    assert (len(tally.wrong), tally.unrecorded.total()) == (1, 1)
