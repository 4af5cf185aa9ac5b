"""A policy that is in force because a test says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.policy.judging.evaluate import Rulebook
from bot.policy.model import PolicyFile


@dataclass
class Forced:
    """A policy in force; another comes into force by `put`."""

    rulebook: Rulebook
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
    return Forced(Rulebook(PolicyFile.model_validate(data)))
