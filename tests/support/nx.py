"""The server nx-27017, mended: no insert works after an index of several fields with `_id`."""

from __future__ import annotations

from typing import Any

from neosqlite.collection import index_manager  # type: ignore[import-untyped]
from nx_27017 import nx_27017  # type: ignore[import-untyped]

_path: Any = index_manager.parse_json_path
index_manager.parse_json_path = lambda field: "$._id" if field == "_id" else _path(field)

if __name__ == "__main__":
    nx_27017.main()
