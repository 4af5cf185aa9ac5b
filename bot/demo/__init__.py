"""The demo agents: an on-call engineer's helper and the patterns, with models that need no key."""

from bot.demo.agent import Effect, build
from bot.demo.model import DemoModel
from bot.demo.patterns import PATTERNS, DemoPattern, channels

__all__ = ["PATTERNS", "DemoModel", "DemoPattern", "Effect", "build", "channels"]
