"""The bar of coverage: what is below it makes `make test COVERAGE=1` fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.covered import main


def a_file(run: int, missed: int, branches: int = 0) -> dict[str, Any]:
    return {
        "executed_lines": list(range(run)),
        "missing_lines": list(range(run, run + missed)),
        "executed_branches": [],
        "missing_branches": [[1, at] for at in range(branches)],
    }


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"agents/a.py": a_file(95, 5), "storage/b.py": a_file(1, 0)}, ""),
        ({"agents/a.py": a_file(94, 6), "storage/b.py": a_file(1, 0)}, "95 % of agents"),
        ({"agents/a.py": a_file(95, 0, 6), "storage/b.py": a_file(1, 0)}, "95 % of agents"),
        ({"agents/a.py": a_file(1, 0), "storage/b.py": a_file(0, 1)}, "95 % of storage"),
        ({"agents/a.py": a_file(1, 0), "agentsetc/b.py": a_file(1, 0)}, "nothing of storage"),
    ],
)
def test_a_part_below_its_bar_is_named(
    files: dict[str, Any], fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "covered").write_text(json.dumps({"files": files}))
    code = main([str(tmp_path / "covered"), "agents", "storage", "--at-least", "95"])
    assert code == bool(fault)
    assert fault in capsys.readouterr().err


def test_parts_of_one_bar_count_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"bot/threads/a.py": a_file(99, 0), "bot/people/b.py": a_file(0, 1)}
    (tmp_path / "covered").write_text(json.dumps({"files": files}))
    assert main([str(tmp_path / "covered"), "bot/threads,bot/people", "--at-least", "95"]) == 0
    assert "0 %  bot/people/b.py  0" in capsys.readouterr().out
