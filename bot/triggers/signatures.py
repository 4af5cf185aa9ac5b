"""Check the signatures of webhooks that come in, over their raw bytes.

Standard Webhooks 1.0.0, GitHub's `X-Hub-Signature-256`, or a bearer token.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

VerifyKind: TypeAlias = Literal["standard-webhooks", "github", "bearer"]

OLDEST_S = 300
"""Maximum age of a signed time stamp, in seconds."""
SHORTEST_SECRET = 16
"""Least number of bytes of a secret."""


def secret_bytes(text: str) -> bytes:
    """Return a secret from its text: base64 after `whsec_`, otherwise as it is.

    Raises:
        ValueError: It is too short, or not base64.
    """
    try:
        secret = (
            base64.b64decode(text[6:], validate=True) if text[:6] == "whsec_" else text.encode()
        )
    except binascii.Error as error:
        raise ValueError("it is not base64 after whsec_") from error
    if len(secret) < SHORTEST_SECRET:
        raise ValueError(f"it has fewer than {SHORTEST_SECRET} bytes")
    return secret


def delivery_of(
    kind: VerifyKind,
    secrets: Sequence[bytes],
    headers: Mapping[str, str],
    body: bytes,
    *,
    now_ms: int,
) -> str | None:
    """Return the identity of a delivery, which tells replays; None if its signature is wrong.

    Args:
        kind: The form of the signature.
        secrets: Secrets in force: one, or two during a rotation.
        headers: Headers of the request; their names in any case.
        body: The raw body.
        now_ms: The time now.
    """
    match kind:
        case "standard-webhooks":
            return _standard(secrets, headers, body, now_ms)
        case "github":
            given = headers.get("X-Hub-Signature-256", "")
            made = [
                f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}" for secret in secrets
            ]
            return given if _is_one_of(given, made) else None
        case "bearer":
            sent = headers.get("Authorization", "").encode(errors="surrogateescape")
            is_known = any(hmac.compare_digest(sent, b"Bearer " + secret) for secret in secrets)
            return "" if is_known else None


def _standard(
    secrets: Sequence[bytes], headers: Mapping[str, str], body: bytes, now_ms: int
) -> str | None:
    name, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    is_time = at.isascii() and at.isdecimal() and len(at) < len(str(now_ms))
    if not name or not name.isascii() or not is_time or abs(now_ms // 1_000 - int(at)) > OLDEST_S:
        return None
    signed = f"{name}.{at}.".encode() + body
    digests = [hmac.new(secret, signed, hashlib.sha256).digest() for secret in secrets]
    made = [f"v1,{base64.b64encode(digest).decode()}" for digest in digests]
    given = headers.get("webhook-signature", "").split(" ")
    is_signed = any(_is_one_of(signature, made) for signature in given[:10])
    return f"{name}.{at}" if is_signed else None


def _is_one_of(given: str, made: Sequence[str]) -> bool:
    """Compare with all, in constant time."""
    data = given.encode(errors="replace")
    return any(hmac.compare_digest(data, text.encode()) for text in made)
