"""The demo agent: an on-call engineer's helper, with a rule-based model that needs no key."""

from bot.demo.agent import Effect, build
from bot.demo.model import DemoModel

__all__ = ["DemoModel", "Effect", "build"]
