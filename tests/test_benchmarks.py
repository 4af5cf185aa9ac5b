"""Each benchmark but one runs to its end, in its quick form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SLOW = "bench_storage"
"""It starts bots and fills databases for minutes, also in its quick form."""
BENCHMARKS = [
    file for file in sorted((ROOT / "benchmarks").glob("bench_*.py")) if file.stem != SLOW
]
PATIENCE_S = 600
"""Longest time of one benchmark on a busy machine."""


@pytest.mark.parametrize("file", BENCHMARKS, ids=lambda file: file.stem)
def test_a_benchmark_runs_to_its_end(file: Path) -> None:
    done = subprocess.run(  # noqa: S603 - our own files
        [sys.executable, str(file), "--quick"],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
