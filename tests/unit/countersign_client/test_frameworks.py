"""An adapter refuses a framework that it was not tried with, when it is imported (check 61)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from countersign_client.adapters.frameworks import UnsupportedVersion, framework
from tests.support.halves import first_rows

ROOT = Path(__file__).parents[3]


def stderr_of_import(module: str, distribution: str, version: str, *folders: Path) -> str:
    """What an import of an adapter says, where such a version is in the last of the folders."""
    info = folders[-1] / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {distribution}\nVersion: {version}\n", "utf-8")
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", f"import countersign_client.adapters.{module}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr


@pytest.mark.parametrize(
    ("module", "distribution", "version", "wanted"),
    first_rows(
        1,
        [
            ("pydantic_ai", "pydantic-ai-slim", "2.9.1", "pydantic-ai-slim>=2.60,<3, found 2.9.1"),
            ("pydantic_ai", "pydantic-ai-slim", "3.0.0", "pydantic-ai-slim>=2.60,<3, found 3.0.0"),
            ("langgraph", "langgraph", "1.2.9", "langgraph>=1.2.22,<2, found 1.2.9"),
            ("langgraph", "langgraph", "2.0.0", "langgraph>=1.2.22,<2, found 2.0.0"),
            ("openai_agents", "openai-agents", "1.0.0", "openai-agents>=0.20,<1, found 1.0.0"),
            ("langchain", "langchain", "2.0.0", "langchain>=1.4,<2, found 2.0.0"),
        ],
    ),
)
def test_an_unknown_version_is_refused_at_import(
    tmp_path: Path, module: str, distribution: str, version: str, wanted: str
) -> None:
    last = stderr_of_import(module, distribution, version, ROOT, tmp_path).splitlines()[-1]
    assert "UnsupportedVersion: This adapter needs" in last
    assert wanted in last


def test_the_package_of_the_bot_is_not_taken_for_that_of_openai(tmp_path: Path) -> None:
    said = stderr_of_import("openai_agents", "openai-agents", "0.24.0", ROOT, tmp_path)
    assert "hides the package `agents` of openai-agents" in said


def test_a_missing_framework_is_named_with_its_extra() -> None:
    with pytest.raises(
        UnsupportedVersion, match=r"pip install './countersign_client\[cloudy\]'"
    ) as raised:
        framework("cloudy", "cloudy-agents", "cloudy", "1", "2")
    assert isinstance(raised.value, ImportError)
    with pytest.raises(UnsupportedVersion, match="found none"):
        framework("httpx.no_such_part", "httpx", "cloudy", "0.1", "9")


def test_a_known_version_is_imported() -> None:
    assert framework("httpx", "httpx", "x", "0.27", "1").__name__ == "httpx"
