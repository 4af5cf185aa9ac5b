"""Converts the settings to a policy of one rule, as in a policy file.

The policy is parsed and checked like a file.
"""

from __future__ import annotations

import yaml

from bot.config.durations import format_duration
from bot.config.settings import Settings
from bot.errors import SettingsError
from bot.policy.parser.problems import PolicyError
from bot.ports.people import CHANNEL

APPROVERS = "approvers"
BACKUPS = "backups"
RULE = "settings"
"""Name of the one rule that asks."""
ELSEWHERE = "elsewhere"
TIMES = 6
"""Number of reminders, if the settings have the time of the first one."""

_NOT_HERE = "Gated tools work only in the channels that the operator has named."


def settings_policy(settings: Settings) -> dict[str, object]:
    """Return the settings as a policy, in the form of a policy file."""
    asks = {"approve": [{"from": [APPROVERS]}], **_asks(settings)}
    names = (*settings.approvers, *settings.escalate_to)
    is_bound = bool(settings.channels) or CHANNEL in names
    gated: dict[str, object] = {"gated": True}
    when = {**gated, "channel": list(settings.channels)} if is_bound else gated
    rules = [{"name": RULE, "when": when, "then": {"ask": asks if is_bound else {}}}]
    if is_bound:
        rules.append({"name": ELSEWHERE, "when": gated, "then": {"deny": _NOT_HERE}})
    return {
        "version": 1,
        "groups": _groups(settings),
        **({} if is_bound else {"defaults": asks}),
        "rules": rules,
        "default": "allow",
    }


_VARIABLES = {
    f"groups.{BACKUPS}": "COUNTERSIGN_ESCALATE_TO",
    ".channel": "COUNTERSIGN_CHANNELS",
    ".escalate": "COUNTERSIGN_ESCALATE_AFTER",
    ".expires": "COUNTERSIGN_EXPIRE_AFTER",
    ".remind": "COUNTERSIGN_REMIND_AFTER",
    ".max_age": "COUNTERSIGN_MAX_AGE",
}
"""The settings that parts of the policy come from. All else comes from the approvers."""


def settings_errors(error: PolicyError) -> list[SettingsError]:
    """Return the faults of a policy that was built from the settings, by their variables."""
    faults: dict[str, SettingsError] = {}
    for problem in error.problems:
        named = (name for part, name in _VARIABLES.items() if part in problem.key)
        variable = next(named, "COUNTERSIGN_APPROVERS")
        fault = SettingsError(variable, problem.fault, problem.remedy)
        faults.setdefault(str(fault), fault)
    return list(faults.values())


def policy_text(data: dict[str, object]) -> str:
    """Return a policy as YAML."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    """Writes repeated values in full, because policy files have no anchors."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - a hook of PyYAML
        return True


def _asks(settings: Settings) -> dict[str, object]:
    """Return the fields of `ask` that the settings contain."""
    given, asks = settings.model_fields_set, dict[str, object]()
    if settings.self_approval or settings.exclude_editors:
        requesters = [] if settings.self_approval else ["requesters"]
        asks["exclude"] = [*requesters, *(["editors"] if settings.exclude_editors else [])]
    if "remind_after" in given:
        asks["remind"] = {"after": format_duration(settings.remind_after), "times": TIMES}
    if "expire_after" in given:
        asks["expires"] = format_duration(settings.expire_after)
    if "max_age" in given:
        asks["max_age"] = format_duration(settings.max_age)
    if settings.escalate_after is not None:
        after = format_duration(settings.escalate_after)
        asks["escalate"] = [{"after": after, "add": [BACKUPS]}]
    return asks


def _groups(settings: Settings) -> dict[str, object]:
    groups: dict[str, object] = {APPROVERS: _group(settings.approvers)}
    if settings.escalate_to:
        groups[BACKUPS] = _group(settings.escalate_to)
    return groups


def _group(names: tuple[str, ...]) -> dict[str, object]:
    users = [name for name in names if name != CHANNEL and not name.startswith("S")]
    usergroups = [name for name in names if name.startswith("S")]
    return {
        **({"users": users} if users else {}),
        **({"usergroups": usergroups} if usergroups else {}),
        **({"here": True} if CHANNEL in names else {}),
    }
