"""The modules that decide, and the nearest tests of each: they have to notice its changes."""

from __future__ import annotations

_SQLITE = ("-k", "sqlite-memory or unit or (sqlite and restart)", "-m", "not mongo")
_MONGO = ("-k", "mongo-pymongo and not hundred and not one_wins")
"""Not those that need a quick server: one that has other work would notice each change."""
_POLICY = ("tests/unit/agents/policy/test_rules.py", "tests/unit/agents/policy/test_edges.py")
_PLAYED = ("tests/conformance/test_flows.py",)
"""Whole conversations: they notice what no test of the inside needs to repeat."""
_ATTENDANCE = (
    "tests/unit/bot/threads/test_interleavings.py",
    "tests/unit/bot/approvals/due/test_worker.py",
    "tests/unit/bot/threads/test_due_work.py",
    "tests/unit/bot/approvals/due/test_backups.py",
    "tests/unit/bot/approvals/test_refusals.py",
    "tests/unit/bot/threads/flows/test_token_away.py",
    *_PLAYED,
)
_LADDER = (
    "tests/unit/bot/approvals/due/test_escalation.py",
    "tests/unit/bot/approvals/due/test_reminders.py",
    "tests/unit/bot/approvals/due/test_backups.py",
    *_PLAYED,
)
_GATES = (
    "tests/unit/agents/runs/test_judging.py",
    "tests/unit/agents/gates/test_scenarios.py",
    "tests/unit/agents/gates/test_signals.py",
    "tests/unit/agents/gates/test_retried.py",
    "tests/unit/agents/gates/test_rulings.py",
    "tests/unit/agents/gates/test_complete.py",
    "tests/unit/agents/gates/test_approval.py",
    "tests/unit/agents/gates/test_policy.py",
    "tests/unit/agents/gates/test_votes.py",
    "tests/unit/agents/gates/test_deciding.py",
)
_HOUSE = (
    *_GATES,
    "tests/unit/agents/gates/test_piles.py",
    "tests/unit/agents/gates/test_house.py",
    "tests/unit/agents/gates/test_granted.py",
    "tests/unit/agents/gates/test_asked_anew.py",
)
_ALL_GATES = (
    *_HOUSE,
    "tests/unit/agents/core/test_roundtrip.py",
    "tests/unit/agents/gates/test_choice.py",
    "tests/unit/agents/gates/test_human.py",
)
_MASKS = (
    "tests/unit/bot/redaction/test_mask.py",
    "tests/unit/bot/redaction/test_rules.py",
    "tests/unit/bot/redaction/test_shapes.py",
    "tests/unit/bot/redaction/test_masks_of_values.py",
)
_CALLS = (
    "tests/unit/bot/redaction/test_call.py",
    "tests/unit/bot/redaction/test_scan.py",
    "tests/unit/bot/redaction/test_masks_of_values.py",
    "tests/unit/bot/approvals/test_disclosure.py",
)
_RULES = ("tests/unit/bot/approvals/test_changes.py", "tests/model/test_voting.py", *_PLAYED)
_FREEZES = (
    "tests/unit/bot/freezes/test_alerts.py",
    "tests/unit/bot/freezes/test_file.py",
    "tests/unit/bot/freezes/test_rights.py",
    "tests/unit/bot/freezes/test_rules.py",
    "tests/contract/test_freezes.py",
    "tests/unit/bot/slack/listeners/test_freezes.py",
    "-m",
    "not mongo",
)
_DOCUMENTS = (
    "tests/contract/test_documents.py",
    "tests/contract/test_decisions.py",
    "tests/contract/test_counts.py",
    "tests/contract/test_restoring.py",
    "tests/contract/test_unreadable.py",
    "tests/contract/records/test_threads.py",
)
_CHECKPOINTS = ("tests/contract/test_checkpoints.py", "tests/contract/test_thread_stores.py")

