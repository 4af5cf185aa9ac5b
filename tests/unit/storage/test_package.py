"""What importing the package does."""

import subprocess
import sys

PROBE = """
import sys, storage
loaded = {"sqlite3", "motor", "pymongo", "bson"} & set(sys.modules)
assert not loaded, loaded
import storage.mongo
assert "motor" not in sys.modules
"""


def test_importing_the_package_loads_no_driver() -> None:
    subprocess.run([sys.executable, "-c", PROBE], check=True)  # noqa: S603 - our own text
