"""Reads the code of a page, with what it prints, and runs it."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import cast

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A piece of code, and what the page says that it prints."""

    page: Path
    line: int
    code: str
    printed: str | None

    def compiled(self) -> CodeType:
        """Code whose lines have the numbers of the page."""
        text = "\n" * (self.line - 1) + self.code
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        return cast(
            "CodeType", compile(text, str(self.page), "exec", flags=flags, dont_inherit=True)
        )

    async def run(self, module: ModuleType) -> str:
        """Run it in a module; give back what it prints."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            coroutine = FunctionType(self.compiled(), vars(module))()  # as Python's own prompt does
            if coroutine is not None:
                await coroutine
        return out.getvalue()


def read_blocks(path: Path) -> tuple[Block, ...]:
    """Read the code of a whole page."""
    page = path.read_text(encoding="utf-8")
    return _blocks(path, page, 0, len(page))


def _blocks(path: Path, page: str, start: int, end: int) -> tuple[Block, ...]:
    fences = list(_FENCE.finditer(page, start, end))
    blocks = []
    for at, fence in enumerate(fences):
        if fence[1] != "python":
            continue
        following = fences[at + 1] if at + 1 < len(fences) else None
        is_output = (
            following is not None
            and following[1] == "text"
            and not page[fence.end() : following.start()].strip()
        )
        printed = following[2] if following is not None and is_output else None
        blocks.append(Block(path, page.count("\n", 0, fence.start(2)) + 1, fence[2], printed))
    return tuple(blocks)
