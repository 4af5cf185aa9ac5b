"""The response_url of an interaction or a command.

Source:
    https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from slack_sandbox.api.content import message_content
from slack_sandbox.args import Args
from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.records import Payload, SlackChannel, SlackMessage
from slack_sandbox.workspace.state import Workspace

LIFE = 30 * 60.0
"""Number of seconds for which an address works."""
USES = 5
_KEPT = 1_000


@dataclass(slots=True, kw_only=True)
class _Right:
    user: str
    channel: str
    message: SlackMessage | None
    """The message with the button; None for commands."""
    expires_at: float
    left: int = USES


class ResponseUrls:
    """Creates addresses, and handles the requests to them."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._rights: dict[str, _Right] = {}

    def issue(self, user: str, channel: str, message: SlackMessage | None = None) -> str:
        """Return a new address. Each program that knows the address may use it."""
        secret = self._workspace.ids.secret()
        self._rights[secret] = _Right(
            user=user, channel=channel, message=message, expires_at=self._workspace.clock() + LIFE
        )
        if len(self._rights) > _KEPT:
            del self._rights[next(iter(self._rights))]
        return f"{self._workspace.url}/actions/{self._workspace.team_id}/{secret}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Handle an HTTP request to an address."""
        try:
            body = json.loads(await request.text())
        except (ValueError, RecursionError):
            body = None
        try:
            self.use(request.match_info["secret"], body)
        except RefusedError as refusal:
            status = 404 if refusal.code in {"expired_url", "used_url"} else 200
            return web.json_response(refusal.as_answer(), status=status)
        return web.json_response({"ok": True})

    def use(self, secret: str, body: object) -> None:
        """Do what the body asks for.

        Raises:
            RefusedError: The address has expired, was used too often, or Slack would refuse the
                message.
        """
        if not isinstance(body, dict):
            raise RefusedError("invalid_payload")
        right = self._rights.get(secret)
        if right is None or self._workspace.clock() > right.expires_at:
            raise RefusedError("expired_url")
        if right.left == 0:
            raise RefusedError("used_url")
        right.left -= 1
        channel = self._workspace.channels[right.channel]
        if body.get("delete_original"):
            self._delete(right, body)
        elif body.get("replace_original"):
            self._replace(right, body)
        else:
            self.post(channel, right.user, body, near=right.message)
        self._workspace.changes.tell()

    def post(
        self, channel: SlackChannel, user: str, body: Payload, near: SlackMessage | None = None
    ) -> SlackMessage:
        """Post a new message: to one person only, unless the body says `in_channel`."""
        in_channel = body.get("response_type") == "in_channel"
        content = _content(body)
        thread = body.get("thread_ts") or (None if in_channel or near is None else near.thread_ts)
        return self._workspace.post(
            channel,
            self._workspace.bot_user,
            content.pop("text"),
            by_bot=True,
            thread_ts=self._workspace.reply_root(channel, thread),
            seen_by=None if in_channel else user,
            **content,
        )

    def _delete(self, right: _Right, body: Payload) -> None:
        if set(body) - {"delete_original", "response_type"}:
            raise RefusedError("invalid_payload", ["delete_original must be the only attribute"])
        self._workspace.remove(self._original(right))

    def _replace(self, right: _Right, body: Payload) -> None:
        content = _content(body)
        content.pop("metadata")
        self._workspace.change(self._original(right), **content)

    def _original(self, right: _Right) -> SlackMessage:
        if right.message is None:
            raise RefusedError("invalid_payload", ["commands have no original message"])
        if right.message.is_deleted:
            raise RefusedError("message_not_found")
        return right.message


def _content(body: Payload) -> dict[str, Any]:
    return message_content(Args(body))
