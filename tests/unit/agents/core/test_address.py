"""Addresses and their text form."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agents import Address
from agents.core.address import Segment

NAMES = st.text(alphabet="ab:;\\ é", max_size=4)
SEGMENTS = st.builds(Segment, NAMES.filter(bool), NAMES, NAMES)
ADDRESSES = st.builds(Address, st.lists(SEGMENTS, max_size=4).map(tuple))


def test_text_form() -> None:
    address = Address((Segment("agent", "A"), Segment("tool", "pay", "c1")))

    assert str(address) == "agent:A;tool:pay:c1"
    assert len(address) == 2
    assert address.parent == Address((Segment("agent", "A"),))
    assert Address().parent is None
    assert address.parent is not None
    assert address.parent.child(Segment("tool", "pay", "c1")) == address


@given(ADDRESSES)
def test_text_is_read_back(address: Address) -> None:
    assert Address.parse(str(address)) == address


@given(ADDRESSES, ADDRESSES)
def test_different_addresses_have_different_texts(first: Address, two: Address) -> None:
    assert (str(first) == str(two)) == (first == two)


@given(ADDRESSES, SEGMENTS)
def test_an_address_is_a_prefix_of_what_is_below(address: Address, segment: Segment) -> None:
    assert address.is_prefix_of(address)
    assert address.is_prefix_of(address.child(segment))
    assert not address.child(segment).is_prefix_of(address)


@pytest.mark.parametrize("text", ["agent", "a:b:c:d", ":x", "a:b;", ";a:b", "a:b:", "a:b\\"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        Address.parse(text)
