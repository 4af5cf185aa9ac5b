"""Ids of threads and turns: what is joined comes back in parts, and nothing else has parts."""

import pytest
from hypothesis import given, strategies as st

from storage.thread_ids import (
    channel_of,
    ids_after,
    name_of,
    team_of,
    thread_id_of,
    thread_of,
    turn_id_of,
    turn_of,
)

WORDS = st.text(st.characters(codec="ascii", exclude_characters=":#"), min_size=1, max_size=12)


@given(WORDS, WORDS, WORDS, st.integers(min_value=1, max_value=10**6))
def test_the_parts_of_an_id_come_back(team: str, channel: str, name: str, turn: int) -> None:
    thread_id = thread_id_of(team, channel, name)
    assert (team_of(thread_id), channel_of(thread_id), name_of(thread_id)) == (team, channel, name)
    turn_id = turn_id_of(thread_id, turn)
    assert turn_of(turn_id) == (thread_id, turn)
    assert thread_of(turn_id) == thread_id


@given(WORDS, WORDS, WORDS)
def test_no_id_of_a_workspace_follows_its_last_one(team: str, channel: str, name: str) -> None:
    assert thread_id_of(team, channel, name) < ids_after(team)
    assert ids_after("") == ""


@pytest.mark.parametrize("text", ["", "session", "a b"])
def test_the_id_of_something_else_has_no_parts(text: str) -> None:
    assert (channel_of(text), name_of(text), thread_of(text)) == ("", "", "")
    with pytest.raises(ValueError, match="no id of a turn"):
        turn_of(text)


@pytest.mark.parametrize("text", ["T1:C1:1.1#", "T1:C1:1.1#x", "T1:C1:1.1#-1"])
def test_a_turn_has_a_number(text: str) -> None:
    with pytest.raises(ValueError, match="no id of a turn"):
        turn_of(text)
