"""The shared database: a MongoDB replica set or sharded cluster, for any number of processes."""

from __future__ import annotations

from storage.mongo.client import Driver
from storage.mongo.storage import MongoStorage

__all__ = ["Driver", "MongoStorage"]
