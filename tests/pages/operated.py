"""The data directory on which the guides for operators are played."""

from __future__ import annotations

from pathlib import Path

from tests.support.stage import a_stage

APPROVE = "countersign:approve"
LONG_AGO_H = 120 * 24


async def make_data_directory(directory: Path) -> None:
    """Make one with a deployment that ran 120 days ago, and with one that is pending.

    Args:
        directory: The new data directory; its parent is there.
    """
    place = {"COUNTERSIGN_DATA_DIR": str(directory)}
    async with a_stage(directory.parent, "socket", **place) as stage:
        stage.clock.forward(hours=-LONG_AGO_H)
        await stage.say("Rosa", "@countersign deploy payments 1.4.2 to staging")
        await stage.click("Ada", await stage.card(word=APPROVE), APPROVE)
        await stage.said("Done")
        await stage.rest()
        stage.clock.forward(hours=LONG_AGO_H)
        await stage.say("Rosa", "@countersign deploy search 2.0.0 to staging")
        await stage.card(number=2, word=APPROVE)
        await stage.rest()
