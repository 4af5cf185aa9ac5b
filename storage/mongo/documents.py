"""Types of what is sent to a server and received from it."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]
Filter = dict[str, Any]
Update = dict[str, dict[str, Any]]
