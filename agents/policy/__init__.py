"""Policies: which calls run, which are denied, and which need approval."""

from agents.policy.base import (
    Allow,
    AllowList,
    Ask,
    BlockList,
    Deny,
    Policy,
    PolicyCall,
    Ruling,
    ruling_of,
)
from agents.policy.checks import check_names
from agents.policy.combine import all_of, first_of, strictest
from agents.policy.house import ApplicationPolicy
from agents.policy.rules import Condition, Rule, RulePolicy

__all__ = [
    "Allow",
    "AllowList",
    "ApplicationPolicy",
    "Ask",
    "BlockList",
    "Condition",
    "Deny",
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
