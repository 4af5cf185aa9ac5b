"""A decision of people in Slack, for any Python program.

    from countersign_client import gate

    @gate(tool="deploy", title="Deploy {service} to {env}")
    def deploy(service: str, env: str) -> str:
        return run(f"./deploy.sh {service} {env}")

    deploy("payments", "production")  # asks, waits, runs what was approved, and reports

Address and key of the server are in the environment: COUNTERSIGN_URL and COUNTERSIGN_KEY.
"""

from countersign_client.asynchronous import AsyncCountersign
from countersign_client.canonical import canonical, digest
from countersign_client.errors import (
    ApiError,
    Busy,
    CountersignError,
    InvalidRequest,
    KeyRefused,
    Unreachable,
    WebhookInvalid,
)
from countersign_client.gates import gate
from countersign_client.requests import (
    AlreadyStarted,
    Cancelled,
    Change,
    Decision,
    DecisionLapsed,
    DigestMismatch,
    Execution,
    ExecutionMode,
    Expired,
    Failed,
    Frozen,
    NotApproved,
    NotStarted,
    Person,
    Rejected,
    Request,
    Status,
    StillPending,
)
from countersign_client.runs import AsyncRun, Run
from countersign_client.sentences import text_for_model
from countersign_client.sync import Countersign
from countersign_client.webhooks import Event, verify_webhook

__all__ = [
    "AlreadyStarted",
    "ApiError",
    "AsyncCountersign",
    "AsyncRun",
    "Busy",
    "Cancelled",
    "Change",
    "Countersign",
    "CountersignError",
    "Decision",
    "DecisionLapsed",
    "DigestMismatch",
    "Event",
    "Execution",
    "ExecutionMode",
    "Expired",
    "Failed",
    "Frozen",
    "InvalidRequest",
    "KeyRefused",
    "NotApproved",
    "NotStarted",
    "Person",
    "Rejected",
    "Request",
    "Run",
    "Status",
    "StillPending",
    "Unreachable",
    "WebhookInvalid",
    "canonical",
    "digest",
    "gate",
    "text_for_model",
    "verify_webhook",
]
