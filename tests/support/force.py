"""A policy that is in force because a test says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.config.settings import Settings
from bot.policy.evaluation.context import PolicyWorld
from bot.policy.evaluation.evaluate import PolicyEvaluator
from bot.policy.model import PolicyFile
from bot.policy.parser.checks import check
from bot.policy.parser.settings import policy_text, settings_policy


@dataclass
class Forced:
    """A policy in force; another comes into force by `put`."""

    rulebook: PolicyEvaluator
    file_hash: str = "f1"
    is_settings: bool = False

    def __call__(self) -> Forced:
        return self


def forced(*rules: dict[str, Any], default: Any = "allow", **parts: Any) -> Forced:
    """Make a policy of rules.

    Args:
        rules: In order.
        default: What is said where none matches.
        parts: Groups and defaults.
    """
    data = {"version": 1, "rules": list(rules), "default": default, **parts}
    return Forced(PolicyEvaluator(PolicyFile.model_validate(data)))


def of_settings(**environ: str) -> Forced:
    """Make the policy that settings are.

    Args:
        environ: Those that say who decides, and when, without `COUNTERSIGN_`.
    """
    tokens = {"SLACK_BOT_TOKEN": "xoxb-tests", "SLACK_SIGNING_SECRET": "0123456789abcdef"}
    given = {f"COUNTERSIGN_{name}": value for name, value in environ.items()}
    text = policy_text(settings_policy(Settings.load({**tokens, **given})))
    policy = check(text.encode(), PolicyWorld(), is_settings=True)
    return Forced(PolicyEvaluator(policy.file), policy.hash, is_settings=True)
