"""Requests of the runtime, as an application's own code might make them."""

from __future__ import annotations

from agents import ApprovalInfo

OWN_CALL = ApprovalInfo(
    tool_name="delete",
    arguments={},
    call_id="c1",
    title="Delete record 42",
    why="",
    preview="",
    schema={},
    digest="d",
    rule="",
    thread="",
    address="",
)
"""Asks like a gate, without being one."""
