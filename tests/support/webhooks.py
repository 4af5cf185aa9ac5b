"""A receiver of webhooks in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from yarl import URL

from bot.webhooks.addresses import AddressRules
from bot.webhooks.sending import WebhookAnswer
from tests.support.resolving import FakeResolver

HOST = "hooks.example.com"
PUBLIC = "93.184.216.34"
TAKEN = WebhookAnswer(204)
FAILED = WebhookAnswer(500, "HTTP 500 no")


@dataclass
class Posted:
    """An attempt that arrived."""

    url: str
    body: str
    headers: dict[str, str]

    @property
    def event_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event

    @property
    def type(self) -> str:
        return str(self.event["type"])

    @property
    def sequence(self) -> int:
        return int(self.event["data"]["sequence"])

    @property
    def request(self) -> dict[str, Any]:
        request: dict[str, Any] = self.event["data"]["request"]
        return request


@dataclass
class FakePoster:
    """Takes what is posted, and gives the answers in order; the last one stays."""

    answers: list[WebhookAnswer] = field(default_factory=lambda: [TAKEN])
    posted: list[Posted] = field(default_factory=list)
    rules: AddressRules = field(default_factory=lambda: AddressRules(resolver=FakeResolver(PUBLIC)))

    async def post(self, url: URL, body: str, headers: dict[str, str]) -> WebhookAnswer:
        self.posted.append(Posted(str(url), body, headers))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    @property
    def types(self) -> list[str]:
        return [posted.type for posted in self.posted]
