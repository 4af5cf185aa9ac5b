"""Pictures of what a test sees, for people: `make test-all SHOTS=1` leaves them in screenshots/.

To draw one takes a quarter of a second of a core, and no test reads it.
"""

import os

from playwright.async_api import Locator, Page

WANTED = bool(os.environ.get("SHOTS"))


async def shot(of: Page | Locator, name: str) -> None:
    """Take a picture, where somebody wants pictures."""
    if WANTED:
        await of.screenshot(path=f"screenshots/{name}.png")
