"""Anything at all, signed: never an effect, never a traceback."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st
from slack_bolt.response import BoltResponse

from bot.layout.action_ids import ActionId
from tests.unit.bot.counter_stage import (
    Counter,
    a_click,
    a_submission,
    an_event,
    is_untouched,
    typed,
)
from tests.unit.bot.office import ADA

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "x", ADA, "T1", "<!here>"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["id", "type", "value"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def paths(value: object, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to everything inside a value."""
    inside = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inside = enumerate(value)  # type: ignore[assignment]
    return [
        path for key, child in inside for path in ((*prefix, key), *paths(child, (*prefix, key)))
    ]


@st.composite
def spoiled(draw: st.DrawFn, payload: dict[str, Any]) -> dict[str, Any]:
    """A payload in which something is missing, or something else."""
    made = copy.deepcopy(payload)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(paths(made) or [("type",)]))
        inside: Any = made
        for key in way:
            inside = inside[key]
        if draw(st.booleans()) and isinstance(inside, dict):
            inside.pop(last, None)
        else:
            inside[last] = draw(JSON)
    return made


ANYTHING = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


async def survives(counter: Counter, payload: dict[str, Any]) -> BoltResponse | None:
    """Send it; None when Bolt itself cannot read it, which ends in an HTTP error."""
    try:
        answer = await counter.send(payload)
    except (ValueError, TypeError, AttributeError, LookupError):
        answer = None
    assert counter.office.ran == []
    if answer is None:
        return None
    assert answer.status in ({200, 503} if payload.get("type") == "event_callback" else {200})
    assert "Traceback" not in answer.body
    assert "Error" not in answer.body
    return answer


@ANYTHING
@given(data=st.data())
async def test_no_spoiled_click_of_a_stranger_has_an_effect(counter: Counter, data: Any) -> None:
    approval = await counter.office.the_approval()
    click = a_click(approval, ActionId.APPROVE, "USTRANGER")
    await survives(counter, data.draw(spoiled(click).filter(lambda p: ADA not in str(p))))
    await is_untouched(counter)


@ANYTHING
@given(data=st.data())
async def test_no_spoiled_value_has_an_effect(counter: Counter, data: Any) -> None:
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    click["actions"] = data.draw(
        JSON | spoiled({"x": click["actions"]}).map(lambda made: made.get("x"))
    )
    actions = click["actions"]
    first = actions[0] if isinstance(actions, list) and actions else None
    if isinstance(first, dict) and len(str(first.get("value"))) > 60 and "action_id" in first:
        return  # only something that does not count was changed
    await survives(counter, click)
    await is_untouched(counter)


@ANYTHING
@given(data=st.data())
async def test_no_spoiled_submission_runs_anything(counter: Counter, data: Any) -> None:
    approval = await counter.office.the_approval()
    form = a_submission(approval, ActionId.EDIT_MODAL, typed("x", "y"), "USTRANGER")
    await survives(counter, data.draw(spoiled(form).filter(lambda p: ADA not in str(p))))
    await is_untouched(counter)


@ANYTHING
@given(data=st.data())
async def test_no_spoiled_event_runs_anything(counter: Counter, data: Any) -> None:
    event = an_event(ts="1800000000.000009", user="USTRANGER")
    await survives(counter, data.draw(spoiled(event)))
    await is_untouched(counter)
