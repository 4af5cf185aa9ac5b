"""Shortcuts, and the options of external selects."""

from __future__ import annotations

from typing import Any

from slack_sandbox.api.responses import ResponseUrls
from slack_sandbox.blockkit.rules import option_errors
from slack_sandbox.errors import RefusedError
from slack_sandbox.people.interactions import Interactions, container_of, room_name
from slack_sandbox.workspace.blocks import find_element
from slack_sandbox.workspace.payloads import actor_payload, message_payload, view_payload
from slack_sandbox.workspace.records import Payload
from slack_sandbox.workspace.state import Workspace
from slack_sandbox.workspace.surfaces import Surfaces


class Shortcuts:
    """Sends the payloads of shortcuts, and of selects whose options come from the app."""

    def __init__(
        self,
        workspace: Workspace,
        interactions: Interactions,
        responses: ResponseUrls,
        surfaces: Surfaces,
    ) -> None:
        self._workspace = workspace
        self._interactions = interactions
        self._responses = responses
        self._surfaces = surfaces

    async def everywhere(self, user: str, callback_id: str, *, window: str = "") -> None:
        """Choose a shortcut of the composer's menu.

        Raises:
            RefusedError: The person or the shortcut does not exist, or the app did not answer.

        Source:
            https://docs.slack.dev/reference/interaction-payloads/shortcuts-interaction-payload
        """
        self._workspace.person(user)
        shortcut = self._surfaces.shortcut(callback_id, "global")
        payload = {"type": "shortcut", **self._start(user, shortcut.callback_id, window)}
        await self._interactions.send("interactive", payload)

    async def on_message(
        self, user: str, channel_id: str, ts: str, callback_id: str, *, window: str = ""
    ) -> None:
        """Choose a shortcut of a message's menu.

        Raises:
            RefusedError: The message or the shortcut does not exist, or the app did not answer.
        """
        channel, message = self._interactions.seen(user, channel_id, ts)
        shortcut = self._surfaces.shortcut(callback_id, "message")
        payload: Payload = {
            "type": "message_action",
            **self._start(user, shortcut.callback_id, window),
            "channel": {"id": channel.id, "name": room_name(channel)},
            "message_ts": message.ts,
            "message": message_payload(self._workspace, message),
            "response_url": self._responses.issue(user, channel.id, message),
        }
        await self._interactions.send("interactive", payload)

    async def suggest(self, user: str, where: Payload, typed: str) -> Payload:
        """Type into a list whose options come from the app.

        Args:
            user: Id of the person.
            where: `view_id`, or `channel` and `ts`; and `block_id` and `action_id`.
            typed: The text typed so far.

        Returns:
            The app's `options` or `option_groups`.

        Raises:
            RefusedError: The list does not exist, or Slack would refuse the app's answer.

        Source:
            https://docs.slack.dev/reference/interaction-payloads/block_suggestion-payload
        """
        blocks, place = self._place(user, where)
        block_id, element = find_element(blocks, where.get("action_id"), where.get("block_id"))
        if not element["type"].endswith("external_select"):
            raise RefusedError("action_not_found")
        payload = {
            "type": "block_suggestion",
            **actor_payload(self._workspace, user),
            **place,
            "action_id": element["action_id"],
            "block_id": block_id,
            "value": typed,
        }
        reply = await self._interactions.send("interactive", payload)
        return self._options(reply.body)

    def _place(self, user: str, where: Payload) -> tuple[list[Payload] | None, Payload]:
        if view_id := where.get("view_id"):
            view = self._interactions.own_view(user, str(view_id))
            container = {"type": "view", "view_id": view.id}
            shown = view_payload(self._workspace, view)
            return view.content["blocks"], {"container": container, "view": shown}
        channel, message = self._interactions.seen(
            user, str(where.get("channel")), str(where.get("ts"))
        )
        place = {
            "container": container_of(message),
            "channel": {"id": channel.id, "name": room_name(channel)},
            "message": message_payload(self._workspace, message),
        }
        return message.blocks, place

    def _options(self, body: Any) -> Payload:
        faults = option_errors(body)
        if faults:
            details = "; ".join(faults)
            self._interactions.bad_answers.append(f"answer to block_suggestion: {details}")
            self._workspace.changes.tell()
            raise RefusedError("app_error")
        return {key: body[key] for key in ("options", "option_groups") if key in body}

    def _start(self, user: str, callback_id: str, window: str) -> Payload:
        return {
            **actor_payload(self._workspace, user),
            "action_ts": self._workspace.ids.ts(),
            "callback_id": callback_id,
            "trigger_id": self._workspace.triggers.issue(user, window=window),
        }
