"""Errors of the connection; those about a request are in `countersign_client.requests`.

CountersignError
    Unreachable             no answer within the client's patience
    WebhookInvalid          a body that Countersign did not sign, or signed too long ago
    ApiError                an answer that says what is wrong (RFC 9457)
        KeyRefused              401, 403
        InvalidRequest          400, 413, 422
        Busy                    429, 503, after all retries
    NotApproved             (requests) people did not agree
        Rejected, Expired, Cancelled, Failed, StillPending
    NotStarted              (requests) the start was refused
        AlreadyStarted, DecisionLapsed, Frozen, DigestMismatch
"""

from __future__ import annotations


class CountersignError(Exception):
    """Root of all errors of this package."""


class Unreachable(CountersignError):
    """No answer came within the client's `patience`. Nothing was approved."""


class WebhookInvalid(CountersignError):
    """The body was not signed with one of the secrets, or too long ago."""


class ApiError(CountersignError):
    """An answer that says what is wrong, as RFC 9457 writes it.

    Attributes:
        status: The HTTP status.
        code: What is wrong, a stable word such as `not-pending`: branch on this one.
        detail: What is wrong in this case, for people; None if the server says no more.
        errors: Faults of the body: each a JSON pointer and a sentence.
    """

    status: int
    code: str
    detail: str | None
    errors: tuple[tuple[str, str], ...]

    def __init__(
        self,
        status: int,
        code: str,
        title: str,
        detail: str | None = None,
        errors: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        faults = "; ".join(f"{pointer or '/'} {fault}" for pointer, fault in errors)
        sentence = ": ".join(part for part in (title, detail, faults) if part)
        super().__init__(f"{sentence} ({status} {code})")


class KeyRefused(ApiError):
    """The key is missing, unknown, revoked or expired, or may not do this (401, 403)."""


class InvalidRequest(ApiError):
    """The program asked for something that cannot be asked (400, 413, 422)."""


class Busy(ApiError):
    """The server asked to wait longer than the client's `patience` (429, 503).

    Attributes:
        retry_after: Seconds after which to try again; None if the server did not say.
    """

    retry_after: float | None = None
