"""The demo agents: an on-call engineer's helper and the patterns, with models that need no key."""

from pathlib import Path
from typing import Final

from bot.demo.agent import Effect, build
from bot.demo.model import DemoModel
from bot.demo.patterns import LIMITS, PATTERNS, RULES, DemoPattern, DemoRule, channels

__all__ = [
    "LIMITS",
    "PATTERNS",
    "POLICY",
    "RULES",
    "DemoModel",
    "DemoPattern",
    "DemoRule",
    "Effect",
    "build",
    "channels",
]

POLICY: Final = Path(__file__).with_name("policy.yaml")
"""The demo's policy: who decides what."""
