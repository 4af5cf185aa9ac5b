"""People use cards and modals, and the app's answers take effect."""

from __future__ import annotations

from typing import Any

from slack_sandbox.api.content import check_view
from slack_sandbox.api.responses import ResponseUrls
from slack_sandbox.delivery.dispatcher import Dispatcher
from slack_sandbox.delivery.http import AppReply, Kind
from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.blocks import (
    chosen,
    elements_of,
    find_element,
    input_block,
    missing_inputs,
    state_of,
    value_key,
)
from slack_sandbox.workspace.payloads import actor_payload, message_payload, view_payload
from slack_sandbox.workspace.records import Payload, SlackChannel, SlackMessage, View
from slack_sandbox.workspace.state import Workspace

_REASONS = {"http_timeout": "operation_timeout", "not_connected": "app_not_connected"}
_REQUIRED = "Please complete this required field."


class Interactions:
    """Acts for people: buttons, fields, modals, commands."""

    def __init__(
        self, workspace: Workspace, dispatcher: Dispatcher, responses: ResponseUrls
    ) -> None:
        self._workspace = workspace
        self._dispatcher = dispatcher
        self._responses = responses
        self.bad_answers: list[str] = []
        """Invalid answers of the app, one sentence each."""

    async def click(self, user: str, channel_id: str, ts: str, action: Payload) -> None:
        """Use a button or field of a message; see `click_payload`.

        Raises:
            RefusedError: The person does not see such an element, or the app did not answer.
        """
        await self.send("interactive", self.click_payload(user, channel_id, ts, action))

    def click_payload(self, user: str, channel_id: str, ts: str, action: Payload) -> Payload:
        """Return the payload of a click on a button or field of a message.

        Args:
            user: Id of the person.
            channel_id: The conversation.
            ts: The message.
            action: action_id, block_id, the selection (`value`, `selected_option` and so on),
                `values`, the state of the message's fields, and `window`, the page's window.

        Raises:
            RefusedError: The person does not see such an element.
        """
        channel, message = self.seen(user, channel_id, ts)
        payload = self._block_actions(user, message.blocks, action)
        payload["trigger_id"] = self._workspace.triggers.issue(user, window=window_of(action))
        payload["response_url"] = self._responses.issue(user, channel.id, message)
        payload["container"] = container_of(message)
        payload["channel"] = {"id": channel.id, "name": room_name(channel)}
        if message.seen_by is None:
            payload["message"] = message_payload(self._workspace, message)
        return payload

    async def click_in_view(self, user: str, view_id: str, action: Payload) -> None:
        """Use a button or field of a modal or Home tab."""
        view = self.own_view(user, view_id)
        view.values = _merged(view.values, action.get("values"))
        payload = self._block_actions(user, view.content["blocks"], action)
        _keep(view, payload["actions"][0])
        inside = view.id if view.type == "modal" else None
        window = view.window or window_of(action)
        payload["trigger_id"] = self._workspace.triggers.issue(user, inside, window=window)
        payload["container"] = {"type": "view", "view_id": view.id}
        payload["view"] = view_payload(self._workspace, view)
        payload.pop("state")
        await self.send("interactive", payload)

    async def submit(self, user: str, view_id: str, values: Payload) -> Payload:
        """Press a modal's submit button.

        Returns:
            `ok`, and the app's `response_action` with its errors or view.

        Raises:
            RefusedError: The modal is another person's, or the app's answer is missing or invalid.
        """
        view = self.own_view(user, view_id)
        if view.type != "modal" or view not in self._workspace.views.stack_of(view):
            raise RefusedError("view_not_found")
        view.values = _merged(view.values, values)
        shown = view_payload(self._workspace, view)
        missing = missing_inputs(view.content["blocks"], shown["state"]["values"])
        if missing:
            errors = dict.fromkeys(missing, _REQUIRED)
            return {"ok": False, "error": "required_field", "errors": errors}
        payload = {
            "type": "view_submission",
            **actor_payload(self._workspace, user),
            "trigger_id": self._workspace.triggers.issue(user, view.id, window=view.window),
            "view": shown,
            "response_urls": [],
        }
        reply = await self.send("interactive", payload)
        return self._respond(view, reply.body)

    async def close(self, user: str, view_id: str, *, everything: bool = False) -> None:
        """Close a view with Cancel, or the whole modal with its x."""
        view = self.own_view(user, view_id)
        stack = self._workspace.views.stack_of(view)
        closed_view = stack[0] if everything and stack else view
        payload = {
            "type": "view_closed",
            **actor_payload(self._workspace, user),
            "view": view_payload(self._workspace, closed_view),
            "is_cleared": everything,
        }
        self._workspace.views.close(view, everything=everything)
        if closed_view.content.get("notify_on_close"):
            await self.send("interactive", payload)

    async def command(
        self, user: str, channel_id: str, command: str, text: str, *, window: str = ""
    ) -> None:
        """Type a slash command. People of other workspaces cannot."""
        workspace = self._workspace
        channel = workspace.has_channel(user, channel_id)
        person = workspace.person(user)
        if person.is_stranger or person.team_id != workspace.team_id:
            raise RefusedError("unknown_command")
        payload = {
            "token": workspace.verification_token,
            "team_id": workspace.team_id,
            "team_domain": workspace.team_domain,
            "channel_id": channel.id,
            "channel_name": room_name(channel),
            "user_id": user,
            "user_name": person.name,
            "command": command,
            "text": workspace.typed(text).text,
            "api_app_id": workspace.app_id,
            "is_enterprise_install": "false",
            "response_url": self._responses.issue(user, channel.id),
            "trigger_id": workspace.triggers.issue(user, window=window),
        }
        reply = await self.send("slash_commands", payload)
        body = {"text": reply.body} if isinstance(reply.body, str) else reply.body
        if body:
            self._responses.post(channel, user, body)

    def seen(self, user: str, channel_id: str, ts: str) -> tuple[SlackChannel, SlackMessage]:
        """Return a message and its channel, if the person sees the message.

        Raises:
            RefusedError: The person sees no such message.
        """
        channel = self._workspace.has_channel(user, channel_id)
        message = self._workspace.message(channel.id, ts)
        if message.seen_by not in (None, user):
            raise RefusedError("message_not_found")
        return channel, message

    def own_view(self, user: str, view_id: str) -> View:
        """Return an open view or the Home tab of a person.

        Raises:
            RefusedError: The view is not open, or another person's.
        """
        try:
            view = self._workspace.views.find(view_id)
        except RefusedError:
            raise RefusedError("view_not_found") from None
        if view.user != user:
            raise RefusedError("view_not_found")
        return view

    async def send(self, kind: Kind, payload: Payload) -> AppReply:
        """Send a payload to the app.

        Raises:
            RefusedError: The app gave no valid answer within the timeout.
        """
        reply = await self._dispatcher.ask(kind, payload)
        self._workspace.changes.tell()
        if not reply.ok:
            raise RefusedError(_REASONS.get(reply.reason, "app_error"))
        return reply

    def _block_actions(self, user: str, blocks: list[Payload] | None, action: Payload) -> Payload:
        block_id, element = find_element(blocks, action.get("action_id"), action.get("block_id"))
        used: Payload = {
            "type": element["type"],
            "action_id": element["action_id"],
            "block_id": block_id,
            "action_ts": self._workspace.ids.ts(),
        }
        used.update(_used(element, action))
        return {
            "type": "block_actions",
            **actor_payload(self._workspace, user),
            "state": {"values": state_of(blocks, action.get("values") or {})},
            "actions": [used],
        }

    def _respond(self, view: View, body: Any) -> Payload:
        """Apply the app's answer to a submission."""
        views = self._workspace.views
        if not body:
            views.close(view)
            return {"ok": True}
        try:
            return self._act(view, body)
        except RefusedError as refusal:
            details = "; ".join(refusal.messages)
            self.bad_answers.append(f"answer to view_submission: {refusal.code} {details}".strip())
            self._workspace.changes.tell()
            raise RefusedError("app_error") from None

    def _act(self, view: View, body: Any) -> Payload:
        match body:
            case {"response_action": "errors", "errors": dict(errors)} if errors:
                _check_errors(view, errors)
                return {"ok": True, "response_action": "errors", "errors": errors}
            case {"response_action": "update", "view": dict(content)}:
                check_view(content)
                self._workspace.views.update(view, content)
                shown = view
            case {"response_action": "push", "view": dict(content)}:
                check_view(content)
                shown = self._workspace.views.push(view.user, content, view.window)
            case {"response_action": "clear"}:
                self._workspace.views.close(view, everything=True)
                return {"ok": True, "response_action": "clear"}
            case _:
                raise RefusedError("unknown response_action")
        payload = view_payload(self._workspace, shown)
        return {"ok": True, "response_action": body["response_action"], "view": payload}


