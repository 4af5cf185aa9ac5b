"""`python -m bot`: the same as `countersign`."""

import sys

from bot.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
