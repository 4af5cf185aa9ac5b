"""The OpenAPI document of the API for programs, as a file."""

from __future__ import annotations

import json

from bot.api.openapi import openapi_document

URL = "https://countersign.example.com"


def build() -> str:
    """Make the file."""
    return json.dumps(openapi_document(URL), indent=2, ensure_ascii=False) + "\n"
