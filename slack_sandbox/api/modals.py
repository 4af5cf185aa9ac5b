"""The views.* methods."""

from __future__ import annotations

from slack_sandbox.api.content import check_view
from slack_sandbox.args import Args
from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.payloads import view_payload
from slack_sandbox.workspace.records import Payload, View
from slack_sandbox.workspace.state import Workspace


def open_view(workspace: Workspace, args: Args) -> Payload:
    """views.open."""
    content = _content(args, "modal")
    trigger = workspace.triggers.spend(_trigger_id(args))
    return _answer(workspace, workspace.views.open(trigger.user, content, trigger.window))


def push_view(workspace: Workspace, args: Args) -> Payload:
    """views.push; the trigger must come from inside the modal."""
    content = _content(args, "modal")
    trigger = workspace.triggers.spend(_trigger_id(args))
    if trigger.view_id is None:
        raise RefusedError("invalid_trigger_id")
    return _answer(workspace, workspace.views.push(trigger.user, content, trigger.window))


def update_view(workspace: Workspace, args: Args) -> Payload:
    """views.update, by `view_id` or `external_id`, with or without `hash`."""
    content = _content(args)
    view_id, external_id = args.text("view_id") or None, args.text("external_id")
    if view_id is None and not external_id:
        raise RefusedError("invalid_arguments", ["missing required field: view_id"])
    view = workspace.views.find(view_id, external_id)
    workspace.views.update(view, content, args.text("hash") or None)
    return _answer(workspace, view)


def publish_view(workspace: Workspace, args: Args) -> Payload:
    """views.publish."""
    person = workspace.person(args.need("user_id"))
    content = _content(args, "home")
    view = workspace.views.publish(person.id, content, args.text("hash") or None)
    return _answer(workspace, view)


def _content(args: Args, kind: str | None = None) -> Payload:
    content = args.table("view", "invalid_arguments")
    if content is None:
        raise RefusedError("invalid_arguments", ["missing required field: view"])
    check_view(content)
    if kind and content["type"] != kind:
        raise RefusedError(
            "invalid_arguments", [f"must be a {kind} view [json-pointer:/view/type]"]
        )
    return content


def _trigger_id(args: Args) -> str:
    return args.text("trigger_id") or args.need("interactivity_pointer")


def _answer(workspace: Workspace, view: View) -> Payload:
    return {"view": view_payload(workspace, view)}
