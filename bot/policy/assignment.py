"""Assigns people to slots: a maximum matching of a bipartite graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence


class Matching:
    """An incremental assignment of rows to columns, each used at most once.

    A placed row stays placed, though a later row may move it to another column. Earlier rows
    therefore take precedence over later ones.

    Source:
        H. W. Kuhn, The Hungarian method for the assignment problem, 1955 (augmenting paths).
    """

    def __init__(self) -> None:
        self.columns: dict[int, int] = {}
        """The column of each placed row."""
        self._rows: dict[int, int] = {}
        self._fits: dict[int, Sequence[int]] = {}

    def add(self, row: int, fits: Collection[int]) -> bool:
        """Place a row in one of its columns, moving other rows; False if impossible."""
        self._fits[row] = sorted(fits)
        if self._place(row, set()):
            return True
        del self._fits[row]
        return False

    def reached(self, fits: Collection[int]) -> frozenset[int]:
        """Return the columns that moves could free for a row with these columns."""
        found = set(fits)
        new = list(found)
        while new:
            row = self._rows.get(new.pop())
            more = set() if row is None else set(self._fits[row]) - found
            found |= more
            new.extend(more)
        return frozenset(found)

    def _place(self, row: int, tried: set[int]) -> bool:
        for column in self._fits[row]:
            if column not in self._rows:
                return self._put(row, column)
        for column in self._fits[row]:
            if column not in tried:
                tried.add(column)
                if self._place(self._rows[column], tried):
                    return self._put(row, column)
        return False

    def _put(self, row: int, column: int) -> bool:
        self.columns[row], self._rows[column] = column, row
        return True


def match(rows: Sequence[Collection[int]]) -> Matching:
    """Place as many rows as possible; earlier rows take precedence."""
    matching = Matching()
    for row, fits in enumerate(rows):
        matching.add(row, fits)
    return matching
