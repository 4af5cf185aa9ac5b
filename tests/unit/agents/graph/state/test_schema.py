"""What a breakpoint tells of the types of the state, for those who edit it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

from agents.graph.state.channels import Channels


@dataclass
class Inner:
    """A part of a state."""

    a: int


def add(left: list[int], right: list[int]) -> list[int]:
    return [*left, *right]


class State(TypedDict, total=False):
    """Keys of many types."""

    size: Literal["S", "M"]
    numbers: Annotated[list[int], add]
    many: list[Inner]
    call: Callable[[], int]


def test_keys_whose_schema_stands_for_itself() -> None:
    assert Channels(State).schemas() == {
        "size": {"enum": ["S", "M"], "type": "string"},
        "numbers": {"items": {"type": "integer"}, "type": "array"},
    }
