"""Distinct people for slots: a maximum matching of a bipartite graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence


class Matching:
    """An assignment of rows to columns, each at most once, that grows row by row.

    A row that has found a place keeps one, though it may be moved for another's sake; so the rows
    that are placed are the first ones, in the order in which they came, that can be placed at all.

    Source:
        H. W. Kuhn, The Hungarian method for the assignment problem, 1955 (augmenting paths).
    """

    def __init__(self) -> None:
        self.columns: dict[int, int] = {}
        """By row, its column."""
        self._rows: dict[int, int] = {}
        self._fits: dict[int, Sequence[int]] = {}

    def add(self, row: int, fits: Collection[int]) -> bool:
        """Place a row in one of the columns that it fits; the first that is free, if one is.

        Returns:
            Whether it could be placed.
        """
        self._fits[row] = sorted(fits)
        if self._place(row, set()):
            return True
        del self._fits[row]
        return False

    def reached(self, fits: Collection[int]) -> frozenset[int]:
        """The columns that could be vacated for a row that fits these: of no use when all are full.

        Args:
            fits: Columns, such as those of a row that was not placed.
        """
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
    """Place as many rows as possible, the first ones first.

    Args:
        rows: Of each, the columns that it fits.
    """
    matching = Matching()
    for row, fits in enumerate(rows):
        matching.add(row, fits)
    return matching
