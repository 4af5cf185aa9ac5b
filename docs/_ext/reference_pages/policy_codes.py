"""The error codes of policy files: the meaning of each, and a faulty example.

An example replaces the same keys of `BASE`. A test reads each of them and compares the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.policy.parser.problems import Code

BASE = """
version: 1
groups: {sre: {usergroups: [S0SRE]}}
defaults: {approve: [{from: [sre]}]}
rules: []
default: {ask: {}}
"""


@dataclass(frozen=True, slots=True)
class PolicyCode:
    """An error code.

    Attributes:
        meaning: One sentence.
        example: Top-level keys of a faulty file; empty where no file shows the error.
    """

    meaning: str
    example: str


def _ask(keys: str) -> str:
    return f"rules: [{{name: a, then: {{ask: {{{keys}}}}}}}]"


def _when(keys: str) -> str:
    return f"rules: [{{name: a, when: {{{keys}}}, then: allow}}]"


def _arg(keys: str) -> str:
    return _when(f"tool: deploy, args: [{{{keys}}}]")


CODES: Mapping[Code, PolicyCode] = {
    "not_yaml": PolicyCode("The file is not YAML, or not UTF-8.", "rules: ["),
    "too_big": PolicyCode("The file is too long or too deeply nested.", ""),
    "anchor": PolicyCode("The file uses a YAML anchor or alias.", "default: &a {ask: {}}"),
    "duplicate_key": PolicyCode(
        "A map has a key twice, or a list has a value twice.",
        "groups: {sre: {usergroups: [S0SRE, S0SRE]}}",
    ),
    "unknown_key": PolicyCode("The key does not exist.", "groups: {sre: {usergroup: [S0SRE]}}"),
    "missing_key": PolicyCode("A required key is missing.", "rules: [{name: a}]"),
    "wrong_type": PolicyCode("The value has another type than the key needs.", "rules: {}"),
    "bad_version": PolicyCode("The version is not 1.", "version: 2"),
    "bad_name": PolicyCode(
        "The name has the wrong form, is reserved, or is used twice.",
        "groups: {SRE: {usergroups: [S0SRE]}}\ndefaults: {}\ndefault: {deny: No rule.}",
    ),
    "duplicate_rule": PolicyCode(
        "Two rules have the same name.",
        "rules: [{name: a, when: {tool: deploy}, then: allow}, {name: a, then: allow}]",
    ),
    "unreachable": PolicyCode(
        "A rule above matches every call, or every call that this rule matches.",
        "rules: [{name: a, then: allow}, {name: b, then: allow}]",
    ),
    "bad_then": PolicyCode("`then` is not exactly one of its three forms.", "default: permit"),
    "bad_value": PolicyCode("The key cannot have this value.", _ask("urgent: often")),
    "bad_duration": PolicyCode(
        "The value is no duration, or is outside of the limits.", _ask("expires: 8 hours")
    ),
    "bad_order": PolicyCode(
        "Two times are in the wrong order.",
        _ask("expires: 1h, escalate: [{after: 2h, add: [sre]}]"),
    ),
    "bad_id": PolicyCode(
        "The value is not the id of such a thing.", "groups: {sre: {users: [ada]}}"
    ),
    "bad_operator": PolicyCode(
        "The operator does not fit the type of the argument.",
        _arg("path: environment, op: gt, value: 5"),
    ),
    "bad_pattern": PolicyCode(
        "The regular expression is wrong or too long.",
        _arg('path: environment, op: matches, value: "("'),
    ),
    "each_required": PolicyCode(
        "The path has `*`, and `each` is missing.", _arg("path: items.*, op: eq, value: a")
    ),
    "empty_group": PolicyCode("The group names nobody.", "groups: {sre: {users: []}}"),
    "needs_zone": PolicyCode(
        "A rotation or quiet hours have no time zone.", "quiet: {days: [sun]}"
    ),
    "no_approvers": PolicyCode("A request would have no approvers.", "defaults: {}"),
    "approve_and_stages": PolicyCode(
        "`approve` and `stages` exclude each other.",
        _ask(
            "approve: [{from: [sre]}], stages: [{name: x, approve: [{from: [sre]}]}, "
            "{name: y, approve: [{from: [sre]}]}]"
        ),
    ),
    "for_required": PolicyCode(
        "With several requirements, an escalation step must say for which it is.",
        _ask(
            "approve: [{from: [sre], name: x}, {from: [sre], name: y}], "
            "escalate: [{after: 1h, add: [sre]}]"
        ),
    ),
    "grants_slots": PolicyCode(
        "Standing grants need a request that one person can approve.",
        _ask("approve: [{from: [sre], count: 2}], grants: {max_time: 1h, max_uses: 5}"),
    ),
    "grants_risk": PolicyCode(
        "Standing grants need a risk below `high`.",
        _ask("risk: high, grants: {max_time: 1h, max_uses: 5}"),
    ),
    "always_ask_conflict": PolicyCode(
        "`always_ask` excludes grants and break-glass.",
        _ask("always_ask: yes, grants: {max_time: 1h, max_uses: 5}"),
    ),
    "here_needs_channel": PolicyCode(
        "A rule that uses a group with `here` must name its channels.",
        "groups: {room: {here: true}}\ndefaults: {approve: [{from: [room]}]}",
    ),
    "allow_on_gated": PolicyCode(
        "`allow` meets a tool with a gate, and no approvers are named.",
        "defaults: {}\ndefault: allow",
    ),
    "unknown_tool": PolicyCode("No agent has this tool.", _when("tool: deply")),
    "unknown_tag": PolicyCode("No tool has this tag.", _when("tags: [chnge]")),
    "unknown_agent": PolicyCode("No agent has this name.", _when("agent: [clark]")),
    "unknown_path": PolicyCode(
        "The tool has no such argument.", _arg("path: env, op: eq, value: production")
    ),
    "unknown_group": PolicyCode(
        "The group is not defined.", "defaults: {approve: [{from: [ops]}]}"
    ),
    "unknown_requirement": PolicyCode(
        "`for` names a requirement that does not exist.",
        _ask("approve: [{from: [sre]}], escalate: [{after: 1h, add: [sre], for: [ops]}]"),
    ),
    "unknown_id": PolicyCode(
        "Slack has no such person, user group or channel, or it cannot approve.",
        "groups: {sre: {users: [U0NOBODY]}}",
    ),
    "bot_not_in_channel": PolicyCode(
        "The bot is not a member of the channel.", "groups: {sre: {channels: [C0AWAY]}}"
    ),
    "unresolvable": PolicyCode(
        "Slack did not answer, or the workspace's plan has no user groups.",
        "groups: {sre: {usergroups: [S0SRE]}}",
    ),
}
"""Every code, in the order of `Code`."""
BY_SLACK = frozenset({"unknown_id", "bot_not_in_channel", "unresolvable"})
"""Codes of errors that only a look-up in Slack finds."""
