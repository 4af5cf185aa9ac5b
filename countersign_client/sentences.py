"""One sentence for a model that asked, about a call that did not run."""

from __future__ import annotations

from countersign_client.requests import (
    AlreadyStarted,
    Cancelled,
    DecisionLapsed,
    DigestMismatch,
    Expired,
    Failed,
    Frozen,
    NotApproved,
    NotStarted,
    Rejected,
    Request,
    StillPending,
)


def text_for_model(error: NotApproved | NotStarted) -> str:
    """Say to a model why a call did not run; a refusal and a silence are told apart.

    Args:
        error: What `approve`, `edit`, `ask`, `execute` or a gated function raised.

    Returns:
        One or two sentences, with the reason that people gave.
    """
    if isinstance(error, Rejected):
        return _rejected(error)
    if isinstance(error, Expired):
        within = _lifetime(error.request)
        return f"Not run: nobody answered{within}. This is no rejection."
    if isinstance(error, Failed):
        return f"Not run: people could not be asked ({error.code}). This is no rejection."
    if isinstance(error, StillPending):
        return f"Not run yet: people have not decided. The request {error.request.id} lives."
    if isinstance(error, AlreadyStarted):
        state = error.request.execution.state
        summary = error.request.execution.summary
        known = f"{state}: {summary}" if summary else state
        return f"Not run again: it was started before, and its outcome is: {known}."
    return next((text for kind, text in _TEXTS.items() if isinstance(error, kind)), _UNKNOWN)


_UNKNOWN = "Not run: Countersign did not allow it."
_TEXTS: dict[type[Exception], str] = {
    Cancelled: "Not run: the request was withdrawn. This is no rejection.",
    DecisionLapsed: "Not run: it was approved, but too long ago, or a freeze forbids it now. "
    "Make the same call again later. This is no rejection.",
    Frozen: "Not run: an admin has frozen all starts.",
    DigestMismatch: "Not run: it is not what people approved.",
}


def _rejected(error: Rejected) -> str:
    decision = error.request.decision
    if decision is None or decision.source == "policy":
        rule = f" {decision.rule}" if decision and decision.rule else ""
        return f"Rejected by the rule{rule} of the policy. Do not try it in another way."
    names = " and ".join(person.name for person in decision.by) or "people"
    return f"Rejected by {names}{f': {error.reason}' if error.reason else '.'}"


def _lifetime(request: Request) -> str:
    """Say for how long people could answer, if the server told when it was asked."""
    if request.created_at is None:
        return ""
    seconds = (request.expires_at - request.created_at).total_seconds()
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f" within {seconds / length:.3g} {unit}"
    return f" within {seconds:.0f} s"
