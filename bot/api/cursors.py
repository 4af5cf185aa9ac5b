"""Cursors of lists: signed, bound to the program and the conditions, good for a day."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json

from bot.api.problems import ApiProblemError
from bot.records.programs import ProgramRecord
from storage.documents import Place

LIFETIME_MS = 24 * 3_600_000
"""Longest time for which a cursor works, in milliseconds."""
_SIGNATURE_BYTES = 16


def write_cursor(end: Place, program: ProgramRecord, conditions: str, *, now_ms: int) -> str:
    """Return the cursor of the page behind another one.

    Args:
        end: End of the page.
        program: The program.
        conditions: The conditions of the list, as text.
        now_ms: The time now.
    """
    body = json.dumps([end, now_ms]).encode()
    return base64.urlsafe_b64encode(_sign(body, program, conditions) + body).decode()


def read_cursor(cursor: str, program: ProgramRecord, conditions: str, *, now_ms: int) -> Place:
    """Return the end of the page before, which a cursor names.

    Raises:
        ApiProblemError: `cursor-invalid`: it is of another program or other conditions, or too old.
    """
    try:
        raw = base64.b64decode(cursor, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ApiProblemError("cursor-invalid") from None
    signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _sign(body, program, conditions)):
        raise ApiProblemError("cursor-invalid")
    end, at_ms = json.loads(body)
    if not 0 <= now_ms - at_ms <= LIFETIME_MS:
        raise ApiProblemError("cursor-invalid", "it is older than a day: begin again")
    return tuple(end)


def _sign(body: bytes, program: ProgramRecord, conditions: str) -> bytes:
    message = b"\0".join((b"cursor", program.id.encode(), conditions.encode(), body))
    return hmac.digest(bytes.fromhex(program.salt), message, hashlib.sha256)[:_SIGNATURE_BYTES]
