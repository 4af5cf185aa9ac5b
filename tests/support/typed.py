"""`python -m tests.support.typed run`: `python -m bot run`, whose MongoDB commands are judged."""

from __future__ import annotations

import runpy

from pymongo import monitoring

from tests.support.mongo_listener import LISTENER

if __name__ == "__main__":
    monitoring.register(LISTENER)
    runpy.run_module("bot", run_name="__main__")
