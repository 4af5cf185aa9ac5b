"""Processes that a program starts and that must not outlive it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""


def dying_with_parent() -> Callable[[], None] | None:
    """Give a `preexec_fn` that ends the child when this process is killed; only Linux can."""
    if not sys.platform.startswith("linux"):
        return None
    libc, parent = ctypes.CDLL(None), os.getpid()

    def before_it_runs() -> None:
        libc.prctl(_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGTERM)

    return before_it_runs
