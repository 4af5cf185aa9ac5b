"""The freeze file: stops one process while the file exists, even if the database is in doubt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot.freezes.rules import ALL
from bot.ports.process import Clock
from bot.records.switch import Freeze
from bot.words import say

FILE = "file"
"""Id of the freeze by the file, and its actor in the audit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeFile:
    """Looks for the freeze file.

    Attributes:
        path: The file; None without one.
        clock: The time now.
    """

    path: Path | None
    clock: Clock

    def freeze(self) -> Freeze | None:
        """Return the freeze of all calls and turns while the file exists, or None.

        A place that cannot be examined counts as a file that exists. A link counts, wherever it
        leads.
        """
        if self.path is None:
            return None
        try:
            self.path.lstat()
            why = say("line.freeze_file")
        except FileNotFoundError:
            # The file may be on a disk that is not mounted: then its directory is missing, too.
            if self.path.parent.is_dir():
                return None
            why = say("line.freeze_file_unreadable")
        except (OSError, ValueError):
            why = say("line.freeze_file_unreadable")
        return Freeze(id=FILE, scope=ALL, by=FILE, why=why, since_ms=self.clock(), turns=True)
