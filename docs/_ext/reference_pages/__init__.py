"""The reference pages that are made from the code.

Each module makes one page and imports only the product, so that a test can compare the committed
pages without Sphinx.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from reference_pages import (
    audit_entries,
    command_line,
    errors,
    http,
    http_api,
    limits,
    log_actions,
    metrics,
    openapi,
    policy_cases,
    policy_file,
    settings,
    slack_commands,
    slack_scopes,
)

PAGES: Mapping[str, Callable[[], str]] = {
    "settings": settings.build,
    "policy-file": policy_file.build,
    "command-line": command_line.build,
    "metrics": metrics.build,
    "log-actions": log_actions.build,
    "audit-entries": audit_entries.build,
    "policy-cases": policy_cases.build,
    "errors": errors.build,
    "limits": limits.build,
    "http": http.build,
    "http-api": http_api.build,
    "slack-commands": slack_commands.build,
    "slack-scopes": slack_scopes.build,
}
"""The functions that make the pages, by their paths in `docs/reference` without the suffix."""

FILES: Mapping[str, Callable[[], str]] = {"openapi.json": openapi.build}
"""The functions that make other files of `docs/reference`, by their names."""


def write_pages(folder: Path) -> None:
    """Write each page and file whose text has changed, so that Sphinx rebuilds no other."""
    pages = {f"{name}.md": build for name, build in PAGES.items()}
    for name, build in {**pages, **FILES}.items():
        path, text = folder / name, build()
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
