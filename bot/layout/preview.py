"""The tool author's preview of a call: a text, a diff, or a table.

A text whose lines all begin with `+`, `-`, `@` or a space is a diff. A text whose lines all have
the same number of tabs is a table with a header row.
"""

from __future__ import annotations

from bot.layout.blocks import Block, line, literal, preformatted, rich
from bot.layout.parts import Body
from bot.layout.text import show, width
from bot.redaction.call import mask_call, written
from bot.redaction.mask import REDACTED
from bot.words import say

TEXT, TEXT_LINES = 240, 3
DIFF, DIFF_LINES = 1_200, 12
ROWS, COLUMNS, CELL = 8, 4, 60
_NOTHING = Body(blocks=(), hidden=0, masked=False, altered=False)


def preview(text: str) -> Body:
    """Show the author's preview of a call; empty if there is none."""
    clean = written(mask_call(text)).strip("\n")
    if not clean.strip():
        return _NOTHING
    lines = clean.split("\n")
    if _is_diff(lines):
        return _diff(clean)
    rows = [text_line.split("\t") for text_line in lines if text_line.strip()]
    if _is_table(rows):
        return _table(rows, clean)
    return _text(clean)


def _is_diff(lines: list[str]) -> bool:
    marks = {text_line[:1] for text_line in lines if text_line}
    return marks <= {"+", "-", "@", " "} and {"+", "-"} <= marks


def _is_table(rows: list[list[str]]) -> bool:
    columns = {len(row) for row in rows}
    return len(rows) > 1 and len(columns) == 1 and 1 < columns.copy().pop() <= COLUMNS


def _text(clean: str) -> Body:
    view = show(clean, TEXT, lines=TEXT_LINES)
    words = f"{view.text}…" if view.hidden else view.text
    return _body([rich(line(literal(words or "…")))], clean, view.hidden, view.altered, view.turned)


def _diff(clean: str) -> Body:
    view = show(clean, DIFF, lines=DIFF_LINES)
    blocks = [rich(preformatted(view.text or "…"))]
    return _body(blocks, clean, view.hidden, view.altered, view.turned)


def _table(rows: list[list[str]], clean: str) -> Body:
    hidden, views = 0, []
    for row in rows[: ROWS + 1]:
        views.append([show(cell.strip(), CELL, one_line=True) for cell in row])
        hidden += sum(view.hidden for view in views[-1])
    left = rows[ROWS + 1 :]
    hidden += sum(width(cell) for row in left for cell in row)
    cells = [[{"type": "raw_text", "text": view.text or "-"} for view in row] for row in views]
    numbers = [_is_numbers([row[at] for row in rows[1:]]) for at in range(len(rows[0]))]
    settings = [{"align": "right" if is_number else "left"} for is_number in numbers]
    blocks: list[Block] = [{"type": "table", "column_settings": settings, "rows": cells}]
    if left:
        blocks.append(rich(line(literal(say("line.more_rows", n=len(left)), "italic"))))
    flat = [view for row in views for view in row]
    is_turned = any(view.turned for view in flat)
    return _body(blocks, clean, hidden, any(view.altered for view in flat), is_turned)


def _is_numbers(cells: list[str]) -> bool:
    return all(
        cell.strip().strip("-+").replace(",", "").replace(".", "").isdigit() for cell in cells
    )


def _body(blocks: list[Block], clean: str, hidden: int, altered: bool, turned: bool) -> Body:  # noqa: FBT001
    return Body(
        blocks=tuple(blocks),
        hidden=hidden,
        masked=REDACTED in clean,
        altered=altered,
        turned=turned,
    )
