"""The page about the library alone: one process asks, and another one goes on."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.pages.site import fences

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "use-the-library-alone.md"


def test_another_process_resumes_the_run_as_the_page_shows(tmp_path: Path) -> None:
    fenced = list(fences(PAGE))
    (script,) = [fence for fence in fenced if fence.name]
    (shown,) = [fence for fence in fenced if fence.kind == "console"]
    (tmp_path / script.name).write_text(script.text, "utf-8")
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    printed = ""
    for line in shown.text.splitlines():
        if line.startswith("$ python "):
            printed += (
                f"{line}\n"
                + subprocess.run(  # noqa: S603 - the page's own script
                    [sys.executable, *shlex.split(line.removeprefix("$ python "))],
                    cwd=tmp_path,
                    env=environ,
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
            )

    assert printed.strip() == shown.text.strip()
