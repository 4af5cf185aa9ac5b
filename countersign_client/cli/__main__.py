"""Runs `python -m countersign_client.cli` as the script `countersign-ask`."""

import sys

from countersign_client.cli.entry import main

sys.exit(main())
