"""The door before Bolt: clicks on our own buttons go straight to their listener.

A click is what people wait for, and Bolt's way to a listener (a context, a client and an answer for
each request, its middlewares, its listeners one by one) takes longer than all that we do with it.
What is taken here is what Bolt would have taken: the signature is checked by the same code of
Slack's, the payload is read by Bolt's own request, and the same listener and the same error handler
answer. Whatever is not beyond doubt such a click is left to Bolt, bad signatures too. Only proofs
that Slack's code stumbles over are refused here: Bolt would hand its error to the error handler,
and that would act on a payload of which nobody knows who sent it.
"""

from __future__ import annotations

from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.signature import SignatureVerifier

from bot.slack.listeners import actions, errors
from bot.slack.listeners.context import ListenerContext

_LONGEST_STAMP = 20


class FrontApp(AsyncApp):
    """Bolt's app, with a short way for clicks on our buttons.

    Until `take_clicks`, all that it takes is left to Bolt.
    """

    def __init__(self, *, signing_secret: str, **options: Any) -> None:
        """Make it.

        Args:
            signing_secret: Signs requests in HTTP mode; empty in Socket Mode.
            options: See `AsyncApp`.
        """
        super().__init__(signing_secret=signing_secret, **options)
        # Without a secret nothing has a right signature.
        self._verifier = SignatureVerifier(signing_secret) if signing_secret.strip() else None
        self._desk: ListenerContext | None = None

    def take_clicks(self, desk: ListenerContext) -> None:
        """Answer clicks on our buttons here.

        Args:
            desk: The use cases behind them.
        """
        self._desk = desk

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        """Answer a request of Slack; see `AsyncApp.async_dispatch`."""
        if req.mode == "http" and not _has_form_of_proof(req):
            return BoltResponse(status=401)
        desk = self._desk
        if desk is None or not actions.is_ours(req.body) or not self._is_from_slack(req):
            return await super().async_dispatch(req)
        try:
            await actions.answer(desk, req.body, req.context)
        except Exception as error:  # noqa: BLE001 (as Bolt does; the handler tells and logs it)
            return await errors.answer(desk, error, req)
        return BoltResponse(status=200)

    def _is_from_slack(self, req: AsyncBoltRequest) -> bool:
        """Whether it came over our own connection, or has Slack's signature."""
        if req.mode == "socket_mode":
            return True
        if self._verifier is None:
            return False
        stamp, signature = _proof(req)
        return self._verifier.is_valid(req.raw_body, stamp or "0", signature)


def _proof(req: AsyncBoltRequest) -> tuple[str, str]:
    """The time and the signature that a request came with; empty where they are missing."""
    stamp = req.headers.get("x-slack-request-timestamp", [""])[0]
    return stamp, req.headers.get("x-slack-signature", [""])[0]


def _has_form_of_proof(req: AsyncBoltRequest) -> bool:
    """Whether a time and a signature can be compared at all; what is missing is told by Bolt."""
    stamp, signature = _proof(req)
    is_time = not stamp or (stamp.isdecimal() and len(stamp) <= _LONGEST_STAMP)
    return is_time and stamp.isascii() and signature.isascii()
