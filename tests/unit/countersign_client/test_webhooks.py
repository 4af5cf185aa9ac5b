"""What Countersign signs is believed, and nothing else; compared with another library."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook

from countersign_client import WebhookInvalid, verify_webhook

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(32)).decode()
BODY = json.dumps(
    {
        "type": "request.decided",
        "timestamp": "2026-11-23T10:04:10.512Z",
        "data": {"sequence": 5, "request": {"id": "apr_" + 4 * "9c41d07e"}},
    }
).encode()


def signed(
    secret: str = SECRET, *, late: float = 0, body: bytes = BODY, identity: str = "evt_1_5"
) -> dict[str, str]:
    """The headers that the library for senders makes."""
    at = datetime.now(UTC) - timedelta(seconds=late)
    return {
        "Webhook-Id": identity,
        "Webhook-Timestamp": str(int(at.timestamp())),
        "Webhook-Signature": Webhook(secret).sign(identity, at, body.decode()),
    }


def test_a_signed_event_is_given() -> None:
    event = verify_webhook(BODY, signed(), SECRET)
    assert (event.type, event.data["sequence"]) == ("request.decided", 5)


def test_during_a_rotation_one_of_two_secrets_and_signatures_is_enough() -> None:
    headers = signed()
    headers["Webhook-Signature"] = (
        f"{signed(OTHER)['Webhook-Signature']} {headers['Webhook-Signature']}"
    )
    assert verify_webhook(BODY, headers, SECRET).type == "request.decided"
    assert verify_webhook(BODY, signed(), [OTHER, SECRET]).type == "request.decided"


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Webhook-Id", "evt_1_6"),
        ("Webhook-Id", ""),
        ("Webhook-Id", "\udcff"),
        ("Webhook-Timestamp", ""),
        ("Webhook-Timestamp", "soon"),
        ("Webhook-Timestamp", "9" * 400),
        ("Webhook-Timestamp", "9" * 5_000),
        ("Webhook-Timestamp", "١٧٦٣٨٩٢٢٥٠"),
        ("Webhook-Signature", ""),
        ("Webhook-Signature", "v1,"),
        ("Webhook-Signature", "v1,!!"),
        ("Webhook-Signature", "v1,ü"),
        ("Webhook-Signature", "v1,\udcff"),
        ("Webhook-Signature", "v1a," + "A" * 43 + "="),
    ],
)
def test_an_altered_header_is_refused(header: str, value: str) -> None:
    with pytest.raises(WebhookInvalid):
        verify_webhook(BODY, {**signed(), header: value}, SECRET)


def test_an_altered_body_is_refused() -> None:
    with pytest.raises(WebhookInvalid):
        verify_webhook(BODY.replace(b"5", b"6"), signed(), SECRET)


def test_another_secret_is_refused() -> None:
    with pytest.raises(WebhookInvalid):
        verify_webhook(BODY, signed(OTHER), SECRET)


@pytest.mark.parametrize("late", [-310, 310])
def test_an_event_of_another_time_is_refused(late: float) -> None:
    with pytest.raises(WebhookInvalid, match="time stamp"):
        verify_webhook(BODY, signed(late=late), SECRET)
    late_event = verify_webhook(BODY, signed(late=late), SECRET, tolerance=timedelta(minutes=10))
    assert late_event.type == "request.decided"


def test_a_signed_body_that_is_no_event_is_refused() -> None:
    with pytest.raises(WebhookInvalid, match="no event"):
        verify_webhook(b"{}", signed(body=b"{}"), SECRET)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_AA==", "whsec_no base64", "x"])
def test_a_secret_that_is_none_is_an_error_of_the_program(secret: str) -> None:
    with pytest.raises(ValueError, match="whsec_"):
        verify_webhook(BODY, signed(), secret)
