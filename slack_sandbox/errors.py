"""Errors of the sandbox, with Slack's error codes.

RefusedError
"""

from __future__ import annotations

from collections.abc import Sequence


class RefusedError(Exception):
    """Slack would answer `ok: false`.

    Attributes:
        code: Slack's error code, such as `channel_not_found`.
        messages: Details for `response_metadata.messages`.
        fields: Further fields of the answer.
    """

    def __init__(self, code: str, messages: Sequence[str] = (), **fields: object) -> None:
        self.code = code
        self.messages = list(messages)
        self.fields = fields
        super().__init__(code)

    def as_answer(self) -> dict[str, object]:
        """Return the body of the answer."""
        answer: dict[str, object] = {"ok": False, "error": self.code, **self.fields}
        if self.messages:
            details = [f"[ERROR] {message}" for message in self.messages]
            answer["response_metadata"] = {"messages": details}
        return answer
