"""Fakes of a rehearsal: its clock, its Slack client, its database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import ClientSession
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.observability.events import TellEvent
from bot.sandbox.workspace.records import Payload
from bot.slack.connect import Slack


@dataclass(slots=True)
class StageClock:
    """The time, as the case moves it: milliseconds since the epoch."""

    now_ms: int

    def __call__(self) -> int:
        """The time now."""
        return self.now_ms

    def seconds(self) -> float:
        """The same in seconds."""
        return self.now_ms / 1_000


class AnswersCalls(Protocol):
    """Answers calls of Slack's API."""

    def answer(self, method: str, values: Mapping[str, Any]) -> Payload:
        """Answer one."""
        ...


class _MadeUpClient(AsyncWebClient):
    """Slack's client, whose calls end in the made-up workspace."""

    stage: AnswersCalls

    async def api_call(self, api_method: str, **options: Any) -> AsyncSlackResponse:
        given: dict[str, Any] = {}
        for name in ("params", "data", "json"):
            given.update(options.get(name) or {})
        values = {name: value for name, value in given.items() if value is not None}
        values.pop("token", None)
        answer = self.stage.answer(api_method, values)
        response = AsyncSlackResponse(
            client=self,
            http_verb="POST",
            api_url=api_method,
            req_args={},
            data=answer,
            headers={},
            status_code=200,
        )
        if not answer.get("ok"):
            raise SlackApiError(  # type: ignore[no-untyped-call] # not typed in slack_sdk
                f"{api_method}: {answer.get('error')}", response
            )
        return response


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUpSlack(Slack):
    """The access to the made-up Slack.

    Attributes:
        stage: What answers.
    """

    stage: AnswersCalls

    def client(
        self,
        *,
        timeout_s: int,
        tell: TellEvent | None = None,  # noqa: ARG002 - see Slack
        session: ClientSession | None = None,  # noqa: ARG002 - see Slack
    ) -> AsyncWebClient:
        """See `Slack.client`."""
        made = _MadeUpClient(token=self.token, timeout=timeout_s, retry_handlers=[])
        made.stage = self.stage
        return made
