"""The page of the audit: every act, with its meaning and its fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from bot.audit.acts import Act
from reference_pages import sources, text

PURPOSE = (
    "Every act that the audit keeps, for operators and security reviewers: its meaning and its "
    "fields in `detail`."
)
_COMMON = (
    "Every entry has `at_ms` (milliseconds since 1970, UTC), `action`, `thread_id`, `approval_id`, "
    "`actor_id` (the person; empty for the program), `for_id` (the person who delegated) and "
    "`detail`. A field without a value is left out. Secrets are masked, as on cards."
)
_COMMON_ARGUMENTS = frozenset(
    {"key", "at_ms", "about", "by", "behalf_of", "team_id", "masks", "store", "beside"}
)
_MAKERS = frozenset({"note", "entry_of"})
_SEVERAL: Mapping[tuple[str, str], tuple[Act, ...]] = {
    ("entries.py", "request_entry"): (Act.REQUESTED, Act.DOUBTED, Act.UNDECIDABLE),
    ("entries.py", "decision_entry"): (
        Act.DECIDED,
        Act.EXPIRED,
        Act.CANCELLED,
        Act.WITHDRAWN,
        Act.SUPERSEDED,
        Act.DENIED,
        Act.ALLOWED,
        Act.UNDECIDABLE,
    ),
    ("entries.py", "_act_entry"): (Act.CLAIMED, Act.CLAIM_ENDED, Act.SNOOZED, Act.ASKED_BACK),
    ("entries.py", "removed_vote_entry"): (Act.TAKEN_BACK, Act.VOTE_DROPPED),
    ("entries.py", "note_opened"): (Act.OPENED, Act.REVEALED),
    ("delegation.py", "_note"): (Act.DELEGATED, Act.DELEGATION_ENDED, Act.AWAY),
    ("application_policy.py", "note"): (Act.ALLOWED, Act.DENIED),
    ("service.py", "act_entry"): (Act.FROZEN, Act.UNFROZEN),
    ("endpoints.py", "_note"): (
        Act.WEBHOOK_ADDED,
        Act.WEBHOOK_REMOVED,
        Act.WEBHOOK_ROTATED,
        Act.WEBHOOK_REDRIVEN,
    ),
    ("holds.py", "_note"): (Act.TRIGGER_HELD, Act.TRIGGER_LIFTED),
    ("policies.py", "__call__"): (Act.POLICY_LOADED, Act.POLICY_REFUSED),
}
"""Functions that make entries of several acts."""


def build() -> str:
    """Make the page."""
    texts, fields = sources.member_texts(Act), fields_of()
    parts = [text.wrap(_COMMON)]
    for act in sorted(Act):
        parts += [
            text.section(2, text.code(act), text.anchor("audit", act)),
            text.wrap(texts[act.name]),
        ]
        if fields[act]:
            parts.append(text.wrap(f"Fields: {', '.join(map(text.code, fields[act]))}."))
    return text.page("Audit entries", PURPOSE, parts)


def fields_of() -> Mapping[Act, list[str]]:
    """Give the names of the fields of each act, as the code writes them."""
    fields_by_act: dict[Act, dict[str, None]] = {act: {} for act in Act}
    fields_by_act[Act.CHAIN_BROKEN]["upto_seq"] = None  # the storage writes it
    for file, function, call in _calls():
        for act in _SEVERAL.get((file, function)) or _acts_in(call):
            fields_by_act[act].update(dict.fromkeys(_fields_in(call)))
    return {act: list(names) for act, names in fields_by_act.items()}


def unread() -> list[tuple[str, str]]:
    """Give the calls whose act is neither a literal nor in the table above."""
    return [
        (file, function)
        for file, function, call in _calls()
        if not _acts_in(call) and (file, function) not in _SEVERAL and function != "note"
    ]


def _calls() -> Iterator[tuple[str, str, ast.Call]]:
    for path, tree in sources.trees("bot"):
        if "about=" not in path.read_text("utf-8"):
            continue  # to walk a tree takes a hundred times as long
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Call) and _name_of(node) in _MAKERS and _fits(node):
                        yield path.name, function.name, node


def _name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _fits(call: ast.Call) -> bool:
    return {"key", "at_ms", "about"} <= {keyword.arg for keyword in call.keywords}


def _acts_in(call: ast.Call) -> list[Act]:
    return [
        Act[node.attr]
        for argument in call.args
        for node in ast.walk(argument)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Act"
    ]


def _fields_in(call: ast.Call) -> list[str]:
    names = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
    return [name for name in names if name not in _COMMON_ARGUMENTS]
