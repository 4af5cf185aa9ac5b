"""Runs the tests of the OpenAI Agents SDK, whose package has the name of one of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SDK = Path(sys.prefix) / "openai-agents"


@pytest.mark.skipif(not SDK.is_dir(), reason="make test-all installs the SDK")
def test_plays_where_agents_is_the_package_of_openai() -> None:
    plays = Path(__file__).with_name("openai_agents_plays.py")
    options = [
        "-q",
        "--import-mode=append",
        "--noconftest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-P", "-m", "pytest", *options, str(plays)],
        env={**os.environ, "PYTHONPATH": f"{SDK}{os.pathsep}{ROOT}"},
        cwd=SDK,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
