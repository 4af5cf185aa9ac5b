"""The pages about security: each claim names code that exists and a test that can fail."""

from __future__ import annotations

import ast
import re

import pytest

from tests.pages.site import DOCS, ROOT
from tests.pages.test_acceptance import SURE, functions_of

PAGES = ("security", "masks-and-display", "audit")
ROW = re.compile(
    r"^\| (.+?) \| (?:(.+?) \| )?(`[^|]+`) \| `(tests/[\w/]+\.py)::(test_\w+)` \|$", re.MULTILINE
)


def text_of(page: str) -> str:
    return (DOCS / "explanation" / f"{page}.md").read_text("utf-8")


CLAIMS = [
    pytest.param(match[3], match[4], match[5], id=f"{page}: {match[1]}")
    for page in PAGES
    for match in ROW.finditer(text_of(page))
]


@pytest.mark.parametrize(("code", "path", "name"), CLAIMS)
def test_a_claim_has_its_code_and_a_test(code: str, path: str, name: str) -> None:
    named = re.findall(r"`([^`]+)`", code)
    assert named
    assert [file for file in named if not (ROOT / file).exists()] == []
    function = functions_of(path).get(name)
    assert function is not None, f"{path}::{name} is not there"
    assert not any("skip" in ast.unparse(decorator) for decorator in function.decorator_list)
    assert any(word in ast.unparse(function) for word in SURE | {"play("})


def test_each_invariant_has_one_row() -> None:
    numbers = re.findall(r"^\| (I\d+) \|", text_of("security"), re.MULTILINE)
    assert numbers == [f"I{number}" for number in range(1, 15)]
    assert len(CLAIMS) >= len(numbers) + 5
