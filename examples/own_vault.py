"""An example agent whose secrets are in a store of its own, and in no argument, card or log.

Replace `FileVault` by a client of your vault. A tool names a secret and reads it only when people
have approved the call. The model is a small function, so that the example needs no API key.
"""

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Protocol

from pydantic_ai.messages import ModelMessage, ModelResponsePart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, tool
from agents.models import AnsweringModel, call, say


class Vault(Protocol):
    """A store of secrets."""

    def read(self, name: str) -> str: ...

    def write(self, name: str, value: str) -> None: ...

    def names(self) -> list[str]: ...


class FileVault:
    """Secrets in a file that only its owner can read.

    Args:
        path: The file; it may be missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, name: str) -> str:
        return self._all()[name]

    def write(self, name: str, value: str) -> None:
        new = self._path.with_suffix(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump({**self._all(), name: value}, file)
        new.replace(self._path)

    def names(self) -> list[str]:
        return sorted(self._all())

    def _all(self) -> dict[str, str]:
        return dict(json.loads(self._path.read_text("utf-8"))) if self._path.exists() else {}


def fingerprint(value: str) -> str:
    """Name a secret without telling it."""
    return hashlib.sha256(value.encode()).hexdigest()[:8]


def build_with(vault: Vault) -> Agent:
    """Build the agent with a store of secrets."""

    @tool(tags=["read-only"])
    def list_secrets() -> str:
        """Return the names of the secrets, without their values."""
        return f"Secrets: {', '.join(vault.names()) or 'none'}"

    @tool(title="Replace the secret {secret_name}", gate="approval", risk="high")
    def rotate_password(secret_name: str) -> str:
        """Replace a secret by a new random one.

        Args:
            secret_name: Name of the secret in the vault.
        """
        vault.write(secret_name, secrets.token_urlsafe(24))
        # What a tool returns, the model and the thread read: never the value.
        return f"{secret_name} is new, fingerprint {fingerprint(vault.read(secret_name))}"

    def answer(messages: list[ModelMessage]) -> list[ModelResponsePart]:
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            return [say(str(last.content))]
        if isinstance(last, UserPromptPart) and "rotate" in str(last.content):
            return [call("rotate_password", {"secret_name": "guest-wifi"})]
        return [call("list_secrets")]

    return ChatModelAgent(
        name="own_vault",
        model=AnsweringModel(answer, name="example"),
        instruction="You look after secrets. You never see their values.",
        tools=[list_secrets, rotate_password],
    )


def build(model: Model) -> Agent:
    """Build the agent with the file that EXAMPLE_VAULT names."""
    return build_with(FileVault(Path(os.environ.get("EXAMPLE_VAULT", "vault.json"))))
