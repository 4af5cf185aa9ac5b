"""Points: what is stored of something that waits, and when it is written."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from agents.core.address import Address, Segment
from agents.core.codec import Json, encode
from agents.core.pending import InterruptNode

PLACE = Address((Segment("agent", "A"),))


def asked(info: list[str]) -> InterruptNode:
    """A point as `interrupt` makes it."""
    return InterruptNode(id="i1", address=PLACE, info=info).with_info(encode(info))


def info_in(data: Json) -> Json:
    return cast("dict[str, Json]", data)["info"]


def test_an_info_is_stored_as_it_was_when_people_were_asked() -> None:
    info = ["pay"]
    point = asked(info)
    info.append("more")

    assert info_in(point.to_json()) == ["pay"]
    assert point.stored().info == ["pay"]


def test_a_point_with_another_info_stores_that_one() -> None:
    other = replace(asked(["pay"]), info=["refund"])

    assert info_in(other.to_json()) == ["refund"]
    assert other.stored().info == ["refund"]


def test_what_is_stored_has_the_stored_children() -> None:
    parent = InterruptNode(id="i2", address=PLACE, info="calls wait", children=(asked(["pay"]),))

    stored = parent.stored()
    assert stored == InterruptNode.from_json(parent.to_json())
    assert stored.to_json() == parent.to_json()
    assert stored.stored() is stored
