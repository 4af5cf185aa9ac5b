"""The care for a record that cannot be read: it is logged, once, and named for people."""

from __future__ import annotations

import logging

from storage.codec import MAX_WHY
from storage.errors import RecordFormatError

logger = logging.getLogger(__name__)


def reason(error: RecordFormatError) -> str:
    """Log that a record is set aside, and why; return what is kept of that."""
    logger.error(
        "quarantined an unreadable record: %s; run `countersign doctor` for details",
        error,
        extra={"action": "set_aside"},
    )
    return str(error)[:MAX_WHY]
