"""The modal of a click: opened at once or after a loading view."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiohttp import ClientError
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import DeliveryError
from bot.layout.modals import loading_modal
from bot.slack.calls import slack_fault

T = TypeVar("T")

PATIENCE_S = 0.25
"""Seconds to wait before a loading view is opened: most modals are ready by then.

Slack opens no modal three seconds after a click.
"""


@dataclass(slots=True)
class Window:
    """Opens a modal for the person who clicked, and updates it later.

    Args:
        client: Opens views.
        trigger_id: From the click.
        inside: Id of the modal with the click; empty for a card or Home.
        typed: Values typed into that modal.
    """

    client: AsyncWebClient
    trigger_id: str
    inside: str = ""
    typed: Mapping[str, Any] = field(default_factory=dict)
    view_id: str = ""
    """Id of the opened modal; empty before."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_open(self) -> bool:
        """Whether this click has an open modal that can show a message."""
        return bool(self.view_id or self.inside)

    async def while_doing(self, work: Awaitable[T]) -> T:
        """Wait for work that builds a modal; open a loading view if it is slow."""
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait({task}, timeout=PATIENCE_S)
            if not done:
                with suppress(DeliveryError):  # the error recurs when the modal is shown
                    await self._show(loading_modal(), unless_open=True)
            return await task
        finally:
            task.cancel()

    async def show(self, view: dict[str, Any]) -> None:
        """Show a modal: replace the loading view or open a new one.

        Raises:
            DeliveryError: Slack refused, usually because the click is too old.
        """
        await self._show(view)

    async def replace(self, view: dict[str, Any]) -> None:
        """Replace the modal that contained the click; see `show`."""
        self.view_id = self.inside
        await self._show(view)

    async def _show(self, view: dict[str, Any], *, unless_open: bool = False) -> None:
        async with self._lock:
            if self.view_id and unless_open:
                return
            method = "update" if self.view_id else "push" if self.inside else "open"
            try:
                await self._call(method, view)
            except (SlackClientError, ClientError, OSError, TimeoutError) as error:
                raise DeliveryError(f"views.{method}", slack_fault(error)) from error

    async def _call(self, method: str, view: dict[str, Any]) -> None:
        if method == "update":
            await self.client.views_update(view_id=self.view_id, view=view)
            return
        call = self.client.views_push if method == "push" else self.client.views_open
        answer = await call(trigger_id=self.trigger_id, view=view)
        opened = answer.get("view") if hasattr(answer, "get") else None
        self.view_id = str(opened.get("id") or "") if isinstance(opened, Mapping) else ""


def window_of(client: AsyncWebClient, body: Mapping[str, Any]) -> Window:
    """Return the modal handler of a click."""
    trigger_id, view = str(body.get("trigger_id")), body.get("view")
    if not isinstance(view, Mapping) or view.get("type") != "modal":
        return Window(client, trigger_id)
    state = view.get("state")
    values = state.get("values") if isinstance(state, Mapping) else None
    typed = values if isinstance(values, Mapping) else {}
    return Window(client, trigger_id, str(view.get("id") or ""), typed)
