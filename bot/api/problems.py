"""Problems of the HTTP API (RFC 9457): codes, and the error that carries one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.words.mrkdwn import untagged

CODES: dict[str, tuple[int, str]] = {
    "malformed-json": (400, "The body is not JSON"),
    "duplicate-member": (400, "A member stands twice in an object"),
    "idempotency-key-missing": (400, "Idempotency-Key is missing"),
    "cursor-invalid": (400, "The cursor is not one of ours, or of another query"),
    "key-in-address": (400, "A key stands in the address, and is revoked"),
    "request-invalid": (400, "The request is not HTTP as this API takes it"),
    "key-missing": (401, "No key"),
    "key-invalid": (401, "Unknown key"),
    "key-revoked": (401, "The key was revoked"),
    "key-expired": (401, "The key has expired"),
    "signature-invalid": (401, "The signature is wrong, old, or used before"),
    "scope-missing": (403, "The key may not do this"),
    "tool-out-of-scope": (403, "The key may not name this tool"),
    "channel-out-of-scope": (403, "The key may not ask in this channel"),
    "people-not-allowed": (403, "The key may not name people"),
    "requester-not-allowed": (403, "The key may not name a requester"),
    "requester-missing": (403, "The key must name a requester"),
    "network-not-allowed": (403, "The key does not work from this address"),
    "origin-not-allowed": (403, "The API is not for web pages"),
    "not-found": (404, "There is no such resource of this program"),
    "method-not-allowed": (405, "The resource does not have this method"),
    "still-running": (409, "The thread still runs"),
    "not-pending": (409, "The request is over"),
    "not-approved": (409, "The request is not approved"),
    "already-started": (409, "The call was started before"),
    "digest-mismatch": (409, "This is not the call that was approved"),
    "decision-lapsed": (409, "The decision is too old"),
    "decider-not-entitled": (409, "A person who decided may not decide any more"),
    "frozen": (409, "A freeze keeps the call from starting"),
    "not-started": (409, "The call was not started"),
    "result-known": (409, "Another result is on record"),
    "too-deep": (409, "Threads start threads"),
    "body-too-large": (413, "The body is too large"),
    "unsupported-media-type": (415, "The body is not plain JSON"),
    "invalid": (422, "The request has faults"),
    "schema-unsupported": (422, "The schema has keywords that forms do not keep"),
    "arguments-do-not-fit": (422, "The arguments do not fit the schema"),
    "number-out-of-range": (422, "A number is too large for JSON"),
    "cannot-be-shown": (422, "The call cannot be shown whole"),
    "idempotency-key-reused": (422, "The key belongs to another request"),
    "callback-refused": (422, "The callback is not allowed"),
    "person-unknown": (422, "A person is unknown"),
    "expires-too-long": (422, "expires_in is longer than the policy permits"),
    "rate-limited": (429, "Too many requests"),
    "too-many-pending": (429, "Too many undecided requests"),
    "too-many-waiting": (429, "Too many held calls"),
    "internal-error": (500, "The server failed"),
    "store-unavailable": (503, "The database does not answer"),
    "slack-unavailable": (503, "Slack does not answer"),
    "shutting-down": (503, "The server stops"),
}
"""Status and title of each problem, by code. Codes are stable: programs switch on them."""

REMEDIES: dict[str, str] = {
    "request-invalid": "send HTTP/1.1",
    "not-found": "check the address; what other programs have is not shown",
    "method-not-allowed": "use a method of the header Allow",
    "body-too-large": "send at most 256 KiB",
    "unsupported-media-type": "send Content-Type: application/json, and no Content-Encoding",
    "cursor-invalid": "begin again, without a cursor",
    "key-invalid": "check it, or have another one made",
    "key-revoked": "have another one made",
    "key-expired": "have another one made",
    "network-not-allowed": "send from a network of the key, or have them changed",
    "signature-invalid": "sign the body as it is sent, with the secret of the trigger",
    "rate-limited": "send it again after Retry-After",
    "too-many-waiting": "send it again after Retry-After, or wait for less at once",
    "internal-error": "send it again; the log of the bot has its Countersign-Request-Id",
    "store-unavailable": "send it again after Retry-After",
    "slack-unavailable": "send it again after Retry-After",
}
"""Advice for a problem, by code, where it does not depend on the call."""


@dataclass(frozen=True, slots=True)
class ApiFault:
    """One fault of a body.

    Attributes:
        pointer: JSON pointer into the body; empty for the whole body.
        detail: The fault. Never holds a value of the body.
    """

    pointer: str
    detail: str


class ApiProblemError(Exception):
    """A problem that ends a call of the API.

    Args:
        code: A code of `CODES`.
        detail: What happened, what was expected, what to do. Holds no key, no argument value, and
            no name of a person that the program may not see.
        faults: The faults of the body.
        request: Id of the request that it is about; empty without one.
        retry_after_s: Seconds after which the program may try again; None for never or unknown.
        status: Another status than that of the code; None for that.
    """

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        faults: Sequence[ApiFault] = (),
        request: str = "",
        retry_after_s: int | None = None,
        status: int | None = None,
    ) -> None:
        usual_status, self.title = CODES[code]
        self.status = status or usual_status
        super().__init__(f"{code}: {detail or self.title}")
        self.code = code
        self.detail = untagged(detail, {}) or ("" if faults else REMEDIES.get(code, ""))
        self.faults = tuple(faults)
        self.request = request
        self.retry_after_s = retry_after_s