def _check_errors(view: View, errors: Payload) -> None:
    for block_id, text in errors.items():
        if not input_block(view.content["blocks"], block_id):
            raise RefusedError("errors", [f"{block_id} is not an input block"])
        if not isinstance(text, str) or not text:
            raise RefusedError("errors", [f"the error for {block_id} is not a text"])


def _used(element: Payload, action: Payload) -> Payload:
    key = value_key(element)
    if key is not None:
        return {key: chosen(element, action.get(key, action.get("value")))}
    used: Payload = {"text": element["text"]} if "text" in element else {}
    if "value" in element:
        used["value"] = element["value"]
    if "style" in element:
        used["style"] = element["style"]
    return used


def _keep(view: View, used: Payload) -> None:
    key = value_key(used)
    if key is not None and used["type"] != "overflow":
        value = {used["action_id"]: {"type": used["type"], key: used[key]}}
        view.values = _merged(view.values, {used["block_id"]: value})


def _merged(before: Payload, new: Payload | None) -> Payload:
    """Return values, replaced by newer values."""
    merged = {block_id: dict(actions) for block_id, actions in before.items()}
    for block_id, actions in (new or {}).items():
        merged.setdefault(block_id, {}).update(actions)
    return merged


def container_of(message: SlackMessage) -> Payload:
    """Return the `container` of an interaction with a message."""
    container: Payload = {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": message.channel,
        "is_ephemeral": message.seen_by is not None,
    }
    if message.thread_ts:
        container["thread_ts"] = message.thread_ts
    return container


def window_of(body: Payload) -> str:
    """Return the window of an action, as the page named it."""
    window = body.get("window")
    return window if isinstance(window, str) else ""


def room_name(channel: SlackChannel) -> str:
    """Return the name of a conversation in payloads."""
    if channel.kind == "im":
        return "directmessage"
    return "privategroup" if channel.is_private else channel.name


def field_values(blocks: list[Payload], given: Payload) -> Payload:
    """Turn block_id → text or option value into the shape of `state.values`.

    Raises:
        RefusedError: `no_such_field`: the field does not exist.
    """
    return {block_id: _filled(blocks, block_id, value) for block_id, value in given.items()}


def _filled(blocks: list[Payload], block_id: str, value: Any) -> Payload:
    element = _field(blocks, block_id)
    action_id, key = element["action_id"], value_key(element)
    if isinstance(value, dict) and action_id in value:
        value = value[action_id]
    if isinstance(value, dict) and key in value:
        value = value[key]
    return {action_id: {"type": element["type"], key: chosen(element, value)}}


def _field(blocks: list[Payload], block_id: str) -> Payload:
    for block in blocks:
        for element in elements_of(block) if block["block_id"] == block_id else []:
            if value_key(element):
                return element
    raise RefusedError("no_such_field", [block_id])
