"""Types of the documents, filters and updates that are exchanged with a server."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]
Filter = dict[str, Any]
Update = dict[str, dict[str, Any]]
