"""Policies: what may run, what must not, and what people are asked about first."""

from agents.policy.base import (
    Allow,
    AllowList,
    Ask,
    BlockList,
    Deny,
    NamesTools,
    Policy,
    PolicyCall,
    Ruling,
    all_of,
    check_names,
    first_of,
    ruling_of,
    strictest,
)
from agents.policy.rules import Condition, Rule, RulePolicy

__all__ = [
    "Allow",
    "AllowList",
    "Ask",
    "BlockList",
    "Condition",
    "Deny",
    "NamesTools",
    "Policy",
    "PolicyCall",
    "Rule",
    "RulePolicy",
    "Ruling",
    "all_of",
    "check_names",
    "first_of",
    "ruling_of",
    "strictest",
]
