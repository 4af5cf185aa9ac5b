"""Modals: triggers, stacks, hashes, and what Slack refuses to show."""

from __future__ import annotations

from typing import Any

import pytest

from slack_sandbox import ADA, ROSA, Sandbox
from tests.unit.slack_sandbox.conftest import Seconds, Slack, a_modal, an_input


def a_trigger(sandbox: Sandbox, user: str = ADA, view_id: str | None = None) -> str:
    return sandbox.workspace.triggers.issue(user, view_id)


async def opened(slack: Slack, sandbox: Sandbox, **changes: Any) -> dict[str, Any]:
    view = a_modal(**changes)
    answer = await slack.ok("views.open", trigger_id=a_trigger(sandbox), view=view)
    return dict(answer["view"])


async def test_open_shows_the_view_to_its_person(slack: Slack, sandbox: Sandbox) -> None:
    view = await opened(slack, sandbox)
    (shown,) = sandbox.open_views(ADA)
    assert shown == view
    assert view["root_view_id"] == view["id"]
    assert view["state"]["values"]["version"]["input"] == {
        "type": "plain_text_input",
        "value": None,
    }
    assert sandbox.open_views(ROSA) == []


async def test_trigger_lives_three_seconds(slack: Slack, sandbox: Sandbox, clock: Seconds) -> None:
    in_time, late = a_trigger(sandbox), a_trigger(sandbox)
    clock.now += 3.0
    await slack.ok("views.open", trigger_id=in_time, view=a_modal())
    clock.now += 0.1
    refused = await slack.error("views.open", trigger_id=late, view=a_modal())
    assert refused == "expired_trigger_id"


async def test_trigger_must_be_known(slack: Slack) -> None:
    refused = await slack.error("views.open", trigger_id="1.2.3", view=a_modal())
    assert refused == "invalid_trigger_id"


WRONG_VIEWS: list[tuple[dict[str, Any], str]] = [
    ({"title": None}, "invalid_arguments"),
    ({"title": {"type": "plain_text", "text": "x" * 25}}, "invalid_arguments"),
    ({"submit": None}, "invalid_arguments"),
    ({"blocks": [an_input("a"), an_input("a")]}, "invalid_arguments"),
    ({"private_metadata": "x" * 3_001}, "invalid_arguments"),
    ({"private_metadata": "x" * 250_001}, "view_too_large"),
    ({"type": "home"}, "invalid_arguments"),
]


@pytest.mark.parametrize(("changes", "error"), WRONG_VIEWS)
async def test_wrong_view_is_refused(
    slack: Slack, sandbox: Sandbox, changes: dict[str, Any], error: str
) -> None:
    view = {name: value for name, value in a_modal(**changes).items() if value is not None}
    trigger_id = a_trigger(sandbox)
    assert await slack.error("views.open", trigger_id=trigger_id, view=view) == error
    assert sandbox.open_views(ADA) == []


async def test_stack_holds_three_views(slack: Slack, sandbox: Sandbox) -> None:
    root = await opened(slack, sandbox)
    for _ in range(2):
        trigger_id = a_trigger(sandbox, view_id=root["id"])
        await slack.ok("views.push", trigger_id=trigger_id, view=a_modal())
    assert {view["root_view_id"] for view in sandbox.open_views(ADA)} == {root["id"]}
    trigger_id = a_trigger(sandbox, view_id=root["id"])
    refused = await slack.error("views.push", trigger_id=trigger_id, view=a_modal())
    assert refused == "push_limit_reached"


async def test_push_needs_a_trigger_from_a_modal(slack: Slack, sandbox: Sandbox) -> None:
    await opened(slack, sandbox)
    refused = await slack.error("views.push", trigger_id=a_trigger(sandbox), view=a_modal())
    assert refused == "invalid_trigger_id"


async def test_update_with_an_old_hash_is_refused(slack: Slack, sandbox: Sandbox) -> None:
    view = await opened(slack, sandbox)
    args = {"view_id": view["id"], "hash": view["hash"], "view": a_modal()}
    changed = (await slack.ok("views.update", **args))["view"]
    assert changed["hash"] != view["hash"]
    assert await slack.error("views.update", **args) == "hash_conflict"
    await slack.ok("views.update", view_id=view["id"], view=a_modal())


async def test_external_id_finds_the_view_and_is_unique(slack: Slack, sandbox: Sandbox) -> None:
    view = await opened(slack, sandbox, external_id="apr_1")
    args = {"external_id": "apr_1", "view": a_modal(external_id="apr_1")}
    assert (await slack.ok("views.update", **args))["view"]["id"] == view["id"]
    again = {"trigger_id": a_trigger(sandbox), "view": a_modal(external_id="apr_1")}
    assert await slack.error("views.open", **again) == "duplicate_external_id"


async def test_closed_view_cannot_be_updated(slack: Slack, sandbox: Sandbox) -> None:
    view = await opened(slack, sandbox)
    await sandbox.close_view(ADA, view)
    assert await slack.error("views.update", view_id=view["id"], view=a_modal()) == "not_found"


async def test_home_is_published_for_one_person(slack: Slack, sandbox: Sandbox) -> None:
    home = {"type": "home", "blocks": [{"type": "divider"}]}
    view = (await slack.ok("views.publish", user_id=ADA, view=home))["view"]
    shown = sandbox.home(ADA)
    assert shown is not None
    assert shown["id"] == view["id"]
    assert sandbox.home(ROSA) is None
    old = {"user_id": ADA, "view": home, "hash": "1.old"}
    assert await slack.error("views.publish", **old) == "hash_conflict"