NEAREST: dict[str, tuple[str, ...]] = {
    "agents/core/codec.py": (
        "tests/unit/agents/core/test_codec.py",
        "tests/unit/agents/core/test_roundtrip.py",
    ),
    "agents/policy/base.py": _POLICY,
    "agents/policy/checks.py": _POLICY,
    "agents/policy/combine.py": _POLICY,
    "agents/policy/rules.py": _POLICY,
    "agents/gates/base.py": _ALL_GATES,
    "agents/core/digest.py": ("tests/unit/agents/core/test_digest.py",),
    "agents/gates/approval.py": _ALL_GATES,
    "agents/gates/rulings.py": _HOUSE,
    "agents/gates/votes.py": _HOUSE,
    "bot/people/access.py": ("tests/unit/bot/people/test_access.py",),
    "bot/approvals/service.py": (
        "tests/unit/bot/approvals/due/test_worker.py",
        "tests/unit/bot/threads/test_due_work.py",
        "tests/unit/bot/approvals/test_editing.py",
        "tests/unit/bot/approvals/due/test_backups.py",
        "tests/unit/bot/threads/flows/test_flows.py",
        "tests/unit/bot/threads/test_leases.py",
        "tests/unit/bot/people/test_quorum.py",
        "tests/unit/bot/approvals/test_refusals.py",
        "tests/unit/bot/threads/flows/test_token_away.py",
        "tests/unit/bot/approvals/test_disclosure.py",
        *_PLAYED,
    ),
    "bot/approvals/changes.py": _RULES,
    "bot/approvals/execution.py": ("tests/unit/bot/approvals/test_start_rules.py", *_PLAYED),
    "bot/approvals/due/card_updates.py": _ATTENDANCE,
    "bot/approvals/due/escalation.py": _LADDER,
    "bot/approvals/due/messages.py": _LADDER,
    "bot/approvals/due/reconciler.py": (
        "tests/unit/bot/approvals/due/test_reconciler.py",
        "tests/unit/bot/approvals/due/test_copies.py",
        "tests/unit/bot/approvals/due/test_batch_cards.py",
        *_ATTENDANCE,
    ),
    "bot/approvals/due/wanted.py": (
        "tests/unit/bot/approvals/due/test_wanted.py",
        *_ATTENDANCE,
    ),
    "bot/approvals/due/worker.py": _ATTENDANCE,
    "bot/freezes/alerts.py": _FREEZES,
    "bot/freezes/requests.py": _FREEZES,
    "bot/freezes/rights.py": _FREEZES,
    "bot/freezes/rules.py": ("tests/unit/bot/freezes/test_rules.py",),
    "bot/freezes/running.py": _FREEZES,
    "bot/freezes/scopes.py": _FREEZES,
    "bot/freezes/service.py": _FREEZES,
    "bot/freezes/starts.py": _FREEZES,
    "bot/policy/escalation.py": ("tests/unit/bot/policy/test_escalation.py", *_PLAYED),
    "bot/policy/refusals.py": ("tests/unit/bot/policy/test_refusals.py", *_RULES),
    "bot/policy/tally.py": ("tests/unit/bot/policy/test_tally.py", *_RULES),
    "bot/threads/halts.py": ("tests/unit/bot/threads/flows/test_halted.py",),
    "bot/threads/runs/model_limits.py": ("tests/unit/bot/threads/runs/test_spending.py",),
    "bot/threads/runs/spending.py": ("tests/unit/bot/threads/runs/test_spending.py",),
    "bot/redaction/call.py": _CALLS,
    "bot/redaction/masks.py": _CALLS,
    "bot/redaction/patterns.py": (
        "tests/unit/bot/redaction/test_forms.py",
        *_MASKS,
        "tests/unit/bot/redaction/test_quick_looks.py",
    ),
    "bot/redaction/mask.py": (*_MASKS, "tests/unit/bot/redaction/test_call.py"),
    "bot/redaction/names.py": (*_MASKS, "tests/unit/bot/redaction/test_call.py"),
    "bot/redaction/key_value_patterns.py": (*_MASKS, "tests/unit/bot/redaction/test_call.py"),
    "bot/approvals/disclosure.py": ("tests/unit/bot/approvals/test_disclosure.py",),
    "storage/checkpoints.py": (
        "tests/unit/storage/test_checkpoints.py",
        *_CHECKPOINTS,
        "tests/contract/test_unreadable.py",
        *_SQLITE,
    ),
    "storage/ledger.py": (
        "tests/unit/storage/test_ledger.py",
        "tests/contract/test_trail.py",
        *_SQLITE,
    ),
    "storage/documents.py": (*_DOCUMENTS, *_CHECKPOINTS, *_SQLITE),
    "storage/sqlite/collection.py": (*_DOCUMENTS, *_SQLITE),
    "storage/sqlite/storage.py": (*_CHECKPOINTS, *_SQLITE),
    "storage/mongo/collection.py": (
        *_DOCUMENTS,
        "tests/contract/test_mongo_documents.py",
        *_MONGO,
    ),
    "storage/mongo/storage.py": (*_CHECKPOINTS, *_MONGO),
}
"""By the path of a module. What stands in a store is texts for its database: see `own`."""


def nearest(only: str) -> dict[str, tuple[str, ...]]:
    """The part of the table that is in a folder, or is this file; all when it is empty."""
    return {path: NEAREST[path] for path in NEAREST if path.startswith(only.rstrip("/*"))}


def store_of(path: str) -> str:
    """The database in whose words a module is written: `sqlite`, `mongo`; empty when in none."""
    folder = path.rpartition("/")[0]
    return folder.removeprefix("storage/") if folder.startswith("storage/") else ""
