"""Ids of threads and of turns: the only module that joins their parts, or reads one.

The id of a thread is `team:channel:name`. For a thread in Slack, the name is the `ts` of its first
message. The id of a turn, which is also the id of its checkpoint, is `thread#number`.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import StringConstraints

ThreadId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[^:]+:[^:]+:[^:]+$")]
"""A field with the id of a thread."""


_AFTER_ID = "#/:"
"""The characters that follow the thread's id in keys of its turns, its log and their parts."""


def thread_id_of(team_id: str, channel_id: str, name: str) -> str:
    """Return the id of a thread.

    Args:
        team_id: Slack id of the workspace.
        channel_id: Slack id of the channel.
        name: Name within the channel: the `ts` of the first message of a thread in Slack.
    """
    return f"{team_id}:{channel_id}:{name}"


def team_of(thread_id: str) -> str:
    """Return the Slack id of the workspace; empty for an empty id."""
    return _part(thread_id, 0)


def channel_of(thread_id: str) -> str:
    """Return the Slack id of the channel; empty for the id of something else."""
    return _part(thread_id, 1)


def name_of(thread_id: str) -> str:
    """Return the name within the channel; empty for the id of something else."""
    return _part(thread_id, 2)


def turn_id_of(thread_id: str, turn: int) -> str:
    """Return the id of a turn; the first turn of a thread is 1."""
    return f"{thread_id}#{turn}"


def turn_of(turn_id: str) -> tuple[str, int]:
    """Return the thread id and the number of a turn.

    Raises:
        ValueError: The text is no id of a turn.
    """
    thread_id, mark, number = turn_id.rpartition("#")
    if not mark or not number.isdecimal():
        raise ValueError(f"no id of a turn: {turn_id!r}")
    return thread_id, int(number)


def thread_of(turn_id: str) -> str:
    """Return the thread id of a turn; empty for the id of something else."""
    return turn_id.rpartition("#")[0]


def key_ranges(thread_id: str) -> list[tuple[str, str]]:
    """Return the key ranges of a thread's data, as pairs of first key and exclusive end."""
    exactly = (thread_id, f"{thread_id}\x00")
    return [
        exactly,
        *((f"{thread_id}{mark}", f"{thread_id}{chr(ord(mark) + 1)}") for mark in _AFTER_ID),
    ]


def place_of(thread_id: str) -> dict[str, str]:
    """Return the fields by which a record of a private answer names its thread."""
    return {"channel_id": channel_of(thread_id), "thread_ts": name_of(thread_id)}


def ids_after(team_id: str) -> str:
    """Return the first possible thread id after all of a workspace; all ids if it is empty."""
    return f"{team_id};" if team_id else ""  # ";" follows ":" in the sort order


def _part(thread_id: str, number: int) -> str:
    parts = thread_id.split(":", 2)
    return parts[number] if number < len(parts) else ""
