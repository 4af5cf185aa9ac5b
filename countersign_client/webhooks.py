"""Verifies what Countersign sends to a program: Standard Webhooks, by HMAC-SHA256."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from countersign_client.errors import WebhookInvalid

_SECRET = "whsec_"  # noqa: S105 - the mark of a secret, and none
_LEAST = 16
"""Bytes of the shortest secret that is believed; Countersign's own have 32."""

_LONGEST_TIME = 12
"""Digits of seconds since the epoch."""


class Event(BaseModel):
    """An event, as a webhook tells it.

    Attributes:
        type: Such as `request.decided`.
        timestamp: When it happened, aware.
        data: `sequence`, which rises per request, and `request`, which has no arguments by default:
            read the request with `get`.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str
    timestamp: datetime
    data: dict[str, Any]


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secrets: str | Iterable[str],
    *,
    tolerance: float | timedelta = 300,
) -> Event:
    """Give the event of a webhook that Countersign signed.

    An event may come twice, and late: drop a `sequence` that is not above the last of its request.

    Args:
        body: The body as it came, before JSON is read.
        headers: The headers, in any case.
        secrets: The endpoint's secret (`whsec_…`), or both of them during a rotation.
        tolerance: Seconds that its time stamp may differ from this machine's clock.

    Raises:
        WebhookInvalid: The body, its id or its time is not what was signed, the time stamp is too
            old, or the body is no event.
        ValueError: A secret is none of Countersign's. Mend the settings of the program.

    Source:
        https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
    """
    sent = {name.lower(): value for name, value in headers.items()}
    identity, stamp = sent.get("webhook-id", ""), sent.get("webhook-timestamp", "")
    signatures = sent.get("webhook-signature", "").split()
    is_time = stamp.isascii() and stamp.isdigit() and len(stamp) <= _LONGEST_TIME
    if not identity or not identity.isascii() or not is_time or not signatures:
        raise WebhookInvalid("a header of the signature is missing or malformed")
    now = time.time()  # noqa: TID251 - the sender's clock is compared with this machine's
    if not abs(now - int(stamp)) <= seconds(tolerance):
        raise WebhookInvalid("the time stamp is too old, or of the future")
    signed = f"{identity}.{stamp}.".encode() + body
    keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    wanted = [hmac.new(key, signed, hashlib.sha256).digest() for key in keys]
    given = [_bytes(text.removeprefix("v1,")) for text in signatures if text.startswith("v1,")]
    if not any(hmac.compare_digest(signature, other) for signature in wanted for other in given):
        raise WebhookInvalid("no signature fits; check the secret, and verify the body as it came")
    try:
        return Event.model_validate_json(body)
    except ValidationError as error:
        raise WebhookInvalid("the body is no event") from error


def seconds(value: float | timedelta) -> float:
    """Give a duration in seconds.

    Args:
        value: Seconds, or a timedelta.
    """
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _key(secret: str) -> bytes:
    key = _bytes(secret.strip().removeprefix(_SECRET))
    if len(key) < _LEAST:
        raise ValueError("a webhook's secret is whsec_ and base64, as Countersign printed it")
    return key


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
